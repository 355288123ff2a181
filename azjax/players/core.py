"""The player interface, which chooses moves for a batch of positions, and its simplest
player."""

import functools
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from flax import struct
from jax.sharding import Mesh

from azjax.devices import jit_network, spread
from azjax.games import Game, State, random_action
from azjax.search.keys import draw


class Choice(NamedTuple):
    """A player's moves in B positions, with its evaluations.

    action: `[B]` int32; the moves.
    policy: `[B, A]` float32; the player's move probabilities, 0 where illegal.
    value: `[B]` float32; expected result for the player to move, in [-1, 1]; 0 from a
        player that does not evaluate positions.
    draw: `[B]` float32; the network's probability of a draw, or None.
    """

    action: jax.Array
    policy: jax.Array
    value: jax.Array
    draw: jax.Array | None = None


class Player(Protocol):
    """Chooses moves by a pure function that can be jitted.

    A player is a pytree: its weights are leaves and its settings are static, so that
    one compiled function serves all players of a type (see `choose`).

    A player that keeps data from move to move, such as a search tree, has two more
    methods: `init_carry(states)` returns the carry of B new games, a pytree, and
    `choose_with_carry(rng_key, states, carry)` returns the choice and the new carry.
    Call them through the functions below, which accept every player.

    A player with `draws_in_parts = True` also accepts `[P]` keys, one for each of P
    equal parts of the batch (see `azjax.search.keys`). Its large batches are divided
    among devices.
    """

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions.

        Args:
            rng_key: consumed; a deterministic player ignores it.
            states: the positions, leaves `[B, ...]`, none of them terminated.
        """
        ...


def uniform(mask: jax.Array) -> jax.Array:
    """Returns `[B, A]` float32: equal probabilities where `mask` is True, else 0."""
    return mask / mask.sum(axis=-1, keepdims=True, dtype=jnp.float32)


def choose_uniformly(rng_key: jax.Array, mask: jax.Array, value: jax.Array) -> Choice:
    """Chooses one of the actions in `mask` (`[B, A]` bool), each with the same
    probability; the key is consumed."""
    return Choice(draw(random_action, rng_key, mask), uniform(mask), value)


@struct.dataclass
class RandomPlayer:
    """Chooses every legal move with the same probability."""

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        legal = jax.vmap(self.game.legal_action_mask)(states)
        value = jnp.zeros(len(legal), jnp.float32)
        return choose_uniformly(rng_key, legal, value)


def choose(
    player: Player, rng_key: jax.Array, states: State, mesh: Mesh | None = None
) -> Choice:
    """Calls `player.choose`, compiled once for each player type and batch shape.

    Args:
        player: any player.
        rng_key: consumed; `[P]` keys from a player that draws in parts.
        states: the positions, leaves `[B, ...]`.
        mesh: devices that compute the batch, from a `BatchLayout`; None for one device.
    """
    return choose_with_carry(player, rng_key, states, None, mesh)[0]


def init_carry(player: Player, states: State, mesh: Mesh | None = None) -> Any:
    """Calls `player.init_carry`, compiled; returns None for a player without a carry.

    Args:
        player: any player.
        states: leaves `[B, ...]`; only their shapes matter.
        mesh: devices that compute the batch, as in `choose`.
    """
    if not hasattr(player, "init_carry"):
        return None
    return _init_carry(type(player), mesh, player, states)


# The player's type is a static argument: JAX compares pytrees of registered classes by
# fields and static data, not by class, and could reuse another class's program.
@jax.jit(static_argnums=(0, 1))
def _init_carry(
    player_type: type[Any], mesh: Mesh | None, player: Player, states: State
) -> Any:
    return spread(player_type.init_carry, mesh, num_replicated=1)(player, states)


def choose_with_carry(
    player: Player,
    rng_key: jax.Array,
    states: State,
    carry: Any,
    mesh: Mesh | None = None,
) -> tuple[Choice, Any]:
    """Calls `player.choose_with_carry`, compiled, or `choose` if `carry` is None.

    Args:
        player: any player.
        rng_key: consumed; one key or `[P]`, as in `choose`.
        states: the positions, leaves `[B, ...]`, none of them terminated.
        carry: result of `init_carry` or of an earlier call in the same games. Any
            number of moves may have been made or undone since.
        mesh: devices that compute the batch, as in `choose`.

    Returns:
        The choice and the carry for the next move.
    """
    return _choose_with_carry(type(player), mesh, player, rng_key, states, carry)


@functools.partial(jit_network, static_argnums=(0, 1))
def _choose_with_carry(
    player_type: type[Any], mesh: Mesh | None, player: Player, *batch: Any
) -> tuple[Choice, Any]:
    """Takes the keys, states and carry as `batch`."""
    *inputs, carry = batch
    if carry is None:
        return spread(player_type.choose, mesh, num_replicated=1)(player, *inputs), None
    return spread(player_type.choose_with_carry, mesh, num_replicated=1)(player, *batch)

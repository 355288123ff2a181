"""What a player is: anything that chooses moves for a batch of positions."""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from azjax.devices import spread
from azjax.games import State


class Choice(NamedTuple):
    """What a player chose, and thought, in each of B positions.

    action: `[B]` int32; the moves.
    policy: `[B, A]` float32; the player's probabilities of the moves, 0 where illegal.
    value: `[B]` float32; the expected result for the player to move, in [-1, 1];
        0 from a player that has no opinion.
    draw: `[B]` float32; a network's probability of a draw; None from a player that
        does not tell it.
    """

    action: jax.Array
    policy: jax.Array
    value: jax.Array
    draw: jax.Array | None = None


class Player(Protocol):
    """Chooses moves by a pure function that can be jitted.

    A player is a pytree: its weights are leaves and its settings are static, so that
    one compiled function serves every player of a kind (see `choose`).

    A player that remembers what it thought, to go on from there at its next move, has
    two more methods: `start(states)` returns the memory of B games that begin, a
    pytree, and `think(rng_key, states, memory)` the choice and the new memory. They
    are called through `start` and `think` below, which serve all players.

    A player whose attribute `draws_in_parts` is True takes `[P]` keys too, one for each
    of P equal parts of the batch (see `azjax.search.keys`): its large batches are
    divided among the devices.
    """

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions, none of them finished.

        Args:
            rng_key: consumed; a deterministic player ignores it.
            states: the positions, leaves `[B, ...]`.
        """
        ...


def uniform(mask: jax.Array) -> jax.Array:
    """Returns `[B, A]` float32: equal probabilities where `mask` is True, else 0."""
    return mask / mask.sum(axis=-1, keepdims=True, dtype=jnp.float32)


def choose(
    player: Player, rng_key: jax.Array, states: State, mesh: Mesh | None = None
) -> Choice:
    """Compiles and calls `player.choose`, once for each kind of player and batch.

    Args:
        player: any player.
        rng_key: consumed; `[P]` keys from a player that draws in parts.
        states: the positions, leaves `[B, ...]`.
        mesh: the devices among which they are divided, of a `BatchLayout`.
    """
    return _choose(type(player), mesh, player, rng_key, states)


# A function that takes players is compiled with their type as a static argument: JAX
# compares pytrees of registered classes by fields and static data, not by class, so it
# may call the function that was compiled for another class.
@jax.jit(static_argnums=(0, 1))
def _choose(
    player_type: type,
    mesh: Mesh | None,
    player: Player,
    rng_key: jax.Array,
    states: State,
) -> Choice:
    return spread(player_type.choose, mesh, num_replicated=1)(player, rng_key, states)


def start(player: Player, states: State, mesh: Mesh | None = None) -> Any:
    """Compiles and calls `player.start`; None from a player that has no memory.

    Args:
        player: any player.
        states: leaves `[B, ...]`; only their shapes matter.
        mesh: as in `choose`.
    """
    if not hasattr(player, "start"):
        return None
    return _start(type(player), mesh, player, states)


@jax.jit(static_argnums=(0, 1))
def _start(
    player_type: type[Any], mesh: Mesh | None, player: Player, states: State
) -> Any:
    return spread(player_type.start, mesh, num_replicated=1)(player, states)


def think(
    player: Player,
    rng_key: jax.Array,
    states: State,
    memory: Any,
    mesh: Mesh | None = None,
) -> tuple[Choice, Any]:
    """Chooses as `choose` does, in games whose memory is carried from move to move.

    Args:
        player: any player.
        rng_key: as in `choose`.
        states: the positions, leaves `[B, ...]`, none of them finished.
        memory: what `start`, or `think` at an earlier move of these games, returned.
            Any number of moves may have been made since, and taken back.
        mesh: as in `choose`.

    Returns:
        The choice, and the memory for the next move.
    """
    return _think(type(player), mesh, player, rng_key, states, memory)


@jax.jit(static_argnums=(0, 1))
def _think(
    player_type: type[Any], mesh: Mesh | None, player: Player, *batch: Any
) -> tuple[Choice, Any]:
    """`batch`: the keys, states and memory."""
    *asked, memory = batch
    if memory is None:
        return spread(player_type.choose, mesh, num_replicated=1)(player, *asked), None
    return spread(player_type.think, mesh, num_replicated=1)(player, *batch)

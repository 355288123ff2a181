"""The interfaces of players.

Compiled players choose moves for batches of positions. External players, a person or
another program, play one game at a time and take its moves as a list. A session, a
player bound to one game, is the common interface of both: a game that is played on the
host has one session for each side.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jax.sharding import Mesh

from azjax.devices import jit_network, spread
from azjax.games import Game, State
from azjax.games.host import legal_actions


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


class Branches(NamedTuple):
    """The N most visited nodes of B search trees, the root first, each after its
    parent.

    parents: `[B, N]` int32; index of the parent among the N nodes; -1 for the root.
    actions: `[B, N]` int32; the move that leads to the node, an action or A + k for
        outcome k of chance; -1 for the root.
    priors: `[B, N]` float32; prior probability of that move; 1 for the root.
    visits: `[B, N]` int32; visit counts; 0 where a tree has fewer nodes.
    values: `[B, N]` float32; expected result in [-1, 1] for the player who made the
        move, or whose roll it was; for the root, for the player to move.
    """

    parents: jax.Array
    actions: jax.Array
    priors: jax.Array
    visits: jax.Array
    values: jax.Array


class Analysis(NamedTuple):
    """Search statistics of B positions, with A actions and lines of L moves.

    prior: `[B, A]` float32; prior probabilities of the moves.
    visits: `[B, A]` int32; visit counts of the moves.
    action_values: `[B, A]` float32; expected result of each move for the player who
        makes it, in [-1, 1]; 0 where not visited.
    line: `[B, L]` int32; the principal variation, which starts with the chosen move and
        goes on until chance decides; -1 after its end.
    branches: the most visited nodes; None without a tree.
    """

    prior: jax.Array
    visits: jax.Array
    action_values: jax.Array
    line: jax.Array
    branches: Branches | None = None


class Player(Protocol):
    """Chooses moves by a pure function that can be jitted.

    A player is a pytree: its weights are leaves and its settings are static, so that
    one compiled function serves all players of a type (see `choose`).

    A player that keeps data from move to move, such as a search tree, has two more
    methods: `init_carry(states)` returns the carry of B new games, a pytree, and
    `choose_with_carry(rng_key, states, carry)` returns the choice and the new carry.
    Call them through the functions below, which accept every player.

    A player with `draws_in_lanes = True` also accepts `[L]` keys, one for each of L
    lanes of the batch (see `azjax.search.keys`). Its large batches are divided
    among devices.
    """

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions.

        Args:
            rng_key: consumed; a deterministic player ignores it.
            states: the positions, leaves `[B, ...]`, none of them terminated.
        """
        ...


def choose(
    player: Player, rng_key: jax.Array, states: State, mesh: Mesh | None = None
) -> Choice:
    """Calls `player.choose`, compiled once for each player type and batch shape.

    Args:
        player: any player.
        rng_key: consumed; `[L]` keys from a player that draws in lanes.
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
        rng_key: consumed; one key or `[L]`, as in `choose`.
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


# One game at a time


class ForfeitError(Exception):
    """The player cannot continue: it died, timed out or broke the rules.

    The message is the reason. The player loses the game.
    """


class ResignError(ForfeitError):
    """The player resigns. It loses the game, but this is not a fault."""


class MoveDecision(NamedTuple):
    """A player's move in one position, with its evaluation.

    action: the move.
    policy: `[A]` float32; the player's move probabilities, or None.
    value: expected result for the player to move, in [-1, 1], or None.
    analysis: search statistics without the batch axis, or None.
    draw: probability of a draw, or None.
    """

    action: int
    policy: np.ndarray | None = None
    value: float | None = None
    analysis: Analysis | None = None
    draw: float | None = None


def to_move_decision(choice: Choice, analysis: Analysis | None) -> MoveDecision:
    """Converts the choice in one position, without the batch axis, to NumPy."""
    return MoveDecision(
        int(choice.action),
        np.asarray(choice.policy),
        float(choice.value),
        analysis,
        None if choice.draw is None else float(choice.draw),
    )


class PlayerSession(Protocol):
    """A player bound to one game.

    A session is not thread-safe. It accepts only positions of its game; moves may be
    undone between two calls.
    """

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move.

        Args:
            state: the position; not terminated.
            moves: the actions from the initial position to `state`.

        Raises:
            ForfeitError: the player cannot continue.
        """
        ...

    def close(self) -> None:
        """Releases the session's resources; called once, at the end of the game."""
        ...


@runtime_checkable
class ExternalPlayer(Protocol):
    """A player that cannot be compiled."""

    def start_session(self, game: Game, seed: int) -> PlayerSession:
        """Starts a session for a new game.

        Args:
            game: the game.
            seed: seed of the player's random choices, if any.

        Raises:
            ForfeitError: the player does not start.
            ValueError: the player does not support this game.
        """
        ...


AnyPlayer = Player | ExternalPlayer


def start_session(player: AnyPlayer, game: Game, seed: int) -> PlayerSession:
    """Starts a session of any player for a new game.

    Raises:
        ForfeitError: an external program does not start.
        ValueError: the player does not support this game.
    """
    if isinstance(player, ExternalPlayer):
        return player.start_session(game, seed)
    return _CompiledSession(player, game, seed)


def choose_legal(
    session: PlayerSession, game: Game, state: State, moves: Sequence[int]
) -> MoveDecision:
    """Returns the session's decision after checking that its action is legal.

    Raises:
        ForfeitError: the action is illegal, or the player cannot continue.
    """
    decision = session.choose(state, moves)
    action = decision.action
    if not 0 <= action < game.num_actions:
        raise ForfeitError(f"illegal move: there is no action {action}")
    if action not in legal_actions(game, state):
        raise ForfeitError(f"illegal move {game.action_to_text(state, action)}")
    return decision


def compile_choice(player: Player, game: Game) -> None:
    """Compiles the function that a session of the player calls for each move."""
    session = _CompiledSession(player, game, seed=0)
    _analyze.lower(*session.arguments(jax.random.key(0), game.init())).compile()


class _CompiledSession:
    """A compiled player in one game, with its carry."""

    def __init__(self, player: Player, game: Game, seed: int):
        self._player = player
        self._rng_key = jax.random.key(seed)
        self._carry = init_carry(player, _batch_of_one(game.init()))

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move."""
        del moves
        self._rng_key, rng_key = jax.random.split(self._rng_key)
        *found, self._carry = _analyze(*self.arguments(rng_key, state))
        choice, analysis = jax.tree.map(lambda leaf: np.asarray(leaf)[0], found)
        return to_move_decision(choice, analysis)

    def arguments(self, rng_key: jax.Array, state: State) -> tuple[Any, ...]:
        """Returns the arguments of `_analyze` that choose a move."""
        player = self._player
        return type(player), player, rng_key, _batch_of_one(state), self._carry

    def close(self) -> None:
        """Releases the carry."""
        self._carry = None


# The type is static, as above.
@functools.partial(jit_network, static_argnums=0)
def _analyze(
    player_type: type, player: Player, rng_key: jax.Array, states: State, carry: Any
) -> tuple[Choice, Analysis | None, Any]:
    """Calls `analyze` of a player that searches, else `choose_with_carry`."""
    del player_type
    if hasattr(player, "analyze"):
        return player.analyze(rng_key, states, carry)  # pyright: ignore
    choice, carry = choose_with_carry(player, rng_key, states, carry)
    return choice, None, carry


def _batch_of_one(state: State) -> State:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)

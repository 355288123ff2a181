"""Random openings, from which the games of a match start."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena.exhaustive import as_bytes
from azjax.games import Game, State
from azjax.games.chance import after_chance
from azjax.games.host import first_states
from azjax.games.random_moves import play_random_move
from azjax.settings import check_int

MOST_MOVES, SHARE_OF_GAME = 4, 9
_BATCH_SIZE = 1024
_MAX_ROUNDS_WITHOUT_NEW = 4  # after these, no more openings of a length are drawn


@dataclasses.dataclass(frozen=True, eq=False)
class Openings:
    """N positions of a game after the same number of actions; none is terminated or
    waits for chance.

    moves: `[N, T]` int32; the moves from the initial position, actions and outcomes of
        chance; -1 after the end.
    states: leaves `[N, ...]`, NumPy arrays.
    num_moves: number of actions in each opening.
    """

    moves: np.ndarray
    states: State
    num_moves: int

    def __len__(self) -> int:
        return len(self.moves)

    def take(self, rows: np.ndarray) -> "Openings":
        """Returns the openings at `rows`, `[M]` int."""
        states = jax.tree.map(lambda leaf: leaf[rows], self.states)
        return Openings(self.moves[rows], states, self.num_moves)


def suite(
    game: Game, rng_key: jax.Array, num_openings: int, num_moves: int | None = None
) -> Openings:
    """Draws openings: different positions after random moves.

    If the game has too few of them, longer openings are drawn. With 0 moves, all
    openings are the initial position, after an outcome if it waits for chance.

    Args:
        game: the game.
        rng_key: consumed.
        num_openings: N, at least 1.
        num_moves: minimum number of actions; None for 4, or a ninth of `game.max_moves`
            if that is less, because longer openings would decide a short game.

    Raises:
        ValueError: an argument is out of range, or the game has too few openings.
    """
    check_int("num_openings", num_openings, 1)
    if num_moves is None:
        num_moves = min(MOST_MOVES, game.max_moves // SHARE_OF_GAME)
    check_int("opening_moves", num_moves, 0)
    if num_moves == 0:
        states = first_states(game, num_openings)
        if not game.num_outcomes:
            return Openings(np.zeros((num_openings, 0), np.int32), states, 0)
        states, outcome = _after_chance(game, rng_key, states)
        moves = np.asarray(outcome_moves(game, outcome))[:, None]
        return Openings(moves, jax.device_get(states), 0)
    most = 0
    for length in range(num_moves, game.max_moves):
        rng_key, draw_key = jax.random.split(rng_key)
        found = _draw(game, draw_key, num_openings, length)
        if len(found) == num_openings:
            return found
        if len(found) < most:  # longer openings would end the game
            break
        most = len(found)
    if not most:
        raise ValueError(
            f"opening_moves must not end the game: {num_moves} random moves end "
            f"{game!r}"
        )
    raise ValueError(
        f"{game!r} has too few different openings of {num_moves} or more moves: "
        f"{most} of {num_openings} were found; play fewer games"
    )


def _draw(
    game: Game, rng_key: jax.Array, num_openings: int, num_moves: int
) -> Openings:
    """Draws openings until there are enough or no new ones are found."""
    start = first_states(game, _BATCH_SIZE)
    width = 1 + 2 * num_moves if game.num_outcomes else num_moves
    initial = Openings(np.zeros((_BATCH_SIZE, width), np.int32), start, num_moves)
    pool = initial.take(np.arange(0))
    rounds_without_new = 0
    while len(pool) < num_openings and rounds_without_new < _MAX_ROUNDS_WITHOUT_NEW:
        states, moves, is_played = start, [], np.ones(_BATCH_SIZE, bool)
        if game.num_outcomes:
            rng_key, chance_key = jax.random.split(rng_key)
            states, outcome = _after_chance(game, chance_key, states)
            moves.append(outcome_moves(game, outcome))
        for _ in range(num_moves):
            rng_key, move_key = jax.random.split(rng_key)
            states, action, outcome = _play_random_move(game, move_key, states)
            moves.append(action)
            is_played &= np.asarray(action) >= 0  # -1 where the game would have ended
            if outcome is not None:
                moves.append(outcome_moves(game, outcome))
        rows = without_gaps(np.stack(moves, axis=1))
        drawn = Openings(rows, jax.device_get(states), num_moves)
        drawn = drawn.take(np.flatnonzero(is_played))
        # Adds the new ones, in the order of drawing.
        together = Openings(
            np.concatenate([pool.moves, drawn.moves]),
            jax.tree.map(
                lambda *leaves: np.concatenate(leaves), pool.states, drawn.states
            ),
            num_moves,
        )
        before = len(pool)
        if len(together):
            _, first = np.unique(as_bytes(together.states), return_index=True)
            pool = together.take(np.sort(first))
        is_new = len(pool) > before
        rounds_without_new = 0 if is_new else rounds_without_new + 1
    return pool.take(np.arange(min(num_openings, len(pool))))


def outcome_moves(game: Game, outcome: jax.Array) -> jax.Array:
    """Returns outcomes of chance, -1 where there is none, as moves of the game."""
    return jnp.where(outcome < 0, -1, game.num_actions + outcome)


def without_gaps(moves: np.ndarray) -> np.ndarray:
    """Returns `[..., T]` moves in the same order, with each -1 after the moves."""
    order = np.argsort(moves < 0, axis=-1, kind="stable")
    return np.take_along_axis(moves, order, axis=-1)


_after_chance = jax.jit(after_chance, static_argnames="game")
_play_random_move = jax.jit(play_random_move, static_argnames="game")

"""Random openings, from which the games of a match start."""

import dataclasses

import jax
import numpy as np

from azjax.arena.exhaustive import as_bytes
from azjax.games import Game, State
from azjax.games.host import first_states
from azjax.games.random_moves import play_random_move
from azjax.settings import check_int

MOST_MOVES, SHARE_OF_GAME = 4, 9
_BATCH_SIZE = 1024
_MAX_ROUNDS_WITHOUT_NEW = 4  # after these, no more openings of a length are drawn


@dataclasses.dataclass(frozen=True, eq=False)
class Openings:
    """N positions of a game after the same number of moves; none is terminated.

    moves: `[N, T]` int32; the actions from the initial position.
    states: leaves `[N, ...]`, NumPy arrays.
    """

    moves: np.ndarray
    states: State

    def __len__(self) -> int:
        return len(self.moves)

    def take(self, rows: np.ndarray) -> "Openings":
        """Returns the openings at `rows`, `[M]` int."""
        states = jax.tree.map(lambda leaf: leaf[rows], self.states)
        return Openings(self.moves[rows], states)


def suite(
    game: Game, rng_key: jax.Array, num_openings: int, num_moves: int | None = None
) -> Openings:
    """Draws openings: different positions after random moves.

    If the game has too few of them, longer openings are drawn. With 0 moves, all
    openings are the initial position.

    Args:
        game: the game.
        rng_key: consumed.
        num_openings: N, at least 1.
        num_moves: minimum number of moves; None for 4, or a ninth of `game.max_moves`
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
        return Openings(np.zeros((num_openings, 0), np.int32), states)
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
    initial = Openings(np.zeros((_BATCH_SIZE, num_moves), np.int32), start)
    pool = initial.take(np.arange(0))
    rounds_without_new = 0
    while len(pool) < num_openings and rounds_without_new < _MAX_ROUNDS_WITHOUT_NEW:
        states, moves = start, []
        for _ in range(num_moves):
            rng_key, move_key = jax.random.split(rng_key)
            states, action, _ = _play_random_move(game, move_key, states)
            moves.append(np.asarray(action))
        drawn = Openings(np.stack(moves, axis=1), jax.device_get(states))
        # -1 where a move would have ended the game.
        drawn = drawn.take(np.flatnonzero((drawn.moves >= 0).all(axis=1)))
        # Adds the new ones, in the order of drawing.
        together = Openings(
            np.concatenate([pool.moves, drawn.moves]),
            jax.tree.map(
                lambda *leaves: np.concatenate(leaves), pool.states, drawn.states
            ),
        )
        before = len(pool)
        if len(together):
            _, first = np.unique(as_bytes(together.states), return_index=True)
            pool = together.take(np.sort(first))
        is_new = len(pool) > before
        rounds_without_new = 0 if is_new else rounds_without_new + 1
    return pool.take(np.arange(min(num_openings, len(pool))))


_play_random_move = jax.jit(play_random_move, static_argnames="game")

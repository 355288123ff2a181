"""Openings: where the games of a match begin, so that they differ."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena.exhaustive import as_bytes
from azjax.checks import check_int
from azjax.games import Game, State
from azjax.players.random import RandomPlayer

MOST_MOVES, SHARE_OF_GAME = 4, 9
_DRAWN_AT_ONCE = 1024
_FRUITLESS_ROUNDS = 4  # after which a length has given all that it has


@dataclasses.dataclass(frozen=True, eq=False)
class Openings:
    """N unfinished positions of a game, all after the same number of moves.

    moves: `[N, T]` int32; the actions from the first position.
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
    """Draws openings that lead to different positions by random moves.

    Where a game has too few of them they are longer than asked for. Without any moves
    all are the first position.

    Args:
        game: whose openings they are.
        rng_key: consumed.
        num_openings: N, at least one.
        num_moves: the number of moves, or the smallest one; None for 4, or as many
            as are a ninth of the longest game: after more moves a short game would be
            decided.

    Raises:
        ValueError: an argument is out of range, or there are not so many openings.
    """
    check_int("num_openings", num_openings, 1)
    if num_moves is None:
        num_moves = min(MOST_MOVES, game.max_moves // SHARE_OF_GAME)
    check_int("opening_moves", num_moves, 0)
    if num_moves == 0:
        states = _first_positions(game, num_openings)
        return Openings(np.zeros((num_openings, 0), np.int32), states)
    most = 0
    for length in range(num_moves, game.max_moves):
        rng_key, draw_key = jax.random.split(rng_key)
        found = _draw(game, draw_key, num_openings, length)
        if len(found) == num_openings:
            return found
        if len(found) < most:  # the games begin to end
            break
        most = len(found)
    if not most:
        raise ValueError(
            f"opening_moves must leave a game to play: {num_moves} random moves end "
            f"{game!r}"
        )
    raise ValueError(
        f"{game!r} has too few different openings of {num_moves} moves or more for "
        f"{num_openings} of them: {most} were found; play fewer games"
    )


def _draw(
    game: Game, rng_key: jax.Array, num_openings: int, num_moves: int
) -> Openings:
    """Draws openings until there are enough or nothing new comes."""
    start = _first_positions(game, _DRAWN_AT_ONCE)
    pool = Openings(np.zeros((0, num_moves), np.int32), _none(start))
    fruitless = 0
    while len(pool) < num_openings and fruitless < _FRUITLESS_ROUNDS:
        states, moves = start, []
        for _ in range(num_moves):
            rng_key, move_key = jax.random.split(rng_key)
            states, action = _move_at_random(game, move_key, states)
            moves.append(np.asarray(action))
        states = jax.tree.map(np.asarray, states)
        drawn = Openings(np.stack(moves, axis=1), states)
        drawn = drawn.take(np.flatnonzero(~states.terminated))
        before, pool = len(pool), _different(pool, drawn)
        fruitless = fruitless + 1 if len(pool) == before else 0
    return pool.take(np.arange(min(num_openings, len(pool))))


def _different(pool: Openings, drawn: Openings) -> Openings:
    """Returns the pool with what is new in it, in the order of drawing."""
    together = Openings(
        np.concatenate([pool.moves, drawn.moves]),
        jax.tree.map(lambda *leaves: np.concatenate(leaves), pool.states, drawn.states),
    )
    if not len(together):
        return together
    first = np.unique(as_bytes(together.states), return_index=True)[1]
    return together.take(np.sort(first))


def _first_positions(game: Game, count: int) -> State:
    return jax.tree.map(
        lambda leaf: np.repeat(np.asarray(leaf)[None], count, axis=0), game.init()
    )


def _none(states: State) -> State:
    return jax.tree.map(lambda leaf: leaf[:0], states)


@jax.jit(static_argnames="game")
def _move_at_random(
    game: Game, rng_key: jax.Array, states: State
) -> tuple[State, jax.Array]:
    action = RandomPlayer(game).choose(rng_key, states).action
    return jax.vmap(game.step)(states, action), jnp.asarray(action, jnp.int32)

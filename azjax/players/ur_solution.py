"""Perfect play of the Royal Game of Ur with few pieces, by value iteration.

The limit of moves is left out, so that a position is the pieces of both players.
"""

import dataclasses
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.host import first_states
from azjax.games.ur import (
    CENTER,
    HOME,
    ROSETTES,
    SHARED,
    START,
    THROWS,
    RoyalGameOfUr,
    State,
)

TOLERANCE = 1e-9
MAX_SOLVED_PIECES = 2
_NUM_POSITIONS = 3000
_NUM_GAMES = 256
_SEED = 0


class Solution(NamedTuple):
    """Win probabilities under perfect play, in NumPy or JAX arrays.

    The pieces of one player, as in `State.pieces`, are one of S arrangements, those
    with fewer pieces at home first.

    number: `[(pieces + 1) * 2**15]` int32; the number of an arrangement.
    win_probability: `[S, S]` float64, in JAX float32; before a roll, for the
        arrangements of the player who rolls and of the opponent, the probability that
        the player who rolls wins. It has no meaning where both have a piece on a square
        of the middle row.
    """

    number: np.ndarray | jax.Array
    win_probability: np.ndarray | jax.Array


def solve(pieces: int, tolerance: float = TOLERANCE) -> Solution:
    """Solves the game with a number of pieces of each player.

    Pieces at home stay there. So positions with the same numbers of pieces at home are
    solved together, those with most pieces at home first.

    Args:
        pieces: of each player.
        tolerance: the iteration ends when no probability changes by more.
    """
    squares = np.arange(0, 1 << HOME, 2)
    words = [
        squares[np.bitwise_count(squares) <= pieces - home] + (home << HOME)
        for home in range(pieces + 1)
    ]
    ends = np.cumsum([0, *map(len, words)])
    blocks = [slice(*pair) for pair in itertools.pairwise(ends)]
    number = np.full((pieces + 1) << HOME, -1, np.int32)
    number[np.concatenate(words)] = np.arange(ends[-1])
    # The win probabilities of the player of the row if that player rolls, and if the
    # opponent does. The opponent of a player with all pieces at home has lost.
    own_roll = np.full((ends[-1], ends[-1]), 0.5)
    own_roll[:, blocks[pieces]] = 0
    other_roll = 1 - own_roll.T.copy()  # with contiguous rows

    def update(home: int, other_home: int) -> float:
        """Computes the probabilities of a block from those after the next move; returns
        the largest change."""
        own, other = words[home], words[other_home]
        rows, columns = blocks[home], blocks[other_home]
        passes = other_roll[rows, columns]
        after_roll = THROWS[0] * passes
        for roll in range(1, len(THROWS)):
            best = np.full(passes.shape, -1.0)
            for start in range(HOME - roll + 1):
                end = start + roll
                can_move = own >> start & 1 == 1
                if start == START:
                    can_move = np.bitwise_count(own % (1 << HOME)) < pieces - home
                if end != HOME:
                    can_move &= own >> end & 1 == 0
                movers = np.flatnonzero(can_move)
                moved = number[(own[movers] & ~(1 << start)) + (1 << end)]
                values = (own_roll if end in ROSETTES else other_roll)[moved]
                if end in SHARED:
                    values = values[:, number[other & ~(1 << end)]]
                else:
                    values = values[:, columns]
                if end == CENTER:  # no captures
                    values[:, other >> end & 1 == 1] = -1
                best[movers] = np.maximum(best[movers], values)
            after_roll += THROWS[roll] * np.where(best < 0, passes, best)
        change = np.abs(after_roll - own_roll[rows, columns]).max()
        own_roll[rows, columns] = after_roll
        other_roll[columns, rows] = 1 - after_roll.T
        return float(change)

    for total in reversed(range(2 * pieces - 1)):
        for home in range(max(0, total - pieces + 1), total // 2 + 1):
            change = np.inf
            while change > tolerance:
                change = update(home, total - home)
                if 2 * home != total:
                    change = max(change, update(total - home, home))
    return Solution(number, own_roll)


def is_solved(game: RoyalGameOfUr) -> bool:
    """Returns whether a game has few pieces, so that it is solved in a second, and no
    low limit of moves."""
    return game.num_pieces <= MAX_SOLVED_PIECES and not _has_low_limit(game)


def _has_low_limit(game: RoyalGameOfUr) -> bool:
    """Returns whether so few moves are allowed that the values are others."""
    return game.max_moves < RoyalGameOfUr(game.num_pieces).max_moves


def graded_positions(game: RoyalGameOfUr) -> tuple[State, np.ndarray] | None:
    """Returns positions with several legal actions, and the values of the actions.

    They are a sample from games in which half of the moves are random and the others
    perfect; a position can be in it more than once. In a game with more than two
    pieces, all but two of each player are at home: this is a game with two pieces.

    Returns:
        N states, leaves `[N, ...]`, and `[N, A]` float32 values, as of `action_values`;
        None with one piece, which leaves no choice, and with a low limit of moves.
    """
    if game.num_pieces == 1 or _has_low_limit(game):
        return None
    at_home = max(game.num_pieces - MAX_SOLVED_PIECES, 0)
    game = RoyalGameOfUr(game.num_pieces - at_home)
    solution, rng = solve(game.num_pieces), np.random.default_rng(_SEED)
    states = first_states(game, _NUM_GAMES)
    visited, found = [], []
    while not states.terminated.all():
        rolls = rng.choice(len(THROWS), _NUM_GAMES, p=THROWS).astype(np.int8)
        states = dataclasses.replace(
            states, roll=np.where(states.terminated, states.roll, rolls)
        )
        values, after = jax.device_get(action_values(game, solution, states))
        is_legal = np.isfinite(values)
        rows = np.flatnonzero(~states.terminated & (is_legal.sum(axis=1) > 1))
        visited.append(jax.tree.map(lambda leaf, rows=rows: leaf[rows], states))
        found.append(np.where(is_legal, values, np.nan)[rows])
        random = np.where(is_legal, rng.random(values.shape), -1).argmax(axis=1)
        is_random = rng.random(_NUM_GAMES) < 0.5
        actions = np.where(is_random, random, values.argmax(axis=1))
        places = np.arange(_NUM_GAMES), actions
        states = jax.tree.map(lambda leaf, places=places: leaf[places], after)
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *visited)
    sample = rng.choice(len(states.roll), _NUM_POSITIONS, replace=False)
    sampled = jax.tree.map(lambda leaf: leaf[sample], states)
    pieces = tuple(side + np.uint32(at_home << HOME) for side in sampled.pieces)
    sampled = dataclasses.replace(sampled, pieces=pieces)
    return sampled, np.concatenate(found)[sample]


@jax.jit(static_argnames="game")
def action_values(
    game: RoyalGameOfUr, solution: Solution, states: State
) -> tuple[jax.Array, State]:
    """Computes the values of all actions.

    Args:
        game: the game.
        solution: that with the pieces of the game.
        states: B positions after a roll, leaves `[B, ...]`.

    Returns:
        `[B, A]` float32, the expected results of the actions for the player to move, in
        [-1, 1], -inf where illegal; and the positions after them, leaves `[B, A, ...]`.
    """
    step = jax.vmap(jax.vmap(game.step, (None, 0)), (0, None))
    after = step(states, jnp.arange(game.num_actions))
    own, other = (jnp.asarray(solution.number)[words] for words in after.pieces)
    values = 2 * jnp.asarray(solution.win_probability)[own, other] - 1
    moves_again = after.current_player == states.current_player[:, None]
    values = jnp.where(moves_again, values, -values)
    legal = jax.vmap(game.legal_action_mask)(states)
    return jnp.where(legal, values, -jnp.inf), after

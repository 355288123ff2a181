"""Published numbers of positions and of lines of play."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax import games

# Positions that can be reached in exactly that many moves: OEIS A212693, its first
# terms; for tic-tac-toe the parts of the well-known 5,478.
NUM_POSITIONS = {
    "connect_four": [1, 7, 49, 238, 1120, 4263, 16422, 54859, 184275],
    "tic_tac_toe": [1, 9, 72, 252, 756, 1260, 1520, 1140, 390, 78],
}
# Lines of that many moves.
NUM_LINES = {
    "connect_four": [1, 7, 49, 343, 2401, 16807, 117649, 823536, 5673234],
    "tic_tac_toe": [1, 9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872],
    # Passes count as moves: Aart Bik, "Perft for Reversi", 2009; up to this depth also
    # OEIS A124004, which does not count passes.
    "othello": [1, 4, 12, 56, 244, 1396, 8200, 55092, 390216],
}

CHUNK = 4096  # positions that are stepped at once


class Ply(NamedTuple):
    """All positions after some number of moves.

    states: the distinct positions, `[N]`.
    ways: `[N]` number of lines of play that lead to each.
    """

    states: games.State
    ways: np.ndarray

    def num_positions(self) -> int:
        """Counts the distinct positions."""
        return len(self.ways)

    def num_lines(self) -> int:
        """Counts the lines of play."""
        return int(self.ways.sum())

    def num_finished_games(self) -> int:
        """Counts the lines of play whose last move ends the game."""
        return int(self.ways[np.asarray(self.states.terminated)].sum())


def enumerate_plies(game: games.Game, num_moves: int) -> list[Ply]:
    """Returns all positions after 0, 1, ..., `num_moves` moves, by number of moves."""
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init())
    plies = [Ply(first, np.ones(1, np.int64))]
    step = jax.jit(jax.vmap(game.step))
    legal_action_mask = jax.jit(jax.vmap(game.legal_action_mask))
    for _ in range(num_moves):
        states, ways = plies[-1]
        legal = _in_chunks(legal_action_mask, states)
        legal &= ~np.asarray(states.terminated)[:, None]
        parents, actions = legal.nonzero()
        before = jax.tree.map(lambda leaf, rows=parents: leaf[rows], states)
        after = _in_chunks(step, before, actions.astype(np.int32))
        plies.append(_merge(after, ways[parents]))
    return plies


def _in_chunks(function: Callable, *arguments: Any) -> Any:
    """Maps `function` over the first axis in chunks of one size.

    One size means one compilation.
    """
    num_rows = len(jax.tree.leaves(arguments)[0])
    results = []
    for start in range(0, num_rows, CHUNK):
        # Pad the last chunk with copies.
        rows = np.minimum(np.arange(start, start + CHUNK), num_rows - 1)
        chunk = jax.tree.map(lambda leaf, rows=rows: leaf[rows], arguments)
        results.append(jax.device_get(function(*chunk)))
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *results)
    return jax.tree.map(lambda leaf: leaf[:num_rows], joined)


def _merge(states: games.State, ways: np.ndarray) -> Ply:
    """Returns the distinct states, and the summed number of lines that lead to each."""
    facts = np.stack(jax.tree.leaves(states), axis=1)
    _, index, which = np.unique(facts, axis=0, return_index=True, return_inverse=True)
    sums = np.zeros(len(index), np.int64)
    np.add.at(sums, which, ways)
    return Ply(jax.tree.map(lambda leaf: leaf[index], states), sums)

"""A minimax search of tic-tac-toe that counts moves; marks are bits, one per cell."""

import functools

import numpy as np
from compiled_games import all_lines

from azjax.search.score_bounds import WIN

LINES = [sum(1 << 3 * row + column for row, column in x) for x in all_lines(3, 3, 3)]


def later(score: int) -> int:
    """Returns a score as seen one move earlier."""
    return score - int(np.sign(score))


@functools.cache
def exact_score(mine: int, theirs: int) -> int:
    """Returns the score of a position under perfect play, for the player to move."""
    if any(line & theirs == line for line in LINES):
        return -WIN
    return max(exact_move_scores(mine, theirs).values(), default=0)


def exact_move_scores(mine: int, theirs: int) -> dict[int, int]:
    return {
        cell: -later(exact_score(theirs, mine | 1 << cell))
        for cell in range(9)
        if not (mine | theirs) >> cell & 1
    }


def marks(states) -> np.ndarray:
    """Returns `[..., 2]`, the marks of mover and opponent."""
    first, second = (np.asarray(word).astype(int) for (word,) in states.stones)
    is_first = np.asarray(states.current_player) == 0
    return np.stack(
        [np.where(is_first, first, second), np.where(is_first, second, first)], axis=-1
    )


def exact_scores(states) -> np.ndarray:
    found = marks(states)
    flat = [exact_score(*map(int, pair)) for pair in found.reshape(-1, 2)]
    return np.array(flat).reshape(found.shape[:-1])

"""The expected results of `coin_toss.CoinToss` under perfect play, by plain recursion;
marks are bits, one per cell."""

import functools

import numpy as np
from coin_toss import LATER
from minimax import LINES


@functools.cache
def expected_result(first: int, second: int, player: int) -> float:
    """Returns the expected result for player 0 where `player` is to move."""
    results = expected_results_of_moves(first, second, player).values()
    return min(results) if player else max(results)


def expected_results_of_moves(first: int, second: int, player: int) -> dict[int, float]:
    """Returns the expected result for player 0 of each move."""
    results, other = {}, 1 - player
    for cell in range(9):
        if (first | second) >> cell & 1:
            continue
        marks = [first, second]
        marks[player] |= 1 << cell
        if any(line & marks[player] == line for line in LINES):
            results[cell] = 1 - 2 * player
        elif marks[0] | marks[1] == 0o777:
            results[cell] = 0
        else:
            ends = [expected_result(*marks, mover) for mover in (other, player)]
            results[cell] = float(LATER @ [*ends, 1 - 2 * other])
    return results


def expected_action_values(states) -> np.ndarray:
    """Returns `[N, 9]`, the expected result of each action for the player to move; NaN
    where it is illegal."""
    values = np.full((len(states.terminated), 9), np.nan)
    first, second = (word.tolist() for (word,) in states.stones)
    players = states.current_player.tolist()
    for row, *position in zip(values, first, second, players, strict=True):
        results = expected_results_of_moves(*position)
        row[list(results)] = list(results.values())
    return values * np.where(states.current_player, -1, 1)[:, None]

import numpy as np
import pytest

from azjax.games.lines import cells_in_lines

DRAWN = """
X . . . O
. X . O .
. . X X X
. O . X .
O O O O X
"""


def board_of(text):
    rows = [row.split() for row in text.split("\n") if row]
    return np.array([[".XO".index(letter) - 1 for letter in row] for row in rows])


def test_lines_are_found_in_all_directions_and_for_both():
    board = board_of(DRAWN)
    diagonal = [(place, place) for place in range(5)]
    assert cells_in_lines(board, 5) == tuple(diagonal)
    bottom = [(4, column) for column in range(4)]
    assert cells_in_lines(board, 4) == tuple(sorted({*diagonal, *bottom}))
    column = [(2, 2), (2, 3), (2, 4)]
    assert set(column) <= set(cells_in_lines(board, 3))
    assert (3, 1) not in cells_in_lines(board, 3)


def test_longer_lines_do_not_count_with_exact():
    board = board_of(DRAWN)
    assert cells_in_lines(board, 5, exact=True) == cells_in_lines(board, 5)
    assert cells_in_lines(board, 4, exact=True) == tuple((4, c) for c in range(4))


@pytest.mark.parametrize("turns", range(4))
def test_lines_turn_with_the_board(turns):
    board = board_of("O . .\n. O .\nX X O")
    turned = np.rot90(board, turns)
    marked = np.zeros_like(turned)
    for cell in cells_in_lines(turned, 3):
        marked[cell] = 1
    np.testing.assert_array_equal(np.rot90(marked, -turns), board == 1)


def test_an_empty_board_and_a_full_one_without_lines_have_none():
    assert cells_in_lines(np.full((6, 7), -1), 1) == ()
    assert cells_in_lines(board_of("X O X\nX O O\nO X X"), 3) == ()

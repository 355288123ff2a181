import jax
import numpy as np
import pytest

from azjax.games import bitboard

# NumPy arrays and scalars are boards too, and need no compilation.


def board_of(bits, num_words=2):
    words = [0] * num_words
    for bit in bits:
        words[bit // 32] |= 1 << bit % 32
    return tuple(np.uint32(word) for word in words)


def bits_of(board):
    return {
        32 * index + bit
        for index, word in enumerate(board)
        for bit in range(32)
        if int(word) >> bit & 1
    }


def test_empty_and_constant_boards_have_the_bits_of_their_cells():
    assert bits_of(bitboard.empty(49)) == set()
    assert len(bitboard.empty(49)) == 2
    assert not bitboard.has_any(bitboard.empty(49))
    board = bitboard.constant(np.array([[0, 31], [32, 70]]), num_bits=100)
    assert len(board) == 4
    assert bits_of(board) == {0, 31, 32, 70}


def test_boards_are_combined_compared_and_counted_in_all_words():
    assert bits_of(bitboard.union(board_of([1]), board_of([40]))) == {1, 40}
    assert bits_of(bitboard.intersection(board_of([1, 40]), board_of([40]))) == {40}
    board = bitboard.difference(board_of([1, 40, 41]), board_of([40, 3]))
    assert bits_of(board) == {1, 41}
    assert bitboard.has_any(board_of([63]))
    assert bitboard.is_equal(board_of([3, 63]), board_of([3, 63]))
    assert not bitboard.is_equal(board_of([3, 63]), board_of([3, 62]))
    assert bitboard.count(board_of([0, 31, 32, 63])) == 4
    assert bitboard.count(board_of([])) == 0


@pytest.mark.parametrize("steps", [0, 1, -1, 7, -31, 31, 32, -32, 45, -45, 96, -100])
def test_shifting_moves_bits_across_words_and_drops_bits_at_the_ends(steps):
    bits = {0, 5, 31, 32, 40, 63, 64, 95}
    shifted = bitboard.shift(board_of(bits, num_words=3), steps)
    assert len(shifted) == 3
    assert bits_of(shifted) == {bit + steps for bit in bits if 0 <= bit + steps < 96}


def test_a_single_bit_is_set_if_its_index_is_valid():
    single = jax.jit(lambda bit: bitboard.single(bit, 70))
    for bit in (0, 31, 32, 69):
        assert bits_of(single(np.int32(bit))) == {bit}
    for bit in (-1, -70, 70, 96, 2**31 - 1):
        assert bits_of(single(np.int32(bit))) == set()


def test_the_cells_of_a_grid_are_counted_row_by_row():
    grid = bitboard.Grid(height=5, width=7)
    cell = jax.jit(grid.cell)
    for action in range(35):
        row, column = divmod(action, 7)
        assert bits_of(cell(np.int32(action))) == {int(grid.cells[row, column])}
    for action in (-1, -8, 35, 40, 1000):
        assert bits_of(cell(np.int32(action))) == set()


def test_the_lead_in_open_lines_is_counted_line_by_line():
    grid = bitboard.Grid(5, 6)
    steps = (1, grid.stride - 1, grid.stride, grid.stride + 1)
    lead_of = jax.jit(
        lambda mine, theirs: bitboard.open_lines_lead(mine, theirs, grid.full, 3, steps)
    )
    rng = np.random.default_rng(0)
    for _ in range(5):
        board = rng.choice([-1, 0, 1], size=(5, 6), p=[0.5, 0.25, 0.25])
        expected = 0
        for row, column in np.ndindex(5, 6):
            for down, right in ((0, 1), (1, -1), (1, 0), (1, 1)):
                cells = [(row + i * down, column + i * right) for i in range(3)]
                if not all(r < 5 and 0 <= c < 6 for r, c in cells):
                    continue
                line = [board[cell] for cell in cells]
                for player, sign in ((0, 1), (1, -1)):
                    if 1 - player not in line:  # 1 for one cell, 1 + 4 for two
                        number = min(line.count(player), 2)
                        expected += sign * (0, 1, 5)[number]
        mine, theirs = (
            bitboard.constant(grid.cells[board == player], grid.num_bits)
            for player in (0, 1)
        )
        lead = lead_of(mine, theirs)
        assert lead == pytest.approx(expected / (16 + abs(expected)))

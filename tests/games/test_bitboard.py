import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import bitboard


def board_of(bits, num_words=2):
    words = [0] * num_words
    for bit in bits:
        words[bit // 32] |= 1 << bit % 32
    return tuple(jnp.uint32(word) for word in words)


def bits_of(board):
    return {
        32 * index + bit
        for index, word in enumerate(board)
        for bit in range(32)
        if int(word) >> bit & 1
    }


def test_an_empty_board_has_no_bits():
    board = bitboard.empty(49)
    assert len(board) == 2
    assert not bitboard.has_any(board)


def test_a_constant_board_has_the_bits_of_its_cells():
    board = bitboard.constant(np.array([[0, 31], [32, 70]]), num_bits=100)
    assert len(board) == 4
    assert bits_of(board) == {0, 31, 32, 70}


def test_a_union_has_the_bits_of_all_boards():
    assert bits_of(bitboard.union(board_of([1]), board_of([40]))) == {1, 40}


def test_an_intersection_has_the_bits_that_the_boards_share():
    assert bits_of(bitboard.intersection(board_of([1, 40]), board_of([40]))) == {40}


def test_a_bit_in_the_high_word_counts_as_any():
    assert bitboard.has_any(board_of([63]))


def test_boards_that_differ_in_the_high_word_are_not_equal():
    assert bitboard.is_equal(board_of([3, 63]), board_of([3, 63]))
    assert not bitboard.is_equal(board_of([3, 63]), board_of([3, 62]))


@pytest.mark.parametrize("count", [0, 1, 7, 31])
def test_shifting_moves_bits_across_words_and_drops_the_lowest(count):
    bits = {0, 5, 31, 32, 40, 63, 64, 95}
    shifted = bitboard.shift_right(board_of(bits, num_words=3), count)
    assert bits_of(shifted) == {bit - count for bit in bits if bit >= count}


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("step", [1, 7, 8, 9])
def test_a_line_is_found_wherever_it_lies(length, step):
    starts = range(0, 64 - step * (length - 1), 5)
    lines = [[start + step * index for index in range(length)] for start in starts]
    assert all(bitboard.has_line(board_of(line), length, (step,)) for line in lines)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6])
def test_a_line_that_lacks_one_cell_is_none(length):
    line = [8 * index for index in range(length)]
    for missing in line:
        board = board_of(set(line) - {missing})
        assert not bitboard.has_line(board, length, (1, 7, 8, 9))


def test_cells_are_set_where_the_board_has_bits():
    cells = np.array([[0, 33], [31, 63]])
    is_set = bitboard.cells_set(board_of([33, 31]), cells)
    np.testing.assert_array_equal(is_set, [[False, True], [True, False]])


def test_planes_show_one_board_after_the_other():
    cells = np.array([[2, 1], [33, 32]])
    planes = bitboard.planes((board_of([1]), board_of([33, 2])), cells)
    np.testing.assert_array_equal(planes[..., 0], [[False, True], [False, False]])
    np.testing.assert_array_equal(planes[..., 1], [[True, False], [True, False]])


def test_boards_can_be_vmapped():
    words = jnp.arange(8, dtype=jnp.uint32)
    has_pair = jax.vmap(lambda word: bitboard.has_line((word,), 2, (1,)))(words)
    np.testing.assert_array_equal(has_pair, [0, 0, 0, 1, 0, 0, 1, 1])

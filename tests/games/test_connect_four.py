import jax
import numpy as np
import pytest
from compiled_games import all_lines, bitboards, compiled, play

from azjax.games import bitboard, connect_four

GAME = compiled("connect_four")


def test_the_69_lines_win_and_other_evenly_spaced_cells_do_not():
    lines = {frozenset(7 * r + c for r, c in line) for line in all_lines(6, 7, 4)}
    assert len(lines) == 69
    # Evenly spaced cells in reading order, which wrap around the edges.
    cells = [
        [start + stride * i for i in range(4)]
        for start in range(42)
        for stride in range(1, 15)
        if start + stride * 3 < 42
    ]
    assert lines <= set(map(frozenset, cells))
    boards = np.zeros((len(cells), 42), bool)
    boards[np.arange(len(cells))[:, None], cells] = True
    words = bitboards(
        connect_four.CELLS, connect_four.NUM_BITS, boards.reshape(-1, 6, 7)
    )
    has_line = jax.jit(
        lambda *board: bitboard.has_line(board, 4, connect_four.DIRECTIONS)
    )
    is_line = [frozenset(row) in lines for row in cells]
    np.testing.assert_array_equal(has_line(*words), is_line)


def test_the_reflection_reverses_the_columns():
    _, mirror = GAME.symmetries
    np.testing.assert_array_equal(mirror.actions, [6, 5, 4, 3, 2, 1, 0])
    seen, image = (GAME.observe(play(GAME, moves)) for moves in ("1 1 2", "7 7 6"))
    np.testing.assert_array_equal(mirror.observation(np.asarray(seen)), image)


def test_an_invalid_column_is_refused_with_the_valid_ones():
    with pytest.raises(ValueError, match=r"'8' is no action .* 1 2 3 4 5 6 7$"):
        GAME.text_to_action(GAME.init(), "8")

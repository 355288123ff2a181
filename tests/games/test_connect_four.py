import itertools

import jax
import numpy as np
import pytest

from azjax.games import bitboard, connect_four, make

GAME = make("connect_four")
DRAWN = "656173566152215676422337377473141445425321"
WON_WITH_THE_LAST_DISC = "571376236345225146673541242612413735415776"


def play(columns):
    """Returns the position after moves written as columns, 1 to 7."""
    step = jax.jit(GAME.step)
    state = GAME.init()
    for column in columns:
        assert not state.terminated
        state = step(state, int(column) - 1)
    return state


def all_lines():
    """Returns the cells of every four in a row, as (row, column)."""
    for row, column in np.ndindex(6, 7):
        for down, right in (0, 1), (1, 0), (1, 1), (1, -1):
            line = [(row + down * i, column + right * i) for i in range(4)]
            if all(0 <= r < 6 and 0 <= c < 7 for r, c in line):
                yield line


def has_line(board):
    """Returns whether a `[6, 7]` bool board has four in a row, by azjax's rules."""
    cells = bitboard.constant(connect_four.CELLS[board], connect_four.NUM_BITS)
    return bitboard.has_line(cells, 4, connect_four.DIRECTIONS)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param("1122334", id="row at the left edge"),
        pytest.param("4455667", id="row at the right edge"),
        pytest.param("1212121", id="column at the left edge"),
        pytest.param("7171717", id="column at the right edge"),
        pytest.param("12234334744", id="diagonal that rises"),
        pytest.param("76654554144", id="diagonal that falls"),
    ],
)
def test_four_in_a_row_win_for_player_0(columns):
    state = play(columns)
    assert state.terminated
    np.testing.assert_array_equal(GAME.rewards(state), [1, -1])
    assert set(GAME.winning_cells(state)) in map(set, all_lines())


def test_one_disc_can_complete_several_lines():
    row, rising = {(5, c) for c in range(4)}, {(5 - i, i) for i in range(4)}
    state = play("272733374464461")
    assert state.terminated
    assert set(GAME.winning_cells(state)) == row | rising


def test_four_in_a_row_win_for_player_1():
    state = play("71212131")
    assert state.terminated
    np.testing.assert_array_equal(GAME.rewards(state), [-1, 1])


def test_three_in_a_row_do_not_end_the_game():
    assert not play("112233").terminated


def test_a_full_board_is_a_draw():
    state = play(DRAWN)
    assert state.terminated
    assert not GAME.legal_action_mask(state).any()
    np.testing.assert_array_equal(GAME.rewards(state), [0, 0])


def test_the_last_disc_can_win():
    state = play(WON_WITH_THE_LAST_DISC)
    assert state.terminated
    np.testing.assert_array_equal(GAME.rewards(state), [-1, 1])


def test_a_full_column_is_illegal():
    mask = GAME.legal_action_mask(play("444444"))
    np.testing.assert_array_equal(mask, [True, True, True, False, True, True, True])


def test_there_are_69_lines_and_each_is_found():
    lines = list(all_lines())
    assert len(lines) == 69
    for line in lines:
        board = np.zeros((6, 7), bool)
        board[tuple(np.transpose(line))] = True
        assert has_line(board)


def test_four_cells_outside_a_line_do_not_win():
    lines = {frozenset(line) for line in all_lines()}
    starts = itertools.product(np.ndindex(6, 7), range(1, 15))
    for (row, column), stride in starts:
        # Evenly spaced cells in reading order, which wrap around the edges.
        cells = [7 * row + column + stride * i for i in range(4)]
        if cells[-1] < 42:
            board = np.isin(np.arange(42), cells).reshape(6, 7)
            is_line = frozenset(divmod(cell, 7) for cell in cells) in lines
            assert has_line(board) == is_line


def test_discs_are_drawn_with_the_last_in_brackets():
    state = play("4432")
    assert GAME.to_text(state, last_action=1).splitlines() == [
        " 1  2  3  4  5  6  7",
        " .  .  .  .  .  .  .",
        " .  .  .  .  .  .  .",
        " .  .  .  .  .  .  .",
        " .  .  .  .  .  .  .",
        " .  .  .  O  .  .  .",
        " . [O] X  X  .  .  .",
    ]


def test_the_first_plane_has_the_movers_discs():
    observation = GAME.observe(play("445"))
    mine, theirs = np.zeros((6, 7)), np.zeros((6, 7))
    mine[4, 3] = 1
    theirs[5, 3] = theirs[5, 4] = 1
    np.testing.assert_array_equal(observation, np.stack([mine, theirs], axis=-1))


def test_the_reflection_reverses_the_columns():
    _, mirror = GAME.symmetries
    np.testing.assert_array_equal(mirror.actions, [6, 5, 4, 3, 2, 1, 0])
    np.testing.assert_array_equal(
        mirror.observation(GAME.observe(play("112"))), GAME.observe(play("776"))
    )


def test_an_invalid_column_is_refused_with_the_valid_ones():
    with pytest.raises(ValueError, match=r"'8' is no action .* 1 2 3 4 5 6 7$"):
        GAME.text_to_action(GAME.init(), "8")


def test_a_full_column_is_refused_with_the_open_ones():
    with pytest.raises(ValueError, match="'4' is not legal here; legal: 1 2 3 5 6 7"):
        GAME.text_to_action(play("444444"), "4")


def test_the_last_disc_is_the_highest_of_its_column():
    assert GAME.last_cells(play("4432"), 3) == ((4, 3),)


@pytest.mark.parametrize(
    "num_moves", [6, pytest.param(8, marks=pytest.mark.slow, id="slow")]
)
def test_positions_and_lines_have_the_published_counts(verify_games, num_moves):
    plies = verify_games.perft.enumerate_plies(GAME, num_moves)
    positions = verify_games.perft.NUM_POSITIONS["connect_four"][: num_moves + 1]
    lines = verify_games.perft.NUM_LINES["connect_four"][: num_moves + 1]
    assert [ply.num_positions() for ply in plies] == positions
    assert [ply.num_lines() for ply in plies] == lines

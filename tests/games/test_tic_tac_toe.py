import itertools

import jax
import numpy as np
import pytest

from azjax.games import make

GAME = make("tic_tac_toe")


def play(cells):
    """Returns the position after moves written as cells, 0 to 8 row by row."""
    step = jax.jit(GAME.step)
    state = GAME.init()
    for cell in cells:
        assert not state.terminated
        state = step(state, int(cell))
    return state


@pytest.mark.parametrize(
    "line", ["012", "345", "678", "036", "147", "258", "048", "246"]
)
def test_each_of_the_eight_lines_wins(line):
    others = [cell for cell in "012345678" if cell not in line]
    # Two cells of the opponent cannot be a line.
    state = play(itertools.chain(*zip(line[:2], others[:2], strict=True), line[2]))
    assert state.terminated
    np.testing.assert_array_equal(GAME.rewards(state), [1, -1])
    assert GAME.winning_cells(state) == tuple(divmod(int(c), 3) for c in line)


def test_a_line_of_player_1_wins_for_player_1():
    state = play("031485")
    assert state.terminated
    np.testing.assert_array_equal(GAME.rewards(state), [-1, 1])


def test_a_full_board_without_a_line_is_a_draw():
    state = play("012435768")
    assert state.terminated
    assert not GAME.legal_action_mask(state).any()
    np.testing.assert_array_equal(GAME.rewards(state), [0, 0])
    assert GAME.winning_cells(state) == ()


def test_the_last_mark_can_win():
    state = play("012345768")
    assert state.terminated
    np.testing.assert_array_equal(GAME.rewards(state), [1, -1])


def test_only_empty_cells_are_legal():
    mask = GAME.legal_action_mask(play("48"))
    np.testing.assert_array_equal(np.flatnonzero(~mask), [4, 8])


def test_the_board_is_drawn_with_the_last_mark_in_brackets():
    state = play("480")
    assert GAME.to_text(state, last_action=0).splitlines() == [
        "  a  b  c",
        "3[X] .  .",
        "2 .  X  .",
        "1 .  .  O",
    ]


def test_the_first_plane_has_the_movers_marks():
    observation = GAME.observe(play("480"))
    mine = [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    theirs = [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(observation, np.stack([mine, theirs], axis=-1))


def test_there_are_eight_symmetries():
    assert len(GAME.symmetries) == 8


@pytest.fixture(scope="module")
def plies(verify_games):
    return verify_games.perft.enumerate_plies(GAME, num_moves=9)


def test_there_are_5478_positions(plies, verify_games):
    counts = [ply.num_positions() for ply in plies]
    assert counts == verify_games.perft.NUM_POSITIONS["tic_tac_toe"]
    assert sum(counts) == 5_478


def test_there_are_255168_games(plies, verify_games):
    assert [p.num_lines() for p in plies] == verify_games.perft.NUM_LINES["tic_tac_toe"]
    assert sum(ply.num_finished_games() for ply in plies) == 255_168

import jax
import numpy as np
import pytest
from data.game_rows import stored_rows
from data.test_importing import first_chunk

from azjax import games
from azjax.arena import import_positions, read
from azjax.data import unpack_states

GAME = games.make("tic_tac_toe")
HEADER = "moves,q0,q1,q2,q3,q4,q5,q6,q7,q8"
AFTER_CENTER = "5,0,-1,0,-1,,-1,0,-1,0"  # a corner draws, an edge loses
X_WINS = "1425,,,1,,,0,-1,-1,-1"  # 2 completes a row, 5 blocks one
O_LOSES = "12597,,,-1,-1,,-1,,-1,"  # X threatens 2 and 3


def write(path, *lines):
    path.write_text("\n".join([HEADER, *lines]))
    return path


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("positions")
    first = write(path / "first.csv", AFTER_CENTER, X_WINS)
    second = write(path / "second.csv", O_LOSES)
    found = import_positions([first, second], path / "stored", GAME)
    return found, path


def test_every_position_is_stored_as_a_game(stored):
    found, path = stored
    assert (found.games, found.positions) == (3, 3)
    rows = stored_rows(path / "stored").rows
    np.testing.assert_array_equal(rows.game, [0, 1, 2])
    states = unpack_states(GAME, rows.state)
    solved = read(GAME, path / "first.csv").states
    first = jax.tree.map(lambda leaf: leaf[:2], states)
    jax.tree.map(np.testing.assert_array_equal, first, solved)


def test_the_targets_are_the_best_moves_and_the_solved_results(stored):
    rows = stored_rows(stored[1] / "stored").rows
    np.testing.assert_array_equal(rows.policy_counts, [4, 1, 4])
    np.testing.assert_array_equal(rows.policy_actions, [0, 2, 6, 8, 2, 2, 3, 5, 7])
    expected = np.repeat([0.25, 1, 0.25], [4, 1, 4])
    np.testing.assert_array_equal(rows.policy_probabilities, expected)
    np.testing.assert_array_equal(rows.value, [0, 1, -1])
    np.testing.assert_array_equal(rows.reward, [0, 1, -1])
    np.testing.assert_array_equal(rows.draw_probability, [1, 0, 0])
    expected = np.repeat([0, 1, -1], [4, 1, 4])
    np.testing.assert_array_equal(rows.policy_values, expected)


def test_a_run_learns_the_solved_results(stored):
    chunk, _ = first_chunk(stored[1] / "stored")
    assert np.asarray(chunk.terminated).all()
    assert set(np.unique(chunk.reward)) == {-1, 0, 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("5,0,-1,0,-1,0,-1,0,-1,0", "bad.csv, line 2: q4 has a value, but the action"),
        ("1425,,,0,,,0,-1,-1,-1", "bad.csv, position 1: action 3 ends the game"),
    ],
)
def test_nothing_is_written_after_an_error(line, message, stored, tmp_path):
    bad = write(tmp_path / "bad.csv", line)
    with pytest.raises(ValueError, match=message):
        import_positions([stored[1] / "first.csv", bad], tmp_path / "stored", GAME)
    assert list(tmp_path.iterdir()) == [bad]

import collections

import jax
import numpy as np
import pytest
from coin_toss import CoinToss
from data.game_rows import stored_rows
from training.tiny_runs import game_reader

from azjax import games
from azjax.data import GAMES, import_games, unpack_states
from azjax.data.importing import GAMES_AT_ONCE, rows_of
from azjax.games import GameRecord
from azjax.games.host import first_state, next_state
from azjax.training import ReplayConfig, SelfPlayConfig

GAME, CHESS = games.make("tic_tac_toe"), games.make("chess")
NAMES = ("a", "b")
WON, DRAWN = [0, 3, 1, 4, 2], [0, 4, 8, 1, 7, 6, 2, 5, 3]
RECORDS = [
    GameRecord(NAMES, WON, 1, ""),
    GameRecord(NAMES, [4, 0], None, ""),
    GameRecord(NAMES, [4, 0, 1], -1, "resigned"),
    GameRecord(NAMES, DRAWN, 0, "", opening_moves=3),
    GameRecord(NAMES, [4, 0, 2], 1, "hung"),
    GameRecord(NAMES, WON, -1, ""),
    GameRecord(NAMES, [4, 0], 0, ""),  # agreed
    GameRecord(NAMES, [4, 0], 0, "", opening_moves=2),
]


def write(path, records=RECORDS, game=GAME):
    path.write_text(game.record_format.write(game, records))
    return path


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    found = import_games([write(path / "games.jsonl")], path / "stored")
    return found, path / "stored"


def test_games_with_a_result_are_stored(imported):
    found, directory = imported
    assert found.game == GAME
    assert (found.games, found.positions) == (4, 5 + 3 + 6 + 2)
    assert found.left_out == {
        "without result": 1,
        "forfeited": 1,
        "with another result than by the rules": 1,
        "without moves": 1,
    }
    whole = stored_rows(directory)
    moves = np.split(whole.rows.move, whole.starts[1:])
    kept = [WON, [4, 0, 1], DRAWN[3:], [4, 0]]
    assert [list(part) for part in moves] == kept


def test_a_row_has_the_position_the_move_and_the_result(imported):
    rows = stored_rows(imported[1]).rows
    states = unpack_states(GAME, rows.state)
    number = 0
    for moves, result, opening in ((WON, 1, 0), ([4, 0, 1], -1, 0), (DRAWN, 0, 3)):
        state = first_state(GAME)
        for ply, move in enumerate(moves):
            if ply >= opening:
                found = jax.tree.map(lambda leaf, at=number: leaf[at], states)
                jax.tree.map(np.testing.assert_array_equal, found, state)
                mover = int(state.current_player)
                assert rows.ply[number] == ply - opening
                assert rows.player[number] == mover
                assert rows.value[number] == result * (1 - 2 * mover)
                is_last = ply == len(moves) - 1
                assert rows.terminated[number] == is_last
                assert rows.reward[number] == is_last * rows.value[number]
                assert rows.draw_probability[number] == (result == 0)
                number += 1
            state = next_state(GAME, state, move)
    np.testing.assert_array_equal(rows.policy_counts, 1)
    np.testing.assert_array_equal(rows.policy_actions, rows.move)
    np.testing.assert_array_equal(rows.policy_probabilities, 1)
    assert np.isnan(rows.policy_values).all()


def test_outcomes_of_chance_are_stored_with_the_moves_before_them():
    game = CoinToss()
    heads, tails, edge = range(9, 12)
    moves = [tails, 4, heads, 0, tails, 1, edge]  # players 1, 0, 0; player 1 wins
    record = GameRecord(NAMES, moves, -1, "", 2, (0.5, 0.25, 0.25, 0.5, 0.5, 0, -1))
    other = GameRecord(NAMES, [heads, 4, edge], -1, "", opening_moves=2)
    left_out = collections.Counter()
    rows = rows_of(game, [record, other], 7, left_out)
    assert left_out == {"without moves": 1}
    assert rows.game.tolist() == [7, 7]
    assert rows.move.tolist() == [0, 1]
    assert rows.ply.tolist() == [0, 1]
    assert rows.player.tolist() == [0, 0]
    assert rows.value.tolist() == [0.25, 0.5]
    assert rows.regret.tolist() == [0, 0.5]
    assert rows.terminated.tolist() == [False, True]
    assert rows.reward.tolist() == [0, -1]
    assert rows.outcome.tolist() == [1, 2]
    state = first_state(game)
    for move in moves[:5]:
        state = next_state(game, state, move)
    found = jax.tree.map(lambda leaf: leaf[1], unpack_states(game, rows.state))
    jax.tree.map(np.testing.assert_array_equal, found, state)


def rows_with_values(path, moves, result, values, opening_moves=0):
    """Returns the rows of a game with the values of its positions."""
    record = GameRecord(
        *(NAMES, moves, result, ""), opening_moves=opening_moves, values=values
    )
    import_games([write(path / "games.jsonl", [record])], path / "stored")
    return stored_rows(path / "stored").rows


def test_evaluations_are_values_and_show_bad_moves(tmp_path):
    values = [None, None, -0.25, -0.5, -0.4, None, 0.75, 0.0, 0.0]
    rows = rows_with_values(tmp_path, DRAWN, 0, values, opening_moves=2)
    # For player 0; where it is not known, the result.
    before = np.array([0.0, -0.25, -0.5, -0.4, 0.0, 0.75, 0.0])
    sign = np.array([1, -1, 1, -1, 1, -1, 1])
    np.testing.assert_allclose(rows.value, before * sign)
    np.testing.assert_array_equal(rows.regret, 0)
    assert not np.signbit(rows.regret).any()
    np.testing.assert_allclose(rows.draw_probability, 1 - abs(before))
    np.testing.assert_array_equal(rows.reward, 0)


def test_a_bad_move_is_no_policy_target(tmp_path):
    rows = rows_with_values(tmp_path, WON, 1, [0.0, 0.125, 0.375, 0.5, -0.5])
    np.testing.assert_allclose(rows.value, [1, 0, 0.125, -0.375, 0.5])
    np.testing.assert_allclose(rows.regret, [0, 0.125, 0, 0.125, 1])
    np.testing.assert_array_equal(rows.policy_counts, [1, 1, 1, 1, 0])
    assert list(rows.policy_actions) == WON[:4]
    np.testing.assert_array_equal(rows.reward, [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(rows.draw_probability, 0)


def test_a_run_learns_from_resigned_and_agreed_games(imported):
    reader = game_reader(
        imported[1],
        self_play=SelfPlayConfig(num_games=8, moves_per_chunk=16),
        replay=ReplayConfig(capacity=512, min_window=256, min_positions=64),
    )
    chunk, metrics = reader.chunk()
    ended = np.asarray(chunk.terminated)
    # Each of the 4 games, again and again.
    assert metrics["games"] == ended.sum() > 16
    assert set(np.asarray(chunk.reward)[ended]) == {0, 1, -1}


def test_games_of_several_files_and_batches_have_different_ids(tmp_path):
    paths = [
        write(tmp_path / f"{count}.jsonl", RECORDS[:1] * count)
        for count in (GAMES_AT_ONCE + 1, 2)
    ]
    found = import_games(paths, tmp_path / "stored")
    count = GAMES_AT_ONCE + 3
    assert (found.games, found.positions) == (count, 5 * count)
    rows = stored_rows(tmp_path / "stored").rows
    np.testing.assert_array_equal(np.unique(rows.game), np.arange(count))


@pytest.mark.parametrize(
    ("records", "end", "message"),
    [
        ([], "", "no games in"),
        ([RECORDS[1]], "", "no game can be stored: 1 without result"),
        # After a batch.
        (RECORDS[:1] * (GAMES_AT_ONCE + 1), "no game\n", "line 258: not a game"),
    ],
)
def test_nothing_is_written_without_games_or_after_an_error(
    records, end, message, tmp_path
):
    path = write(tmp_path / "games.jsonl", records)
    with path.open("a") as file:
        file.write(end)
    with pytest.raises(ValueError, match=message):
        import_games([path], tmp_path / "stored")
    assert list(tmp_path.iterdir()) == [path]


def test_games_of_one_game_are_stored(tmp_path):
    record = GameRecord(NAMES, [1], 1, "resigned")
    of_hex_4, of_hex_3 = (
        write(tmp_path / f"{size}.jsonl", [record], games.make(f"hex:{size}"))
        for size in (4, 3)
    )
    other = write(tmp_path / "games.jsonl")
    for path in of_hex_3, other:
        message = "game 1 is of .*, an earlier one of hex:4: import each game to a dir"
        with pytest.raises(ValueError, match=message):
            import_games([of_hex_4, path], tmp_path / "stored")
    assert not (tmp_path / "stored").exists()


def test_games_that_cannot_be_read_are_named_and_left_out(tmp_path):
    good, other = '[Result "1-0"]\n\n1. e4 1-0\n\n', '[Result "0-1"]\n1. d4 1-0\n\n'
    path, named = tmp_path / "games.pgn", []
    path.write_text(f'{good}[White "B"]\n\n1. Sf3 *\n\n{other}1. e5 1-0\n\n{good}')
    paths = [path, write(tmp_path / "3.jsonl", [GameRecord(NAMES, [1], 1, "resigned")])]
    found = import_games(
        paths, tmp_path / "stored", skip_unreadable=True, remark=named.append
    )
    assert (found.games, found.left_out) == (3, {"unreadable": 3})
    shown = "\n".join(named).replace(f"{tmp_path}/", "")
    for number, text in ((2, "'Sf3' in line 7"), (4, "move 1: 'e5' is not legal")):
        assert f"left out: games.pgn: game {number}: {text}" in shown
    assert "\ngames.pgn: game 3: the tag Result says 0-1, the moves end with" in shown
    assert "left out: 3.jsonl: game 1 is of tic_tac_toe, an earlier one" in shown
    with pytest.raises(ValueError, match=r"no games in .*: left out 1 unreadable"):
        import_games(paths[1:], tmp_path / "other", CHESS, skip_unreadable=True)


def test_a_directory_that_exists_is_kept(imported, tmp_path):
    before = sorted((imported[1] / GAMES).iterdir())
    with pytest.raises(ValueError, match=r"stored exists: give a new directory"):
        import_games([write(tmp_path / "games.jsonl")], imported[1])
    assert sorted((imported[1] / GAMES).iterdir()) == before

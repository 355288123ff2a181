import shutil

import jax
import numpy as np
import pytest
from data.game_rows import GAME, GAMES, decided_rows, rows_of, write_files
from training.tiny_runs import game_reader
from untrained import untrained

from azjax.data import GAMES as FOLDER
from azjax.data import Rows, game_files, read_games, stored_files, unpack_states
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import AlphaZeroPlayer
from azjax.search import GumbelConfig
from azjax.training import reanalysis
from azjax.training.reanalysis import PositionSearches, Reanalyzed, reanalyze
from azjax.training.run.directory import locked

TRUNK = DenseTrunkConfig(num_blocks=1, width=5, stem_channels=8, window=2)
LATER = {8: [4, 0, 1, 7, 2, 6, 3, 5, 8], 9: [0, 3, 1, 4, 2]}
RESIGNED = {1: [4, 0, 1]}
# X completes the upper row with 2, and lets O win with 5 after 8.
GIVEN_AWAY = [0, 3, 1, 4, 8, 5]


@pytest.fixture(scope="module")
def player():
    network, variables = untrained(GAME, NetworkConfig(trunk=TRUNK), seed=3)
    return AlphaZeroPlayer(GAME, GumbelConfig(use_solver=True), 150, network, variables)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Two sources; the first has two files with finished games."""
    path = tmp_path_factory.mktemp("sources")
    resigned = decided_rows(RESIGNED)
    resigned.terminated[-1], resigned.reward[-1] = True, -1
    write_files(path / "a", decided_rows(GAMES), decided_rows(LATER))
    write_files(path / "b", resigned, run="def")
    return [str(path / "a"), str(path / "b")]


def read(*directories) -> list[Rows]:
    """Returns the finished games of directories, file by file."""
    files = stored_files([str(directory) for directory in directories], GAME)
    return [found.rows for part in files for found in read_games(part, GAME)]


def run(sources, directory, player, **changes):
    return reanalyze(sources, directory, player, batch_size=8, **changes)


def content(directory):
    """Returns the files below a directory with their bytes."""
    return {
        path.relative_to(directory): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def done(sources, player, tmp_path_factory):
    directory = tmp_path_factory.mktemp("done") / "new"
    return run(sources, directory, player), directory


@pytest.fixture(scope="module")
def stopped(sources, player, tmp_path_factory):
    """The directory of a call that was interrupted before the last file."""
    directory = tmp_path_factory.mktemp("stopped") / "new"

    def stop(line):
        if line == "28 of 31 positions":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(sources, directory, player, report=stop)
    return directory


def test_the_finished_games_are_counted_and_each_file_gets_a_new_one(done):
    assert done[0] == Reanalyzed(5, 14 + 14 + 3)
    names = [file.path.name for file in game_files(done[1] / FOLDER)]
    assert names == [f"{number:08d}-{number:08d}-0.parquet" for number in (1, 2, 3)]


def test_progress_is_reported_after_each_file_and_at_times_within(
    sources, player, tmp_path, monkeypatch
):
    for seconds, counts in (3600.0, [14, 28, 31]), (0.0, [8, 14, 22, 28, 31]):
        monkeypatch.setattr(reanalysis, "REPORT_SECONDS", seconds)
        lines = []
        run(sources, tmp_path / str(seconds), player, report=lines.append)
        assert lines == [f"{count} of 31 positions" for count in counts]


def test_games_moves_and_results_remain_and_values_and_policies_are_new(sources, done):
    before, after = read(*sources), read(done[1])
    assert len(before) == len(after) == 3
    for old, new in zip(before, after, strict=True):
        for name in ("ply", "player", "move", "state", "reward", "terminated"):
            np.testing.assert_array_equal(getattr(new, name), getattr(old, name))
        assert (old.value != new.value).all()
        assert (new.policy_counts > 0).all()
        assert (new.simulations == 150).all()
    # The games of all sources have different ids.
    assert [set(rows.game) for rows in after] == [{0, 1}, {2, 3}, {4}]


def test_a_run_learns_from_the_new_games(done):
    _, metrics = game_reader(done[1]).chunk()
    assert metrics["games"] > 0


def test_games_that_are_not_complete_cannot_be_learned_from(stopped):
    with pytest.raises(ValueError, match="holds no games"):
        read(stopped)


def test_an_interrupted_call_continues(sources, player, done, stopped, tmp_path):
    directory = tmp_path / "new"
    shutil.copytree(stopped, directory)
    # A killed process may leave a part of a file.
    part = directory / "unfinished" / ".00000003-00000003-0.parquet.77"
    part.write_bytes(b"PAR1")
    lines = []
    assert run(sources, directory, player, report=lines.append) == done[0]
    assert lines == ["31 of 31 positions"]
    assert not [path for path in directory.rglob("*.77")]
    for new, expected in zip(read(directory), read(done[1]), strict=True):
        jax.tree.map(np.testing.assert_array_equal, new, expected)


def test_other_arguments_do_not_continue(sources, player, stopped):
    before = content(stopped)
    other = player.replace(variables=jax.tree.map(np.zeros_like, player.variables))
    with pytest.raises(ValueError, match="reanalysis with other weights: repeat"):
        run(sources, stopped, other)
    with pytest.raises(ValueError, match="other simulations and seed"):
        run(sources, stopped, player.replace(simulations=5), seed=1)
    with pytest.raises(ValueError, match="with other files"):
        run(sources[:1], stopped, player)
    assert content(stopped) == before


def test_a_finished_call_can_be_repeated_and_changes_nothing(sources, player, done):
    before = content(done[1])
    lines = []
    assert run(sources, done[1], player, report=lines.append) == done[0]
    assert lines == ["finished already"]
    with pytest.raises(ValueError, match="holds a reanalysis with other seed: repeat"):
        run(sources, done[1], player, seed=1)
    assert content(done[1]) == before


def test_a_directory_with_other_files_is_refused_and_kept(sources, player, tmp_path):
    for name, text, message in (
        ("notes.txt", "mine", "is not empty"),
        ("reanalysis.json", "[" * 10_000, r"reanalysis.json is damaged"),
    ):
        directory = tmp_path / name
        directory.mkdir()
        (directory / name).write_text(text)
        with pytest.raises(ValueError, match=message):
            run(sources, directory, player)
        assert (directory / name).read_text() == text
        assert {path.name for path in directory.iterdir()} <= {name, ".lock"}


def test_two_processes_do_not_work_in_one_directory(sources, player, tmp_path):
    with (
        locked(tmp_path),
        pytest.raises(ValueError, match="another process is reanalyzing games in"),
    ):
        run(sources, tmp_path, player)


def broken_rules(directory):
    rows = decided_rows({5: GAMES[5]})
    rows.move[2] = 3  # of the other player
    write_files(directory, rows)


def truncated_file(directory):
    write_files(directory, decided_rows(GAMES))
    [file] = game_files(directory)
    file.path.write_bytes(file.path.read_bytes()[:-40])


def unfinished_game(directory):
    write_files(directory, decided_rows({7: GAMES[7]}))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (broken_rules, r"bad/0.*parquet: .*move 3 of game 5$"),
        (truncated_file, r"bad/0.*parquet is no Parquet file, or damag"),
        (unfinished_game, "no finished game in"),
    ],
)
def test_unusable_games_are_named_before_anything_is_written(
    sources, player, tmp_path, make, message
):
    make(tmp_path / "bad")
    others = [] if make is unfinished_game else sources
    given = [*others, str(tmp_path / "bad")]
    with pytest.raises(ValueError, match=message):
        run(given, tmp_path / "new", player)
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def searched(player):
    """The rows of a game, twice, before and after the searches in two batches."""
    rows = rows_of({5: GIVEN_AWAY, 6: GIVEN_AWAY})
    return rows, PositionSearches(player, 8, seed=0).search_rows(1, rows)


def test_values_regrets_and_policies_are_those_of_perfect_play(searched):
    """Move 4 misses a win and lets the opponent win, which move 5 does."""
    before, after = searched
    np.testing.assert_array_equal(after.game, before.game)
    assert after.value[4] == pytest.approx(1)
    assert after.regret[4] == pytest.approx(2)
    assert after.regret[5] == 0
    first = after.policy_counts[:4].sum()
    policy = slice(first, first + after.policy_counts[4])
    best = after.policy_probabilities[policy].argmax()
    assert after.policy_actions[policy][best] == 2


@pytest.fixture(scope="module")
def analyzed(player, searched):
    """The player's choices and analysis of these positions, in one batch of 12."""
    states = unpack_states(GAME, searched[0].state)
    found = jax.jit(player.analyze)(jax.random.key(9), states, None)
    return jax.device_get(found[:2])


def test_values_draws_and_values_of_actions_are_those_of_the_player(analyzed, searched):
    """So they do not depend on the size of a batch, nor on the key."""
    choice, analysis = analyzed
    _, after = searched
    np.testing.assert_allclose(after.value, choice.value, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(
        after.draw_probability, choice.draw, rtol=1e-5, atol=1e-4
    )
    place = np.repeat(np.arange(12), after.policy_counts), after.policy_actions
    is_visited = analysis.visits[place] > 0
    expected = np.where(is_visited, analysis.action_values[place], np.nan)
    np.testing.assert_allclose(after.policy_values, expected, rtol=1e-5, atol=2e-3)


def test_a_move_without_visits_has_the_value_of_the_position(player):
    rows = rows_of({5: GIVEN_AWAY})
    rows.move[4] = 0  # is occupied, and never visited; the value is 1
    found = PositionSearches(player, 8, seed=0).search_rows(1, rows)
    assert found.regret[4] == pytest.approx(0)


def test_a_search_without_finite_values_is_refused(player):
    broken = player.replace(
        variables=jax.tree.map(
            lambda leaf: np.full_like(leaf, np.nan), player.variables
        )
    )
    with pytest.raises(ValueError, match=r"the player's search: .*: nan"):
        PositionSearches(broken, 8, seed=0).search_rows(1, rows_of({5: GIVEN_AWAY}))

"""Runs in a remote directory.

The fast tests use a local directory as a remote one, the slow tests a bucket of
`fake_gcs`.
"""

import json

import jax
import numpy as np
import pytest
from etils import epath
from fake_gcs import FakeGcs
from training.tiny_runs import assert_same_player, config, counted, stop_after

from azjax import files as files_module
from azjax import games, players
from azjax.players import load_run
from azjax.training import config as config_module
from azjax.training import load_config, repeated_config, train
from azjax.training.analysis.comparison import differing_settings, read_runs
from azjax.training.analysis.plots import PLOT_FILE
from azjax.training.run.saved_config import config_from_file

GAME = games.make("tic_tac_toe")
pytestmark = pytest.mark.usefixtures("quick_plots", "shared_programs")


@pytest.fixture(scope="module")
def store():
    with FakeGcs() as store, pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment.items():
            patch.setenv(name, value)
        yield store


@pytest.fixture(
    scope="module", params=["local", pytest.param("gs", marks=pytest.mark.slow)]
)
def root(request, tmp_path_factory):
    """The location of remote runs."""
    if request.param == "gs":
        request.getfixturevalue("store")
        yield epath.Path("gs://bucket")
        return
    root = epath.Path(tmp_path_factory.mktemp("store"))

    def as_run_directory(name):
        is_in_store = str(name).startswith(str(root))
        return epath.Path(name) if is_in_store else files_module.as_directory(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config_module, "as_run_directory", as_run_directory)
        yield root


def made(directory):
    """Creates a directory, if the store has directories."""
    directory.mkdir()
    return directory


@pytest.fixture(scope="module")
def remote(root):
    """A run that was stopped and continued."""
    directory = made(root / "run")
    assert not train(config(directory), on_iteration=stop_after(2)).finished
    return train(config(directory))


def test_a_continued_remote_run_equals_a_local_one(remote, undisturbed):
    assert remote.finished
    assert_same_player(remote, undisturbed)
    assert counted(remote) == counted(undisturbed)


def test_a_remote_run_is_compared_with_a_local_one(remote, undisturbed):
    runs = read_runs([str(remote.directory), str(undisturbed.directory)])
    assert differing_settings(runs) == {}
    first, second = (run.evaluations[-1] for run in runs)
    assert first.rates == second.rates
    assert runs[0].player(2).game == GAME
    with pytest.raises(ValueError, match="is given twice"):
        read_runs([str(remote.directory)] * 2)


def test_a_run_starts_with_the_settings_of_a_remote_one(remote):
    for source in (remote.directory, remote.directory / "config.json"):
        new = config_from_file(str(source), run_dir="runs/new")
        assert new == config("runs/new")


def test_a_remote_run_writes_the_files_of_a_local_one(remote, undisturbed):
    def files(directory):
        found = [path.name for path in directory.iterdir()]
        return {name for name in found if name != ".lock"}

    assert files(remote.directory) == files(undisturbed.directory)
    assert (remote.directory / PLOT_FILE).exists()
    num_events = len(list((remote.directory / "tensorboard").iterdir()))
    assert num_events == 2  # one for each start


def test_the_temporary_directory_is_removed(root, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    train(config(made(root / "short"), iterations=1))
    assert list(tmp_path.iterdir()) == []


def test_a_remote_player_plays(remote):
    trained = load_run(str(remote.directory), GAME)
    jax.tree.map(
        np.testing.assert_array_equal, trained.variables, remote.player.variables
    )
    player = players.load(f"network:{remote.directory}?temperature=1", GAME)
    opening = jax.tree.map(lambda leaf: np.asarray(leaf)[None], GAME.init())
    assert players.choose(player, jax.random.key(0), opening).action.shape == (1,)


def test_settings_and_plan_are_read_from_a_remote_run(remote):
    assert load_config(remote.directory).replay == config("elsewhere").replay
    again = repeated_config(remote.directory, run_dir="elsewhere")
    assert (again.iterations, again.repeat_schedule) == (6, str(remote.directory))


def test_a_run_can_start_from_a_remote_player(remote, tmp_path):
    source = str(remote.directory)
    run = train(config(tmp_path / "next", initial_player=source, iterations=1))
    assert run.first["network_mistakes"] == remote.last["network_mistakes"]


def test_another_configuration_is_refused_in_a_remote_directory(remote):
    with pytest.raises(ValueError, match="seed was 0, is 1"):
        train(config(remote.directory, seed=1))


def test_a_remote_directory_with_other_files_is_refused(root):
    other = made(root / "other")
    (other / "file").write_text("something")
    with pytest.raises(ValueError, match="is not empty and not a run"):
        train(config(other))


def test_a_damaged_remote_checkpoint_is_renamed(remote, root, capfd):
    newest = remote.directory / "checkpoints" / "6"
    progress = newest / "progress" / "metadata"
    progress.write_text(progress.read_text().replace('"seconds"', '"moments"'))
    run = train(config(remote.directory))
    assert run.finished
    assert (newest.parent / "6.damaged" / "progress" / "metadata").exists()
    assert "checkpoint 6 is damaged and was set aside" in capfd.readouterr().out
    assert_same_player(run, remote)


@pytest.mark.slow
def test_a_rejected_upload_of_metrics_is_reported_once(
    store, tmp_path, capfd, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(store, "refused", r"full/(metrics|plots|tensorboard)")
    assert train(config("gs://bucket/full", iterations=2)).finished
    said = capfd.readouterr()
    assert said.out.count("writing to the run directory failed, the run continues") == 1
    (kept,) = tmp_path.iterdir()
    assert f"not copied to gs://bucket/full, still in {kept}" in said.err
    lines = (kept / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["iteration"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "refused", ["player/player", "checkpoints/0/state/d", "checkpoints/0/progress"]
)
def test_a_rejected_player_or_checkpoint_ends_the_run_with_one_line(
    store, monkeypatch, refused
):
    directory = f"gs://bucket/without_{refused.replace('/', '_')}"
    monkeypatch.setattr(store, "refused", refused)
    with pytest.raises(OSError, match="the run cannot be saved there") as error:
        train(config(directory, iterations=2))
    assert error.value.filename.startswith(directory)
    assert "\n" not in error.value.strerror


@pytest.mark.slow
def test_an_unwritable_store_fails_at_the_start(store, monkeypatch):
    monkeypatch.setattr(store, "refused", "closed/")
    with pytest.raises(OSError, match="may not write here; the run cannot be saved"):
        train(config("gs://bucket/closed"))

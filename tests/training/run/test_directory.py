import dataclasses
import json
import os
import pathlib

import pytest
from etils import epath
from training.saved_runs import evaluation_row

from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.settings import FORMAT
from azjax.training import LearnerConfig, ReplayConfig, TrainConfig
from azjax.training.config import QConfig
from azjax.training.run.directory import (
    CONFIG_FILE,
    WorkingDirectory,
    disk_errors,
    is_at_work,
    open_run_directory,
    read_config,
    working_directory,
)

LION = {
    "state": ["ScaleByLionState", "EmptyState"],
    "constants": [-0.0001, 0.9],
    "digest": "12ab",
    "versions": {"jax": "0.10.2", "optax": "0.2.8"},
}


def opened(config, optimizer="adamw", report=pytest.fail):
    with open_run_directory(config, optimizer, report) as directory:
        return directory


def begin(config, optimizer="adamw"):
    """Makes a started run."""
    (opened(config, optimizer) / "checkpoints" / "1").mkdir(parents=True)


def config(directory, **changes) -> TrainConfig:
    return TrainConfig(
        **{"game": "tic_tac_toe", "iterations": 3, "run_dir": str(directory)} | changes
    )


def test_a_new_run_writes_its_configuration(tmp_path):
    directory = opened(config(tmp_path / "a" / "b"))
    assert directory == tmp_path / "a" / "b"
    assert {path.name for path in directory.iterdir()} == {"config.json", ".lock"}
    found = read_config(directory / CONFIG_FILE)
    assert found["game"] == "tic_tac_toe"
    assert found["learner"]["td_lambda"] == LearnerConfig().td_lambda


def test_a_run_continues_with_the_same_configuration_also_in_another_place(tmp_path):
    opened(config(tmp_path / "here"))
    before = (tmp_path / "here" / "config.json").read_text()
    (tmp_path / "here" / "metrics.jsonl").write_text("kept")
    (tmp_path / "here").rename(tmp_path / "there")
    opened(config(tmp_path / "there"))
    assert (tmp_path / "there" / "config.json").read_text() == before
    assert (tmp_path / "there" / "metrics.jsonl").read_text() == "kept"


def test_before_the_first_checkpoint_another_configuration_replaces_it(tmp_path):
    opened(config(tmp_path))
    # The process was killed in its first save.
    (tmp_path / "checkpoints" / "0.orbax-checkpoint-tmp").mkdir(parents=True)
    opened(config(tmp_path, seed=4))
    assert read_config(tmp_path / CONFIG_FILE)["seed"] == 4


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            {},
            {"seed": 4, "learner": LearnerConfig(batch_size=8)},
            r"another configuration .*seed was 0, is 4; learner.batch_size was "
            rf"{LearnerConfig().batch_size}, is 8.*--run-dir",
        ),
        ({}, {"seed": 4}, "to start a new run with its player: --from "),
        (
            {},
            {"iterations": None, "minutes": 4.0, "replay": ReplayConfig(2**18)},
            "replay.capacity .*by the minutes: .*load_co",
        ),
        *(
            ({name: "runs/old"}, {name: "runs/new"}, f"{name} was runs/old, is runs/n")
            for name in ("repeat_schedule", "initial_player")
        ),
    ],
)
def test_other_settings_are_refused_with_differences_and_advice(
    tmp_path, before, after, message
):
    begin(config(tmp_path, **before))
    content = (tmp_path / CONFIG_FILE).read_text()
    with pytest.raises(ValueError, match=message):
        opened(config(tmp_path, **after))
    assert (tmp_path / CONFIG_FILE).read_text() == content


@pytest.mark.parametrize(
    ("make", "optimizer"),
    [
        (config, LION),
        (lambda run_dir: QConfig("tic_tac_toe", run_dir=str(run_dir)), None),
    ],
)
def test_a_run_that_cannot_continue_keeps_its_settings(tmp_path, make, optimizer):
    settings = make(tmp_path)
    begin(settings, optimizer)
    before = (tmp_path / CONFIG_FILE).read_text()
    with pytest.raises(ValueError, match=r"\(seed was 0, is 4\)"):
        opened(dataclasses.replace(settings, seed=4), optimizer)
    with pytest.raises(ValueError, match="of another version"):  # noqa: SIM117
        with open_run_directory(settings, optimizer, pytest.fail):
            raise ValueError("the checkpoint is of another version")
    assert (tmp_path / CONFIG_FILE).read_text() == before
    assert not (tmp_path / ".config.json").exists()


def test_another_optimizer_is_refused_with_the_differences(tmp_path):
    begin(config(tmp_path), LION)
    faster = LION | {"constants": [-0.001, 0.9], "digest": "34cd"}
    with pytest.raises(ValueError, match="another configuration") as error:
        opened(config(tmp_path), faster)
    says = "optimizer.constants was [-0.0001, 0.9], is [-0.001, 0.9]"
    assert says in str(error.value)
    with pytest.raises(ValueError, match=r"is adamw"):
        opened(config(tmp_path), "adamw")
    opened(config(tmp_path), LION)


def test_with_other_library_versions_the_optimizer_digest_is_ignored(tmp_path):
    begin(config(tmp_path), LION)
    newer = {"versions": {"jax": "0.11.0", "optax": "0.3.0"}, "digest": "56ef"}
    reports = []
    with pytest.raises(ValueError, match=r"constants was \[-0.0001, 0.9\], is \[\]"):
        opened(config(tmp_path), LION | newer | {"constants": []}, reports.append)
    opened(config(tmp_path), LION | newer, reports.append)
    assert "jax 0.10.2, optax 0.2.8, continues with jax 0.11.0" in reports[-1]
    # The identity of the continued run replaces the first one.
    opened(config(tmp_path), LION | newer)


def test_a_run_can_get_another_length(tmp_path):
    begin(config(tmp_path))
    opened(config(tmp_path, iterations=None, minutes=4.0))
    assert read_config(tmp_path / CONFIG_FILE)["minutes"] == 4.0


@pytest.mark.parametrize("name", ["repeat_schedule", "initial_player"])
def test_the_plan_and_the_initial_player_need_not_be_given_again(tmp_path, name):
    begin(config(tmp_path, **{name: "runs/old"}))
    opened(config(tmp_path))
    assert read_config(tmp_path / CONFIG_FILE)[name] == "runs/old"
    opened(config(tmp_path, **{name: "runs/old"}))
    opened(config(tmp_path, **{name: str(pathlib.Path("runs/old").absolute())}))
    assert read_config(tmp_path / CONFIG_FILE)[name] == "runs/old"


def test_the_player_of_another_network_is_not_advised(tmp_path):
    begin(config(tmp_path))
    with pytest.raises(ValueError, match=r"network\.trunk\.width was") as error:
        opened(config(tmp_path, network=NetworkConfig(trunk=DenseTrunkConfig(width=7))))
    assert "--from" not in str(error.value)


def test_a_run_continues_with_another_spelling_of_the_game(tmp_path):
    opened(config(tmp_path, game="hex:size=3"))
    (tmp_path / "checkpoints" / "1").mkdir(parents=True)
    path = tmp_path / "config.json"
    assert json.loads(path.read_text())["game"] == "hex:3"
    path.write_text(path.read_text().replace("hex:3", "hex:size=3,swap=False"))
    opened(config(tmp_path, game="hex:3"))
    assert json.loads(path.read_text())["game"] == "hex:3"


def test_a_start_that_was_killed_while_writing_can_be_repeated(tmp_path):
    (tmp_path / ".config.json").write_text('{"form')
    opened(config(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", ".lock"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("thesis.tex", b"words", "is not empty and not a run: give another"),
        ("config.json", b'{"format": 10, "ga', "is damaged.*--run-dir"),
        ("config.json", b"\xff", "is damaged.*--run-dir"),
        ("config.json", b"9" * 5000, "is damaged: Exceeds.*--run-dir"),
        *(
            ("config.json", json.dumps(content).encode(), r"give another --run-dir$")
            for content in ({"format": FORMAT + 1}, {}, [])
        ),
    ],
)
def test_other_files_and_unreadable_settings_are_refused_and_kept(
    tmp_path, name, content, message
):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        opened(config(tmp_path))
    assert (tmp_path / name).read_bytes() == content
    assert {path.name for path in tmp_path.iterdir()} <= {name, ".lock"}


def test_a_directory_that_cannot_be_made_is_refused_with_advice(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError, match="give another --run-dir") as error:
        opened(config(tmp_path / "file" / "run"))
    assert error.value.filename == str(tmp_path / "file" / "run")
    with pytest.raises(ValueError, match="is not a directory: give another --run-dir"):
        opened(config(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "in the way"
    # TensorStore takes no other text.
    with pytest.raises(ValueError, match=r"\\udcff' must be text in the locale's enco"):
        opened(config(f"{tmp_path}/\udcff"))


def test_a_full_disk_is_detected_at_the_start(tmp_path, monkeypatch):
    def fsync(descriptor):
        raise OSError(28, "No space left on device")

    opened(config(tmp_path))
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left on device; the run"):
        opened(config(tmp_path))
    monkeypatch.undo()
    assert read_config(tmp_path / CONFIG_FILE)["game"] == "tic_tac_toe"


def test_only_errors_of_the_disk_change_also_in_tensorstores_text(tmp_path):
    with pytest.raises(ValueError, match="wrong shape"), disk_errors(tmp_path):
        raise ValueError("wrong shape")
    text = "RESOURCE_EXHAUSTED: Failed to write 4 bytes [os_error_code='28']"
    with pytest.raises(OSError, match="No space left") as error, disk_errors(tmp_path):
        raise ValueError(text)
    assert error.value.errno == 28
    assert "\n" not in str(error.value)


def test_the_metrics_of_a_run_without_its_checkpoints_are_kept(tmp_path):
    opened(config(tmp_path))
    metrics = tmp_path / "metrics.jsonl"
    first, second = (json.dumps(evaluation_row(n)) + "\n" for n in (0, 1))
    # Only the first bytes are read to find a lost run.
    for content in (first, first + 2**20 * " " + "\n" + second):
        metrics.write_text(content)
        opened(config(tmp_path))
    metrics.write_text(second)
    with pytest.raises(ValueError, match=f"{tmp_path} holds the metrics of a run"):
        opened(config(tmp_path))
    assert metrics.read_text() == second


def test_the_metrics_of_a_run_in_progress_are_not_checked(tmp_path):
    with open_run_directory(config(tmp_path)):
        (tmp_path / "metrics.jsonl").write_text(json.dumps(evaluation_row(1)))
        with pytest.raises(ValueError, match="another process is training in"):
            opened(config(tmp_path))


def test_metrics_and_settings_are_read_only_from_regular_files(tmp_path):
    opened(config(tmp_path))
    (tmp_path / "metrics.jsonl").symlink_to("/dev/null")
    with pytest.raises(ValueError, match=r"metrics.jsonl is not a regular file"):
        opened(config(tmp_path))
    (tmp_path / "metrics.jsonl").unlink()
    begin(config(tmp_path))
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="is not a regular file"):
        opened(config(tmp_path))


@pytest.mark.parametrize(
    "name", ["games", "player", "checkpoints/1/metrics", "checkpoints/1/pipe"]
)
def test_a_run_that_reaches_outside_of_its_directory_is_refused(tmp_path, name):
    run, other = tmp_path / "run", tmp_path / "other"
    begin(config(run))
    other.mkdir()
    (other / "00000009-00000009-0.parquet").write_text("precious")
    if name.endswith("pipe"):  # reading would wait for ever
        os.mkfifo(run / name)
    else:
        (run / name).symlink_to(other)
    with pytest.raises(ValueError, match=f"run/{name} is "):
        opened(config(run))
    assert [path.read_text() for path in other.iterdir()] == ["precious"]


def test_checkpoints_have_no_links_and_descriptions_of_any_size(tmp_path):
    begin(config(tmp_path))
    (tmp_path / "aside").mkdir()
    (tmp_path / "checkpoints/2").symlink_to(tmp_path / "aside")
    with pytest.raises(ValueError, match="checkpoints/2 is a link: move its target"):
        opened(config(tmp_path))
    (tmp_path / "checkpoints/2").unlink()
    with (tmp_path / "checkpoints/1/metadata").open("wb") as file:
        file.truncate(10**11)  # takes no space on the disk
    with pytest.raises(ValueError, match="1/metadata has more than 16777216 bytes"):
        opened(config(tmp_path))


def test_links_within_a_run_directory_are_allowed(tmp_path):
    begin(config(tmp_path))
    (tmp_path / "wandb/run-1").mkdir(parents=True)
    (tmp_path / "wandb/latest-run").symlink_to("run-1")
    (tmp_path / "itself").symlink_to("itself")
    opened(config(tmp_path))


def test_is_at_work_detects_a_training_process(tmp_path):
    assert not is_at_work(tmp_path / "nowhere")
    with open_run_directory(config(tmp_path)):
        assert is_at_work(tmp_path)
        assert is_at_work(tmp_path)
    assert not is_at_work(tmp_path)


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_is_at_work_does_not_follow_links_or_open_pipes(tmp_path, kind):
    fcntl = pytest.importorskip("fcntl")
    file, other = tmp_path / ".lock", tmp_path / "other"
    with other.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if kind == "link":
            file.symlink_to(other)
        elif kind == "pipe":
            os.mkfifo(file)
        else:
            file.mkdir()
        assert not is_at_work(tmp_path)


def test_is_at_work_does_not_block_training(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    opened(config(tmp_path))
    with (tmp_path / ".lock").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        monkeypatch.setattr("time.sleep", lambda _: looking.close())
        opened(config(tmp_path))


def test_one_process_can_lock_a_directory(tmp_path):
    with (
        open_run_directory(config(tmp_path)),
        pytest.raises(ValueError, match="another process is training in"),
    ):
        opened(config(tmp_path))
    opened(config(tmp_path))


@pytest.mark.parametrize("name", [".lock", ".config.json"])
def test_a_planted_link_is_not_followed(tmp_path, name):
    other, run_dir = tmp_path / "other", tmp_path / "run"
    other.write_text("precious")
    run_dir.mkdir()
    (run_dir / name).symlink_to(other)
    if name == ".lock":
        with pytest.raises(OSError, match="symbolic links"):
            opened(config(run_dir))
    else:
        opened(config(run_dir))
    assert other.read_text() == "precious"


@pytest.fixture
def run_dir(tmp_path):
    """A local directory that is used as a remote one."""
    (tmp_path / "run").mkdir()
    return epath.Path(tmp_path / "run")


@pytest.fixture
def files(tmp_path, run_dir):
    (tmp_path / "here" / "player").mkdir(parents=True)
    return WorkingDirectory(tmp_path / "here", run_dir)


def test_a_local_run_is_written_to_its_directory(tmp_path):
    with working_directory(tmp_path) as files:
        assert files.path == files.directory == tmp_path
        (tmp_path / "file").write_text("content")
        assert files.changed() == []
    assert (tmp_path / "file").read_text() == "content"


def test_changed_files_are_copied_once(files, run_dir):
    (files.path / "player" / "player.safetensors").write_text("1")
    (files.path / "schedule.json").write_text("2")
    files.publish("player")
    assert (run_dir / "player" / "player.safetensors").read_text() == "1"
    assert files.changed() == ["schedule.json"]
    files.publish()
    assert files.changed() == []
    (files.path / "schedule.json").write_text("new")
    assert files.changed("player") == []
    assert files.changed("schedule.json") == ["schedule.json"]


def test_a_file_in_writing_is_not_copied(files):
    (files.path / "player" / ".player.safetensors").write_text("half")
    assert files.changed() == []


def test_remote_metrics_are_continued_and_no_local_files_remain(
    run_dir, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (run_dir / "metrics.jsonl").write_text("1\n")
    with working_directory(run_dir) as files:
        assert files.changed() == []
        with (files.path / "metrics.jsonl").open("a") as file:
            file.write("2\n")
    assert (run_dir / "metrics.jsonl").read_text() == "1\n2\n"
    assert os.listdir(tmp_path) == ["run"]


def test_uncopied_files_remain_and_are_named(run_dir, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (run_dir / "player").write_text("in the way")
    with working_directory(run_dir) as files:
        (files.path / "player").mkdir()
        (files.path / "player" / "player.safetensors").write_text("1")
    said = capfd.readouterr().err
    assert f"not copied to {run_dir}, still in {files.path}" in said
    assert said.endswith("player/player.safetensors\n")
    assert (files.path / "player" / "player.safetensors").read_text() == "1"

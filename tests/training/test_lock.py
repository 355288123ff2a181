import os

import pytest

from azjax.training import TrainConfig
from azjax.training import lock as lock_module
from azjax.training.lock import is_at_work
from azjax.training.run_directory import open_run_directory


def config(directory) -> TrainConfig:
    return TrainConfig("tic_tac_toe", iterations=3, run_dir=str(directory))


def opened(config):
    with open_run_directory(config) as directory:
        return directory


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
        monkeypatch.setattr(lock_module.time, "sleep", lambda _: looking.close())
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

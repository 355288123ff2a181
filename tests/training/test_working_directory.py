import os

import pytest
from etils import epath

from azjax.training.working_directory import WorkingDirectory, working_directory


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
    (files.path / "plan.json").write_text("2")
    files.publish("player")
    assert (run_dir / "player" / "player.safetensors").read_text() == "1"
    assert files.changed() == ["plan.json"]
    files.publish()
    assert files.changed() == []
    (files.path / "plan.json").write_text("new")
    assert files.changed("player") == []
    assert files.changed("plan.json") == ["plan.json"]


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

import errno
import importlib.util
import os
import pathlib

import pytest
from etils import epath

from azjax import files
from azjax.files import open_regular
from azjax.training import TrainConfig
from azjax.training.config import QConfig


def test_a_local_directory_is_a_path(tmp_path):
    assert files.as_directory(str(tmp_path)) == tmp_path
    assert not files.is_remote(files.as_run_directory(tmp_path))


def test_a_url_keeps_its_slashes():
    directory = TrainConfig(game="tic_tac_toe", iterations=1, run_dir="gs://b/run")
    assert str(directory.directory / "player") == "gs://b/run/player"
    assert files.resolved(directory.directory) == epath.Path("gs://b/run")


def test_invalid_directories_are_refused_by_the_settings():
    for name, message in (
        ("foo://b/run", "unknown scheme in foo://b/run: .* gs://, s3://, az://, hf://"),
        ("gs://", "gs:// names no bucket"),
        (pathlib.Path("gs://b/run"), "gs:/b/run is not a URL: pathlib.Path drops"),
        ("s3://b/run", "a run directory must be local or in gs://"),
    ):
        for settings in TrainConfig, QConfig:
            with pytest.raises(ValueError, match=message):
                settings("tic_tac_toe", iterations=1, run_dir=name)
    for option in "repeat_schedule", "initial_player":
        with pytest.raises(ValueError, match="unknown scheme in foo://b/run"):
            TrainConfig("tic_tac_toe", iterations=1, **{option: "foo://b/run"})


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for scheme, name in (
        ("gs", r"'azjax\[gcs\]'"),
        ("s3", "s3fs"),
        ("az", "adlfs"),
        ("hf", r"'azjax\[hub\]'"),
    ):
        with pytest.raises(ValueError, match=f"not installed: pip install {name}$"):
            files.as_directory(f"{scheme}://b/run")


def test_open_object_reads_up_to_its_limit(tmp_path):
    path = epath.Path(tmp_path) / "object"
    path.write_bytes(b"1234")
    with open_regular(path, 4) as file:
        assert file.read() == b"1234"
    with pytest.raises(OSError, match="object has more than 3 bytes"):
        open_regular(path, 3)


def test_open_object_rejects_directories(tmp_path):
    for path in epath.Path(tmp_path) / "nothing", epath.Path(tmp_path):
        with pytest.raises(OSError, match=r"No such file|not a regular file") as error:
            open_regular(path, 4)
        assert error.value.filename == str(path)


@pytest.mark.parametrize(
    "error",
    [
        OSError("Forbidden: bucket\nthis account may not"),
        ValueError("PERMISSION_DENIED: this account may not [http_response_code=403]"),
        type("HttpError", (Exception,), {"__module__": "gcsfs.retry"})("may not"),
    ],
)
def test_store_errors_raises_a_one_line_os_error(error):
    path = epath.Path("gs://b/run")
    with pytest.raises(OSError, match="may not") as found, files.store_errors(path):
        raise error
    assert (found.value.errno, found.value.filename) == (errno.EIO, str(path))
    assert "\n" not in found.value.strerror


@pytest.mark.parametrize(
    ("directory", "error"),
    [
        (epath.Path("gs://b"), ValueError("seed was 0, is 1")),
        (epath.Path("gs://b"), RuntimeError("INTERNAL: of a device")),
        (pathlib.Path("local"), OSError("something")),
    ],
)
def test_store_errors_passes_other_exceptions(directory, error):
    with pytest.raises(type(error)) as found, files.store_errors(directory):
        raise error
    assert found.value is error


def test_a_failed_replacement_keeps_the_file_and_removes_the_temporary_one(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        files.replace_file(tmp_path / "taken", b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_a_planted_link_is_replaced_and_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("precious")
    # Its own name, and that of the temporary file.
    for name in ("config.json", f".config.json.{os.getpid()}"):
        (tmp_path / name).symlink_to(other)
    files.replace_file(tmp_path / "config.json", b"new")
    assert (tmp_path / "config.json").read_bytes() == b"new"
    assert not (tmp_path / "config.json").is_symlink()
    assert other.read_text() == "precious"

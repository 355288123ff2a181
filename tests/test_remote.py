import errno
import importlib.util
import pathlib

import pytest
from etils import epath

from azjax import remote
from azjax.players.weights import open_regular
from azjax.training import TrainConfig
from azjax.training.q_config import QConfig


def test_a_local_directory_is_a_path(tmp_path):
    assert remote.as_directory(str(tmp_path)) == tmp_path
    assert not remote.is_remote(remote.as_run_directory(tmp_path))


def test_a_url_keeps_its_slashes():
    directory = TrainConfig(game="tic_tac_toe", iterations=1, run_dir="gs://b/run")
    assert str(directory.directory / "player") == "gs://b/run/player"
    assert remote.resolved(directory.directory) == epath.Path("gs://b/run")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("foo://b/run", "unknown scheme in foo://b/run: .* gs://, s3://, az://, hf://"),
        ("gs://", "gs:// names no bucket"),
        (pathlib.Path("gs://b/run"), "gs:/b/run is not a URL: pathlib.Path drops"),
        ("s3://b/run", "a run directory must be local or in gs://"),
    ],
)
@pytest.mark.parametrize("settings", [TrainConfig, QConfig])
def test_an_invalid_run_directory_is_refused_by_its_settings(settings, name, message):
    with pytest.raises(ValueError, match=message):
        settings("tic_tac_toe", iterations=1, run_dir=name)


@pytest.mark.parametrize("option", ["plan", "initial_player"])
def test_another_run_of_an_unknown_scheme_is_refused_by_the_settings(option):
    with pytest.raises(ValueError, match="unknown scheme in foo://b/run"):
        TrainConfig("tic_tac_toe", iterations=1, **{option: "foo://b/run"})


@pytest.mark.parametrize("scheme", remote.LIBRARIES)
def test_a_library_that_is_missing_is_named(scheme, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    library = remote.LIBRARIES[scheme]
    with pytest.raises(ValueError, match=f"not installed: pip install {library}"):
        remote.as_directory(f"{scheme}://b/run")


def test_open_object_reads_up_to_its_limit(tmp_path):
    path = epath.Path(tmp_path) / "object"
    path.write_bytes(b"1234")
    with open_regular(path, 4) as file:
        assert file.read() == b"1234"
    with pytest.raises(OSError, match="object has more than 3 bytes"):
        open_regular(path, 3)


@pytest.mark.parametrize("name", ["nothing", ""])
def test_open_object_rejects_directories(tmp_path, name):
    path = epath.Path(tmp_path) / name
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
    with pytest.raises(OSError, match="may not") as found, remote.store_errors(path):
        raise error
    assert (found.value.errno, found.value.filename) == (errno.EIO, str(path))
    assert "\n" not in found.value.strerror


@pytest.mark.parametrize(
    "error", [ValueError("seed was 0, is 1"), RuntimeError("INTERNAL: of a device")]
)
def test_store_errors_passes_other_exceptions(error):
    with pytest.raises(type(error)) as found, remote.store_errors(epath.Path("gs://b")):
        raise error
    assert found.value is error


def test_errors_of_a_local_directory_pass_unchanged(tmp_path):
    error = OSError("something")
    refused = pytest.raises(OSError, match="something")
    with refused as found, remote.store_errors(tmp_path):
        raise error
    assert found.value is error


def test_a_failed_replacement_keeps_the_file_and_removes_the_temporary_one(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        remote.replace_file(tmp_path / "taken", b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]

import sys

import huggingface_hub
import pytest
from fake_hub import Repository, sha
from huggingface_hub import constants

from azjax.hub import check_repository, download, upload

NAME = "ann/player"
FILES = {"player.bin": b"weights", "README.md": b"# A player\n"}
LIMITS = {"player.bin": 100, "README.md": 100}


def push(name=NAME, *, files=FILES, private=False, message="a message"):
    return upload(name, files, kind="player.bin", private=private, message=message)


def pull(directory, name=NAME, **options):
    paths = download(name, LIMITS, directory, kind="player.bin", **options)
    return {file: path.read_bytes() for file, path in paths.items()}


def assert_refused(match, function, *args, error=ValueError, **options):
    with pytest.raises(error, match=match) as raised:
        function(*args, **options)
    assert "\n" not in str(raised.value)


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
@pytest.mark.parametrize("mode", ["regular", "lfs"])
@pytest.mark.parametrize("private", [False, True])
def test_files_come_back_as_they_were_written(hub, tmp_path, mode, private):
    hub.upload_mode = mode
    files = FILES | {"x.safetensors": bytes(range(256))}
    assert push(files=files, private=private) == f"{hub.url}/{NAME}"
    repository = hub.repositories[NAME]
    assert repository.files == files | {".gitattributes": b""}
    assert repository.messages == ["initial commit", "a message"]
    assert repository.private == private
    assert bool(hub.objects) == (mode == "lfs")
    assert pull(tmp_path) == FILES


def test_another_push_is_another_commit(hub, tmp_path):
    push()
    push(files=FILES | {"player.bin": b"better"})
    assert pull(tmp_path)["player.bin"] == b"better"
    assert pull(tmp_path, revision=sha(1))["player.bin"] == b"weights"


def test_only_the_named_files_are_downloaded_and_one_may_be_missing(hub, tmp_path):
    hub.repositories[NAME] = Repository()
    hub.repositories[NAME].commit(FILES | {"model.pkl": b"", "../x": b""})
    assert pull(tmp_path) == FILES
    names = {line.rpartition("/")[2] for line in hub.requests if "/resolve/" in line}
    assert names == set(FILES)
    push("ann/other", files={"player.bin": b"weights"})
    assert pull(tmp_path, "ann/other") == {"player.bin": b"weights"}


def test_a_repository_with_other_content_or_a_public_one_is_not_changed(hub):
    for file in "model.pkl", "README.md":
        hub.repositories[NAME] = Repository()
        hub.repositories[NAME].commit({file: b"theirs"})
        assert_refused(f"has other content \\('{file}'\\) and no player", push)
        assert len(hub.repositories[NAME].commits) == 2
    push("ann/other")
    assert_refused("exists and is not private", push, "ann/other", private=True)
    assert len(hub.repositories["ann/other"].commits) == 2


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_a_failed_upload_is_named(hub):
    hub.upload_mode, hub.refuses_objects = "lfs", True
    files = FILES | {"x.safetensors": b"x"}
    assert_refused("uploading 'x.safetensors'.* 403", push, files=files, error=OSError)
    assert len(hub.repositories[NAME].commits) == 1


def test_a_commit_made_meanwhile_is_not_overwritten(hub, monkeypatch):
    push()
    original = huggingface_hub.HfApi.create_commit

    def create_commit(*args, **options):
        hub.repositories[NAME].commit({"player.bin": b"another's"})
        return original(*args, **options)

    monkeypatch.setattr(huggingface_hub.HfApi, "create_commit", create_commit)
    assert_refused("A commit has happened since", push, error=OSError)
    assert hub.repositories[NAME].files["player.bin"] == b"another's"


def test_an_invalid_name_is_refused_before_any_request(hub, tmp_path):
    for name in (
        *("", "player", "a/b/c", "../..", "ann/..", "ann/../x", "/ann/x", "ann/"),
        *("ann/a--b", "ann/.x", "ann\\x", "ann/x?y", "ann/x y", "https://ann/x"),
        *("hf://ann/x", "ann/x\n", "ann/x.git", "ann/" + "x" * 1000),
    ):
        assert_refused("must be USER/NAME", check_repository, name)
        assert_refused("must be USER/NAME", push, name)
        assert_refused("must be USER/NAME", pull, tmp_path, name)
    assert hub.requests == []


def test_writing_needs_permission_and_reading_no_token(hub, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.delenv("HF_TOKEN")
        assert_refused("needs a token to write: set HF_TOKEN, or log in", push)
        assert hub.requests == []
        patch.setenv("HF_TOKEN", "hf_wrong")
        assert_refused(f"does not allow this in the repository {NAME}", push)
        assert hub.repositories == {}
    push()
    assert_refused("does not allow this .* rights to create", push, "bob/player")
    hub.repositories["bob/player"] = Repository()
    assert_refused("does not allow this .* write access", push, "bob/player")
    assert len(hub.repositories["bob/player"].commits) == 1
    monkeypatch.delenv("HF_TOKEN")
    assert pull(tmp_path) == FILES


def test_a_missing_or_private_repository_is_named(hub, tmp_path, monkeypatch):
    assert_refused(f"there is no repository {NAME}", pull, tmp_path)
    push(private=True)
    monkeypatch.delenv("HF_TOKEN")
    assert_refused("or the token does not allow to read it", pull, tmp_path)


def test_a_missing_revision_or_file_and_a_large_file_are_refused(hub, tmp_path):
    push()
    for revision in "v9", "../../x", "a" * 1000:
        assert_refused("has no revision", pull, tmp_path / "cache", revision=revision)
        assert not (tmp_path / "cache").exists()
    hub.repositories["ann/x"] = Repository()
    hub.repositories["ann/x"].commit({f"{n}.bin": b"" for n in range(9)})
    assert_refused(
        r"has no player.bin, .* files: '.gitattributes', '0.bin', '1.bin', \.\.\.$",
        *(pull, tmp_path, "ann/x"),
    )
    push("ann/large", files=FILES | {"player.bin": bytes(101)})
    match = "has 101 bytes; at most 100 are loaded"
    assert_refused(match, pull, tmp_path, "ann/large")
    assert not any("large" in x and "player.bin" in x for x in hub.requests)


def test_a_hub_that_cannot_be_reached_is_named(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    for function in (push, lambda: pull(tmp_path)):
        with pytest.raises(OSError, match=r"[Cc]onnect") as error:
            function()
        assert error.value.filename == f"Hugging Face Hub, {NAME}"
        assert "\n" not in error.value.strerror


def test_another_server_is_named(hub, tmp_path):
    for hub.only_answer in b"<html>", b"{}", b"[]":
        assert_refused("Hugging Face Hub, ann/player", push, error=OSError)
        assert_refused("Hugging Face Hub, ann/player", pull, tmp_path, error=OSError)


def test_the_offline_mode_is_named(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.close_session()
    assert_refused("offline", pull, tmp_path, error=OSError)
    assert_refused("offline", push, error=OSError)
    assert hub.requests == []


def test_without_its_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub.utils", None)
    assert_refused(r"pip install 'azjax\[hub\]'", check_repository, NAME)

"""The published documentation with a directory for each version."""

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def add_version(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "ext"))
    published_site = importlib.import_module("published_site")

    def add(version, text="page"):
        built = tmp_path / "built"
        built.mkdir(exist_ok=True)
        (built / "index.html").write_text(text)
        published_site.add_version(tmp_path / "site", built, version, "/azjax/")
        return tmp_path / "site"

    return add


def test_the_menu_has_the_releases_and_then_the_development(add_version):
    for version in ("dev", "0.9.1", "0.10.0"):
        site = add_version(version)
    entries = json.loads((site / "versions.json").read_text())
    assert [entry["version"] for entry in entries] == ["0.10.0", "0.9.1", "dev"]
    assert entries[0]["url"] == "/azjax/0.10.0/"
    assert [entry["preferred"] for entry in entries] == [True, False, False]
    assert "url=0.10.0/" in (site / "index.html").read_text()


def test_a_version_replaces_its_older_build_only(add_version):
    site = add_version("0.1.0", "release")
    add_version("dev", "old")
    (site / "dev" / "gone.html").touch()
    add_version("dev", "new")
    assert (site / "dev" / "index.html").read_text() == "new"
    assert not (site / "dev" / "gone.html").exists()
    assert (site / "0.1.0" / "index.html").read_text() == "release"


def test_other_versions_and_directories_are_refused(add_version, tmp_path):
    for version in "../dev", "main", "1.0rc1", "":
        with pytest.raises(ValueError, match="the version must be dev or numbers"):
            add_version(version)
    assert not (tmp_path / "site").exists()
    assert "url=dev/" in (add_version("dev") / "index.html").read_text()
    (tmp_path / "built" / "index.html").unlink()
    published_site = importlib.import_module("published_site")
    with pytest.raises(ValueError, match="is not a built site"):
        published_site.add_version(
            tmp_path / "site", tmp_path / "built", "dev", "/azjax/"
        )
    assert (tmp_path / "site" / "dev" / "index.html").exists()

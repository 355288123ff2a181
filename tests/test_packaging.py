"""The files around the package agree with it."""

import re
import tomllib
from pathlib import Path

import yaml

import azjax

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
# The keys of a citation file, from the schema of version 1.2.0.
REQUIRED = {"cff-version", "message", "title", "authors"}
OPTIONAL = {
    "abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords",
    "license", "license-url", "preferred-citation", "references", "repository",
    "repository-artifact", "repository-code", "type", "url", "version",
}  # fmt: skip
RELEASE = (ROOT / ".github" / "workflows" / "release.yml").read_text()


def test_the_citation_file_has_the_keys_of_the_format():
    assert CITATION["cff-version"] == "1.2.0"
    assert set(CITATION) >= REQUIRED
    assert set(CITATION) <= REQUIRED | OPTIONAL
    assert CITATION["type"] in ("software", "dataset")
    assert all(author["name"] for author in CITATION["authors"])


def test_the_citation_file_describes_the_package():
    assert CITATION["version"] == PROJECT["version"] == azjax.__version__
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["abstract"] == PROJECT["description"]


def test_the_base_install_keeps_the_games_of_a_run():
    assert any(line.startswith("pyarrow") for line in PROJECT["dependencies"])


def test_the_release_is_tested_and_its_actions_have_versions():
    jobs = yaml.safe_load(RELEASE)["jobs"]
    assert jobs["publish"]["needs"] == ["build"]
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    actions = re.findall(r"uses: (\S+)", RELEASE)
    assert "pypa/gh-action-pypi-publish@release/v1" in actions
    assert all(re.search(r"@(release/)?v\d", action) for action in actions)

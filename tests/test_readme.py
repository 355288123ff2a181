import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_readme_run(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(example.replace("minutes=5", "iterations=1"), {})


def test_the_readme_has_its_examples():
    assert len(EXAMPLES) == 5
    assert "".join(EXAMPLES).count("minutes=5") == 2


@pytest.mark.parametrize("path", re.findall(r"\]\((experiments/[^)]*)\)", README))
def test_the_files_that_the_readme_links_to_are_there(path):
    assert (Path(__file__).parent.parent / path).exists()

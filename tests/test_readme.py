"""The examples of the README and of the documentation's pages run, and links exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
EXAMPLES = [
    pytest.param(example, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, example in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    )
    if "google.colab" not in example  # a module that only Colab has
]
LINKS = [
    pytest.param(page.parent / link, id=f"{page.stem}-{link}")
    for page in PAGES
    for link in sorted(set(re.findall(r"\]\(([\w./-]+\.\w+)\)", page.read_text())))
    if not link.startswith("generated/")  # written by the build
]

# Replaces `minutes=5` in an example: the shortest run with updates.
TINY_RUN = """
    iterations=1,
    self_play=azjax.training.SelfPlayConfig(
        num_games=8, moves_per_chunk=24, num_simulations=(2,)
    ),
    replay=azjax.training.ReplayConfig(capacity=576, min_positions=1),
    learner=azjax.training.LearnerConfig(batch_size=64),
    evaluation=azjax.training.EvaluationConfig(
        num_evaluations=1, num_positions=10, num_simulations=2, num_games=2
    )
"""


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_run(example, tmp_path):
    program = example.replace("minutes=5", TINY_RUN)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_the_pages_have_their_examples():
    names = [example.id.rpartition("-")[0] for example in EXAMPLES]
    assert {"README", "index", "quickstart", "alphazero", "tree_search"} <= set(names)
    assert names.count("training") == 4


@pytest.mark.parametrize("path", LINKS)
def test_the_linked_files_exist(path):
    assert path.exists()


def test_the_readme_is_short():
    assert len(PAGES[0].read_text().splitlines()) <= 90

"""The examples of the README and of the documentation's pages run, and links exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from shared_programs import shared_programs

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
EXAMPLES = {  # by name; those with the same text once
    example: f"{page.stem}-{number}"
    for page in reversed(PAGES)
    for number, example in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    )
    if "google.colab" not in example  # a module that only Colab has
}
NAMES = sorted(EXAMPLES.values())
LINKS = [
    page.parent / link
    for page in PAGES
    for link in sorted(set(re.findall(r"\]\(([\w./-]+\.\w+)\)", page.read_text())))
    if not link.startswith("generated/")  # written by the build
]

# Replaces `minutes=5` in an example: the shortest run with updates, of a small network
# unless the example has its own.
TINY_RUN = """
    iterations=1,
    self_play=azjax.training.SelfPlayConfig(
        num_games=8, moves_per_chunk=24, num_simulations=(2,)
    ),
    replay=azjax.training.ReplayConfig(capacity=576, min_positions=1),
    learner=azjax.training.LearnerConfig(batch_size=64),
    evaluation=azjax.training.EvaluationConfig(
        num_evaluations=1, num_positions=10, num_simulations=2, opponents=()
    )
"""
SMALLER = {
    "minutes=5, network=": f"{TINY_RUN}, network=",
    "minutes=5": f"""{TINY_RUN},
    network=azjax.networks.NetworkConfig(
        azjax.networks.DenseTrunkConfig(num_blocks=1, width=8, stem_channels=4)
    )
""",
    "simulations=200": "simulations=8",
    # Games and simulations of searches.
    "arange(64)": "arange(4)",
    "model, 128)": "model, 8)",
    "SIMULATIONS = 8, 64": "SIMULATIONS = 8, 8",
}


@pytest.fixture(scope="module")
def programs():
    """Makes runs with equal settings compile once."""
    with shared_programs():
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", NAMES)
def test_the_examples_run(name, tmp_path, monkeypatch):
    (example,) = (text for text, found in EXAMPLES.items() if found == name)
    program = example
    for text, smaller in SMALLER.items():
        program = program.replace(text, smaller)
    # One as users run it; one registers a part of networks for its whole process.
    if name == "README-0" or "register" in example:
        code = [sys.executable, "-W", "error", "-c", program]
        result = subprocess.run(
            code, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
    else:
        monkeypatch.chdir(tmp_path)
        exec(compile(program, name, "exec"), {"__name__": "__main__"})


def test_the_pages_have_their_examples():
    pages = [name.rpartition("-")[0] for name in NAMES]
    assert {"README", "index", "quickstart", "alphazero", "tree_search"} <= set(pages)
    assert pages.count("training") >= 3
    for text in SMALLER:
        assert any(text in example for example in EXAMPLES), text
    assert len(PAGES[0].read_text().splitlines()) <= 90  # the README is short


def test_the_linked_files_exist():
    assert len(LINKS) > 20
    assert [link for link in LINKS if not link.exists()] == []

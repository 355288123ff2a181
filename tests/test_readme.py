import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)

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
@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_readme_run(example, tmp_path):
    program = example.replace("minutes=5", TINY_RUN)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_the_readme_has_its_examples():
    assert len(EXAMPLES) == 6
    assert "".join(EXAMPLES).count("minutes=5") == 3


@pytest.mark.parametrize("path", re.findall(r"\]\((experiments/[^)]*)\)", README))
def test_the_files_that_the_readme_links_to_are_there(path):
    assert (Path(__file__).parent.parent / path).exists()

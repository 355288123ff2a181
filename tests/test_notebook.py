"""Runs the notebook of the experiments from top to bottom."""

import pathlib

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = pathlib.Path(__file__).parents[1] / "experiments" / "connect4.ipynb"

# The test inserts this after the notebook's settings: a tiny network and a short run.
TINY_RUN = """
from azjax import networks, training

SIMULATIONS = 2
config = azjax.TrainConfig(
    "connect_four",
    iterations=1,
    network=networks.NetworkConfig(
        networks.DenseTrunkConfig(num_blocks=1, width=8, stem_channels=4)
    ),
    self_play=training.SelfPlayConfig(
        num_games=8, moves_per_chunk=24, num_simulations=(2,)
    ),
    replay=training.ReplayConfig(capacity=576, min_positions=1),
    learner=training.LearnerConfig(batch_size=64),
    evaluation=training.EvaluationConfig(
        num_evaluations=1,
        num_positions=10,
        num_simulations=2,
        num_games=2,
        opponents=(),
    ),
)
"""


@pytest.fixture
def notebook() -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def test_it_is_kept_without_outputs(notebook):
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)


@pytest.mark.slow
def test_it_runs_from_top_to_bottom(notebook, tmp_path):
    (settings,) = [
        index
        for index, cell in enumerate(notebook.cells)
        if "parameters" in cell.metadata.get("tags", ())
    ]
    notebook.cells.insert(settings + 1, nbformat.v4.new_code_cell(TINY_RUN))
    client = NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = {kind for output in outputs for kind in output.get("data", ())}
    assert "image/png" in shown  # the plot
    assert "application/vnd.jupyter.widget-view+json" in shown  # the game
    boards = [
        output.data["text/html"].count("<img")
        for output in outputs
        if "data:image/svg" in output.get("data", {}).get("text/html", "")
    ]
    assert boards[:2] == [1, 7]  # the opening; seven games
    assert (tmp_path / "runs" / "connect_four" / "plots" / "learning.png").exists()

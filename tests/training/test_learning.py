"""Short runs learn, one for each kind of board."""

import pytest

from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    train,
)
from azjax.training.run.metrics import METRICS_FILE, read_metrics

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_plots")]


def evaluations(directory, game, iterations, line_length=0):
    """Returns the evaluations of the untrained network and of the trained one."""
    run = train(
        TrainConfig(
            game=game,
            iterations=iterations,
            run_dir=str(directory),
            network=NetworkConfig(
                DenseTrunkConfig(width=64, num_blocks=2), line_length=line_length
            ),
            self_play=SelfPlayConfig(
                num_games=128, moves_per_chunk=16, num_simulations=(16,)
            ),
            learner=LearnerConfig(learning_rate=4e-3, td_lambda=0.9),
            replay=ReplayConfig(capacity=2**17, min_positions=2048),
            evaluation=EvaluationConfig(
                num_evaluations=1, num_positions=500, num_games=200
            ),
        )
    )
    rows = read_metrics(run.directory / METRICS_FILE)
    return [row for row in rows if row["kind"] == "evaluation"]


# Stones that stay, stones that are captured, and pieces that move.
@pytest.mark.parametrize(
    ("game", "iterations", "least"),
    [("hex:4", 6, 0.8), ("go:4", 10, 0.7), ("breakthrough:5,4", 4, 0.8)],
)
def test_a_network_learns_to_beat_random_moves(game, iterations, least, tmp_path):
    untrained, trained = (
        row["scores"]["random"]["score"]
        for row in evaluations(tmp_path / "run", game, iterations)
    )
    assert untrained < least < trained


def test_a_network_learns_to_avoid_mistakes(tmp_path):
    untrained, trained = evaluations(tmp_path / "run", "connect_four", 8, line_length=4)
    assert trained["network_mistakes"] < 0.5 < untrained["network_mistakes"]
    assert trained["search_mistakes"] < 0.25 < untrained["search_mistakes"]

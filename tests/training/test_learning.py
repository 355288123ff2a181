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


def evaluations(directory, game, iterations):
    """Returns the evaluations of the untrained network and of the trained one."""
    run = train(
        TrainConfig(
            game=game,
            iterations=iterations,
            run_dir=str(directory),
            network=NetworkConfig(trunk=DenseTrunkConfig(width=128, num_blocks=2)),
            self_play=SelfPlayConfig(moves_per_chunk=16, num_simulations=(16,)),
            learner=LearnerConfig(learning_rate=4e-3, td_lambda=0.9),
            replay=ReplayConfig(capacity=2**18, min_positions=4096),
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
    [("hex:5", 6, 0.8), ("go:5", 17, 0.7), ("breakthrough:6,5", 6, 0.9)],
)
def test_a_network_learns_to_beat_random_moves(game, iterations, least, tmp_path):
    untrained, trained = (
        row["scores"]["random"]["score"]
        for row in evaluations(tmp_path / "run", game, iterations)
    )
    assert untrained < 0.65
    assert trained > least


def test_a_network_learns_to_avoid_mistakes(tmp_path):
    untrained, trained = evaluations(tmp_path / "run", "connect_four", 14)
    assert untrained["network_mistakes"] > 0.48
    assert trained["network_mistakes"] < 0.43
    assert trained["search_mistakes"] < 0.26 < untrained["search_mistakes"]

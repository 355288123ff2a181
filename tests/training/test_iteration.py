import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import first_network
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    ValueTarget,
    lambda_returns,
    make_algorithm,
    train_iteration,
    uniform_sampler,
)

GAME = games.make("tic_tac_toe")
CONFIG = TrainConfig(
    game="tic_tac_toe",
    iterations=4,
    network=NetworkConfig(
        trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
    ),
    self_play=SelfPlayConfig(num_games=8, moves_per_chunk=4, num_simulations=(2,)),
    replay=ReplayConfig(capacity=128, min_window=104, min_positions=64),
    learner=LearnerConfig(batch_size=16, replay_ratio=1.0),
    evaluation=EvaluationConfig(num_evaluations=1),
)
NETWORK, VARIABLES = first_network(0, GAME, CONFIG.network)


@pytest.fixture(scope="module")
def algorithm():
    return make_algorithm(CONFIG, GAME, NETWORK)


@pytest.fixture(scope="module")
def runs(algorithm):
    """Returns states and metrics of 3 iterations, and the phases that were entered.

    The iterations are run twice from the same weights.
    """
    found = []
    for _ in range(2):
        state, metrics, phases = algorithm.init(VARIABLES), [], []
        for _ in range(3):
            state, row = train_iteration(algorithm, CONFIG, state, 0.5, phases.append)
            metrics.append(row)
        found.append((state, metrics, phases))
    return found


def test_train_iteration_is_a_pure_function_of_the_state(runs):
    (first, *rest), (second, *again) = runs
    jax.tree.map(np.testing.assert_array_equal, first.learner, second.learner)
    jax.tree.map(np.testing.assert_array_equal, rest, again)
    assert first.iteration == 3
    # The caller's weights are not donated: the runs have their own.
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(VARIABLES.params))


def test_no_update_before_min_positions(runs):
    _, metrics, phases = runs[0]
    assert ["policy_loss" in row for row in metrics] == [False, True, True]
    assert metrics[0]["waiting"] == 32
    play = "self-play"
    assert phases == [play, play, "the update", play, "the update"]


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"loss": 1.0}, "loss must be a function"),
        ({"value_target": lambda_returns}, "value_target must be a ValueTarget"),
        ({"sampler": uniform_sampler}, "sampler must be a Sampler"),
        (
            {"value_target": ValueTarget(lambda_returns, 0)},
            "horizon must be an int >= 1: 0",
        ),
    ],
)
def test_hooks_of_the_wrong_type_raise(hooks, message):
    with pytest.raises(ValueError, match=message):
        make_algorithm(CONFIG, GAME, NETWORK, **hooks)


def test_a_sampler_may_use_one_array_twice(algorithm):
    sampler = uniform_sampler()._replace(init=lambda shape: [jnp.zeros(shape)] * 2)
    play = algorithm.self_play  # is the same
    algorithm = make_algorithm(CONFIG, GAME, NETWORK, sampler=sampler)
    algorithm = algorithm._replace(self_play=play)
    state = algorithm.init(VARIABLES)
    for _ in range(2):
        state, metrics = train_iteration(algorithm, CONFIG, state, 0.5)
    assert np.isfinite(metrics["policy_loss"])

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compilations import compilations
from training.tiny_runs import config
from untrained import untrained

from azjax import games
from azjax.training import (
    ValueTarget,
    alphazero,
    lambda_returns,
    make_algorithm,
    train_iteration,
    uniform_sampler,
)
from azjax.training.alphazero import compiled_ahead
from azjax.training.lanes import abstract_state

pytestmark = pytest.mark.usefixtures("shared_programs")
GAME = games.make("tic_tac_toe")
CONFIG = config("unused")


@pytest.fixture(scope="module")
def untrained_network():
    return untrained(GAME, CONFIG.network)


@pytest.fixture(scope="module")
def algorithm(shared_programs, untrained_network):
    return alphazero.make_algorithm(CONFIG, GAME, untrained_network[0])


@pytest.fixture(scope="module")
def runs(algorithm, untrained_network):
    """Returns states and metrics of 3 iterations, the phases that were entered, and the
    programs that were compiled in this thread.

    The iterations are run twice from the same weights, first with programs that are
    compiled ahead.
    """
    found = []

    def init():
        return algorithm.init(untrained_network[1])

    abstract = abstract_state(init, algorithm.shardings)
    for functions in (compiled_ahead(algorithm, abstract), algorithm):
        state, metrics, phases = init(), [], []
        with compilations() as names:
            for _ in range(3):
                state, row = train_iteration(
                    functions, CONFIG, state, 0.5, phases.append
                )
                metrics.append(row)
        found.append((state, metrics, phases, names))
    return found


def test_train_iteration_is_a_pure_function_of_the_state(runs, untrained_network):
    (first, *rest, _), (second, *again, _) = runs
    jax.tree.map(np.testing.assert_array_equal, first.learner, second.learner)
    jax.tree.map(np.testing.assert_array_equal, rest, again)
    assert first.iteration == 3
    # The caller's weights are not donated: the runs have their own.
    leaves = jax.tree.leaves(untrained_network[1].params)
    assert all(np.isfinite(leaf).all() for leaf in leaves)


def test_programs_compiled_ahead_are_not_compiled_again(runs):
    # Insertion and the sampler's preparation; not the search, the index, the gradient
    # and the update.
    assert runs[0][-1].count("jit(divided)") <= 2


def test_no_update_before_min_positions(runs):
    _, metrics, phases, _ = runs[0]
    assert ["policy_loss" in row for row in metrics] == [False, True, True]
    assert metrics[0]["waiting"] == 32
    play = "self-play"
    assert phases == [play, play, "the update", play, "the update"]


def test_an_iteration_is_enqueued_before_a_result_is_read(algorithm, runs, monkeypatch):
    events = []

    def logged(name, function):
        def call(*args):
            events.append(name)
            return function(*args)

        return call

    enqueued = ["self_play", "insert", "make_index"]
    enqueued += ["gradient", "update"] * CONFIG.updates_per_iteration
    functions = algorithm._replace(
        **{name: logged(name, getattr(algorithm, name)) for name in set(enqueued)}
    )
    monkeypatch.setattr(jax, "device_get", logged("read", jax.device_get))
    state = jax.tree.map(jnp.copy, runs[0][0])
    train_iteration(functions, CONFIG, state, 0.5, events.append)
    assert events == ["self-play", *enqueued, "read", "the update", "read"]


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
def test_hooks_of_the_wrong_type_raise(untrained_network, hooks, message):
    with pytest.raises(ValueError, match=message):
        make_algorithm(CONFIG, GAME, untrained_network[0], **hooks)


def test_a_sampler_may_use_one_array_twice(algorithm, untrained_network):
    network, variables = untrained_network
    sampler = uniform_sampler()._replace(init=lambda shape: [jnp.zeros(shape)] * 2)
    other = make_algorithm(CONFIG, GAME, network, sampler=sampler)
    algorithm = algorithm._replace(
        init=other.init, prepare=other.prepare, gradient=other.gradient
    )
    state = algorithm.init(variables)
    for _ in range(2):
        state, metrics = train_iteration(algorithm, CONFIG, state, 0.5)
    assert np.isfinite(metrics["policy_loss"])

import json

import jax
import numpy as np
import optax
import pytest

from azjax.training.config import LearnerConfig
from azjax.training.learner import make_optimizer
from azjax.training.run.optimizer_identity import comparable, optimizer_identity

PARAMS = {"kernel": np.zeros((2, 3), np.float32), "bias": np.zeros(3, np.float32)}


def scaled(factors):
    def scale(updates, state, params=None):
        del params
        return jax.tree.map(lambda update: update * factors, updates), state

    return optax.GradientTransformation(lambda _: optax.EmptyState(), scale)


def identity(optimizer):
    return optimizer_identity(optimizer, PARAMS)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (optax.lion(1e-3), optax.lion(1e-4)),
        (optax.lion(1e-3), optax.sgd(1e-3)),
        (optax.sgd(0.1), optax.sgd(0.1, momentum=0.9)),
        (
            optax.sgd(optax.cosine_decay_schedule(1e-3, 100)),
            optax.sgd(optax.cosine_decay_schedule(1e-3, 200)),
        ),
        # The rate is in the state; only `init` contains it.
        (
            optax.inject_hyperparams(optax.lion)(1e-3),
            optax.inject_hyperparams(optax.lion)(1e-4),
        ),
        # An array that the program holds instead of a number in it.
        (
            scaled(np.array([1.0, 2.0, 3.0], np.float32)),
            scaled(np.array([1.0, 2.0, 4.0], np.float32)),
        ),
    ],
)
def test_different_optimizers_have_different_digests(a, b):
    assert identity(a)["digest"] != identity(b)["digest"]


def test_equal_optimizers_have_equal_identities():
    assert identity(optax.contrib.muon(1e-3)) == identity(optax.contrib.muon(1e-3))
    config = LearnerConfig()
    assert identity(make_optimizer(config)) == identity(make_optimizer(config))


def test_an_identity_contains_the_state_and_the_constants():
    found = identity(optax.lion(1e-4, b1=0.9, b2=0.95))
    assert found["state"][0] == "ScaleByLionState"
    assert {-0.0001, 0.9, 0.95} <= set(found["constants"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_identities_of_other_libraries_are_compared_without_their_digests():
    found = identity(optax.sgd(0.1))
    wanted = found | {"digest": "0", "versions": {"jax": "0.0", "optax": "0.0"}}
    assert comparable(found, found | {"digest": "0"})[1]["digest"] == "0"
    a, b = comparable(found, wanted)
    assert a == b == {name: found[name] for name in ("state", "constants")}

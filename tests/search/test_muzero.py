"""azjax's policies with mctx's signatures against mctx's, with the same arguments."""

import functools
import inspect

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.search import (
    alphazero_policy,
    gumbel_muzero_policy,
    gumbel_policy,
    muzero_policy,
)

PAIRS = {
    "gumbel": (gumbel_muzero_policy, mctx.gumbel_muzero_policy),
    "puct": (muzero_policy, mctx.muzero_policy),
}
SETTINGS = {
    "gumbel": {
        "qtransform": functools.partial(
            mctx.qtransform_completed_by_mix_value, value_scale=0.3, maxvisit_init=10.0
        ),
        "max_num_considered_actions": 3,
        "gumbel_scale": 0.5,
    },
    "puct": {
        "qtransform": functools.partial(
            mctx.qtransform_by_min_max, min_value=-1.0, max_value=1.0
        ),
        "dirichlet_fraction": 0.5,
        "dirichlet_alpha": 0.7,
        "pb_c_init": 2.0,
        "pb_c_base": 100.0,
        "temperature": 0.5,
    },
}
NUM_ACTIONS = 4
KINDS = pytest.mark.parametrize("kind", PAIRS)


@KINDS
def test_the_parameters_and_defaults_are_those_of_mctx(kind):
    ours, theirs = (
        [
            (parameter.name, parameter.kind, parameter.default)
            for parameter in inspect.signature(policy).parameters.values()
        ]
        for policy in PAIRS[kind]
    )
    assert ours == theirs


def model(params, rng_key, action, positions):
    """A model whose positions and outputs are numbers that the actions mix."""
    del rng_key
    after = (positions * 5 + action + 1) % 101
    numbers = jnp.sin(after[:, None] * jnp.arange(1, NUM_ACTIONS + 3) * params)
    fields = {
        "reward": numbers[:, 0],
        "discount": -jnp.ones_like(numbers[:, 0]),
        "value": numbers[:, 1],
        "prior_logits": numbers[:, 2:],
    }
    return mctx.RecurrentFnOutput(**fields), after


def start(dtype=jnp.float32):
    """Returns the first arguments of all policies, for three games."""
    game = jnp.arange(3)
    output, positions = model(0.7, None, game, game)
    fields = {
        "prior_logits": output.prior_logits.astype(dtype),
        "value": output.value.astype(dtype),
        "embedding": positions,
    }
    return 0.7, jax.random.key(7), mctx.RootFnOutput(**fields), model


@KINDS
def test_equal_arguments_give_the_results_of_mctx(kind):
    """The arguments are positional and by keyword."""
    illegal = jnp.eye(3, NUM_ACTIONS)

    @jax.jit
    def run():
        return [
            policy(*start(), 30, illegal, 3, jax.lax.fori_loop, **SETTINGS[kind])
            for policy in PAIRS[kind]
        ]

    assert_same_search(*jax.device_get(run()))


def assert_same_search(ours, theirs):
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_array_equal(
        ours.search_tree.children_index, theirs.search_tree.children_index
    )
    chex.assert_trees_all_close(
        (ours.action_weights, ours.search_tree.node_values),
        (theirs.action_weights, theirs.search_tree.node_values),
        rtol=1e-5,
        atol=1e-6,
    )
    chex.assert_trees_all_equal_shapes_and_dtypes(
        *(
            (
                output.action_weights,
                output.search_tree.replace(extra_data=None, root_invalid_actions=None),
            )
            for output in (ours, theirs)
        )
    )


def test_a_bfloat16_root_becomes_a_float32_tree():
    """The test below covers the other policies."""
    low, exact = (
        jax.eval_shape(lambda dtype=dtype: gumbel_policy(*start(dtype), 8))
        for dtype in (jnp.bfloat16, jnp.float32)
    )
    chex.assert_trees_all_equal_shapes_and_dtypes(low, exact)


@pytest.mark.parametrize(
    ("policy", "reference"),
    [
        *PAIRS.values(),
        (alphazero_policy, alphazero_policy),
        # It shares its search with the first one.
        pytest.param(gumbel_policy, mctx.gumbel_muzero_policy, marks=pytest.mark.slow),
    ],
)
def test_a_bfloat16_root_gives_the_result_of_the_same_float32_root(policy, reference):
    """With the default settings; compared with mctx if it has the policy."""

    @jax.jit
    def run():
        params, rng_key, low, _ = start(jnp.bfloat16)
        exact = low.replace(
            prior_logits=low.prior_logits.astype(jnp.float32),
            value=low.value.astype(jnp.float32),
        )
        return (
            policy(params, rng_key, low, model, 20),
            reference(params, rng_key, exact, model, 20),
        )

    assert_same_search(*jax.device_get(run()))

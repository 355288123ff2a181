import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax.networks import (
    AuxiliaryHead,
    ConvTrunkConfig,
    DenseTrunkConfig,
    NetworkConfig,
    Parts,
    Variables,
    init_network,
    predict,
    predict_in_training,
)

BOARD = (3, 4, 2)
NUM_ACTIONS = 5
CONV = NetworkConfig(
    trunk=ConvTrunkConfig(num_blocks=3, channels=4, global_pooling=True)
)
DENSE = NetworkConfig(
    trunk=DenseTrunkConfig(num_blocks=1, width=6, stem_channels=8, window=2)
)
CONFIGS = pytest.mark.parametrize("config", [CONV, DENSE], ids=["conv", "dense"])


class NormalizedTrunk(nnx.Module):
    """A linear layer and BatchNorm."""

    def __init__(self, observation_shape, rngs):
        height, width, planes = observation_shape
        self.linear = nnx.Linear(height * width * planes, 6, rngs=rngs)
        self.norm = nnx.BatchNorm(6, momentum=0.9, rngs=rngs)

    def __call__(self, observation):
        return self.norm(self.linear(observation.reshape(len(observation), -1)))


class LinearHead(nnx.Module):
    """A linear layer."""

    def __init__(self, features_shape, num_outputs, rngs):
        self.linear = nnx.Linear(features_shape[-1], num_outputs, rngs=rngs)

    def __call__(self, features):
        return self.linear(features)


class Returns(nnx.Module):
    """Returns a constant array."""

    def __init__(self, shape):
        self.shape = shape

    def __call__(self, x):
        return jnp.zeros(self.shape)


class DroppingTrunk(nnx.Module):
    """Has its own random state."""

    def __init__(self, observation_shape, rngs):
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, observation):
        return self.dropout(observation)


@functools.cache
def init(config=DENSE, parts=None, seed=0):
    return init_network(jax.random.key(seed), BOARD, NUM_ACTIONS, config, parts)


def observations(batch_size=4):
    return 3 + jax.random.normal(jax.random.key(1), (batch_size, *BOARD))


def leaves(state, *path) -> dict[str, jax.Array]:
    """Returns the arrays of one module."""
    return dict(functools.reduce(lambda inner, name: inner[name], path, state))


def perturbed(variables: Variables) -> Variables:
    """Returns changed weights, so that no layer has the zeros of the initialization."""
    rng = np.random.default_rng(0)
    return jax.tree.map(
        lambda leaf: (
            np.asarray(leaf) + rng.normal(scale=0.1, size=leaf.shape).astype(np.float32)
        ),
        variables,
    )


@CONFIGS
@pytest.mark.parametrize(("value_head", "num_logits"), [("wdl", 3), ("scalar", 1)])
def test_a_prediction_has_policy_and_value_logits(config, value_head, num_logits):
    network, variables = init(dataclasses.replace(config, value_head=value_head))
    prediction = jax.eval_shape(lambda: predict(network, variables, observations()))
    chex.assert_shape(prediction.policy_logits, (4, NUM_ACTIONS))
    chex.assert_shape(prediction.value_logits, (4, num_logits))


@CONFIGS
def test_training_and_play_agree_exactly(config):
    network, variables = init(config)
    variables = perturbed(variables)
    in_play = predict(network, variables, observations())
    in_training, _ = predict_in_training(network, variables, observations())
    chex.assert_trees_all_equal(in_play, in_training)


@CONFIGS
def test_built_in_networks_have_no_batch_statistics(config):
    network, variables = init(config)
    _, batch_stats = predict_in_training(network, variables, observations())
    assert not jax.tree.leaves((variables.batch_stats, batch_stats))


@CONFIGS
def test_a_bfloat16_network_learns_and_returns_float32(config):
    network, variables = init(dataclasses.replace(config, dtype="bfloat16"))
    prediction = predict(network, variables, observations())
    chex.assert_type(jax.tree.leaves((variables, prediction)), jnp.float32)


@CONFIGS
def test_bfloat16_outputs_are_close_to_float32_outputs(config):
    network, variables = init(config)
    low_network, _ = init(dataclasses.replace(config, dtype="bfloat16"))
    variables = perturbed(variables)
    exact = predict(network, variables, observations())
    near = predict(low_network, variables, observations())
    chex.assert_trees_all_close(near, exact, rtol=0.05, atol=0.1)
    assert not np.array_equal(near.policy_logits, exact.policy_logits)


@CONFIGS
def test_the_same_key_draws_the_same_parameters(config):
    again = init.__wrapped__(config)
    chex.assert_trees_all_equal(init(config)[1], again[1])


@CONFIGS
def test_equal_networks_are_compiled_once(config):
    chex.clear_trace_counter()
    compiled = jax.jit(chex.assert_max_traces(predict, n=1))
    for seed in range(2):
        compiled(*init(config, seed=seed), observations())


@CONFIGS
def test_every_parameter_can_learn(config):
    network, variables = init(config)

    def loss(variables):
        # Weights near zero: no layer of these few features is dead.
        policy_logits, value_logits, _ = predict(network, variables, observations() - 3)
        return (policy_logits**2).sum() + (value_logits**2).sum()

    gradients = jax.device_get(jax.jit(jax.grad(loss))(perturbed(variables)))
    gradients = jax.tree.leaves(gradients)
    assert all((gradient != 0).any() for gradient in gradients)


def test_custom_trunk_and_heads_are_used():
    parts = Parts(
        trunk=NormalizedTrunk,
        policy_head=lambda shape, rngs: LinearHead(shape, NUM_ACTIONS, rngs),
        value_head=lambda shape, rngs: LinearHead(shape, 1, rngs),
    )
    network, variables = init(parts=parts)
    assert set(variables.params["trunk"]) == {"linear", "norm"}
    prediction = jax.eval_shape(lambda: predict(network, variables, observations()))
    chex.assert_shape(prediction.policy_logits, (4, NUM_ACTIONS))
    chex.assert_shape(prediction.value_logits, (4, 1))


@pytest.mark.parametrize("part", ["trunk", "policy_head", "value_head"])
def test_a_single_part_can_be_custom(part):
    factories = {
        "trunk": NormalizedTrunk,
        "policy_head": lambda shape, rngs: LinearHead(shape, NUM_ACTIONS, rngs),
        "value_head": lambda shape, rngs: LinearHead(shape, 3, rngs),
    }
    network, variables = init(parts=Parts(**{part: factories[part]}))
    prediction = predict(network, variables, observations())
    chex.assert_shape(prediction[:2], [(4, NUM_ACTIONS), (4, 3)])


def test_batch_statistics_are_moving_averages_with_momentum_0_9():
    network, variables = init(parts=Parts(trunk=NormalizedTrunk))
    x = observations()
    linear = leaves(variables.params, "trunk", "linear")
    features = x.reshape(len(x), -1) @ linear["kernel"] + linear["bias"]
    _, batch_stats = predict_in_training(network, variables, x)
    # From mean 0 and variance 1, with momentum 0.9.
    norm = leaves(batch_stats, "trunk", "norm")
    np.testing.assert_allclose(norm["mean"], 0.1 * features.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(norm["var"], 0.9 + 0.1 * features.var(axis=0), rtol=1e-4)


def test_play_normalizes_by_the_batch_statistics():
    network, variables = init(parts=Parts(trunk=NormalizedTrunk))
    stats = leaves(variables.batch_stats, "trunk", "norm")
    moved = jax.tree.map(lambda stat: stat + 1, variables.batch_stats)
    assert set(stats) == {"mean", "var"}
    before = predict(network, variables, observations())
    after = predict(network, variables._replace(batch_stats=moved), observations())
    assert (before.policy_logits != after.policy_logits).all()


def test_play_evaluates_positions_independently_even_with_batch_statistics():
    network, variables = init(parts=Parts(trunk=NormalizedTrunk))
    x = observations()
    together = predict(network, variables, x)
    alone = predict(network, variables, x[:1])
    chex.assert_trees_all_close(
        jax.tree.map(lambda leaf: leaf[:1], together), alone, atol=1e-5
    )


def test_play_and_evaluation_change_no_variables():
    network, variables = init(parts=Parts(trunk=NormalizedTrunk))
    before = jax.tree.map(np.array, variables)
    predict(network, variables, observations())
    predict_in_training(network, variables, observations())
    chex.assert_trees_all_equal(variables, before)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            Parts(trunk=lambda shape, rngs: Returns((6,))),
            r"trunk must return features \[B, ...\].*returned \(6,\)",
        ),
        (
            Parts(policy_head=lambda shape, rngs: Returns((2, 4))),
            r"policy head must return \[B, 5\] logits.*returned \(2, 4\)",
        ),
        (
            Parts(policy_head=lambda shape, rngs: Returns((5,))),
            r"policy head must return \[B, 5\] logits.*returned \(5,\)",
        ),
        (
            Parts(value_head=lambda shape, rngs: Returns((2, 2))),
            r"value head must return \[B, 3\] or \[B, 1\] logits.*returned \(2, 2\)",
        ),
        (
            Parts(value_head=lambda shape, rngs: Returns((2,))),
            r"value head must return \[B, 3\] or \[B, 1\] logits.*returned \(2,\)",
        ),
    ],
)
def test_a_part_of_the_wrong_shape_is_refused(parts, message):
    with pytest.raises(ValueError, match=message) as error:
        init(parts=parts)
    assert "\n" not in str(error.value)


def test_a_part_with_a_random_state_is_refused():
    with pytest.raises(ValueError, match=r"Dropout.*trunk\.dropout") as error:
        init(parts=Parts(trunk=DroppingTrunk))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"trunk": "dense"}, r"network.trunk must be .*DenseTrunkConfig\(\): 'dense'"),
        ({"value_head": "tanh"}, "network.value_head must be wdl or scalar"),
        ({"line_length": -1}, "network.line_length must be an int from 0 to 19: -1"),
        ({"heads": "wide"}, "network.heads must be dense or board"),
        ({"dtype": "float16"}, "network.dtype must be float32 or bfloat16"),
    ],
)
def test_a_wrong_setting_is_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        NetworkConfig(**setting)


@CONFIGS
def test_a_trunk_has_weights_for_the_line_planes(config):
    def stem(line_length):
        with_lines = dataclasses.replace(config, line_length=line_length)
        key = jax.random.key(0)
        _, variables = init_network(key, BOARD, NUM_ACTIONS, with_lines)
        return variables.params["trunk"]["stem"]["kernel"].shape[2]

    assert (stem(0), stem(3)) == (BOARD[2], BOARD[2] + 2)


@pytest.mark.parametrize(
    ("shape", "length", "message"),
    [
        (BOARD, 5, "line_length must be at most 4, the longer side of the board: 5"),
        ((3, 4, 1), 3, r"requires a plane for .* is \(3, 4, 1\): 3"),
        ((3, 33, 2), 3, r"at most 32 columns, .* is \(3, 33, 2\): 3"),
    ],
)
def test_line_planes_need_a_board_with_the_stones_of_both_players(
    shape, length, message
):
    config = dataclasses.replace(DENSE, line_length=length)
    with pytest.raises(ValueError, match=message):
        init_network(jax.random.key(0), shape, NUM_ACTIONS, config)


def init_board_heads(trunk, actions_per_cell, num_actions=25):
    config = NetworkConfig(trunk=trunk, heads="board")
    return init_network(
        jax.random.key(0),
        BOARD,
        num_actions,
        config,
        actions_per_cell=actions_per_cell,
    )


def test_board_heads_have_far_fewer_weights():
    sizes = [
        sum(leaf.size for leaf in jax.tree.leaves(variables.params["policy_head"]))
        for _, variables in (
            init_board_heads(CONV.trunk, 2),
            init_network(jax.random.key(0), BOARD, 25, CONV),
        )
    ]
    assert sizes[0] < sizes[1] / 2
    network, variables = init_board_heads(CONV.trunk, 2)
    prediction = jax.eval_shape(lambda: predict(network, variables, observations()))
    chex.assert_shape(prediction.policy_logits, (4, 25))


@pytest.mark.parametrize(
    ("trunk", "actions_per_cell", "message"),
    [
        (DENSE.trunk, 2, r"only with a trunk .* 3x4 board, .* returns \(6,\)"),
        (CONV.trunk, 0, "network.heads must be dense for a game whose actions"),
        (CONV.trunk, 3, "actions_per_cell must be at most 25 actions / 12 cells: 3"),
        (CONV.trunk, -1, "actions_per_cell must be an int >= 1: -1"),
        (CONV.trunk, 1.0, "actions_per_cell must be an int >= 1: 1.0"),
    ],
)
def test_board_heads_need_a_board_and_actions_of_cells(
    trunk, actions_per_cell, message
):
    with pytest.raises(ValueError, match=message):
        init_board_heads(trunk, actions_per_cell)


def test_a_board_value_head_needs_a_board_with_any_policy_head():
    parts = Parts(policy_head=lambda shape, rngs: LinearHead(shape, 5, rngs))
    config = dataclasses.replace(DENSE, heads="board")
    with pytest.raises(ValueError, match="only with a trunk that returns features"):
        init_network(jax.random.key(0), BOARD, NUM_ACTIONS, config, parts)


def auxiliary_head(name):
    return AuxiliaryHead(
        name=name,
        make=lambda shape, rngs: LinearHead(shape, 7, rngs),
        target=lambda state, final_state: final_state,
        loss=lambda outputs, targets: outputs.mean(axis=-1),
    )


@pytest.mark.parametrize("name", ["margin", "items", "__class__"])
def test_auxiliary_heads_do_not_change_the_other_outputs(name):
    network, variables = init(parts=Parts(auxiliary=(auxiliary_head(name),)))
    prediction = predict(network, variables, observations())
    assert set(prediction.auxiliary) == {name}
    chex.assert_shape(prediction.auxiliary[name], (4, 7))
    plain = predict(*init(), observations())
    assert plain.auxiliary == {}
    # Policy and value equal those of the network without it.
    chex.assert_trees_all_equal(prediction[:2], plain[:2])


@pytest.mark.parametrize("name", ["policy", "value", "", "two words", "a.b"])
def test_a_wrong_name_of_an_auxiliary_head_is_refused(name):
    with pytest.raises(ValueError, match="must be an identifier other than"):
        auxiliary_head(name)


def test_a_single_head_is_refused_as_a_tuple_of_heads():
    with pytest.raises(ValueError, match="must be a tuple of AuxiliaryHead"):
        Parts(auxiliary=auxiliary_head("margin"))


def test_two_auxiliary_heads_with_the_same_name_are_refused():
    with pytest.raises(ValueError, match="different names"):
        Parts(auxiliary=(auxiliary_head("margin"), auxiliary_head("margin")))

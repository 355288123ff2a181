import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from untrained import in_one_program, without_arrays

from azjax.networks import (
    AuxiliaryHead,
    ConvTrunkConfig,
    CustomModules,
    DenseTrunkConfig,
    NetworkConfig,
    Variables,
    cast_variables,
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


def linear(num_outputs):
    """Returns a function that makes a head: a linear layer."""
    return lambda shape, rngs: nnx.Linear(shape[-1], num_outputs, rngs=rngs)


class Returns(nnx.Module):
    """Returns a constant array."""

    def __init__(self, shape):
        self.shape = shape

    def __call__(self, x):
        return jnp.zeros(self.shape)


@functools.cache
def init(config=DENSE, modules=None):
    return in_one_program(
        init_network, jax.random.key(0), BOARD, NUM_ACTIONS, config, modules
    )


@functools.cache
def init_shapes(config=DENSE, modules=None, *, seed=0, board=BOARD):
    return without_arrays(
        init_network, jax.random.key(seed), board, NUM_ACTIONS, config, modules
    )


def observations(batch_size=4):
    chance = np.random.default_rng(1)
    return chance.normal(3, size=(batch_size, *BOARD)).astype(np.float32)


def shapes_of(network, variables):
    """Returns the shapes of a prediction."""
    return jax.eval_shape(lambda v: predict(network, v, observations()), variables)


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
@pytest.mark.parametrize(
    ("value_head", "num_logits", "dtype"),
    [("wdl", 3, "float32"), ("scalar", 1, "bfloat16")],
)
def test_a_prediction_has_float32_logits_of_policy_and_value(
    config, value_head, num_logits, dtype
):
    config = dataclasses.replace(config, value_head=value_head, dtype=dtype)
    network, variables = init_shapes(config)
    prediction = shapes_of(network, variables)
    chex.assert_shape(prediction[:2], [(4, NUM_ACTIONS), (4, num_logits)])
    chex.assert_type(jax.tree.leaves((variables, prediction)), jnp.float32)


@CONFIGS
def test_training_and_play_agree_exactly_and_bfloat16_is_close(config):
    network, variables = init(config)
    low_network, _ = init_shapes(dataclasses.replace(config, dtype="bfloat16"))

    @jax.jit
    def compute(variables, x):
        in_training, batch_stats = predict_in_training(network, variables, x)
        near = predict(low_network, variables, x)
        return predict(network, variables, x), in_training, near, batch_stats

    found = compute(perturbed(variables), observations())
    in_play, in_training, near, batch_stats = jax.device_get(found)
    chex.assert_trees_all_equal(in_play, in_training)
    assert not jax.tree.leaves((variables.batch_stats, batch_stats))
    chex.assert_trees_all_close(near, in_play, rtol=0.05, atol=0.1)
    assert not np.array_equal(near.policy_logits, in_play.policy_logits)


def test_cast_variables_predict_exactly_the_same():
    network, _ = init_shapes(dataclasses.replace(CONV, dtype="bfloat16"))
    variables = perturbed(init(CONV)[1])
    cast = cast_variables(network, variables)
    trunk, head = cast.params["trunk"], cast.params["value_head"]
    assert trunk["stem"]["kernel"].dtype == trunk["stem"]["bias"].dtype == jnp.bfloat16
    assert head["linear"]["kernel"].dtype == jnp.float32
    # On a CPU XLA would not round the float32 parameters.
    options = {"xla_allow_excess_precision": False}
    compute = jax.jit(functools.partial(predict, network), compiler_options=options)
    predictions = compute(cast, observations()), compute(variables, observations())
    chex.assert_trees_all_equal(*predictions)


def test_variables_that_compute_in_float32_are_not_cast():
    network, variables = init(CONV)
    chex.assert_trees_all_equal(
        cast_variables(network, variables), variables, strict=True
    )


def test_the_same_key_draws_the_same_parameters():
    again = init.__wrapped__()
    chex.assert_trees_all_equal(init()[1], again[1])


@CONFIGS
def test_equal_networks_are_traced_once(config):
    chex.clear_trace_counter()
    compiled = jax.jit(chex.assert_max_traces(predict, n=1))
    for seed in range(2):
        network, variables = init_shapes(config, seed=seed)
        jax.eval_shape(compiled, network, variables, observations())


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


MODULES = {
    "trunk": NormalizedTrunk,
    "policy_head": linear(NUM_ACTIONS),
    "value_head": linear(1),
}


@pytest.mark.parametrize("names", [["trunk"], ["policy_head"], ["value_head"], MODULES])
def test_custom_trunk_and_heads_are_used(names):
    modules = CustomModules(**{name: MODULES[name] for name in names})
    network, variables = init_shapes(modules=modules)
    assert (set(variables.params["trunk"]) == {"linear", "norm"}) == ("trunk" in names)
    num_values = 1 if "value_head" in names else 3
    shapes = [(4, NUM_ACTIONS), (4, num_values)]
    chex.assert_shape(shapes_of(network, variables)[:2], shapes)


@pytest.fixture(scope="module")
def normalized():
    """Returns a network with batch statistics, its variables and its outputs: in play,
    there of the first position alone, there with other statistics, and in training.
    """
    network, variables = init(modules=CustomModules(trunk=NormalizedTrunk))

    @jax.jit
    def compute(variables, x):
        moved = jax.tree.map(lambda stat: stat + 1, variables.batch_stats)
        return (
            predict(network, variables, x),
            predict(network, variables, x[:1]),
            predict(network, variables._replace(batch_stats=moved), x),
            predict_in_training(network, variables, x),
        )

    return network, variables, jax.device_get(compute(variables, observations()))


def test_batch_statistics_are_moving_averages_with_momentum_0_9(normalized):
    _, variables, (*_, (_, batch_stats)) = normalized
    linear = leaves(variables.params, "trunk", "linear")
    features = observations().reshape(4, -1) @ linear["kernel"] + linear["bias"]
    # From mean 0 and variance 1, with momentum 0.9.
    norm = leaves(batch_stats, "trunk", "norm")
    assert set(norm) == {"mean", "var"}
    mean, variance = features.mean(axis=0), features.var(axis=0)
    np.testing.assert_allclose(norm["mean"], 0.1 * mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(norm["var"], 0.9 + 0.1 * variance, rtol=1e-4)


def test_play_normalizes_by_the_batch_statistics(normalized):
    *_, (before, alone, after, _) = normalized
    assert (before.policy_logits != after.policy_logits).all()
    # So it evaluates positions independently.
    first = jax.tree.map(lambda leaf: leaf[:1], before)
    chex.assert_trees_all_close(first, alone, rtol=1e-5, atol=1e-5)


def returning(*shape):
    return lambda features_shape, rngs: Returns(shape)


@pytest.mark.parametrize(
    ("part", "make", "message"),
    [
        ("trunk", returning(6), r"trunk .* features \[B, ...\].*returned \(6,\)"),
        ("policy_head", returning(2, 4), r"policy .* \[B, 5\] .*ed \(2, 4\)"),
        ("policy_head", returning(5), r"policy .* \[B, 5\] .*returned \(5,\)"),
        ("value_head", returning(2, 2), r"value .*3\] or \[B, 1\] .*ed \(2, 2\)"),
        ("value_head", returning(2), r"value .*3\] or \[B, 1\] .*returned \(2,\)"),
        (
            "trunk",
            lambda shape, rngs: nnx.Sequential(nnx.Dropout(0.5, rngs=rngs)),
            r"Dropout.*trunk\.layers",  # it has its own random state
        ),
    ],
)
def test_a_part_of_the_wrong_shape_or_with_a_random_state_is_refused(
    part, make, message
):
    with pytest.raises(ValueError, match=message) as error:
        init_shapes(modules=CustomModules(**{part: make}))
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


def test_a_trunk_has_weights_for_the_line_planes():
    with_lines = dataclasses.replace(DENSE, line_length=3)
    stems = [
        init_shapes(config)[1].params["trunk"]["stem"]["kernel"]
        for config in (DENSE, with_lines)
    ]
    assert [stem.shape[2] for stem in stems] == [BOARD[2], BOARD[2] + 2]


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
        init_shapes(config, board=shape)


FLAT = ConvTrunkConfig(num_blocks=0, channels=4)


@pytest.mark.parametrize(
    ("trunk", "actions_per_cell", "message"),
    [
        (DENSE.trunk, 2, r"only with a trunk .* 3x4 board, .* returns \(6,\)"),
        (FLAT, 0, "network.heads must be dense for a game whose actions"),
        (FLAT, 3, "actions_per_cell must be at most 25 actions / 12 cells: 3"),
        (FLAT, -1, "actions_per_cell must be an int >= 1: -1"),
        (FLAT, 1.0, "actions_per_cell must be an int >= 1: 1.0"),
    ],
)
def test_board_heads_need_a_board_and_actions_of_cells(
    trunk, actions_per_cell, message
):
    config = NetworkConfig(trunk, heads="board")
    with pytest.raises(ValueError, match=message):
        without_arrays(
            *(init_network, jax.random.key(0), BOARD, 25, config),
            actions_per_cell=actions_per_cell,
        )


def test_a_board_value_head_needs_a_board_with_any_policy_head():
    modules = CustomModules(policy_head=linear(NUM_ACTIONS))
    config = dataclasses.replace(DENSE, heads="board")
    with pytest.raises(ValueError, match="only with a trunk that returns features"):
        init_shapes(config, modules)


def auxiliary_head(name):
    return AuxiliaryHead(
        name=name,
        make=linear(7),
        target=lambda state, final_state: final_state,
        loss=lambda outputs, targets: outputs.mean(axis=-1),
    )


def test_auxiliary_heads_do_not_change_the_other_outputs():
    names = ["margin", "items", "__class__"]
    network, variables = init(
        modules=CustomModules(auxiliary=(*map(auxiliary_head, names),))
    )
    plain_network, plain_variables = init()

    @jax.jit
    def compute(variables, plain_variables, x):
        plain = predict(plain_network, plain_variables, x)
        return predict(network, variables, x), plain

    prediction, plain = compute(variables, plain_variables, observations())
    assert set(prediction.auxiliary) == set(names)
    chex.assert_shape(list(prediction.auxiliary.values()), (4, 7))
    assert plain.auxiliary == {}
    # Policy and value equal those of the network without them.
    chex.assert_trees_all_equal(prediction[:2], plain[:2])


@pytest.mark.parametrize("name", ["policy", "value", "", "two words", "a.b"])
def test_a_wrong_name_of_an_auxiliary_head_is_refused(name):
    with pytest.raises(ValueError, match="must be an identifier other than"):
        auxiliary_head(name)


def test_parts_need_a_tuple_of_heads_with_different_names():
    head = auxiliary_head("margin")
    with pytest.raises(ValueError, match="must be a tuple of AuxiliaryHead"):
        CustomModules(auxiliary=head)
    with pytest.raises(ValueError, match="different names"):
        CustomModules(auxiliary=(head, head))

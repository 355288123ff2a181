import dataclasses
import json

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax.networks import (
    ConvTrunk,
    ConvTrunkConfig,
    DenseTrunk,
    DenseTrunkConfig,
    TrunkConfig,
    register_trunk,
)
from azjax.networks.trunks import TRUNKS, ConvBlock, DenseBlock

BOARD = (3, 4, 2)


def conv_trunk(num_blocks=2, channels=5, global_pooling=False, dtype=jnp.float32):
    return ConvTrunk(
        BOARD,
        num_blocks=num_blocks,
        channels=channels,
        global_pooling=global_pooling,
        dtype=dtype,
        rngs=nnx.Rngs(jax.random.key(0)),
    )


def dense_trunk(
    num_blocks=2, window=2, shape=BOARD, input_skip=True, dtype=jnp.float32
):
    return DenseTrunk(
        shape,
        num_blocks=num_blocks,
        width=6,
        stem_channels=3,
        window=window,
        input_skip=input_skip,
        dtype=dtype,
        rngs=nnx.Rngs(jax.random.key(0)),
    )


def observations(shape=BOARD, batch_size=2):
    return jax.random.normal(jax.random.key(1), (batch_size, *shape))


def set_ones(variable: nnx.Param) -> None:
    variable.set_value(jnp.ones_like(variable[...]))


@pytest.mark.parametrize("num_blocks", [0, 1, 3])
def test_the_conv_trunk_keeps_the_board(num_blocks):
    features = jax.eval_shape(
        lambda: conv_trunk(num_blocks, global_pooling=True)(observations())
    )
    assert features.shape == (2, 3, 4, 5)


@pytest.mark.parametrize("input_skip", [False, True])
@pytest.mark.parametrize("num_blocks", [0, 2])
def test_the_dense_trunk_makes_a_vector(num_blocks, input_skip):
    trunk = dense_trunk(num_blocks, input_skip=input_skip)
    assert jax.eval_shape(trunk, observations()).shape == (2, 6)


def test_the_dense_layers_get_the_cells_beside_the_windows():
    trunk = dense_trunk(0)
    kernel = trunk.project.kernel[...]
    num_cells = np.prod(BOARD)
    plain = dense_trunk(0, input_skip=False)
    num_features = plain.project.kernel.shape[0]
    assert kernel.shape[0] == num_features + num_cells
    # Of the windows nothing: what is left is linear in the cells.
    trunk.project.kernel.set_value(kernel.at[:num_features].set(0))
    x = observations()
    expected = nnx.relu(x.reshape(len(x), -1) @ kernel[num_features:])
    np.testing.assert_allclose(trunk(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("global_pooling", [False, True])
def test_a_new_conv_trunk_is_its_stem(global_pooling):
    trunk = conv_trunk(3, global_pooling=global_pooling)
    x = observations()
    np.testing.assert_array_equal(trunk(x), nnx.relu(trunk.stem(x)))


def test_a_new_dense_block_is_the_identity():
    block = DenseBlock(6, dtype=jnp.float32, rngs=nnx.Rngs(jax.random.key(0)))
    x = observations((6,))
    np.testing.assert_array_equal(block(x), x)


def test_a_block_adds_two_convolutions_of_its_scaled_input():
    # One cell and one channel: only the center of each kernel has an effect.
    block = ConvBlock(
        1,
        scale=0.5,
        global_pooling=False,
        dtype=jnp.float32,
        rngs=nnx.Rngs(jax.random.key(0)),
    )
    set_ones(block.conv1.kernel)
    set_ones(block.conv2.kernel)
    x = jnp.array([4.0, -4.0]).reshape(2, 1, 1, 1)
    np.testing.assert_allclose(block(x).ravel(), [4 + 0.5 * 4, -4])


def test_a_block_divides_its_input_by_the_root_of_its_height():
    scales = [block.scale for block in conv_trunk(4).blocks]
    np.testing.assert_allclose(scales, [1, 2**-0.5, 3**-0.5, 0.5])


def test_every_third_block_pools():
    blocks = conv_trunk(6, global_pooling=True).blocks
    assert [b.pooled is not None for b in blocks] == [False, False, True] * 2


def test_blocks_do_not_pool_by_default():
    assert all(block.pooled is None for block in conv_trunk(6).blocks)


def test_the_receptive_field_of_a_block_without_pooling_is_two_cells():
    assert not sees_across_the_board(global_pooling=False)


def test_the_receptive_field_of_a_block_with_pooling_is_the_board():
    assert sees_across_the_board(global_pooling=True)


def sees_across_the_board(*, global_pooling: bool) -> bool:
    block = ConvBlock(
        2,
        scale=1.0,
        global_pooling=global_pooling,
        dtype=jnp.float32,
        rngs=nnx.Rngs(jax.random.key(0)),
    )
    set_ones(block.conv1.kernel)
    set_ones(block.conv2.kernel)
    if block.pooled is not None:
        set_ones(block.pooled.kernel)
    x = jnp.ones((1, 9, 9, 2))
    changed = block(x.at[0, 0, 0].set(2.0)) - block(x)
    return bool(changed[0, -1, -1, 0] != 0)


def test_pooling_is_the_mean_and_the_maximum():
    block = ConvBlock(
        1,
        scale=1.0,
        global_pooling=True,
        dtype=jnp.float32,
        rngs=nnx.Rngs(jax.random.key(0)),
    )
    center = jnp.zeros((3, 3, 1, 1)).at[1, 1].set(1.0)
    block.conv1.kernel.set_value(center)
    block.conv2.kernel.set_value(center)
    assert block.pooled is not None
    block.pooled.kernel.set_value(jnp.array([[10.0], [100.0]]))
    x = jnp.array([1.0, 2.0, 6.0]).reshape(1, 1, 3, 1)
    # x + (x + 10 * mean + 100 * maximum)
    np.testing.assert_allclose(block(x).ravel(), [632, 634, 642])


@pytest.mark.parametrize("window", [1, 2, 3, 9])
def test_the_windows_of_a_dense_trunk_cover_the_board(window):
    # For each changed cell, the output of a window changes.
    trunk = dense_trunk(0, window=window)
    x = observations(batch_size=1)
    jacobian = jax.jit(jax.jacobian(trunk.stem))(x)
    windows = np.abs(jacobian).sum(axis=(0, 1, 2, 3, 4, 7))
    assert windows.shape == (3, 4)
    assert (windows > 0).all()


def test_a_window_larger_than_the_board_is_cut_to_it():
    trunk = dense_trunk(0, window=9)
    chex.assert_shape(trunk.stem(observations()), (2, 1, 1, 3))


def test_a_bfloat16_convolutional_trunk_computes_in_bfloat16():
    features = jax.eval_shape(lambda: conv_trunk(dtype=jnp.bfloat16)(observations()))
    assert features.dtype == jnp.bfloat16


@pytest.mark.parametrize(("dtype", "name"), [("float32", "f32"), ("bfloat16", "bf16")])
def test_a_dense_trunk_multiplies_in_its_dtype_and_returns_float32(dtype, name):
    trunk = dense_trunk(2, dtype=jnp.dtype(dtype))
    lines = jax.jit(trunk).lower(observations()).as_text().splitlines()
    types = [line.split(" : ")[1] for line in lines if "dot_general" in line]
    assert len(types) == 7  # the windows, mix, project and two for each block
    for factors_and_result in types:
        factors, result = factors_and_result.split(" -> ")
        assert factors.count(f"x{name}>") == 2
        assert "xf32>" in result
    assert trunk(observations()).dtype == jnp.float32


def test_gradients_of_a_bfloat16_dense_trunk_are_close_to_float32_gradients():
    def gradients(dtype):
        trunk = dense_trunk(2, dtype=dtype)
        for block in trunk.blocks:  # zero at first, which hides the first layer
            set_ones(block.dense2.kernel)
        graph, params = nnx.split(trunk)
        x = observations()
        return jax.grad(lambda params: nnx.merge(graph, params)(x).sum())(params)

    low, exact = gradients(jnp.bfloat16), gradients(jnp.float32)
    norms = jax.tree.map(jnp.linalg.norm, exact)
    errors = jax.tree.map(lambda a, b: jnp.linalg.norm(a - b), low, exact)
    for error, norm in zip(
        jax.tree.leaves(errors), jax.tree.leaves(norms), strict=True
    ):
        assert norm > 0
        assert 0 <= error < 0.05 * norm
    assert max(jax.tree.leaves(errors)) > 0


def test_the_windows_of_a_dense_trunk_are_a_convolution():
    stem, x = dense_trunk(0).stem, observations()
    expected = jax.lax.conv_general_dilated(
        x,
        stem.kernel[...],
        window_strides=(1, 1),
        padding="VALID",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    chex.assert_trees_all_close(stem(x), expected + stem.bias[...], atol=1e-5)


@pytest.mark.parametrize("trunk", [conv_trunk, dense_trunk])
def test_the_parameters_of_a_bfloat16_trunk_are_float32(trunk):
    chex.assert_type(jax.tree.leaves(nnx.state(trunk(dtype=jnp.bfloat16))), jnp.float32)


@pytest.mark.parametrize("trunk", [conv_trunk, dense_trunk])
def test_a_trunk_evaluates_positions_independently(trunk):
    x = observations(batch_size=3)
    model = jax.jit(trunk())
    np.testing.assert_allclose(model(x)[1:2], model(x[1:2]), rtol=1e-5, atol=1e-6)


# Registration


@register_trunk("sum")
@dataclasses.dataclass(frozen=True)
class SumConfig(TrunkConfig):
    """A user's trunk."""

    sizes: tuple[int, ...] = (4,)

    def make(self, observation_shape, *, dtype, rngs):
        del dtype
        return nnx.Linear(observation_shape[-1], self.sizes[0], rngs=rngs)


@pytest.mark.parametrize(
    "config",
    [
        ConvTrunkConfig(channels=8, global_pooling=True),
        DenseTrunkConfig(window=2),
        SumConfig(sizes=(3, 2)),
    ],
    ids=str,
)
def test_the_settings_of_a_trunk_survive_json(config):
    content = json.loads(json.dumps(config.to_json()))
    assert content["name"] == TRUNKS.name_of(config)
    assert TrunkConfig.from_json(content) == config


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"name": "tower"},
            "unknown trunk 'tower'; known trunks are conv, dense, sum; ",
        ),
        ({"name": "sun"}, "did you mean sum"),
        ({}, "unknown trunk 'None'"),
        ({"name": ["conv"]}, "unknown trunk"),
        ({"name": "conv", "width": 3}, "unknown setting width"),
        ({"name": "conv", "channels": "8"}, "channels has the wrong type: '8'"),
        ({"name": "conv", "channels": 10**9}, "channels must be .* to 2048"),
        ("conv", "must be an object"),
    ],
)
def test_unknown_trunks_raise(content, message):
    with pytest.raises(ValueError, match=message) as error:
        TrunkConfig.from_json(content)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (
            ConvTrunkConfig,
            {"num_blocks": -1},
            "trunk.num_blocks must be an int",
        ),
        (ConvTrunkConfig, {"channels": 0}, "trunk.channels must be .* 1 to 2048: 0"),
        (
            ConvTrunkConfig,
            {"global_pooling": 1},
            "global_pooling must be True or False",
        ),
        (DenseTrunkConfig, {"window": 0}, "trunk.window must be .* 1 to 64: 0"),
        (DenseTrunkConfig, {"width": True}, "trunk.width must be an int"),
    ],
)
def test_a_wrong_setting_of_a_trunk_is_refused(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        kind(**settings)


class Plain(TrunkConfig):
    def make(self, observation_shape, *, dtype, rngs):
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Other(TrunkConfig):
    def make(self, observation_shape, *, dtype, rngs):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("plain", Plain, "must be a frozen dataclass"),
        ("int", int, "must be a frozen dataclass"),
        ("Own Trunk", Other, "name of a trunk must be like my_name"),
        ("sum", Other, "trunk 'sum' is already registered"),
    ],
)
def test_invalid_trunks_are_not_registered(name, kind, message):
    with pytest.raises(ValueError, match=message):
        register_trunk(name)(kind)


def test_a_class_of_the_same_name_in_another_module_is_not_registered():
    @dataclasses.dataclass(frozen=True)
    class Namesake(Other):
        __module__ = "another_module"
        __qualname__ = SumConfig.__qualname__

    with pytest.raises(ValueError, match="trunk 'sum' is already registered"):
        register_trunk("sum")(Namesake)
    assert TRUNKS.find("sum") is SumConfig


def test_a_module_can_be_run_again():
    assert register_trunk("sum")(SumConfig) is TRUNKS.find("sum")


def test_settings_without_a_name_cannot_be_written():
    with pytest.raises(ValueError, match="is not a registered trunk"):
        Other().to_json()

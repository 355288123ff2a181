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


def conv_block(channels=1, **settings):
    settings = {"scale": 1.0, "global_pooling": False} | settings
    rngs = nnx.Rngs(jax.random.key(0))
    return ConvBlock(channels, dtype=jnp.float32, rngs=rngs, **settings)


def observations(shape=BOARD, batch_size=2):
    chance = np.random.default_rng(1)
    return chance.normal(size=(batch_size, *shape)).astype(np.float32)


def set_ones(variable: nnx.Param) -> None:
    variable.set_value(jnp.ones_like(variable[...]))


# Tests make their modules in `jax.jit`, so that one program computes everything.


@pytest.mark.parametrize("num_blocks", [0, 3])
def test_the_conv_trunk_keeps_the_board_and_the_dense_trunk_makes_a_vector(num_blocks):
    def make(x):
        half = conv_trunk(num_blocks, global_pooling=True, dtype=jnp.bfloat16)
        dense = [dense_trunk(num_blocks, input_skip=skip) for skip in (False, True)]
        return [trunk(x) for trunk in (half, *dense)]

    board, *vectors = jax.eval_shape(make, observations())
    assert board.shape == (2, 3, 4, 5)
    assert board.dtype == jnp.bfloat16  # in which it computes
    assert [each.shape for each in vectors] == [(2, 6)] * 2


def test_the_dense_layers_get_the_cells_beside_the_windows():
    @jax.jit
    def compute(x):
        trunk, plain = dense_trunk(0), dense_trunk(0, input_skip=False)
        kernel, num_features = trunk.project.kernel[...], len(plain.project.kernel)
        # Of the windows nothing: what is left is linear in the cells.
        trunk.project.kernel.set_value(kernel.at[:num_features].set(0))
        return trunk(x), kernel[num_features:]

    x = observations()
    found, of_cells = compute(x)
    assert len(of_cells) == np.prod(BOARD)
    expected = np.maximum(x.reshape(len(x), -1) @ of_cells, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_new_trunks_and_blocks_are_the_identity_after_the_stem():
    @jax.jit
    def compute(x, features):
        trunk = conv_trunk(3, global_pooling=True)
        rngs = nnx.Rngs(jax.random.key(0))
        block = DenseBlock(6, dtype=jnp.float32, rngs=rngs)
        return trunk(x), nnx.relu(trunk.stem(x)), block(features)

    features = observations((6,))
    found, stem, of_block = compute(observations(), features)
    np.testing.assert_array_equal(found, stem)
    np.testing.assert_array_equal(of_block, features)


def test_a_block_adds_two_convolutions_of_its_scaled_input():
    # One cell and one channel: only the center of each kernel has an effect.
    @jax.jit
    def compute(x):
        block = conv_block(scale=0.5)
        set_ones(block.conv1.kernel)
        set_ones(block.conv2.kernel)
        return block(x)

    x = np.array([4.0, -4.0], np.float32).reshape(2, 1, 1, 1)
    np.testing.assert_allclose(compute(x).ravel(), [4 + 0.5 * 4, -4])


def test_a_block_divides_its_input_by_the_root_of_its_height_and_every_third_pools():
    trunk = nnx.eval_shape(lambda: conv_trunk(6, global_pooling=True))
    scales = [block.scale for block in trunk.blocks]
    np.testing.assert_allclose(scales, np.arange(1, 7) ** -0.5)
    pools = [block.pooled is not None for block in trunk.blocks]
    assert pools == [False, False, True] * 2
    without = ConvTrunkConfig(num_blocks=6, channels=5)
    trunk = nnx.eval_shape(
        lambda: without.make(BOARD, dtype=jnp.float32, rngs=nnx.Rngs(0))
    )
    assert all(block.pooled is None for block in trunk.blocks)


def test_the_receptive_field_of_a_block_is_two_cells_or_with_pooling_the_board():
    @jax.jit
    def changes(x):
        changes = []
        for global_pooling in (False, True):
            block = conv_block(2, global_pooling=global_pooling)
            set_ones(block.conv1.kernel)
            set_ones(block.conv2.kernel)
            if block.pooled is not None:
                set_ones(block.pooled.kernel)
            changes.append(block(x.at[0, 0, 0].set(2.0)) - block(x))
        return changes

    near, far = np.stack(changes(np.ones((1, 9, 9, 2), np.float32)))[:, 0, ..., 0] != 0
    cells = np.indices((9, 9))
    np.testing.assert_array_equal(near, (cells <= 2).all(axis=0))
    assert far.all()


def test_pooling_is_the_mean_and_the_maximum():
    @jax.jit
    def compute(x):
        block = conv_block(global_pooling=True)
        center = jnp.zeros((3, 3, 1, 1)).at[1, 1].set(1.0)
        block.conv1.kernel.set_value(center)
        block.conv2.kernel.set_value(center)
        block.pooled.kernel.set_value(jnp.array([[10.0], [100.0]]))
        return block(x)

    x = np.array([1.0, 2.0, 6.0], np.float32).reshape(1, 1, 3, 1)
    # x + (x + 10 * mean + 100 * maximum)
    np.testing.assert_allclose(compute(x).ravel(), [632, 634, 642])


@pytest.mark.parametrize(("dtype", "name"), [("float32", "f32"), ("bfloat16", "bf16")])
def test_a_dense_trunk_multiplies_in_its_dtype_and_returns_float32(dtype, name):
    @jax.jit
    def compute(x):
        return dense_trunk(2, dtype=jnp.dtype(dtype))(x)

    lowered = compute.lower(observations())
    lines = lowered.as_text().splitlines()
    types = [line.split(" : ")[1] for line in lines if "dot_general" in line]
    assert len(types) == 7  # the windows, mix, project and two for each block
    for factors_and_result in types:
        factors, result = factors_and_result.split(" -> ")
        assert factors.count(f"x{name}>") == 2
        assert "xf32>" in result
    assert lowered.out_info.dtype == jnp.float32


def test_gradients_of_a_bfloat16_dense_trunk_are_close_to_float32_gradients():
    def gradients(dtype, x):
        trunk = dense_trunk(2, dtype=dtype)
        for block in trunk.blocks:  # zero at first, which hides the first layer
            set_ones(block.dense2.kernel)
        graph, params = nnx.split(trunk)
        return jax.grad(lambda params: nnx.merge(graph, params)(x).sum())(params)

    @jax.jit
    def both(x):
        found = gradients(jnp.bfloat16, x), gradients(jnp.float32, x)
        return [jax.tree.leaves(each) for each in found]

    errors, norms = [], []
    for low, exact in zip(*jax.device_get(both(observations())), strict=True):
        norms.append(np.linalg.norm(exact))
        errors.append(np.linalg.norm(low - exact))
    assert min(norms) > 0
    assert (np.array(errors) < 0.05 * np.array(norms)).all()
    assert max(errors) > 0


def test_the_windows_of_a_dense_trunk_are_a_convolution_over_the_whole_board():
    @jax.jit
    def compute(x):
        stems = [dense_trunk(0, window=window).stem for window in (1, 2, 3, 9)]
        layout = ("NHWC", "HWIO", "NHWC")
        expected = [
            jax.lax.conv_general_dilated(
                x, stem.kernel[...], (1, 1), "VALID", dimension_numbers=layout
            )
            + stem.bias[...]
            for stem in stems
        ]
        return [stem(x) for stem in stems], expected

    found, expected = compute(observations())
    # A window larger than the board is cut to it.
    assert [each.shape[1:3] for each in found] == [(3, 4), (2, 3), (1, 2), (1, 1)]
    chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("trunk", [conv_trunk, dense_trunk])
def test_a_trunk_evaluates_positions_independently_with_float32_parameters(trunk):
    made = nnx.eval_shape(lambda: trunk(dtype=jnp.bfloat16))
    chex.assert_type(jax.tree.leaves(nnx.state(made)), jnp.float32)

    @jax.jit
    def compute(x):
        model = trunk(1)
        return model(x)[1:2], model(x[1:2])

    together, alone = compute(observations(batch_size=3))
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)


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
        ({"name": "tower"}, "trunk 'tower'; known trunks are conv, dense, "),
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
        (ConvTrunkConfig, {"num_blocks": -1}, "trunk.num_blocks must be an int"),
        (ConvTrunkConfig, {"channels": 0}, "trunk.channels must be .* 1 to 2048: 0"),
        (ConvTrunkConfig, {"global_pooling": 1}, "pooling must be True or False"),
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
class Other(Plain):
    """A setting-free trunk that is not registered."""


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
    # The same class is registered again when its module is run again.
    assert register_trunk("sum")(SumConfig) is TRUNKS.find("sum") is SumConfig


def test_settings_without_a_name_cannot_be_written():
    with pytest.raises(ValueError, match="is not a registered trunk"):
        Other().to_json()

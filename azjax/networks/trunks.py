"""Trunks: map observations `[B, H, W, C]` to features."""

import abc
import dataclasses
import math
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike

from azjax.networks.heads import pool
from azjax.settings import ConfigRegistry, Settings, Within

_he = nnx.initializers.he_normal()
_zeros = nnx.initializers.zeros_init()


@dataclasses.dataclass(frozen=True)
class TrunkConfig(Settings, abc.ABC):
    """Trunk settings: a frozen dataclass, registered with `register_trunk`.
    `DenseTrunkConfig` and `ConvTrunkConfig` are built in.

    Its fields are numbers, booleans, strings, or tuples of them, with defaults.
    """

    section: ClassVar[str] = "network.trunk."

    @abc.abstractmethod
    def make(
        self,
        observation_shape: tuple[int, int, int],
        *,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ) -> nnx.Module:
        """Returns a module that maps `[B, H, W, C]` observations to features `[B,
        ...]`.

        Args:
            observation_shape: (H, W, C).
            dtype: dtype of the computation; parameters are float32.
            rngs: random keys of the initial parameters.
        """

    def to_json(self) -> dict[str, Any]:
        """Returns name and settings as `json.dumps` takes them."""
        return TRUNKS.to_json(self)

    @staticmethod
    def from_json(values: object, prefix: str = "") -> "TrunkConfig":
        """Returns the settings in a JSON object of any origin.

        Raises:
            ValueError: the trunk or a setting is unknown, or a value is not allowed.
        """
        return TRUNKS.from_json(values, prefix)


TRUNKS = ConfigRegistry(TrunkConfig, "trunk", key="name")
register_trunk = TRUNKS.register


@register_trunk("conv")
@dataclasses.dataclass(frozen=True)
class ConvTrunkConfig(TrunkConfig):
    """A residual convolutional tower, best on an accelerator; see `ConvTrunk`.

    Attributes:
        num_blocks: residual blocks, at most 64 (AlphaZero: 19).
        channels: width, at most 2048 (AlphaZero: 256).
        global_pooling: whether every third block pools over the whole board.
    """

    num_blocks: Annotated[int, Within(0, 64)] = 3
    channels: Annotated[int, Within(1, 2048)] = 64
    global_pooling: bool = False

    def make(
        self,
        observation_shape: tuple[int, int, int],
        *,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ) -> "ConvTrunk":
        """Returns a `ConvTrunk`; see `TrunkConfig.make`."""
        return ConvTrunk(
            observation_shape, **dataclasses.asdict(self), dtype=dtype, rngs=rngs
        )


@register_trunk("dense")
@dataclasses.dataclass(frozen=True)
class DenseTrunkConfig(TrunkConfig):
    """One convolution and residual dense layers, several times faster on a CPU; see
    `DenseTrunk`.

    Attributes:
        num_blocks: residual blocks, at most 64.
        width: width of the dense layers, at most 8192.
        stem_channels: features per window, at most 2048; the second layer halves them.
        window: height and width of the windows (cells), at most 64.
        input_skip: whether the residual layers get the planes of the cells themselves
            beside the features of the windows.
    """

    num_blocks: Annotated[int, Within(0, 64)] = 3
    width: Annotated[int, Within(1, 8192)] = 256
    stem_channels: Annotated[int, Within(1, 2048)] = 128
    window: Annotated[int, Within(1, 64)] = 4
    input_skip: bool = False

    def make(
        self,
        observation_shape: tuple[int, int, int],
        *,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ) -> "DenseTrunk":
        """Returns a `DenseTrunk`; see `TrunkConfig.make`."""
        return DenseTrunk(
            observation_shape, **dataclasses.asdict(self), dtype=dtype, rngs=rngs
        )


class ConvTrunk(nnx.Module):
    """A tower of residual 3x3 convolutions without normalization.

    He et al. 2016, "Identity mappings in deep residual networks" (pre-activation). In
    place of normalization every block is initialized to the identity and its input is
    scaled by 1 / sqrt(block number), as KataGo does after Zhang et al. 2019,
    "Fixup initialization"; training and play compute the same.

    observation_shape: (H, W, C).
    num_blocks: number of blocks.
    channels: width.
    global_pooling: whether every third block adds a linear function of the mean and
        maximum over the whole board, one number a channel, to the input of its second
        convolution. Unlike KataGo's (Wu 2019, "Accelerating self-play learning in Go",
        section 3.3) it is added after the ReLU, and so does not gate features; the two
        were not compared.
    dtype: dtype of the computation; parameters are float32.
    """

    def __init__(
        self,
        observation_shape: tuple[int, int, int],
        *,
        num_blocks: int,
        channels: int,
        global_pooling: bool,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        self.stem = nnx.Conv(
            observation_shape[-1],
            channels,
            (3, 3),
            kernel_init=_he,
            dtype=dtype,
            rngs=rngs,
        )
        self.blocks = nnx.List(
            [
                ConvBlock(
                    channels,
                    scale=1 / math.sqrt(1 + index),
                    global_pooling=global_pooling and index % 3 == 2,
                    dtype=dtype,
                    rngs=rngs,
                )
                for index in range(num_blocks)
            ]
        )

    def __call__(self, observation: jax.Array) -> jax.Array:
        """Returns `[B, H, W, channels]`."""
        x = self.stem(observation)
        for block in self.blocks:
            x = block(x)
        return nnx.relu(x)


class ConvBlock(nnx.Module):
    """Two convolutions with a residual connection; see `ConvTrunk`.

    scale: factor of the input of the first convolution.
    """

    def __init__(
        self,
        channels: int,
        *,
        scale: float,
        global_pooling: bool,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        self.scale = scale
        self.conv1 = nnx.Conv(
            channels, channels, (3, 3), kernel_init=_he, dtype=dtype, rngs=rngs
        )
        self.conv2 = nnx.Conv(
            channels, channels, (3, 3), kernel_init=_zeros, dtype=dtype, rngs=rngs
        )
        self.pooled = (
            nnx.Linear(
                2 * channels, channels, kernel_init=_zeros, dtype=dtype, rngs=rngs
            )
            if global_pooling
            else None
        )

    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps `[B, H, W, channels]` to the same shape."""
        y = nnx.relu(self.conv1(nnx.relu(x * self.scale)))
        if self.pooled is not None:
            y = y + self.pooled(pool(y))[:, None, None, :]
        return x + self.conv2(y)


class DenseTrunk(nnx.Module):
    """Two layers on every window of the board, then residual dense layers.

    A window of 4x4 cells contains whole lines of four. On a CPU about three times as
    fast as a convolutional tower of 3 blocks of 32 channels. With bfloat16 the factors
    of the matrix products are bfloat16, and their results and all else float32: some
    CPUs have instructions for the former (AVX512-BF16) but not for bfloat16 results.

    observation_shape: (H, W, C).
    num_blocks: residual blocks of two dense layers.
    width: width of the dense layers.
    stem_channels: features per window; the second layer halves them.
    window: height and width of a window (cells), at most the board's.
    input_skip: whether the residual layers also get the observation.
    dtype: dtype of the factors of products; parameters are float32.
    """

    def __init__(
        self,
        observation_shape: tuple[int, int, int],
        *,
        num_blocks: int,
        width: int,
        stem_channels: int,
        window: int,
        input_skip: bool,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        height, board_width, planes = observation_shape
        kernel = (min(window, height), min(window, board_width))
        num_windows = (height - kernel[0] + 1) * (board_width - kernel[1] + 1)
        self.stem = nnx.Conv(
            planes,
            stem_channels,
            kernel,
            padding="VALID",
            kernel_init=_he,
            conv_general_dilated=_CONVOLUTION[jnp.dtype(dtype).name],
            rngs=rngs,
        )
        channels = max(1, stem_channels // 2)
        self.mix = _linear(stem_channels, channels, _he, dtype, rngs)
        self.input_skip = input_skip
        num_features = num_windows * channels
        if input_skip:
            num_features += math.prod(observation_shape)
        self.project = _linear(num_features, width, _he, dtype, rngs)
        self.blocks = nnx.List(
            [DenseBlock(width, dtype=dtype, rngs=rngs) for _ in range(num_blocks)]
        )

    def __call__(self, observation: jax.Array) -> jax.Array:
        """Returns `[B, width]` float32."""
        features = [nnx.relu(self.mix(nnx.relu(self.stem(observation))))]
        if self.input_skip:
            features.append(observation)
        rows = [part.reshape(len(observation), -1) for part in features]
        x = self.project(jnp.concatenate(rows, -1))
        for block in self.blocks:
            x = block(x)
        return nnx.relu(x)


class DenseBlock(nnx.Module):
    """Two dense layers with a residual connection, after layer normalization (Ba et al.
    2016), which is the same in training and play."""

    def __init__(self, width: int, *, dtype: DTypeLike, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.dense1 = _linear(width, width, _he, dtype, rngs)
        self.dense2 = _linear(width, width, _zeros, dtype, rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps `[B, width]` to the same shape and dtype."""
        return x + self.dense2(nnx.relu(self.dense1(self.norm(x))))


def _linear(
    num_inputs: int,
    num_outputs: int,
    kernel_init: nnx.Initializer,
    dtype: DTypeLike,
    rngs: nnx.Rngs,
) -> nnx.Linear:
    """Returns a linear layer from float32 to float32 that multiplies in a dtype."""
    return nnx.Linear(
        num_inputs,
        num_outputs,
        kernel_init=kernel_init,
        dot_general=_DOT_GENERAL[jnp.dtype(dtype).name],
        rngs=rngs,
    )


def _bfloat16_dot_general(
    x: jax.Array, kernel: jax.Array, *_args: Any, **_kwargs: Any
) -> jax.Array:
    """Returns `x @ kernel`, in place of `jax.lax.dot_general` of a linear layer."""
    return _bfloat16_product(x, kernel)


def _convolution(
    x: jax.Array, kernel: jax.Array, *_args: Any, **_kwargs: Any
) -> jax.Array:
    """Convolves without padding, as one product, which is faster on a CPU.

    Args:
        x: `[B, H, W, C]`.
        kernel: `[h, w, C, K]`.
        _args, _kwargs: other arguments of `jax.lax.conv_general_dilated`.

    Returns:
        `[B, H - h + 1, W - w + 1, K]`.
    """
    return jnp.matmul(_windows(x, kernel), kernel.reshape(-1, kernel.shape[-1]))


def _bfloat16_convolution(
    x: jax.Array, kernel: jax.Array, *_args: Any, **_kwargs: Any
) -> jax.Array:
    """Returns `_convolution` with a product of bfloat16."""
    flat = kernel.reshape(-1, kernel.shape[-1])
    return _bfloat16_product(_windows(x, kernel), flat)


def _windows(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Returns the cells of each window, `[B, H - h + 1, W - w + 1, h * w * C]`."""
    height, width = kernel.shape[:2]
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    cells = [
        x[:, row : row + rows, column : column + columns]
        for row in range(height)
        for column in range(width)
    ]
    return jnp.concatenate(cells, -1)


@jax.custom_vjp
def _bfloat16_product(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Multiplies `[..., N]` and `[N, M]` float32 as bfloat16, to `[..., M]` float32.

    Gradients are float32 products: with a transposed factor XLA's CPU backend is not
    faster in bfloat16.
    """
    factors = x.astype(jnp.bfloat16), kernel.astype(jnp.bfloat16)
    return jnp.matmul(*factors, preferred_element_type=jnp.float32)


def _forward(x: jax.Array, kernel: jax.Array):
    return _bfloat16_product(x, kernel), (x, kernel)


def _backward(factors: tuple[jax.Array, jax.Array], gradient: jax.Array):
    x, kernel = factors
    rows = x.reshape(-1, x.shape[-1])
    return gradient @ kernel.T, rows.T @ gradient.reshape(-1, gradient.shape[-1])


_bfloat16_product.defvjp(_forward, _backward)
# By the dtype of the factors.
_DOT_GENERAL = {"float32": jax.lax.dot_general, "bfloat16": _bfloat16_dot_general}
_CONVOLUTION = {"float32": _convolution, "bfloat16": _bfloat16_convolution}

"""Trunks: from observations `[B, H, W, C]` to features."""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike

_he = nnx.initializers.he_normal()
_zeros = nnx.initializers.zeros_init()


class ConvTrunk(nnx.Module):
    """A tower of residual 3x3 convolutions without normalisation.

    He et al. 2016, "Identity mappings in deep residual networks" (pre-activation). In
    place of normalisation every block starts as the identity and its input is scaled
    down by the square root of its height in the tower, as KataGo does after Zhang et
    al. 2019, "Fixup initialization"; nothing differs between training and play.

    observation_shape: (H, W, C).
    num_blocks: the tower's height.
    channels: its width.
    global_pooling: whether every third block sees the whole board's mean and maximum
        (Wu 2019, "Accelerating self-play learning in Go", section 3.3).
    dtype: of the computation; parameters are float32.
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
    """Two convolutions added to what came in; see `ConvTrunk`.

    scale: by which what comes in is multiplied before the first convolution.
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
            pooled = jnp.concatenate([y.mean(axis=(1, 2)), y.max(axis=(1, 2))], axis=-1)
            y = y + self.pooled(pooled)[:, None, None, :]
        return x + self.conv2(y)


class DenseTrunk(nnx.Module):
    """Two layers on every window of the board, then residual dense layers on them all.

    Where a line of four is what matters, a window of 4x4 cells holds whole lines. On a
    CPU several times faster than a convolutional tower of the same strength.

    observation_shape: (H, W, C).
    num_blocks: residual blocks of two dense layers.
    width: of the dense layers.
    stem_channels: features of each window, of which the second layer makes half as
        many.
    window: height and width of a window (cells), cut to the board's.
    dtype: of the computation; parameters are float32.
    """

    def __init__(
        self,
        observation_shape: tuple[int, int, int],
        *,
        num_blocks: int,
        width: int,
        stem_channels: int,
        window: int,
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
            dtype=dtype,
            rngs=rngs,
        )
        channels = max(1, stem_channels // 2)
        self.mix = nnx.Linear(
            stem_channels, channels, kernel_init=_he, dtype=dtype, rngs=rngs
        )
        self.project = nnx.Linear(
            num_windows * channels, width, kernel_init=_he, dtype=dtype, rngs=rngs
        )
        self.blocks = nnx.List(
            [DenseBlock(width, dtype=dtype, rngs=rngs) for _ in range(num_blocks)]
        )

    def __call__(self, observation: jax.Array) -> jax.Array:
        """Returns `[B, width]`."""
        x = nnx.relu(self.mix(nnx.relu(self.stem(observation))))
        x = self.project(x.reshape(x.shape[0], -1))
        for block in self.blocks:
            x = block(x)
        return nnx.relu(x)


class DenseBlock(nnx.Module):
    """Two dense layers added to what came in, which is normalised first.

    Layer normalisation (Ba et al. 2016) is the same in training and in play.
    """

    def __init__(self, width: int, *, dtype: DTypeLike, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.dense1 = nnx.Linear(width, width, kernel_init=_he, dtype=dtype, rngs=rngs)
        self.dense2 = nnx.Linear(
            width, width, kernel_init=_zeros, dtype=dtype, rngs=rngs
        )

    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps `[B, width]` to the same shape."""
        return x + self.dense2(nnx.relu(self.dense1(self.norm(x))))

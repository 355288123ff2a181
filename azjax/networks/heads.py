"""Heads: from a trunk's features to move logits and to the expected result."""

import math
from typing import Literal

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.typing import DTypeLike

HEAD_CHANNELS = 32


class Head(nnx.Module):
    """A linear layer on the features, after a 1x1 convolution where they are a board.

    features_shape: the features' shape without the batch axis, `(H, W, C)` or `(F,)`.
    num_outputs: K.
    dtype: of the convolution; the linear layer computes in float32.
    """

    def __init__(
        self,
        features_shape: tuple[int, ...],
        num_outputs: int,
        *,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        is_board = len(features_shape) == 3
        self.conv = (
            nnx.Conv(features_shape[-1], HEAD_CHANNELS, (1, 1), dtype=dtype, rngs=rngs)
            if is_board
            else None
        )
        cells, channels = features_shape[:-1], features_shape[-1]
        num_features = math.prod(cells) * (HEAD_CHANNELS if is_board else channels)
        self.linear = nnx.Linear(num_features, num_outputs, rngs=rngs)

    def __call__(self, features: jax.Array) -> jax.Array:
        """Returns `[B, K]` float32."""
        if self.conv is not None:
            features = nnx.relu(self.conv(features))
        features = features.reshape(features.shape[0], -1)
        return self.linear(features.astype(jnp.float32))


class PolicyHead(Head):
    """The policy head: logits `[B, A]` of the moves."""


class ValueHead(Head):
    """The value head: logits of the result for the player to move.

    kind: `wdl`: `[B, 3]` logits of win, draw and loss; `scalar`: `[B, 1]`, the logit
        of the expected score, where a draw is half a win.
    """

    def __init__(
        self,
        features_shape: tuple[int, ...],
        kind: Literal["wdl", "scalar"],
        *,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        num_outputs = 3 if kind == "wdl" else 1
        super().__init__(features_shape, num_outputs, dtype=dtype, rngs=rngs)


def result_probabilities(value_logits: jax.Array) -> jax.Array:
    """Returns `[..., 3]` probabilities of win, draw and loss.

    Args:
        value_logits: `[..., 3]`, or `[..., 1]`, which knows of no draws.
    """
    if value_logits.shape[-1] == 3:
        return jax.nn.softmax(value_logits)
    win = jax.nn.sigmoid(value_logits)
    return jnp.concatenate([win, jnp.zeros_like(win), 1 - win], axis=-1)


def expected_value(result: jax.Array) -> jax.Array:
    """Returns `[...]` in [-1, 1] of `[..., 3]` win, draw and loss probabilities."""
    return result[..., 0] - result[..., 2]


def value_loss(value_logits: jax.Array, result_target: jax.Array) -> jax.Array:
    """Computes the cross-entropy `[B]`.

    Args:
        value_logits: `[B, 3]`, or `[B, 1]`: the logit of the expected score.
        result_target: `[B, 3]` probabilities of win, draw and loss.
    """
    if value_logits.shape[-1] == 3:
        return optax.softmax_cross_entropy(value_logits, result_target)
    score = (1 + expected_value(result_target)) / 2
    return optax.sigmoid_binary_cross_entropy(value_logits[..., 0], score)

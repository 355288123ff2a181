"""Policy, value and auxiliary heads, and their losses."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.typing import DTypeLike

HEAD_CHANNELS = 32
NUM_VALUE_LOGITS = {"wdl": 3, "scalar": 1}


class Head(nnx.Module):
    """A linear layer, after a 1x1 convolution if the features are a board.

    features_shape: shape of the features without the batch axis, `(H, W, C)` or `(F,)`.
    num_outputs: K.
    dtype: dtype of the convolution; the linear layer computes in float32.
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
    """The dense policy head: logits `[B, A]` of the actions."""


class ValueHead(Head):
    """The dense value head: logits of the result for the player to move.

    kind: `wdl`: `[B, 3]` logits of win, draw and loss; `scalar`: `[B, 1]` logit of the
        expected score, where a draw is half a win.
    """

    def __init__(
        self,
        features_shape: tuple[int, ...],
        kind: Literal["wdl", "scalar"],
        *,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        num_outputs = NUM_VALUE_LOGITS[kind]
        super().__init__(features_shape, num_outputs, dtype=dtype, rngs=rngs)


class BoardPolicyHead(nnx.Module):
    """Logits `[B, A]` of actions that belong to cells, for any board size.

    Convolutions give K planes, the logits of the K actions of each cell (Silver et al.
    2018, "A general reinforcement learning algorithm that masters chess, shogi, and Go
    through self-play"). Features pooled over the board are added before the planes,
    and give the logits of actions without a cell, such as a pass (Wu 2019,
    "Accelerating self-play learning in Go", appendix A).

    channels: C of the features `[B, H, W, C]`.
    actions_per_cell: K.
    num_others: number of actions without a cell, which follow the others.
    dtype: dtype of the convolutions; the logits are float32.
    """

    def __init__(
        self,
        channels: int,
        actions_per_cell: int,
        num_others: int,
        *,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        width = max(HEAD_CHANNELS, actions_per_cell)
        self.conv = nnx.Conv(channels, width, (1, 1), dtype=dtype, rngs=rngs)
        self.pooled = nnx.Linear(2 * width, width, dtype=dtype, rngs=rngs)
        self.planes = nnx.Conv(width, actions_per_cell, (1, 1), dtype=dtype, rngs=rngs)
        self.others = (
            nnx.Linear(2 * width, num_others, rngs=rngs) if num_others else None
        )

    def __call__(self, features: jax.Array) -> jax.Array:
        """Returns `[B, A]` float32."""
        x = self.conv(features)
        pooled = pool(nnx.relu(x))
        x = nnx.relu(x + self.pooled(pooled)[:, None, None, :])
        logits = self.planes(x).reshape(x.shape[0], -1).astype(jnp.float32)
        if self.others is None:
            return logits
        others = self.others(pooled.astype(jnp.float32))
        return jnp.concatenate([logits, others], axis=-1)


class BoardValueHead(nnx.Module):
    """Logits of the result, as `ValueHead`, from features pooled over the board, for
    any board size.

    channels: C of the features `[B, H, W, C]`.
    kind: as in `ValueHead`.
    dtype: dtype of the convolution; the linear layers compute in float32.
    """

    def __init__(
        self,
        channels: int,
        kind: Literal["wdl", "scalar"],
        *,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        self.conv = nnx.Conv(channels, HEAD_CHANNELS, (1, 1), dtype=dtype, rngs=rngs)
        self.hidden = nnx.Linear(2 * HEAD_CHANNELS, 2 * HEAD_CHANNELS, rngs=rngs)
        self.linear = nnx.Linear(2 * HEAD_CHANNELS, NUM_VALUE_LOGITS[kind], rngs=rngs)

    def __call__(self, features: jax.Array) -> jax.Array:
        """Returns `[B, 3]` or `[B, 1]` float32."""
        pooled = pool(nnx.relu(self.conv(features)))
        return self.linear(nnx.relu(self.hidden(pooled.astype(jnp.float32))))


def pool(features: jax.Array) -> jax.Array:
    """Returns mean and maximum over the board, `[B, H, W, C]` to `[B, 2 * C]`."""
    board = (1, 2)
    return jnp.concatenate([features.mean(axis=board), features.max(axis=board)], -1)


@dataclasses.dataclass(frozen=True)
class AuxiliaryHead:
    """An additional head, which is trained but not used in play.

    Its target is computed at sampling, from the position and the final position of its
    game, and needs no storage; other moves of the game are not available. Positions of
    unfinished games have no target and no loss.

    name: an identifier; the metrics contain `NAME_loss`.
    make: `make(features_shape, rngs)` returns a module that maps the trunk's features
        to outputs `[B, ...]`.
    target: `target(state, final_state)` returns the target of one position, a pytree of
        arrays; it is vmapped.
    loss: `loss(outputs, targets)` returns the loss of each position, `[N]`.
    transform: `transform(symmetry, targets)` returns the targets of N positions under
        an `azjax.games.Symmetry`; needed for targets in the shape of the board. By
        default the targets do not change.
    weight: weight of the loss in the sum of all losses.
    """

    name: str
    make: Callable[[tuple[int, ...], nnx.Rngs], nnx.Module]
    target: Callable[[Any, Any], Any]
    loss: Callable[[jax.Array, Any], jax.Array]
    transform: Callable[[Any, Any], Any] = lambda symmetry, targets: targets
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Checks the name."""
        names = ("policy", "value")
        if not str(self.name).isidentifier() or self.name in names:
            raise ValueError(
                "the name of an auxiliary head must be an identifier other than policy "
                f"and value: {self.name!r}"
            )


def policy_loss(
    policy_logits: jax.Array, legal_action_mask: jax.Array, policy_target: jax.Array
) -> jax.Array:
    """Computes KL(target || policy), `[B]`, over legal actions.

    Its gradient is that of the cross-entropy; it is at least 0, and 0 where
    the target is all 0.

    Args:
        policy_logits: `[B, A]`.
        legal_action_mask: `[B, A]` bool.
        policy_target: `[B, A]` probabilities; all 0 without a target.
    """
    lowest = jnp.finfo(jnp.float32).min
    log_policy = jax.nn.log_softmax(jnp.where(legal_action_mask, policy_logits, lowest))
    return optax.losses.kl_divergence(log_policy, policy_target)


def result_probabilities(value_logits: jax.Array) -> jax.Array:
    """Returns `[..., 3]` probabilities of win, draw and loss.

    Args:
        value_logits: `[..., 3]`, or `[..., 1]` for a network without draws.
    """
    if value_logits.shape[-1] == 3:
        return jax.nn.softmax(value_logits)
    win = jax.nn.sigmoid(value_logits)
    return jnp.concatenate([win, jnp.zeros_like(win), 1 - win], axis=-1)


def expected_value(result: jax.Array) -> jax.Array:
    """Returns the expected value `[...]` in [-1, 1] of `[..., 3]` probabilities of win,
    draw and loss."""
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

"""Networks of action values: Q(s, a)."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import jax
import jax.numpy as jnp
from flax import nnx

from azjax.settings import Settings, Within

_he = nnx.initializers.he_normal()
# The initial value of all actions is 0.
_zeros = nnx.initializers.zeros_init()

MAX_LAYERS = 64
_HIDDEN = {"state": (128, 128), "pair": (64, 64, 64, 64)}


@dataclasses.dataclass(frozen=True)
class QNetworkConfig(Settings):
    """Settings of a network of action values.

    Attributes:
        form: `state` maps the position to a value for each action; `pair` maps the
            position and one action, one-hot, to one value.
        hidden: units of each hidden layer, at most 8192; by default (128, 128) for
            `state` and (64, 64, 64, 64) for `pair`.
        separate: whether the first and the second player have separate networks.
    """

    section: ClassVar[str] = "network."

    form: Literal["state", "pair"] = "state"
    hidden: Annotated[tuple[int, ...] | None, Within(1, 8192)] = None
    separate: bool = False

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        if self.hidden is not None and not 1 <= len(self.hidden) <= MAX_LAYERS:
            raise ValueError(
                f"network.hidden must be 1 to {MAX_LAYERS} numbers: {len(self.hidden)}"
            )

    @property
    def layers(self) -> tuple[int, ...]:
        """Units of each hidden layer."""
        return tuple(self.hidden or _HIDDEN[self.form])


# A network's structure, without arrays.
QNetwork = nnx.GraphDef

# The parameters of the shared network, or of one network per player.
QParams = tuple[nnx.State, ...]


class Layers(nnx.Module):
    """Dense layers with ReLU between them.

    sizes: inputs, units of each hidden layer, outputs.
    """

    def __init__(self, sizes: Sequence[int], rngs: nnx.Rngs):
        *_, last, outputs = sizes
        self.hidden = nnx.List(
            [
                nnx.Linear(inputs, units, kernel_init=_he, rngs=rngs)
                for inputs, units in itertools.pairwise(sizes[:-1])
            ]
        )
        self.out = nnx.Linear(last, outputs, kernel_init=_zeros, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps `[..., inputs]` to `[..., outputs]`."""
        for layer in self.hidden:
            x = nnx.relu(layer(x))
        return self.out(x)


class StateNetwork(nnx.Module):
    """A network that maps the position to a value for each action."""

    def __init__(
        self, num_features: int, num_actions: int, hidden: Sequence[int], rngs: nnx.Rngs
    ):
        self.layers = Layers((num_features, *hidden, num_actions), rngs)

    def every(self, observation: jax.Array) -> jax.Array:
        """Maps `[B, F]` to the logits `[B, A]` of all actions."""
        return self.layers(observation)

    def one(self, observation: jax.Array, action: jax.Array) -> jax.Array:
        """Maps `[B, F]` and `[B]` to the logits `[B]` of these actions."""
        logits = self.layers(observation)
        return jnp.take_along_axis(logits, action[:, None], axis=1)[:, 0]


class PairNetwork(nnx.Module):
    """A network that maps the position and an action to one value.

    The first layer takes the concatenated position and one-hot action; it is computed
    in two parts, so that all actions share the position's.
    """

    def __init__(
        self, num_features: int, num_actions: int, hidden: Sequence[int], rngs: nnx.Rngs
    ):
        self.first = nnx.Linear(
            num_features + num_actions, hidden[0], kernel_init=_he, rngs=rngs
        )
        self.layers = Layers((*hidden, 1), rngs)

    def every(self, observation: jax.Array) -> jax.Array:
        """Maps `[B, F]` to the logits `[B, A]` of every action."""
        of_observation, of_action = self._first_parts(observation)
        x = of_observation[:, None] + of_action  # [B, A, hidden]
        return self.layers(nnx.relu(x))[..., 0]

    def one(self, observation: jax.Array, action: jax.Array) -> jax.Array:
        """Maps `[B, F]` and `[B]` to the logits `[B]` of these actions."""
        of_observation, of_action = self._first_parts(observation)
        return self.layers(nnx.relu(of_observation + of_action[action]))[..., 0]

    def _first_parts(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the first layer's outputs for `[B, F]`, and for each action, `[A,
        hidden]`."""
        kernel, num_features = self.first.kernel[...], observation.shape[1]
        bias = self.first.bias[...]  # pyright: ignore[reportOptionalSubscript]
        return observation @ kernel[:num_features] + bias, kernel[num_features:]


# In one program, not one for each array.
@functools.partial(
    jax.jit, static_argnames=("observation_shape", "num_actions", "config")
)
def init_q_network(
    rng_key: jax.Array,
    observation_shape: tuple[int, int, int],
    num_actions: int,
    config: QNetworkConfig,
) -> tuple[QNetwork, QParams]:
    """Builds a network with random parameters; its initial values are all 0.

    Args:
        rng_key: consumed.
        observation_shape: (H, W, C).
        num_actions: A.
        config: network settings.
    """
    make = StateNetwork if config.form == "state" else PairNetwork
    num_features = math.prod(observation_shape)
    networks = [
        nnx.split(make(num_features, num_actions, config.layers, nnx.Rngs(key)))
        for key in jax.random.split(rng_key, 2 if config.separate else 1)
    ]
    params = tuple(nnx.as_pure(params) for _, params in networks)
    return networks[0][0], params


def every_action_value(
    network: QNetwork, params: QParams, observation: jax.Array, player: jax.Array
) -> jax.Array:
    """Returns `[B, A]` in [-1, 1], the value of every action for the player to move.

    Args:
        network: its structure.
        params: its parameters.
        observation: `[B, H, W, C]`.
        player: `[B]` int8, the player to move, which selects the network.
    """
    flat = observation.reshape(observation.shape[0], -1)
    outputs = [nnx.merge(network, own).every(flat) for own in params]
    return jnp.tanh(jnp.where(player[:, None] == 1, outputs[-1], outputs[0]))


def action_value(
    network: QNetwork,
    params: QParams,
    observation: jax.Array,
    player: jax.Array,
    action: jax.Array,
) -> jax.Array:
    """Returns `[B]` in [-1, 1], the value of `action` (`[B]` int32) for the player to
    move; see `every_action_value`."""
    flat = observation.reshape(observation.shape[0], -1)
    outputs = [nnx.merge(network, own).one(flat, action) for own in params]
    return jnp.tanh(jnp.where(player == 1, outputs[-1], outputs[0]))

"""The network: a trunk with a policy head and a value head."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from azjax.networks.heads import (
    AuxiliaryHead,
    BoardPolicyHead,
    BoardValueHead,
    PolicyHead,
    ValueHead,
)
from azjax.networks.line_planes import MAX_WIDTH, NUM_PLANES, line_planes
from azjax.networks.trunks import DenseTrunkConfig, TrunkConfig
from azjax.settings import Settings, Within, check_int

# Two, so that the check finds modules that confuse the batch axis with another one.
CHECKED_BATCH = 2
MAX_LINE_LENGTH = 19  # the longer side of the largest board


@dataclasses.dataclass(frozen=True)
class NetworkConfig(Settings):
    """Network settings.

    Attributes:
        value_head: `wdl` (win, draw and loss) or `scalar` (the expected score).
        heads: `dense`: linear layers on all features; `board`: convolutions and
            pooling, with the same weights on every board size, for convolutional trunks
            and games whose actions belong to cells.
        line_length: if not 0, the trunk also gets two planes with the empty cells on
            which a stone of the player to move, or of the opponent, completes a line of
            this length; for games whose first two planes are their stones.
        dtype: dtype of the computation, `float32` or `bfloat16`; parameters are
            float32.
    """

    section: ClassVar[str] = "network."

    trunk: TrunkConfig = dataclasses.field(default_factory=DenseTrunkConfig)
    value_head: Literal["wdl", "scalar"] = "wdl"
    heads: Literal["dense", "board"] = "dense"
    line_length: Annotated[int, Within(0, MAX_LINE_LENGTH)] = 0
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        """Checks the values."""
        if not isinstance(self.trunk, TrunkConfig):
            raise ValueError(
                "network.trunk must be the settings of a trunk, such as "
                f"DenseTrunkConfig(): {self.trunk!r}"
            )
        super().__post_init__()


TrunkFactory = Callable[[tuple[int, int, int], nnx.Rngs], nnx.Module]
HeadFactory = Callable[[tuple[int, ...], nnx.Rngs], nnx.Module]


@dataclasses.dataclass(frozen=True)
class CustomModules:
    """Custom modules, which replace those of a `NetworkConfig`.

    trunk: `trunk(observation_shape, rngs)` returns a module that maps `[B, H, W, C]`
        observations to features `[B, ...]`.
    policy_head: `policy_head(features_shape, rngs)` returns a module that maps features
        to `[B, A]` logits.
    value_head: `value_head(features_shape, rngs)` returns a module that maps features
        to `[B, 3]` or `[B, 1]` logits (see `ValueHead`).
    auxiliary: auxiliary heads.
    """

    trunk: TrunkFactory | None = None
    policy_head: HeadFactory | None = None
    value_head: HeadFactory | None = None
    auxiliary: tuple[AuxiliaryHead, ...] = ()

    def __post_init__(self) -> None:
        """Checks the auxiliary heads."""
        if isinstance(self.auxiliary, AuxiliaryHead) or not all(
            isinstance(head, AuxiliaryHead) for head in self.auxiliary
        ):
            raise ValueError(
                f"auxiliary must be a tuple of AuxiliaryHead: {self.auxiliary!r}"
            )
        names = [head.name for head in self.auxiliary]
        if len(set(names)) < len(names):
            raise ValueError(f"auxiliary heads must have different names: {names}")


class Network(NamedTuple):
    """The network's structure, without arrays.

    Flax splits a module into its structure, a `GraphDef`, and its arrays, which are
    then arguments of functions, by which JAX differentiates; `nnx.merge` joins them
    into a module that can be called.

    train_def: computes as in training.
    eval_def: computes as in play; differs only for modules with two modes.
    """

    train_def: nnx.GraphDef
    eval_def: nnx.GraphDef


class Variables(NamedTuple):
    """The network's arrays.

    params: trained parameters, float32.
    batch_stats: running averages of modules that have them; empty otherwise.
    """

    params: nnx.State
    batch_stats: nnx.State


class Prediction(NamedTuple):
    """The network's outputs for B positions.

    policy_logits: `[B, A]` float32; illegal actions are not masked.
    value_logits: `[B, 3]` or `[B, 1]` float32, for the player to move.
    auxiliary: `[B, ...]` outputs of the auxiliary heads, by name.
    """

    policy_logits: jax.Array
    value_logits: jax.Array
    auxiliary: Mapping[str, jax.Array]


class AlphaZeroNetwork(nnx.Module):
    """Joins a trunk and its heads; see `NetworkConfig` for `line_length`."""

    def __init__(
        self,
        trunk: nnx.Module,
        policy_head: nnx.Module,
        value_head: nnx.Module,
        auxiliary: Mapping[str, nnx.Module],
        line_length: int = 0,
    ):
        self.line_length = line_length
        self.trunk = trunk
        self.policy_head = policy_head
        self.value_head = value_head
        self.names = tuple(auxiliary)
        # The suffix avoids collisions with names of methods.
        self.auxiliary = nnx.Dict(
            {f"{name}_head": head for name, head in auxiliary.items()}
        )

    def __call__(self, observation: jax.Array) -> Prediction:
        """Maps `[B, H, W, C]` observations to a `Prediction`."""
        if self.line_length:
            lines = line_planes(observation, self.line_length)
            observation = jnp.concatenate([observation, lines], -1)
        features = self.trunk(observation)
        return Prediction(
            self.policy_head(features).astype(jnp.float32),
            self.value_head(features).astype(jnp.float32),
            {name: self.auxiliary[f"{name}_head"](features) for name in self.names},
        )


def init_network(
    rng_key: jax.Array,
    observation_shape: tuple[int, int, int],
    num_actions: int,
    config: NetworkConfig,
    modules: CustomModules | None = None,
    *,
    actions_per_cell: int = 0,
) -> tuple[Network, Variables]:
    """Builds a network with random parameters.

    Args:
        rng_key: consumed.
        observation_shape: (H, W, C).
        num_actions: A.
        config: network settings.
        modules: custom modules.
        actions_per_cell: that of the game.

    Raises:
        ValueError: a module in `modules` returns the wrong shape, or has variables that
            are neither parameters nor batch statistics; or heads for boards or
            `line_length` do not fit the game or the trunk.
    """
    modules = modules or CustomModules()
    rngs = nnx.Rngs(rng_key)
    dtype = jnp.dtype(config.dtype)
    observation = jax.ShapeDtypeStruct((CHECKED_BATCH, *observation_shape), jnp.float32)
    trunk_shape = _trunk_shape(observation_shape, config.line_length)
    trunk = (
        modules.trunk(trunk_shape, rngs)
        if modules.trunk
        else config.trunk.make(trunk_shape, dtype=dtype, rngs=rngs)
    )
    trunk_input = jax.ShapeDtypeStruct((CHECKED_BATCH, *trunk_shape), jnp.float32)
    features_shape = _features_shape(
        nnx.eval_shape(lambda module, x: module(x), _inference(trunk), trunk_input)
    )
    height, width, _ = observation_shape
    on_board = config.heads == "board" and not (
        modules.policy_head and modules.value_head
    )
    if on_board and features_shape[:-1] != (height, width):
        raise ValueError(
            "network.heads can be board only with a trunk that returns features of the "
            f"{height}x{width} board, such as conv; this one returns {features_shape}"
        )
    if modules.policy_head:
        policy_head = modules.policy_head(features_shape, rngs)
    elif config.heads == "dense":
        policy_head = PolicyHead(features_shape, num_actions, dtype=dtype, rngs=rngs)
    else:
        num_others = _num_other_actions(num_actions, height * width, actions_per_cell)
        policy_head = BoardPolicyHead(
            features_shape[-1], actions_per_cell, num_others, dtype=dtype, rngs=rngs
        )
    if modules.value_head:
        value_head = modules.value_head(features_shape, rngs)
    elif config.heads == "dense":
        value_head = ValueHead(
            features_shape, config.value_head, dtype=dtype, rngs=rngs
        )
    else:
        value_head = BoardValueHead(
            features_shape[-1], config.value_head, dtype=dtype, rngs=rngs
        )
    auxiliary = {
        head.name: head.make(features_shape, rngs) for head in modules.auxiliary
    }
    model = AlphaZeroNetwork(
        trunk, policy_head, value_head, auxiliary, config.line_length
    )
    train_def, *arrays, rest = nnx.split(model, nnx.Param, nnx.BatchStat, ...)
    _check_nothing_else(rest)
    network = Network(train_def, nnx.graphdef(_inference(model)))
    variables = Variables(*nnx.as_pure(arrays))
    prediction = jax.eval_shape(partial(predict, network), variables, observation)
    _check_shapes(prediction, num_actions)
    return network, variables


def _trunk_shape(
    observation_shape: tuple[int, int, int], line_length: int
) -> tuple[int, int, int]:
    """Returns the shape of the trunk's input."""
    if not line_length:
        return observation_shape
    height, width, planes = observation_shape
    if line_length > max(height, width):
        raise ValueError(
            f"network.line_length must be at most {max(height, width)}, the longer "
            f"side of the board: {line_length}"
        )
    if planes < NUM_PLANES or width > MAX_WIDTH:
        raise ValueError(
            "network.line_length requires a plane for the stones of each player and at "
            f"most {MAX_WIDTH} columns, and the observation is {observation_shape}: "
            f"{line_length}"
        )
    return height, width, planes + NUM_PLANES


def _num_other_actions(num_actions: int, num_cells: int, actions_per_cell: int) -> int:
    """Returns the number of actions that belong to no cell, such as a pass."""
    if actions_per_cell == 0:
        raise ValueError(
            "network.heads must be dense for a game whose actions do not belong to "
            "cells (Game.actions_per_cell is 0): 'board'"
        )
    check_int("actions_per_cell", actions_per_cell, 1)
    num_others = num_actions - num_cells * actions_per_cell
    if num_others < 0:
        raise ValueError(
            f"actions_per_cell must be at most {num_actions} actions / {num_cells} "
            f"cells: {actions_per_cell}"
        )
    return num_others


def predict(
    network: Network, variables: Variables, observation: jax.Array
) -> Prediction:
    """Evaluates B positions as in play; `observation` is `[B, H, W, C]`."""
    return nnx.merge(network.eval_def, *variables)(observation)


def cast_variables(network: Network, variables: Variables) -> Variables:
    """Returns the variables with the parameters of convolutions and linear layers in
    the dtype in which these compute.

    The predictions are the same. A loop that evaluates the network with the result does
    not cast the parameters in each round.
    """
    model = nnx.merge(network.eval_def, *variables)
    for _, module in nnx.iter_modules(model):
        # Not those of subclasses, which may compute with them in another dtype first.
        if type(module) is nnx.Conv or type(module) is nnx.Linear:
            for param in (module.kernel, module.bias):
                if param is not None and module.dtype is not None:
                    param.set_value(param.get_value().astype(module.dtype))
    _, *arrays = nnx.split(model, nnx.Param, nnx.BatchStat)
    return Variables(*nnx.as_pure(arrays))


def predict_in_training(
    network: Network, variables: Variables, observation: jax.Array
) -> tuple[Prediction, nnx.State]:
    """Evaluates B positions as in training; also returns the new batch statistics."""
    model = nnx.merge(network.train_def, *variables)
    prediction = model(observation)
    return prediction, nnx.as_pure(nnx.state(model, nnx.BatchStat))


def _inference(module: nnx.Module) -> nnx.Module:
    """Returns the module in inference mode, sharing its arrays."""
    return nnx.view(
        module,
        use_running_average=True,
        deterministic=True,
        raise_if_not_found=False,
    )


def _features_shape(features: jax.Array) -> tuple[int, ...]:
    if features.ndim < 2 or features.shape[0] != CHECKED_BATCH:
        raise ValueError(
            "the trunk must return features [B, ...]; for "
            f"{CHECKED_BATCH} observations it returned {features.shape}"
        )
    return features.shape[1:]


def _check_nothing_else(rest: nnx.State) -> None:
    names = [
        jax.tree_util.keystr(path, simple=True, separator=".")
        for path, _ in jax.tree.leaves_with_path(rest)
    ]
    if names:
        raise ValueError(
            "a network's variables must be nnx.Param or nnx.BatchStat; others, such "
            f"as Dropout's, are not supported: {', '.join(names)}"
        )


def _check_shapes(prediction: Prediction, num_actions: int) -> None:
    policy_shape = prediction.policy_logits.shape
    if policy_shape != (CHECKED_BATCH, num_actions):
        raise ValueError(
            f"the policy head must return [B, {num_actions}] logits; for "
            f"{CHECKED_BATCH} observations it returned {policy_shape}"
        )
    value_shape = prediction.value_logits.shape
    if value_shape not in ((CHECKED_BATCH, 1), (CHECKED_BATCH, 3)):
        raise ValueError(
            "the value head must return [B, 3] or [B, 1] logits; for "
            f"{CHECKED_BATCH} observations it returned {value_shape}"
        )

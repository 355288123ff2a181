"""Auxiliary heads for games that are decided by territory.

Wu 2019, "Accelerating Self-Play Learning in Go", section 4.1: a network that also
predicts the owner of each cell at the end, and the margin, learns faster, because each
game gives a target for each cell instead of one result.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from azjax.games import Game, State
from azjax.networks import AuxiliaryHead, CustomModules, Network, Variables
from azjax.players import first_network
from azjax.players.model import check_search
from azjax.training.config import TrainConfig

OWNERS, MARGIN = "owners", "margin"
# Paths of their parameters in an `AlphaZeroNetwork`.
_PATHS = tuple(("auxiliary", f"{name}_head") for name in (OWNERS, MARGIN))


def training_network(
    config: TrainConfig, game: Game, modules: CustomModules | None
) -> tuple[Network, Variables, CustomModules | None]:
    """Builds the untrained network of a run; with `learner.owners_weight` it has the
    heads of `territory_heads`.

    Args:
        config: the run's settings.
        game: the game.
        modules: the user's own modules.

    Returns:
        The network, its variables, and its modules.

    Raises:
        ValueError: the game cannot be searched with these settings, it has no owners,
            or the user's heads have the same names.
    """
    check_search(game, config.search)
    weight = config.learner.owners_weight
    if weight:
        if not has_owners(game):
            raise ValueError(
                "learner.owners_weight must be 0 for a game that is not decided by "
                f"territory (whose `owners` are None), such as {game!r}: {weight}"
            )
        modules = modules or CustomModules()
        heads = territory_heads(game, weight)
        modules = dataclasses.replace(modules, auxiliary=(*modules.auxiliary, *heads))
    return *first_network(config.seed, game, config.network, modules), modules


def has_owners(game: Game) -> bool:
    """Returns whether the game is decided by territory."""
    return jax.eval_shape(lambda: game.owners(game.init())) is not None


def without_territory_heads(variables: Variables) -> Variables:
    """Returns the variables of a network without those of `territory_heads`."""
    params = {
        path: leaf
        for path, leaf in nnx.to_flat_state(variables.params)
        if path[:2] not in _PATHS
    }
    return variables._replace(params=nnx.from_flat_state(params))


def with_territory_heads(variables: Variables, source: Variables) -> Variables:
    """Returns variables without territory heads with those of `source`."""
    params = dict(nnx.to_flat_state(source.params))
    params |= dict(nnx.to_flat_state(variables.params))
    return variables._replace(params=nnx.from_flat_state(params))


def territory_heads(game: Game, weight: float) -> tuple[AuxiliaryHead, AuxiliaryHead]:
    """Returns the heads `owners` and `margin`, for the player to move.

    `owners` are `[B, H, W]` logits that a cell belongs to the player to move at the
    end; a cell of neither player counts as half. `margin` is `[B]`: the cells of the
    player to move less those of the opponent, divided by the number of cells. The
    losses are the cross-entropy, averaged over the cells, and Huber's.

    Args:
        game: a game whose `owners` are not None.
        weight: of each head's loss.
    """
    height, width, _ = game.observation_shape
    return (
        AuxiliaryHead(
            name=OWNERS,
            make=functools.partial(_OwnersHead, height, width),
            target=functools.partial(_owners_target, game),
            loss=lambda logits, owners: optax.sigmoid_binary_cross_entropy(
                logits, (1 + owners) / 2
            ).mean(axis=(1, 2)),
            transform=lambda symmetry, owners: symmetry.observation(owners[..., None])[
                ..., 0
            ],
            weight=weight,
        ),
        AuxiliaryHead(
            name=MARGIN,
            make=_MarginHead,
            target=lambda *states: _owners_target(game, *states).mean(),
            loss=optax.huber_loss,
            weight=weight,
        ),
    )


class _OwnersHead(nnx.Module):
    """A 1x1 convolution, or a linear layer if the features are not a board."""

    def __init__(
        self,
        height: int,
        width: int,
        features_shape: tuple[int, ...],
        rngs: nnx.Rngs,
    ):
        self.board = height, width
        self.linear = (
            nnx.Conv(features_shape[-1], 1, (1, 1), rngs=rngs)
            if features_shape[:-1] == self.board
            else nnx.Linear(math.prod(features_shape), height * width, rngs=rngs)
        )

    def __call__(self, features: jax.Array) -> jax.Array:
        if isinstance(self.linear, nnx.Linear):
            features = features.reshape(len(features), -1)
        owners = self.linear(features.astype(jnp.float32))
        return owners.reshape(len(features), *self.board)


class _MarginHead(nnx.Module):
    """A linear layer on the features, averaged over the board if they are one."""

    def __init__(self, features_shape: tuple[int, ...], rngs: nnx.Rngs):
        self.linear = nnx.Linear(features_shape[-1], 1, rngs=rngs)

    def __call__(self, features: jax.Array) -> jax.Array:
        cells = tuple(range(1, features.ndim - 1))
        return self.linear(features.astype(jnp.float32).mean(axis=cells))[:, 0]


def _owners_target(game: Game, state: State, final_state: State) -> jax.Array:
    """Returns `[H, W]` float32: 1 for a cell of the player to move in `state` at the
    end of the game, -1 for one of the opponent, 0 for neither."""
    owners = jnp.asarray(game.owners(final_state))
    sign = jnp.where(owners == state.current_player, 1.0, -1.0)
    return jnp.where(owners < 0, 0.0, sign)

"""Transformations of a board that map the rules onto themselves."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Symmetry:
    """A transformation of the board that maps the rules onto themselves.

    `Game.symmetries` has those of a game, from which training draws; `identity`,
    `board_symmetry` and `board_symmetries` make them for boards whose cells are the
    first actions.

    For a state `s` and its image `s'`: `observation(observe(s)) == observe(s')` and
    `legal_action_mask(s)[actions] == legal_action_mask(s')`.

    observation: maps `[..., H, W, C]` observations, for any number of leading axes.
    actions: `[A]` int; entry `a` of a transformed policy is entry `actions[a]` of the
        policy.

    Example:
        >>> _, mirror = games.make("connect_four").symmetries
        >>> policy = jax.numpy.array([0.5, 0.25, 0.25, 0, 0, 0, 0])
        >>> policy[mirror.actions].tolist()
        [0.0, 0.0, 0.0, 0.0, 0.25, 0.25, 0.5]
    """

    observation: Callable[[jax.Array], jax.Array]
    actions: np.ndarray


def identity(num_actions: int) -> Symmetry:
    """Returns the symmetry that changes nothing, the first of `Game.symmetries` and by
    default the only one."""
    return Symmetry(lambda observation: observation, np.arange(num_actions))


def board_symmetry(
    height: int, width: int, num_actions: int, *, mirror: bool = False, turns: int = 0
) -> Symmetry:
    """Returns the symmetry that mirrors a board left to right, then turns it.

    Action `a < height * width` is a cell, counted row by row; the actions after the
    cells, such as a pass, stay what they are.

    Args:
        height: rows of the board.
        width: columns of the board.
        num_actions: A, at least `height * width`.
        mirror: whether the board is mirrored; with neither this nor `turns`, the
            default, it is the identity.
        turns: quarter turns against the clock; even unless the board is a square.
    """
    cells = np.arange(height * width).reshape(height, width)
    cells = np.rot90(np.fliplr(cells) if mirror else cells, turns)
    rest = np.arange(height * width, num_actions)
    return Symmetry(
        functools.partial(_transform, mirror=mirror, turns=turns),
        np.concatenate([cells.ravel(), rest]),
    )


def board_symmetries(height: int, width: int, num_actions: int) -> tuple[Symmetry, ...]:
    """Returns all symmetries of a board whose cells are the first actions, for games in
    which no direction and no side of the board is special.

    A square has eight, another rectangle four; the identity comes first.
    """
    return tuple(
        board_symmetry(height, width, num_actions, mirror=mirror, turns=turns)
        for mirror in (False, True)
        for turns in range(0, 4, 1 if height == width else 2)
    )


def _transform(observation: jax.Array, mirror: bool, turns: int) -> jax.Array:
    mirrored = jnp.flip(observation, axis=-2) if mirror else observation
    return jnp.rot90(mirrored, turns, axes=(-3, -2))

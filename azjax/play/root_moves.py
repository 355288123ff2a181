"""Restricts the first move of a player to some of the legal ones.

Players take the legal moves from their game, so every compiled player, whether it
searches or not, obeys the restriction if its game is a `RestrictedGame`.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax.games import Game, State
from azjax.games.symmetry import Symmetry
from azjax.players import Player


@struct.dataclass
class RestrictedState:
    """A position in which not all legal actions may be chosen.

    state: the position.
    allowed: `[ceil(A / 8)]` uint8; the bits of the actions that may be chosen; all of
        them after any move.
    """

    state: Any
    allowed: jax.Array

    @property
    def current_player(self) -> jax.Array:
        """`[]` int8; the player to move."""
        return self.state.current_player

    @property
    def terminated(self) -> jax.Array:
        """`[]` bool; whether the game is over."""
        return self.state.terminated


class RestrictedGame(Game[RestrictedState]):
    """A game whose first move is restricted, as players see it."""

    name = "restricted"

    def __init__(self, game: Game):
        self._game = game
        self._all = np.packbits(np.ones(game.num_actions, bool))
        self.num_actions = game.num_actions
        self.observation_shape = game.observation_shape
        self.max_moves = game.max_moves
        self.max_legal_actions = game.max_legal_actions
        self.num_outcomes = game.num_outcomes
        self.has_extra_turns = game.has_extra_turns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RestrictedGame) and self._game == other._game

    def __hash__(self) -> int:
        return hash((RestrictedGame, self._game))

    def at(self, state: State, allowed: np.ndarray | None = None) -> RestrictedState:
        """Returns a position as NumPy arrays.

        Args:
            state: the position in the unrestricted game.
            allowed: `[A]` bool, True for at least one legal action; None: all.
        """
        bits = self._all if allowed is None else np.packbits(allowed)
        return RestrictedState(state=state, allowed=bits)  # pyright: ignore

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The symmetries of the game, which hold for its observations."""
        return self._game.symmetries

    def init(self) -> RestrictedState:
        """Returns the first position, without a restriction."""
        return RestrictedState(self._game.init(), jnp.asarray(self._all))

    def step(self, state: RestrictedState, action: jax.Array) -> RestrictedState:
        """Returns the position after an action, without a restriction."""
        after = self._game.step(state.state, action)
        return RestrictedState(after, jnp.asarray(self._all))

    def legal_action_mask(self, state: RestrictedState) -> jax.Array:
        """Returns `[A]` bool, True where the action is legal and allowed."""
        allowed = jnp.unpackbits(state.allowed, count=self.num_actions)
        return self._game.legal_action_mask(state.state) & (allowed == 1)

    def chance(self, state: RestrictedState) -> jax.Array | None:
        """Returns `[K]` float32, the probabilities of the outcomes."""
        return self._game.chance(state.state)

    def chance_step(
        self, state: RestrictedState, outcome: jax.Array
    ) -> RestrictedState:
        """Returns the position after an outcome, without a restriction."""
        after = self._game.chance_step(state.state, outcome)
        return RestrictedState(after, jnp.asarray(self._all))

    def observe(self, state: RestrictedState) -> jax.Array:
        """Returns `[H, W, C]` float32, the observation of the position."""
        return self._game.observe(state.state)

    def rewards(self, state: RestrictedState) -> jax.Array:
        """Returns `[2]` float32, the result."""
        return self._game.rewards(state.state)

    def evaluate(self, state: RestrictedState) -> jax.Array:
        """Returns `[]` float32, the heuristic estimate."""
        return self._game.evaluate(state.state)

    def board(self, state: RestrictedState) -> jax.Array:
        """Returns `[H, W]` int8, the pieces on the board."""
        return self._game.board(state.state)


def restricted(player: Player) -> Player:
    """Returns a compiled player for positions of a `RestrictedGame`."""
    fields: Any = player  # players are dataclasses with a game
    return dataclasses.replace(fields, game=RestrictedGame(fields.game))

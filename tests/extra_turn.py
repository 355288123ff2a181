"""A game with extra turns for tests."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from azjax.games.stones import State
from azjax.games.tic_tac_toe import TicTacToe

CENTRE = 4


class CentreAgain(TicTacToe):
    """Tic-tac-toe in which the player who marks the centre moves again."""

    name: ClassVar[str] = "centre_again"
    has_extra_turns = True

    def step(self, state: State, action: jax.Array) -> State:
        """Marks cell `action` for the player to move."""
        after = super().step(state, action)
        is_again = (action == CENTRE) & ~after.terminated
        player = jnp.where(is_again, state.current_player, after.current_player)
        return dataclasses.replace(after, current_player=player)

"""Breakthrough, replayed by OpenSpiel.

OpenSpiel's first player moves down, ours up: its board is ours upside down. It numbers
a move by its cell, one of six directions and whether it captures; we by the cell and
direction that the player to move sees. OpenSpiel fills two rows with men on boards of
six rows or more, one row on lower ones, so that only the former can be compared.
"""

import collections

import numpy as np
import pyspiel
from engines.replay import replay

from azjax import games

NUM_DIRECTIONS = 3  # of each player


def compare(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in OpenSpiel and counts the disagreements, by fact.

    Raises:
        ValueError: the board is too low for OpenSpiel to have the same first position.
    """
    height, width, _ = game.observation_shape
    if height < 6:
        raise ValueError(f"OpenSpiel has one row of men on boards below 6 rows: {game}")
    rules = pyspiel.load_game("breakthrough", {"rows": height, "columns": width})
    upside_down = {**record, "board": np.asarray(record["board"])[..., ::-1, :]}
    return replay(
        lambda: _State(rules.new_initial_state(), height, width),
        upside_down,
        pieces="bw.",
        read_board=lambda state: state.cells(),
    )


class _State:
    """A position of OpenSpiel whose actions have our numbers."""

    def __init__(self, state: pyspiel.State, height: int, width: int):
        self.state, self.height, self.width = state, height, width
        self.is_terminal, self.returns = state.is_terminal, state.returns
        self.current_player = state.current_player

    def legal_actions_mask(self) -> list[bool]:
        """Returns for each action whether it is legal."""
        self.their_action = {self._ours(a): a for a in self.state.legal_actions()}
        num_actions = self.height * self.width * NUM_DIRECTIONS
        return [action in self.their_action for action in range(num_actions)]

    def apply_action(self, action: int) -> None:
        """Makes a move, after the legal ones were asked for."""
        self.state.apply_action(self.their_action[action])

    def cells(self) -> str:
        """Returns the cells in OpenSpiel's drawing, whose rows begin with a number."""
        text, pitch = str(self.state), self.width + 2
        starts = range(1, self.height * pitch, pitch)
        return "".join(text[start : start + self.width] for start in starts)

    def _ours(self, action: int) -> int:
        """Returns our number of an action of the player to move."""
        cell, direction = divmod(action // 2, 2 * NUM_DIRECTIONS)
        row, column = divmod(cell, self.width)
        if direction < NUM_DIRECTIONS:  # it is the first player's
            row = self.height - 1 - row
        cell = row * self.width + column
        return cell * NUM_DIRECTIONS + direction % NUM_DIRECTIONS

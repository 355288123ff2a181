"""Replays Breakthrough in OpenSpiel.

OpenSpiel's first player moves down, azjax's up: its board is azjax's upside down. It
numbers a move by its cell, one of six directions and whether it captures; azjax by the
cell and direction that the player to move sees. On boards with six rows or more,
OpenSpiel fills two rows with pieces, on lower ones a single row. Only the former can be
compared.
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
        ValueError: the board is so low that OpenSpiel's initial position differs.
    """
    height, width, _ = game.observation_shape
    if height < 6:
        raise ValueError(
            f"OpenSpiel starts with one row of pieces below 6 rows: {game}"
        )
    rules = pyspiel.load_game("breakthrough", {"rows": height, "columns": width})
    upside_down = {**record, "board": np.asarray(record["board"])[..., ::-1, :]}
    return replay(
        lambda: _State(rules.new_initial_state(), height, width),
        upside_down,
        pieces="bw.",
        read_board=lambda state: state.cells(),
    )


class _State:
    """An OpenSpiel position whose actions have azjax's numbers."""

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
        """Makes a move; `legal_actions_mask` must be called before."""
        self.state.apply_action(self.their_action[action])

    def cells(self) -> str:
        """Returns the cells of OpenSpiel's drawing, whose rows begin with a number."""
        text, pitch = str(self.state), self.width + 2
        starts = range(1, self.height * pitch, pitch)
        return "".join(text[start : start + self.width] for start in starts)

    def _ours(self, action: int) -> int:
        """Returns azjax's number of an action of the player to move."""
        cell, direction = divmod(action // 2, 2 * NUM_DIRECTIONS)
        row, column = divmod(cell, self.width)
        if direction < NUM_DIRECTIONS:  # the first player's move
            row = self.height - 1 - row
        cell = row * self.width + column
        return cell * NUM_DIRECTIONS + direction % NUM_DIRECTIONS

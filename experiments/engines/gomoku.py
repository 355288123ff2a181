"""Replays gomoku in OpenSpiel's m,n,k game, or in a slow, simple engine.

OpenSpiel's rules are azjax's without the option `exact`: a longer line wins too, and a
full board is a draw. Games with `exact` are replayed by `Reference`.
"""

import collections
import itertools

import pyspiel
from engines.replay import replay

from azjax import games


class Reference:
    """A position of an m,n,k game, with the methods of an OpenSpiel state."""

    def __init__(self, height: int, width: int, length: int, exact: bool):
        self.length, self.exact = length, exact
        self.cells = ["."] * (height * width)
        self.winner: int | None = None
        # All rows, columns and diagonals of the board, in full length.
        self.lines = collections.defaultdict(list)
        for cell in range(height * width):
            for name in self._lines_of(cell, width):
                self.lines[name].append(cell)
        self.width = width

    @staticmethod
    def _lines_of(cell: int, width: int) -> list[tuple[str, int]]:
        row, column = divmod(cell, width)
        return [
            ("row", row),
            ("column", column),
            ("falling", row - column),
            ("rising", row + column),
        ]

    def __str__(self) -> str:
        return "".join(self.cells)

    def current_player(self) -> int:
        """Returns the player to move."""
        return sum(cell != "." for cell in self.cells) % 2

    def is_terminal(self) -> bool:
        """Returns whether the game is over."""
        return self.winner is not None or "." not in self.cells

    def returns(self) -> list[float]:
        """Returns the result for each player."""
        if self.winner is None:
            return [0.0, 0.0]
        return [1.0, -1.0] if self.winner == 0 else [-1.0, 1.0]

    def legal_actions_mask(self) -> list[bool]:
        """Returns for each action whether it is legal."""
        return [cell == "." for cell in self.cells]

    def apply_action(self, action: int) -> None:
        """Places a stone of the player to move on a cell."""
        player = self.current_player()
        self.cells[action] = "xo"[player]
        for name in self._lines_of(action, self.width):
            line = [self.cells[cell] for cell in self.lines[name]]
            for symbol, run in itertools.groupby(line):
                stones = len(list(run))
                long_enough = (
                    stones == self.length if self.exact else stones >= self.length
                )
                if symbol == "xo"[player] and long_enough:
                    self.winner = player


def compare(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record and counts the disagreements, by fact."""
    if game.options["exact"]:
        return compare_with_reference(game, record)
    height, width, length, _ = game.options.values()
    rules = pyspiel.load_game(f"mnk(m={width},n={height},k={length})")
    return replay(rules.new_initial_state, record)


def compare_with_reference(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record with `Reference` and counts the disagreements, by fact."""
    height, width, length, exact = game.options.values()
    return replay(
        lambda: Reference(int(height), int(width), int(length), bool(exact)), record
    )

"""Replays the Royal Game of Ur in a plain engine, which moves pieces along their path.

The engine keeps a list of the squares on which the pieces of each player are, and rolls
and moves by the words of the rules, with OpenSpiel's methods.
"""

import collections
import string
from typing import Any

import numpy as np
from engines.replay import replay

from azjax import games

# Where pieces wait, the squares of the path in order, and where they are at home.
PATHS = [
    path.split()
    for path in (
        "e1 d1 c1 b1 a1 a2 b2 c2 d2 e2 f2 g2 h2 h1 g1 f1",
        "e3 d3 c3 b3 a3 a2 b2 c2 d2 e2 f2 g2 h2 h3 g3 f3",
    )
]
ROSETTES = {"a1", "a3", "d2", "g1", "g3"}
SAFE = "d2"
PASS = 0
# Letters of one to seven pieces and of the rolls 0 to 4, for each player.
LETTERS = (string.ascii_uppercase[:12], string.ascii_lowercase[:12])
EMPTY = "."


def compare(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in the plain engine and counts the disagreements, by fact."""
    options: Any = game.options
    return replay(
        lambda: PlainUr(**options),
        record,
        pieces="".join(LETTERS) + EMPTY,
        read_board=_cells,
    )


def _cells(state: "PlainUr") -> str:
    """Returns the cells of a position as azjax draws it, with the roll on the right."""
    cells = dict.fromkeys(
        (f"{column}{row}" for row in "321" for column in "abcdefghi"), EMPTY
    )
    for letters, path, places in zip(LETTERS, PATHS, state.places, strict=True):
        for place, number in collections.Counter(places).items():
            cells[path[place]] = letters[number - 1]
    if state.roll is not None and not state.is_over:
        cells["i1" if state.player == 0 else "i3"] = LETTERS[state.player][
            7 + state.roll
        ]
    return "".join(cells.values())


class PlainUr:
    """A game of Ur.

    places: for each player, the place of each piece on the path: 0 before it enters, 1
        to 14 on the board, 15 at home.
    roll: of the dice; None before they are rolled.
    """

    def __init__(self, pieces: int, max_moves: int):
        self.places = [[0] * pieces, [0] * pieces]
        self.player = 0
        self.roll: int | None = None
        self.moves_left = max_moves
        self.winner: int | None = None
        self.is_over = False

    def is_terminal(self) -> bool:
        """Returns whether the game is over."""
        return self.is_over

    def returns(self) -> list[float]:
        """Returns the results of both players; zeros until the game is over."""
        if self.winner is None:
            return [0.0, 0.0]
        return [1.0, -1.0] if self.winner == 0 else [-1.0, 1.0]

    def is_chance_node(self) -> bool:
        """Returns whether the dice are to be rolled."""
        return not self.is_over and self.roll is None

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Returns the rolls and their probabilities."""
        throws = [sum(dice) for dice in np.ndindex(2, 2, 2, 2)]
        return [(roll, throws.count(roll) / len(throws)) for roll in sorted({*throws})]

    def current_player(self) -> int:
        """Returns the player to move."""
        return self.player

    def legal_actions_mask(self) -> list[bool]:
        """Returns for each place to which a piece may move whether one can move there;
        the first entry is the pass.
        """
        roll = self.roll or 0
        ends = {
            place + roll
            for place in self.places[self.player]
            if self._can_move(place, roll)
        }
        return [not ends, *(place in ends for place in range(1, 16))]

    def _can_move(self, place: int, roll: int) -> bool:
        """Returns whether a piece of the player to move can move from a place."""
        path, home = PATHS[self.player], len(PATHS[self.player]) - 1
        if roll == 0 or place == home or place + roll > home:
            return False
        if place + roll == home:
            return True
        if place + roll in self.places[self.player]:
            return False
        return not (path[place + roll] == SAFE and self._enemies(SAFE))

    def _enemies(self, square: str) -> list[int]:
        """Returns the numbers of the opponent's pieces on a square."""
        path = PATHS[1 - self.player]
        return [
            number
            for number, place in enumerate(self.places[1 - self.player])
            if 0 < place < 15 and path[place] == square
        ]

    def apply_action(self, action: int) -> None:
        """Sets the roll if the dice are to be rolled, or else makes a move."""
        if self.roll is None:
            self.roll = action
            return
        mover, moves_again = self.player, False
        if action != PASS:
            own = self.places[mover]
            own[own.index(action - self.roll)] = action
            square = PATHS[mover][action]
            for number in self._enemies(square):
                self.places[1 - mover][number] = 0
            moves_again = square in ROSETTES
            if all(place == 15 for place in own):
                self.winner, self.is_over = mover, True
        self.moves_left -= 1
        self.is_over |= self.moves_left == 0
        self.roll = None
        if not moves_again:
            self.player = 1 - mover

"""Replays Kalah in a plain engine, which sows seed by seed, and in OpenSpiel.

OpenSpiel's mancala is Kalah on six pits with four seeds, in which the last seed
captures only if the pit on the other side is not empty. It leaves the last seeds in
their pits and counts them for the owner; the comparison moves them. It numbers the pits
around the board: 1 to 6 those of the first player, 8 to 13 those of the second.
"""

import collections
from typing import Any

import numpy as np
import pyspiel
from engines.replay import replay

from azjax import games

LETTERS = "".join(map(chr, range(0x100, 0x200)))  # of the numbers of seeds
CORNER = "#"  # a cell of the board without a pit


def compare(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in the plain engine and counts the disagreements, by fact."""
    options: Any = game.options
    return replay(lambda: PlainKalah(**options), record, **_boards(_cells))


def compare_with_open_spiel(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in OpenSpiel and counts the disagreements, by fact.

    Raises:
        ValueError: the options are not those of OpenSpiel's mancala.
    """
    options = game.options
    rules = {key: options[key] for key in ("pits", "seeds", "empty_capture")}
    if rules != {"pits": 6, "seeds": 4, "empty_capture": False} or (
        options["remaining"] != "owner"
    ):
        raise ValueError(f"OpenSpiel has kalah:empty_capture=false only: {game}")
    mancala = pyspiel.load_game("mancala")
    return replay(
        lambda: _OpenSpielState(mancala.new_initial_state()),
        record,
        **_boards(lambda state: _cells(state.plain())),
    )


def _boards(read_board: Any) -> dict[str, Any]:
    """Returns how `replay` reads boards: the last letter is that of -1."""
    return {"pieces": LETTERS + CORNER, "read_board": read_board}


def _cells(state: "PlainKalah") -> str:
    """Returns the cells of a position as azjax draws it."""
    south, north = state.pits
    first, second = state.stores
    upper = [LETTERS[second], *(LETTERS[count] for count in reversed(north)), CORNER]
    lower = [CORNER, *(LETTERS[count] for count in south), LETTERS[first]]
    return "".join(upper + lower)


class PlainKalah:
    """A game of Kalah, by the words of the rules, with OpenSpiel's methods.

    pits: of both players, in the order of sowing.
    stores: of both players.
    """

    def __init__(
        self, pits: int, seeds: int, empty_capture: bool, remaining: str, max_moves: int
    ):
        self.pits = [[seeds] * pits, [seeds] * pits]
        self.stores = [0, 0]
        self.empty_capture, self.remaining = empty_capture, remaining
        self.moves_left = max_moves
        self.player = 0
        self.is_over = False

    def is_terminal(self) -> bool:
        """Returns whether the game is over."""
        return self.is_over

    def returns(self) -> list[float]:
        """Returns the results of both players; zeros until the game is over."""
        if not self.is_over or self.stores[0] == self.stores[1]:
            return [0.0, 0.0]
        return [1.0, -1.0] if self.stores[0] > self.stores[1] else [-1.0, 1.0]

    def current_player(self) -> int:
        """Returns the player to move."""
        return self.player

    def legal_actions_mask(self) -> list[bool]:
        """Returns for each pit of the player to move whether it has seeds."""
        return [count > 0 for count in self.pits[self.player]]

    def apply_action(self, action: int) -> None:
        """Sows the seeds of a pit, one by one."""
        mover = self.player
        num_pits = len(self.pits[mover])
        hand, self.pits[mover][action] = self.pits[mover][action], 0
        side, place = mover, action
        while hand > 0:
            place += 1
            if place == num_pits and side == mover:
                self.stores[mover] += 1
            else:
                if place >= num_pits:  # past the end of a row
                    side, place = 1 - side, 0
                self.pits[side][place] += 1
            hand -= 1
        in_store = place == num_pits
        if not in_store and side == mover and self.pits[mover][place] == 1:
            facing = num_pits - 1 - place
            if self.pits[1 - mover][facing] > 0 or self.empty_capture:
                self.stores[mover] += 1 + self.pits[1 - mover][facing]
                self.pits[mover][place] = self.pits[1 - mover][facing] = 0
        self.moves_left -= 1
        if self.moves_left == 0 or not any(self.pits[0]) or not any(self.pits[1]):
            self.is_over = True
            for player, row in enumerate(self.pits):
                if self.remaining == "owner":
                    self.stores[player] += sum(row)
                elif self.remaining == "opponent":
                    self.stores[1 - player] += sum(row)
                row[:] = [0] * num_pits
        if not in_store:
            self.player = 1 - mover


class _OpenSpielState:
    """An OpenSpiel position whose actions have azjax's numbers."""

    def __init__(self, state: Any):
        self.state = state
        self.is_terminal, self.returns = state.is_terminal, state.returns
        self.current_player = state.current_player

    def legal_actions_mask(self) -> list[bool]:
        """Returns for each pit of the player to move whether it can be played."""
        legal = self.state.legal_actions()
        return [self._theirs(action) in legal for action in range(6)]

    def apply_action(self, action: int) -> None:
        """Makes a move."""
        self.state.apply_action(self._theirs(action))

    def plain(self) -> PlainKalah:
        """Returns the position with the last seeds in the stores of their owners."""
        counts = np.array(self.state.observation_tensor(0)[:14], int).tolist()
        plain = PlainKalah(6, 4, False, "owner", 0)
        plain.pits = [counts[1:7], counts[8:14]]
        plain.stores = [counts[7], counts[0]]
        if self.is_terminal():
            plain.stores = [
                store + sum(row)
                for store, row in zip(plain.stores, plain.pits, strict=True)
            ]
            plain.pits = [[0] * 6, [0] * 6]
        return plain

    def _theirs(self, action: int) -> int:
        return action + (1 if self.state.current_player() == 0 else 8)

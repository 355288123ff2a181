"""The positions that the command `position` sets up."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from azjax.games.chess import Chess, State
from azjax.games.core import compiled_mask
from azjax.games.host import first_state, next_state
from azjax.players.uci_notation import read_move

FEN_FIELDS = 6


class PositionReader:
    """Reads positions.

    Front ends repeat all moves of the game before each search: the states of the last
    position are kept.
    """

    def __init__(self, game: Chess):
        self._game = game
        self._start: list[str] | None = None
        self._moves: list[str] = []
        self._states: list[State] = []

    def read(self, words: Sequence[str]) -> State:
        """Returns the position that `startpos` or `fen FEN`, and `moves` describe.

        It is not terminated if it has moves, though the rules of `Chess` end a drawn
        game automatically: the front end decides when a game is over.

        Raises:
            ValueError: there is no such position, or a move is illegal.
        """
        place = words.index("moves") if "moves" in words else len(words)
        start, moves = list(words[:place]), list(words[place + 1 :])
        if start != self._start:
            self._states = [_continued(self._game, self._read_start(start))]
            self._start, self._moves = start, []
        known = 0
        for old, new in zip(self._moves, moves, strict=False):
            if old != new:
                break
            known += 1
        del self._moves[known:], self._states[known + 1 :]
        for text in moves[known:]:
            before = self._states[-1]
            action = read_move(self._game, before, text)
            after = next_state(self._game, before, action)
            self._states.append(_continued(self._game, after))
            self._moves.append(text)
        return self._states[-1]

    def _read_start(self, words: Sequence[str]) -> State:
        if words == ["startpos"]:
            return first_state(self._game)
        if words[:1] != ["fen"]:
            raise ValueError("a position is startpos or fen, a FEN and moves")
        if len(words) > FEN_FIELDS + 1:
            raise ValueError(f"not the word moves after the FEN: {words[7]!r}")
        return jax.device_get(self._game.from_fen(" ".join(words[1:])))


def _continued(game: Chess, state: State) -> State:
    """Returns the position as an unfinished one if it has moves."""
    if not state.terminated or not np.asarray(compiled_mask(game, state)).any():
        return state
    return dataclasses.replace(
        state, terminated=np.bool_(False), outcome=np.zeros_like(state.outcome)
    )

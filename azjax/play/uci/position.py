"""The positions that the command `position` sets up."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from azjax.games.chess import Chess, State
from azjax.games.chess.notation import FIFTY_MOVES, FILES, PIECES
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
            action = read_generously(self._game, before, text)
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
        fen = " ".join(_completed(list(words[1:])))
        return jax.device_get(self._game.from_fen(fen))


def _completed(fields: list[str]) -> list[str]:
    """Returns the fields of a FEN as `Chess.from_fen` demands them.

    Front ends and other engines omit the counters, count moves from 0, and do not
    compare the clock with the en passant square or with the rule of 50 moves.
    """
    fields = fields + ["0", "1"][len(fields) - 4 :] if len(fields) in (4, 5) else fields
    if len(fields) != FEN_FIELDS:
        return fields  # refused by name
    *position, passing, clock, number = fields
    if clock.isdecimal() and len(clock) < 5:
        clock = "0" if passing != "-" else str(min(int(clock), FIFTY_MOVES))
    return [*position, passing, clock, "1" if number == "0" else number]


def read_generously(game: Chess, state: State, text: str) -> int:
    """Reads a move; also `e7e8Q`, and castling as the king's move to its rook (`e1h1`),
    as engines for Chess960 write it.

    Raises:
        ValueError: the text is not a legal move in this position.
    """
    text = text.lower()
    castling = {"e1h1": "e1g1", "e1a1": "e1c1", "e8h8": "e8g8", "e8a8": "e8c8"}
    if text in castling:
        row, rook = (7, "R") if text[1] == "1" else (0, "r")
        board = np.asarray(game.board(state))
        pieces = board[row, [FILES.index(text[0]), FILES.index(text[2])]]
        kings = PIECES.index("K" if rook == "R" else "k")
        if pieces.tolist() == [kings, PIECES.index(rook)]:
            text = castling[text]
    return read_move(game, state, text)


def _continued(game: Chess, state: State) -> State:
    """Returns the position as an unfinished one if it has moves."""
    if not state.terminated or not np.asarray(compiled_mask(game, state)).any():
        return state
    return dataclasses.replace(
        state, terminated=np.bool_(False), outcome=np.zeros_like(state.outcome)
    )

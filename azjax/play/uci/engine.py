"""The UCI commands for any player of chess that can be compiled.

Searches run in a background thread. The first `readyok` is sent when the search is
compiled, every other answer at once; `stop` ends a search after its current slice.

A node is a simulation, and the depth is the length of the principal variation. A search
never makes more simulations than the player's: `alphazero:RUN?simulations=800`.
"""

import dataclasses
import os
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import jax
import numpy as np

import azjax
from azjax.checks import printable
from azjax.games.chess import Chess, State
from azjax.games.chess.notation import FIFTY_MOVES, FILES, FIRST_POSITION, PIECES
from azjax.games.core import compiled_mask
from azjax.games.host import first_state, next_state
from azjax.play.uci.searcher import (
    Clock,
    Limits,
    Progress,
    Searcher,
    info_lines,
    parse_go,
    search_moves,
    variations,
)
from azjax.players import AlphaZeroPlayer, Player
from azjax.players.uci_notation import UciOption, read_move, setoption

FEN_FIELDS = 6
MAX_VARIATIONS = 64
# Reading it runs all programs that read a position.
COMPILED_POSITION = f"fen {FIRST_POSITION} moves e2e4"
NO_MOVE = "bestmove (none)"
SHOWN = 200  # characters of input quoted in a message


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
            if start == ["startpos"]:
                state = first_state(self._game)
            elif start[:1] != ["fen"]:
                raise ValueError("a position is startpos or fen, a FEN and moves")
            elif len(start) > FEN_FIELDS + 1:
                raise ValueError(f"not the word moves after the FEN: {start[7]!r}")
            else:
                fen = " ".join(_completed(start[1:]))
                state = jax.device_get(self._game.from_fen(fen))
            self._states = [_continued(self._game, state)]
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


class Engine:
    """A player that a front end controls."""

    def __init__(
        self, game: Chess, player: Player, write: Callable[[str], object], seed: int = 0
    ):
        """Starts compiling the search in the background.

        Args:
            game: the game; its limit of moves does not apply.
            player: a player that can be compiled.
            write: sends a line without its end; called by several threads.
            seed: seed of the player's random choices.
        """
        self._game, self._write = game.without_move_limit(), write
        self._lock = threading.Lock()
        self._reader = PositionReader(self._game)
        self._state: State | None = first_state(self._game)
        self._searcher = Searcher(player, self._game, seed)
        self._is_solved = (
            isinstance(player, AlphaZeroPlayer) and player.search.use_solver
        )
        self._options = {
            "multipv": (UciOption("MultiPV", "spin", 1, MAX_VARIATIONS), 1),
            "ponder": (UciOption("Ponder", "check"), "false"),
        }
        most = self._searcher.simulations
        if most:
            option = UciOption("Simulations", "spin", 1, most)
            self._options["simulations"] = (option, most)
        self._num_variations, self._simulations = 1, most
        self._commands: dict[str, Callable[[list[str]], object]] = {
            "uci": self._uci,
            "isready": lambda words: self._is_compiled.add_done_callback(
                lambda _: self._send("readyok")
            ),
            "setoption": self._setoption,
            "ucinewgame": lambda words: None,
            "position": self._position,
            "go": self._go,
            "stop": lambda words: self._clock.stop(),
            "ponderhit": lambda words: self._clock.ponderhit(),
            "debug": lambda words: None,
            "register": lambda words: None,
        }
        self._clock = Clock(Limits())  # of the last search
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="azjax-search")
        self._is_compiled = self._last = self._submit(self._compile)

    def execute(self, line: bytes) -> bool:
        """Executes a command; returns whether another may follow.

        Words before the first command of a line are ignored, as UCI demands.
        """
        words = line.decode("ascii", errors="ignore").split()
        while words and words[0] not in self._commands and words[0] != "quit":
            del words[0]
        if not words:
            return True
        if words[0] == "quit":
            return False
        self._commands[words[0]](words[1:])
        return True

    def finish(self) -> None:
        """Waits for the end of the last search; ends it if only `stop` can."""
        if self._clock.is_waiting:
            self._clock.stop()
        self._last.result()

    def close(self, seconds: float) -> bool:
        """Stops the search; returns whether it ended in time (s)."""
        self._clock.stop()
        self._thread.shutdown(wait=False, cancel_futures=True)
        return not wait([self._last], timeout=seconds).not_done

    def _submit(self, work: Callable[[], object]) -> Future[None]:
        """Runs work in the background thread, after all earlier work."""

        def run() -> None:
            try:
                work()
            except BaseException:
                # The front end would wait for an answer forever.
                traceback.print_exc()
                os._exit(1)

        return self._thread.submit(run)

    def _compile(self) -> None:
        """Compiles all that commands call (in the background thread)."""
        PositionReader(self._game).read(COMPILED_POSITION.split())
        self._searcher.compile()

    def _send(self, *lines: str) -> None:
        with self._lock:
            for line in lines:
                self._write(line)

    def _note(self, text: str) -> None:
        self._send(f"info string {printable(' '.join(text.split()), SHOWN)}")

    def _uci(self, words: list[str]) -> None:
        del words
        lines = [f"id name azjax {azjax.__version__}", "id author the azjax authors"]
        for option, default in self._options.values():
            line = f"option name {option.name} type {option.type} default {default}"
            if option.type == "spin":
                line += f" min {option.low} max {option.high}"
            lines.append(line)
        self._send(*lines, "uciok")

    def _setoption(self, words: list[str]) -> None:
        place = words.index("value") if "value" in words else len(words)
        name, value = " ".join(words[1:place]), " ".join(words[place + 1 :])
        if words[:1] != ["name"] or name.lower() not in self._options:
            self._note(f"unknown option: {name}")
            return
        option, _ = self._options[name.lower()]
        try:
            setoption(option, value)
        except ValueError as error:
            self._note(str(error))
            return
        if option.name == "MultiPV":
            self._num_variations = int(value)
        elif option.name == "Simulations":
            self._simulations = int(value)

    def _position(self, words: list[str]) -> None:
        self._state = None
        try:
            self._state = self._reader.read(words)
        except ValueError as error:
            self._note(str(error))

    def _go(self, words: list[str]) -> None:
        self._clock.stop()
        state = self._state
        player = 0 if state is None else int(state.current_player)
        clock = self._clock = Clock(parse_go(words, player))
        if state is None or state.terminated:
            self._note("the position is not set up" if state is None else "game over")
            self._last = self._submit(lambda: (clock.wait(), self._send(NO_MOVE)))
            return
        allowed = self._allowed(state, search_moves(words))
        simulations, most = self._simulations, self._num_variations
        moves: list[str] = []  # of the best line so far

        def report(progress: Progress) -> None:
            lines = variations(
                self._game, state, progress.decision, most, is_solved=self._is_solved
            )
            moves[:] = lines[0].moves
            self._send(*info_lines(progress, lines))

        def search() -> None:
            self._searcher.search(state, clock, simulations, report, allowed)
            clock.wait()
            ponder = f" ponder {moves[1]}" if len(moves) > 1 else ""
            self._send(f"bestmove {moves[0]}{ponder}")

        self._last = self._submit(search)

    def _allowed(self, state: State, moves: list[str]) -> np.ndarray | None:
        """Returns `[A]` bool, the legal ones of some moves; None if there are none."""
        allowed, illegal = np.zeros(self._game.num_actions, bool), []
        for text in moves[: self._game.max_legal_actions]:
            try:
                allowed[read_generously(self._game, state, text)] = True
            except ValueError:
                illegal.append(text)
        if illegal:
            self._note(f"searchmoves has no legal moves in: {' '.join(illegal)}")
        return allowed if allowed.any() else None

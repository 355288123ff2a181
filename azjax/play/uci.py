"""A UCI engine (Universal Chess Interface, 2006) for any player of chess that can be
compiled.

Searches run in a background thread. The first `readyok` is sent when the search is
compiled, every other answer at once; `stop` ends a search after its current slice.

A node is a simulation, and the depth is the length of the principal variation. A search
never makes more simulations than the player's: `alphazero:RUN?simulations=800`.

A mate is reported where it is proven: by the first move itself, or by the solver of a
search with `use_solver`. The number of moves is that of the principal variation.
"""

import dataclasses
import itertools
import os
import re
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import NamedTuple

import jax
import numpy as np

import azjax
from azjax.games import Game
from azjax.games.chess import Chess, State
from azjax.games.chess.notation import FIFTY_MOVES, FILES, FIRST_POSITION, PIECES
from azjax.games.chess.scores import centipawns
from azjax.games.core import compiled_mask
from azjax.games.host import first_state, next_state
from azjax.play.incremental_search import IncrementalSearch, SlicePlan
from azjax.play.root_moves import RestrictedGame, restricted
from azjax.play.text_output import expected_actions, rank_moves
from azjax.players import AlphaZeroPlayer, MCTSPlayer, MoveDecision, Player
from azjax.players.uci import UciOption, read_move, setoption
from azjax.search import GumbelConfig
from azjax.text import printable

FEN_FIELDS = 6
MAX_VARIATIONS = 64
# Reading it runs all programs that read a position.
COMPILED_POSITION = f"fen {FIRST_POSITION} moves e2e4"
NO_MOVE = "bestmove (none)"
SHOWN = 200  # characters of input quoted in a message
NUM_SLICES = 32  # of a search with the player's simulations
EXPECTED_MOVES = 30  # moves that the rest of the clock must suffice for
INCREMENT_SHARE = 0.75
MAX_SHARE = 0.8  # of the clock, for one move
MIN_SECONDS = 0.01
_NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "movetime")
_WORDS = {*_NUMBERS, "searchmoves", "ponder", "infinite", "mate"}


class Progress(NamedTuple):
    """A search so far.

    decision: the best move.
    nodes: simulations made.
    seconds: time since the start.
    """

    decision: MoveDecision
    nodes: int
    seconds: float


class Line(NamedTuple):
    """A variation.

    moves: its moves in UCI notation.
    score: such as `cp 31` or `mate 2`.
    """

    moves: list[str]
    score: str


def info_lines(progress: Progress, lines: list[Line]) -> list[str]:
    """Returns an `info` line for each variation."""
    nodes = progress.nodes
    return [
        f"info depth {len(line.moves)} multipv {number} score {line.score} "
        f"nodes {nodes} nps {round(nodes / max(progress.seconds, 1e-3))} "
        f"time {round(1000 * progress.seconds)} pv {' '.join(line.moves)}"
        for number, line in enumerate(lines, start=1)
    ]


def variations(
    game: Chess, state: State, decision: MoveDecision, most: int, *, is_solved: bool
) -> list[Line]:
    """Returns the variations of the chosen move and of the next ones by visits.

    Args:
        game: the game.
        state: the position.
        decision: the player's decision.
        most: number of variations, if so many moves were visited.
        is_solved: whether values of 1 and -1 are proven.
    """
    line = expected_actions(decision)
    ranked = {move.action: move.value for move in rank_moves(decision)[: max(1, most)]}
    value = ranked.pop(decision.action, None)
    if value is None:
        value = decision.value or 0.0
    found = [_variation(game, state, line, value, is_solved=is_solved)]
    return found + [
        _variation(game, state, [action], other, is_solved=is_solved)
        for action, other in ranked.items()
        if other is not None
    ]


def _variation(
    game: Chess, state: State, actions: list[int], value: float, *, is_solved: bool
) -> Line:
    moves, player = [], int(state.current_player)
    for action in actions:
        moves.append(game.action_to_text(state, action))
        state = next_state(game, state, action)
    is_proven = len(moves) == 1 or (is_solved and abs(value) == 1)
    if is_proven and state.outcome:
        wins = int(state.outcome) == 1 - 2 * player
        number = (len(moves) + 1) // 2 if wins else -len(moves) // 2
        return Line(moves, f"mate {number}")
    return Line(moves, f"cp {centipawns(value)}")


class SearchLimits(NamedTuple):
    """When a search ends: at the first of its limits.

    nodes: simulations, at least 1; None without a limit.
    depth: moves of the principal variation; None without a limit.
    seconds: duration; None without a limit.
    is_infinite: whether only `stop` ends it.
    is_ponder: whether `seconds` count from `ponderhit`.
    """

    nodes: int | None = None
    depth: int | None = None
    seconds: float | None = None
    is_infinite: bool = False
    is_ponder: bool = False


def parse_go(words: Sequence[str], player: int) -> SearchLimits:
    """Parses the arguments of `go`.

    Unknown words and `mate`, and values that are not numbers are ignored.

    Args:
        words: the arguments.
        player: the player to move, 0 for White.
    """
    nodes, depth = _number(words, "nodes"), _number(words, "depth")
    is_infinite, seconds, color = "infinite" in words, None, "wb"[player]
    movetime, clock = _number(words, "movetime"), _number(words, f"{color}time")
    if movetime is not None:
        seconds = max(MIN_SECONDS, movetime / 1000)
    elif clock is not None:
        moves = max(1, _number(words, "movestogo") or EXPECTED_MOVES)
        increment = _number(words, f"{color}inc") or 0
        share = clock / moves + INCREMENT_SHARE * increment
        seconds = max(MIN_SECONDS, min(share, MAX_SHARE * clock) / 1000)
    return SearchLimits(
        nodes=None if nodes is None else max(1, nodes),
        depth=None if depth is None else max(1, depth),
        seconds=None if is_infinite else seconds,
        is_infinite=is_infinite,
        is_ponder="ponder" in words,
    )


def search_moves(words: Sequence[str]) -> list[str]:
    """Returns the moves that `searchmoves` restricts a search to; none: all moves."""
    after = itertools.dropwhile(lambda word: word != "searchmoves", words)
    return list(itertools.takewhile(lambda word: word not in _WORDS, list(after)[1:]))


def _number(words: Sequence[str], name: str) -> int | None:
    """Returns the whole number after a word; None if there is none."""
    for word, value in itertools.pairwise(words):
        if word == name and re.fullmatch(r"-?\d{1,12}", value, re.ASCII):
            return int(value)
    return None


class Clock:
    """The limits of a search that runs; `stop` and `ponderhit` change them.

    Thread-safe. The time counts from the construction of this object.
    """

    def __init__(self, limits: SearchLimits):
        self.limits, self._begin = limits, time.monotonic()
        self._deadline = None if limits.is_ponder else self._after(limits.seconds)
        self._is_waiting = limits.is_infinite or limits.is_ponder
        self._is_stopped = False
        self._changed = threading.Condition()

    @property
    def is_waiting(self) -> bool:
        """Whether the move may not be sent before `stop` or `ponderhit`."""
        return self._is_waiting

    @property
    def seconds(self) -> float:
        """The time since the start (s)."""
        return time.monotonic() - self._begin

    def is_over(self, depth: int, seconds: float) -> bool:
        """Returns whether the search ends now.

        Args:
            depth: moves of the principal variation.
            seconds: expected duration of the next slice.
        """
        if self._is_stopped:
            return True
        if self.limits.depth is not None and depth >= self.limits.depth:
            return True
        return (
            self._deadline is not None and time.monotonic() + seconds > self._deadline
        )

    def stop(self) -> None:
        """Ends the search."""
        with self._changed:
            self._is_stopped, self._is_waiting = True, False
            self._changed.notify_all()

    def ponderhit(self) -> None:
        """Starts the clock of a search that ponders."""
        if self.limits.is_ponder and self._is_waiting:
            with self._changed:
                self._deadline = self._after(self.limits.seconds)
                self._is_waiting = self.limits.is_infinite
                self._changed.notify_all()

    def wait(self) -> None:
        """Waits until the move may be sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_waiting)

    def _after(self, seconds: float | None) -> float | None:
        return None if seconds is None else time.monotonic() + seconds


class Searcher:
    """Searches positions, each from an empty tree.

    A player without search chooses its move at once, without regard to limits.

    simulations: most simulations of a search, those of the player, for which its tree
        has room; 0 for a player without search.
    """

    def __init__(self, player: Player, game: Game, seed: int):
        """Prepares the search; `compile` compiles it.

        Args:
            player: a player that can be compiled.
            game: the game whose positions are searched.
            seed: seed of the player's random choices.
        """
        searches = isinstance(player, AlphaZeroPlayer | MCTSPlayer)
        self.simulations = player.simulations if searches else 0
        plan = None
        if searches:
            plan = SlicePlan(self.simulations, -(-self.simulations // NUM_SLICES))
        self._game = RestrictedGame(game)
        self._first = first_state(game)
        restricted_state = self._game.at(self._first)
        self._slices = IncrementalSearch(restricted(player), plan, restricted_state)
        # Sequential halving divides all simulations in advance.
        self._needs_total = isinstance(player, AlphaZeroPlayer) and isinstance(
            player.search, GumbelConfig
        )
        self._seeds = np.random.default_rng(seed)
        self._speed = 0.0  # simulations per second, of the last search

    def compile(self) -> None:
        """Compiles the search, and measures its speed in a short one."""
        self._slices.compile(1)
        for _ in range(2):  # the second one measures the speed
            self.search(self._first, Clock(SearchLimits()), 2 * self._slices.per_slice)

    def search(
        self,
        state: State,
        clock: Clock,
        simulations: int,
        report: Callable[[Progress], object] = lambda progress: None,
        allowed: np.ndarray | None = None,
    ) -> MoveDecision:
        """Returns the best move found within the limits.

        Args:
            state: the position; not terminated.
            clock: the limits.
            simulations: most simulations, up to those of the player.
            report: called after each slice.
            allowed: `[A]` bool, True for the moves to choose from; None: all.
        """
        limits = clock.limits
        total = min(simulations, limits.nodes or simulations)
        if self._needs_total and limits.seconds is not None and not clock.is_waiting:
            total = min(total, max(1, int(self._speed * limits.seconds)))
        position = self._game.at(state, allowed)
        states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], position)
        trees, made, begin = self._slices.empty_trees(1), 0, time.monotonic()
        while True:
            slice_begin = time.monotonic()
            seed = int(self._seeds.integers(2**32))
            numbers = np.array([[total], [made]], np.int32)
            (decision,), trees = self._slices.search(seed, states, *numbers, trees)
            made = min(total, made + self._slices.per_slice)
            report(Progress(decision, max(1, made), clock.seconds))
            now, line = time.monotonic(), decision.analysis and decision.analysis.line
            depth = 1 if line is None else int((line >= 0).sum())
            if made >= total or clock.is_over(depth, now - slice_begin):
                self._speed = made / max(now - begin, 1e-6)
                return decision


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


class UciEngine:
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
        self._clock = Clock(SearchLimits())  # of the last search
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
        # Of the moves that the search is restricted to, the legal ones; else all.
        allowed, illegal = np.zeros(self._game.num_actions, bool), []
        for text in search_moves(words)[: self._game.max_legal_actions]:
            try:
                allowed[read_generously(self._game, state, text)] = True
            except ValueError:
                illegal.append(text)
        if illegal:
            self._note(f"searchmoves has no legal moves in: {' '.join(illegal)}")
        chosen = allowed if allowed.any() else None
        simulations, most = self._simulations, self._num_variations
        moves: list[str] = []  # of the best line so far

        def report(progress: Progress) -> None:
            lines = variations(
                self._game, state, progress.decision, most, is_solved=self._is_solved
            )
            moves[:] = lines[0].moves
            self._send(*info_lines(progress, lines))

        def search() -> None:
            self._searcher.search(state, clock, simulations, report, chosen)
            clock.wait()
            ponder = f" ponder {moves[1]}" if len(moves) > 1 else ""
            self._send(f"bestmove {moves[0]}{ponder}")

        self._last = self._submit(search)

"""Searches of a player in slices, which the limits of the command `go` end early, and
their `info` lines.

A mate is reported where it is proven: by the first move itself, or by the solver of a
search with `use_solver`. The number of moves is that of the principal variation.
"""

import itertools
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from azjax.games import Game
from azjax.games.chess import Chess, State
from azjax.games.chess.scores import centipawns
from azjax.games.host import first_state, next_state
from azjax.play.incremental_search import Batch, IncrementalSearch, SlicePlan
from azjax.play.root_moves import RestrictedGame, RestrictedState, restricted
from azjax.play.text_output import rank_moves
from azjax.players import AlphaZeroPlayer, MCTSPlayer, MoveDecision, Player
from azjax.search import GumbelConfig

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
    line = [decision.action]
    if decision.analysis is not None:
        line = [action for action in decision.analysis.line.tolist() if action >= 0]
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


class Limits(NamedTuple):
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


def parse_go(words: Sequence[str], player: int) -> Limits:
    """Parses the arguments of `go`.

    Unknown words and `mate`, and values that are not numbers are ignored.

    Args:
        words: the arguments.
        player: the player to move, 0 for White.
    """
    nodes, depth = _number(words, "nodes"), _number(words, "depth")
    is_infinite = "infinite" in words
    return Limits(
        nodes=None if nodes is None else max(1, nodes),
        depth=None if depth is None else max(1, depth),
        seconds=None if is_infinite else _seconds(words, "wb"[player]),
        is_infinite=is_infinite,
        is_ponder="ponder" in words,
    )


def search_moves(words: Sequence[str]) -> list[str]:
    """Returns the moves that `searchmoves` restricts a search to; none: all moves."""
    after = itertools.dropwhile(lambda word: word != "searchmoves", words)
    return list(itertools.takewhile(lambda word: word not in _WORDS, list(after)[1:]))


def _seconds(words: Sequence[str], color: str) -> float | None:
    """Returns `movetime`, or the share of the clock for this move."""
    movetime = _number(words, "movetime")
    if movetime is not None:
        return max(MIN_SECONDS, movetime / 1000)
    clock = _number(words, f"{color}time")
    if clock is None:
        return None
    moves = max(1, _number(words, "movestogo") or EXPECTED_MOVES)
    increment = _number(words, f"{color}inc") or 0
    share = clock / moves + INCREMENT_SHARE * increment
    return max(MIN_SECONDS, min(share, MAX_SHARE * clock) / 1000)


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

    def __init__(self, limits: Limits):
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
        self._state = self._game.at(first_state(game))
        self._slices = IncrementalSearch(restricted(player), plan, self._state)
        # Sequential halving divides all simulations in advance.
        self._needs_total = isinstance(player, AlphaZeroPlayer) and isinstance(
            player.search, GumbelConfig
        )
        self._seeds = np.random.default_rng(seed)
        self._speed = 0.0  # simulations per second, of the last search

    def compile(self) -> None:
        """Compiles the search, and measures its speed in a short one."""
        self._slices.compile(1)
        self._search(self._state, Clock(Limits()), 2 * self._slices.per_slice)
        self._search(self._state, Clock(Limits()), 2 * self._slices.per_slice)

    def search(
        self,
        state: State,
        clock: Clock,
        simulations: int,
        report: Callable[[Progress], object],
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
        return self._search(self._game.at(state, allowed), clock, total, report)

    def _search(
        self,
        state: RestrictedState,
        clock: Clock,
        total: int,
        report: Callable[[Progress], object] = lambda progress: None,
    ) -> MoveDecision:
        states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
        trees, made, begin = self._slices.empty_trees(1), 0, time.monotonic()
        while True:
            slice_begin = time.monotonic()
            batch = Batch(
                states, np.array([total], np.int32), np.array([made], np.int32)
            )
            seed = int(self._seeds.integers(2**32))
            (decision,), trees = self._slices.search(seed, batch, trees)
            made = min(total, made + self._slices.per_slice)
            report(Progress(decision, max(1, made), clock.seconds))
            now, line = time.monotonic(), decision.analysis and decision.analysis.line
            depth = 1 if line is None else int((line >= 0).sum())
            if made >= total or clock.is_over(depth, now - slice_begin):
                self._speed = made / max(now - begin, 1e-6)
                return decision

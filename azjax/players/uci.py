"""A program that speaks UCI, the Universal Chess Interface, as a player of chess.

`Chess.action_to_text` writes moves as UCI does: `e2e4`, `e1g1` for castling, `e7e8q`.
Scores are for the player to move; see `azjax.games.chess.scores`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from azjax.games import Game, State
from azjax.games.chess import Chess
from azjax.games.chess.scores import expected_result
from azjax.games.core import compiled_mask
from azjax.players.core import MoveDecision, PlayerSession
from azjax.players.engine import (
    MAX_ANSWER,
    MAX_NAME,
    MOVE_SECONDS,
    START_SECONDS,
    EnginePlayer,
    EngineProcess,
    EngineSession,
    shown,
)
from azjax.settings import check_int
from azjax.text import did_you_mean, quoted

HELLO_SECONDS = 30.0  # for the answer to `uci`, which engines give before they load
DEFAULT_NODES = 10_000
SHOWN_OPTIONS = 2_000  # characters of their names in a message
# The limits of a search and their highest values; `movetime` is in milliseconds.
MAX_LIMITS = {"nodes": 9_999_999, "depth": 999, "movetime": 9_999_999}

_SCORE = re.compile(r"info .*\bscore (?P<unit>cp|mate) (?P<number>[+-]?\d{1,9})\b.*")
# Of another variation than the best one; a bound, which may be far from the score.
_OTHER_LINE = re.compile(r".*\b(multipv (?!1\b)|upperbound\b|lowerbound\b)")
_OPTION = re.compile(r"option name (?P<name>.+?) type (?P<type>\w+)(?P<rest>.*)")
_LIMIT = re.compile(r"\b(min|max) (-?\d+)")
_MAX_DIGITS = 18

OptionValue = str | int | bool


class UciProcess(EngineProcess):
    """A running UCI engine."""

    def answer(self, command: str, last: str, seconds: float) -> Iterator[str]:
        """Sends a command, and yields the lines of the answer until one begins with the
        word `last`."""
        self.send(command, seconds)
        for line in self.lines(shown(command), seconds):
            yield line.strip()
            if line.split()[:1] == [last]:
                return


class UciPlayer(EnginePlayer[UciProcess]):
    """Asks a UCI engine for moves.

    A search ends at the first of the limits that are given, by default after
    `DEFAULT_NODES` nodes. The engine uses one thread unless `Threads` is set, and
    forgets earlier games before each game: an engine without random choices then plays
    the same moves again, except with `movetime`. With `Skill Level` below 20 or
    `UCI_LimitStrength`, Stockfish's choice is partly random, and UCI has no seed.
    """

    def __init__(
        self,
        command: str,
        options: Mapping[str, OptionValue] | None = None,
        *,
        nodes: int | None = None,
        depth: int | None = None,
        movetime: int | None = None,
        move_seconds: float = MOVE_SECONDS,
        start_seconds: float = START_SECONDS,
    ):
        """Checks that the program exists; it is started with the first session.

        Args:
            command: the program and its arguments, quoted as in a shell.
            options: values of the engine's options, such as `{"Skill Level": 0}`. The
                first session checks that the engine has them.
            nodes: positions that a search visits.
            depth: depth of a search (moves of one player).
            movetime: duration of a search (ms).
            move_seconds: time limit for the answer, in addition to `movetime`.
            start_seconds: time limit for starting.
        """
        super().__init__("uci", command, move_seconds, start_seconds)
        limits = {"nodes": nodes, "depth": depth, "movetime": movetime}
        self.limits = {key: n for key, n in limits.items() if n is not None}
        for name, number in self.limits.items():
            check_int(name, number, 1, MAX_LIMITS[name])
        self.limits = self.limits or {"nodes": DEFAULT_NODES}
        self.options = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in (options or {}).items()
        }
        for text in (*self.options, *self.options.values()):
            if not text.isprintable():
                raise ValueError(f"an option must be one line of text: {quoted(text)}")
        is_limited = self.options.get("UCI_LimitStrength") == "true"
        if "UCI_Elo" in self.options and not is_limited:
            raise ValueError("UCI_Elo has no effect without UCI_LimitStrength=true")
        threads = {key.lower(): text for key, text in self.options.items()}
        if re.fullmatch("[1-9][0-9]{0,3}", threads.get("threads", "")):
            self.num_threads = int(threads["threads"])

    def start_session(self, game: Game, seed: int) -> PlayerSession:
        """Starts a session for a new game, which must be chess."""
        check_is_chess(game)  # before the program starts
        return super().start_session(game, seed)

    def _start(self) -> UciProcess:
        engine, seconds = UciProcess(self.arguments), self.start_seconds
        declared: dict[str, UciOption] = {}  # by the name in lower case
        length = 0
        for line in engine.answer("uci", "uciok", min(seconds, HELLO_SECONDS)):
            length += len(line)
            if length > MAX_ANSWER:
                engine.fail(f"answers 'uci' with more than {MAX_ANSWER} letters")
            if line.startswith("id name "):
                engine.name = shown(line.removeprefix("id name "))[:MAX_NAME]
            elif option := parse_option(line):
                declared[option.name.lower()] = option
        values = {key.lower(): value for key, value in self.options.items()}
        if "threads" in declared:
            values = {"threads": "1"} | values
        for key in self.options:
            if key.lower() not in declared:
                engine.kill()
                names = [option.name for option in declared.values()]
                shown_names = ", ".join(names)[:SHOWN_OPTIONS] or "none"
                close = did_you_mean(key, (*MAX_LIMITS, *names))
                raise ValueError(
                    f"{engine.name} has no option {quoted(key)}; its options are "
                    f"{shown_names}; the limits of a search are "
                    f"{', '.join(MAX_LIMITS)}{close}"
                )
        try:
            commands = [setoption(declared[key], text) for key, text in values.items()]
        except ValueError as error:
            engine.kill()
            raise ValueError(f"{engine.name}: {shown(str(error))}") from None
        for command in commands:
            engine.send(command, seconds)
        return engine

    def _begin(self, engine: UciProcess, game: Game, seed: int) -> "_UciSession":
        del seed
        engine.send("ucinewgame", self.start_seconds)
        for _ in engine.answer("isready", "readyok", self.start_seconds):
            pass
        return _UciSession(self, engine, game)


def check_is_chess(game: Game) -> Chess:
    """Returns the game."""
    if not isinstance(game, Chess):
        raise ValueError(f"UCI is a protocol for chess only: {game}")
    return game


class _UciSession(EngineSession[UciProcess]):
    """An engine in one game."""

    def __init__(self, player: UciPlayer, engine: UciProcess, game: Game):
        super().__init__(player, engine, game)
        self._seconds += player.limits.get("movetime", 0) / 1000
        self._go = " ".join(["go", *(f"{k} {n}" for k, n in player.limits.items())])
        self._texts: list[str] = []

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move; see `PlayerSession.choose`. The value is that of the engine's
        last score."""
        engine = self._engine
        # The moves as text; those that were written before are kept.
        known = self._num_known(moves)
        del self._moves[known:], self._texts[known:], self._states[known + 1 :]
        for action in map(int, moves[known:]):
            self._texts.append(self._game.action_to_text(self._states[-1], action))
            self._add(action)
        moves_part = ["moves", *self._texts] if self._texts else []
        position = " ".join(["position startpos", *moves_part])
        answer, value = "", None
        with self._asking():
            engine.send(position, self._seconds)
            for line in engine.answer(self._go, "bestmove", self._seconds):
                answer, value = line, score_value(line, value)
        text = " ".join(answer.split()[1:2])
        try:
            return MoveDecision(read_move(self._game, state, text), value=value)
        except ValueError:
            engine.fail(
                f"answers {self._go!r} with {shown(answer)!r}, which is not a legal "
                "move"
            )


def score_value(line: str, previous: float | None) -> float | None:
    """Returns the expected result in [-1, 1] of an `info` line with a score.

    Args:
        line: a line of an engine.
        previous: returned for a line without score, with a bound in place of one, or
            of another variation than the best one.
    """
    found = _SCORE.fullmatch(line)
    if found is None or _OTHER_LINE.match(line):
        return previous
    number = int(found["number"])
    if found["unit"] == "mate":
        return 1.0 if number > 0 else -1.0
    return expected_result(number)


def read_move(game: Game, state: State, text: str) -> int:
    """Parses a move.

    A position that is drawn by the rules of `game` still has moves: a front end or a
    referee may continue such a game.

    Raises:
        ValueError: the text is not a legal move in this position.
    """
    for action in np.flatnonzero(compiled_mask(game, state)).tolist():
        if game.action_to_text(state, action) == text:
            return action
    raise ValueError(f"{text!r} is not a legal move")


class UciOption(NamedTuple):
    """An option.

    name: its name.
    type: `check`, `spin` (an int), `combo` (a choice), `button` or `string`.
    low, high: limits of a spin, None if not declared.
    choices: values of a combo.
    """

    name: str
    type: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()


def parse_option(line: str) -> UciOption | None:
    """Parses `option name ... type ...`; returns None if the line is something else."""
    found = _OPTION.fullmatch(line.strip())
    if found is None:
        return None
    limits = {
        key: int(digits)
        for key, digits in _LIMIT.findall(found["rest"])
        if len(digits) <= _MAX_DIGITS
    }
    choices = tuple(part.strip() for part in found["rest"].split(" var ")[1:])
    return UciOption(
        found["name"], found["type"], limits.get("min"), limits.get("max"), choices
    )


def setoption(option: UciOption, value: str) -> str:
    """Returns the command that sets an option; a button takes an empty value.

    Raises:
        ValueError: the value is not allowed; the message is `NAME must be ...`.
    """
    match option.type:
        case "check":
            allowed, is_allowed = "true or false", value in ("true", "false")
        case "spin":
            low, high = option.low, option.high
            allowed = "an int"
            if low is not None and high is not None:
                allowed = f"an int from {low} to {high}"
            is_int = re.fullmatch(r"-?\d{1,18}", value, re.ASCII) is not None
            is_allowed = is_int and (
                (low is None or low <= int(value))
                and (high is None or int(value) <= high)
            )
        case "combo":
            allowed = " or ".join(option.choices)
            is_allowed = value in option.choices
        case "button":
            allowed, is_allowed = "empty", not value
        case _:
            allowed, is_allowed = "a text", True
    if not is_allowed:
        raise ValueError(f"{option.name} must be {allowed}: {quoted(value)}")
    command = f"setoption name {option.name}"
    return command if option.type == "button" else f"{command} value {value}"

"""A program that speaks UCI, the Universal Chess Interface, as a player of chess."""

import re
from collections.abc import Iterator, Mapping, Sequence

from azjax.checks import check_int, did_you_mean, quoted
from azjax.games import Game, State
from azjax.games.chess import Chess
from azjax.games.host import first_state, next_state
from azjax.players.engine_player import (
    MOVE_SECONDS,
    START_SECONDS,
    EnginePlayer,
    EngineSession,
)
from azjax.players.engine_process import MAX_ANSWER, MAX_NAME, EngineProcess, shown
from azjax.players.session import MoveDecision, PlayerSession
from azjax.players.uci_notation import (
    UciOption,
    parse_option,
    read_move,
    score_value,
    setoption,
)

HELLO_SECONDS = 30.0  # for the answer to `uci`, which engines give before they load
DEFAULT_NODES = 10_000
SHOWN_OPTIONS = 2_000  # characters of their names in a message
# The limits of a search and their highest values; `movetime` is in milliseconds.
MAX_LIMITS = {"nodes": 9_999_999, "depth": 999, "movetime": 9_999_999}

OptionValue = str | int | bool


class UciPlayer(EnginePlayer["_Engine"]):
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
        super().__init__(f"uci:{command}", command, move_seconds, start_seconds)
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
        """Starts a session for a game of chess; see `EnginePlayer.start_session`."""
        check_is_chess(game)
        return super().start_session(game, seed)

    def _start(self) -> "_Engine":
        return _Engine(self.arguments, self.options, self.start_seconds)

    def _make_session(
        self, engine: "_Engine", game: Game, idle: "list[_Engine]"
    ) -> "_UciSession":
        seconds = self.move_seconds + self.limits.get("movetime", 0) / 1000
        command = " ".join(["go", *(f"{k} {n}" for k, n in self.limits.items())])
        return _UciSession(engine, check_is_chess(game), idle, command, seconds)


def check_is_chess(game: Game) -> Chess:
    """Returns the game."""
    if not isinstance(game, Chess):
        raise ValueError(f"UCI is a protocol for chess only: {game}")
    return game


class _Engine:
    """A running engine with its options set."""

    def __init__(
        self, arguments: Sequence[str], options: Mapping[str, str], seconds: float
    ):
        self.process = EngineProcess(arguments)
        self._seconds = seconds
        declared: dict[str, UciOption] = {}  # by the name in lower case
        length = 0
        for line in self.answer("uci", "uciok", min(seconds, HELLO_SECONDS)):
            length += len(line)
            if length > MAX_ANSWER:
                self.process.fail(f"answers 'uci' with more than {MAX_ANSWER} letters")
            if line.startswith("id name "):
                self.process.name = shown(line.removeprefix("id name "))[:MAX_NAME]
            elif option := parse_option(line):
                declared[option.name.lower()] = option
        try:
            commands = self._setoptions(declared, options)
        except ValueError:
            self.process.kill()
            raise
        for command in commands:
            self.process.send(command, seconds)

    def answer(self, command: str, last: str, seconds: float) -> Iterator[str]:
        """Sends a command, and yields the lines of the answer until one begins with the
        word `last`."""
        self.process.send(command, seconds)
        for line in self.process.lines(shown(command), seconds):
            yield line.strip()
            if line.split()[:1] == [last]:
                return

    def begin(self, game: Game, seed: int) -> None:
        """Tells the engine that a game begins, and waits until it is ready."""
        del game, seed
        self.process.send("ucinewgame", self._seconds)
        for _ in self.answer("isready", "readyok", self._seconds):
            pass

    def _setoptions(
        self, declared: Mapping[str, UciOption], options: Mapping[str, str]
    ) -> list[str]:
        """Returns the commands that set the options."""
        name = self.process.name
        values = {key.lower(): value for key, value in options.items()}
        if "threads" in declared:
            values = {"threads": "1"} | values
        for key in options:
            if key.lower() not in declared:
                names = [option.name for option in declared.values()]
                shown_names = ", ".join(names)[:SHOWN_OPTIONS] or "none"
                close = did_you_mean(key, (*MAX_LIMITS, *names))
                raise ValueError(
                    f"{name} has no option {quoted(key)}; its options are "
                    f"{shown_names}; the limits of a search are "
                    f"{', '.join(MAX_LIMITS)}{close}"
                )
        try:
            return [setoption(declared[key], value) for key, value in values.items()]
        except ValueError as error:
            raise ValueError(f"{name}: {shown(str(error))}") from None


class _UciSession(EngineSession[_Engine]):
    """An engine in one game."""

    def __init__(
        self, engine: _Engine, game: Chess, idle: list[_Engine], go: str, seconds: float
    ):
        super().__init__(engine, idle)
        self._game, self._go, self._seconds = game, go, seconds
        self._moves: list[int] = []
        self._texts: list[str] = []
        self._states = [first_state(game)]

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move; see `EngineSession.choose`. The value is that of the engine's
        last score."""
        process = self._engine.process
        self._follow(moves)
        moves_part = ["moves", *self._texts] if self._texts else []
        position = " ".join(["position startpos", *moves_part])
        answer, value = "", None
        with self._asking():
            process.send(position, self._seconds)
            for line in self._engine.answer(self._go, "bestmove", self._seconds):
                answer, value = line, score_value(line, value)
        text = " ".join(answer.split()[1:2])
        try:
            return MoveDecision(read_move(self._game, state, text), value=value)
        except ValueError:
            process.fail(
                f"answers {self._go!r} with {shown(answer)!r}, which is not a legal "
                "move"
            )

    def _follow(self, moves: Sequence[int]) -> None:
        """Writes the moves as text; keeps those that were written before."""
        known = 0
        for old, new in zip(self._moves, moves, strict=False):
            if old != new:
                break
            known += 1
        del self._moves[known:], self._texts[known:], self._states[known + 1 :]
        for action in map(int, moves[known:]):
            before = self._states[-1]
            self._texts.append(self._game.action_to_text(before, action))
            self._moves.append(action)
            self._states.append(next_state(self._game, before, action))

"""A program that speaks GTP, the Go Text Protocol, as a player."""

import contextlib
import re
from collections.abc import Sequence

from azjax.games import Game, State
from azjax.games.host import first_state, next_state, rewards
from azjax.players.engine_player import (
    MOVE_SECONDS,
    START_SECONDS,
    EnginePlayer,
    EngineSession,
)
from azjax.players.engine_process import MAX_ANSWER, MAX_NAME, EngineProcess, shown
from azjax.players.gtp_notation import COLORS, PASS, RESIGN, read_vertex, to_vertex
from azjax.players.session import MoveDecision, ResignError

REQUIRED_COMMANDS = {"clear_board", "genmove", "play"}
CLEANUP = "kgs-genmove_cleanup"  # `genmove` without a pass before dead stones are gone


class RefusedError(Exception):
    """The engine answered with an error, which is the message."""


class GtpProcess(EngineProcess):
    """A running GTP engine that answers one command at a time."""

    _num_commands = 0

    def ask(self, command: str, seconds: float) -> str:
        """Returns the answer to a command.

        Args:
            command: one line.
            seconds: time limit for reading it, and again for the answer.

        Raises:
            RefusedError: the engine answers with an error.
            ForfeitError: there is no valid answer; the engine is killed.
        """
        self._num_commands += 1
        self.send(f"{self._num_commands} {command}", seconds, command)
        answer = ""
        for line in self.lines(command, seconds):
            if answer and not line:
                break  # an empty line ends the answer
            answer += f"{line}\n" if line else ""
            if answer and answer[0] not in "=?":
                break  # not a GTP response
            if len(answer) > MAX_ANSWER:
                self.fail(f"answers {command!r} with more than {MAX_ANSWER} characters")
        found = re.match(r"([=?])(\d*)", answer)
        if not found or found[2] not in ("", str(self._num_commands)):
            self.fail(
                f"answers {command!r} with an invalid response: {shown(answer)!r}"
            )
        text = answer[found.end() :].strip()
        if found[1] == "?":
            raise RefusedError(shown(text))
        return text


class GtpPlayer(EnginePlayer["_Engine"]):
    """Asks a GTP engine for moves.

    Size and komi of a game are sent to the engine, and the seed if it has the command
    `set_random_seed`, as GNU Go does.

    By Tromp and Taylor's rules dead stones on the board count, while many engines pass
    before they capture them. So an engine that passes, unless that wins at once, is
    asked again by `kgs-genmove_cleanup` if it has this command and `undo`.
    """

    def __init__(
        self,
        command: str,
        move_seconds: float = MOVE_SECONDS,
        start_seconds: float = START_SECONDS,
    ):
        """Checks that the program exists; see `EnginePlayer`."""
        super().__init__(f"gtp:{command}", command, move_seconds, start_seconds)

    def _start(self) -> "_Engine":
        return _Engine(self.arguments, self.move_seconds, self.start_seconds)

    def _make_session(
        self, engine: "_Engine", game: Game, idle: "list[_Engine]"
    ) -> "_GtpSession":
        return _GtpSession(engine, game, idle)


class _Engine:
    """A running engine and its commands."""

    def __init__(
        self, arguments: Sequence[str], move_seconds: float, start_seconds: float
    ):
        self.process = GtpProcess(arguments)
        self.move_seconds = move_seconds
        try:
            version = self.process.ask("protocol_version", start_seconds)
            name = shown(self.ask("name"))[:MAX_NAME]
            self.process.name = name or self.process.name
            self.commands = set(self.ask("list_commands").split())
        except RefusedError as error:
            self.process.fail(f"does not speak GTP: {error}")
        missing = ", ".join(sorted(REQUIRED_COMMANDS - self.commands))
        if version != "2" or missing:
            reason = f"its version is {shown(version)!r}"
            if missing:
                reason = f"it lacks {missing}"
            self.process.fail(f"does not speak GTP 2: {reason}")

    def ask(self, command: str) -> str:
        return self.process.ask(command, self.move_seconds)

    def begin(self, game: Game, seed: int) -> None:
        """Sets up the initial position of a game."""
        settings = []
        if "set_random_seed" in self.commands:
            settings.append(f"set_random_seed {seed % 2**31}")
        if "size" in game.options:
            settings.append(f"boardsize {game.options['size']}")
        if "komi" in game.options:
            settings.append(f"komi {game.options['komi']:g}")
        for command in (*settings, "clear_board"):
            try:
                self.ask(command)
            except RefusedError as error:
                raise ValueError(
                    f"{self.process.name} cannot play {game}: it answers {command!r} "
                    f"with {str(error)!r}"
                ) from error


class _GtpSession(EngineSession[_Engine]):
    """An engine in one game, with the moves that were sent to it."""

    def __init__(self, engine: _Engine, game: Game, idle: list[_Engine]):
        super().__init__(engine, idle)
        self._game = game
        self._moves: list[int] = []
        self._states = [first_state(game)]

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move."""
        self._follow(moves)
        mover = int(state.current_player)
        color = COLORS[mover]
        answer = self._ask(f"genmove {color}")
        action = self._read(f"genmove {color}", answer)
        if answer.lower() == PASS:
            after = next_state(self._game, state, action)
            if not after.terminated or rewards(self._game, after)[mover] <= 0:
                action = self._move_after_pass(action, color)
        self._add(action)
        return MoveDecision(action)

    def _read(self, command: str, answer: str) -> int:
        """Returns the move of an answer."""
        if answer.lower() == RESIGN:
            raise ResignError("resigned")
        try:
            return read_vertex(self._game, self._states[-1], answer)
        except ValueError:
            self._engine.process.fail(
                f"answers {command!r} with {shown(answer)!r}, which is not a legal move"
            )

    def _move_after_pass(self, action: int, color: str) -> int:
        """Asks the engine to capture dead stones in place of its pass; returns its
        move, or the pass if it refuses."""
        if not {"undo", CLEANUP} <= self._engine.commands:
            return action
        command = f"{CLEANUP} {color}"
        with self._asking():
            try:
                self._engine.ask("undo")
            except RefusedError:
                return action
            with contextlib.suppress(RefusedError):
                return self._read(command, self._engine.ask(command))
        self._ask(f"play {color} {PASS}")
        return action

    def _follow(self, moves: Sequence[int]) -> None:
        """Sends the engine the moves that were made and undone."""
        known = 0
        while known < min(len(moves), len(self._moves)) and (
            moves[known] == self._moves[known]
        ):
            known += 1
        while len(self._moves) > known:
            self._take_back()
        for action in moves[len(self._moves) :]:
            state = self._states[-1]
            color = COLORS[int(state.current_player)]
            self._ask(f"play {color} {to_vertex(self._game, state, int(action))}")
            self._add(int(action))

    def _take_back(self) -> None:
        if "undo" in self._engine.commands:
            with contextlib.suppress(RefusedError):
                self._engine.ask("undo")
                self._moves.pop()
                self._states.pop()
                return
        self._ask("clear_board")
        self._moves.clear()
        del self._states[1:]

    def _add(self, action: int) -> None:
        self._moves.append(action)
        self._states.append(next_state(self._game, self._states[-1], action))

    def _ask(self, command: str) -> str:
        """Sends a command that every engine must support."""
        with self._asking():
            try:
                return self._engine.ask(command)
            except RefusedError as error:
                self._engine.process.fail(f"refuses {command!r}: {error}")

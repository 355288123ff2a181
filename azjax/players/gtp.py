"""A program that speaks GTP, the Go Text Protocol, as a player.

In every game `b` is player 0, who moves first, and `w` is player 1. Moves are in the
game's notation; points of a board such as `d4` are written in capitals.
"""

import contextlib
import re
from collections.abc import Sequence

from azjax.games import Game, State
from azjax.games.host import legal_actions, next_state, rewards
from azjax.players.core import MoveDecision, ResignError
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

COLORS = ("b", "w")
PASS = "pass"
RESIGN = "resign"
REQUIRED_COMMANDS = {"clear_board", "genmove", "play"}
CLEANUP = "kgs-genmove_cleanup"  # `genmove` without a pass before dead stones are gone


def to_vertex(game: Game, state: State, action: int) -> str:
    """Returns an action of the player to move in GTP notation."""
    text = game.action_to_text(state, action)
    return text.upper() if re.fullmatch("[a-z][0-9]+", text) else text


def read_vertex(game: Game, state: State, text: str) -> int:
    """Parses a move in GTP notation or in the game's own notation.

    Raises:
        ValueError: the text is not a legal move in this position.
    """
    wanted = text.lower()
    for action in legal_actions(game, state):
        if game.action_to_text(state, action).lower() == wanted:
            return action
    return game.text_to_action(state, text)


class RefusedError(Exception):
    """The engine answered with an error, which is the message."""


class GtpProcess(EngineProcess):
    """A running GTP engine that answers one command at a time."""

    commands: frozenset[str] = frozenset()  # its commands, once it is known
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


class GtpPlayer(EnginePlayer[GtpProcess]):
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
        super().__init__("gtp", command, move_seconds, start_seconds)

    def _start(self) -> GtpProcess:
        engine = GtpProcess(self.arguments)
        try:
            version = engine.ask("protocol_version", self.start_seconds)
            name = shown(engine.ask("name", self.move_seconds))[:MAX_NAME]
            engine.name = name or engine.name
            commands = engine.ask("list_commands", self.move_seconds)
        except RefusedError as error:
            engine.fail(f"does not speak GTP: {error}")
        engine.commands = frozenset(commands.split())
        missing = ", ".join(sorted(REQUIRED_COMMANDS - engine.commands))
        if missing:
            engine.fail(f"does not speak GTP 2: it lacks {missing}")
        if version != "2":
            engine.fail(f"does not speak GTP 2: its version is {shown(version)!r}")
        return engine

    def _begin(self, engine: GtpProcess, game: Game, seed: int) -> "_GtpSession":
        settings = []
        if "set_random_seed" in engine.commands:
            settings.append(f"set_random_seed {seed % 2**31}")
        if "size" in game.options:
            settings.append(f"boardsize {game.options['size']}")
        if "komi" in game.options:
            settings.append(f"komi {game.options['komi']:g}")
        for command in (*settings, "clear_board"):
            try:
                engine.ask(command, self.move_seconds)
            except RefusedError as error:
                raise ValueError(
                    f"{engine.name} cannot play {game}: it answers {command!r} with "
                    f"{str(error)!r}"
                ) from error
        return _GtpSession(self, engine, game)


class _GtpSession(EngineSession[GtpProcess]):
    """An engine in one game."""

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
            self._engine.fail(
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
                self._engine.ask("undo", self._seconds)
            except RefusedError:
                return action
            with contextlib.suppress(RefusedError):
                return self._read(command, self._engine.ask(command, self._seconds))
        self._ask(f"play {color} {PASS}")
        return action

    def _follow(self, moves: Sequence[int]) -> None:
        """Sends the engine the moves that were made and undone."""
        known = self._num_known(moves)
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
                self._engine.ask("undo", self._seconds)
                self._moves.pop()
                self._states.pop()
                return
        self._ask("clear_board")
        self._moves.clear()
        del self._states[1:]

    def _ask(self, command: str) -> str:
        """Sends a command that every engine must support."""
        with self._asking():
            try:
                return self._engine.ask(command, self._seconds)
            except RefusedError as error:
                self._engine.fail(f"refuses {command!r}: {error}")

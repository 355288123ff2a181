"""The GTP commands for any player and game.

Colors: `b` is player 0, who moves first, in every game. Moves are in the game's
notation.

Two moves in a row of one color: the other player passes in between where that is
legal; otherwise the second move is illegal. Two passes end a game, and a move resumes
it. A pass of the player who is not to move is ignored.

Go: the move limit applies only with superko. All stones on the board are alive, and
handicap stones, which `undo` leaves, give white no points.

Size and komi: a size that the player does not support, because its network was trained
for one, is refused, and the game is unchanged. Every komi is accepted: results and
scores are counted with it, also in searches, but a network knows only its own, as a
message on the standard error says. Games without a komi ignore it.

Time: all time settings are ignored; the player's simulations determine the duration of
a move. The first answer takes longer because the player is compiled; a message on the
standard error says so.
"""

import dataclasses
import itertools
import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import azjax
from azjax import games
from azjax.checks import printable
from azjax.games import Game, State
from azjax.games.game_record import score_text
from azjax.games.host import legal_actions
from azjax.play.gtp import analysis
from azjax.play.gtp.history import History, Position, with_komi, with_size
from azjax.play.gtp.protocol import (
    COLORS,
    SYNTAX_ERROR,
    Arguments,
    CommandError,
    Inbox,
    failure,
    parse,
    success,
)
from azjax.play.root_moves import RestrictedGame, restricted
from azjax.players import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    MoveDecision,
    PlayerSession,
    ResignError,
    start_session,
)
from azjax.players.gtp_notation import PASS, RESIGN, to_vertex

DEFAULT_INTERVAL = 100  # 1/100 s
MIN_HANDICAP = 2  # stones
MAX_FILE_BYTES = 10**6
AREA_RULES = ("chinese", "aga", "new_zealand")

Writer = Callable[[Game, State, MoveDecision, int], str]


class Report(NamedTuple):
    """A response that continues until the next line of input.

    interval: seconds between its lines.
    lines: endless.
    """

    interval: float
    lines: Iterator[str]


class Engine:
    """A player and its current game."""

    def __init__(self, game: Game, load: Callable[[Game], AnyPlayer], seed: int = 0):
        """Starts a game.

        Args:
            game: the game; `boardsize` and `komi` can change its options.
            load: loads the player for a game.
            seed: seed of the player's random choices.

        Raises:
            ValueError: the player does not support the game.
        """
        self._load, self._seed, self._num_games = load, seed, 0
        self._known_komi = float(game.options.get("komi", 0))
        self._game, self._player = game, load(game)
        self._is_compiled = isinstance(self._player, ExternalPlayer)
        self._session: PlayerSession | None = None
        self._history = History(game)
        self._commands: dict[str, Callable[[Arguments], str | Report | None]] = {
            "protocol_version": lambda words: "2",
            "name": lambda words: "azjax",
            "version": lambda words: azjax.__version__,
            "known_command": lambda words: str(words.word(0) in self._commands).lower(),
            "list_commands": lambda words: "\n".join(self._commands),
            "quit": lambda words: None,
            "boardsize": self._boardsize,
            "clear_board": lambda words: self._new_game(History(self._game)),
            "komi": self._komi,
            "play": lambda words: self._history.play(words.color(0), words.word(1)),
            "genmove": lambda words: self._played(self._history.turn(words.color(0))),
            "reg_genmove": self._reg_genmove,
            "undo": lambda words: self._history.undo(),
            "time_settings": lambda words: None,
            "time_left": lambda words: None,
            "kgs-time_settings": lambda words: None,
            "showboard": lambda words: f"\n{self._history.to_text()}",
            "final_score": lambda words: score_text(self._history.score()),
        }
        for name, write in (("lz", analysis.lz_line), ("kata", analysis.kata_line)):
            self._commands |= {
                f"{name}-analyze": lambda words, w=write: self._analyze(w, words),
                f"{name}-genmove_analyze": (
                    lambda words, w=write: self._analyzed_move(w, words)
                ),
            }
        if game.record_format.suffix == "sgf":
            self._commands |= {"loadsgf": self._loadsgf, "printsgf": self._printsgf}
        if game.max_handicap is not None:
            self._commands |= {
                "fixed_handicap": lambda words: self._set_handicap(words.whole(0)),
                "place_free_handicap": lambda words: self._set_handicap(
                    min(words.whole(0), self._game.max_handicap or 0)
                ),
                "set_free_handicap": self._set_free_handicap,
                "final_status_list": self._final_status_list,
                "kgs-rules": self._kgs_rules,
                "kgs-genmove_cleanup": self._cleanup_move,
            }

    def execute(self, name: str, words: list[str]) -> str | Report:
        """Executes a command and returns the response; ignores excess arguments.

        Raises:
            CommandError: the command failed; the position is unchanged.
        """
        if name not in self._commands:
            raise CommandError("unknown command")
        return self._commands[name](Arguments(words)) or ""

    def close(self) -> None:
        """Closes the player's session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _boardsize(self, words: Arguments) -> None:
        size = words.whole(0)
        try:
            self._change_game(with_size(self._game, size))
        except ValueError as error:
            _note(str(error))
            raise CommandError("unacceptable size") from error
        self._new_game(History(self._game))

    def _komi(self, words: Arguments) -> None:
        self._change_game(with_komi(self._game, words.real(0)))
        self._history.game = self._game.without_move_limit()

    def _cleanup_move(self, words: Arguments) -> str:
        position, allowed = self._history.turn(words.color(0)), None
        if not isinstance(self._player, ExternalPlayer):
            allowed = self._history.cleanup_moves(position)
        return self._played(position, allowed)

    def _reg_genmove(self, words: Arguments) -> str:
        position = self._history.turn(words.color(0))
        try:
            return self._vertex(position, self._decide(position))
        except ResignError:
            return RESIGN

    def _analyze(self, write: Writer, words: Arguments) -> Report:
        position, allowed, interval, most = self._analysis_arguments(words)
        decisions = analysis.repeated(lambda: self._decide(position, allowed))
        try:
            first = next(decisions)
        except ResignError as error:
            raise CommandError(str(error)) from error
        lines = (
            write(self._history.game, position.state, decision, most)
            for decision in itertools.chain([first], decisions)
        )
        return Report(interval / 100, lines)

    def _analyzed_move(self, write: Writer, words: Arguments) -> str:
        position, allowed, _, most = self._analysis_arguments(words)
        try:
            decision = self._decide(position, allowed)
        except ResignError:
            return f"\nplay {RESIGN}"
        line = write(self._history.game, position.state, decision, most)
        self._history.add(position, decision.action)
        return f"\n{line}\nplay {self._vertex(position, decision)}"

    def _loadsgf(self, words: Arguments) -> None:
        path, end = (
            words.word(0),
            words.whole(1) if words[1:] else None,
        )
        try:
            file = os.stat(path)
            if not stat.S_ISREG(file.st_mode) or file.st_size > MAX_FILE_BYTES:
                raise ValueError(f"{path} is no file of at most {MAX_FILE_BYTES} bytes")
            found, record = next(games.read_games(path), (None, None))
            if found is None or record is None or found.name != self._game.name:
                raise ValueError(f"{path} has no game of {self._game.name}")
            game = with_size(self._game, found.observation_shape[0])
            game = with_komi(game, float(found.options["komi"]))
            history = History(game)
            for action in record.moves[: None if end is None else max(0, end - 1)]:
                history.add(history.turn(history.position.player), action)
            self._change_game(game)
        except (OSError, ValueError) as error:
            raise CommandError(f"cannot load file: {error}") from error
        self._new_game(history)

    def _printsgf(self, words: Arguments) -> str:
        if words:
            raise CommandError("no file is written: without a name the answer has it")
        game = self._history.game
        return game.record_format.write(game, [self._history.record()])

    def _set_handicap(self, num_stones: int) -> str:
        try:
            points = self._game.handicap_points(num_stones)
        except ValueError:
            raise CommandError("invalid number of stones") from None
        self._history.set_stones(points)
        return " ".join(points).upper()

    def _set_free_handicap(self, words: Arguments) -> None:
        points = {vertex.lower() for vertex in words}
        if len(points) < max(MIN_HANDICAP, len(words)) or PASS in points:
            raise CommandError("bad vertex list")
        self._history.set_stones(words)

    def _final_status_list(self, words: Arguments) -> str:
        status = words.word(0)
        if status not in ("alive", "dead", "seki"):
            raise CommandError(SYNTAX_ERROR)
        colors = range(2) if status == "alive" else ()
        return "\n".join(" ".join(self._history.stones(player)) for player in colors)

    def _kgs_rules(self, words: Arguments) -> None:
        if words.word(0).lower() not in AREA_RULES:
            raise CommandError(f"the rules must be one of {', '.join(AREA_RULES)}")

    def _new_game(self, history: History) -> None:
        self.close()
        self._num_games += 1
        self._history = history

    def _change_game(self, game: Game) -> None:
        """Loads the player for a game with another size or komi.

        Raises:
            ValueError: the player does not support the size.
        """
        if game == self._game:
            return
        try:
            player = self._load(game)
        except ValueError:
            known = with_komi(game, self._known_komi)
            if known == game:
                raise
            player: Any = self._load(known)
            if not isinstance(player, ExternalPlayer):
                player = dataclasses.replace(player, game=game)
            _note(f"results count with {game}, but the network was trained for {known}")
        self.close()
        self._game, self._player = game, player
        self._is_compiled = isinstance(player, ExternalPlayer)

    def _decide(
        self, position: Position, allowed: np.ndarray | None = None
    ) -> MoveDecision:
        """Returns the player's decision, one of the `allowed` moves if they are given.

        Raises:
            ResignError: the player resigns.
            CommandError: the player failed, or its moves cannot be restricted.
        """
        player, game, state = self._player, self._history.game, position.state
        if not isinstance(player, ExternalPlayer):
            player, game = restricted(player), RestrictedGame(game)
            state = game.at(state, allowed)
        elif allowed is not None:
            raise CommandError("the moves of this player cannot be restricted")
        try:
            if self._session is None:
                seed = (self._seed + self._num_games) % 2**32
                self._session = start_session(player, game, seed)
            if not self._is_compiled:
                _note("compiling the player; its first answer takes longer")
            self._is_compiled = True
            return self._session.choose(state, position.moves)
        except ResignError:
            raise
        except (ForfeitError, ValueError) as error:
            raise CommandError(str(error)) from error

    def _played(self, position: Position, allowed: np.ndarray | None = None) -> str:
        """Plays the player's decision; returns its vertex."""
        try:
            decision = self._decide(position, allowed)
        except ResignError:
            return RESIGN
        self._history.add(position, decision.action)
        return self._vertex(position, decision)

    def _vertex(self, position: Position, decision: MoveDecision) -> str:
        return to_vertex(self._history.game, position.state, decision.action)

    def _analysis_arguments(
        self, words: Arguments
    ) -> tuple[Position, np.ndarray | None, int, int]:
        """Returns the position, `[A]` bool, the moves to choose from, or None for all,
        the interval in 1/100 s and the number of moves."""
        rest, player = Arguments(words), self._history.position.player
        if rest and rest[0].lower() in COLORS:
            player = rest.color(0)
            del rest[0]
        position = self._history.turn(player)
        if rest and rest[0].isdecimal():
            rest.insert(0, "interval")
        numbers = {"interval": DEFAULT_INTERVAL, "maxmoves": analysis.MAX_MOVES}
        named: dict[str, set[int]] = {}
        while rest:
            name, value = rest[0], rest.word(1)
            if name in ("avoid", "allow"):
                # It holds for the first move, however many its number says.
                of, vertices, _ = rest.color(1), rest.word(2), rest.whole(3)
                if of == player:
                    found = self._history.actions(position, vertices.split(","))
                    named[name] = named.get(name, set()) | found
                del rest[2:4]
            elif name in numbers:
                numbers[name] = max(1, Arguments([value]).whole(0))
            del rest[:2]  # other settings only add information
        legal = {*legal_actions(self._history.game, position.state)}
        chosen = legal & named.get("allow", legal) - named.get("avoid", set())
        if not chosen:
            raise CommandError("no legal move is left")
        every = np.arange(self._game.num_actions)
        allowed = np.isin(every, [*chosen]) if named else None
        return position, allowed, numbers["interval"], numbers["maxmoves"]


def serve(engine: Engine, inbox: Inbox, write: Callable[[str], object]) -> None:
    """Answers commands until `quit` or the end of the input; `write` sends text
    without buffering."""
    while (line := inbox.get()) is not None:
        command = parse(line)
        if command is None:
            continue
        try:
            answer = engine.execute(command.name, command.arguments)
        except CommandError as error:
            write(failure(command.id, str(error)))
            continue
        if isinstance(answer, Report):  # until the next line, which may be empty
            write(f"={command.id}\n")
            for text in answer.lines:
                write(f"{text}\n")
                if inbox.wait(answer.interval):
                    break
            write("\n")
        else:
            write(success(command.id, answer))
        if command.name == "quit":
            return


def _note(text: str) -> None:
    """Prints a message for people; the protocol has none."""
    print(f"azjax: {printable(text)}", file=sys.stderr, flush=True)

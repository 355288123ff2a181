"""The GTP commands for any player and game.

Colors: `b` is player 0, who moves first, in every game. Moves are in the game's
notation.

Two moves in a row of one color: the other player passes in between where that is
legal; otherwise the second move is illegal. Such a pass does not end the game. A pass
of the player who is not to move is ignored.

Go: two passes end the game; the move limit applies only with superko. All stones on the
board are alive, and handicap stones give white no points. Other games have no komi: any
value is accepted and ignored.

Size and komi: if the player does not support another size or komi, because its network
was trained for one, the command fails and the game is unchanged.

Time: time settings are accepted and ignored; the player's simulations determine the
duration of a move. The first answer takes longer because the player is compiled; a
message on the standard error says so.
"""

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import azjax
from azjax.games import Game, State
from azjax.games.game_record import score_text
from azjax.play.gtp import analysis
from azjax.play.gtp.arguments import COLORS, SYNTAX_ERROR, color, real, whole, word
from azjax.play.gtp.history import History, Position, with_option
from azjax.play.gtp.protocol import CommandError
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
TIME_SYSTEMS = ("none", "absolute", "byoyomi", "canadian")

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
        self._game, self._player = game, load(game)
        self._is_compiled = isinstance(self._player, ExternalPlayer)
        self._session: PlayerSession | None = None
        self._history = History(game)
        self._commands: dict[str, Callable[[list[str]], str | Report]] = {
            "protocol_version": lambda words: "2",
            "name": lambda words: "azjax",
            "version": lambda words: azjax.__version__,
            "known_command": self._known_command,
            "list_commands": lambda words: "\n".join(self._commands),
            "quit": lambda words: "",
            "boardsize": self._boardsize,
            "clear_board": self._clear_board,
            "komi": self._komi,
            "play": self._play,
            "genmove": self._genmove,
            "reg_genmove": self._reg_genmove,
            "undo": self._undo,
            "time_settings": self._time_settings,
            "time_left": self._time_left,
            "kgs-time_settings": self._kgs_time_settings,
            "showboard": self._showboard,
            "final_score": self._final_score,
        }
        for name, write in (("lz", analysis.lz_line), ("kata", analysis.kata_line)):
            self._commands |= {
                f"{name}-analyze": lambda words, w=write: self._analyze(w, words),
                f"{name}-genmove_analyze": (
                    lambda words, w=write: self._analyzed_move(w, words)
                ),
            }
        if game.max_handicap is not None:
            self._commands |= {
                "fixed_handicap": self._fixed_handicap,
                "place_free_handicap": self._place_free_handicap,
                "set_free_handicap": self._set_free_handicap,
                "final_status_list": self._final_status_list,
            }

    def execute(self, name: str, words: list[str]) -> str | Report:
        """Executes a command; returns the response.

        Args:
            name: the command.
            words: its arguments; excess arguments are ignored.

        Raises:
            CommandError: the command failed; the position is unchanged.
        """
        if name not in self._commands:
            raise CommandError("unknown command")
        return self._commands[name](words)

    def close(self) -> None:
        """Closes the player's session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _known_command(self, words: list[str]) -> str:
        return str(word(words, 0) in self._commands).lower()

    def _boardsize(self, words: list[str]) -> str:
        size = whole(words, 0)
        height, width, _ = self._game.observation_shape
        if (height, width) != (size, size):
            self._change_option("size", size)
        self._new_game()
        return ""

    def _clear_board(self, words: list[str]) -> str:
        del words
        self._new_game()
        return ""

    def _komi(self, words: list[str]) -> str:
        komi = real(words, 0)
        if self._game.options.get("komi", komi) != komi:
            self._change_option("komi", komi)
            self._history.change_rules(self._game)
        return ""

    def _play(self, words: list[str]) -> str:
        self._history.play(color(words, 0), word(words, 1))
        return ""

    def _genmove(self, words: list[str]) -> str:
        position = self._history.turn(color(words, 0))
        try:
            return self._play_decision(position, self._decide(position))
        except ResignError:
            return RESIGN

    def _reg_genmove(self, words: list[str]) -> str:
        position = self._history.turn(color(words, 0))
        try:
            return self._vertex(position, self._decide(position))
        except ResignError:
            return RESIGN

    def _undo(self, words: list[str]) -> str:
        del words
        self._history.undo()
        return ""

    def _time_settings(self, words: list[str]) -> str:
        for place in range(3):
            whole(words, place)
        return ""

    def _time_left(self, words: list[str]) -> str:
        color(words, 0)
        for place in (1, 2):
            whole(words, place)
        return ""

    def _kgs_time_settings(self, words: list[str]) -> str:
        if word(words, 0) not in TIME_SYSTEMS:
            raise CommandError(SYNTAX_ERROR)
        return ""

    def _showboard(self, words: list[str]) -> str:
        del words
        moves, state, _ = self._history.position
        return "\n" + self._history.game.to_text(state, moves[-1] if moves else None)

    def _final_score(self, words: list[str]) -> str:
        del words
        return score_text(self._history.score())

    def _analyze(self, write: Writer, words: list[str]) -> Report:
        player, interval, most = self._analysis_arguments(words)
        position = self._history.turn(player)
        decisions = analysis.repeated(lambda: self._decide(position))
        try:
            first = next(decisions)
        except ResignError as error:
            raise CommandError(str(error)) from error
        lines = (
            write(self._history.game, position.state, decision, most)
            for decision in itertools.chain([first], decisions)
        )
        return Report(interval / 100, lines)

    def _analyzed_move(self, write: Writer, words: list[str]) -> str:
        player, _, most = self._analysis_arguments(words)
        position = self._history.turn(player)
        try:
            decision = self._decide(position)
        except ResignError:
            return f"\nplay {RESIGN}"
        line = write(self._history.game, position.state, decision, most)
        return f"\n{line}\nplay {self._play_decision(position, decision)}"

    def _fixed_handicap(self, words: list[str]) -> str:
        return self._set_handicap(whole(words, 0))

    def _place_free_handicap(self, words: list[str]) -> str:
        most = self._game.max_handicap or 0
        return self._set_handicap(min(whole(words, 0), most))

    def _set_free_handicap(self, words: list[str]) -> str:
        points = {vertex.lower() for vertex in words}
        if len(points) < max(MIN_HANDICAP, len(words)) or PASS in points:
            raise CommandError("bad vertex list")
        self._history.set_stones(words)
        return ""

    def _final_status_list(self, words: list[str]) -> str:
        status = word(words, 0)
        if status not in ("alive", "dead", "seki"):
            raise CommandError(SYNTAX_ERROR)
        if status != "alive":
            return ""
        return "\n".join(" ".join(self._history.stones(player)) for player in range(2))

    def _new_game(self) -> None:
        """Starts a new game."""
        self.close()
        self._num_games += 1
        self._history = History(self._game)

    def _change_option(self, option: str, value: float) -> None:
        """Changes an option of the game and loads the player for it."""
        problem = CommandError(f"unacceptable {option}")
        if option not in self._game.options:
            raise problem
        try:
            game = with_option(self._game, option, value)
            player = self._load(game)
        except ValueError as error:
            _note(str(error))
            raise problem from error
        self.close()
        self._game, self._player = game, player
        self._is_compiled = isinstance(player, ExternalPlayer)

    def _decide(self, position: Position) -> MoveDecision:
        """Returns the player's decision.

        Raises:
            ResignError: the player resigns.
            CommandError: the player failed.
        """
        try:
            if self._session is None:
                seed = (self._seed + self._num_games) % 2**32
                self._session = start_session(self._player, self._history.game, seed)
            if not self._is_compiled:
                _note("compiling the player; its first answer takes longer")
            self._is_compiled = True
            return self._session.choose(position.state, position.moves)
        except ResignError:
            raise
        except (ForfeitError, ValueError) as error:
            raise CommandError(str(error)) from error

    def _play_decision(self, position: Position, decision: MoveDecision) -> str:
        """Plays the player's decision; returns its vertex."""
        self._history.add(self._history.next(position, decision.action))
        return self._vertex(position, decision)

    def _vertex(self, position: Position, decision: MoveDecision) -> str:
        return to_vertex(self._history.game, position.state, decision.action)

    def _set_handicap(self, num_stones: int) -> str:
        try:
            points = self._game.handicap_points(num_stones)
        except ValueError:
            raise CommandError("invalid number of stones") from None
        self._history.set_stones(points)
        return " ".join(points).upper()

    def _analysis_arguments(self, words: list[str]) -> tuple[int, int, int]:
        """Returns the player, the interval in 1/100 s and the number of moves."""
        rest, player = list(words), self._history.position.player
        if rest and rest[0].lower() in COLORS:
            player = color([rest.pop(0)], 0)
        if rest and rest[0].isdecimal():
            rest.insert(0, "interval")
        # `avoid` and `allow` are not supported; other settings only add information.
        if len(rest) % 2 or "avoid" in rest or "allow" in rest:
            raise CommandError(SYNTAX_ERROR)
        settings = dict(zip(rest[::2], rest[1::2], strict=True))
        interval = whole([settings.get("interval", str(DEFAULT_INTERVAL))], 0)
        most = whole([settings.get("maxmoves", str(analysis.MAX_MOVES))], 0)
        return player, max(1, interval), max(1, most)


def _note(text: str) -> None:
    """Prints a message for people; the protocol has none."""
    print(f"azjax: {text}", file=sys.stderr, flush=True)

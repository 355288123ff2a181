"""A GTP engine for any player and game: Go Text Protocol, version 2, draft 2, by Gunnar
Farnebäck (2002).

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

Analysis lines have the formats of Leela Zero (lz) and KataGo (kata), which Sabaki,
Lizzie and others read. A line holds, for each move, the best one first, `info move D4
visits 20 winrate 5512 prior 310 order 0 pv D4 E5`. Win rates and priors are in 1/10000;
in KataGo's format they are fractions of 1. Win rates and utilities are for the player
to move, as in Leela Zero.
"""

import dataclasses
import functools
import math
import os
import queue
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import azjax
from azjax import games
from azjax.games import Game, GameRecord, State, host
from azjax.games.game_record import score_text
from azjax.games.host import first_state, legal_actions, next_state, rewards
from azjax.play.root_moves import RestrictedGame, restricted
from azjax.play.text_output import RankedMove, expected_actions, rank_moves
from azjax.players import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    MoveDecision,
    PlayerSession,
    ResignError,
    start_session,
)
from azjax.players.gtp import PASS, RESIGN, read_vertex, to_vertex
from azjax.text import printable

COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}
MAX_DIGITS = 7
MAX_MESSAGE = 300  # characters
SYNTAX_ERROR = "syntax error"
MAX_MOVES = 20  # of an analysis line
DEFAULT_INTERVAL = 100  # between the lines of an analysis (1/100 s)
MIN_HANDICAP = 2  # stones
MAX_FILE_BYTES = 10**6
AREA_RULES = ("chinese", "aga", "new_zealand")


class CommandError(Exception):
    """A failed command; the message is sent to the client."""


class Arguments(list[str]):
    """The arguments of a command; each method raises a `CommandError` if the one at its
    place is missing or is something else."""

    def word(self, place: int) -> str:
        """Returns an argument."""
        if place >= len(self):
            raise CommandError(SYNTAX_ERROR)
        return self[place]

    def color(self, place: int) -> int:
        """Returns the player of a color."""
        player = COLORS.get(self.word(place).lower())
        if player is None:
            raise CommandError(SYNTAX_ERROR)
        return player

    def whole(self, place: int) -> int:
        """Returns a non-negative integer."""
        digits = self.word(place)
        if not digits.isdecimal() or len(digits) > MAX_DIGITS:
            raise CommandError(SYNTAX_ERROR)
        return int(digits)

    def real(self, place: int) -> float:
        """Returns a finite number."""
        try:
            value = float(self.word(place))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise CommandError(SYNTAX_ERROR)
        return value


class Inbox:
    """Lines that a background thread reads."""

    def __init__(self, lines: Iterable[bytes]):
        self._lines: queue.Queue[bytes | None] = queue.Queue(maxsize=1000)
        self._next: list[bytes | None] = []

        def read() -> None:
            for line in lines:
                self._lines.put(line)
            self._lines.put(None)

        threading.Thread(target=read, daemon=True).start()

    def get(self) -> bytes | None:
        """Waits for the next line; returns it, or None after the last one."""
        return self._next.pop() if self._next else self._lines.get()

    def wait(self, seconds: float) -> bool:
        """Waits for a line or the end; returns whether one arrived in time."""
        if not self._next:
            try:
                self._next.append(self._lines.get(timeout=seconds))
            except queue.Empty:
                return False
        return True


class Position(NamedTuple):
    """A position with its history.

    moves: the actions that lead to it.
    state: the position as NumPy arrays.
    """

    moves: tuple[int, ...]
    state: State

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self.state.current_player)


class History:
    """The positions of one game, in which a color may move twice in a row.

    The methods raise a `CommandError` for the client, and then change nothing.

    game: its rules, which others with the same states may replace.
    """

    def __init__(self, game: Game):
        """Starts a game, without a move limit where possible, as GTP has none."""
        self.game = game.without_move_limit()
        self._positions = [Position((), first_state(self.game))]

    @property
    def position(self) -> Position:
        """The current position."""
        return self._positions[-1]

    def add(self, position: Position, action: int) -> None:
        """Appends the position after a legal action in a result of `turn`."""
        self._positions.append(self._next(position, action))

    def undo(self) -> None:
        """Removes the last position."""
        if len(self._positions) == 1:
            raise CommandError("cannot undo")
        self._positions.pop()

    def turn(self, player: int, position: Position | None = None) -> Position:
        """Returns the current or another position with this player to move, after a
        pass if necessary."""
        position = self._resumed(position or self.position)
        if position.state.terminated:
            raise CommandError("the game is over")
        if position.player == player:
            return position
        return self._resumed(self._moved(position, PASS))

    def play(self, player: int, vertex: str) -> None:
        """Plays a move."""
        self._positions.append(self._after(self.position, player, vertex))

    def set_stones(self, vertices: Sequence[str]) -> None:
        """Places handicap stones of player 0 in the first position, which is not
        undone."""
        if self.position.moves:
            raise CommandError("board not empty")
        position = self.position
        for vertex in vertices:
            position = self._after(position, 0, vertex)
        self._positions = [position]

    def score(self) -> float:
        """Returns the margin of player 0: in points, with all stones alive, if the game
        has points; else 1, 0 or -1."""
        game, state = self.game, self.position.state
        points = host.score(game, state)
        if points is not None:
            return float(points[0] - points[1])
        if not state.terminated:
            raise CommandError("cannot score")
        return rewards(game, state)[0]

    def actions(self, position: Position, vertices: Sequence[str]) -> set[int]:
        """Returns the actions of vertices, legal or not."""
        names = {
            self.game.action_to_text(position.state, action).lower(): action
            for action in range(self.game.num_actions)
        }
        try:
            return {names[vertex.lower()] for vertex in vertices}
        except KeyError:
            raise CommandError(SYNTAX_ERROR) from None

    def record(self) -> GameRecord:
        """Returns the game so far."""
        moves, state = self.position
        result = int(rewards(self.game, state)[0]) if state.terminated else None
        return GameRecord(("?", "?"), list(moves), result, "")

    def to_text(self) -> str:
        """Returns a drawing of the position."""
        moves, state = self.position
        return self.game.to_text(state, moves[-1] if moves else None)

    def cleanup_moves(self, position: Position) -> np.ndarray | None:
        """Returns `[A]` bool, all moves but the pass, while an empty point belongs to
        neither player, as around dead stones; then None, for all moves."""
        game, state = self.game, position.state
        is_open = (host.owners(game, state) < 0) & (host.board(game, state) < 0)
        others = [a for a in legal_actions(game, state) if not self._is_pass(state, a)]
        if not others or not is_open.any():
            return None
        return np.isin(np.arange(game.num_actions), others)

    def stones(self, player: int) -> list[str]:
        """Returns the vertices of a player's stones."""
        columns, rows = self.game.column_labels, self.game.row_labels
        cells = np.argwhere(host.board(self.game, self.position.state) == player)
        return [f"{columns[column]}{rows[row]}".upper() for row, column in cells]

    def _is_pass(self, state: State, action: int) -> bool:
        return self.game.action_to_text(state, action) == PASS

    def _resumed(self, position: Position) -> Position:
        """Returns an unfinished position if two passes ended the game."""
        moves, state = position
        passes = [self._is_pass(state, action) for action in moves[-2:]]
        if not state.terminated or passes != [True, True]:
            return position
        fields: Any = state  # states are dataclasses
        return Position(moves, dataclasses.replace(fields, terminated=np.bool_(False)))

    def _after(self, position: Position, player: int, vertex: str) -> Position:
        if position.player != player and vertex.lower() == PASS:
            return position
        return self._moved(self.turn(player, position), vertex)

    def _moved(self, position: Position, vertex: str) -> Position:
        try:
            action = read_vertex(self.game, position.state, vertex)
        except ValueError:
            raise CommandError("illegal move") from None
        return self._next(position, action)

    def _next(self, position: Position, action: int) -> Position:
        state = next_state(self.game, position.state, action)
        return Position((*position.moves, action), state)


def with_size(game: Game, size: int) -> Game:
    """Returns a game on a square board of another size."""
    if game.observation_shape[:2] == (size, size):
        return game
    if "size" not in game.options:
        raise ValueError(f"{game!r} has one size only")
    return _with_option(game, "size", size)


def with_komi(game: Game, komi: float) -> Game:
    """Returns a game with a komi, or with one that it has and that has the same winners
    (0.5 for 0.3, all points of the board for more); the same game if it has none."""
    if "komi" not in game.options:
        return game
    try:
        return _with_option(game, "komi", komi)
    except ValueError:
        height, width, _ = game.observation_shape
        komi = max(-height * width, min(height * width, math.floor(komi) + 0.5))
        return _with_option(game, "komi", komi)


def _with_option(game: Game, option: str, value: float) -> Game:
    """Returns a game with another value of an option; options with default values get
    the defaults for that value."""
    defaults = games.make(game.name, **{option: game.options[option]}).options
    chosen = {key: old for key, old in game.options.items() if old != defaults[key]}
    return games.make(game.name, **{**chosen, option: value})


def analysis_line(
    game: Game, state: State, decision: MoveDecision, max_moves: int, *, is_kata: bool
) -> str:
    """Returns a decision in the format of `lz-analyze`, or of `kata-analyze`.

    They have no form for moves of players without a search: there the chosen move
    counts as visited once, the others not at all, and each has the value of the
    position.
    """
    chosen, value = decision.action, decision.value or 0.0
    ranked = rank_moves(decision) or [RankedMove(chosen, 0.0, None, None)]
    shown = [move for move in ranked if move.visits != 0 or move.action == chosen]
    texts = []
    for order, move in enumerate(shown[:max_moves]):
        visits = int(move.action == chosen) if move.visits is None else move.visits
        utility = value if move.value is None else move.value
        win_rate = min(max((1 + utility) / 2, 0.0), 1.0)
        if is_kata:
            numbers = f"utility {utility:.6f} winrate {win_rate:.6f}"
            numbers += f" prior {move.prior:.6f}"
        else:
            numbers = f"winrate {round(10_000 * win_rate)}"
            numbers += f" prior {round(10_000 * move.prior)}"
        line, after = [], state
        is_chosen = move.action == chosen
        for action in expected_actions(decision) if is_chosen else [move.action]:
            line.append(to_vertex(game, after, action))
            after = next_state(game, after, action)
        texts.append(
            f"info move {to_vertex(game, state, move.action)} visits {visits} "
            f"{numbers} order {order} pv {' '.join(line)}"
        )
    return " ".join(texts)


Writer = Callable[[Game, State, MoveDecision, int], str]


class AnalysisReport(NamedTuple):
    """A response that continues until the next line of input.

    interval: seconds between its lines.
    lines: endless.
    """

    interval: float
    lines: Iterator[str]


class GtpEngine:
    """A player and its current game."""

    def __init__(self, game: Game, load: Callable[[Game], AnyPlayer], seed: int = 0):
        """Starts a game.

        Args:
            game: the game; `boardsize` and `komi` can change its options.
            load: loads the player for a game.
            seed: seed of the player's random choices.

        Raises:
            ValueError: the player does not support the game, or the game has chance.
        """
        if game.num_outcomes:
            raise ValueError(f"GTP has no outcomes of chance; {game!r} needs them")
        self._load, self._seed, self._num_games = load, seed, 0
        self._known_komi = float(game.options.get("komi", 0))
        self._game, self._player = game, load(game)
        self._is_compiled = isinstance(self._player, ExternalPlayer)
        self._session: PlayerSession | None = None
        self._history = History(game)
        self._commands: dict[
            str, Callable[[Arguments], str | AnalysisReport | None]
        ] = {
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
        for name in ("lz", "kata"):
            write = functools.partial(analysis_line, is_kata=name == "kata")
            self._commands |= {
                f"{name}-analyze": functools.partial(self._analyze, write),
                f"{name}-genmove_analyze": functools.partial(
                    self._analyzed_move, write
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

    def execute(self, name: str, words: list[str]) -> str | AnalysisReport:
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

    def _analyze(self, write: Writer, words: Arguments) -> AnalysisReport:
        position, allowed, interval, most = self._analysis_arguments(words)
        try:
            first = self._decide(position, allowed)
        except ResignError as error:
            raise CommandError(str(error)) from error

        def lines() -> Iterator[str]:
            # While each decision has more visits, because the player reuses its tree,
            # it decides again; otherwise the last decision is repeated.
            decision, visits = first, -1
            while True:
                yield write(self._history.game, position.state, decision, most)
                analysis = decision.analysis
                if analysis is not None and analysis.visits.sum() > visits:
                    visits = analysis.visits.sum()
                    decision = self._decide(position, allowed)

        return AnalysisReport(interval / 100, lines())

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
        path, end = words.word(0), words.whole(1) if words[1:] else None
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
        """Loads the player for a game with another size or komi."""
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
        numbers = {"interval": DEFAULT_INTERVAL, "maxmoves": MAX_MOVES}
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


def serve(engine: GtpEngine, inbox: Inbox, write: Callable[[str], object]) -> None:
    """Answers commands until `quit` or the end of the input; `write` sends text
    without buffering."""
    while (line := inbox.get()) is not None:
        # Control characters, non-ASCII bytes and comments are ignored.
        text = line.decode("ascii", errors="ignore").replace("\t", " ")
        words = "".join(filter(str.isprintable, text)).partition("#")[0].split()
        if not words:
            continue
        number = words.pop(0) if words[0].isdecimal() else ""
        name = words.pop(0) if words else ""
        try:
            answer = engine.execute(name, words)
        except CommandError as error:
            message = printable(" ".join(str(error).split()), MAX_MESSAGE)
            write(f"?{number} {message}\n\n")
            continue
        if isinstance(answer, AnalysisReport):  # until another line, perhaps empty
            write(f"={number}\n")
            for text in answer.lines:
                write(f"{text}\n")
                if inbox.wait(answer.interval):
                    break
            write("\n")
        else:
            first, *rest = answer.split("\n")
            # An empty line would end the response.
            lines = [f"={number} {first}", *(text for text in rest if text.strip())]
            write("\n".join(lines) + "\n\n")
        if name == "quit":
            return


def _note(text: str) -> None:
    """Prints a message for people; the protocol has none."""
    print(f"azjax: {printable(text)}", file=sys.stderr, flush=True)

"""A person's games against an opponent: turns, undo, clocks, advice, commands.

The session asks the opponent for its moves, in another thread, and an interface passes
it the person's lines. Observers are called with each event, in order, in the thread of
the interface.
"""

import datetime
import os
import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import numpy as np

from azjax.games import Game, State, saved_game
from azjax.games.host import (
    compiled,
    first_state,
    legal_actions,
    legal_moves,
    next_state,
    random_outcome_move,
    rewards,
    waits_for_chance,
)
from azjax.games.saved_game import RESULTS, UNFINISHED, SavedGame
from azjax.play.text_output import expected_value, side_names
from azjax.players import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    HumanPlayer,
    MoveDecision,
    PlayerSession,
    ResignError,
    compile_choice,
    start_session,
)
from azjax.players.core import choose_legal

PERSON = "human"
Outcome = Future[MoveDecision | None]
Work = Callable[[], MoveDecision | None]
Then = Callable[[Outcome], None]


class Background:
    """A thread for work; the callbacks with its outcomes wait for the interface's
    thread."""

    def __init__(self):
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="azjax-player")
        self._last: Outcome | None = None
        self._ended: queue.SimpleQueue[tuple[Then, Outcome]] = queue.SimpleQueue()

    def __call__(self, work: Work, then: Then) -> None:
        """Starts work, after all earlier work; `run_next` passes its outcome on."""
        self._last = self._executor.submit(work)
        self._last.add_done_callback(lambda outcome: self._ended.put((then, outcome)))

    def run_next(self, *, waits: bool = True) -> None:
        """Calls the next callback; waits for it, or else does nothing without one."""
        if waits or not self._ended.empty():
            then, outcome = self._ended.get()
            then(outcome)

    def close(self, seconds: float) -> bool:
        """Stops accepting work; returns whether running work ended within `seconds`.

        Python's exit waits for work that has not.
        """
        self._executor.shutdown(wait=False, cancel_futures=True)
        return self._last is None or not wait([self._last], timeout=seconds).not_done


class Move(NamedTuple):
    """A move of the game.

    action: the move; A + k for outcome k of chance.
    text: the move in the game's notation.
    decision: the session's decision; None for a person's move, a loaded game or an
        outcome of chance.
    seconds: time that the player used.
    """

    action: int
    text: str
    decision: MoveDecision | None = None
    seconds: float = 0.0


class Moved(NamedTuple):
    """`player` made a move; the outcome of chance that follows is drawn already.

    outcome: the outcome of chance before the move in words, empty if there was none.
    """

    player: int
    move: Move
    outcome: str = ""


class Jumped(NamedTuple):
    """The position or the sessions changed without a move.

    Moves were undone or redone, a game was started or loaded, or sides were changed.
    """


class Thinks(NamedTuple):
    """A session was asked for the move of `player`, or for advice."""

    player: int
    is_advice: bool


class Advised(NamedTuple):
    """A session gave advice for the position."""

    decision: MoveDecision


class AdviceFailed(NamedTuple):
    """The session that was asked for advice cannot continue."""

    reason: str


class Forfeited(NamedTuple):
    """The session of `player` cannot continue or resigns; `GameOver` follows."""

    player: int
    reason: str
    is_resignation: bool = False


class GameOver(NamedTuple):
    """The game is over; `rewards` are the results of players 0 and 1."""

    rewards: tuple[float, float]


Event = Moved | Jumped | Thinks | Advised | AdviceFailed | Forfeited | GameOver
Observer = Callable[[Event], None]


class Command(NamedTuple):
    """A command that a person can type.

    names: accepted spellings; `help` shows the first.
    help: description.
    argument: its form in `help`; empty without an argument.
    """

    names: tuple[str, ...]
    help: str
    argument: str = ""


COMMANDS = (
    Command(("hint",), "what the opponent would play in your place"),
    Command(("back", "undo"), "take back your last move"),
    Command(("forward", "redo"), "redo a move that was taken back"),
    Command(("sides",), "change sides"),
    Command(("auto",), "let the opponent play both sides; again: stop"),
    Command(("analysis",), "show the opponent's analysis; again: hide it"),
    Command(("new",), "start a new game"),
    Command(("save",), "write the game to a file", "[FILE]"),
    Command(("load",), "continue a saved game", "FILE"),
    Command(("help", "?"), "show this list"),
    Command(("quit", "exit", "q"), "leave"),
)


def parse(text: str) -> tuple[str, str] | None:
    """Returns the first name of a command and its argument, None for other lines."""
    word, _, argument = text.strip().partition(" ")
    argument = argument.strip()
    for command in COMMANDS:
        if word.lower() in command.names and (command.argument or not argument):
            return command.names[0], argument
    return None


def help_lines() -> list[str]:
    """Returns the commands with their descriptions, aligned."""
    shown = [
        (" or ".join((f"{c.names[0]} {c.argument}".strip(), *c.names[1:])), c.help)
        for c in COMMANDS
    ]
    width = max(len(names) for names, _ in shown)
    return [f"{names:<{width}}  {help_text}" for names, help_text in shown]


class Session:
    """A person, an opponent and the games between them.

    Before the game has started, a game may be loaded, but the opponent is not asked and
    no clock runs. After the start, an outcome is drawn as soon as a position waits for
    one. A decision about a position that is no longer current is dropped.

    game: the game, with compiled functions.
    background: runs the opponent's decisions; the interface calls its callbacks.
    name: name of the opponent.
    user: the person's player, 0 moves first.
    opponent_session: the opponent; None is a second person at the same board.
    is_started: whether the game has started.
    is_auto: whether the opponent plays both sides.
    is_analyzing: whether the opponent gives advice at each of the person's turns.
    is_left: whether the person wants to leave; the interface must end.
    thinking: the pending request to the opponent, or None.
    forfeit: the forfeit or resignation that ended the game, or None.

    Args:
        game: the game.
        opponent: the player; a `HumanPlayer` is a second person.
        background: see above.
        name: see above.
        user: see above.
        seed: seed of the opponent's random choices, and of the outcomes of chance.
            With None the former is 0, and the outcomes differ from session to session.
        clock: returns the time in seconds.

    Raises:
        ValueError: the opponent cannot play this game, or does not start.
    """

    def __init__(
        self,
        game: Game,
        opponent: AnyPlayer,
        background: Background,
        *,
        name: str,
        user: int,
        seed: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.name, self.user = name, user
        self.is_started = self.is_auto = self.is_analyzing = self.is_left = False
        self.thinking: Thinks | None = None
        self.forfeit: Forfeited | None = None
        self._game, self._opponent, self._seed = game, opponent, seed or 0
        self.background, self._clock = background, clock
        self._rng = np.random.default_rng(seed)
        self.opponent_session = self._start_opponent()
        self.game = compiled(game)
        self._observers: list[Observer] = []
        self._states: list[State] = [first_state(self.game)]
        self._moves: list[Move] = []  # from index `_ply` on: undone moves
        self._ply = 0
        self._generation = 0  # changes with the position and the sides
        self._turn_began = clock()
        self._path: Path | None = None  # of the saved or loaded game
        self._advice: MoveDecision | None = None  # for the current position
        self._values: dict[int, float] = {}  # for player 0, by ply

    @property
    def state(self) -> State:
        """The current position."""
        return self._states[self._ply]

    @property
    def states(self) -> Sequence[State]:
        """The positions from the initial to the current one."""
        return self._states[: self._ply + 1]

    @property
    def moves(self) -> Sequence[Move]:
        """The moves from the initial to the current position."""
        return self._moves[: self._ply]

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self.state.current_player)

    @property
    def movers(self) -> list[int]:
        """The player of each move; of an outcome of chance, who is to move after it."""
        states = (self._states[ply + self._is_outcome(ply)] for ply in range(self._ply))
        return [int(state.current_player) for state in states]

    @property
    def last_action(self) -> int | None:
        """The latest action of a player; None before the first."""
        plies = (n for n in reversed(range(self._ply)) if not self._is_outcome(n))
        ply = next(plies, None)
        return None if ply is None else self._moves[ply].action

    @property
    def outcome_of_chance(self) -> str:
        """The outcome of chance that led to the current position in words, such as
        `roll 3`; empty if none did."""
        has_one = self._ply > 0 and self._is_outcome(self._ply - 1)
        return self._moves[self._ply - 1].text if has_one else ""

    @property
    def result(self) -> tuple[float, float] | None:
        """The results of players 0 and 1; None before the end of the game."""
        if self.forfeit is not None:
            return (1.0, -1.0) if self.forfeit.player else (-1.0, 1.0)
        return rewards(self.game, self.state) if self.state.terminated else None

    @property
    def is_persons_turn(self) -> bool:
        """Whether the game waits for a person's move."""
        is_on = self.is_started and self.result is None
        return is_on and self._is_persons(self._ply)

    @property
    def player_names(self) -> tuple[str, str]:
        """The names of players 0 and 1."""
        if self.opponent_session is None:
            return (PERSON, PERSON)
        mine = self.name if self.is_auto else PERSON
        return (self.name, mine) if self.user else (mine, self.name)

    def legal_actions(self) -> list[int]:
        """Returns the legal actions; none after the end of the game."""
        return [] if self.result is not None else legal_actions(self.game, self.state)

    def seconds(self, player: int) -> float:
        """Returns the seconds that a player used up to the current position."""
        movers = (int(state.current_player) for state in self._states)
        used = sum(
            move.seconds
            for mover, move in zip(movers, self.moves, strict=False)
            if mover == player
        )
        is_on = self.is_started and self.result is None
        is_running = is_on and self.player == player
        return used + (self._clock() - self._turn_began if is_running else 0.0)

    def name_of(self, player: int) -> str:
        """Returns the name of a player in messages."""
        if self.opponent_session is None:
            return f"the player with the {side_names(self.game)[player]}"
        if player == self.user and not self.is_auto:
            return "you"
        return self.name

    def forfeit_text(self, forfeited: Forfeited) -> str:
        """Returns the message for a forfeit or resignation."""
        name = self.name_of(forfeited.player)
        if forfeited.is_resignation:
            return f"{name} resigns"
        return f"{name} forfeits: {forfeited.reason}"

    def outcome(self) -> str:
        """Returns the result of the game with its reason."""
        result = self.result
        if result is None:
            return "the game is not over"
        if result[0] == result[1]:
            words = "a draw"
        else:
            winner = 0 if result[0] > result[1] else 1
            words = "you win" if winner == self.user else "you lose"
            if self.opponent_session is None or self.is_auto:
                words = f"the {side_names(self.game)[winner]} win"
        reason = self.result_text()
        return f"{words}: {reason}" if reason else words

    def result_text(self) -> str:
        """Returns the reason of the result, empty if there is nothing to add."""
        if self.forfeit is not None:
            return self.forfeit.reason
        return self.game.result_text(self.state)

    def latest_decision(self) -> tuple[int, MoveDecision] | None:
        """Returns the ply and the decision of the latest advice or opponent's move."""
        if self._advice is not None:
            return self._ply, self._advice
        for ply in reversed(range(self._ply)):
            decision = self._moves[ply].decision
            if decision is not None:
                return ply, decision
        return None

    def values(self) -> list[float]:
        """Returns the expected results for player 0 up to the current position."""
        known = sorted(self._values.items())
        return [value for ply, value in known if ply <= self._ply]

    def observe(self, observer: Observer) -> None:
        """Adds an observer, which is called with every later event."""
        self._observers.append(observer)

    def begin(self, saved: str | None = None) -> str:
        """Starts the first game or continues that of a file; returns a message.

        The clock starts when the opponent is compiled.

        Raises:
            ValueError: the game cannot be loaded.
        """
        message = "" if saved is None else self.do(f"load {saved}")
        opponent = self._opponent

        def start(compilation: Outcome | None = None) -> None:
            if compilation is not None:
                compilation.result()  # raises the error of a failed compilation
            self.is_started = True
            self._arrive(Jumped())

        if isinstance(opponent, ExternalPlayer):
            start()
        else:
            self.background(lambda: compile_choice(opponent, self._game), start)
        return message

    def do(self, line: str) -> str:
        """Executes a move or a command; returns a message.

        Raises:
            ValueError: the line is invalid now; the error explains why.
        """
        command = parse(line)
        if command is not None:
            name, argument = command
            try:
                return self._execute(name, argument)
            except OSError as error:
                where = error.filename or argument
                raise ValueError(f"{where}: {error.strerror or error}") from error
        if not line.strip():
            raise ValueError("type a move, or `help` for a list of commands")
        if self.result is not None:
            raise ValueError(f"{line.strip()!r} cannot be played: the game is over")
        self._check_is_persons_turn()
        action = self.game.text_to_action(self.state, line)
        if action not in self.legal_actions():
            raise ValueError(f"{line.strip()!r} is not legal here")
        self._make(action, None)
        return ""

    def close(self) -> None:
        """Ends the game and closes the opponent."""
        self._drop_request()
        if self.opponent_session is not None:
            self.opponent_session.close()

    def _execute(self, name: str, argument: str) -> str:
        """Executes a command by its first name; returns a message."""
        message = ""
        needs_opponent = name in ("hint", "sides", "auto", "analysis")
        if needs_opponent and self.opponent_session is None:
            raise ValueError("this needs an opponent; two people play")
        if name in ("sides", "auto", "new"):
            self._restart_opponent()
        match name:
            case "hint":
                self._advise()
            case "back" | "forward":
                if self.is_auto:
                    self._restart_opponent()
                    self.is_auto = False
                    self._jump(self._ply)
                # To the last earlier or next ply with a person to move, or to the end.
                end, plies = len(self._moves), range(self._ply - 1, -1, -1)
                if name == "forward":
                    plies = range(self._ply + 1, end + 1)
                found = (ply for ply in plies if ply == end or self._is_persons(ply))
                ply = next(found, None)
                if ply is None:
                    what = "take back" if name == "back" else "go forward to"
                    raise ValueError(f"there is no move to {what}")
                self._restart_opponent()
                self._jump(ply)
            case "sides":
                self.user, self.is_auto = 1 - self.user, False
                self._jump(self._ply)
                message = f"you have the {side_names(self.game)[self.user]}"
            case "auto":
                self.is_auto = not self.is_auto
                self._jump(self._ply)
                message = "you play again"
                if self.is_auto:
                    message = f"{self.name} plays both sides"
            case "analysis":
                self.is_analyzing = not self.is_analyzing
                if self.is_analyzing and self.is_persons_turn:
                    self._advise()
                message = f"the analysis is {'on' if self.is_analyzing else 'off'}"
            case "new":
                self._replace_game([], None)
                message = "a new game"
            case "save":
                result = self.result
                saved = SavedGame(
                    game=repr(self.game),
                    players=self.player_names,
                    result=UNFINISHED if result is None else RESULTS[result],
                    moves=[move.text for move in self.moves],
                    is_forfeit=self.forfeit is not None,
                    result_text="" if result is None else self.result_text(),
                )
                now = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
                path = self._path or Path(f"{self.game.name}-{now}.txt")
                if argument:
                    path = Path(os.path.expanduser(argument))
                saved_game.save(path, saved, overwrite=path == self._path)
                self._path = path
                message = f"saved in {path}"
            case "load":
                if not argument:
                    raise ValueError("load needs a file: load FILE")
                path = Path(os.path.expanduser(argument))
                saved, actions = saved_game.load(path, self.game)
                self._restart_opponent()
                first, second = saved.players
                if (first == PERSON) != (second == PERSON):
                    self.user = int(second == PERSON)
                self._replace_game(actions, path)
                number = sum(action < self.game.num_actions for action in actions)
                message = f"loaded {path}: {first} against {second}, {number} moves"
            case "help":
                message = "\n".join(["a move, or one of:", *help_lines()])
            case "quit":
                self.is_left = True
        return message

    def _replace_game(self, actions: Sequence[int], path: Path | None) -> None:
        """Replaces the game by another one, from a file if it has a path."""
        states, moves = [first_state(self.game)], []
        for number, action in enumerate(actions, start=1):
            state = states[-1]
            if action not in legal_moves(self.game, state):
                raise ValueError(f"move {number}, action {action}, is not legal")
            moves.append(Move(action, self.game.move_to_text(state, action)))
            states.append(next_state(self.game, state, action))
        self.is_auto, self._path, self._values = False, path, {}
        self._states, self._moves = states, moves
        self._jump(len(moves))

    def _is_persons(self, ply: int) -> bool:
        """Returns whether a person moves at a ply."""
        state = self._states[ply]
        if waits_for_chance(self.game, state):
            return False
        is_users = int(state.current_player) == self.user
        return self.opponent_session is None or (is_users and not self.is_auto)

    def _is_outcome(self, ply: int) -> bool:
        """Returns whether the move at a ply is an outcome of chance."""
        return self._moves[ply].action >= self.game.num_actions

    def _check_is_persons_turn(self) -> None:
        if self.result is not None:
            raise ValueError("the game is over")
        if not self.is_persons_turn:
            raise ValueError("it is not your turn")

    def _jump(self, ply: int) -> None:
        """Continues from a ply, even after a forfeit."""
        self._ply, self.forfeit = ply, None
        self._arrive(Jumped())

    def _make(self, action: int, decision: MoveDecision | None) -> None:
        state, player, outcome = self.state, self.player, self.outcome_of_chance
        text = self.game.action_to_text(state, action)
        move = Move(action, text, decision, self._clock() - self._turn_began)
        self._values = {n: v for n, v in self._values.items() if n <= self._ply}
        self._remember(decision)
        self._append(move)
        self._arrive(Moved(player, move, outcome))

    def _append(self, move: Move) -> None:
        """Adds a move to the current position, in place of the undone ones."""
        after = next_state(self.game, self.state, move.action)
        self._moves[self._ply :] = [move]
        self._states[self._ply + 1 :] = [after]
        self._ply += 1

    def _arrive(self, event: Event) -> None:
        """Draws an outcome of chance if the position waits for it, passes the event
        that set the position to observers, and asks the opponent if it is to move or
        gives advice."""
        if self.is_started and waits_for_chance(self.game, self.state):
            outcome = random_outcome_move(self.game, self.state, self._rng)
            self._append(Move(outcome, self.game.move_to_text(self.state, outcome)))
        self._drop_request()
        self._advice, self._turn_began = None, self._clock()
        generation = self._generation
        self._tell(event)
        if generation != self._generation or not self.is_started:
            return  # an observer changed the game, or no one has to move
        if self.result is not None:
            self._tell(GameOver(self.result))
        elif not self.is_persons_turn:
            self._ask(is_advice=False)
        elif self.is_analyzing:
            self._ask(is_advice=True)

    def _advise(self) -> None:
        """Asks for advice, unless another request is pending."""
        self._check_is_persons_turn()
        if self.thinking is None:
            self._ask(is_advice=True)

    def _ask(self, *, is_advice: bool) -> None:
        """Asks the opponent for a move or for advice."""
        session, game = self.opponent_session, self.game
        assert session is not None
        generation, player, state = self._generation, self.player, self.state
        self.thinking = Thinks(player, is_advice)
        self._tell(self.thinking)
        actions = [move.action for move in self.moves]

        def work():
            if generation != self._generation:
                return None
            return choose_legal(session, game, state, actions)

        def then(outcome):
            error = outcome.exception()
            if error is not None and not isinstance(error, ForfeitError):
                raise error
            if generation != self._generation:
                return
            self.thinking = None
            if error is None and is_advice:
                decision = self._advice = outcome.result()
                self._remember(decision)
                self._tell(Advised(decision))
            elif error is None:
                self._make(outcome.result().action, outcome.result())
            elif is_advice:
                self._tell(AdviceFailed(str(error)))
            else:
                is_resignation = isinstance(error, ResignError)
                self.forfeit = Forfeited(player, str(error), is_resignation)
                self._arrive(self.forfeit)

        self.background(work, then)

    def _drop_request(self) -> None:
        self._generation += 1
        self.thinking = None

    def _tell(self, event: Event) -> None:
        for observer in self._observers:
            observer(event)

    def _remember(self, decision: MoveDecision | None) -> None:
        """Stores the expected result at the current ply for player 0."""
        value = None if decision is None else expected_value(decision)
        if value is not None:
            self._values[self._ply] = -value if self.player else value

    def _start_opponent(self) -> PlayerSession | None:
        if isinstance(self._opponent, HumanPlayer):
            return None
        try:
            return start_session(self._opponent, self._game, self._seed)
        except ForfeitError as error:
            raise ValueError(f"{self.name}: {error}") from error

    def _restart_opponent(self) -> None:
        """Replaces the session of an opponent that forfeited; a jump must follow."""
        failed = self.opponent_session
        if self.forfeit is not None and failed is not None:
            self.opponent_session = self._start_opponent()
            failed.close()

"""The controller of an interactive game: turns, moves, undo, clocks, advice, result.

A side is a session, which the controller asks for moves, or None: a person, whose
moves an interface passes to `Controller.play`. Observers are called with each event, in
order, in the interface's thread.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from azjax.games import Game, State
from azjax.games.host import (
    compiled,
    first_state,
    legal_actions,
    next_state,
    rewards,
)
from azjax.play.background import Executor, InlineExecutor
from azjax.players import ForfeitError, MoveDecision, PlayerSession, ResignError
from azjax.players.session import choose_legal


class Move(NamedTuple):
    """A move of the game.

    action: the move.
    text: the move in the game's notation.
    decision: the session's decision; None for a person's move or a loaded game.
    seconds: time that the player used.
    """

    action: int
    text: str
    decision: MoveDecision | None = None
    seconds: float = 0.0


class Moved(NamedTuple):
    """`player` made a move."""

    player: int
    move: Move


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


PlayerSessions = tuple[PlayerSession | None, PlayerSession | None]


class Controller:
    """Runs a game between two sides.

    Before `start`, a game may be loaded, but no session is asked and no clock runs. A
    decision about a position that is no longer current is dropped.

    adviser: the session that gives advice at each of a person's turns, or None.

    Args:
        game: the game.
        sessions: the sessions of players 0 and 1; None is a person.
        executor: runs the sessions; the default runs them in the calling thread.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        game: Game,
        sessions: PlayerSessions,
        executor: Executor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.game = compiled(game)
        self.adviser: PlayerSession | None = None
        self._sessions = sessions
        self._execute, self._clock = executor or InlineExecutor(), clock
        self._observers: list[Observer] = []
        self._states: list[State] = [first_state(self.game)]
        self._moves: list[Move] = []  # from index `_ply` on: undone moves
        self._ply = 0
        self._generation = 0  # changes with the position and the sessions
        self._forfeit: Forfeited | None = None
        self._is_started = False
        self._thinking: Thinks | None = None
        self._turn_began = clock()

    @property
    def sessions(self) -> PlayerSessions:
        """The sessions of players 0 and 1; None is a person."""
        return self._sessions

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
    def result(self) -> tuple[float, float] | None:
        """The results of players 0 and 1; None before the end of the game."""
        if self._forfeit is not None:
            return (1.0, -1.0) if self._forfeit.player else (-1.0, 1.0)
        if not self.state.terminated:
            return None
        return rewards(self.game, self.state)

    @property
    def forfeit(self) -> Forfeited | None:
        """The forfeit or resignation that ended the game, or None."""
        return self._forfeit

    @property
    def is_started(self) -> bool:
        """Whether `start` was called."""
        return self._is_started

    @property
    def is_persons_turn(self) -> bool:
        """Whether the game waits for `play`."""
        is_on = self._is_started and self.result is None
        return is_on and self._sessions[self.player] is None

    @property
    def thinking(self) -> Thinks | None:
        """The pending request to a session, or None."""
        return self._thinking

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
        is_on = self._is_started and self.result is None
        is_running = is_on and self.player == player
        return used + (self._clock() - self._turn_began if is_running else 0.0)

    def observe(self, observer: Observer) -> None:
        """Adds an observer, which is called with every later event."""
        self._observers.append(observer)

    def start(self) -> None:
        """Starts the game; a session that is to move is asked for its move."""
        self._is_started = True
        self._arrive(Jumped())

    def play(self, action: int) -> None:
        """Makes a person's move.

        Raises:
            ValueError: it is not a person's turn, or the move is illegal.
        """
        self._check_is_persons_turn()
        if action not in self.legal_actions():
            text = self.game.action_to_text(self.state, action)
            raise ValueError(f"{text!r} is not legal here")
        self._make(action, None)

    def take_back(self) -> None:
        """Undoes moves back to the last position with a person to move.

        Raises:
            ValueError: there is no such position.
        """
        for ply in reversed(range(self._ply)):
            if self._sessions[int(self._states[ply].current_player)] is None:
                return self._jump(ply)
        raise ValueError("there is no move to take back")

    def forward(self) -> None:
        """Redoes undone moves up to the next position with a person to move, else all.

        Raises:
            ValueError: no move was undone.
        """
        last = len(self._moves)
        if self._ply == last:
            raise ValueError("there is no move to go forward to")
        for ply in range(self._ply + 1, last):
            if self._sessions[int(self._states[ply].current_player)] is None:
                return self._jump(ply)
        return self._jump(last)

    def set_sessions(self, sessions: PlayerSessions) -> None:
        """Continues from the current position with other sessions, even after a
        forfeit."""
        self._sessions = sessions
        self._jump(self._ply)

    def load(self, actions: Sequence[int], sessions: PlayerSessions) -> None:
        """Replaces the game by one with the given moves.

        Raises:
            ValueError: a move is illegal; the game is unchanged.
        """
        states, moves = [first_state(self.game)], []
        for number, action in enumerate(actions, start=1):
            state = states[-1]
            if action not in legal_actions(self.game, state):
                raise ValueError(f"move {number}, action {action}, is not legal")
            moves.append(Move(action, self.game.action_to_text(state, action)))
            states.append(next_state(self.game, state, action))
        self._states, self._moves, self._sessions = states, moves, sessions
        self._jump(len(moves))

    def advise(self, session: PlayerSession) -> None:
        """Asks a session for advice, unless another request is pending.

        Raises:
            ValueError: it is not a person's turn.
        """
        self._check_is_persons_turn()
        if self._thinking is None:
            self._ask(session, is_advice=True)

    def close(self) -> None:
        """Drops the pending request."""
        self._generation += 1
        self._thinking = None

    def _check_is_persons_turn(self) -> None:
        if self.result is not None:
            raise ValueError("the game is over")
        if not self.is_persons_turn:
            raise ValueError("it is not your turn")

    def _jump(self, ply: int) -> None:
        self._ply, self._forfeit = ply, None
        self._arrive(Jumped())

    def _make(self, action: int, decision: MoveDecision | None) -> None:
        state, player = self.state, self.player
        text = self.game.action_to_text(state, action)
        move = Move(action, text, decision, self._clock() - self._turn_began)
        self._moves[self._ply :] = [move]
        self._states[self._ply + 1 :] = [next_state(self.game, state, action)]
        self._ply += 1
        self._arrive(Moved(player, move))

    def _arrive(self, event: Event) -> None:
        """Passes an event that set the position to observers; asks the next session."""
        self.close()
        self._turn_began = self._clock()
        generation = self._generation
        self._tell(event)
        if generation != self._generation:
            return  # an observer changed the game
        if not self._is_started:
            return
        if self.result is not None:
            self._tell(GameOver(self.result))
            return
        session = self._sessions[self.player]
        if session is not None:
            self._ask(session, is_advice=False)
        elif self.adviser is not None:
            self._ask(self.adviser, is_advice=True)

    def _ask(self, session: PlayerSession, is_advice: bool) -> None:
        generation, player, state = self._generation, self.player, self.state
        self._thinking = Thinks(player, is_advice)
        self._tell(self._thinking)
        actions = [move.action for move in self.moves]

        def work():
            if generation != self._generation:
                return None
            return choose_legal(session, self.game, state, actions)

        def then(outcome):
            error = outcome.exception()
            if error is not None and not isinstance(error, ForfeitError):
                raise error
            if generation != self._generation:
                return
            self._thinking = None
            if error is None and is_advice:
                self._tell(Advised(outcome.result()))
            elif error is None:
                self._make(outcome.result().action, outcome.result())
            elif is_advice:
                self._tell(AdviceFailed(str(error)))
            else:
                is_resignation = isinstance(error, ResignError)
                self._forfeit = Forfeited(player, str(error), is_resignation)
                self._arrive(self._forfeit)

        self._execute(work, then)

    def _tell(self, event: Event) -> None:
        for observer in self._observers:
            observer(event)

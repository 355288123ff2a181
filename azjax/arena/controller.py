"""The one place where a game is conducted: whose turn it is, what was played, the end.

A side is a seat, whose moves the controller asks for, or None: a person, whose moves
come from an interface by `Controller.play`. An observer is called with each event, in
order, by the interface's thread.
"""

import time
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np

from azjax.arena.events import (
    AdviceFailed,
    Advised,
    Event,
    Forfeited,
    GameOver,
    Jumped,
    Move,
    Moved,
    Observer,
    Thinks,
)
from azjax.arena.executor import Executor, InlineExecutor, Work
from azjax.games import Game, State
from azjax.games.compiled import compiled
from azjax.players import ForfeitError, MoveDecision, PlayerSession, ResignError

PlayerSessions = tuple[PlayerSession | None, PlayerSession | None]


class Controller:
    """Conducts a game between two sides.

    Before `start`, another game may be loaded, but nobody is asked for a move and no
    clock runs. What a seat thinks about a position that is no longer there is dropped.

    adviser: who is asked for advice whenever it is a person's turn, if anybody.

    Args:
        game: what is played.
        seats: who plays, by player; None is a person.
        run: has a seat think, beside the interface's thread or, by default, in it.
        clock: seconds, from any beginning.
    """

    def __init__(
        self,
        game: Game,
        seats: PlayerSessions,
        run: Executor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.game = compiled(game)
        self.adviser: PlayerSession | None = None
        self._seats = seats
        self._run, self._clock = run or InlineExecutor(), clock
        self._observers: list[Observer] = []
        self._states: list[State] = [self.game.init()]
        self._moves: list[Move] = []  # beyond the position are those taken back
        self._ply = 0
        self._generation = 0  # of the position, as far as seats are concerned
        self._forfeit: Forfeited | None = None
        self._is_started = False
        self._thinking: Thinks | None = None
        self._turn_began = clock()

    @property
    def seats(self) -> PlayerSessions:
        """Who plays, by player; None is a person."""
        return self._seats

    @property
    def state(self) -> State:
        """The position."""
        return self._states[self._ply]

    @property
    def states(self) -> Sequence[State]:
        """The positions from the first one to this one."""
        return self._states[: self._ply + 1]

    @property
    def moves(self) -> Sequence[Move]:
        """The moves that led to the position."""
        return self._moves[: self._ply]

    @property
    def player(self) -> int:
        """Whose turn it is."""
        return int(self.state.current_player)

    @property
    def result(self) -> tuple[float, float] | None:
        """The results of both players, None as long as the game goes on."""
        if self._forfeit is not None:
            return (1.0, -1.0) if self._forfeit.player else (-1.0, 1.0)
        if not self.state.terminated:
            return None
        first, second = np.asarray(self.game.rewards(self.state)).tolist()
        return first, second

    @property
    def forfeit(self) -> Forfeited | None:
        """How the game ended if a player could not go on."""
        return self._forfeit

    @property
    def is_started(self) -> bool:
        """Whether `start` was called."""
        return self._is_started

    @property
    def is_persons_turn(self) -> bool:
        """Whether `play` is what the game waits for."""
        is_on = self._is_started and self.result is None
        return is_on and self._seats[self.player] is None

    @property
    def thinking(self) -> Thinks | None:
        """What a seat was asked and has not answered."""
        return self._thinking

    def legal_actions(self) -> list[int]:
        """Returns what may be played here, nothing once the game is over."""
        if self.result is not None:
            return []
        return np.flatnonzero(self.game.legal_action_mask(self.state)).tolist()

    def seconds(self, player: int) -> float:
        """Returns the time that a player has used in the moves up to the position."""
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
        """Has an observer called with all that happens from now on."""
        self._observers.append(observer)

    def start(self) -> None:
        """Begins the game: asks the seat whose turn it is, if it is a seat's."""
        self._is_started = True
        self._arrive(Jumped())

    def play(self, action: int) -> None:
        """Makes a person's move.

        Raises:
            ValueError: it is not a person's turn, or the move is not legal.
        """
        self._check_is_persons_turn()
        if action not in self.legal_actions():
            text = self.game.action_to_text(self.state, action)
            raise ValueError(f"{text!r} is not legal here")
        self._make(action, None)

    def take_back(self) -> None:
        """Goes back to where a person was to move last.

        Raises:
            ValueError: there is no such position.
        """
        for ply in reversed(range(self._ply)):
            if self._seats[int(self._states[ply].current_player)] is None:
                return self._jump(ply)
        raise ValueError("there is no move to take back")

    def forward(self) -> None:
        """Goes forward, along the moves taken back, to where a person is to move next,
        or else to the last position.

        Raises:
            ValueError: no move was taken back.
        """
        last = len(self._moves)
        if self._ply == last:
            raise ValueError("there is no move to go forward to")
        for ply in range(self._ply + 1, last):
            if self._seats[int(self._states[ply].current_player)] is None:
                return self._jump(ply)
        return self._jump(last)

    def seat(self, seats: PlayerSessions) -> None:
        """Lets others play on from here, even where a side could not go on."""
        self._seats = seats
        self._jump(self._ply)

    def load(self, actions: Sequence[int], seats: PlayerSessions) -> None:
        """Begins another game, with moves that were made before.

        Raises:
            ValueError: a move is not legal; the game that was there goes on.
        """
        states, moves = [self.game.init()], []
        for number, action in enumerate(actions, start=1):
            state = states[-1]
            legal = np.flatnonzero(self.game.legal_action_mask(state))
            if state.terminated or action not in legal:
                raise ValueError(f"move {number}, action {action}, is not legal")
            moves.append(Move(action, self.game.action_to_text(state, action)))
            states.append(self.game.step(state, jnp.int32(action)))
        self._states, self._moves, self._seats = states, moves, seats
        self._jump(len(moves))

    def advise(self, seat: PlayerSession) -> None:
        """Asks a seat what it would play here, without playing it.

        Raises:
            ValueError: it is not a person's turn, or a seat is thinking already.
        """
        self._check_is_persons_turn()
        if self._thinking is None:
            self._ask(seat, is_advice=True)

    def close(self) -> None:
        """Drops what a seat is thinking about."""
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
        self._states[self._ply + 1 :] = [self.game.step(state, jnp.int32(action))]
        self._ply += 1
        self._arrive(Moved(player, move))

    def _arrive(self, event: Event) -> None:
        """Tells of an event that led to a position, and asks whose turn it is there."""
        self.close()
        self._turn_began = self._clock()
        generation = self._generation
        self._tell(event)
        if generation != self._generation:
            return  # an observer has led the game elsewhere
        if not self._is_started:
            return
        if self.result is not None:
            self._tell(GameOver(self.result))
            return
        seat = self._seats[self.player]
        if seat is not None:
            self._ask(seat, is_advice=False)
        elif self.adviser is not None:
            self._ask(self.adviser, is_advice=True)

    def _ask(self, seat: PlayerSession, is_advice: bool) -> None:
        generation, player = self._generation, self.player
        self._thinking = Thinks(player, is_advice)
        self._tell(self._thinking)

        def then(outcome):
            error = outcome.exception()
            if error is not None and not isinstance(error, ForfeitError):
                raise error
            if generation != self._generation:
                return
            self._thinking = None
            self._answer(error or outcome.result(), player, is_advice)

        self._run(self._work(seat), then)

    def _work(self, seat: PlayerSession) -> Work:
        generation, state = self._generation, self.state
        actions = [move.action for move in self.moves]

        def work():
            is_wanted = generation == self._generation
            return seat.choose(state, actions) if is_wanted else None

        return work

    def _answer(
        self, answer: MoveDecision | ForfeitError, player: int, is_advice: bool
    ) -> None:
        """Does what a seat said."""
        if (
            isinstance(answer, MoveDecision)
            and answer.action not in self.legal_actions()
        ):
            answer = ForfeitError(self._illegal(answer.action))
        if isinstance(answer, MoveDecision):
            if is_advice:
                self._tell(Advised(answer))
            else:
                self._make(answer.action, answer)
        elif is_advice:
            self._tell(AdviceFailed(str(answer)))
        else:
            is_resignation = isinstance(answer, ResignError)
            self._forfeit = Forfeited(player, str(answer), is_resignation)
            self._arrive(self._forfeit)

    def _illegal(self, action: int) -> str:
        if not 0 <= action < self.game.num_actions:
            return f"illegal move: there is no action {action}"
        return f"illegal move {self.game.action_to_text(self.state, action)}"

    def _tell(self, event: Event) -> None:
        for observer in self._observers:
            observer(event)

"""A game as GTP sees it: colours may move twice in a row, and all may be undone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from azjax import games
from azjax.games import Game, State
from azjax.games.host import first_state, next_state
from azjax.play.gtp.protocol import CommandError
from azjax.players.gtp_notation import PASS, read_vertex

ILLEGAL_MOVE = "illegal move"


class Position(NamedTuple):
    """Where a game stands.

    moves: the actions that led here from the first position.
    state: in NumPy.
    before: the position before the last move, None for the first one.
    """

    moves: tuple[int, ...]
    state: State
    before: "Position | None" = None

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self.state.current_player)


class Record:
    """The positions of one game, the first one first.

    game: its rules.
    """

    def __init__(self, game: Game):
        """Begins a game without a limit of moves, if its states allow: GTP has none."""
        self.game = game.without_move_limit()
        self._positions = [Position((), first_state(self.game))]

    @property
    def position(self) -> Position:
        """Where the game stands."""
        return self._positions[-1]

    def change_rules(self, game: Game) -> None:
        """Goes on from here by other rules, whose positions are the same."""
        self.game = game.without_move_limit()

    def add(self, position: Position) -> None:
        """Makes this the position in which the game stands."""
        self._positions.append(position)

    def undo(self) -> None:
        """Takes back what was added last.

        Raises:
            CommandError: nothing was.
        """
        if len(self._positions) == 1:
            raise CommandError("cannot undo")
        self._positions.pop()

    def turn(self, player: int) -> Position:
        """Returns the position in which this player is to move now.

        Raises:
            CommandError: the game is over, or the other player, whose turn it is, may
                not pass.
        """
        if self.position.state.terminated:
            raise CommandError("the game is over")
        return self._turn(self.position, player)

    def play(self, player: int, vertex: str) -> None:
        """Adds a move of this player.

        Raises:
            CommandError: it is illegal.
        """
        self.add(self._after(self.position, player, vertex))

    def set_stones(self, vertices: Sequence[str]) -> None:
        """Adds stones of player 0, all at once, before anything else.

        Raises:
            CommandError: there is something else, or they cannot lie there.
        """
        if len(self._positions) > 1:
            raise CommandError("board not empty")
        position = self.position
        for vertex in vertices:
            position = self._after(position, 0, vertex)
        self.add(position)

    def next(self, position: Position, action: int) -> Position:
        """Returns the position after a legal action."""
        state = next_state(self.game, position.state, action)
        return Position((*position.moves, action), state, position)

    def score(self) -> float:
        """Returns by how much player 0 wins: in points, with all stones alive, if the
        game is decided by points; otherwise 1, 0 or -1.

        Raises:
            CommandError: the game has no points, and is not over.
        """
        game, state = self.game, self.position.state
        points = game.score(state)
        if points is not None:
            return float(points[0] - points[1])
        if not state.terminated:
            raise CommandError("cannot score")
        return float(game.rewards(state)[0])

    def stones(self, player: int) -> list[str]:
        """Returns the points where this player has stones."""
        columns, rows = self.game.column_labels, self.game.row_labels
        cells = np.argwhere(np.asarray(self.game.board(self.position.state)) == player)
        return [f"{columns[column]}{rows[row]}".upper() for row, column in cells]

    def _turn(self, position: Position, player: int) -> Position:
        if position.state.terminated:
            raise CommandError(ILLEGAL_MOVE)
        if position.player == player:
            return position
        passed = self._moved(position, PASS)
        if passed.state.terminated and position.before is not None:
            # The other one has just passed: without both passes the board is the same.
            return position.before
        return passed

    def _after(self, position: Position, player: int, vertex: str) -> Position:
        if position.player != player and vertex.lower() == PASS:
            return position
        return self._moved(self._turn(position, player), vertex)

    def _moved(self, position: Position, vertex: str) -> Position:
        try:
            action = read_vertex(self.game, position.state, vertex)
        except ValueError:
            raise CommandError(ILLEGAL_MOVE) from None
        return self.next(position, action)


def changed(game: Game, option: str, value: float) -> Game:
    """Returns a game with another value of an option, and those of its others that are
    not the usual ones.

    Raises:
        ValueError: the value is not allowed.
    """
    usual = games.make(game.name, **{option: game.options[option]}).options
    chosen = {key: old for key, old in game.options.items() if old != usual[key]}
    return games.make(game.name, **{**chosen, option: value})

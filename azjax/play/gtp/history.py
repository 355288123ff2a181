"""The game of a GTP engine, in which a color may move twice in a row."""

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
    """A position with its history.

    moves: the actions that lead to it.
    state: the position as NumPy arrays.
    before: the previous position, None for the first.
    """

    moves: tuple[int, ...]
    state: State
    before: "Position | None" = None

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self.state.current_player)


class History:
    """The positions of one game.

    game: its rules.
    """

    def __init__(self, game: Game):
        """Starts a game, without a move limit where possible, as GTP has none."""
        self.game = game.without_move_limit()
        self._positions = [Position((), first_state(self.game))]

    @property
    def position(self) -> Position:
        """The current position."""
        return self._positions[-1]

    def change_rules(self, game: Game) -> None:
        """Replaces the rules by others with the same states."""
        self.game = game.without_move_limit()

    def add(self, position: Position) -> None:
        """Appends a position."""
        self._positions.append(position)

    def undo(self) -> None:
        """Removes the last position.

        Raises:
            CommandError: there is no move.
        """
        if len(self._positions) == 1:
            raise CommandError("cannot undo")
        self._positions.pop()

    def turn(self, player: int) -> Position:
        """Returns the position with this player to move, after a pass if necessary.

        Raises:
            CommandError: the game is over, or the pass is illegal.
        """
        if self.position.state.terminated:
            raise CommandError("the game is over")
        return self._turn(self.position, player)

    def play(self, player: int, vertex: str) -> None:
        """Plays a move.

        Raises:
            CommandError: the move is illegal.
        """
        self.add(self._after(self.position, player, vertex))

    def set_stones(self, vertices: Sequence[str]) -> None:
        """Places handicap stones of player 0 as one step.

        Raises:
            CommandError: the board is not empty, or a point is illegal.
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
        """Returns the margin of player 0: in points, with all stones alive, if the game
        has points; else 1, 0 or -1.

        Raises:
            CommandError: the game has no points and is not over.
        """
        game, state = self.game, self.position.state
        points = game.score(state)
        if points is not None:
            return float(points[0] - points[1])
        if not state.terminated:
            raise CommandError("cannot score")
        return float(game.rewards(state)[0])

    def stones(self, player: int) -> list[str]:
        """Returns the vertices of a player's stones."""
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
            # The opponent has just passed: this removes both passes instead.
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


def with_option(game: Game, option: str, value: float) -> Game:
    """Returns a game with another value of an option; options with default values get
    the defaults for that value.

    Raises:
        ValueError: the value is not allowed.
    """
    defaults = games.make(game.name, **{option: game.options[option]}).options
    chosen = {key: old for key, old in game.options.items() if old != defaults[key]}
    return games.make(game.name, **{**chosen, option: value})

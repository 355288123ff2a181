"""The game of a GTP engine, in which a color may move twice in a row."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from azjax import games
from azjax.games import Game, GameRecord, State, host
from azjax.games.host import first_state, legal_actions, next_state, rewards
from azjax.play.gtp.protocol import SYNTAX_ERROR, CommandError
from azjax.players.gtp_notation import PASS, read_vertex


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
    """The positions of one game.

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
            CommandError: the game is over by more than passes, or the pass is illegal.
        """
        return self._turn(self.position, player)

    def play(self, player: int, vertex: str) -> None:
        """Plays a move.

        Raises:
            CommandError: the move is illegal.
        """
        self._positions.append(self._after(self.position, player, vertex))

    def set_stones(self, vertices: Sequence[str]) -> None:
        """Places handicap stones of player 0 in the first position, which is not
        undone.

        Raises:
            CommandError: the board is not empty, or a point is illegal.
        """
        if self.position.moves:
            raise CommandError("board not empty")
        position = self.position
        for vertex in vertices:
            position = self._after(position, 0, vertex)
        self._positions = [position]

    def score(self) -> float:
        """Returns the margin of player 0: in points, with all stones alive, if the game
        has points; else 1, 0 or -1.

        Raises:
            CommandError: the game has no points and is not over.
        """
        game, state = self.game, self.position.state
        points = host.score(game, state)
        if points is not None:
            return float(points[0] - points[1])
        if not state.terminated:
            raise CommandError("cannot score")
        return rewards(game, state)[0]

    def actions(self, position: Position, vertices: Sequence[str]) -> set[int]:
        """Returns the actions of vertices, legal or not.

        Raises:
            CommandError: there is no such vertex.
        """
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

    def _turn(self, position: Position, player: int) -> Position:
        position = self._resumed(position)
        if position.state.terminated:
            raise CommandError("the game is over")
        if position.player == player:
            return position
        return self._resumed(self._moved(position, PASS))

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
        return self._moved(self._turn(position, player), vertex)

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
    """Returns a game on a square board of another size.

    Raises:
        ValueError: the game has no such size.
    """
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

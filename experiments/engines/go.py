"""Replays Go move by move in OpenSpiel and in a slow, simple engine.

The simple engine follows the rules alone: dictionaries, sets and recursion, no arrays.
It supports every option and any size. OpenSpiel is independent of azjax, but does not
implement superko: it ends a game as a draw when a position repeats, where azjax
continues unless superko forbids the move. Such games are compared up to the repetition
and counted under `repetitions`; the comparison checks that the position does repeat.
"""

import collections

import numpy as np
import pyspiel
from engines.replay import FACTS, board_texts

from azjax.games.go import Go


def compare(game: Go, record: dict) -> collections.Counter:
    """Replays games without superko in OpenSpiel and counts the disagreements, by fact.

    Args:
        game: Go of any size, komi and limit of moves.
        record: random games, as `make_recorder(game)` of `verify_games.py` returns.
    """
    size, max_moves = game.size, game.max_moves
    if game.superko:
        raise ValueError("OpenSpiel has no superko: use compare_with_plain_engine")
    rules = pyspiel.load_game(
        f"go(board_size={size},komi={game.komi},max_game_length={max_moves})"
    )
    # OpenSpiel numbers the points from the bottom row up.
    turned = np.append(np.arange(size**2).reshape(size, size)[::-1], size**2)
    board = board_texts(np.asarray(record["board"]), "XO+")
    legal = np.asarray(record["legal"])[..., turned].tolist()
    action = turned[np.asarray(record["action"])].tolist()
    player, over, rewards = (
        np.asarray(record[name]).tolist()
        for name in ("player", "terminated", "rewards")
    )
    counts: collections.Counter[str] = collections.Counter(dict.fromkeys(FACTS, 0))
    for row in range(len(action)):
        state = rules.new_initial_state()
        seen = set()
        for move in range(max_moves + 1):
            ends, here = state.is_terminal(), board[row][move]
            is_stone = move > 0 and action[row][move - 1] != size**2
            counts["positions"] += 1
            counts["board"] += _stones(state) != here
            if ends and is_stone and here in seen:
                counts["repetitions"] += 1
                break
            seen.add(here)
            counts["terminated"] += ends != over[row][move]
            if ends or over[row][move]:
                # Before the end OpenSpiel's returns are those of a finished game.
                counts["rewards"] += state.returns() != rewards[row][move]
                break
            counts["rewards"] += any(rewards[row][move])
            counts["player"] += state.current_player() != player[row][move]
            counts["legal"] += state.legal_actions_mask() != legal[row][move]
            state.apply_action(action[row][move])
    return counts


def _stones(state: pyspiel.State) -> str:
    """Returns the points row by row from the top: `X` black, `O` white, `+` empty."""
    rows = str(state).splitlines()[2:-1]
    return "".join(row.split()[1] for row in rows)


class PlainGo:
    """One game of Go in the simple engine.

    stones: the color, 0 or 1, of each occupied point; points are (row, column).
    """

    def __init__(self, size: int, komi: float, superko: bool, max_moves: int):
        self.size, self.komi = size, komi
        self.superko, self.max_moves = superko, max_moves
        self.stones: dict[tuple[int, int], int] = {}
        self.history = [self.stones]
        self.moves: list[tuple[int, int] | None] = []
        self.banned: tuple[int, int] | None = None

    @property
    def player(self) -> int:
        """Returns the player to move."""
        return len(self.moves) % 2

    def is_over(self) -> bool:
        """Returns whether the game is over."""
        return len(self.moves) >= self.max_moves or (
            len(self.moves) >= 2 and self.moves[-2:] == [None, None]
        )

    def around(self, point: tuple[int, int]) -> list[tuple[int, int]]:
        """Returns the neighbors of a point."""
        row, column = point
        near = (
            (row - 1, column),
            (row + 1, column),
            (row, column - 1),
            (row, column + 1),
        )
        return [(r, c) for r, c in near if 0 <= r < self.size and 0 <= c < self.size]

    def region(self, stones: dict, point: tuple[int, int]) -> tuple[set, set]:
        """Returns the connected points of equal content, and all points adjacent to
        them.
        """
        inside, beside, waiting = {point}, set(), [point]
        while waiting:
            for near in self.around(waiting.pop()):
                if stones.get(near) != stones.get(point):
                    beside.add(near)
                elif near not in inside:
                    inside.add(near)
                    waiting.append(near)
        return inside, beside

    def after(self, point: tuple[int, int]) -> dict | None:
        """Returns the stones after a move, or None if it is illegal."""
        if point in self.stones or point == self.banned:
            return None
        stones = {**self.stones, point: self.player}
        for near in self.around(point):
            if stones.get(near) == 1 - self.player:
                chain, beside = self.region(stones, near)
                if beside <= stones.keys():
                    stones = {p: c for p, c in stones.items() if p not in chain}
        _, beside = self.region(stones, point)
        if beside <= stones.keys():
            return None
        if self.superko and stones in self.history:
            return None
        return stones

    def play(self, point: tuple[int, int] | None) -> None:
        """Makes a move; None passes."""
        before, after = self.stones, self.stones
        self.banned = None
        if point is not None:
            after = self.after(point)
            if after is None:
                raise ValueError(f"{point} is illegal")
            taken = before.keys() - after.keys()
            chain, beside = self.region(after, point)
            liberties = beside - after.keys()
            if len(taken) == 1 and len(chain) == 1 and len(liberties) == 1:
                (self.banned,) = taken
        self.stones = after
        self.history.append(after)
        self.moves.append(point)

    def score(self) -> list[float]:
        """Returns the points of both players; those of white include the komi."""
        points = [0.0, self.komi]
        for point in np.ndindex(self.size, self.size):
            _, beside = self.region(self.stones, point)
            colors = {self.stones[near] for near in beside if near in self.stones}
            if point in self.stones:
                colors = {self.stones[point]}
            if len(colors) == 1:
                points[colors.pop()] += 1
        return points

    def returns(self) -> list[float]:
        """Returns the result for each player, zeros until the game is over."""
        black, white = self.score() if self.is_over() else (0.0, 0.0)
        return [float(np.sign(black - white)), float(np.sign(white - black))]


def compare_with_plain_engine(
    game: Go, record: dict, *, legal_every: int = 1
) -> collections.Counter:
    """Replays games in the simple engine and counts the disagreements, by fact.

    Args:
        game: Go with any options.
        record: random games, as `make_recorder(game)` of `verify_games.py` returns.
        legal_every: interval, in positions, at which the legal actions are compared;
            they take longest.
    """
    size, max_moves = game.size, game.max_moves
    points = [*np.ndindex(size, size), None]
    record = {name: np.asarray(values) for name, values in record.items()}
    counts: collections.Counter[str] = collections.Counter(dict.fromkeys(FACTS, 0))
    for row, actions in enumerate(record["action"].tolist()):
        plain = PlainGo(size, game.komi, game.superko, max_moves)
        for move in range(max_moves + 1):
            board = np.full((size, size), -1)
            for point, color in plain.stones.items():
                board[point] = color
            over = bool(record["terminated"][row, move])
            counts["positions"] += 1
            counts["terminated"] += plain.is_over() != over
            counts["rewards"] += (
                plain.returns() != record["rewards"][row, move].tolist()
            )
            counts["board"] += not np.array_equal(board, record["board"][row, move])
            if over or plain.is_over():
                break
            counts["player"] += plain.player != int(record["player"][row, move])
            if (row + move) % legal_every == 0:
                legal = [p is None or plain.after(p) is not None for p in points]
                counts["legal"] += legal != record["legal"][row, move].tolist()
                counts["positions_with_legal_actions"] += 1
            point = points[actions[move]]
            if point is not None and plain.after(point) is None:
                counts["legal"] += 1
                break
            plain.play(point)
    return counts

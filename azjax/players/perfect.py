"""A perfect player of Connect Four: the solver bitbully."""

import importlib
import random
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from azjax.games import ConnectFour, Game, State
from azjax.players.session import MoveDecision


class PerfectPlayer:
    """Plays Connect Four by exact scores: fastest win, slowest loss, ties at random.

    bitbully searches; the first twelve moves are in its opening book.

    Raises:
        ValueError: bitbully is not installed.
    """

    def __init__(self) -> None:
        try:
            self._bitbully = importlib.import_module("bitbully")
        except ModuleNotFoundError:
            raise ValueError(
                "the player 'perfect' needs the solver bitbully: "
                "pip install 'azjax[solver]'"
            ) from None
        self._solver = self._bitbully.BitBully()

    def start_session(self, game: Game, seed: int) -> "_PerfectSession":
        """Starts a session for a game of Connect Four."""
        check_game(game)
        return _PerfectSession(self._bitbully, self._solver, game, seed)


class _PerfectSession:
    def __init__(self, bitbully: ModuleType, solver, game: Game, seed: int):
        self._bitbully = bitbully
        self._solver = solver
        self._num_actions = game.num_actions
        self._random = random.Random(seed)

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move; the value is the exact result."""
        del state
        board = self._bitbully.Board([int(move) for move in moves])
        scores = self._solver.score_all_moves(board)
        top = max(scores.values())
        best = sorted(move for move, score in scores.items() if score == top)
        policy = np.zeros(self._num_actions, np.float32)
        policy[best] = 1 / len(best)
        return MoveDecision(self._random.choice(best), policy, float(np.sign(top)))

    def close(self) -> None:
        """Does nothing."""


def perfect_player(game: Game) -> PerfectPlayer | None:
    """Returns the perfect player of a game; None if there is none, or if its solver is
    not installed."""
    if not isinstance(game, ConnectFour):
        return None
    try:
        return PerfectPlayer()
    except ValueError:
        return None


def check_game(game: Game) -> None:
    """Checks that the game is Connect Four."""
    if not isinstance(game, ConnectFour):
        raise ValueError(
            f"the player 'perfect' plays connect_four only, not {game}; minimax plays "
            "small games perfectly, such as minimax:9 in tic_tac_toe"
        )

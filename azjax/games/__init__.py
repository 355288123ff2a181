"""Board games as pure JAX state transitions.

Example:
    >>> import jax
    >>> from azjax import games
    >>> game = games.make("tic_tac_toe")
    >>> state, step = game.init(), jax.jit(game.step)
    >>> for text in ("b2", "a1", "a3", "b1", "c1"):
    ...     state = step(state, game.text_to_action(state, text))
    >>> print(game.to_text(state))
      a  b  c
    3[X] .  .
    2 . [X] .
    1 O  O [X]
    >>> game.rewards(state).tolist()
    [1.0, -1.0]
"""

from azjax.games.breakthrough import Breakthrough
from azjax.games.chance import after_chance
from azjax.games.chess import Chess
from azjax.games.connect_four import ConnectFour
from azjax.games.contract import ContractError, check
from azjax.games.core import Game, State
from azjax.games.env import EnvState, TimeStep, VectorEnv
from azjax.games.game_record import GameRecord
from azjax.games.go import Go
from azjax.games.gomoku import Gomoku
from azjax.games.hex import Hex
from azjax.games.kalah import Kalah
from azjax.games.othello import Othello
from azjax.games.random_moves import random_action
from azjax.games.reading import read_games
from azjax.games.registry import (
    UnknownGameError,
    available,
    game_options,
    game_title,
    make,
    register,
)
from azjax.games.symmetry import Symmetry
from azjax.games.tic_tac_toe import TicTacToe
from azjax.games.ur import RoyalGameOfUr

__all__ = [
    "Breakthrough",
    "Chess",
    "ConnectFour",
    "ContractError",
    "EnvState",
    "Game",
    "GameRecord",
    "Go",
    "Gomoku",
    "Hex",
    "Kalah",
    "Othello",
    "RoyalGameOfUr",
    "State",
    "Symmetry",
    "TicTacToe",
    "TimeStep",
    "UnknownGameError",
    "VectorEnv",
    "after_chance",
    "available",
    "check",
    "game_options",
    "game_title",
    "make",
    "random_action",
    "read_games",
    "register",
]

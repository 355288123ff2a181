"""Board games as pure JAX state transitions."""

from azjax.games.connect_four import ConnectFour
from azjax.games.core import (
    Game,
    State,
    Symmetry,
    available,
    game_options,
    make,
    register,
)
from azjax.games.tic_tac_toe import TicTacToe

__all__ = [
    "ConnectFour",
    "Game",
    "State",
    "Symmetry",
    "TicTacToe",
    "available",
    "game_options",
    "make",
    "register",
]

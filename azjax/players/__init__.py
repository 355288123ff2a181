"""Everything that can choose a move."""

from azjax.players.alphazero import AlphaZeroPlayer
from azjax.players.analysis import Analysis, Branches
from azjax.players.core import Choice, Player, choose, start, think
from azjax.players.directory import (
    MissingPartsError,
    TrainedPlayer,
    first_network,
    load_player,
    save_player,
    shipped_players,
)
from azjax.players.greedy import GreedyPlayer
from azjax.players.gtp import GtpPlayer
from azjax.players.human import HumanPlayer
from azjax.players.mcts import MCTSPlayer
from azjax.players.minimax import MinimaxPlayer
from azjax.players.network import NetworkPlayer
from azjax.players.perfect import PerfectPlayer
from azjax.players.q_directory import TrainedQ, load_q_player, save_q_player
from azjax.players.q_learning import QPlayer
from azjax.players.random import RandomPlayer
from azjax.players.seat import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    ResignError,
    Seat,
    Thought,
    compile_choice,
    sit,
)
from azjax.players.specification import (
    DEFAULT_SIMULATIONS,
    MAX_SIMULATIONS,
    load,
    load_compiled,
    load_run,
)

__all__ = [
    "DEFAULT_SIMULATIONS",
    "MAX_SIMULATIONS",
    "AlphaZeroPlayer",
    "Analysis",
    "AnyPlayer",
    "Branches",
    "Choice",
    "ExternalPlayer",
    "ForfeitError",
    "GreedyPlayer",
    "GtpPlayer",
    "HumanPlayer",
    "MCTSPlayer",
    "MinimaxPlayer",
    "MissingPartsError",
    "NetworkPlayer",
    "PerfectPlayer",
    "Player",
    "QPlayer",
    "RandomPlayer",
    "ResignError",
    "Seat",
    "Thought",
    "TrainedPlayer",
    "TrainedQ",
    "choose",
    "compile_choice",
    "first_network",
    "load",
    "load_compiled",
    "load_player",
    "load_q_player",
    "load_run",
    "save_player",
    "save_q_player",
    "shipped_players",
    "sit",
    "start",
    "think",
]

"""Players: everything that can choose a move."""

from azjax.players.alphazero import AlphaZeroPlayer, NetworkPlayer
from azjax.players.analysis import Analysis, Branches
from azjax.players.core import (
    Choice,
    Player,
    RandomPlayer,
    choose,
    choose_with_carry,
    init_carry,
)
from azjax.players.gtp import GtpPlayer
from azjax.players.human import HumanPlayer
from azjax.players.lookahead import GreedyPlayer, MinimaxPlayer
from azjax.players.mcts import MCTSPlayer
from azjax.players.perfect import PerfectPlayer
from azjax.players.q_learning import QPlayer
from azjax.players.registry import (
    DEFAULT_SIMULATIONS,
    MAX_SIMULATIONS,
    load,
    load_compiled,
    load_run,
)
from azjax.players.serialization import (
    MissingPartsError,
    TrainedPlayer,
    TrainedQ,
    first_network,
    load_player,
    load_q_player,
    save_player,
    save_q_player,
    shipped_players,
)
from azjax.players.session import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    MoveDecision,
    PlayerSession,
    ResignError,
    compile_choice,
    start_session,
)
from azjax.players.uci import UciPlayer

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
    "MoveDecision",
    "NetworkPlayer",
    "PerfectPlayer",
    "Player",
    "PlayerSession",
    "QPlayer",
    "RandomPlayer",
    "ResignError",
    "TrainedPlayer",
    "TrainedQ",
    "UciPlayer",
    "choose",
    "choose_with_carry",
    "compile_choice",
    "first_network",
    "init_carry",
    "load",
    "load_compiled",
    "load_player",
    "load_q_player",
    "load_run",
    "save_player",
    "save_q_player",
    "shipped_players",
    "start_session",
]

"""Players: everything that can choose a move."""

from azjax.players.alphazero import AlphaZeroPlayer, NetworkPlayer
from azjax.players.core import (
    Analysis,
    AnyPlayer,
    Branches,
    Choice,
    ExternalPlayer,
    ForfeitError,
    MoveDecision,
    Player,
    PlayerSession,
    ResignError,
    choose,
    choose_with_carry,
    compile_choice,
    init_carry,
    start_session,
)
from azjax.players.gtp import GtpPlayer
from azjax.players.lookahead import GreedyPlayer, MinimaxPlayer
from azjax.players.mcts import MCTSPlayer
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
from azjax.players.simple import HumanPlayer, PerfectPlayer, QPlayer, RandomPlayer
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

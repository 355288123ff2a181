"""Default opponents: a shipped player, or a search of at most about a second a move on
two cores."""

import functools

from azjax.games import Game
from azjax.games.host import first_turns, legal_actions
from azjax.players.serialization import PLAYER_FILE, PRETRAINED, shipped_players

# Work in one second, measured on two cores of an AMD EPYC (Zen 4).
POSITIONS = 8_000_000  # of minimax without pruning
PLAYOUT_ACTIONS = 13_000_000  # examined in random playouts, legal or not

MIN_BRANCHING = 10  # assumed number of moves, where the first position has fewer
SIMULATIONS = (1600, 800, 400, 200, 100, 50, 25)


def default_opponent(game: Game) -> str:
    """Returns the text of the default opponent for a game."""
    if is_shipped(game):
        return f"alphazero:{PRETRAINED}"
    return default_minimax(game) or default_mcts(game)


def is_shipped(game: Game) -> bool:
    """Returns whether a trained player for this game and its options ships."""
    return repr(game) in shipped_games()


def shipped_games() -> list[str]:
    """Returns the games for which a trained player ships, as for `games.make`."""
    paths = shipped_players().glob(f"*/{PLAYER_FILE}")
    return sorted(path.parent.name.replace("-", ":", 1) for path in paths)


def default_minimax(game: Game) -> str | None:
    """Returns a minimax player of the affordable depth, None if the game has no
    evaluation function."""
    if type(game).evaluate is Game.evaluate:
        return None
    breadth, depth = max(_num_first_moves(game), MIN_BRANCHING), 1
    breadth *= max(game.num_outcomes, 1)
    while breadth**depth * game.num_actions <= POSITIONS:
        depth += 1
    return f"minimax:{min(depth, game.max_moves)}"


def default_mcts(game: Game) -> str:
    """Returns an MCTS player with the affordable number of random playouts."""
    most = PLAYOUT_ACTIONS // (game.max_moves * game.num_actions)
    number = next((n for n in SIMULATIONS if n <= most), SIMULATIONS[-1])
    return f"mcts:{number}"


@functools.cache
def _num_first_moves(game: Game) -> int:
    return max(len(legal_actions(game, state)) for state in first_turns(game))

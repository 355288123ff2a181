"""Who plays a game against people, if they ask for nobody: the player that ships, or a
search that takes about a second for a move, at most, on two cores."""

import contextlib
import functools
import json

from azjax.games import Game
from azjax.games.host import first_state, legal_actions
from azjax.players.serialization import CONFIG_FILE, PRETRAINED, pretrained_directory

# What can be done in a second, measured on two cores of an AMD EPYC (Zen 4).
POSITIONS = 8_000_000  # that alpha-beta would look at if it left nothing out
PLAYOUT_ACTIONS = 13_000_000  # looked at in random playouts, legal or not

FEWEST_MOVES = 10  # to choose from, as most openings have fewer than what follows
SIMULATIONS = (1600, 800, 400, 200, 100, 50, 25)


def default_opponent(game: Game) -> str:
    """Returns who plays a game if nobody is asked for."""
    if is_shipped(game):
        return f"alphazero:{PRETRAINED}"
    return lookahead(game) or playouts(game)


def is_shipped(game: Game) -> bool:
    """Returns whether a trained player of exactly this game ships with azjax."""
    with contextlib.suppress(ValueError):
        directory = pretrained_directory(game.name)
        config = json.loads((directory / CONFIG_FILE).read_text())
        return config["options"] == game.options
    return False


def lookahead(game: Game) -> str | None:
    """Returns the player that looks as many moves ahead as there is time for, None
    where a game knows no guess at a position."""
    if type(game).evaluate is Game.evaluate:
        return None
    breadth, depth = max(_num_first_moves(game), FEWEST_MOVES), 1
    while breadth**depth * game.num_actions <= POSITIONS:
        depth += 1
    return f"minimax:{min(depth, game.max_moves)}"


def playouts(game: Game) -> str:
    """Returns the player that makes as many random playouts as there is time for."""
    most = PLAYOUT_ACTIONS // (game.max_moves * game.num_actions)
    number = next((n for n in SIMULATIONS if n <= most), SIMULATIONS[-1])
    return f"mcts:{number}"


@functools.cache
def _num_first_moves(game: Game) -> int:
    return len(legal_actions(game, first_state(game)))

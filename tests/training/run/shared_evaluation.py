"""Evaluates players on all devices, alone or as one of two processes.

python shared_evaluation.py [PORT PROCESS_ID]     prints JSON
"""

import functools
import json
import sys

import jax

from azjax import arena, games
from azjax.arena import matches, solved
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import RandomPlayer, TrainedPlayer, first_network
from azjax.players.batches import Division
from azjax.search import GumbelConfig
from azjax.training import EvaluationConfig
from azjax.training.evaluation import Evaluator
from azjax.training.loop import named_players
from azjax.training.run.processes import join_processes

GAME = games.make("tic_tac_toe")
NETWORK = NetworkConfig(DenseTrunkConfig(width=16, num_blocks=1))
CONFIG = EvaluationConfig(num_positions=100, num_simulations=4, num_games=140)


def main() -> dict:
    """Returns an evaluation, the games of two matches, and the computed batch sizes."""
    network, variables = first_network(0, GAME, NETWORK)
    search = GumbelConfig(tree_reuse_nodes=4)
    trained = TrainedPlayer(GAME, network, variables, NETWORK, search, seed=0)
    players = named_players(trained, CONFIG.num_simulations)
    division = Division(devices=jax.devices())
    sizes = note_sizes()
    row = Evaluator(GAME, CONFIG, CONFIG.opponents, division=division).evaluate(players)
    # Games of different lengths: the processes finish them after different numbers of
    # moves.
    other = games.make("connect_four")
    matches_played = [
        arena.play_openings(
            *(game, *pair, arena.suite(game, jax.random.key(2), 66), jax.random.key(3)),
            division=division,
        )
        for game, pair in (
            (GAME, (players["search"], players["network"])),
            (other, (RandomPlayer(other), RandomPlayer(other))),
        )
    ]
    return {
        "row": row,
        "matches": [
            [match.moves.tolist(), match.results.tolist(), match.faults]
            for match in matches_played
        ],
        "sizes": sizes,
    }


def note_sizes() -> list[list[int]]:
    """Returns a list that receives batch sizes and device counts of this process."""
    sizes = []

    def recording(function):
        @functools.wraps(function)
        def call(*args):
            result = function(*args)
            action = result.action if hasattr(result, "action") else result[0].action
            sizes.append([action.size, len(action.devices())])
            return result

        return call

    solved.choose, matches.choose_with_carry = (
        recording(solved.choose),
        recording(matches.choose_with_carry),
    )
    return sizes


if __name__ == "__main__":
    if sys.argv[1:]:
        port, number = sys.argv[1:]
        join_processes(f"127.0.0.1:{port}", 2, int(number))
    print(json.dumps(main()))

"""How strong the run's network is, measured while it learns."""

from typing import Any

import jax

from azjax.arena import grade, play_match, shipped
from azjax.games import Game
from azjax.players import (
    AlphaZeroPlayer,
    NetworkPlayer,
    RandomPlayer,
    TrainedPlayer,
)
from azjax.training.config import TrainConfig

RANDOM_OPENING_MOVES = 2


class Evaluator:
    """Grades networks of one run, always on the same positions and openings."""

    def __init__(self, game: Game, config: TrainConfig):
        self._config = config.evaluation
        positions = shipped(game)
        self._positions = positions and positions.subset(self._config.positions)
        self._random = RandomPlayer(game)

    def evaluate(self, trained: TrainedPlayer) -> dict[str, Any]:
        """Returns rates of mistakes, if the game has solved positions, and the score
        of the network alone against the random player, each with its 95% interval."""
        rng_key = jax.random.key(0)
        network = NetworkPlayer(trained.game, trained.network, trained.variables)
        row = {}
        if self._positions is not None:
            search = AlphaZeroPlayer(
                game=trained.game,
                search=trained.search,
                simulations=self._config.simulations,
                network=trained.network,
                variables=trained.variables,
            )
            for name, player in (("network", network), ("search", search)):
                graded = grade(player, self._positions, rng_key)
                row |= _with_interval(
                    f"{name}_mistakes", graded.mean, graded.mean_interval
                )
        result = play_match(
            trained.game,
            network,
            self._random,
            rng_key,
            self._config.games,
            opening_moves=RANDOM_OPENING_MOVES,
        )
        return row | _with_interval(
            "random_score", result.total.score, result.total.interval
        )


def _with_interval(
    name: str, value: float, interval: tuple[float, float]
) -> dict[str, float]:
    low, high = interval
    return {name: value, f"{name}_low": low, f"{name}_high": high}

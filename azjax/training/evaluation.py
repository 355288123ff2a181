"""How strong the run's network is, measured while it learns."""

from typing import Any

import jax

from azjax.arena import check_starts, grade, play_openings, shipped, suite
from azjax.games import Game
from azjax.players import (
    AlphaZeroPlayer,
    NetworkPlayer,
    TrainedPlayer,
    load,
)
from azjax.training.config import TrainConfig
from azjax.training.metrics import SCORES

OPENING_MOVES = 2
_OPENINGS_SEED, _PLAYERS_SEED = 0, 1


class Evaluator:
    """Grades networks of one run, always on the same positions and openings.

    Raises:
        ValueError: an opponent is unknown, cannot play the game or does not start, or
            the game has too few openings.
    """

    def __init__(self, game: Game, config: TrainConfig):
        self._config = config.evaluation
        positions = shipped(game)
        self._positions = positions and positions.subset(self._config.num_positions)
        self._opponents = {name: load(name, game) for name in self._config.opponents}
        for name, opponent in self._opponents.items():
            check_starts(name, opponent, game)
        self._openings = suite(
            game,
            jax.random.key(_OPENINGS_SEED),
            self._config.num_games // 2,
            OPENING_MOVES,
        )

    def evaluate(self, trained: TrainedPlayer) -> dict[str, Any]:
        """Returns rates of mistakes, if the game has solved positions, and the scores
        of the network alone against the opponents, each with its 95% interval."""
        grade_key, match_key = jax.random.split(jax.random.key(_PLAYERS_SEED))
        network = NetworkPlayer(trained.game, trained.network, trained.variables)
        row: dict[str, Any] = {}
        if self._positions is not None:
            search = AlphaZeroPlayer(
                game=trained.game,
                search=trained.search,
                simulations=self._config.num_simulations,
                network=trained.network,
                variables=trained.variables,
            )
            players = {"network": network, "search": search}
            keys = jax.random.split(grade_key, len(players))
            for (name, player), key in zip(players.items(), keys, strict=True):
                graded = grade(player, self._positions, key)
                row |= _with_interval(
                    f"{name}_mistakes", graded.mean, graded.mean_interval
                )
        row[SCORES] = {}
        keys = jax.random.split(match_key, len(self._opponents))
        for (name, opponent), key in zip(self._opponents.items(), keys, strict=True):
            match = play_openings(trained.game, network, opponent, self._openings, key)
            row[SCORES][name] = _with_interval(
                "score", match.total.score, match.interval
            )
        return row


def _with_interval(
    name: str, value: float, interval: tuple[float, float]
) -> dict[str, float]:
    low, high = interval
    return {name: value, f"{name}_low": low, f"{name}_high": high}

"""Evaluates the players of a run while it learns."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from azjax.arena import (
    Poll,
    check_starts,
    grade,
    no_poll,
    play_openings,
    shipped,
    suite,
)
from azjax.games import Game
from azjax.networks import CustomModules
from azjax.players import Player, load
from azjax.players.batches import LOCAL, Division
from azjax.training.config import BaseEvaluationConfig
from azjax.training.run.metrics import LOST, MISTAKES, SCORES

OPENING_MOVES = 2
_OPENINGS_SEED, _PLAYERS_SEED = 0, 1


class Evaluator:
    """Evaluates players of one run on fixed positions and openings.

    Args:
        game: the game.
        config: number of positions and games.
        opponents: player specs, as `azjax.players.load` takes them.
        division: of the positions and games; by default over this process's devices.

    Raises:
        ValueError: an opponent is unknown, cannot play the game or does not start, or
            the game has too few openings.
    """

    def __init__(
        self,
        game: Game,
        config: BaseEvaluationConfig,
        opponents: Sequence[str],
        *,
        division: Division = LOCAL,
        modules: CustomModules | None = None,
    ):
        self._game, self._division = game, division
        positions = shipped(game)
        self._positions = positions and positions.subset(config.num_positions)
        self._opponents = {name: load(name, game, modules) for name in opponents}
        for name, opponent in self._opponents.items():
            check_starts(name, opponent, game)
        self._openings = suite(
            game, jax.random.key(_OPENINGS_SEED), config.num_games // 2, OPENING_MOVES
        )

    def evaluate(
        self,
        players: Mapping[str, Player],
        poll: Poll = no_poll,
    ) -> dict[str, Any]:
        """Returns grades, if the game has solved positions, and match scores against
        the opponents, each with its 95% interval.

        The grade of a player is its mistake rate; in games with chance, where a move
        can be a little worse than another one, the mean win probability that it loses.

        Args:
            players: by name; all are graded, the first one plays the matches.
            poll: called before each part of the work; an exception of it ends the
                evaluation.
        """
        # The same keys each time: evaluations of a run differ by the network alone.
        grade_key, match_key = jax.random.split(jax.random.key(_PLAYERS_SEED))
        row: dict[str, Any] = {}
        if self._positions is not None:
            keys = jax.random.split(grade_key, len(players))
            for (name, player), key in zip(players.items(), keys, strict=True):
                graded = grade(
                    player, self._positions, key, division=self._division, poll=poll
                )
                kind, mean, interval = MISTAKES, graded.mean, graded.mean_interval
                if self._game.num_outcomes:
                    kind, mean = LOST, graded.mean_lost
                    interval = graded.mean_lost_interval
                row |= _with_interval(f"{name}_{kind}", mean, interval)
        row[SCORES] = {}
        first = next(iter(players.values()))
        keys = jax.random.split(match_key, len(self._opponents))
        for (name, opponent), key in zip(self._opponents.items(), keys, strict=True):
            match = play_openings(
                self._game,
                first,
                opponent,
                self._openings,
                key,
                division=self._division,
                poll=poll,
            )
            row[SCORES][name] = _with_interval(
                "score", match.total.score, match.interval
            )
        return row


def _with_interval(
    name: str, value: float, interval: tuple[float, float]
) -> dict[str, float]:
    low, high = interval
    return {name: value, f"{name}_low": low, f"{name}_high": high}

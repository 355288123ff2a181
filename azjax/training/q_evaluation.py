"""How learnt action values play, measured while they are learnt."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from azjax.arena import MatchResult, Record, play_match
from azjax.arena.pairs import score_interval
from azjax.players import Player, TrainedQ


def evaluate_q(
    trained: TrainedQ, opponents: Mapping[str, Player], num_games: int
) -> dict[str, Any]:
    """Lets a player without chance play against opponents, from the first position.

    Args:
        trained: whose values are followed.
        opponents: by their texts. One without chance as well plays the same two games
            again and again: the interval counts them once.
        num_games: against each of them, half as each side.

    Returns:
        By the text of each opponent, what `match_row` says.
    """
    keys = jax.random.split(jax.random.key(0), len(opponents))
    return {
        text: match_row(
            play_match(
                trained.game,
                trained.player(),
                opponent,
                key,
                num_games,
                opening_moves=0,
            )
        )
        for (text, opponent), key in zip(opponents.items(), keys, strict=True)
    }


def match_row(result: MatchResult) -> dict[str, Any]:
    """Returns a match as JSON takes it: the share of games not lost, with its 95%
    interval, and the numbers of games won, drawn and lost by side."""
    low, high = score_interval(_pairs_not_lost(result), result.distinct_pairs)
    return {
        "not_lost": not_lost(result.total),
        "not_lost_low": low,
        "not_lost_high": high,
        "as_first": result.as_first._asdict(),
        "as_second": result.as_second._asdict(),
    }


def _pairs_not_lost(result: MatchResult) -> np.ndarray:
    """Returns `[N / 2]`, how many games of each pair were not lost."""
    return (result.results.reshape(-1, 2) >= 0).sum(axis=1)


def not_lost(record: Record) -> float:
    """Returns the share of the games that were won or drawn."""
    return 1 - record.losses / record.games

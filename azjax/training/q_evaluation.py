"""How learnt action values play, measured while they are learnt."""

from collections.abc import Mapping
from typing import Any

import jax

from azjax.arena import MatchResult, Record, play_match
from azjax.arena.solved import wilson_interval
from azjax.players import Player, TrainedQ


def evaluate_q(
    trained: TrainedQ, opponents: Mapping[str, Player], num_games: int
) -> dict[str, Any]:
    """Lets a player without chance play against opponents, from the first position.

    Args:
        trained: whose values are followed.
        opponents: by their texts. One without chance as well would play two games,
            again and again.
        num_games: against each of them, half as each side.

    Returns:
        By the text of each opponent, what `match_row` says.
    """
    rng_key = jax.random.key(0)
    return {
        text: match_row(
            play_match(
                trained.game,
                trained.player(),
                opponent,
                rng_key,
                num_games,
                opening_moves=0,
            )
        )
        for text, opponent in opponents.items()
    }


def match_row(result: MatchResult) -> dict[str, Any]:
    """Returns a match as JSON takes it: the share of games not lost, with its 95%
    interval, and the numbers of games won, drawn and lost by side."""
    total = result.total
    rate = not_lost(total)
    low, high = wilson_interval(rate, total.games)
    return {
        "not_lost": rate,
        "not_lost_low": low,
        "not_lost_high": high,
        "as_first": result.as_first._asdict(),
        "as_second": result.as_second._asdict(),
    }


def not_lost(record: Record) -> float:
    """Returns the share of the games that were won or drawn."""
    return 1 - record.losses / record.games

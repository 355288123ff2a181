"""Batched tree search over any model of a game."""

from azjax.search.policies import (
    SearchConfig,
    alphazero_policy,
    gumbel_policy,
    improved_value,
    run_search,
)

__all__ = [
    "SearchConfig",
    "alphazero_policy",
    "gumbel_policy",
    "improved_value",
    "run_search",
]

"""Ranks moves for display: in the terminal, on the page, over GTP and UCI."""

from typing import NamedTuple

import numpy as np

from azjax.players import MoveDecision


class RankedMove(NamedTuple):
    """A move that a player considered.

    action: the move.
    prior: probability before the search; without a search, the policy's.
    visits: visits in the search; None without a search.
    value: expected result for the player to move, in [-1, 1]; None if not visited.
    """

    action: int
    prior: float
    visits: int | None
    value: float | None


def rank_moves(decision: MoveDecision) -> list[RankedMove]:
    """Returns the considered moves, the chosen one first.

    The others are sorted by visits, then by prior, then by action. Moves without visits
    and prior are omitted; a decision without search and policy has none.
    """
    analysis, policy = decision.analysis, decision.policy
    if analysis is not None:
        prior, visits = np.asarray(analysis.prior), np.asarray(analysis.visits)
    elif policy is not None:
        prior, visits = np.asarray(policy), np.zeros(len(policy), int)
    else:
        return []
    order = np.lexsort((-prior, -visits)).tolist()
    chosen = decision.action
    others = [a for a in order if a != chosen and (visits[a] > 0 or prior[a] > 0)]
    return [
        RankedMove(
            action=action,
            prior=float(prior[action]),
            visits=None if analysis is None else int(visits[action]),
            value=(
                float(analysis.action_values[action])
                if analysis is not None and visits[action] > 0
                else None
            ),
        )
        for action in [chosen, *others]
    ]

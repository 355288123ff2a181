"""Search trees as JSON."""

import math
from typing import Any

from azjax.games import State
from azjax.play.server.rules import Rules
from azjax.players import Branches


def describe_tree(
    rules: Rules, state: State, branches: Branches
) -> list[dict[str, Any]]:
    """Returns the most visited nodes below a root, parents before children.

    Args:
        rules: rules of the game.
        state: the root.
        branches: branches of one tree, without batch axis.
    """
    states = {0: state}  # of the nodes with children, by index in `branches`
    parents = set(branches.parents.tolist())
    nodes = []
    for number, visits in enumerate(branches.visits.tolist()):
        if number == 0 or visits == 0:
            continue
        parent = int(branches.parents[number])
        action = int(branches.actions[number])
        if number in parents:
            states[number] = rules.after(states[parent], action)
        nodes.append(
            {
                "parent": parent - 1,  # the root is not in the list
                "action": action,
                "text": rules.game.action_to_text(states[parent], action),
                "prior": json_number(branches.priors[number]),
                "visits": visits,
                "value": json_number(branches.values[number]),
            }
        )
    return nodes


def json_number(value: Any) -> float:
    """Returns a number rounded to 6 digits; 0 where JSON has none (infinity, NaN)."""
    number = float(value)
    return round(number, 6) if math.isfinite(number) else 0.0

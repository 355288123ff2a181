"""What a page is told of a search's tree."""

import math
from typing import Any

from azjax.games import State
from azjax.play.server.rules import Rules
from azjax.players import Branches


def describe_tree(
    rules: Rules, state: State, branches: Branches
) -> list[dict[str, Any]]:
    """Returns the most visited positions below a root, each after those before it.

    Args:
        rules: of the game.
        state: the root.
        branches: of one tree, without the axis of trees.
    """
    states = {0: state}  # by their number in `branches`, where something follows them
    followed = set(branches.parents.tolist())
    nodes = []
    for number, visits in enumerate(branches.visits.tolist()):
        if number == 0 or visits == 0:
            continue
        parent = int(branches.parents[number])
        action = int(branches.actions[number])
        if number in followed:
            states[number] = rules.after(states[parent], action)
        nodes.append(
            {
                "parent": parent - 1,  # the root itself is not told
                "action": action,
                "text": rules.game.action_to_text(states[parent], action),
                "prior": number_of(branches.priors[number]),
                "visits": visits,
                "value": number_of(branches.values[number]),
            }
        )
    return nodes


def number_of(value: Any) -> float:
    """Returns a number that JSON knows, not longer than it need be."""
    number = float(value)
    return round(number, 6) if math.isfinite(number) else 0.0

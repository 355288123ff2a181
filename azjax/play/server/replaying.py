"""The moves of a game that a page takes up, as the values of JSON that it is told."""

from collections.abc import Sequence
from typing import Any

from azjax.play.server.rules import Rules


def describe_moves(rules: Rules, actions: Sequence[int]) -> list[dict[str, Any]]:
    """Returns what the moves of a game are called, and who made them.

    Raises:
        ValueError: one of them is not legal.
    """
    rules.state(actions)
    told = []
    for number, action in enumerate(actions):
        before = rules.state(actions[:number])
        text = rules.game.action_to_text(before, action)
        player = int(before.current_player)
        told.append({"action": action, "text": text, "player": player})
    return told

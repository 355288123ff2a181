"""Replays azjax's games move by move in another engine."""

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

FACTS = ("terminated", "rewards", "player", "legal", "board")


def without_spaces(state: Any) -> str:
    """Returns the text of a state without spaces and line breaks."""
    return "".join(str(state).split())


def replay(
    make_state: Callable[[], Any],
    record: dict,
    *,
    pieces: str = "xo.",
    read_board: Callable[[Any], str] = without_spaces,
) -> collections.Counter:
    """Replays a record, and counts the disagreements, by fact, and the `positions`.

    In a finished game OpenSpiel has no player to move and no legal actions; they are
    not compared there. Positions that wait for chance are not compared but in that both
    engines wait, which is counted with the player.

    Args:
        make_state: returns the initial position of a game: an OpenSpiel state, or an
            object with the same methods.
        record: random games from `make_recorder`, with actions numbered as in the other
            engine.
        pieces: letters of the other engine for azjax's cell values; the last one is the
            empty cell's.
        read_board: returns the cells of the other engine's state, one letter each.
    """
    boards = board_texts(np.asarray(record["board"]), pieces)
    legal, player, over, rewards, actions = (
        np.asarray(record[name]).tolist()
        for name in ("legal", "player", "terminated", "rewards", "action")
    )
    outcomes = np.asarray(record.get("outcome", np.full_like(player, -1))).tolist()
    counts = collections.Counter(dict.fromkeys(("positions", *FACTS), 0))
    for row, moves in enumerate(actions):
        state = make_state()
        for move, action in enumerate([*moves, None]):
            if outcomes[row][move] >= 0:
                counts["player"] += not state.is_chance_node()
                state.apply_action(outcomes[row][move])
            ends = state.is_terminal()
            counts["positions"] += 1
            counts["terminated"] += ends != over[row][move]
            counts["rewards"] += list(state.returns()) != rewards[row][move]
            counts["board"] += read_board(state) != boards[row][move]
            if ends or over[row][move] or action is None:
                break
            counts["player"] += state.current_player() != player[row][move]
            theirs = state.legal_actions_mask()
            counts["legal"] += theirs != legal[row][move]
            if not theirs[action]:
                break
            state.apply_action(action)
    return counts


def board_texts(board: np.ndarray, pieces: str) -> list[list[str]]:
    """Returns boards `[B, T, H, W]` as texts with one letter per cell."""
    symbols = np.array(list(pieces))[board].reshape(*board.shape[:2], -1)
    return symbols.view(f"<U{symbols.shape[-1]}")[..., 0].tolist()

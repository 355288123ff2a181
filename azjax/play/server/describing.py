"""Positions, moves and decisions as JSON for the page."""

import collections
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from azjax.games import Game, State
from azjax.games.rendering import Cell
from azjax.play.game_description import picture_of
from azjax.play.server.rules import Rules
from azjax.play.text_output import expected_value, rank_moves
from azjax.players import Branches, MoveDecision

MAX_MOVES = 60  # of a decision; the first ones of the ranking


def describe_position(rules: Rules, actions: tuple[int, ...]) -> dict[str, Any]:
    """Returns the position after some actions.

    Raises:
        ValueError: an action is illegal.
    """
    game, state = rules.game, rules.state(actions)
    last, last_action, marked = None, None, []
    if actions:
        last_action = actions[-1]
        last = _move(game, rules.state(actions[:-1]), last_action)
        marked = cell_numbers(game, game.last_cells(state, last_action))
    # Moves with the same cells, such as promotions, have a field `becomes`: the kind of
    # the piece in the last cell after the move.
    moves = [_move(game, state, action) for action in rules.legal_actions(state)]
    counts = collections.Counter(tuple(move["cells"]) for move in moves)
    for move in moves:
        if move["cells"] and counts[tuple(move["cells"])] > 1:
            after = np.asarray(game.board(rules.after(state, move["action"])))
            move["becomes"] = int(after.ravel()[move["cells"][-1]])
    return {
        "player": int(state.current_player),
        "cells": np.asarray(game.board(state)).ravel().tolist(),
        "moves": moves,
        "isOver": bool(state.terminated),
        "rewards": rules.rewards(state),
        "last": last,
        "marked": marked,
        "resultText": game.result_text(state),
        "winningCells": cell_numbers(game, game.winning_cells(state)),
        "picture": picture_of(game, state, last_action),
    }


def describe_moves(rules: Rules, actions: Sequence[int]) -> list[dict[str, Any]]:
    """Returns the notation and the player of each move of a game.

    Raises:
        ValueError: an action is illegal.
    """
    rules.state(actions)
    moves = []
    for ply, action in enumerate(actions):
        before = rules.state(actions[:ply])
        text = rules.game.action_to_text(before, action)
        player = int(before.current_player)
        moves.append({"action": action, "text": text, "player": player})
    return moves


RESIGNATION = {"resigns": True}  # in place of a decision


def describe_decision(
    rules: Rules,
    state: State,
    decision: MoveDecision,
    simulations: int,
    seconds: float,
    *,
    with_tree: bool = False,
    is_timed_out: bool = False,
) -> dict[str, Any]:
    """Returns a player's decision in a position.

    Args:
        rules: rules of the game.
        state: the position.
        decision: the player's.
        simulations: completed by the search.
        seconds: duration of the search.
        with_tree: whether to include the most visited part of the tree, which takes a
            step of the game for each of its inner nodes.
        is_timed_out: whether the time limit ended the search.
    """
    analysis, policy, game = decision.analysis, decision.policy, rules.game
    value = expected_value(decision)
    result = None  # the probabilities of win, draw and loss, if they are known
    if value is not None and decision.draw is not None:
        # They agree with the value; the draw probability is reduced where necessary.
        decided = 1 - min(decision.draw, 1 - abs(value))
        chances = ((decided + value) / 2, 1 - decided, (decided - value) / 2)
        result = [json_number(chance) for chance in chances]
    line, after = [], state
    for action in [decision.action] if analysis is None else analysis.line.tolist():
        if action < 0 or after.terminated:
            break
        text = game.action_to_text(after, action)
        line.append({"action": action, "text": text})
        after = rules.after(after, action)
    described = {
        "action": decision.action,
        "moves": [
            {
                "action": move.action,
                "text": game.action_to_text(state, move.action),
                "prior": json_number(move.prior),
                "visits": move.visits or 0,
                "value": None if move.value is None else json_number(move.value),
                "weight": None if policy is None else json_number(policy[move.action]),
            }
            for move in rank_moves(decision)[:MAX_MOVES]
        ],
        "visits": 0 if analysis is None else int(analysis.visits.sum()) + 1,
        "value": None if value is None else json_number(value),
        "result": result,
        "line": line,
        "simulations": simulations,
        "seconds": seconds,
        "isTimedOut": is_timed_out,
    }
    if with_tree:
        branches = None if analysis is None else analysis.branches
        has_tree = branches is not None
        described["tree"] = describe_tree(rules, state, branches) if has_tree else []
    return described


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


def _move(game: Game, state: State, action: int) -> dict[str, Any]:
    return {
        "action": action,
        "text": game.action_to_text(state, action),
        "cells": cell_numbers(game, game.action_cells(state, action)),
    }


def cell_numbers(game: Game, cells: Iterable[Cell]) -> list[int]:
    """Returns the numbers of cells, counted row by row."""
    width = len(game.column_labels)
    return [row * width + column for row, column in cells]

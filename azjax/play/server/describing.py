"""Games, positions, moves and decisions as JSON for the page."""

import collections
import copy
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games import Game, State
from azjax.games.rendering import CELL_SIZE, Cell
from azjax.play.move_ranking import rank_moves
from azjax.play.server.rules import Rules, on_host
from azjax.play.server.trees import describe_tree, json_number
from azjax.play.text_output import expected_value, side_names
from azjax.players import MoveDecision

MAX_MOVES = 60  # of a decision; the first ones of the ranking

_SIZES = re.compile(r'(width|height)="([0-9.]+)')
_VIEW_BOX = re.compile(r'viewBox="([-0-9. ]+)"')


def game_title(key: str) -> str:
    """Returns the title of a game: "Go (5)" for `go:5`."""
    name, _, options = key.partition(":")
    title = name.replace("_", " ").title()
    return f"{title} ({options.replace(',', ', ')})" if options else title


def draws_by_style(game: Game) -> bool:
    """Returns whether azjax draws a game's pictures, not another library."""
    return type(game).to_svg is Game.to_svg


def picture_of(game: Game, state: State, last_action: int | None) -> str:
    """Returns a position as a scalable SVG document."""
    svg = game.to_svg(state, last_action)
    if _VIEW_BOX.search(svg):
        return svg
    sizes = dict(_SIZES.findall(svg[: svg.index(">")]))
    box = f'viewBox="0 0 {sizes["width"]} {sizes["height"]}"'
    return svg.replace("<svg", f"<svg {box}", 1)


class Preview(NamedTuple):
    """A game before its rules are compiled.

    description: description of the game, without a player.
    position: the first one, without moves.
    """

    description: dict[str, Any]
    position: dict[str, Any]


def describe_start(game: Game, key: str) -> Preview:
    """Returns the description of a game and of its first position.

    It compiles one small program; without `jit`, each operation would be compiled
    separately, which takes seconds.
    """
    state, board = jax.jit(lambda: _first(game))()
    state, board = on_host(state), np.asarray(board)
    drawn = copy.copy(game)
    vars(drawn)["board"] = lambda _: board
    height, width = board.shape
    description = {
        "game": key,
        "title": game_title(key),
        "height": height,
        "width": width,
        "style": "picture",
        "sides": list(side_names(game)),
        "pieces": list(game.style.names if draws_by_style(game) else game.pieces),
        "columns": list(game.column_labels),
        "rows": list(game.row_labels),
        "figures": _figures(game),
        "targets": "cells" if game.row_labels else "columns",
        "picture": _geometry(drawn, state, height, width),
    }
    position = {
        "player": int(state.current_player),
        "cells": board.ravel().tolist(),
        "moves": [],
        "isOver": False,
        "rewards": [0, 0],
        "last": None,
        "resultText": "",
        "winningCells": [],
        "picture": picture_of(drawn, state, None),
        "turnedPicture": _turned_picture(drawn, state, None),
    }
    return Preview(description, position)


def _first(game: Game) -> tuple[State, jax.Array]:
    state = game.init()
    return state, game.board(state)


def describe_position(rules: Rules, actions: tuple[int, ...]) -> dict[str, Any]:
    """Returns the position after some actions.

    Raises:
        ValueError: an action is illegal.
    """
    game, state = rules.game, rules.state(actions)
    last = last_action = None
    if actions:
        last_action = actions[-1]
        last = _move(game, rules.state(actions[:-1]), last_action)
    return {
        "player": int(state.current_player),
        "cells": np.asarray(game.board(state)).ravel().tolist(),
        "moves": _moves(rules, state),
        "isOver": bool(state.terminated),
        "rewards": rules.rewards(state),
        "last": last,
        "resultText": game.result_text(state),
        "winningCells": _numbers(game, game.winning_cells(state)),
        "picture": picture_of(game, state, last_action),
        "turnedPicture": _turned_picture(game, state, last_action),
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
    line = [decision.action] if analysis is None else analysis.line.tolist()
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
        "result": None if value is None else _result(value, decision.draw),
        "line": _line(rules, state, line),
        "simulations": simulations,
        "seconds": seconds,
        "isTimedOut": is_timed_out,
    }
    if with_tree:
        branches = None if analysis is None else analysis.branches
        has_tree = branches is not None
        described["tree"] = describe_tree(rules, state, branches) if has_tree else []
    return described


def _result(value: float, draw: float | None) -> list[float] | None:
    """Returns the probabilities of win, draw and loss, None without a draw probability.

    They agree with the value; the draw probability is reduced where necessary.
    """
    if draw is None:
        return None
    decided = 1 - min(draw, 1 - abs(value))
    chances = ((decided + value) / 2, 1 - decided, (decided - value) / 2)
    return [json_number(chance) for chance in chances]


def _line(rules: Rules, state: State, actions: list[int]) -> list[dict[str, Any]]:
    """Returns the moves of a line with their notation."""
    moves = []
    for action in actions:
        if action < 0 or state.terminated:
            break
        moves.append(
            {"action": action, "text": rules.game.action_to_text(state, action)}
        )
        state = rules.after(state, action)
    return moves


def _moves(rules: Rules, state: State) -> list[dict[str, Any]]:
    """Returns the legal moves. Moves with the same cells, such as promotions, have a
    field `becomes`: the kind of the piece in the last cell after the move."""
    game = rules.game
    moves = [_move(game, state, action) for action in rules.legal_actions(state)]
    counts = collections.Counter(tuple(move["cells"]) for move in moves)
    for move in moves:
        if move["cells"] and counts[tuple(move["cells"])] > 1:
            after = np.asarray(game.board(rules.after(state, move["action"])))
            move["becomes"] = int(after.ravel()[move["cells"][-1]])
    return moves


def _move(game: Game, state: State, action: int) -> dict[str, Any]:
    return {
        "action": action,
        "text": game.action_to_text(state, action),
        "cells": _numbers(game, game.action_cells(state, action)),
    }


def _numbers(game: Game, cells: Iterable[Cell]) -> list[int]:
    """Returns the numbers of cells, counted row by row."""
    width = len(game.column_labels)
    return [row * width + column for row, column in cells]


def _turned_picture(game: Game, state: State, last_action: int | None) -> str | None:
    """Returns the picture from the second player's side, None if it is the same."""
    if not (draws_by_style(game) and game.style.is_two_sided):
        return None
    return game.to_svg(state, last_action, is_turned=True)


def _figures(game: Game) -> list[str]:
    """Returns a picture of each kind of piece, centred at (0, 0); none if another
    library draws the game."""
    if not draws_by_style(game):
        return []
    half = CELL_SIZE // 2
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{-half} {-half} {CELL_SIZE} {CELL_SIZE}">'
    )
    return [f"{head}{draw(0, 0)}</svg>" for draw in game.style.pieces]


def _geometry(game: Game, state: State, height: int, width: int) -> dict[str, Any]:
    """Returns the centres of the cells in a picture of the game (pixels)."""
    box = _VIEW_BOX.search(picture_of(game, state, None))
    assert box is not None
    left, top, wide, high = map(float, box[1].split())

    def centre(row: int, column: int) -> tuple[float, float]:
        if draws_by_style(game):
            return game.style.centre(row, column)
        return left + (column + 0.5) * wide / width, top + (row + 0.5) * high / height

    cells = itertools.product(range(height), range(width))
    return {
        "width": wide,
        "height": high,
        "left": left,
        "top": top,
        "cell": CELL_SIZE,
        "centres": [[round(place, 2) for place in centre(*cell)] for cell in cells],
    }

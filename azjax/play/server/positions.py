"""The rules of a game, and its board, positions, moves and decisions as JSON.

Positions are named by the actions that lead to them, which may be outcomes of chance.
"""

import collections
import copy
import math
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games import Game, GameRecord, State, game_title
from azjax.games.game_record import RESULTS
from azjax.games.host import (
    compiled,
    first_state,
    legal_actions,
    legal_moves,
    next_state,
    random_outcome_move,
    rewards,
    waits_for_chance,
)
from azjax.games.reading import read_game
from azjax.games.rendering import CELL_SIZE, Cell, board_parts
from azjax.play.review import ReviewedMove, exact_text, review, summaries
from azjax.play.server.memory import PROGRAM_BYTES, array_bytes
from azjax.play.server.messages import (
    MAX_SHOWN,
    ParseRequest,
    PositionRequest,
    ReadRequest,
    ReplayRequest,
)
from azjax.play.server.runs import one_line
from azjax.play.server.search_workers import CancelledError
from azjax.play.text_output import (
    expected_actions,
    expected_value,
    rank_moves,
    side_names,
)
from azjax.players import AnyPlayer, Branches, MoveDecision

PositionMessage = PositionRequest | ReplayRequest | ParseRequest | ReadRequest
MAX_MOVES = 60  # of a decision; the first ones of the ranking
CHANCE = -1  # in place of the player where a position waits for chance
RESIGNATION = {"resigns": True}  # in place of a decision
_SIZES = re.compile(r'(width|height)="([0-9.]+)')
_VIEW_BOX = re.compile(r'viewBox="([-0-9. ]+)"')


class Rules:
    """A compiled game with a cache of its latest positions; thread-safe.

    game: the game with compiled functions.
    setup: FEN of the first position; empty for the game's own.

    Args:
        game: compiled here, which takes some seconds.
        num_positions: size of the cache, in positions.
        num_bytes: size of the cache, in bytes.
    """

    is_busy = False

    def __init__(self, game: Game, num_positions: int, num_bytes: int = 2**26):
        self.game = compiled(game)
        self.setup = ""
        self._lock = threading.Lock()
        self._cache: collections.OrderedDict[tuple[str, tuple[int, ...]], State] = (
            collections.OrderedDict()
        )
        self._first = first_state(self.game)
        # The key of a position, its actions, takes memory too.
        self._position_bytes = array_bytes(self._first) + 8 * self.max_actions
        self._num_positions = min(num_positions, num_bytes // self._position_bytes)

    @property
    def max_actions(self) -> int:
        """The largest number of actions, outcomes of chance included."""
        # An outcome follows at most each move and the first position.
        most = self.game.max_moves
        return 2 * most + 1 if self.game.num_outcomes else most

    @property
    def bytes(self) -> int:
        """Estimated size."""
        return PROGRAM_BYTES + len(self._cache) * self._position_bytes

    def shrink(self) -> None:
        """Clears the cache of positions."""
        with self._lock:
            self._cache.clear()

    def set_up(self, text: str) -> "Rules":
        """Returns rules with the first position of a FEN, which share the cache.

        Raises:
            ValueError: the text is no FEN, or the game has none.
        """
        from_fen = getattr(self.game, "from_fen", None)
        if from_fen is None:
            raise ValueError(
                f"positions of {self.game} cannot be set up: it has no FEN"
            )
        rules = copy.copy(self)
        rules.setup, rules._first = text, jax.device_get(from_fen(text))
        return rules

    def state(self, actions: Sequence[int]) -> State:
        """Returns the position after some actions, in NumPy.

        Raises:
            ValueError: an action is illegal, or an outcome of chance is impossible.
        """
        actions = tuple(actions)
        ply, state = 0, self._first
        with self._lock:
            for length in range(len(actions), 0, -1):
                key = self.setup, actions[:length]
                if key in self._cache:  # the longest cached prefix
                    ply, state = length, self._cache[key]
                    self._cache.move_to_end(key)
                    break
        for number, action in enumerate(actions[ply:], start=ply + 1):
            legal = legal_moves(self.game, state)
            if action not in legal:
                allowed = " ".join(map(str, legal)) or "none, the game is over"
                what = "is not legal; legal"
                if waits_for_chance(self.game, state):
                    what = "is no outcome of chance that is possible; possible"
                raise ValueError(
                    f"action {action}, number {number}, {what}: "
                    f"{allowed if len(allowed) < 200 else f'{allowed[:200]} ...'}"
                )
            state = next_state(self.game, state, action)
            with self._lock:
                self._cache[self.setup, actions[:number]] = state
                if len(self._cache) > self._num_positions:
                    self._cache.popitem(last=False)
        return state


def describe_position(rules: Rules, actions: tuple[int, ...]) -> dict[str, Any]:
    """Returns the position after some legal actions."""
    game, state = rules.game, rules.state(actions)
    last, marked = None, []
    if actions:
        last = _move(game, rules.state(actions[:-1]), actions[-1])
    played = (action for action in reversed(actions) if action < game.num_actions)
    last_action = next(played, None)
    if last_action is not None:
        marked = cell_numbers(game, game.last_cells(state, last_action))
    # Moves with the same cells, such as promotions, have a field `becomes`: the kind of
    # the piece in the last cell after the move.
    moves = [_move(game, state, action) for action in legal_actions(game, state)]
    counts = collections.Counter(tuple(move["cells"]) for move in moves)
    for move in moves:
        if move["cells"] and counts[tuple(move["cells"])] > 1:
            after = np.asarray(game.board(next_state(game, state, move["action"])))
            move["becomes"] = int(after.ravel()[move["cells"][-1]])
    return {
        "player": _player(game, state),
        "cells": np.asarray(game.board(state)).ravel().tolist(),
        "moves": moves,
        "isOver": bool(state.terminated),
        "rewards": list(rewards(game, state)),
        "last": last,
        "marked": marked,
        "resultText": game.result_text(state),
        "winningCells": cell_numbers(game, game.winning_cells(state)),
        "picture": picture_of(game, state, last_action),
    }


def describe_roll(
    rules: Rules, actions: tuple[int, ...], rng: np.random.Generator
) -> dict[str, Any]:
    """Returns the position after some legal actions and an outcome of chance, which is
    drawn.

    Raises:
        ValueError: an action is illegal, or the position does not wait for chance.
    """
    state = rules.state(actions)
    if not waits_for_chance(rules.game, state):
        raise ValueError("the position does not wait for chance")
    outcome = random_outcome_move(rules.game, state, rng)
    return describe_position(rules, (*actions, outcome))


def describe_moves(rules: Rules, actions: Sequence[int]) -> list[dict[str, Any]]:
    """Returns the notation and the player of each move of a game."""
    rules.state(actions)
    moves = []
    for ply, action in enumerate(actions):
        before = rules.state(actions[:ply])
        text = rules.game.move_to_text(before, action)
        player = _player(rules.game, before)
        moves.append({"action": action, "text": text, "player": player})
    return moves


def _player(game: Game, state: State) -> int:
    """Returns the player to move, `CHANCE` where a position waits for chance."""
    return CHANCE if waits_for_chance(game, state) else int(state.current_player)


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
    for action in expected_actions(decision):
        if after.terminated:
            break
        text = game.action_to_text(after, action)
        line.append({"action": action, "text": text})
        after = next_state(game, after, action)
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
            states[number] = next_state(rules.game, states[parent], action)
        nodes.append(
            {
                "parent": parent - 1,  # the root is not in the list
                "player": int(states[parent].current_player),
                "action": action,
                "text": rules.game.move_to_text(states[parent], action),
                "prior": json_number(branches.priors[number]),
                "visits": visits,
                "value": json_number(branches.values[number]),
            }
        )
        if action >= rules.game.num_actions:
            nodes[-1]["isOutcome"] = True
    return nodes


def json_number(value: Any) -> float:
    """Returns a number rounded to 6 digits; 0 where JSON has none (infinity, NaN)."""
    number = float(value)
    return round(number, 6) if math.isfinite(number) else 0.0


def _move(game: Game, state: State, action: int) -> dict[str, Any]:
    is_outcome = action >= game.num_actions
    cells = () if is_outcome else game.action_cells(state, action)
    return {
        "action": action,
        "text": game.move_to_text(state, action),
        "cells": cell_numbers(game, cells),
    }


def cell_numbers(game: Game, cells: Iterable[Cell]) -> list[int]:
    """Returns the numbers of cells, counted row by row."""
    width = len(game.column_labels)
    return [int(row) * width + int(column) for row, column in cells]


class Preview(NamedTuple):
    """A game before its rules are compiled.

    description: description of the game, without a player.
    position: the first one, without moves.
    picture: of the first position, an SVG document.
    """

    description: dict[str, Any]
    position: dict[str, Any]
    picture: str


def describe_start(game: Game, key: str) -> Preview:
    """Returns the description of a game and of its first position.

    It compiles one small program; without `jit`, each operation would be compiled
    separately, which takes seconds.
    """
    state, cells = jax.device_get(
        jax.jit(lambda: (first := game.init(), game.board(first)))()
    )
    drawn = copy.copy(game)
    vars(drawn)["board"] = lambda _: cells
    picture = picture_of(drawn, state)
    height, width = cells.shape
    description = {
        "game": key,
        "title": game_title(key),
        "height": height,
        "width": width,
        "sides": list(side_names(game)),
        "pieces": list(game.pieces if picture else game.style.names),
        "columns": list(game.column_labels),
        "rows": list(game.row_labels),
        "hasFen": hasattr(game, "from_fen"),
        "targets": "cells" if game.row_labels else "columns",
        "board": _board(game, height, width, picture),
    }
    position = {
        "player": int(state.current_player),
        "cells": cells.ravel().tolist(),
        "moves": [],
        "isOver": False,
        "rewards": [0, 0],
        "last": None,
        "marked": [],
        "resultText": "",
        "winningCells": [],
        "picture": picture,
    }
    return Preview(description, position, picture or drawn.to_svg(state))


def picture_of(game: Game, state: State, last_action: int | None = None) -> str | None:
    """Returns a position as a scalable SVG document if another library draws the game;
    else None."""
    if type(game).to_svg is Game.to_svg:
        return None
    svg = game.to_svg(state, last_action)
    if _VIEW_BOX.search(svg):
        return svg
    sizes = dict(_SIZES.findall(svg[: svg.index(">")]))
    box = f'viewBox="0 0 {sizes["width"]} {sizes["height"]}"'
    return svg.replace("<svg", f"<svg {box}", 1)


def _board(game: Game, height: int, width: int, picture: str | None) -> dict[str, Any]:
    """Returns the geometry of a board (pixels), and its parts as SVG elements."""
    if picture is not None:  # it shows the board and all pieces
        found = _VIEW_BOX.search(picture)
        assert found is not None
        left, top, across, down = tuple(map(float, found[1].split()))
        centers = tuple(
            (left + (column + 0.5) * across / width, top + (row + 0.5) * down / height)
            for row in range(height)
            for column in range(width)
        )
        drawn = {
            **{"ground": "", "front": "", "pieces": [], "mark": ""},
            **{"columnLabels": [], "rowLabels": []},
            **{"marksBelow": False, "isTwoSided": False, "sideColors": None},
        }
    else:
        parts, sides = board_parts(game.style, height, width), game.style.sides
        (left, top, across, down), centers = parts.box, parts.centers
        drawn = {
            "ground": parts.ground,
            "front": parts.front,
            "pieces": list(parts.pieces),
            "mark": parts.mark,
            "marksBelow": parts.mark_is_below,
            "sideColors": sides and [side.color for side in sides],
            "columnLabels": _rounded(parts.column_labels),
            "rowLabels": _rounded(parts.row_labels[: len(game.row_labels)]),
            "isTwoSided": parts.is_two_sided,
        }
    return {
        "left": left,
        "top": top,
        "width": round(across, 2),
        "height": round(down, 2),
        "cell": CELL_SIZE,
        "centers": _rounded(centers),
        **drawn,
    }


def _rounded(places: Sequence[tuple[float, float]]) -> list[list[float]]:
    return [[round(x, 2), round(y, 2)] for x, y in places]


def describe_text(game: Game, text: str) -> dict[str, Any]:
    """Returns the first game of a text, as JSON; see `read_game`.

    Raises:
        ValueError: it cannot be read; the message is one short line.
    """
    try:
        record = read_game(text, game)
    except RecursionError:
        raise ValueError("the text is nested too deeply") from None
    except ValueError as error:
        raise ValueError(one_line(error)) from None
    return describe_record(record)


def describe_record(record: GameRecord) -> dict[str, Any]:
    """Returns a game as JSON."""
    result = "unfinished" if record.result is None else RESULTS[record.result]
    names = [name[:MAX_SHOWN] for name in record.names]
    return {"actions": record.moves, "players": names, "result": result}


def describe_review(
    rules: Rules,
    actions: Sequence[int],
    reviewer: AnyPlayer,
    solver: AnyPlayer | None,
    report: Callable[[dict[str, Any]], object],
) -> dict[str, Any] | None:
    """Reviews a game; blocks until it is done.

    Args:
        rules: rules of the game.
        actions: legal actions from the initial position.
        reviewer: the player whose opinion is given.
        solver: gives exact results.
        report: called with each reviewed move, as JSON.

    Returns:
        What holds for the whole game, as JSON; None if the reviewer was cancelled.

    Raises:
        ValueError: an action is illegal, or the reviewer fails or gives no values.
    """
    rules.state(actions)
    moves: list[ReviewedMove] = []
    try:
        for move in review(rules.game, actions, reviewer, solver):
            state = rules.state(actions[: len(moves)])
            moves.append(move)
            best = _move(rules.game, state, move.best_action)
            report(
                {
                    "ply": len(moves),
                    "text": move.text,
                    "mark": move.mark,
                    "before": json_number(move.before),
                    "after": json_number(move.after),
                    "loss": json_number(move.loss),
                    "best": move.best,
                    "bestAction": move.best_action,
                    "bestCells": best["cells"],
                    "exact": exact_text(move),
                    "exactBefore": move.exact_before,
                    "exactAfter": move.exact_after,
                }
            )
    except CancelledError:
        return None
    return {"summaries": summaries(rules.game, moves)}


def answer(rules: Rules, message: PositionMessage) -> Any:
    """Returns the answer to a message about positions or texts, as JSON.

    Raises:
        ValueError: an action is illegal, or a text cannot be read.
    """
    match message:
        case PositionRequest():
            return describe_position(rules, message.actions)
        case ReplayRequest():
            return describe_moves(rules, message.actions)
        case ParseRequest():
            return rules.game.text_to_action(rules.state(message.actions), message.text)
        case ReadRequest():
            return describe_text(rules.game, message.text)

"""Text about games and decisions: sides, values, and ranked moves."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from azjax.games import Game, State
from azjax.games.host import next_state
from azjax.players import MoveDecision

LEVELS = "▁▂▃▄▅▆▇█"
SHOWN_MOVES = 8


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


def side_names(game: Game) -> tuple[str, str]:
    """Returns the names of the two players' pieces, or of their sides of the board."""
    if game.style.sides is not None:
        return (game.style.sides[0].name, game.style.sides[1].name)
    names = game.style.names
    return (names[0], names[1]) if len(names) == 2 else ("white pieces", "black pieces")


def expected_actions(decision: MoveDecision) -> list[int]:
    """Returns the principal variation; without a search, only the move."""
    if decision.analysis is None:
        return [decision.action]
    return [action for action in decision.analysis.line.tolist() if action >= 0]


def expected_line(game: Game, state: State, decision: MoveDecision) -> list[str]:
    """Returns the principal variation of a search, in the game's notation."""
    if decision.analysis is None:
        return []
    texts = []
    for action in expected_actions(decision):
        if state.terminated:
            break
        texts.append(game.action_to_text(state, action))
        state = next_state(game, state, action)
    return texts


def analysis_lines(game: Game, state: State, decision: MoveDecision) -> Iterator[str]:
    """Returns a decision in a position as lines of plain text."""
    value = expected_value(decision)
    if value is not None:
        text = value_text(game, int(state.current_player), value)
        yield f"expected result: {text} (1 a win, -1 a loss), as all values here"
    moves = rank_moves(decision)[:SHOWN_MOVES]
    if not moves:
        yield "this player provides no analysis"
        return
    texts = [game.action_to_text(state, move.action) for move in moves]
    width = max(len("move"), *map(len, texts))
    has_search = decision.analysis is not None
    more = f" {'visits':>7} {'value':>6}" if has_search else ""
    yield f"{'move':<{width}} {'prior':>6}{more}"
    for text, move in zip(texts, moves, strict=True):
        value_column = "" if move.value is None else signed(move.value)
        more = f" {move.visits:>7} {value_column:>6}" if has_search else ""
        yield f"{text:<{width}} {100 * move.prior:>5.1f}%{more}".rstrip()
    line = expected_line(game, state, decision)
    if line:
        yield f"expects: {' '.join(line)}"


def sparkline(values: Sequence[float], width: int) -> str:
    """Returns one block character for each of the last `width` values in [-1, 1]."""
    levels = len(LEVELS)
    return "".join(
        LEVELS[min(levels - 1, int((value + 1) / 2 * levels))]
        for value in values[-width:]
    )


def expected_value(decision: MoveDecision) -> float | None:
    """Returns the expected result for the player to move, None if it is unknown."""
    is_unknown = decision.value == 0 and decision.analysis is None
    return None if is_unknown else decision.value


def value_text(game: Game, player: int, value: float) -> str:
    """Returns a value with the name of its side."""
    return f"{signed(value)} for the {side_names(game)[player]}"


def signed(value: float) -> str:
    """Returns a value with its sign and two decimals."""
    return f"{round(value, 2) + 0.0:+.2f}"  # no -0.00


def clock(seconds: float) -> str:
    """Returns a duration as minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"

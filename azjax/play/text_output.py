"""What people are told about a game: sides, results, and what a search saw."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from azjax.games import Game, State
from azjax.players import MoveDecision

LEVELS = "▁▂▃▄▅▆▇█"


class Candidate(NamedTuple):
    """A move that was considered.

    text: in the game's notation.
    prior: its probability before the search; without a search, the player's.
    visits: how often the search tried it, None without a search.
    value: the expected result for the mover, None where it is not known.
    """

    text: str
    prior: float
    visits: int | None
    value: float | None


def side_names(game: Game) -> tuple[str, str]:
    """Returns what the two players have on the board."""
    names = game.style.names
    return (names[0], names[1]) if len(names) == 2 else ("white pieces", "black pieces")


def candidates(
    game: Game, state: State, decision: MoveDecision, most: int
) -> list[Candidate]:
    """Returns the moves that a player considered most, the best one first.

    Args:
        game: what is played.
        state: the position that was thought about.
        thought: what a seat thought; without a policy there are no candidates.
        most: how many moves are returned at most.
    """
    analysis = decision.analysis
    policy = decision.policy
    if analysis is not None:
        order = np.lexsort((analysis.prior, analysis.visits))[::-1]
        is_shown = (analysis.visits > 0) | (analysis.prior > 0)
    elif policy is not None:
        order = np.argsort(policy)[::-1]
        is_shown = policy > 0
    else:
        return []
    # What was chosen comes first, whatever the counts.
    actions = [decision.action, *(int(a) for a in order if a != decision.action)]
    found = []
    for action in [a for a in actions if is_shown[a]][:most]:
        text = game.action_to_text(state, action)
        if analysis is None:
            found.append(Candidate(text, float(policy[action]), None, None))  # pyright: ignore[reportOptionalSubscript]
            continue
        visits = int(analysis.visits[action])
        value = float(analysis.action_values[action]) if visits else None
        found.append(Candidate(text, float(analysis.prior[action]), visits, value))
    return found


def line(game: Game, state: State, decision: MoveDecision) -> list[str]:
    """Returns the moves that a search expects, in the game's notation."""
    if decision.analysis is None:
        return []
    texts = []
    for action in decision.analysis.line.tolist():
        if action < 0 or state.terminated:
            break
        texts.append(game.action_to_text(state, action))
        state = game.step(state, jnp.int32(action))
    return texts


def analysis_lines(game: Game, state: State, decision: MoveDecision) -> Iterator[str]:
    """Returns what a player thought about a position, as lines of plain text."""
    value = opinion(decision)
    if value is not None:
        owned = value_text(game, int(state.current_player), value)
        yield f"expected result: {owned} (1 a win, -1 a loss), as all values here"
    shown = candidates(game, state, decision, most=8)
    if not shown:
        yield "this player does not tell what it thinks"
        return
    width = max(len("move"), *(len(candidate.text) for candidate in shown))
    has_search = decision.analysis is not None
    more = f" {'visits':>7} {'value':>6}" if has_search else ""
    yield f"{'move':<{width}} {'prior':>6}{more}"
    for text, prior, visits, value in shown:
        shown_value = "" if value is None else signed(value)
        more = f" {visits:>7} {shown_value:>6}" if has_search else ""
        yield f"{text:<{width}} {100 * prior:>5.1f}%{more}".rstrip()
    expected = line(game, state, decision)
    if expected:
        yield f"expects: {' '.join(expected)}"


def curve(values: Sequence[float], width: int) -> str:
    """Returns a line of blocks, one for each of the last `width` values in [-1, 1]."""
    levels = len(LEVELS)
    return "".join(
        LEVELS[min(levels - 1, int((value + 1) / 2 * levels))]
        for value in values[-width:]
    )


def opinion(decision: MoveDecision) -> float | None:
    """Returns the expected result for the mover, None from a player that has none."""
    has_none = decision.value == 0 and decision.analysis is None
    return None if has_none else decision.value


def value_text(game: Game, player: int, value: float) -> str:
    """Returns an expected result with the side for which it is."""
    return f"{signed(value)} for the {side_names(game)[player]}"


def signed(value: float) -> str:
    """Returns an expected result with its sign."""
    return f"{round(value, 2) + 0.0:+.2f}"  # no -0.00


def clock(seconds: float) -> str:
    """Returns a time as minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"

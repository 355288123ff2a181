"""Analysis lines in the formats of Leela Zero (lz) and KataGo (kata).

Sabaki, Lizzie and others read both. A line holds, for each move, the best one first,
`info move D4 visits 20 winrate 5512 prior 310 order 0 pv D4 E5`. Win rates and priors
are in 1/10000; in KataGo's format they are fractions of 1. Win rates and utilities are
for the player to move, as in Leela Zero.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from azjax.games import Game, State
from azjax.games.host import next_state
from azjax.play.text_output import rank_moves
from azjax.players import MoveDecision
from azjax.players.gtp_notation import to_vertex

MAX_MOVES = 20


class AnalyzedMove(NamedTuple):
    """A move of an analysis line.

    action: the move.
    visits: visits in the search.
    value: expected result for the player to move, in [-1, 1].
    prior: probability before the search, in [0, 1].
    line: the principal variation, with the move.
    """

    action: int
    visits: int
    value: float
    prior: float
    line: list[int]


def analyzed_moves(decision: MoveDecision) -> list[AnalyzedMove]:
    """Returns the visited moves in the order of `rank_moves`.

    GTP has no form for moves of players without a search: there the chosen move counts
    as visited once, the others not at all, and each has the value of the position.
    """
    chosen, line = decision.action, [decision.action]
    if decision.analysis is not None:
        line = [action for action in decision.analysis.line.tolist() if action >= 0]
    value = decision.value or 0.0
    found = [
        AnalyzedMove(
            action=move.action,
            visits=int(move.action == chosen) if move.visits is None else move.visits,
            value=value if move.value is None else move.value,
            prior=move.prior,
            line=line if move.action == chosen else [move.action],
        )
        for move in rank_moves(decision)
        if move.visits is None or move.visits > 0 or move.action == chosen
    ]
    return found or [AnalyzedMove(chosen, 1, value, 0.0, line)]


def lz_line(game: Game, state: State, decision: MoveDecision, max_moves: int) -> str:
    """Returns a decision in the format of `lz-analyze`."""
    return " ".join(
        f"info move {to_vertex(game, state, move.action)} visits {move.visits} "
        f"winrate {round(10_000 * _win_rate(move))} "
        f"prior {round(10_000 * move.prior)} "
        f"order {order} pv {_line(game, state, move)}"
        for order, move in enumerate(analyzed_moves(decision)[:max_moves])
    )


def kata_line(game: Game, state: State, decision: MoveDecision, max_moves: int) -> str:
    """Returns a decision in the format of `kata-analyze`."""
    return " ".join(
        f"info move {to_vertex(game, state, move.action)} visits {move.visits} "
        f"utility {move.value:.6f} winrate {_win_rate(move):.6f} "
        f"prior {move.prior:.6f} order {order} pv {_line(game, state, move)}"
        for order, move in enumerate(analyzed_moves(decision)[:max_moves])
    )


def repeated(decide: Callable[[], MoveDecision]) -> Iterator[MoveDecision]:
    """Yields decisions endlessly.

    While each call of `decide` has more visits, because the player reuses its tree, it
    is called again; otherwise the last decision is repeated.
    """
    decision, visits = decide(), -1
    while True:
        yield decision
        if decision.analysis is not None and decision.analysis.visits.sum() > visits:
            visits = decision.analysis.visits.sum()
            decision = decide()


def _win_rate(move: AnalyzedMove) -> float:
    return min(max((1 + move.value) / 2, 0.0), 1.0)


def _line(game: Game, state: State, move: AnalyzedMove) -> str:
    vertices = []
    for action in move.line:
        vertices.append(to_vertex(game, state, action))
        state = next_state(game, state, action)
    return " ".join(vertices)

"""What a player thinks, in the form of Leela Zero and of KataGo.

Both are read by Sabaki, Lizzie and others. A line holds, for each move from the best
one, `info move D4 visits 20 winrate 5512 prior 310 order 0 pv D4 E5`, where win rates
and priors are in 1/10000; in KataGo's form they are fractions of 1. Win rates and
utilities are those of the player to move, as in Leela Zero.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from azjax.games import Game, State
from azjax.games.host import next_state
from azjax.players import MoveDecision
from azjax.players.gtp_notation import to_vertex

MAX_MOVES = 20


class Candidate(NamedTuple):
    """A move that a player thought of.

    action: the move.
    visits: how often the search tried it.
    value: its expected result for the player to move, in [-1, 1].
    prior: its probability before the search, in [0, 1].
    line: the move and what is expected to follow.
    """

    action: int
    visits: int
    value: float
    prior: float
    line: list[int]


def candidates(decision: MoveDecision) -> list[Candidate]:
    """Returns the moves that a player thought of, the chosen one first.

    A player that did not search has visited its chosen move once, and expects of each
    what it expects of the position.
    """
    analysis, chosen = decision.analysis, decision.action
    if analysis is not None:
        visits, values, prior = analysis.visits, analysis.action_values, analysis.prior
        line = [action for action in analysis.line.tolist() if action >= 0]
        order = np.argsort(-visits, kind="stable")[: np.count_nonzero(visits)]
    else:
        prior = np.zeros(chosen + 1) if decision.policy is None else decision.policy
        visits = np.arange(prior.size) == chosen
        values = np.full(prior.size, decision.value or 0.0)
        line = [chosen]
        order = np.argsort(-prior, kind="stable")[: np.count_nonzero(prior)]
    actions = [chosen, *(action for action in order.tolist() if action != chosen)]
    return [
        Candidate(
            action=action,
            visits=int(visits[action]),
            value=float(values[action]),
            prior=float(prior[action]),
            line=line if action == chosen else [action],
        )
        for action in actions
    ]


def leela(game: Game, state: State, decision: MoveDecision, max_moves: int) -> str:
    """Returns what a player thinks, as `lz-analyze` writes it."""
    return " ".join(
        f"info move {to_vertex(game, state, move.action)} visits {move.visits} "
        f"winrate {_of_ten_thousand(_win_rate(move))} "
        f"prior {_of_ten_thousand(move.prior)} "
        f"order {order} pv {_line(game, state, move)}"
        for order, move in enumerate(candidates(decision)[:max_moves])
    )


def kata(game: Game, state: State, decision: MoveDecision, max_moves: int) -> str:
    """Returns what a player thinks, as `kata-analyze` writes it."""
    return " ".join(
        f"info move {to_vertex(game, state, move.action)} visits {move.visits} "
        f"utility {move.value:.6f} winrate {_win_rate(move):.6f} "
        f"prior {move.prior:.6f} order {order} pv {_line(game, state, move)}"
        for order, move in enumerate(candidates(decision)[:max_moves])
    )


def deeper(think: Callable[[], MoveDecision]) -> Iterator[MoveDecision]:
    """Yields what a player thinks, for ever.

    One that keeps its search goes on with it, as long as it sees more each time; of any
    other the same thought comes again.
    """
    decision, visits = think(), -1
    while True:
        yield decision
        if decision.analysis is not None and decision.analysis.visits.sum() > visits:
            visits = decision.analysis.visits.sum()
            decision = think()


def _win_rate(move: Candidate) -> float:
    return min(max((1 + move.value) / 2, 0.0), 1.0)


def _of_ten_thousand(share: float) -> int:
    return round(10_000 * share)


def _line(game: Game, state: State, move: Candidate) -> str:
    vertices = []
    for action in move.line:
        vertices.append(to_vertex(game, state, action))
        state = next_state(game, state, action)
    return " ".join(vertices)

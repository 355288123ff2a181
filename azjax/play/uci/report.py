"""The `info` lines of a search.

A mate is reported where it is proven: by the first move itself, or by the solver of a
search with `use_solver`. The number of moves is that of the principal variation.
"""

from typing import NamedTuple

from azjax.games.chess import Chess, State
from azjax.games.chess.scores import centipawns
from azjax.games.host import next_state
from azjax.play.text_output import rank_moves
from azjax.players import MoveDecision


class Progress(NamedTuple):
    """A search so far.

    decision: the best move.
    nodes: simulations made.
    seconds: time since the start.
    """

    decision: MoveDecision
    nodes: int
    seconds: float


class Line(NamedTuple):
    """A variation.

    moves: its moves in UCI notation.
    score: such as `cp 31` or `mate 2`.
    """

    moves: list[str]
    score: str


def info_lines(progress: Progress, lines: list[Line]) -> list[str]:
    """Returns an `info` line for each variation."""
    nodes = progress.nodes
    return [
        f"info depth {len(line.moves)} multipv {number} score {line.score} "
        f"nodes {nodes} nps {round(nodes / max(progress.seconds, 1e-3))} "
        f"time {round(1000 * progress.seconds)} pv {' '.join(line.moves)}"
        for number, line in enumerate(lines, start=1)
    ]


def variations(
    game: Chess, state: State, decision: MoveDecision, most: int, *, is_solved: bool
) -> list[Line]:
    """Returns the variations of the chosen move and of the next ones by visits.

    Args:
        game: the game.
        state: the position.
        decision: the player's decision.
        most: number of variations, if so many moves were visited.
        is_solved: whether values of 1 and -1 are proven.
    """
    line = [decision.action]
    if decision.analysis is not None:
        line = [action for action in decision.analysis.line.tolist() if action >= 0]
    ranked = {move.action: move.value for move in rank_moves(decision)[: max(1, most)]}
    value = ranked.pop(decision.action, None)
    if value is None:
        value = decision.value or 0.0
    found = [_variation(game, state, line, value, is_solved=is_solved)]
    return found + [
        _variation(game, state, [action], other, is_solved=is_solved)
        for action, other in ranked.items()
        if other is not None
    ]


def _variation(
    game: Chess, state: State, actions: list[int], value: float, *, is_solved: bool
) -> Line:
    moves, player = [], int(state.current_player)
    for action in actions:
        moves.append(game.action_to_text(state, action))
        state = next_state(game, state, action)
    is_proven = len(moves) == 1 or (is_solved and abs(value) == 1)
    if is_proven and state.outcome:
        wins = int(state.outcome) == 1 - 2 * player
        return Line(
            moves, f"mate {(len(moves) + 1) // 2 if wins else -len(moves) // 2}"
        )
    return Line(moves, f"cp {centipawns(value)}")

"""Reviews of played games: what a player, and a solver, think of every move."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games import Game, GameRecord, State
from azjax.games.host import (
    compiled,
    first_state,
    next_state,
    outcome_probabilities,
    rewards,
)
from azjax.games.reading import game_of, game_texts, replayed
from azjax.play.text_output import side_names
from azjax.players import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    HumanPlayer,
    start_session,
)
from azjax.players.core import choose

POSITIONS_AT_ONCE = 16
# Expected results that a move loses, from -1 to 1, and its mark. Lichess has the same
# thresholds for its winning chances.
MARKS = ((0.3, "??"), (0.2, "?"), (0.1, "?!"))
_BLUNDER = MARKS[0][0]
_EXACT = {1: "win", 0: "draw", -1: "loss"}


class ReviewedMove(NamedTuple):
    """A move of a game, with the reviewer's opinion. An outcome of chance has no mark.

    player: who made it; -1 for an outcome.
    action: the move.
    text: the move in the notation of the game.
    best_action: the move that the reviewer would make; an outcome itself.
    best: the same in the notation.
    before: expected result for player 0 before the move, in [-1, 1].
    after: the same after the move; the mean over the outcomes if chance is next.
    loss: what the move loses for its player, in [0, 2]; 0 for the reviewer's move,
        unless the reviewer finds after it that it was a blunder.
    mark: one of those in `MARKS`, empty for a good move. Where a solver knows the
        results, `??` turns a win into a loss, and `?` a win into a draw or a draw into
        a loss.
    exact_before: -1, 0 or 1, the result for player 0 under perfect play before the
        move; None if it is not known.
    exact_after: the same after the move.
    """

    player: int
    action: int
    text: str
    best_action: int
    best: str
    before: float
    after: float
    loss: float
    mark: str
    exact_before: int | None
    exact_after: int | None


def find_game(path: Path, number: int, game: Game | None) -> tuple[Game, GameRecord]:
    """Returns one game of a file.

    Args:
        path: as for `games.read_games`.
        number: from 1.
        game: the game, whose options replace those in the file.

    Raises:
        ValueError: there is no such game, or it cannot be read, or has no moves.
    """
    texts = game_texts(path, game)
    before = sum(1 for _ in itertools.islice(texts, number - 1))
    chosen = next(texts, None)
    if chosen is None:
        raise ValueError(f"{path} has {before} games: there is no game {number}")
    made = game_of(chosen, game)
    record = replayed(compiled(made), chosen)
    if not record.moves:
        raise ValueError(f"{path}: game {number} has no moves")
    return made, record


def review(
    game: Game,
    moves: Sequence[int],
    reviewer: AnyPlayer,
    solver: AnyPlayer | None = None,
    *,
    seed: int = 0,
) -> Iterator[ReviewedMove]:
    """Yields the moves of a game with the reviewer's opinions.

    Args:
        game: the game.
        moves: legal moves from the initial position.
        reviewer: any player that gives expected results.
        solver: a player that gives exact results, from which the marks then follow.
        seed: of the reviewer's searches.

    Raises:
        ValueError: the reviewer gives no expected results, does not play this game, or
            is a program that cannot continue.
    """
    if isinstance(reviewer, HumanPlayer):
        raise ValueError("a person cannot review: give a player that computes")
    states = [first_state(game)]
    for move in moves:
        states.append(next_state(game, states[-1], move))
    opinions = _opinions(game, states, moves, reviewer, seed)
    solved = itertools.repeat(None)
    if solver is not None:
        solved = _opinions(game, states, moves, solver, seed)
    pairs = itertools.pairwise(zip(opinions, solved))  # noqa: B905, one may be endless
    for ply, (before, after) in enumerate(pairs):
        ((best, value), solved), ((_, value_after), solved_after) = before, after
        state, action = states[ply], moves[ply]
        player = int(state.current_player)
        sign = 1 - 2 * player
        loss = max(0.0, sign * (value - value_after))
        if action == best and loss < _BLUNDER:
            loss = 0.0
        mark = next((mark for least, mark in MARKS if loss >= least), "")
        exact_before = exact_after = None
        if solved is not None and solved_after is not None:
            exact_before, exact_after = round(solved[1]), round(solved_after[1])
            mark = ("", "?", "??")[max(0, sign * (exact_before - exact_after))]
        if action >= game.num_actions:
            player, best, loss, mark = -1, action, 0.0, ""
        yield ReviewedMove(
            player=player,
            action=action,
            text=game.move_to_text(state, action),
            best_action=best,
            best=game.move_to_text(state, best),
            before=value,
            after=value_after,
            loss=loss,
            mark=mark,
            exact_before=exact_before,
            exact_after=exact_after,
        )


def exact_text(move: ReviewedMove) -> str:
    """Returns the results under perfect play for the player who moved, before and after
    the move; empty if they are not known, or for an outcome of chance."""
    if move.exact_before is None or move.exact_after is None or move.player < 0:
        return ""
    sign = 1 - 2 * move.player
    before, after = (
        _EXACT[sign * value] for value in (move.exact_before, move.exact_after)
    )
    return before if before == after else f"{before} to {after}"


def summaries(game: Game, moves: Sequence[ReviewedMove]) -> list[str]:
    """Returns the numbers of marks and the mean loss of each player in one line."""
    lines = []
    for player, side in enumerate(side_names(game)):
        own = [move for move in moves if move.player == player]
        loss = np.mean([move.loss for move in own]) if own else 0.0
        marks = (
            f"{sum(move.mark == mark for move in own)} {mark}"
            for _, mark in reversed(MARKS)
        )
        lines.append(f"{side}: {', '.join(marks)}; loses {loss:.3f} a move")
    return lines


def _opinions(
    game: Game,
    states: Sequence[State],
    moves: Sequence[int],
    player: AnyPlayer,
    seed: int,
) -> Iterator[tuple[int, float]]:
    """Yields a player's move in each position, and its expected result for player 0; -1
    and the result for a finished game; -1 and the mean over the outcomes where a
    position waits for chance."""
    # The player decides in the positions after each outcome.
    outcomes = [_after_outcomes(game, state) for state in states]
    decided = [
        (after, [*moves[:ply], *move])
        for ply, ends in enumerate(outcomes)
        for _, move, after in ends
        if not after.terminated
    ]
    decisions = _decisions(game, decided, player, seed)
    for ends in outcomes:
        found = [
            (-1, rewards(game, after)[0]) if after.terminated else next(decisions)
            for _, _, after in ends
        ]
        action, value = found[0]
        if ends[0][1]:
            chances = [probability for probability, _, _ in ends]
            action, value = (
                -1,
                float(np.average([v for _, v in found], weights=chances)),
            )
        yield action, value


def _after_outcomes(game: Game, state: State) -> list[tuple[float, list[int], State]]:
    """Returns the probability, the move and the position of each outcome of chance; 1,
    no move and the position itself if it waits for none."""
    probabilities = outcome_probabilities(game, state).tolist()
    return [
        (probability, [move], next_state(game, state, move))
        for move, probability in enumerate(probabilities, start=game.num_actions)
        if probability
    ] or [(1.0, [], state)]


def _decisions(
    game: Game,
    positions: Sequence[tuple[State, Sequence[int]]],
    player: AnyPlayer,
    seed: int,
) -> Iterator[tuple[int, float]]:
    """Yields a player's move in each unfinished position, of which the moves that led
    to it are given, and its expected result for player 0.

    A program decides one position at a time, a compiled player batches of one size.
    """
    signs = [1 - 2 * int(state.current_player) for state, _ in positions]
    if isinstance(player, ExternalPlayer):
        try:
            with contextlib.closing(start_session(player, game, seed)) as session:
                for (state, moves), sign in zip(positions, signs, strict=True):
                    decision = session.choose(state, moves)
                    if decision.value is None:
                        raise ValueError("the reviewer gives no expected results")
                    yield decision.action, sign * decision.value
        except ForfeitError as error:
            raise ValueError(f"the reviewer cannot go on: {error}") from error
    else:
        rng_key = jax.random.key(seed)
        for first in range(0, len(positions), POSITIONS_AT_ONCE):
            batch = [state for state, _ in positions[first : first + POSITIONS_AT_ONCE]]
            filled = [*batch, *[batch[-1]] * (POSITIONS_AT_ONCE - len(batch))]
            stacked: Any = jax.tree.map(lambda *leaves: np.stack(leaves), *filled)
            choice = choose(player, jax.random.fold_in(rng_key, first), stacked)
            actions, values = np.asarray(choice.action), np.asarray(choice.value)
            found = zip(actions.tolist(), values.tolist(), signs[first:], strict=False)
            for action, value, sign in itertools.islice(found, len(batch)):
                yield action, sign * value

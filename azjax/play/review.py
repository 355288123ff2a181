"""Reviews of played games: what a player, and a solver, think of every move."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games import Game, State
from azjax.games.host import first_state, next_state, rewards
from azjax.players import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    HumanPlayer,
    Player,
    start_session,
)
from azjax.players.core import choose
from azjax.players.perfect import perfect_player

POSITIONS_AT_ONCE = 16
# Expected results that a move loses, from -1 to 1, and its mark. Lichess has the same
# thresholds for its winning chances.
MARKS = ((0.3, "??"), (0.2, "?"), (0.1, "?!"))


class ReviewedMove(NamedTuple):
    """A move of a game, with the reviewer's opinion.

    player: who made it.
    action: the move.
    text: the move in the notation of the game.
    best: the move that the reviewer would make, in the notation.
    before: expected result for player 0 before the move, in [-1, 1].
    after: the same after the move.
    loss: what the move loses for its player, in [0, 2]; 0 for the reviewer's move.
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
    best: str
    before: float
    after: float
    loss: float
    mark: str
    exact_before: int | None
    exact_after: int | None


class _Opinion(NamedTuple):
    """What a player thinks of a position.

    action: its move.
    value: expected result for player 0.
    """

    action: int
    value: float


def review(
    game: Game,
    moves: Sequence[int],
    reviewer: AnyPlayer,
    *,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
) -> list[ReviewedMove]:
    """Reviews the moves of a game.

    Where azjax has a solver of the game, and it is installed, the exact results are
    given too, and the marks follow from them.

    Args:
        game: the game.
        moves: legal actions from the initial position.
        reviewer: any player that gives expected results.
        seed: of the reviewer's searches.
        report: called with lines of progress.

    Raises:
        ValueError: the reviewer gives no expected results, does not play this game, or
            is a program that cannot continue.
    """
    states = [first_state(game)]
    for action in moves:
        states.append(next_state(game, states[-1], action))
    if isinstance(reviewer, HumanPlayer):
        raise ValueError("a person cannot review: give a player that computes")
    report = report or _no_report
    opinions = list(_opinions(game, states, moves, reviewer, seed=seed, report=report))
    solver = perfect_player(game)
    exact: list[int | None] = [None] * len(states)
    if solver is not None:
        solved = _opinions(game, states, moves, solver, seed=seed, report=_no_report)
        exact = [round(opinion.value) for opinion in solved]
    return [
        _reviewed(game, states[ply], action, opinions[ply : ply + 2], exact[ply:])
        for ply, action in enumerate(moves)
    ]


def _no_report(text: str) -> None:
    del text


def _reviewed(
    game: Game,
    state: State,
    action: int,
    opinions: Sequence[_Opinion],
    exact: Sequence[int | None],
) -> ReviewedMove:
    """Returns a move with the opinions before and after it."""
    before, after = opinions
    player = int(state.current_player)
    sign = 1 - 2 * player
    loss = 0.0
    if action != before.action:
        loss = max(0.0, sign * (before.value - after.value))
    mark = next((mark for least, mark in MARKS if loss >= least), "")
    exact_before, exact_after = exact[:2]
    if exact_before is not None and exact_after is not None:
        mark = ("", "?", "??")[max(0, sign * (exact_before - exact_after))]
    return ReviewedMove(
        player,
        action,
        game.action_to_text(state, action),
        game.action_to_text(state, before.action),
        before.value,
        after.value,
        loss,
        mark,
        exact_before,
        exact_after,
    )


def _opinions(
    game: Game,
    states: Sequence[State],
    moves: Sequence[int],
    player: AnyPlayer,
    *,
    seed: int,
    report: Callable[[str], None],
) -> Iterator[_Opinion]:
    """Yields a player's opinions of positions; a finished game has its result."""
    unfinished = [state for state in states if not state.terminated]
    if isinstance(player, ExternalPlayer):
        found = _one_by_one(game, unfinished, moves, player, seed)
    else:
        found = _batched(unfinished, player, seed)
    for number, (state, (action, value)) in enumerate(
        zip(unfinished, found, strict=True), 1
    ):
        yield _Opinion(action, value * (1 - 2 * int(state.current_player)))
        if number % POSITIONS_AT_ONCE == 0 and number < len(unfinished):
            report(f"{number} of {len(unfinished)} positions")
    for state in states[len(unfinished) :]:
        yield _Opinion(-1, rewards(game, state)[0])


def _one_by_one(
    game: Game,
    states: Sequence[State],
    moves: Sequence[int],
    player: ExternalPlayer,
    seed: int,
) -> Iterator[tuple[int, float]]:
    """Yields moves and expected results for the player to move."""
    with contextlib.ExitStack() as stack:
        try:
            session = start_session(player, game, seed)
            stack.callback(session.close)
            for ply, state in enumerate(states):
                decision = session.choose(state, moves[:ply])
                if decision.value is None:
                    raise ValueError("the reviewer gives no expected results")
                yield decision.action, decision.value
        except ForfeitError as error:
            raise ValueError(f"the reviewer cannot go on: {error}") from error


def _batched(
    states: Sequence[State], player: Player, seed: int
) -> Iterator[tuple[int, float]]:
    """Yields the same of a compiled player, in batches of one size."""
    rng_key = jax.random.key(seed)
    for first in range(0, len(states), POSITIONS_AT_ONCE):
        batch = states[first : first + POSITIONS_AT_ONCE]
        filled = [*batch, *[batch[-1]] * (POSITIONS_AT_ONCE - len(batch))]
        stacked: Any = jax.tree.map(lambda *leaves: np.stack(leaves), *filled)
        choice = choose(player, jax.random.fold_in(rng_key, first), stacked)
        actions, values = np.asarray(choice.action), np.asarray(choice.value)
        yield from itertools.islice(
            zip(actions.tolist(), values.tolist(), strict=True), len(batch)
        )

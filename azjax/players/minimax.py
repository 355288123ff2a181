"""The player that searches all moves to a fixed depth, by alpha-beta."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State, random_action
from azjax.players.core import Choice, uniform
from azjax.players.lookahead import after_each_move, result_of_mover
from azjax.search.keys import draw

MAX_DEPTH = 32  # moves

# A result counts more than any guess, and the more the sooner it comes.
_RESULT = 2.0
_LATER = 2.0**-10
# Less than what tells two scores apart.
_HAIR = 2.0**-20


@struct.dataclass
class MinimaxPlayer:
    """Searches `depth` moves ahead, and there takes the game's own guess,
    `Game.evaluate`.

    It wins as soon and loses as late as it can see, and plays at random among the moves
    that are equally good. The value that it reports is the minimax value: 1, 0 or -1
    where it sees the end of the game.
    """

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)
    depth: int = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        scores = jax.vmap(self._scores)(states)
        top = scores.max(axis=-1)
        best = scores == top[:, None]
        return Choice(
            action=draw(random_action, rng_key, best),
            policy=uniform(best),
            value=jnp.clip(top, -1.0, 1.0),
        )

    def _scores(self, state: State) -> jax.Array:
        """Returns `[A]`: the score of the best moves of one position, and something
        below it for the others."""
        stack = _first_stack(self.game, state, self.depth)
        stack = jax.lax.while_loop(
            lambda stack: stack.level >= 0,
            lambda stack: _go_on(self.game, stack, self.depth),
            stack,
        )
        return stack.root_scores


@struct.dataclass
class _Stack:
    """The positions on the way to the one that is looked at now, D levels.

    Scores are those of the player to move at the level.

    level: `[]` int32; where the search is; -1 when it is done.
    states: leaves `[D, ...]`.
    move: `[D]` int32; the move that is looked at now.
    to_try: `[D, A]` float32; guesses at the moves still to be searched, -inf for the
        others.
    best: `[D]` float32; the highest score so far.
    beta: `[D]` float32; at this score the opponent has something better before.
    root_scores: `[A]` float32; what was found of the moves at level 0.
    """

    level: jax.Array
    states: State
    move: jax.Array
    to_try: jax.Array
    best: jax.Array
    beta: jax.Array
    root_scores: jax.Array


def _first_stack(game: Game, state: State, depth: int) -> _Stack:
    final, to_try = _expand(game, state, jnp.int32(0), depth)
    minus_infinity = jnp.full(depth, -jnp.inf, jnp.float32)
    return _Stack(
        level=jnp.int32(0),
        states=jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (depth, *leaf.shape)), state
        ),
        move=jnp.zeros(depth, jnp.int32),
        to_try=jnp.full((depth, game.num_actions), -jnp.inf, jnp.float32)
        .at[0]
        .set(to_try),
        best=minus_infinity.at[0].set(final.max()),
        # All equally good moves are wanted here, so that the bound is no sharp one.
        beta=minus_infinity.at[0].set(_soonest_unseen_win(0) + _HAIR),
        root_scores=final,
    )


def _go_on(game: Game, stack: _Stack, depth: int) -> _Stack:
    """Leaves a position that is done; goes on from one that is not."""
    stack = _leave(stack)
    level = stack.level
    move = stack.to_try[level].argmax().astype(jnp.int32)
    here = jax.tree.map(lambda leaf: leaf[level], stack.states)
    after = game.step(here, move)
    final, to_try = _expand(game, after, level + 1, depth)
    # The alpha of a level is the beta of the one above.
    above = jnp.where(level > 0, -stack.beta[level - 1], -jnp.inf)
    alpha = jnp.where(
        level > 0, jnp.maximum(stack.best[level], above), stack.best[level] - _HAIR
    )
    goes_on = ~_is_done(stack, level)
    at = jnp.where(goes_on, level, depth)
    below = jnp.where(goes_on, level + 1, depth)

    def put(array, new):
        return array.at[below].set(new, mode="drop")

    return dataclasses.replace(
        stack,
        level=jnp.where(goes_on, level + 1, level),
        states=jax.tree.map(put, stack.states, after),
        move=stack.move.at[at].set(move, mode="drop"),
        to_try=put(stack.to_try.at[at, move].set(-jnp.inf, mode="drop"), to_try),
        best=put(stack.best, final.max()),
        beta=put(stack.beta, jnp.minimum(-alpha, _soonest_unseen_win(level + 1))),
    )


def _leave(stack: _Stack) -> _Stack:
    """Tells the level above what came out of a position that is done."""
    level = stack.level
    is_done = _is_done(stack, level)
    score = -stack.best[level]
    above = jnp.where(is_done & (level > 0), level - 1, stack.best.size)
    at_root = jnp.where(is_done & (level == 1), stack.move[0], stack.root_scores.size)
    return dataclasses.replace(
        stack,
        level=jnp.where(is_done, level - 1, level),
        best=stack.best.at[above].max(score, mode="drop"),
        root_scores=stack.root_scores.at[at_root].set(score, mode="drop"),
    )


def _is_done(stack: _Stack, level: jax.Array) -> jax.Array:
    is_searched = stack.to_try[level].max() == -jnp.inf
    return is_searched | (stack.best[level] >= stack.beta[level]) | (level < 0)


def _expand(
    game: Game, state: State, level: jax.Array, depth: int
) -> tuple[jax.Array, jax.Array]:
    """Looks at all moves of one position.

    Returns:
        `[A]` the scores of the moves that need no search, because they end the game or
        reach the depth, and `[A]` guesses at the others; each -inf elsewhere.
    """

    def look(after):
        result = result_of_mover(game, state, after) * _result_score(level + 1)
        guess = -jnp.clip(game.evaluate(after), -1.0, 1.0)
        return jnp.where(after.terminated, result, guess), after.terminated

    scores, is_over = after_each_move(game, state, look, (-jnp.inf, False))
    is_final = is_over | (level == depth - 1)
    return jnp.where(is_final, scores, -jnp.inf), jnp.where(is_final, -jnp.inf, scores)


def _result_score(num_moves: int | jax.Array) -> jax.Array:
    """Returns the score of a win after so many moves from the root."""
    return _RESULT - _LATER * jnp.float32(num_moves)


def _soonest_unseen_win(level: int | jax.Array) -> jax.Array:
    """Returns the highest score that a move to be searched at a level can have: the
    opponent has moved first before its mover can win."""
    return _result_score(level + 3)

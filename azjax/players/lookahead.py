"""Players that look ahead without a search tree, one move or by alpha-beta."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.games.core import select
from azjax.players.core import Choice
from azjax.players.model import moves_again
from azjax.players.simple import choose_uniformly

PORTION = 64  # moves evaluated at once
_GREEDY_PORTION = 8  # moves, each with up to 64 replies
MAX_DEPTH = 32  # moves

# A win scores more than any heuristic value, and the sooner the more.
_WIN_SCORE = 2.0
_MOVE_PENALTY = 2.0**-10
_EPSILON = 2.0**-20  # smaller than the difference between two scores
# In games with chance, means of scores are expected results: a win scores 1, less an
# amount that is too small to matter, and heuristic values are a little below.
_MEAN_PENALTY = 2.0**-18
_HIGHEST_MEAN = 1 - 2.0**-12


def after_each_move(
    game: Game,
    state: State,
    evaluate: Callable[[State], Any],
    illegal: Any,
    *,
    portion: int = PORTION,
) -> Any:
    """Evaluates the position after each legal move.

    Legal moves are evaluated in portions: of chess's 4672 actions about 30 are legal,
    and the successors of all actions of many games would not fit in memory.

    Args:
        game: the game, with A actions.
        state: a position that is not terminated.
        evaluate: maps a position to numbers, leaves `[]`.
        illegal: the numbers of illegal actions, leaves `[]`.
        portion: number of legal moves evaluated at once.

    Returns:
        The numbers of all actions, leaves `[A]`.
    """
    num_actions = game.num_actions
    portion = min(portion, num_actions)
    legal = game.legal_action_mask(state)
    # Padded with `num_actions`, which is out of range.
    size = -(-num_actions // portion) * portion
    moves = jnp.flatnonzero(legal, size=size, fill_value=num_actions)

    def evaluate_some(carry):
        start, found = carry
        some = jax.lax.dynamic_slice(moves, (start,), (portion,))
        seen = jax.vmap(lambda move: evaluate(game.step(state, move)))(some)
        found = jax.tree.map(
            lambda all_, new: all_.at[some].set(new, mode="drop"), found, seen
        )
        return start + portion, found

    found = jax.tree.map(
        lambda leaf, seen: jnp.full(num_actions, leaf, seen.dtype),
        illegal,
        jax.eval_shape(evaluate, state),
    )
    return jax.lax.while_loop(
        lambda carry: carry[0] < legal.sum(), evaluate_some, (jnp.int32(0), found)
    )[1]


def after_each_outcome(game: Game, state: State) -> tuple[State, jax.Array]:
    """Returns the positions after each outcome of chance, leaves `[K, ...]`, and their
    `[K]` float32 probabilities. For a position that does not wait for chance, these are
    the position itself, and 1 for the first of them."""
    probabilities = jnp.asarray(game.chance(state))
    waits = (probabilities > 0).any()
    outcomes = jnp.arange(game.num_outcomes)
    after = jax.vmap(game.chance_step, (None, 0))(state, outcomes)
    after = jax.vmap(select, (None, 0, None))(waits, after, state)
    return after, jnp.where(waits, probabilities, outcomes == 0)


def mean_after_chance(
    game: Game, state: State, evaluate: Callable[[State], jax.Array]
) -> jax.Array:
    """Returns `[]`, the mean of `evaluate` over the outcomes of chance that a position
    waits for; `evaluate(state)` if it waits for none."""
    if not game.num_outcomes:
        return evaluate(state)
    after, probabilities = after_each_outcome(game, state)
    return (probabilities * jax.vmap(evaluate)(after)).sum()


def result_of_mover(game: Game, before: State, after: State) -> jax.Array:
    """Returns `[]` float32, the result in `after` for the player to move in `before`; 0
    if `after` is not terminated."""
    return game.rewards(after)[before.current_player]


@struct.dataclass
class GreedyPlayer:
    """Plays a winning move, else a move with the fewest immediately winning replies.

    A move after which the player moves again has no replies. Ties are broken at random.
    The value is 1 if the player wins at once, -1 if the opponent can win at its next
    move, else 0. In games with chance, the number of winning replies is its mean over
    the outcomes, -1 for a win, and the value is minus the number, at least -1.
    """

    draws_in_lanes: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        dangers = jax.vmap(self._dangers)(states)
        least = dangers.min(axis=-1)
        best = dangers == least[:, None]
        value = -jnp.sign(least).astype(jnp.float32)
        if self.game.num_outcomes:  # means have rounding errors
            best = dangers < least[:, None] + _EPSILON * self.game.num_actions
            value = -jnp.minimum(least, 1.0)
        return choose_uniformly(rng_key, best, value)

    def _dangers(self, state: State) -> jax.Array:
        """Returns `[A]` int32, the number of winning replies to each move; -1 for a
        winning move, `A + 1` for a losing one, the largest int if illegal. Float32 in
        games with chance."""
        game = self.game

        def dangers(after):
            def wins(end):
                return result_of_mover(game, after, end) > 0

            result = result_of_mover(game, state, after)
            reply_wins = after_each_move(
                game, after, lambda reply: mean_after_chance(game, reply, wins), False
            )
            at_end = jnp.where(result < 0, game.num_actions + 1, -result)
            at_end = at_end.astype(jnp.int32)
            replies = jnp.where(moves_again(game, state, after), 0, reply_wins.sum())
            return jnp.where(after.terminated, at_end, replies)

        illegal = jnp.iinfo(jnp.int32).max
        return after_each_move(
            game,
            state,
            lambda after: mean_after_chance(game, after, dangers),
            illegal,
            portion=_GREEDY_PORTION,
        )


@struct.dataclass
class MinimaxPlayer:
    """Searches `depth` moves ahead and evaluates leaves by the heuristic
    `Game.evaluate`.

    It prefers fast wins and late losses and breaks ties at random. The value is the
    minimax value; 1, 0 or -1 if the search reaches the end of the game. In games with
    chance, the value of a move is the mean over the outcomes after it (expectiminimax),
    and all outcomes are searched, after the last move too.
    """

    draws_in_lanes: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)
    depth: int = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        scores = jax.vmap(self._scores)(states)
        top = scores.max(axis=-1)
        best = scores == top[:, None]
        if self.game.num_outcomes:  # means have rounding errors
            best = scores > top[:, None] - _EPSILON / 2
        return choose_uniformly(rng_key, best, jnp.clip(top, -1.0, 1.0))

    def _scores(self, state: State) -> jax.Array:
        """Returns `[A]` scores: exact for the best moves, lower for all others."""
        game, depth = self.game, self.depth
        final, to_try = _expand(game, state, jnp.int32(0), depth)
        lowest = jnp.full(depth, -jnp.inf, jnp.float32)
        chance = None
        if game.num_outcomes:
            chance = _Chance(
                probability=jnp.ones(depth, jnp.float32),
                to_try=jnp.zeros((depth, game.num_outcomes), jnp.float32),
                mean=jnp.zeros(depth, jnp.float32),
            )
        stack = _Stack(
            level=jnp.int32(0),
            states=jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf, (depth, *leaf.shape)), state
            ),
            move=jnp.zeros(depth, jnp.int32),
            to_try=jnp.full((depth, game.num_actions), -jnp.inf, jnp.float32)
            .at[0]
            .set(to_try),
            best=lowest.at[0].set(final.max()),
            # A loose bound at the root, because all best moves must be found.
            alpha=lowest,
            beta=lowest.at[0].set(_score_bound(game, 0) + _EPSILON),
            keeps_turn=jnp.zeros(depth, bool),
            root_scores=final,
            chance=chance,
        )
        stack = jax.lax.while_loop(
            lambda stack: stack.level >= 0,
            lambda stack: _step(game, stack, depth),
            stack,
        )
        return stack.root_scores


@struct.dataclass
class _Chance:
    """The outcomes after the move being searched at each of D levels.

    probability: `[D]` float32; of the outcome being searched; 1 after a move that leads
        to no outcome.
    to_try: `[D, K]` float32; probabilities of the outcomes not searched yet, else 0.
    mean: `[D]` float32; sum of the scores so far, weighted by probability.
    """

    probability: jax.Array
    to_try: jax.Array
    mean: jax.Array


@struct.dataclass
class _Stack:
    """The path of the depth-first search, D levels.

    Scores are from the point of view of the player to move at the level.

    level: `[]` int32; current level; -1 at the end.
    states: leaves `[D, ...]`.
    move: `[D]` int32; the move being searched.
    to_try: `[D, A]` float32; heuristic scores of the moves not searched yet, else -inf.
    best: `[D]` float32; highest score so far.
    alpha: `[D]` float32; a score that the player to move can reach above.
    beta: `[D]` float32; cut-off score, at which the opponent has a better move above.
    keeps_turn: `[D]` bool; whether the player to move made the move to the level.
    root_scores: `[A]` float32; scores of the moves at level 0.
    chance: None in games without chance.
    """

    level: jax.Array
    states: State
    move: jax.Array
    to_try: jax.Array
    best: jax.Array
    alpha: jax.Array
    beta: jax.Array
    keeps_turn: jax.Array
    root_scores: jax.Array
    chance: _Chance | None


def _step(game: Game, stack: _Stack, depth: int) -> _Stack:
    """Backs up a finished position, or descends into the best move not searched yet."""
    # A finished position gives its score to the level above.
    level = stack.level
    is_done = _is_done(stack, level)
    score = jnp.where(stack.keeps_turn[level], 1, -1) * stack.best[level]
    above = jnp.where(is_done & (level > 0), level - 1, depth)
    at_root = jnp.where(is_done & (level == 1), stack.move[0], game.num_actions)
    chance = stack.chance
    if chance is not None:
        # The move has its score when all outcomes are searched.
        mean = chance.mean[level - 1] + chance.probability[level - 1] * score
        means = chance.mean.at[above].set(mean, mode="drop")
        chance = dataclasses.replace(chance, mean=means)
        score = jnp.where(chance.to_try[level - 1].any(), -jnp.inf, mean)
    stack = dataclasses.replace(
        stack,
        level=jnp.where(is_done, level - 1, level),
        best=stack.best.at[above].max(score, mode="drop"),
        root_scores=stack.root_scores.at[at_root].set(score, mode="drop"),
        chance=chance,
    )
    # Another one is searched further, by its best move.
    level = stack.level
    move = stack.to_try[level].argmax().astype(jnp.int32)
    here = jax.tree.map(lambda leaf: leaf[level], stack.states)
    if chance is None:
        after = game.step(here, move)
    else:  # or by the next outcome of the same move
        is_same = chance.to_try[level].any()
        move = jnp.where(is_same, stack.move[level], move)
        ends, probabilities = after_each_outcome(game, game.step(here, move))
        left = jnp.where(is_same, chance.to_try[level], probabilities)
        outcome = left.argmax()
        after = jax.tree.map(lambda leaf: leaf[outcome], ends)
        at = jnp.where(_is_done(stack, level), depth, level)
        mean = jnp.where(is_same, chance.mean[level], 0.0)
        chance = _Chance(
            probability=chance.probability.at[at].set(left[outcome], mode="drop"),
            to_try=chance.to_try.at[at].set(left.at[outcome].set(0), mode="drop"),
            mean=chance.mean.at[at].set(mean, mode="drop"),
        )
    final, to_try = _expand(game, after, level + 1, depth)
    best, beta = stack.best[level], stack.beta[level]
    alpha = jnp.where(level > 0, jnp.maximum(best, stack.alpha[level]), best - _EPSILON)
    if chance is not None:
        # The window in which the score of the outcome matters, as the outcomes not
        # searched yet have scores in [-1, 1] (Star1; Ballard 1983).
        rest, mean = chance.to_try[level].sum(), chance.mean[level]
        alpha = (alpha - mean - rest) / chance.probability[level]
        beta = (beta - mean + rest) / chance.probability[level]
        # An outcome may end the game.
        result = result_of_mover(game, after, after) * _result_score(game, level + 1)
        final = jnp.where(after.terminated, result, final)
        to_try = jnp.where(after.terminated, -jnp.inf, to_try)
    # The other player sees the window from its side.
    keeps_turn = moves_again(game, here, after)
    beta_below = jnp.where(keeps_turn, beta, -alpha)
    beta_below = jnp.minimum(beta_below, _score_bound(game, level + 1))
    descends = ~_is_done(stack, level)
    at = jnp.where(descends, level, depth)
    below = jnp.where(descends, level + 1, depth)

    def put(array, new):
        return array.at[below].set(new, mode="drop")

    return dataclasses.replace(
        stack,
        level=jnp.where(descends, level + 1, level),
        states=jax.tree.map(put, stack.states, after),
        move=stack.move.at[at].set(move, mode="drop"),
        to_try=put(stack.to_try.at[at, move].set(-jnp.inf, mode="drop"), to_try),
        best=put(stack.best, final.max()),
        alpha=put(stack.alpha, jnp.where(keeps_turn, alpha, -beta)),
        beta=put(stack.beta, beta_below),
        keeps_turn=put(stack.keeps_turn, keeps_turn),
        chance=chance,
    )


def _is_done(stack: _Stack, level: jax.Array) -> jax.Array:
    is_searched = stack.to_try[level].max() == -jnp.inf
    if stack.chance is not None:
        is_searched &= ~stack.chance.to_try[level].any()
    return is_searched | (stack.best[level] >= stack.beta[level]) | (level < 0)


def _expand(
    game: Game, state: State, level: jax.Array, depth: int
) -> tuple[jax.Array, jax.Array]:
    """Evaluates all moves of one position.

    Returns:
        `[A]` scores of the moves that end the game or reach the depth, and `[A]`
        heuristic scores of the other moves; -inf elsewhere.
    """

    def score(after):
        result = result_of_mover(game, state, after) * _result_score(game, level + 1)
        sign = jnp.where(moves_again(game, state, after), 1.0, -1.0)
        highest = _HIGHEST_MEAN if game.num_outcomes else 1.0
        guess = sign * jnp.clip(game.evaluate(after), -highest, highest)
        return jnp.where(after.terminated, result, guess)

    def evaluate(after):
        return mean_after_chance(game, after, score), after.terminated

    scores, is_over = after_each_move(game, state, evaluate, (-jnp.inf, False))
    is_final = is_over | (level == depth - 1)
    return jnp.where(is_final, scores, -jnp.inf), jnp.where(is_final, -jnp.inf, scores)


def _result_score(game: Game, num_moves: int | jax.Array) -> jax.Array:
    """Returns the score of a win `num_moves` moves from the root."""
    win, penalty = _WIN_SCORE, _MOVE_PENALTY
    if game.num_outcomes:
        win, penalty = 1.0, _MEAN_PENALTY
    return win - penalty * jnp.float32(num_moves)


def _score_bound(game: Game, level: int | jax.Array) -> jax.Array:
    """Returns the highest score of a move that must be searched at a level: its mover
    can win at its next move at the earliest, or by an outcome after the move."""
    if game.num_outcomes:
        return _result_score(game, level + 1)
    return _result_score(game, level + (2 if game.has_extra_turns else 3))

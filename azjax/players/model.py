"""The model for search and self-play: a game with a network.

The types are those of mctx: the `embedding` is the game state, `prior_logits` are the
policy logits, and `recurrent_fn` makes a move and evaluates the new position.

Its actions are edges: an edge of a node stands for an action. Games with many more
actions than legal ones, as chess with 4,672 and at most 218, declare
`max_legal_actions`. Their nodes have edges for the legal actions only: edge `e` of a
node is the `e`-th of its legal actions, in ascending order, and the states of the trees
are of the type `ListedState`. A tree then takes a twentieth of the memory, and a
selection reads as much less. In the other games edge `e` is action `e`.

Shapes: A actions, E edges.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from flax import struct

from azjax.games import Game, State
from azjax.games.chance import after_outcome, outcome_probabilities, random_outcome
from azjax.games.core import select
from azjax.networks import (
    Network,
    Variables,
    expected_value,
    predict,
    result_probabilities,
)
from azjax.search import Chance, ChanceModel, ChanceTree, Model, SearchConfig, Tree
from azjax.search.keys import draw

_LOWEST = np.finfo(np.float32).min
_WORD = 32
_BITS = np.uint32(1) << np.arange(_WORD, dtype=np.uint32)


@struct.dataclass
class ListedState:
    """Positions with their legal actions.

    state: leaves `[..., *]`.
    actions: `[..., E]` unsigned integers, the legal actions, ascending, then A.
    """

    state: Any
    actions: jax.Array


SearchState = Any  # a game's `State`, or `ListedState`; Any as in the types of mctx


def num_edges(game: Game) -> int:
    """Returns E, the edges of each node in searches of a game."""
    return max(game.max_legal_actions or game.num_actions, game.num_outcomes)


def check_search(game: Game, search: SearchConfig) -> None:
    """Raises ValueError if a game cannot be searched with these settings."""
    if search.use_solver and game.num_outcomes:
        raise ValueError(
            "search.use_solver must be False for a game with chance, such as "
            f"{game!r}: True"
        )


def to_search(game: Game, states: State, legal: jax.Array | None = None) -> SearchState:
    """Returns B positions as states of a search.

    Args:
        game: the game.
        states: the positions, leaves `[B, ...]`.
        legal: `[B, A]` bool, the legal actions, if they are known already.
    """
    size = num_edges(game)
    if size == game.num_actions:
        return states
    if legal is None:
        legal = jax.vmap(game.legal_action_mask)(states)
    listed = jax.vmap(lambda mask: _indices(mask, size))(legal)
    dtype = np.min_scalar_type(game.num_actions)
    return ListedState(state=states, actions=listed.astype(dtype))


def _indices(mask: jax.Array, size: int) -> jax.Array:
    """Returns `[size]` int32: the places of the True in a mask `[A]`, ascending, then
    A. The same as `jnp.nonzero`, in a tenth of the time on a CPU."""
    bits = jnp.pad(mask, (0, -mask.size % _WORD)).reshape(-1, _WORD)
    words = jnp.where(bits, _BITS, np.uint32(0)).sum(axis=1, dtype=jnp.uint32)
    ends = jnp.cumsum(_count(words))  # True up to the end of each word
    number = jnp.arange(size)
    place = jnp.searchsorted(ends, number, side="right", method="scan_unrolled")
    word, end = words[place], ends[place]  # the last word where there is none
    rank = number - (end - _count(word))
    # The bit of that rank in the word, by halving.
    bit, width = jnp.zeros_like(rank), _WORD // 2
    while width:
        half = word >> bit.astype(jnp.uint32) & np.uint32((1 << width) - 1)
        is_above = rank >= _count(half)
        rank -= jnp.where(is_above, _count(half), 0)
        bit += jnp.where(is_above, width, 0)
        width //= 2
    return jnp.where(place < words.size, _WORD * place + bit, mask.size)


def _count(words: jax.Array) -> jax.Array:
    return jax.lax.population_count(words).astype(jnp.int32)


def without_actions(states: SearchState) -> State:
    """Returns the positions of states of a search."""
    return states.state if isinstance(states, ListedState) else states


def like_search(states: State, other: SearchState) -> SearchState:
    """Returns B positions that wait for chance as states of a search, of the type of
    other ones; their edges are outcomes, so that no actions are listed."""
    if not isinstance(other, ListedState):
        return states
    return ListedState(state=states, actions=jnp.zeros_like(other.actions))


def at_edges(states: SearchState, numbers: jax.Array, fill: Any) -> jax.Array:
    """Returns `[B, E]` numbers of the edges of B states, `fill` where there is no edge.

    Args:
        states: B states of a search.
        numbers: `[B, A]`, of the actions.
        fill: a number.
    """
    if not isinstance(states, ListedState):
        return numbers
    game = jnp.arange(len(numbers))[:, None]
    return numbers.at[game, states.actions].get(mode="fill", fill_value=fill)


def by_action(states: SearchState, numbers: jax.Array, num_actions: int) -> jax.Array:
    """Returns `[B, A]` numbers of the actions, 0 where an action has no edge.

    Args:
        states: B states of a search.
        numbers: `[B, E]`, of the edges.
        num_actions: A.
    """
    if not isinstance(states, ListedState):
        return numbers
    game = jnp.arange(len(numbers))[:, None]
    zeros = jnp.zeros((len(numbers), num_actions), numbers.dtype)
    return zeros.at[game, states.actions].set(numbers, mode="drop")


def action_of(states: SearchState, edge: jax.Array) -> jax.Array:
    """Returns `[B]` int32, the actions of edges of B states, one each."""
    if not isinstance(states, ListedState):
        return edge
    return jnp.take_along_axis(states.actions, edge[:, None], axis=1)[:, 0].astype(
        jnp.int32
    )


def moves_in(game: Game, tree: Tree, node: jax.Array, edge: jax.Array) -> jax.Array:
    """Returns the moves of edges in B trees: actions, or A + k for outcome k of chance.

    Args:
        game: the game.
        tree: the trees.
        node: `[B, ...]` int32; nodes of each tree.
        edge: `[B, ...]` int32; an edge of each of these nodes.

    Returns:
        `[B, ...]` int32.
    """
    states, moves = tree.embeddings, edge
    row = jnp.arange(len(node)).reshape(-1, *(1,) * (node.ndim - 1))
    if isinstance(states, ListedState):
        moves = states.actions[row, node, edge].astype(jnp.int32)
    if isinstance(tree, ChanceTree):
        moves = jnp.where(tree.is_chance[row, node], game.num_actions + edge, moves)
    return moves


def evaluate(
    game: Game, network: Network, variables: Variables, states: State
) -> tuple[jax.Array, jax.Array]:
    """Evaluates B positions with the network.

    Returns:
        `[B, A]` float32 policy logits, the lowest float where illegal, and `[B, 3]`
        float32 probabilities of win, draw and loss for the player to move.
    """
    observation = jax.vmap(game.observe)(states)
    prediction = predict(network, variables, observation)
    logits = _mask_illegal(game, prediction.policy_logits, states)
    return logits, result_probabilities(prediction.value_logits)


def evaluate_symmetries(
    game: Game, network: Network, variables: Variables, states: State
) -> tuple[jax.Array, jax.Array]:
    """Evaluates B positions as `evaluate` does, under each of the game's S symmetries.

    Returns:
        The outputs of `evaluate`: means of the policy logits and of the probabilities.
    """
    observation = jax.vmap(game.observe)(states)
    images = [symmetry.observation(observation) for symmetry in game.symmetries]
    prediction = predict(network, variables, jnp.concatenate(images))
    logits, result = jax.tree.map(
        lambda output: output.reshape(len(images), -1, output.shape[-1]),
        (prediction.policy_logits, result_probabilities(prediction.value_logits)),
    )
    inverses = np.stack([np.argsort(symmetry.actions) for symmetry in game.symmetries])
    logits = jnp.take_along_axis(logits, inverses[:, None], axis=-1).mean(axis=0)
    return _mask_illegal(game, logits, states), result.mean(axis=0)


def _mask_illegal(game: Game, logits: jax.Array, states: State) -> jax.Array:
    legal = jax.vmap(game.legal_action_mask)(states)
    return jnp.where(legal, logits, _LOWEST)


def is_illegal(logits: jax.Array) -> jax.Array:
    """Returns bool, where outputs of `evaluate`, or prior logits made of them, are
    those of illegal actions, or of no action; NaN, of a broken network, is not."""
    return logits == _LOWEST


def make_root(
    game: Game, policy_logits: jax.Array, result: jax.Array, states: State
) -> mctx.RootFnOutput:
    """Returns the search root of B positions from the outputs of `evaluate`.

    Its `prior_logits` are `[B, E]`, the lowest float where there is no legal action.
    """
    embedding, prior_logits = _with_edges(game, states, policy_logits)
    # A dictionary, because type checkers do not see the fields of mctx's types.
    fields = {
        "prior_logits": prior_logits,
        "value": expected_value(result),
        "embedding": embedding,
    }
    return mctx.RootFnOutput(**fields)


def _with_edges(
    game: Game, states: State, policy_logits: jax.Array
) -> tuple[SearchState, jax.Array]:
    """Returns B positions as states of a search, and their `[B, E]` prior logits."""
    embedding = to_search(game, states, ~is_illegal(policy_logits))
    return embedding, at_edges(embedding, policy_logits, _LOWEST)


def make_recurrent_fn(game: Game, network: Network) -> Model:
    """Returns the model: `(variables, rng_key, edge, states) -> (output, states)`; see
    `recurrent_fn_of`."""

    def evaluate_after(variables, rng_key, states):
        del rng_key
        return evaluate(game, network, variables, states)

    return recurrent_fn_of(game, evaluate_after)


def recurrent_fn_of(
    game: Game,
    evaluate: Callable[[Variables, jax.Array, State], tuple[jax.Array, jax.Array]],
) -> Model:
    """Returns the model of a game with a network.

    Args:
        game: the game.
        evaluate: `(variables, rng_key, states)` to the outputs of `evaluate`.
    """

    def look(variables, rng_key, states):
        logits, result = evaluate(variables, rng_key, states)
        return *_with_edges(game, states, logits), expected_value(result)

    return make_model(game, look)


def make_model(
    game: Game,
    look: Callable[[Any, jax.Array, State], tuple[SearchState, jax.Array, jax.Array]],
) -> Model:
    """Returns the model: `(params, rng_key, edge, states) -> (output, states)`.

    `edge` is `[B]` int32, the leaves of `states` are `[B, ...]`. The output has
    `reward`, `discount` and `value`, `[B]`, and `prior_logits`, `[B, E]`.

    Rewards are for the player who moves, values for the player to move next; the
    discount is that of `turn_discount`. A terminated position is absorbing: reward,
    value and discount are 0. In games with chance it is a `ChanceModel`, in which edge
    `k` of a state that waits for chance stands for outcome `k`.

    Args:
        game: the game.
        look: `(params, rng_key, states)` to the positions as states of a search, their
            `[B, E]` prior logits, and `[B]` values for the players to move.
    """

    def recurrent_fn(params, rng_key, edge, embedding):
        before = without_actions(embedding)
        after = jax.vmap(game.step)(before, action_of(embedding, edge))
        chance = ()
        if game.num_outcomes:
            before, after, *chance = _chance_after(game, before, after, edge, embedding)
        embedding, prior_logits, value = look(params, rng_key, after)
        fields = {
            "reward": mover_reward(game, before, after),
            "discount": turn_discount(game, before, after),
            "prior_logits": prior_logits,
            "value": jnp.where(after.terminated, 0.0, value),
        }
        return mctx.RecurrentFnOutput(**fields), embedding, *chance

    return ChanceModel(recurrent_fn) if game.num_outcomes else recurrent_fn


def _chance_after(
    game: Game, before: State, after: State, edge: jax.Array, embedding: SearchState
) -> tuple[State, State, Chance]:
    """Returns the last step of B moves in a game with chance, by an action or by an
    outcome: the states before it and after it, and the `Chance` between.

    Args:
        game: the game.
        before: the states before the moves, leaves `[B, ...]`.
        after: the states after the actions.
        edge: `[B]` int32; outcomes where `before` waits for chance.
        embedding: `before` as states of a search.
    """
    has_waited = outcome_probabilities(game, before).any(axis=-1)
    waiting = jax.vmap(select)(has_waited, before, after)
    probabilities = outcome_probabilities(game, waiting)
    waits = probabilities.any(axis=-1)
    likeliest = probabilities.argmax(axis=-1).astype(jnp.int32)
    outcome = jnp.where(has_waited, edge, likeliest)
    logits = jnp.where(probabilities > 0, jnp.log(probabilities), _LOWEST)
    missing = num_edges(game) - game.num_outcomes
    chance = Chance(
        waits=waits & ~has_waited,
        reward=mover_reward(game, before, waiting),
        discount=turn_discount(game, before, waiting),
        logits=jnp.pad(logits, ((0, 0), (0, missing)), constant_values=_LOWEST),
        outcome=outcome,
        embedding=like_search(waiting, embedding),
    )
    after = after_outcome(game, waiting, jnp.where(waits, outcome, -1))
    return jax.vmap(select)(waits, waiting, before), after, chance


def draw_chance(
    game: Game, rng_key: jax.Array, states: State
) -> tuple[State, jax.Array]:
    """Does what `azjax.games.after_chance` does in a game with chance, with one key or
    `[L]` for L lanes."""
    outcome = draw(random_outcome, rng_key, outcome_probabilities(game, states))
    return after_outcome(game, states, outcome), outcome


def moves_again(game: Game, before: State, after: State) -> jax.Array:
    """Returns bool, whether the player who moved is to move again; after a move to a
    state that waits for chance, whether its values are stated for this player. Both
    states may have leading axes."""
    if not (game.has_extra_turns or game.num_outcomes):
        return jnp.zeros_like(after.terminated)
    return after.current_player == before.current_player


def turn_discount(game: Game, before: State, after: State) -> jax.Array:
    """Returns float32, the factor between the value of a position and its value for the
    player who made the move to it: 1 if this player is to move again, -1 if the other
    one is, 0 if the game is over. Both states may have leading axes."""
    sign: jax.Array | float = -1.0
    if game.has_extra_turns or game.num_outcomes:
        sign = jnp.where(moves_again(game, before, after), 1.0, -1.0)
    return jnp.where(after.terminated, 0.0, sign)


def mover_reward(game: Game, before: State, after: State) -> jax.Array:
    """Returns `[B]` float32, the reward of each move for the player who made it."""
    rewards = jax.vmap(game.rewards)(after)
    of_mover = jnp.where(before.current_player == 1, rewards[:, 1], rewards[:, 0])
    return jnp.where(before.terminated, 0.0, of_mover)

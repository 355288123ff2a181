"""Several leaves a step."""

import functools
import math

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from quick_compilation import quick_jit

import azjax.search
from azjax.search import (
    SearchConfig,
    alphazero_policy,
    empty_tree,
    gumbel_policy,
    subtree,
)

NUM_ACTIONS = 6
BATCH_SIZE = 3
POLICIES = {"gumbel": gumbel_policy, "alphazero": alphazero_policy}
games = np.arange(BATCH_SIZE)


# A game without end, whose positions are the moves that led there


def draw(position, number):
    """Returns numbers in [-1, 1) that only depend on the positions."""
    bits = (position * jnp.uint32(0x9E3779B1)) ^ (jnp.uint32(number) << 7)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = (bits ^ (bits >> shift)) * jnp.uint32(factor)
    return (bits >> 8).astype(jnp.float32) / 2**23 - 1


def endless(params, rng_key, action, position):
    """Evaluates each position in its own way."""
    del params, rng_key
    after = position * jnp.uint32(NUM_ACTIONS) + action.astype(jnp.uint32) + 1
    fields = {
        "reward": jnp.zeros(after.shape),
        "discount": -jnp.ones(after.shape),
        "prior_logits": draw(after[:, None], jnp.arange(1, NUM_ACTIONS + 1)),
        "value": draw(after, 0),
    }
    return mctx.RecurrentFnOutput(**fields), after


def endless_root():
    position = jnp.arange(1, BATCH_SIZE + 1, dtype=jnp.uint32)
    fields = {
        "prior_logits": draw(position[:, None], jnp.arange(1, NUM_ACTIONS + 1)),
        "value": draw(position, 0),
        "embedding": position,
    }
    return mctx.RootFnOutput(**fields)


def call(name, leaves, num_simulations, model=endless, tree=None, **settings):
    return POLICIES[name](
        None,
        jax.random.key(0),
        endless_root(),
        model,
        num_simulations,
        leaves_per_step=leaves,
        tree=tree,
        **settings,
    )


@functools.cache
def compiled(name, leaves, num_simulations):
    return quick_jit(
        lambda illegal: call(name, leaves, num_simulations, invalid_actions=illegal)
    )


def search(name, leaves, num_simulations, illegal=None):
    """Returns NumPy's arrays of a search of the endless game."""
    if illegal is None:
        illegal = np.zeros((BATCH_SIZE, NUM_ACTIONS), bool)
    return jax.device_get(compiled(name, leaves, num_simulations)(illegal))


CASES = [
    ("gumbel", 8, 61),
    pytest.param("alphazero", 4, 61, marks=pytest.mark.slow),
    pytest.param("gumbel", 2, 61, marks=pytest.mark.slow),
    pytest.param("alphazero", 8, 61, marks=pytest.mark.slow),
    pytest.param("alphazero", 1, 61, marks=pytest.mark.slow),
]
SEARCHES = pytest.mark.parametrize(("name", "leaves", "num_simulations"), CASES)


BOTH = pytest.mark.parametrize(
    "name", ["gumbel", pytest.param("alphazero", marks=pytest.mark.slow)]
)


def check_tree(tree):
    """Checks that nothing is pending: visits and means are those of the nodes."""
    used = tree.node_visits > 0
    known = tree.children_index >= 0
    child = np.maximum(tree.children_index, 0)
    of_game = np.arange(len(used))[:, None, None]
    for name in ("visits", "values"):
        of_children = getattr(tree, f"node_{name}")[of_game, child]
        np.testing.assert_array_equal(
            getattr(tree, f"children_{name}"), np.where(known, of_children, 0)
        )
    below = tree.children_visits.sum(axis=-1)
    goes_on = used & ((below > 0) | (tree.node_visits == 1))
    np.testing.assert_array_equal(tree.node_visits[goes_on], (1 + below)[goes_on])
    qvalues = tree.children_rewards + tree.children_discounts * tree.children_values
    total = tree.raw_values + (tree.children_visits * qvalues).sum(axis=-1)
    np.testing.assert_allclose(
        tree.node_values[goes_on],
        total[goes_on] / tree.node_visits[goes_on],
        atol=1e-5,
    )
    return used


@pytest.mark.parametrize(
    ("leaves", "num_simulations"),
    [(1, 3), (4, 8), (8, 12), (12, 12), (16, 3)],
)
def test_the_model_is_asked_about_all_leaves_of_a_step_at_once(leaves, num_simulations):
    batches = []

    def model(params, rng_key, action, position):
        batches.append(action.shape)
        return endless(params, rng_key, action, position)

    def python_loop(lower, upper, body, value):
        """Makes every step a call."""
        for index in range(lower, upper):
            value = body(index, value)
        return value

    jax.eval_shape(
        lambda: azjax.search.search(
            None,
            jax.random.key(0),
            root=endless_root(),
            recurrent_fn=model,
            root_action_selection_fn=least_visited,
            interior_action_selection_fn=least_visited,
            num_simulations=num_simulations,
            leaves_per_step=leaves,
            loop_fn=python_loop,
        )
    )
    leaves = min(leaves, num_simulations)  # more could not be used
    num_steps = math.ceil(num_simulations / leaves)
    assert batches == [(BATCH_SIZE * leaves,)] * num_steps


def least_visited(rng_key, tree, node_index, depth=0):
    del rng_key, depth
    return jnp.argmin(tree.children_visits[node_index]).astype(jnp.int32)


@SEARCHES
def test_every_simulation_finds_a_position_of_its_own(name, leaves, num_simulations):
    """No leaf is evaluated twice while others are free."""
    tree = search(name, leaves, num_simulations).search_tree
    used = tree.node_visits > 0
    for game in games:
        edges = list(
            zip(tree.parents[game], tree.action_from_parent[game], strict=True)
        )
        edges = [
            edge for edge, is_used in zip(edges, used[game], strict=True) if is_used
        ]
        assert len(set(edges)) == len(edges)
    if leaves <= NUM_ACTIONS:
        np.testing.assert_array_equal(used.sum(axis=1), 1 + num_simulations)
    else:
        # The first step has only the moves from the root.
        missing = 1 + num_simulations - used.sum(axis=1)
        np.testing.assert_array_equal(missing, leaves - NUM_ACTIONS)
    np.testing.assert_array_equal(tree.node_visits[:, 0], used.sum(axis=1))


@SEARCHES
def test_nothing_is_pending_after_a_search(name, leaves, num_simulations):
    tree = search(name, leaves, num_simulations).search_tree
    used = check_tree(tree)
    assert (tree.children_discounts[tree.children_index >= 0] == -1).all()
    assert (tree.children_rewards == 0).all()
    # All that was found was evaluated.
    expected = jax.device_get(jax.jit(draw)(tree.embeddings, 0))
    np.testing.assert_allclose(tree.raw_values[used], expected[used], atol=1e-6)


@BOTH
def test_a_step_may_have_more_leaves_than_there_are_simulations(name):
    output = search(name, 16, 3)
    used = check_tree(output.search_tree)
    np.testing.assert_array_equal(used.sum(axis=1), 4)
    assert (output.search_tree.children_visits[:, 0].max(axis=1) == 1).all()


@BOTH
def test_more_leaves_than_legal_moves_are_not_filled_with_illegal_ones(name):
    illegal = np.ones((BATCH_SIZE, NUM_ACTIONS), bool)
    for game, legal in enumerate(([2], [0, 5], [1, 3, 4])):
        illegal[game, legal] = False
    output = search(name, 8, 61, illegal)
    tree = output.search_tree
    check_tree(tree)
    assert (tree.children_visits[:, 0][illegal] == 0).all()
    assert (tree.children_index[:, 0][illegal] < 0).all()
    assert not illegal[games, output.action].any()
    assert (tree.node_visits[:, 0] > 20).all()
    # One move: its children are all that the second step can find.
    assert (tree.node_visits > 0).sum(axis=1).min() > 15


@BOTH
def test_kept_trees_are_searched_on_by_several_leaves(name):
    num_nodes, kept, num_simulations = 70, 30, 26

    @quick_jit
    def move(tree):
        output = call(name, 4, num_simulations, tree=tree)
        after = output.search_tree.replace(extra_data=None)
        # The game stays where it is; the best known nodes are kept.
        return output, subtree(after, jnp.zeros(BATCH_SIZE, jnp.int32), max_nodes=kept)

    tree = jax.device_get(
        jax.jit(lambda: empty_tree(endless_root().embedding, NUM_ACTIONS, num_nodes))()
    )
    for number in range(3):
        output, new = jax.device_get(move(tree))
        searched = output.search_tree
        known = np.maximum(tree.node_visits[:, 0], 1)
        np.testing.assert_array_equal(
            searched.node_visits[:, 0], known + num_simulations
        )
        assert (searched.children_visits >= tree.children_visits).all()
        if number == 0:
            check_tree(searched)
        used = (searched.node_visits > 0).sum(axis=1)
        assert (used <= kept + num_simulations).all()
        tree = new


# A real game


@pytest.mark.parametrize(
    "algorithm", ["gumbel", pytest.param("alphazero", marks=pytest.mark.slow)]
)
def test_a_forced_win_is_found_by_eight_leaves_a_step(algorithm, tic_tac_toe):
    # X wins at once at c3; X wins by a fork; X must block at c3.
    #   X X .        X . .       O O .
    #   O O .        . O .       . X .
    #   . . .        O . X       . . X -> a3 is O: blocks
    states = tic_tac_toe.positions("a3 a2 b3 b2", "a3 b2 c1 a1", "b2 a3 c1 b3")
    config = SearchConfig(algorithm=algorithm, leaves_per_step=8)
    output = tic_tac_toe.search(config, 400, states)
    first = tic_tac_toe.game.init()
    text = [
        tic_tac_toe.game.action_to_text(first, int(action)) for action in output.action
    ]
    assert text == ["c3", "c3", "c3"]
    tree = output.search_tree
    check_tree(tree)
    legal = jax.jit(jax.vmap(jax.vmap(tic_tac_toe.game.legal_action_mask)))(
        tree.embeddings
    )
    goes_on = (tree.node_visits > 0) & ~tree.embeddings.terminated
    leads_on = goes_on[..., None] & (tree.children_index >= 0)
    assert np.asarray(legal)[leads_on].all()

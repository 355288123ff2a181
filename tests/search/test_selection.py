import math
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from mctx._src import seq_halving

from azjax.search import AlphaZeroConfig
from azjax.search.selection import (
    considered_visits,
    pruned_visits,
    puct_root_selection,
    puct_scores,
    puct_selection,
)

NUM_ACTIONS = 6
NUM_NODES = 500
C_INIT = 1.25
C_BASE = 40.0  # low, so that it has an effect
SETTINGS: dict[str, Any] = {"c_init": C_INIT, "c_base": C_BASE}


def make_nodes(prior, visits, qvalues, value) -> mctx.Tree:
    """Returns trees of one node each; players alternate.

    Args:
        prior: `[B, A]` probabilities.
        visits: `[B, A]` visits of the actions.
        qvalues: `[B, A]` values of the actions, for the player to move.
        value: `[B]` values of the nodes.
    """
    prior, visits = np.float32(prior), np.int32(visits)
    none = np.zeros(visits.shape[:1], np.int32)[:, None]
    fields: dict[str, Any] = {
        "node_visits": 1 + visits.sum(axis=-1, keepdims=True),
        "raw_values": np.float32(value)[:, None],
        "node_values": np.float32(value)[:, None],
        "parents": none,
        "action_from_parent": none,
        "children_index": np.where(visits > 0, 1, -1)[:, None],
        "children_prior_logits": np.log(np.maximum(prior, 1e-30))[:, None],
        "children_visits": visits[:, None],
        "children_rewards": np.zeros((len(visits), 1, visits.shape[1]), np.float32),
        "children_discounts": -np.ones((len(visits), 1, visits.shape[1]), np.float32),
        "children_values": -np.float32(qvalues)[:, None],
        "embeddings": none,
        "root_invalid_actions": np.zeros(visits.shape, bool),
        "extra_data": None,
    }
    return mctx.Tree(**fields)


def random_numbers(max_visits=9):
    """Returns random prior, visits, qvalues and value of many nodes."""
    random = np.random.default_rng(0)
    shape = (NUM_NODES, NUM_ACTIONS)
    prior = random.dirichlet([0.7] * NUM_ACTIONS, NUM_NODES)
    visits = random.integers(0, max_visits + 1, shape)
    visits *= random.random(shape) < 0.7
    return prior, visits, random.uniform(-1, 1, shape), random.uniform(-1, 1, NUM_NODES)


def puct(prior, visits, total, qvalue):
    """AlphaZero's score of one visited action: its pseudocode's `ucb_score`."""
    rate = math.log((total + C_BASE + 1) / C_BASE) + C_INIT
    return rate * math.sqrt(total) / (visits + 1) * prior + (qvalue + 1) / 2


def reference_scores(prior, visits, qvalues, value, *, reduction):
    """Computes the scores of one node's actions, one by one."""
    total = 1 + sum(visits)
    explored = sum(p for p, n in zip(prior, visits, strict=True) if n > 0)
    first_play = -1.0 if reduction is None else value - reduction * math.sqrt(explored)
    return np.array(
        [
            puct(p, n, total, q if n > 0 else first_play)
            for p, n, q in zip(prior, visits, qvalues, strict=True)
        ]
    )


@jax.jit
def select(nodes, reduction):
    """Returns PUCT's selection below the root and the `[B, A]` scores."""
    settings = {**SETTINGS, "first_play_reduction": reduction}
    key = jax.random.key(0)
    actions = jax.vmap(lambda tree: puct_selection(key, tree, 0, 1, **settings))(nodes)
    return actions, sum(jax.vmap(lambda tree: puct_scores(tree, 0, **settings))(nodes))


@jax.jit
def select_at_root(nodes):
    settings = {"first_play_reduction": None, "forced_playouts": 2.0, **SETTINGS}
    return jax.vmap(
        lambda tree: puct_root_selection(jax.random.key(0), tree, 0, **settings)
    )(nodes)


@pytest.mark.parametrize("reduction", [None, 0.0, 0.2, 1.0])
def test_puct_selects_as_alphazero_does(reduction):
    numbers = random_numbers()
    nodes = make_nodes(*numbers)
    actions, scores = jax.device_get(select(nodes, reduction))
    expected = np.array(
        [
            reference_scores(*one, reduction=reduction)
            for one in zip(*numbers, strict=True)
        ]
    )
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    selected = expected[np.arange(NUM_NODES), actions]
    np.testing.assert_allclose(selected, expected.max(axis=-1), rtol=1e-5, atol=1e-5)
    assert len(np.unique(actions)) == NUM_ACTIONS


NUM_CONSIDERED = (1, 2, 3, 7, 16, 33)
NUM_SIMULATIONS = (1, 2, 7, 16, 50, 200)


def test_sequential_halving_equals_mctxs():
    def table(num_considered):
        """Returns the visits by number of simulations, for at most K actions."""
        arguments = jnp.broadcast_arrays(
            jnp.arange(num_considered + 1)[:, None],
            jnp.int32(NUM_SIMULATIONS)[:, None, None],
            jnp.arange(max(NUM_SIMULATIONS)),
        )
        return considered_visits(*arguments, max_num_considered_actions=num_considered)

    tables = jax.device_get(jax.jit(lambda: [table(k) for k in NUM_CONSIDERED])())
    for num_considered, found in zip(NUM_CONSIDERED, tables, strict=True):
        assert found.dtype == np.int32
        for visits, count in zip(found, NUM_SIMULATIONS, strict=True):
            expected = seq_halving.get_table_of_considered_visits(num_considered, count)
            np.testing.assert_array_equal(visits[:, :count], expected)


# Wu 2019, section 3.2


def reference_forced_visits(prior, visits, forced_playouts):
    """Returns those of the actions of one node `[A]` or of several `[B, A]`."""
    visits = np.asarray(visits)
    return np.sqrt(forced_playouts * np.asarray(prior) * visits.sum(-1, keepdims=True))


def reference_pruned_visits(prior, visits, qvalues, forced_playouts):
    """Removes forced visits one by one.

    A visit is removed while the action's score stays at or below the best one's. If the
    number of forced visits is fractional, the last visit is removed in part; for the
    score it counts as a whole visit.
    """
    total = 1 + sum(visits)
    best = max(range(len(visits)), key=lambda action: (visits[action], -action))
    best_score = puct(prior[best], visits[best], total, qvalues[best])
    forced = reference_forced_visits(prior, visits, forced_playouts)
    pruned = []
    for action, (p, n, q) in enumerate(zip(prior, visits, qvalues, strict=True)):
        left, takes = float(n), forced[action]
        while action != best and takes > 0 and left > 0:
            part = min(1.0, takes)
            if puct(p, math.floor(left - part), total, q) > best_score:
                break
            left, takes = left - part, takes - part
        pruned.append(left if action == best or left > 1 else 0.0)
    return pruned


@jax.jit
def prune(nodes, forced_playouts, reduction):
    settings = {"first_play_reduction": reduction, **SETTINGS}
    return jax.vmap(
        lambda tree: pruned_visits(tree, 0, forced_playouts=forced_playouts, **settings)
    )(nodes)


def test_a_visited_action_is_selected_until_it_has_its_forced_visits():
    numbers = random_numbers()
    prior, visits, _, _ = numbers
    nodes = make_nodes(*numbers)
    actions = np.asarray(select_at_root(nodes))
    is_due = (visits > 0) & (visits < reference_forced_visits(prior, visits, 2.0))
    some_are_due = is_due.any(axis=-1)
    assert some_are_due.any()
    assert not some_are_due.all()
    np.testing.assert_array_equal(
        actions[some_are_due], is_due.argmax(-1)[some_are_due]
    )
    unforced, _ = jax.device_get(select(nodes, None))
    np.testing.assert_array_equal(actions[~some_are_due], unforced[~some_are_due])


@pytest.mark.parametrize("reduction", [None, 0.2])
@pytest.mark.parametrize("forced_playouts", [0.5, 2.0, 20.0])
def test_forced_visits_are_pruned_one_by_one(forced_playouts, reduction):
    numbers = random_numbers(max_visits=30)
    pruned = prune(make_nodes(*numbers), forced_playouts, reduction)
    expected = [
        reference_pruned_visits(*one, forced_playouts)
        for one in zip(*numbers[:3], strict=True)
    ]
    np.testing.assert_allclose(pruned, expected, rtol=1e-4, atol=1e-4)
    assert (pruned < numbers[1] - 1).any(), "nothing was pruned"


def test_pruning_by_hand():
    # 36 visits, k = 2: 0.5 * 36 * 2 and 0.125 * 36 * 2 are the squares of 6 and 3.
    # Action 1 has a low value: all of its 3 forced visits are removed. Action 2 scores
    # above the most visited one with any number of visits: all stay. Action 3 keeps one
    # visit.
    prior = [0.5, 0.125, 0.125, 0.125, 0.125]
    visits, qvalues = [20, 8, 4, 4, 0], [0.2, -0.9, 1.0, -0.9, 0.0]
    pruned = prune(make_nodes([prior], [visits], [qvalues], [0.0]), 2.0, None)
    np.testing.assert_allclose(pruned, [[20, 5, 4, 0, 0]], atol=1e-4)


def test_forced_visits_are_made_and_are_not_in_the_policy_target(connect_four):
    lines = ("", *"1234567", "4 4", "4 3 3", "1 1 1 1 1 1", "7 7 7 7 7 7 1")
    states = connect_four.positions(*lines)
    output = connect_four.search(
        AlphaZeroConfig(forced_playouts=2.0), 100, states, explores=True, sharpness=1.0
    )
    visits = output.search_tree.children_visits[:, 0]
    illegal = ~np.asarray(jax.jit(connect_four.legal)(states))
    assert illegal.any()
    assert (visits[illegal] == 0).all()
    logits = output.search_tree.children_prior_logits[:, 0]
    prior = np.exp(logits - logits.max(axis=1, keepdims=True))
    prior /= prior.sum(axis=1, keepdims=True)
    forced = reference_forced_visits(prior, visits, 2.0)
    # A simulation adds a visit to one action, while the others' targets grow as well.
    child = output.search_tree.children_index[:, 0]
    was_visited_early = (child >= 0) & (child <= 50)
    assert (visits >= forced - 1)[was_visited_early].all()
    weights, shares = output.action_weights, visits / visits.sum(axis=-1, keepdims=True)
    rows, best = np.arange(len(visits)), visits.argmax(axis=-1)
    assert (weights[rows, best] >= shares[rows, best] - 1e-6).all()
    assert (weights[rows, best] > shares[rows, best] + 0.01).any(), "nothing was forced"
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)

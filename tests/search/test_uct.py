import math

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games
from azjax.search import SearchSlice, uct_policy

GAME = games.make("tic_tac_toe")
MAX_SIMULATIONS = 150
LOWEST = np.finfo(np.float32).min
WEIGHTS = np.random.default_rng(0).normal(size=(3, 3, 2)).astype(np.float32)


def value_of(state):
    """Returns a value in [-1, 1] that differs between positions."""
    return jnp.tanh((GAME.observe(state) * WEIGHTS).sum())


def order_of(state):
    """Returns logits that order the cells from last to first."""
    return jnp.where(GAME.legal_action_mask(state), jnp.arange(9.0), LOWEST)


def model(params, rng_key, action, states):
    after = jax.vmap(GAME.step)(states, action)
    mover = states.current_player.astype(jnp.int32)
    rewards = jnp.take_along_axis(jax.vmap(GAME.rewards)(after), mover[:, None], 1)
    fields = {
        "reward": rewards[:, 0],
        "discount": jnp.where(after.terminated, 0.0, -1.0),
        "prior_logits": jax.vmap(order_of)(after),
        "value": jnp.where(after.terminated, 0.0, jax.vmap(value_of)(after)),
    }
    return mctx.RecurrentFnOutput(**fields), after


def search(states, num_simulations, exploration=2**0.5):
    """Returns the actions, the action weights and the summary of the roots."""
    return jax.device_get(compiled_search(states, num_simulations, exploration))


@jax.jit
def compiled_search(states, num_simulations, exploration):
    """Searches up to `MAX_SIMULATIONS`, so that all searches share one program."""
    root = {
        "prior_logits": jax.vmap(order_of)(states),
        "value": jax.vmap(value_of)(states),
        "embedding": states,
    }
    total = jnp.full(len(POSITIONS), num_simulations)
    output = uct_policy(
        None,
        jax.random.key(0),
        mctx.RootFnOutput(**root),
        model,
        MAX_SIMULATIONS,
        invalid_actions=~jax.vmap(GAME.legal_action_mask)(states),
        exploration=exploration,
        search_slice=SearchSlice(total, made=jnp.zeros_like(total)),
    )
    return output.action, output.action_weights, output.search_tree.summary()


step, value = jax.jit(GAME.step), jax.jit(value_of)
legal_mask = jax.jit(GAME.legal_action_mask)


@jax.jit
def mover_reward(state):
    return GAME.rewards(state)[state.current_player.astype(jnp.int32)]


class Node:
    """A node of the reference tree; `total` is for the player to move there."""

    def __init__(self, state):
        self.state = state
        self.children = {}
        self.visits, self.total = 0, 0.0
        self.untried = np.flatnonzero(legal_mask(state)).tolist()


def textbook_visits(state, num_simulations, exploration):
    """Algorithm 2 of Browne et al. 2012, recursive, with rewards in [0, 1]."""

    def simulate(node):
        """Returns the value of one simulation for the player to move at `node`."""
        if node.state.terminated:
            result = float(mover_reward(node.state))
        elif node.visits == 0:
            result = float(value(node.state))
        elif node.untried:
            action = node.untried.pop()  # the last cell first
            node.children[action] = Node(step(node.state, action))
            result = -simulate(node.children[action])
        else:
            result = -simulate(best_child(node))
        node.visits += 1
        node.total += result
        return result

    def best_child(node):
        def score(item):
            child = item[1]
            mean = (1 - child.total / child.visits) / 2
            bonus = math.sqrt(math.log(node.visits) / child.visits)
            return mean + exploration * bonus

        return max(node.children.items(), key=score)[1]

    root = Node(state)
    for _ in range(num_simulations + 1):  # the first one is the root's own value
        simulate(root)
    return [root.children[a].visits if a in root.children else 0 for a in range(9)]


def after(*actions):
    state = GAME.init()
    for action in actions:
        state = step(state, np.int32(action))
    return state


POSITIONS = [after(), after(4), after(0, 4, 8), after(0, 3, 1, 8, 5)]


@pytest.fixture(scope="module")
def states():
    return jax.tree.map(lambda *leaves: np.stack(leaves), *POSITIONS)


@pytest.fixture(scope="module")
def output(states):
    return search(states, 150)


@pytest.fixture(scope="module")
def short_output(states):
    """A search in which each move of the second position has one visit."""
    return search(states, 8)


@pytest.mark.parametrize("exploration", [0.3, 2**0.5])
def test_visits_equal_those_of_the_reference(exploration, states, output):
    if exploration != 2**0.5:
        output = search(states, 150, exploration)
    _, _, summary = output
    for index, position in enumerate(POSITIONS):
        expected = textbook_visits(position, 150, exploration)
        np.testing.assert_array_equal(summary.visit_counts[index], expected)


def test_the_most_visited_move_is_chosen_and_the_weights_are_the_visits(output):
    action, weights, summary = output
    visits = summary.visit_counts
    chosen = np.take_along_axis(visits, action[:, None], 1)[:, 0]
    np.testing.assert_array_equal(chosen, visits.max(axis=1))
    np.testing.assert_allclose(weights, visits / 150, rtol=1e-6)


def test_every_move_is_visited_once_before_any_is_visited_twice(short_output):
    _, _, summary = short_output
    np.testing.assert_array_equal(summary.visit_counts[1], [1, 1, 1, 1, 0, 1, 1, 1, 1])


def test_ties_of_visits_are_broken_by_value(short_output):
    action, _, summary = short_output
    legal = np.asarray(legal_mask(POSITIONS[1]))
    assert action[1] == np.where(legal, summary.qvalues[1], -np.inf).argmax()

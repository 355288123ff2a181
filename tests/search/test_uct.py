import math

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games
from azjax.search import uct_policy

GAME = games.make("tic_tac_toe")
LOWEST = np.finfo(np.float32).min
WEIGHTS = np.random.default_rng(0).normal(size=(3, 3, 2)).astype(np.float32)


def value_of(state):
    """Something that tells positions apart, in [-1, 1]."""
    return jnp.tanh((GAME.observe(state) * WEIGHTS).sum())


def order_of(state):
    """The cells from the last to the first."""
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


def search(states, num_simulations, **settings):
    root = {
        "prior_logits": jax.vmap(order_of)(states),
        "value": jax.vmap(value_of)(states),
        "embedding": states,
    }
    return uct_policy(
        None,
        jax.random.key(0),
        mctx.RootFnOutput(**root),
        model,
        num_simulations,
        invalid_actions=~jax.vmap(GAME.legal_action_mask)(states),
        **settings,
    )


class Node:
    """A node of the textbook's tree; `total` is that of the player to move there."""

    def __init__(self, state):
        self.state = state
        self.children = {}
        self.visits, self.total = 0, 0.0
        self.untried = np.flatnonzero(GAME.legal_action_mask(state)).tolist()


def textbook_visits(state, num_simulations, exploration):
    """Algorithm 2 of Browne et al. 2012, recursively, with rewards in [0, 1]."""
    step, value = jax.jit(GAME.step), jax.jit(value_of)

    def simulate(node):
        """Returns the value of one simulation for the player to move at `node`."""
        if node.state.terminated:
            rewards = GAME.rewards(node.state)
            result = float(rewards[int(node.state.current_player)])
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
        state = GAME.step(state, jnp.int32(action))
    return state


POSITIONS = [after(), after(4), after(0, 4, 8), after(0, 3, 1, 8, 5)]


@pytest.fixture(scope="module")
def states():
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *POSITIONS)


@pytest.fixture(scope="module")
def output(states):
    return search(states, 150)


@pytest.fixture(scope="module")
def short_output(states):
    """Of a search in which each move of the second position has one visit."""
    return search(states, 8)


@pytest.mark.parametrize("exploration", [0.3, 2**0.5])
def test_moves_are_visited_as_often_as_by_the_textbook(exploration, states, output):
    if exploration != 2**0.5:
        output = search(states, 150, exploration=exploration)
    visits = output.search_tree.summary().visit_counts
    for index, position in enumerate(POSITIONS):
        expected = textbook_visits(position, 150, exploration)
        np.testing.assert_array_equal(visits[index], expected)


def test_the_most_visited_move_is_chosen_and_the_weights_are_the_visits(output):
    visits = np.asarray(output.search_tree.summary().visit_counts)
    chosen = np.take_along_axis(visits, np.asarray(output.action)[:, None], 1)[:, 0]
    np.testing.assert_array_equal(chosen, visits.max(axis=1))
    np.testing.assert_allclose(output.action_weights, visits / 150, rtol=1e-6)


def test_every_move_is_tried_once_before_any_is_tried_again(short_output):
    visits = short_output.search_tree.summary().visit_counts[1]
    np.testing.assert_array_equal(visits, [1, 1, 1, 1, 0, 1, 1, 1, 1])


def test_of_equally_visited_moves_that_with_the_best_value_is_chosen(short_output):
    values = np.asarray(short_output.search_tree.summary().qvalues[1])
    legal = np.asarray(GAME.legal_action_mask(POSITIONS[1]))
    assert int(short_output.action[1]) == np.where(legal, values, -np.inf).argmax()

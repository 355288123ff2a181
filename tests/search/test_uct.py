import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.search import SearchSlice, uct_policy

MAX_SIMULATIONS = 150
LINES = ("", "b2", "a3 b2 c1", "a3 a2 b3 c1 c2")


@pytest.fixture(scope="module")
def positions(tic_tac_toe):
    return [tic_tac_toe.positions(line) for line in LINES]


@pytest.fixture(scope="module")
def search(tic_tac_toe):
    """Returns the actions, the action weights and the summary of the roots.

    All searches share one program.
    """
    states = tic_tac_toe.positions(*LINES)

    @jax.jit
    def run(num_simulations, exploration):
        total = jnp.full(len(LINES), num_simulations)
        output = tic_tac_toe.call(
            uct_policy,
            tic_tac_toe.outputs(sharpness=0.8),
            jax.random.key(0),
            states,
            MAX_SIMULATIONS,
            exploration=exploration,
            search_slice=SearchSlice(total, made=jnp.zeros_like(total)),
        )
        return output.action, output.action_weights, output.search_tree.summary()

    run(8, 0.3)  # compiles
    return lambda *numbers: jax.device_get(run(*numbers))


@pytest.fixture(scope="module")
def evaluate(tic_tac_toe):
    """Returns the legal actions of a position, the least likely first, its value, and
    the positions after all actions."""

    @jax.jit
    def run(state):
        outputs = tic_tac_toe.outputs(sharpness=0.8)
        logits, value = tic_tac_toe.predict(outputs, state)
        all_after = jax.vmap(tic_tac_toe.game.step, in_axes=(None, 0))
        after = all_after(jax.tree.map(lambda leaf: leaf[0], state), jnp.arange(9))
        mover = state.current_player[0].astype(jnp.int32)
        reward = tic_tac_toe.game.rewards(jax.tree.map(lambda x: x[0], state))[mover]
        value = jnp.where(state.terminated[0], reward, value[0])
        return tic_tac_toe.legal(state)[0], logits[0], value, after

    def numbers(state):
        legal, logits, value, after = jax.device_get(run(state))
        order = [action for action in np.argsort(logits) if legal[action]]
        return order, float(value), after

    return numbers


class Node:
    """A node of the reference tree; `total` is for the player to move there."""

    def __init__(self, state, evaluate):
        self.is_over = bool(state.terminated[0])
        self.untried, self.value, self.after = evaluate(state)
        self.children = {}
        self.visits, self.total = 0, 0.0


def textbook_visits(state, num_simulations, exploration, evaluate):
    """Algorithm 2 of Browne et al. 2012, recursive, with rewards in [0, 1]."""

    def simulate(node):
        """Returns the value of one simulation for the player to move at `node`."""
        if node.is_over or node.visits == 0:
            result = node.value
        elif node.untried:
            action = node.untried.pop()  # the likeliest first
            after = jax.tree.map(lambda leaf: leaf[[action]], node.after)
            node.children[action] = Node(after, evaluate)
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

    root = Node(state, evaluate)
    for _ in range(num_simulations + 1):  # the first one is the root's own value
        simulate(root)
    return [root.children[a].visits if a in root.children else 0 for a in range(9)]


@pytest.mark.parametrize("exploration", [0.3, 2**0.5])
def test_visits_equal_those_of_the_reference(exploration, search, positions, evaluate):
    """The weights are the visits, and a most visited move is chosen."""
    action, weights, summary = search(MAX_SIMULATIONS, exploration)
    visits = summary.visit_counts
    for index, position in enumerate(positions):
        expected = textbook_visits(position, MAX_SIMULATIONS, exploration, evaluate)
        np.testing.assert_array_equal(visits[index], expected)
    chosen = np.take_along_axis(visits, action[:, None], 1)[:, 0]
    np.testing.assert_array_equal(chosen, visits.max(axis=1))
    np.testing.assert_allclose(weights, visits / MAX_SIMULATIONS, rtol=1e-6)


def test_every_move_is_visited_once_before_any_is_visited_twice(search, positions):
    """Ties of visits are broken by value."""
    action, _, summary = search(8, 2**0.5)
    legal = np.arange(9) != 4
    np.testing.assert_array_equal(summary.visit_counts[1], legal)
    assert action[1] == np.where(legal, summary.qvalues[1], -np.inf).argmax()

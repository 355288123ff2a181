"""Arguments of `search`; `test_mctx.py` compares its results with mctx's."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.search import search

NUM_ACTIONS = 5
BATCH_SIZE = 3


def model(params, rng_key, action, positions):
    """A model whose positions are numbers that the actions mix."""
    del params, rng_key
    after = (positions * 5 + action + 1) % 101
    fields = {
        "reward": jnp.zeros(after.shape),
        "discount": -jnp.ones(after.shape),
        "value": jnp.cos(after),
        "prior_logits": jnp.zeros((*after.shape, NUM_ACTIONS)),
    }
    return mctx.RecurrentFnOutput(**fields), after


def least_visited(rng_key, tree, node_index, depth=0):
    return jnp.argmin(tree.children_visits[node_index]).astype(jnp.int32)


def run(*, batch_size=BATCH_SIZE, **settings):
    """Searches with the model the least visited actions, or with other arguments."""
    fields = {
        "prior_logits": jnp.zeros((batch_size, NUM_ACTIONS)),
        "value": jnp.zeros(batch_size),
        "embedding": jnp.arange(batch_size),
    }
    arguments = {
        "root": mctx.RootFnOutput(**fields),
        "recurrent_fn": model,
        "root_action_selection_fn": least_visited,
        "interior_action_selection_fn": least_visited,
        "num_simulations": 12,
    }
    return search(None, jax.random.key(0), **arguments | settings)


DATA = {"root": np.array([2, 0, 4]), "below": np.array([1, 3, 4])}


def at_root(rng_key, tree, node_index):
    """Selects all actions in turn; the first one comes from the game's data."""
    turn = tree.node_visits[node_index] - 1
    return jnp.mod(tree.extra_data["root"] + turn, NUM_ACTIONS).astype(jnp.int32)


def below_root(rng_key, tree, node_index, depth):
    return tree.extra_data["below"].astype(jnp.int32)


def by_depth(rng_key, tree, node_index, depth):
    action = tree.extra_data["below"] + depth
    return jnp.mod(action, NUM_ACTIONS).astype(jnp.int32)


@pytest.mark.parametrize(
    ("below", "caches_selection"), [(below_root, True), (by_depth, False)]
)
def test_selection_functions_get_the_data_of_their_game_and_the_depth(
    below, caches_selection
):
    """Without a mask all moves are legal, and the given loop runs the simulations."""
    bounds = []

    def loop(lower, upper, body, carry):
        bounds.append((lower, upper))
        return jax.lax.fori_loop(lower, upper, body, carry)

    found = jax.jit(
        functools.partial(
            run,
            root_action_selection_fn=at_root,
            interior_action_selection_fn=below,
            extra_data=jax.tree.map(jnp.asarray, DATA),
            caches_selection=caches_selection,
            loop_fn=loop,
        )
    )
    tree = jax.device_get(found())
    assert bounds == [(0, 12)]
    assert not tree.root_invalid_actions.any()
    assert (tree.children_visits[:, 0] > 0).all()
    np.testing.assert_array_equal(tree.action_from_parent[:, 1], DATA["root"])
    # Simulations come from the root to each action in turn, then one move deeper.
    depth = np.zeros((BATCH_SIZE, 13), int)
    for node in range(1, 13):
        depth[:, node] = depth[np.arange(BATCH_SIZE), tree.parents[:, node]] + 1
    np.testing.assert_array_equal(depth, [[0, *[1] * 5, *[2] * 5, *[3] * 2]] * 3)
    added = 0 if caches_selection else depth - 1
    expected = (DATA["below"][:, None] + added) % NUM_ACTIONS
    np.testing.assert_array_equal(
        tree.action_from_parent[depth > 1],
        np.broadcast_to(expected, depth.shape)[depth > 1],
    )
    for name, data in DATA.items():
        np.testing.assert_array_equal(tree.extra_data[name], data)


@pytest.mark.parametrize("field", ["parents", "children_index", "embeddings"])
def test_a_selection_function_cannot_access_other_nodes(field):
    def accesses_other_nodes(rng_key, tree, node_index, depth):
        return getattr(tree, field)[node_index]

    with pytest.raises(TypeError, match="not subscriptable"):
        shape_of_tree(interior_action_selection_fn=accesses_other_nodes)


def shape_of_tree(**settings):
    """Traces a search."""
    return jax.eval_shape(functools.partial(run, **settings))


def test_numbers_and_illegal_actions_can_be_numpys():
    illegal = np.eye(2, NUM_ACTIONS)
    number = np.int64(3)
    tree = shape_of_tree(batch_size=2, invalid_actions=illegal, num_simulations=number)
    assert tree.root_invalid_actions.shape == illegal.shape
    assert tree.node_visits.shape == (2, 4)


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("name", ["num_simulations", "max_depth"])
def test_a_number_below_1_is_refused(name, number):
    with pytest.raises(ValueError, match=f"{name} must be an int from 1 .*: {number}"):
        shape_of_tree(**{name: number})


@pytest.fixture(scope="module")
def trees():
    """The shapes of trees of 3 games after 6 simulations, by `use_solver`."""
    return {
        use_solver: shape_of_tree(num_simulations=6, use_solver=use_solver)
        for use_solver in (False, True)
    }


def search_from(tree, **settings):
    """Traces a search that starts from a tree."""
    return jax.eval_shape(lambda tree: run(tree=tree, **settings), tree)


@pytest.mark.parametrize(
    ("proves", "settings", "message"),
    [
        (False, {"batch_size": 2}, r"for 3 games with 5 actions.*\(2, 5\)"),
        (False, {"num_simulations": 7}, "room for 7 nodes.* more than.* 7"),
        (False, {"num_simulations": 100}, "room for 7 nodes.* more than.* 100"),
        (False, {"use_solver": True}, "must be a ProvenTree when use_solver=True"),
        (True, {"use_solver": False}, "not be a ProvenTree when use_solver=False"),
    ],
)
def test_a_starting_tree_of_another_kind_or_size_is_refused(
    proves, settings, message, trees
):
    with pytest.raises(ValueError, match=message):
        search_from(trees[proves], **{"num_simulations": 2, **settings})


def test_a_starting_tree_with_room_and_the_same_actions_is_accepted(trees):
    assert search_from(trees[False], num_simulations=6) == trees[False]
    child = jax.ShapeDtypeStruct((3, 7, 4), jnp.int32)
    with pytest.raises(ValueError, match=r"for 3 games with 4 actions.*\(3, 5\)"):
        search_from(trees[False].replace(children_index=child))

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.search import (
    SEARCHES,
    AlphaZeroConfig,
    GumbelConfig,
    SearchSlice,
    empty_tree,
    search,
)
from azjax.search.selection import puct_root_selection, puct_selection

PER_SLICE = 6
TOTALS = (24, 7)  # a multiple of the slice, and another number
LINES = ("", "b2 a1")
CONFIGS = {
    "gumbel": GumbelConfig(),
    "few actions": GumbelConfig(max_num_considered_actions=3),
    "alphazero": AlphaZeroConfig(),
    "proofs": GumbelConfig(use_solver=True),
}


@functools.cache
def sliced(searching, config, explores):
    """Returns a compiled function that runs one slice."""

    def run(rng_key, states, tree, made):
        return config.policy(explores=explores)(
            1.0,
            rng_key,
            searching.root(1.0, states),
            searching.model,
            PER_SLICE,
            invalid_actions=~jax.vmap(searching.game.legal_action_mask)(states),
            tree=tree,
            search_slice=SearchSlice(jnp.array(TOTALS), made),
        )

    return jax.jit(run)


def root_visits(output):
    tree = output.search_tree
    return tree.children_visits[:, tree.ROOT_INDEX]


@pytest.mark.parametrize(
    ("config", "explores"),
    [
        ("gumbel", False),
        pytest.param("gumbel", True, marks=pytest.mark.slow),
        *(
            pytest.param(name, False, marks=pytest.mark.slow)
            for name in ("few actions", "alphazero", "proofs")
        ),
    ],
)
def test_slices_add_up_to_the_whole_search(tic_tac_toe, config, explores):
    config, rng_key = CONFIGS[config], jax.random.key(7)
    states = tic_tac_toe.positions(*LINES)
    make_tree = functools.partial(
        empty_tree,
        num_actions=tic_tac_toe.game.num_actions,
        num_nodes=TOTALS[0] + 1,
        use_solver=config.use_solver,
    )
    empty = tree = jax.jit(make_tree)(states)
    run, outputs = sliced(tic_tac_toe, config, explores), []
    for number in range(TOTALS[0] // PER_SLICE):
        made = np.minimum(PER_SLICE * number, np.int32(TOTALS))
        outputs.append(run(rng_key, states, tree, made))
        tree = outputs[-1].search_tree.replace(
            extra_data=None, root_invalid_actions=empty.root_invalid_actions
        )
    output = jax.device_get(outputs[-1])
    for row, total in enumerate(TOTALS):
        whole = tic_tac_toe.compiled(config, total, explores=explores)
        found = jax.device_get(whole(1.0, rng_key, states))
        np.testing.assert_array_equal(root_visits(output)[row], root_visits(found)[row])
        assert output.action[row] == found.action[row]
        np.testing.assert_array_equal(
            output.action_weights[row], found.action_weights[row]
        )


def test_a_slice_ends_when_no_game_has_simulations_left(tic_tac_toe):
    stops = []

    def loop(start, stop, step, carry):
        del start, step
        stops.append(int(stop))
        return carry

    search(
        1.0,
        jax.random.key(0),
        root=tic_tac_toe.root(1.0, tic_tac_toe.positions(*LINES)),
        recurrent_fn=tic_tac_toe.model,
        root_action_selection_fn=puct_root_selection,
        interior_action_selection_fn=puct_selection,
        num_simulations=24,
        loop_fn=loop,
        search_slice=SearchSlice(jnp.array([9, 5]), jnp.array([0, 2])),
    )
    assert stops == [9]


def test_a_short_search_has_the_same_result_in_a_longer_program(tic_tac_toe):
    states = tic_tac_toe.positions(*LINES)

    def run(states, room, search_slice):
        return GumbelConfig().policy(explores=True)(
            1.0,
            jax.random.key(0),
            tic_tac_toe.root(1.0, states),
            tic_tac_toe.model,
            room,
            invalid_actions=~jax.vmap(tic_tac_toe.game.legal_action_mask)(states),
            search_slice=search_slice,
        )

    run = jax.jit(run, static_argnums=1)
    part = SearchSlice(jnp.full(2, 9), jnp.zeros(2, jnp.int32))
    short, long = run(states, 9, None), run(states, 14, part)
    np.testing.assert_array_equal(long.action, short.action)
    np.testing.assert_allclose(long.action_weights, short.action_weights, rtol=1e-6)
    for name in ("node_visits", "children_visits", "node_values", "children_index"):
        found, expected = (getattr(x.search_tree, name) for x in (long, short))
        np.testing.assert_array_equal(found[:, :10], expected)
    assert (long.search_tree.node_visits[:, 10:] == 0).all()


@pytest.mark.parametrize("algorithm", ["gumbel", "alphazero"])
def test_a_short_search_with_tree_reuse_has_the_same_result_in_a_longer_program(
    tic_tac_toe, algorithm
):
    states = tic_tac_toe.positions(*LINES)
    config = SEARCHES.find(algorithm)()
    whole = SearchSlice(jnp.full(2, 9), jnp.zeros(2, jnp.int32))

    def run(states, tree, most, search_slice):
        return config.policy(explores=True)(
            1.0,
            jax.random.key(0),
            tic_tac_toe.root(1.0, states),
            tic_tac_toe.model,
            most,
            invalid_actions=~jax.vmap(tic_tac_toe.game.legal_action_mask)(states),
            max_depth=9,
            tree=tree,
            search_slice=search_slice,
        )

    def run_twice(states, search_slice, most):
        """Searches with the trees of a first search."""
        tree = empty_tree(states, tic_tac_toe.game.num_actions, 40)
        first = run(states, tree, most, search_slice).search_tree
        kept = first.replace(
            extra_data=None, root_invalid_actions=tree.root_invalid_actions
        )
        return run(states, kept, most, search_slice)

    run_twice = jax.jit(run_twice, static_argnums=2)
    short, long = run_twice(states, None, 9), run_twice(states, whole, 14)
    np.testing.assert_array_equal(long.action, short.action)
    np.testing.assert_array_equal(root_visits(long), root_visits(short))
    np.testing.assert_allclose(long.action_weights, short.action_weights, rtol=1e-6)

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_compilation import quick_jit

from azjax.search import SearchConfig, SearchSlice, empty_tree, run_search

PER_SLICE = 6
TOTALS = (24, 7)  # a multiple of the slice, and none
LINES = ("", "b2 a1")
CONFIGS = {
    "gumbel": SearchConfig(),
    "few actions": SearchConfig(max_num_considered_actions=3),
    "alphazero": SearchConfig(algorithm="alphazero"),
    "several leaves": SearchConfig(leaves_per_step=3),
    "proofs": SearchConfig(use_solver=True),
}


@functools.cache
def sliced(searching, config, explores):
    """Returns a compiled function that makes one slice."""

    def run(rng_key, states, tree, made):
        return run_search(
            config,
            1.0,
            rng_key,
            searching.root(1.0, states),
            searching.model,
            PER_SLICE,
            invalid_actions=~jax.vmap(searching.game.legal_action_mask)(states),
            explores=explores,
            tree=tree,
            search_slice=SearchSlice(jnp.array(TOTALS), made),
        )

    return quick_jit(run)


def root_visits(output):
    tree = output.search_tree
    return tree.children_visits[:, tree.ROOT_INDEX]


@pytest.mark.parametrize(
    ("config", "explores"),
    [
        ("gumbel", False),
        ("several leaves", False),
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

"""The estimated memory of a search, compared with the compiler's allocation."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import pytest

from azjax import games
from azjax.search import (
    AlphaZeroConfig,
    GumbelConfig,
    empty_tree,
    improved_value,
    search_bytes,
    subtree,
    tree_bytes,
)

BATCH_SIZE = 256


def positions(game):
    """Returns the shapes of a batch of positions."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((BATCH_SIZE, *leaf.shape), leaf.dtype),
        jax.eval_shape(game.init),
    )


def search(searching, config, num_simulations, states, tree=None):
    policy, outputs = config.policy(explores=False), searching.outputs()
    rng_key = jax.random.key(0)
    return searching.call(policy, outputs, rng_key, states, num_simulations, tree=tree)


def is_close(number: float):
    """Within two fifths; only Gumbel search with proofs comes near this limit."""
    return pytest.approx(number, rel=0.4)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="reads the CPU's program")
@pytest.mark.parametrize(
    ("name", "num_simulations", "config"),
    [
        ("connect_four", 300, GumbelConfig()),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("connect_four", 300, GumbelConfig(use_solver=True)),
                ("connect_four", 200, AlphaZeroConfig()),
                ("tic_tac_toe", 64, GumbelConfig(use_solver=True)),
                ("tic_tac_toe", 100, AlphaZeroConfig(use_solver=True)),
            )
        ),
    ],
)
def test_the_memory_of_a_search_is_estimated_and_no_loop_copies_the_tree(
    name, num_simulations, config, request
):
    searching = request.getfixturevalue(name)
    game = searching.game

    def run(states):
        output = search(searching, config, num_simulations, states)
        found = output.search_tree.summary()
        return output.action, output.action_weights, improved_value(output), found

    states = positions(game)
    compiled = jax.jit(run).lower(states).compile()
    estimated = search_bytes(
        config, states, game.num_actions, num_simulations, max_depth=game.max_moves
    )
    assert compiled.memory_analysis().temp_size_in_bytes == is_close(estimated)
    entries = BATCH_SIZE * config.num_nodes(num_simulations)
    computations = re.split(r"\n(?=\S.*\{\n)", compiled.as_text())
    (entry,) = [text for text in computations if text.startswith("ENTRY")]
    copies = rf"\[{entries}[\],].* copy\("
    assert re.search(copies, entry)  # before the first simulation
    for computation in computations:
        if computation != entry:
            assert not re.search(copies, computation), computation


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("tic_tac_toe", GumbelConfig(use_solver=True)),
        ("connect_four", GumbelConfig()),
        ("connect_four", AlphaZeroConfig()),
    ],
)
def test_the_memory_of_a_search_with_tree_reuse_is_estimated(name, config, request):
    """Two consecutive moves, as in self-play."""
    searching = request.getfixturevalue(name)
    game = searching.game
    config = dataclasses.replace(config, tree_reuse_nodes=64)

    def run(states):
        tree = empty_tree(
            states, game.num_actions, config.num_nodes(32), use_solver=config.use_solver
        )

        def move(carry, _):
            states, tree = carry
            output = search(searching, config, 32, states, tree)
            found = output.search_tree
            child = found.children_index[jnp.arange(BATCH_SIZE), 0, output.action]
            after = jax.vmap(game.step)(states, output.action)
            tree = subtree(found, child, max_nodes=config.tree_reuse_nodes)
            return (after, tree), output.action

        return jax.lax.scan(move, (states, tree), None, length=4)[1]

    states = positions(game)
    used = jax.jit(run).lower(states).compile().memory_analysis()
    estimated = search_bytes(
        config, states, game.num_actions, 32, max_depth=game.max_moves
    )
    assert used.temp_size_in_bytes == is_close(estimated)


def test_simulations_bounds_paths_and_reused_trees_are_counted():
    states, nodes = positions(games.make("connect_four")), BATCH_SIZE * 65

    def estimated(num_simulations=64, max_depth=None, **settings):
        return search_bytes(
            GumbelConfig(**settings), states, 7, num_simulations, max_depth=max_depth
        )

    assert estimated(129) / estimated(64) == pytest.approx(2, rel=0.02)
    assert estimated(use_solver=True) - estimated() == 2 * 2 * nodes
    assert estimated(max_depth=64) > estimated(max_depth=8)
    assert estimated(tree_reuse_nodes=64) > 3.5 * estimated()


def test_the_estimate_allocates_no_arrays():
    game = games.make("connect_four")
    before = len(jax.live_arrays())
    many = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((2**20, *leaf.shape), leaf.dtype),
        jax.eval_shape(game.init),
    )
    config = GumbelConfig(tree_reuse_nodes=1000)
    assert search_bytes(config, many, game.num_actions, 1000) > 2**37
    assert len(jax.live_arrays()) == before


def test_the_bytes_of_arrays_are_those_of_all_leaves():
    arrays = {"a": jnp.zeros((3, 4)), "b": (jnp.zeros(5, jnp.int16), jnp.bool_(True))}
    assert tree_bytes(arrays) == 48 + 10 + 1
    assert tree_bytes(jax.eval_shape(lambda: arrays)) == 59

"""Reused trees, compared with a plain recursion."""

import functools

import chex
import jax
import mctx
import numpy as np
import pytest

from azjax.search import AlphaZeroConfig, GumbelConfig, ProvenTree, find, subtree

NUM_SIMULATIONS = 60
GUMBEL = GumbelConfig(use_solver=True, tree_reuse_nodes=40)
ALPHAZERO = AlphaZeroConfig(tree_reuse_nodes=40)
CONFIGS = {"gumbel, proving": GUMBEL, "alphazero": ALPHAZERO}
NUM_NODES = GUMBEL.num_nodes(NUM_SIMULATIONS)
LINES = ["", "b2", "a3 b2", "a3 b2 c1 a1", "b2 a1 c3 a3", "a1 c3"]
BATCH_SIZE = len(LINES)
games = np.arange(BATCH_SIZE)
keep = jax.jit(subtree, static_argnames="max_nodes")
locate = jax.jit(find)


def start(searching, config, states):
    return searching.empty_tree(states, NUM_NODES, use_solver=config.use_solver)


def search(searching, config, states, tree):
    """Returns NumPy arrays; `sharpness` makes the trees of the games different."""
    return searching.search(config, NUM_SIMULATIONS, states, tree=tree, sharpness=1.0)


@pytest.fixture(
    scope="module",
    params=["gumbel, proving", pytest.param("alphazero", marks=pytest.mark.slow)],
)
def config(request):
    return CONFIGS[request.param]


@pytest.fixture(scope="module")
def states(tic_tac_toe):
    return tic_tac_toe.positions(*LINES)


@pytest.fixture(scope="module")
def searched(tic_tac_toe, config, states):
    return search(tic_tac_toe, config, states, start(tic_tac_toe, config, states))


@pytest.fixture(scope="module")
def tree(searched):
    return searched.search_tree


# The reference


def below(tree, game, node) -> list[int]:
    """Returns a node and all its descendants."""
    found = [node]
    for child in tree.children_index[game, node]:
        if child >= 0:
            found += below(tree, game, child)
    return found


def describe(tree, game, node, kept) -> dict:
    """Returns all fields of a node and, by action, of its kept descendants."""
    at = (game, node)
    found = {
        "visits": tree.node_visits[at],
        "value": tree.node_values[at],
        "raw value": tree.raw_values[at],
        "prior": tree.children_prior_logits[at].tolist(),
        "state": [leaf[at].tolist() for leaf in jax.tree.leaves(tree.embeddings)],
    }
    if isinstance(tree, ProvenTree):
        found["bounds"] = (tree.lower[at], tree.upper[at])
    for action, child in enumerate(tree.children_index[at]):
        if child not in kept:
            continue
        assert tree.parents[game, child] == node
        assert tree.action_from_parent[game, child] == action
        edge = (game, node, action)
        found[action] = {
            "visits": tree.children_visits[edge],
            "value": tree.children_values[edge],
            "reward": tree.children_rewards[edge],
            "discount": tree.children_discounts[edge],
            "child": describe(tree, game, child, kept),
        }
    return found


def check_subtree(tree, node_index, max_nodes):
    kept = jax.device_get(keep(tree, np.int32(node_index), max_nodes=max_nodes))
    chex.assert_trees_all_equal_shapes_and_dtypes(
        kept,
        tree.replace(extra_data=None, root_invalid_actions=kept.root_invalid_actions),
    )
    for game, node in enumerate(np.asarray(node_index)):
        known = [] if node < 0 else sorted(below(tree, game, node))
        visits = tree.node_visits[game]
        wanted = sorted(known, key=lambda n: -visits[n])[:max_nodes]
        num_kept = (kept.node_visits[game] > 0).sum()
        assert num_kept == len(wanted)
        if wanted:
            assert describe(kept, game, 0, set(range(num_kept))) == describe(
                tree, game, node, set(wanted)
            )
            assert kept.parents[game, 0] == mctx.Tree.NO_PARENT
            assert kept.action_from_parent[game, 0] == mctx.Tree.NO_PARENT
        check_unused(kept, game, num_kept)
    return kept


def check_unused(tree, game, num_kept):
    """Checks that unused nodes, and edges to dropped ones, are as in an empty tree."""
    for name in ("parents", "action_from_parent", "children_index"):
        assert (getattr(tree, name)[game, num_kept:] == -1).all(), name
    for name in (
        *("node_visits", "raw_values", "node_values", "children_visits"),
        *("children_prior_logits", "children_values", "children_rewards"),
        "children_discounts",
    ):
        assert (getattr(tree, name)[game, num_kept:] == 0).all(), name
    for leaf in jax.tree.leaves(tree.embeddings):
        assert not leaf[game, num_kept:].any()
    if isinstance(tree, ProvenTree):
        assert (tree.lower[game, num_kept:] <= 0).all()
        assert (tree.upper[game, num_kept:] >= 0).all()
    children = tree.children_index[game]
    assert children.max() < max(num_kept, 1)
    assert set(children[children >= 0]) == set(range(1, num_kept))
    for name in ("visits", "values", "rewards", "discounts"):
        assert (getattr(tree, f"children_{name}")[game][children < 0] == 0).all(), name


@pytest.mark.parametrize("max_nodes", [NUM_NODES, 40, 7, 1])
def test_the_most_visited_nodes_below_a_move_are_kept(searched, max_nodes):
    tree = searched.search_tree
    children = tree.children_index[games, 0, searched.action]
    assert (children > 0).all()
    kept = check_subtree(tree, children, max_nodes)
    if max_nodes == NUM_NODES:  # that of the root is the tree
        check_subtree(tree, [0] * BATCH_SIZE, NUM_NODES)
    if max_nodes <= 7:
        assert (kept.node_visits > 0).sum() > max_nodes, "nothing to cut"


@pytest.mark.parametrize("max_nodes", [NUM_NODES, 7])
def test_each_game_can_continue_from_another_node(tree, max_nodes):
    """From nodes several moves deep, from leaves, and from no node."""
    deep = [
        max(range(30), key=lambda n: n * (tree.children_index[game, n] >= 0).any())
        for game in games
    ]
    last = (np.arange(NUM_NODES) * (tree.node_visits > 0)).max(axis=1)
    chosen = np.where(games % 3 == 0, deep, np.where(games % 3 == 1, last, -1))
    assert (tree.parents[games, deep] > 0).any()
    check_subtree(tree, chosen, max_nodes)


NODES = np.zeros(BATCH_SIZE, np.int32)


@pytest.mark.parametrize(
    ("index", "max_nodes", "message"),
    [
        *(
            (NODES, number, f"max_nodes must be an int from 1 to {NUM_NODES}: ")
            for number in (0, -1, NUM_NODES + 1)
        ),
        *(
            (index, 1, r"node_index must be \[\d+\] integers")
            for index in (0, NODES[:1], np.zeros(999, np.int32))
        ),
    ],
)
def test_max_nodes_must_fit_and_every_tree_needs_a_new_root(
    index, max_nodes, message, tree
):
    with pytest.raises(ValueError, match=message):
        subtree(tree, index, max_nodes=max_nodes)


# Finding positions


def states_of(tree, node_index):
    return jax.tree.map(
        lambda leaf: leaf[games, np.asarray(node_index)], tree.embeddings
    )


def test_a_node_is_found_by_its_position_in_its_games_tree(tree, tic_tac_toe, states):
    wanted = tree.children_index[games, 0].max(axis=1)
    np.testing.assert_array_equal(locate(tree, states_of(tree, wanted)), wanted)
    np.testing.assert_array_equal(locate(tree, states_of(tree, [0] * BATCH_SIZE)), 0)
    others = jax.tree.map(lambda leaf: np.roll(leaf, 1, axis=0), states)
    # The empty board is below no root, and the games have different positions.
    found = np.asarray(locate(tree, others))
    np.testing.assert_array_equal(found[[1, 4]], -1)
    empty = start(tic_tac_toe, GUMBEL, states)
    zeros = jax.tree.map(np.zeros_like, states)
    for wanted in (states, zeros):
        np.testing.assert_array_equal(locate(empty, wanted), -1)


def test_the_most_visited_of_nodes_with_equal_positions_is_found(tree):
    doubled = jax.tree.map(np.copy, tree)
    for leaf in jax.tree.leaves(doubled.embeddings):
        leaf[:, [5, 20]] = leaf[:, [9]]
    doubled.node_visits[:, [5, 9, 20]] = [3, 8, 4]
    np.testing.assert_array_equal(locate(doubled, states_of(doubled, [5] * 6)), 9)


# Continued searches


def test_a_search_from_an_emptied_tree_equals_one_from_an_empty_tree(
    tic_tac_toe, config, states, searched
):
    """The tree of a finished game is emptied for the next game."""
    nothing = np.full(BATCH_SIZE, -1, np.int32)
    emptied = keep(searched.search_tree, nothing, max_nodes=40)
    empty = start(tic_tac_toe, config, states)
    # With sharpness 0, no search from these boards reaches an end.
    again, new = (
        tic_tac_toe.search(config, NUM_SIMULATIONS, states, tree=tree)
        for tree in (emptied, empty)
    )
    np.testing.assert_array_equal(again.action, new.action)
    again, new = again.search_tree, new.search_tree
    used = new.node_visits > 0
    names = ["node_visits", "node_values", "children_visits", "children_values"]
    for name in (*names, *(("lower", "upper") if config.use_solver else ())):
        np.testing.assert_array_equal(
            getattr(again, name)[used], getattr(new, name)[used], err_msg=name
        )


def check_tree(tree, was_cut=None):
    """Checks the invariants of a tree.

    `was_cut` marks the nodes with visits that have no nodes in the tree.
    """
    used = tree.node_visits > 0
    indices = np.arange(used.shape[1])
    assert (tree.parents < indices)[used].all()
    game = np.arange(len(used))[:, None, None]
    child = tree.children_index
    known = (child >= 0) & used[..., None]
    for name in ("visits", "values"):
        np.testing.assert_array_equal(
            getattr(tree, f"children_{name}")[known],
            getattr(tree, f"node_{name}")[game, np.maximum(child, 0)][known],
        )
    below = tree.children_visits.sum(axis=-1)
    whole = used & ~tree.embeddings.terminated
    if isinstance(tree, ProvenTree):
        # Visits of a proven node can end there.
        proven = (tree.lower > 0) | (tree.upper < 0) | (tree.lower == tree.upper)
        assert (tree.node_visits >= 1 + below)[whole].all()
        whole &= ~proven
        exact = np.sign(tree.lower * (tree.lower > 0) + tree.upper * (tree.upper < 0))
        inner = used & proven & ~tree.embeddings.terminated
        np.testing.assert_array_equal(tree.node_values[inner], exact[inner])
    if was_cut is not None:
        whole &= ~was_cut
    np.testing.assert_array_equal(tree.node_visits[whole], (1 + below)[whole])
    if not isinstance(tree, ProvenTree):
        total = tree.raw_values + (
            tree.children_visits
            * (tree.children_rewards + tree.children_discounts * tree.children_values)
        ).sum(axis=-1)
        np.testing.assert_allclose(
            tree.node_values[whole], total[whole] / tree.node_visits[whole], atol=1e-5
        )


def after_best_moves(searching, output, states):
    """Returns the positions after the moves, and their nodes."""
    after = jax.device_get(step_all(searching.game, states, output.action))
    children = output.search_tree.children_index[games, 0, output.action]
    return after, np.where(after.terminated, -1, children).astype(np.int32)


@functools.partial(jax.jit, static_argnums=0)
def step_all(game, states, actions):
    return jax.vmap(game.step)(states, actions)


def test_a_search_adds_its_simulations_to_the_kept_tree(
    tic_tac_toe, config, searched, states
):
    after, nodes = after_best_moves(tic_tac_toe, searched, states)
    kept = jax.device_get(keep(searched.search_tree, nodes, max_nodes=40))
    output = search(tic_tac_toe, config, after, kept)
    tree = output.search_tree
    goes_on = ~after.terminated
    assert goes_on.sum() > BATCH_SIZE // 2
    np.testing.assert_array_equal(
        tree.node_visits[goes_on, 0],
        np.maximum(kept.node_visits[goes_on, 0], 1) + NUM_SIMULATIONS,
    )
    assert (kept.node_visits[goes_on, 0] > 1).any()
    assert (tree.children_visits >= kept.children_visits)[goes_on].all()
    num_kept = (kept.node_visits > 0).sum(axis=1, keepdims=True)
    is_kept = np.arange(NUM_NODES) < num_kept
    for name in ("parents", "action_from_parent", "raw_values"):
        same = getattr(tree, name) == getattr(kept, name)
        assert (same | ~is_kept)[goes_on].all(), name
    # Visits of dropped nodes are still counted in their ancestors.
    children = kept.children_visits.sum(axis=-1) + 1
    was_cut = is_kept & (kept.node_visits != children)
    games_on = jax.tree.map(lambda leaf: leaf[goes_on], tree.replace(extra_data=None))
    check_tree(games_on, was_cut[goes_on])
    check_subtree(tree, tree.children_index[games, 0, output.action], 40)


@pytest.mark.parametrize(
    "platform", ["gpu", pytest.param("tpu", marks=pytest.mark.slow)]
)
def test_a_program_for_an_accelerator_makes_the_same_tree(
    platform, tic_tac_toe, config, searched, states
):
    after, nodes = after_best_moves(tic_tac_toe, searched, states)
    kept = jax.device_get(keep(searched.search_tree, nodes, max_nodes=40))
    found, expected = (
        tic_tac_toe.search(
            config, NUM_SIMULATIONS, after, tree=kept, sharpness=1.0, platform=name
        )
        for name in (platform, "cpu")
    )
    chex.assert_trees_all_equal(found.search_tree, expected.search_tree)


def test_simulations_without_room_are_skipped(tic_tac_toe, config, states):
    """The simulations of four moves do not fit into a tree for one and a half."""
    tree = start(tic_tac_toe, config, states)
    legal = np.asarray(jax.jit(tic_tac_toe.legal)(states))
    for _ in range(4):
        output = search(tic_tac_toe, config, states, tree)
        tree = output.search_tree.replace(extra_data=None)
        check_tree(tree)
        assert legal[games, output.action].all()
    assert (tree.node_visits[:, 0] < 1 + 4 * NUM_SIMULATIONS).any()
    assert (tree.node_visits[:, 0] > 1 + NUM_SIMULATIONS).all()


def test_consecutive_moves_are_compiled_once(tic_tac_toe, config):
    """The tree keeps its types from the first move to the last."""
    run = tic_tac_toe.compiled(config, NUM_SIMULATIONS)
    outputs = tic_tac_toe.outputs(sharpness=1.0)
    states = jax.device_put(tic_tac_toe.positions(*[""] * BATCH_SIZE))
    known = start(tic_tac_toe, config, states)
    types = jax.tree.map(jax.typeof, (states, known))
    num_known = []
    while not states.terminated.any():
        output = run(outputs, jax.random.key(0), states, known)
        states = step_all(tic_tac_toe.game, states, output.action)
        tree = output.search_tree.replace(
            extra_data=None, root_invalid_actions=known.root_invalid_actions
        )
        known = keep(tree, locate(tree, states), max_nodes=config.tree_reuse_nodes)
        assert jax.tree.map(jax.typeof, (states, known)) == types
        num_known.append(int(known.node_visits[0, 0]))
    assert min(num_known[:-1]) > 0

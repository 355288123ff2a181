import dataclasses
import functools
import json
from typing import Any

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig, init_network
from azjax.players.model import evaluate, make_recurrent_fn, make_root
from azjax.search import (
    SEARCHES,
    AlphaZeroConfig,
    GumbelConfig,
    SearchConfig,
    alphazero_policy,
    improved_value,
)

GUMBEL = GumbelConfig()
ALPHAZERO = AlphaZeroConfig()
CONFIGS = pytest.mark.parametrize(
    "config",
    [
        pytest.param(GUMBEL, id="gumbel"),
        pytest.param(ALPHAZERO, id="alphazero", marks=pytest.mark.slow),
    ],
)
TINY = NetworkConfig(
    trunk=DenseTrunkConfig(num_blocks=0, width=4, stem_channels=8, window=2)
)
GAME = games.make("connect_four")
step = jax.jit(GAME.step)
BATCH_SIZE = 4
NUM_SIMULATIONS = 200

# Player 0 has three in column 1 and is to move; player 1 has three in column 2.
CAN_WIN = "121212"
# Player 1 is to move, and player 0 threatens to fill column 1.
MUST_BLOCK = "12131"
# Seven cells are empty in columns 3, 5 and 7; player 0 is to move, no player can win.
#   O X . X . O .
#   X X X O . X O
#   O O X O . X O
#   X X O X . O X
#   O O O X O X O
#   X X O X O O X
NEARLY_FULL = "762711426515432146731162632426343747"
# Player 1 is to move, and player 0 has an open row of three: columns 2 and 6 win.
IS_LOST = "33445"


def position(moves: str):
    state = GAME.init()
    for move in moves:
        state = step(state, GAME.text_to_action(state, move))
    assert not state.terminated
    return state


def positions(*moves: str):
    states = [position(text) for text in moves]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


@functools.cache
def init(config: NetworkConfig = TINY):
    return init_network(
        jax.random.key(0), GAME.observation_shape, GAME.num_actions, config
    )


def uniform_network():
    """A network with equal logits and value 0."""
    return jax.tree.map(np.zeros_like, init()[1])


def preferring_network(*logits: float):
    """A network with the same logits in every position, and value 0."""
    variables = uniform_network()
    variables.params["policy_head"]["linear"]["bias"] = np.float32(logits)
    return variables


def optimistic_network():
    """A network with equal logits and a positive value."""
    variables = uniform_network()
    variables.params["value_head"]["linear"]["bias"] = np.float32([1, 0, 0])
    return variables


@functools.cache
def searcher(config, num_simulations, network_config=TINY, *, explores=False):
    """A compiled `(variables, rng_key, states) -> PolicyOutput`."""
    network, _ = init(network_config)

    def run(variables, rng_key, states):
        return config.policy(explores=explores)(
            variables,
            rng_key,
            make_root(GAME, *evaluate(GAME, network, variables, states), states),
            make_recurrent_fn(GAME, network),
            num_simulations,
            invalid_actions=~jax.vmap(GAME.legal_action_mask)(states),
        )

    return jax.jit(run)


def search(config, variables, *moves, explores=False, seed=0):
    """Searches the positions after `moves`; all calls share one compiled function."""
    padded = (*moves, *[moves[0]] * (BATCH_SIZE - len(moves)))
    run = searcher(config, NUM_SIMULATIONS, explores=explores)
    output = run(variables, jax.random.key(seed), positions(*padded))
    return jax.tree.map(lambda leaf: leaf[: len(moves)], jax.device_get(output))


value_of = jax.jit(improved_value)
legal_in_tree = jax.jit(jax.vmap(jax.vmap(GAME.legal_action_mask)))


def test_gumbel_search_equals_mctx_with_the_same_settings():
    config = GumbelConfig(
        max_num_considered_actions=3, value_scale=0.2, rescale_values=False
    )
    ours = call(config.policy(explores=True))
    theirs = call(
        mctx.gumbel_muzero_policy,
        gumbel_scale=1.0,
        max_num_considered_actions=3,
        qtransform=functools.partial(
            mctx.qtransform_completed_by_mix_value,
            value_scale=0.2,
            rescale_values=False,
        ),
    )
    assert_same_output(ours, theirs)
    np.testing.assert_array_equal(
        ours.search_tree.extra_data.root_gumbel,
        theirs.search_tree.extra_data.root_gumbel,
    )
    is_considered = np.asarray(ours.search_tree.children_visits[:, 0]) > 0
    np.testing.assert_array_equal(is_considered.sum(axis=1), 3)


def test_alphazero_policy_equals_mctx_with_values_mapped_to_0_to_1():
    settings = {"dirichlet_alpha": 0.7, "dirichlet_fraction": 0.5, "temperature": 0.5}
    # If some moves are illegal, mctx draws noise for them too.
    all_legal = ("", "1212")
    ours = call(alphazero_policy, all_legal, c_init=2.0, c_base=100.0, **settings)
    theirs = call(
        mctx.muzero_policy,
        all_legal,
        pb_c_init=2.0,
        pb_c_base=100.0,
        qtransform=lambda tree, node: jnp.where(
            tree.children_visits[node] > 0, (tree.qvalues(node) + 1) / 2, 0.0
        ),
        **settings,
    )
    assert_same_output(ours, theirs)


def assert_same_output(ours, theirs):
    """Compares all results; mctx also searches beyond the end of a game."""
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(
        ours.action_weights, theirs.action_weights, rtol=1e-5, atol=1e-6
    )
    ours, theirs = jax.device_get((ours.search_tree, theirs.search_tree))
    is_used, is_used_by_mctx = ours.node_visits > 0, theirs.node_visits > 0
    is_behind_the_end = np.take_along_axis(
        theirs.embeddings.terminated, np.maximum(theirs.parents, 0), axis=1
    )
    np.testing.assert_array_equal(is_used, is_used_by_mctx & ~is_behind_the_end)
    goes_on = is_used & ~ours.embeddings.terminated
    np.testing.assert_array_equal(
        ours.root_invalid_actions, theirs.root_invalid_actions
    )
    trees = [
        tree.replace(root_invalid_actions=None, extra_data=None)
        for tree in (ours, theirs)
    ]
    nodes = [
        {
            name: jax.tree.map(
                lambda leaf, name=name: leaf[
                    goes_on if name.startswith("children") else is_used
                ],
                value,
            )
            for name, value in tree.items()
        }
        for tree in trees
    ]
    chex.assert_trees_all_close(*nodes, rtol=1e-5, atol=1e-6)


def call(policy, moves=("", NEARLY_FULL), **settings):
    """Searches the positions after `moves` with a random network."""
    network, variables = init()

    @jax.jit
    def run(states):
        return policy(
            variables,
            jax.random.key(3),
            make_root(GAME, *evaluate(GAME, network, variables, states), states),
            make_recurrent_fn(GAME, network),
            12,
            invalid_actions=~jax.vmap(GAME.legal_action_mask)(states),
            **settings,
        )

    return run(positions(*moves))


@CONFIGS
@pytest.mark.parametrize("column", [1, 7])
def test_search_finds_the_winning_move(config, column):
    output = search(config, uniform_network(), CAN_WIN.replace("1", str(column)))
    qvalues = output.search_tree.summary().qvalues[0]
    assert output.action[0] == column - 1
    np.testing.assert_allclose(qvalues[column - 1], 1.0, rtol=1e-6)


@CONFIGS
@pytest.mark.parametrize("column", [1, 7])
def test_search_blocks_an_immediate_loss(config, column):
    output = search(config, uniform_network(), MUST_BLOCK.replace("1", str(column)))
    assert output.action[0] == column - 1


@CONFIGS
def test_search_finds_that_a_double_threat_loses(config):
    output = search(config, uniform_network(), IS_LOST)
    assert value_of(output)[0] < -0.5


@CONFIGS
def test_no_illegal_move_is_in_the_tree_even_with_the_highest_prior(config):
    wants_full_columns = preferring_network(30, 30, 0, 30, 0, 30, 5)
    tree = search(config, wants_full_columns, NEARLY_FULL).search_tree
    legal = np.asarray(legal_in_tree(tree.embeddings))
    goes_on = ~tree.embeddings.terminated[..., None] & (tree.node_visits > 0)[..., None]
    assert not (goes_on & (tree.children_index >= 0) & ~legal).any()
    # The tree is deep enough to contain columns that become full within it.
    assert (goes_on & legal[:, :1] & ~legal).any()


@CONFIGS
def test_action_weights_of_illegal_moves_are_zero(config):
    wants_full_columns = preferring_network(30, 30, 0, 30, 0, 30, 5)
    output = search(config, wants_full_columns, NEARLY_FULL, explores=True)
    np.testing.assert_array_equal(output.action_weights[0, np.array([0, 1, 3, 5])], 0)
    np.testing.assert_allclose(output.action_weights.sum(), 1, rtol=1e-6)


@CONFIGS
def test_after_the_end_there_is_neither_reward_nor_value(config):
    tree = search(config, optimistic_network(), CAN_WIN).search_tree
    ended = np.asarray(tree.embeddings.terminated)
    assert (tree.node_visits[ended] > 1).any(), "nothing to see"
    assert (tree.children_index[ended] == tree.UNVISITED).all()
    for numbers in (
        tree.raw_values[ended],
        tree.node_values[ended],
        tree.children_values[ended],
        tree.children_rewards[ended],
        tree.children_discounts[ended],
    ):
        assert (numbers == 0).all()


@CONFIGS
def test_the_edge_to_a_terminated_position_has_the_reward_and_discount_0(config):
    tree = search(config, optimistic_network(), CAN_WIN).search_tree
    child = tree.children_index[0, 0, 0]
    assert tree.embeddings.terminated[0, child]
    assert tree.children_rewards[0, 0, 0] == 1
    assert tree.children_discounts[0, 0, 0] == 0


@CONFIGS
def test_the_other_edges_have_reward_0_and_discount_minus_1(config):
    tree = search(config, optimistic_network(), CAN_WIN).search_tree
    visited = np.asarray(tree.children_visits[0, 0] > 0)[1:]
    assert visited.any()
    assert (tree.children_rewards[0, 0, 1:] == 0).all()
    assert (tree.children_discounts[0, 0, 1:][visited] == -1).all()


def test_gumbel_search_without_noise_does_not_depend_on_the_key():
    # With the uniform network all moves are equal.
    outputs = [
        search(GUMBEL, uniform_network(), "", CAN_WIN, seed=seed) for seed in (1, 2)
    ]
    chex.assert_trees_all_equal(*(output.search_tree for output in outputs))
    np.testing.assert_array_equal(outputs[0].action, outputs[1].action)


def test_alphazero_search_without_noise_or_ties_does_not_depend_on_the_key():
    variables = preferring_network(0.53, 0.31, 0.97, 0.11, 0.71, 0.23, 0.41)
    outputs = [
        search(ALPHAZERO, variables, "", MUST_BLOCK, seed=seed) for seed in (1, 2)
    ]
    chex.assert_trees_all_equal(*(output.search_tree for output in outputs))
    np.testing.assert_array_equal(outputs[0].action, outputs[1].action)


def test_alphazero_search_without_noise_breaks_ties_by_the_lowest_action():
    # With the uniform network all moves are equal.
    trees = [
        search(ALPHAZERO, uniform_network(), "", seed=seed).search_tree
        for seed in (1, 2)
    ]
    chex.assert_trees_all_equal(*trees)
    children = np.asarray(trees[0].children_index[0, 0])
    assert (children > 0).all()
    assert (np.diff(children) > 0).all(), "not visited in the order of their numbers"


@CONFIGS
def test_noise_makes_search_depend_on_the_key(config):
    output = search(config, uniform_network(), *[""] * BATCH_SIZE, explores=True)
    assert len(np.unique(output.action)) > 1


@CONFIGS
def test_the_same_key_gives_the_same_search(config):
    outputs = [search(config, init()[1], "", explores=True) for _ in range(2)]
    chex.assert_trees_all_equal(*(output.search_tree for output in outputs))


def test_puct_plays_a_most_visited_move_when_it_explores():
    output = search(ALPHAZERO, init()[1], "", CAN_WIN, MUST_BLOCK, explores=True)
    visits = np.asarray(output.search_tree.children_visits[:, 0])
    chosen = visits[np.arange(3), output.action]
    np.testing.assert_array_equal(chosen, visits.max(axis=-1))


def test_action_weights_of_alphazero_are_the_visit_counts():
    output = search(ALPHAZERO, init()[1], "", MUST_BLOCK, explores=True)
    visits = output.search_tree.children_visits[:, 0]
    np.testing.assert_array_equal(visits.sum(axis=-1), NUM_SIMULATIONS)
    np.testing.assert_allclose(
        output.action_weights, visits / NUM_SIMULATIONS, rtol=1e-6
    )


def test_alphazero_without_noise_plays_a_most_visited_move():
    output = search(ALPHAZERO, init()[1], "", CAN_WIN, MUST_BLOCK)
    visits = output.search_tree.children_visits[:, 0]
    chosen = visits[np.arange(3), output.action]
    np.testing.assert_array_equal(chosen, visits.max(axis=-1))


@CONFIGS
def test_a_bfloat16_network_is_searched_in_float32_with_integer_counts(config):
    low = dataclasses.replace(TINY, dtype="bfloat16")
    output = jax.eval_shape(
        searcher(config, 4, low, explores=True),
        init(low)[1],
        jax.random.key(0),
        positions(""),
    )
    tree = output.search_tree
    chex.assert_type(
        [
            output.action_weights,
            jax.eval_shape(improved_value, output),
            tree.node_values,
            tree.raw_values,
            tree.children_values,
            tree.children_rewards,
            tree.children_discounts,
            tree.children_prior_logits,
        ],
        jnp.float32,
    )
    chex.assert_type([tree.node_visits, tree.children_visits, output.action], jnp.int32)


def searched_root(visits, qvalues, action_weights, *, root_value) -> mctx.PolicyOutput:
    """A tree with only the root, after which the opponent is to move."""
    visits = np.int32([visits])
    weights = np.float32([action_weights])
    nodes = np.zeros((1, 1), np.float32)
    tree: dict[str, Any] = {
        "node_visits": 1 + visits.sum(axis=-1, keepdims=True),
        "raw_values": nodes,
        "node_values": np.float32([[root_value]]),
        "parents": nodes,
        "action_from_parent": nodes,
        "children_index": np.where(visits > 0, 1, -1)[:, None],
        "children_prior_logits": np.zeros((1, *visits.shape), np.float32),
        "children_visits": visits[:, None],
        "children_rewards": np.zeros((1, *visits.shape), np.float32),
        "children_discounts": -np.ones((1, *visits.shape), np.float32),
        "children_values": -np.float32([[qvalues]]),
        "embeddings": nodes,
        "root_invalid_actions": np.zeros(visits.shape, bool),
        "extra_data": None,
    }
    output: dict[str, Any] = {
        "action": weights.argmax(axis=-1),
        "action_weights": weights,
        "search_tree": mctx.Tree(**tree),
    }
    return mctx.PolicyOutput(**output)


def test_the_improved_value_weights_the_visited_moves_by_the_policy():
    output = searched_root([2, 1, 0], [1.0, -0.5, 0.0], [0.6, 0.2, 0.2], root_value=0.3)
    # (0.6 * 1 - 0.2 * 0.5) / (0.6 + 0.2)
    np.testing.assert_allclose(value_of(output), [0.625], rtol=1e-6)


def test_the_improved_value_does_not_count_visits():
    few = searched_root([1, 1], [0.5, -0.5], [0.9, 0.1], root_value=0.0)
    many = searched_root([1, 99], [0.5, -0.5], [0.9, 0.1], root_value=0.0)
    np.testing.assert_allclose(value_of(few), [0.4], rtol=1e-6)
    np.testing.assert_allclose(value_of(many), [0.4], rtol=1e-6)


def test_without_policy_on_visited_moves_the_improved_value_is_the_roots():
    output = searched_root([1, 0], [-1.0, 0.0], [0.0, 1.0], root_value=0.3)
    np.testing.assert_allclose(value_of(output), [0.3], rtol=1e-6)


@CONFIGS
def test_the_improved_value_of_a_won_position_is_higher_than_of_a_lost_one(config):
    output = search(config, optimistic_network(), CAN_WIN, IS_LOST, explores=True)
    value = np.asarray(value_of(output))
    assert (np.abs(value) <= 1 + 1e-6).all()
    assert value[0] > value[1]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            {"max_num_considered_actions": 0},
            "search.max_num_considered_actions must be an int from 1",
        ),
        (
            {"value_scale": float("nan")},
            "value_scale must be a finite number >= 0",
        ),
        (
            {"tree_reuse_nodes": 1.5},
            "search.tree_reuse_nodes must be an int from 0 .* 1.5",
        ),
        (
            {"tree_reuse_nodes": 10**12},
            "search.tree_reuse_nodes must be .* to 10000000: 10",
        ),
        ({"tree_reuse_nodes": True}, "search.tree_reuse_nodes must be an int"),
        ({"use_solver": "yes"}, "search.use_solver must be True or False: 'yes'"),
        ({"c_init": float("inf")}, "search.c_init must be a finite number >= 0: inf"),
        ({"forced_playouts": -1.0}, "forced_playouts must be a finite number >= 0"),
        ({"first_play_reduction": -1}, "first_play_reduction must be .* >= 0: -1"),
        (
            {"dirichlet_alpha": 0.0},
            "dirichlet_alpha must be a finite number > 0",
        ),
        (
            {"dirichlet_fraction": 1.5},
            "search.dirichlet_fraction must be a number from 0 to 1",
        ),
    ],
)
def test_a_wrong_setting_is_refused(setting, message):
    is_gumbel = {*setting} & {"max_num_considered_actions", "value_scale"}
    kind = GumbelConfig if is_gumbel else AlphaZeroConfig
    with pytest.raises(ValueError, match=message):
        kind(**setting)


def test_an_unknown_algorithm_is_refused():
    with pytest.raises(ValueError, match="unknown search algorithm 'minimax'; known"):
        SEARCHES.find("minimax")


def test_settings_survive_json():
    config = AlphaZeroConfig(c_init=2, tree_reuse_nodes=7)
    read = SearchConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert read == config
    assert read.algorithm == "alphazero"


def test_a_setting_of_another_algorithm_is_refused():
    with pytest.raises(ValueError, match=r"unknown setting search\.c_init"):
        SearchConfig.from_json({"algorithm": "gumbel", "c_init": 2.0}, "search.")


def test_an_int_is_accepted_as_dirichlet_alpha():
    config = AlphaZeroConfig(dirichlet_alpha=1)
    run = searcher(config, 2, explores=True)
    output = jax.eval_shape(run, init()[1], jax.random.key(0), positions(""))
    assert output.action.shape == (1,)

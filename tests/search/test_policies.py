import dataclasses
import functools
from collections.abc import Iterable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games
from azjax.networks import NetworkConfig, init_network
from azjax.players.model import evaluate, make_recurrent_fn, make_root
from azjax.search import (
    SearchConfig,
    alphazero_policy,
    gumbel_policy,
    improved_value,
    run_search,
)

GUMBEL = SearchConfig(algorithm="gumbel")
ALPHAZERO = SearchConfig(algorithm="alphazero")
CONFIGS = pytest.mark.parametrize(
    "config", [GUMBEL, ALPHAZERO], ids=["gumbel", "alphazero"]
)
TINY = NetworkConfig(num_blocks=0, width=4, stem_channels=2, window=2)
CONNECT_FOUR = games.make("connect_four")
TIC_TAC_TOE = games.make("tic_tac_toe")

# Player 0 has three in column 1 and is to move; so has player 1 in column 2.
CAN_WIN = "121212"
# Player 1 is to move, and player 0 threatens to fill column 1.
MUST_BLOCK = "12131"
# Seven cells are empty in columns 3, 5 and 7; player 0 is to move, nobody can win.
#   O X . X . O .
#   X X X O . X O
#   O O X O . X O
#   X X O X . O X
#   O O O X O X O
#   X X O X O O X
NEARLY_FULL = "762711426515432146731162632426343747"
# No line yet; X has the corner and the centre, O two edges:
#   X O .
#   O X .
#   . . .
FOUR_PLIES = ("a3", "b3", "b2", "a2")


def position(game: games.Game, moves: Iterable[str]):
    state = game.init()
    for move in moves:
        state = game.step(state, jnp.int32(game.text_to_action(move)))
    assert not state.terminated
    return state


def positions(game: games.Game, *moves: Iterable[str]):
    states = [position(game, text) for text in moves]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


@functools.cache
def network_for(game: games.Game, config: NetworkConfig = TINY):
    return init_network(
        jax.random.key(0), game.observation_shape, game.num_actions, config
    )


@functools.cache
def searcher(game, config, num_simulations, network_config=TINY):
    """A compiled `(variables, rng_key, states, noise) -> PolicyOutput`."""
    network, _ = network_for(game, network_config)

    def search(variables, rng_key, states, noise):
        return run_search(
            config,
            variables,
            rng_key,
            make_root(*evaluate(game, network, variables, states), states),
            make_recurrent_fn(game, network),
            num_simulations,
            invalid_actions=~jax.vmap(game.legal_action_mask)(states),
            noise=noise,
        )

    return jax.jit(search, static_argnames="noise")


def search(game, states, config, num_simulations, *, noise=0.0, seed=0, zero=True):
    """Searches with a network that knows nothing if `zero`, else a random one."""
    _, variables = network_for(game)
    if zero:
        variables = jax.tree.map(jnp.zeros_like, variables)
    run = searcher(game, config, num_simulations)
    return run(variables, jax.random.key(seed), states, noise)


def test_gumbel_policy_is_mctx_with_the_settings_passed_on():
    ours = call(gumbel_policy, gumbel_scale=0.5, value_scale=0.2, rescale_values=False)
    theirs = call(
        mctx.gumbel_muzero_policy,
        gumbel_scale=0.5,
        max_num_considered_actions=16,
        qtransform=functools.partial(
            mctx.qtransform_completed_by_mix_value,
            value_scale=0.2,
            rescale_values=False,
        ),
    )
    chex.assert_trees_all_equal(ours, theirs)


def test_alphazero_policy_is_mctx_with_values_mapped_to_0_to_1():
    settings = {"dirichlet_alpha": 0.7, "dirichlet_fraction": 0.5, "temperature": 0.5}
    ours = call(alphazero_policy, c_init=2.0, c_base=100.0, **settings)
    theirs = call(
        mctx.muzero_policy,
        pb_c_init=2.0,
        pb_c_base=100.0,
        qtransform=lambda tree, node: jnp.where(
            tree.children_visits[node] > 0, (tree.qvalues(node) + 1) / 2, 0.0
        ),
        **settings,
    )
    chex.assert_trees_all_close(ours, theirs, rtol=1e-6)


def call(policy, **settings):
    """Searches tic-tac-toe with a random network."""
    network, variables = network_for(TIC_TAC_TOE)
    states = positions(TIC_TAC_TOE, (), FOUR_PLIES)
    legal = jax.vmap(TIC_TAC_TOE.legal_action_mask)(states)
    run = functools.partial(
        policy,
        recurrent_fn=make_recurrent_fn(TIC_TAC_TOE, network),
        num_simulations=12,
        invalid_actions=~legal,
        **settings,
    )
    root = make_root(*evaluate(TIC_TAC_TOE, network, variables, states), states)
    return jax.jit(run)(variables, jax.random.key(3), root)


@CONFIGS
@pytest.mark.parametrize("column", [1, 7])
def test_search_finds_the_winning_move(config, column):
    moves = CAN_WIN.replace("1", str(column))
    output = search(CONNECT_FOUR, positions(CONNECT_FOUR, moves), config, 64)
    assert output.action[0] == column - 1
    np.testing.assert_allclose(
        output.search_tree.summary().qvalues[0, column - 1], 1.0, rtol=1e-6
    )


@CONFIGS
@pytest.mark.parametrize("column", [1, 7])
def test_search_blocks_what_would_lose_at_once(config, column):
    moves = MUST_BLOCK.replace("1", str(column))
    output = search(CONNECT_FOUR, positions(CONNECT_FOUR, moves), config, 128)
    assert output.action[0] == column - 1


@CONFIGS
def test_search_knows_who_wins_by_force(config):
    # X at a1 and a3 and c1 against b1 and a2: b2 and b3 both win, O stops one.
    states = positions(TIC_TAC_TOE, ("a3", "b1", "a1", "a2", "c1"))
    output = search(TIC_TAC_TOE, states, config, 200)
    assert improved_value(output)[0] < -0.8


@CONFIGS
def test_no_illegal_move_is_in_the_tree_even_if_the_network_wants_it(config):
    tree = tree_of_a_misled_search(CONNECT_FOUR, config)
    assert (tree.expanded & ~tree.legal & ~tree.terminated[..., None]).sum() == 0
    # The tree is deep enough to hold columns that fill up only within it.
    at_the_root = tree.legal[:, :1]
    assert (at_the_root & ~tree.legal & ~tree.terminated[..., None]).any()


@CONFIGS
def test_action_weights_of_illegal_moves_are_zero(config):
    states = positions(CONNECT_FOUR, NEARLY_FULL)
    output = search(CONNECT_FOUR, states, config, 16, noise=1.0, zero=False)
    np.testing.assert_array_equal(
        output.action_weights[0] > 0, [False, False, True, False, True, False, True]
    )
    np.testing.assert_allclose(output.action_weights.sum(), 1, rtol=1e-6)


class MisledTree(NamedTuple):
    """What is in a tree of nodes N, `[B, N, ...]`."""

    expanded: np.ndarray
    legal: np.ndarray
    terminated: np.ndarray
    tree: mctx.Tree


def tree_of_a_misled_search(game, config) -> MisledTree:
    """Searches a nearly full board with a network that wants full columns."""
    states = positions(game, NEARLY_FULL)
    _, variables = network_for(game)
    variables = jax.tree.map(jnp.zeros_like, variables)
    head = variables.params["policy_head"]["linear"]
    head["bias"] = jnp.array([30.0, 30, 0, 30, 0, 30, 5])
    output = searcher(game, config, 64)(variables, jax.random.key(0), states, 0.0)
    tree = output.search_tree
    legal = jax.vmap(jax.vmap(game.legal_action_mask))(tree.embeddings)
    assert (tree.node_visits > 0).all()
    return MisledTree(
        np.asarray(tree.children_index >= 0),
        np.asarray(legal),
        np.asarray(tree.embeddings.terminated),
        tree,
    )


@CONFIGS
def test_after_the_end_there_is_neither_reward_nor_value(config):
    states = positions(CONNECT_FOUR, CAN_WIN)
    tree = search(CONNECT_FOUR, states, config, 64, zero=False).search_tree
    ended = np.asarray(tree.embeddings.terminated)
    below = ended[..., None] & np.asarray(tree.children_index >= 0)
    assert below.any(), "the search went on after the end"
    for numbers in (
        tree.raw_values[ended],
        tree.node_values[ended],
        tree.children_values[ended],
        tree.children_rewards[ended],
        tree.children_discounts[ended],
    ):
        assert (numbers == 0).all()


@CONFIGS
def test_the_edge_into_the_end_has_the_reward_and_no_discount(config):
    states = positions(CONNECT_FOUR, CAN_WIN)
    tree = search(CONNECT_FOUR, states, config, 64, zero=False).search_tree
    child = tree.children_index[0, 0, 0]
    assert tree.embeddings.terminated[0, child]
    assert tree.children_rewards[0, 0, 0] == 1
    assert tree.children_discounts[0, 0, 0] == 0
    # Elsewhere the game goes on, and the opponent moves.
    assert (tree.children_rewards[0, 0, 1:] == 0).all()
    went_on = tree.children_index[0, 0, 1:] >= 0
    assert (tree.children_discounts[0, 0, 1:] == jnp.where(went_on, -1, 0)).all()


def test_gumbel_search_without_noise_does_not_depend_on_the_key():
    # On the empty board all moves are equal to a network that knows nothing.
    states = positions(TIC_TAC_TOE, (), FOUR_PLIES)
    outputs = [search(TIC_TAC_TOE, states, GUMBEL, 32, seed=seed) for seed in (1, 2)]
    outputs = [dataclasses.replace(output, search_tree=None) for output in outputs]
    chex.assert_trees_all_equal(*outputs)


def test_alphazero_search_without_noise_does_not_depend_on_the_key_but_for_ties():
    states = positions(CONNECT_FOUR, CAN_WIN, MUST_BLOCK)
    outputs = [
        search(CONNECT_FOUR, states, ALPHAZERO, 64, seed=seed, zero=False)
        for seed in (1, 2)
    ]
    outputs = [dataclasses.replace(output, search_tree=None) for output in outputs]
    chex.assert_trees_all_equal(*outputs)


def test_alphazero_search_without_noise_breaks_ties_by_the_key():
    states = positions(TIC_TAC_TOE, *[()] * 64)
    output = search(TIC_TAC_TOE, states, ALPHAZERO, 2)
    assert len(np.unique(output.action)) > 1


@CONFIGS
def test_noise_makes_search_depend_on_the_key(config):
    states = positions(TIC_TAC_TOE, *[()] * 64)
    output = search(TIC_TAC_TOE, states, config, 8, noise=1.0, zero=False)
    assert len(np.unique(output.action)) > 1


@CONFIGS
def test_the_same_key_searches_the_same(config):
    states = positions(TIC_TAC_TOE, (), FOUR_PLIES)
    outputs = [search(TIC_TAC_TOE, states, config, 8, noise=1.0) for _ in range(2)]
    chex.assert_trees_all_equal(outputs[0].search_tree, outputs[1].search_tree)


def test_action_weights_of_alphazero_are_the_visit_counts():
    states = positions(TIC_TAC_TOE, (), FOUR_PLIES)
    output = search(TIC_TAC_TOE, states, ALPHAZERO, 40, noise=1.0, zero=False)
    visits = output.search_tree.children_visits[:, 0]
    np.testing.assert_array_equal(visits.sum(axis=-1), [40, 40])
    np.testing.assert_allclose(output.action_weights, visits / 40, rtol=1e-6)


def test_alphazero_without_noise_takes_a_most_visited_move():
    states = positions(TIC_TAC_TOE, (), FOUR_PLIES)
    output = search(TIC_TAC_TOE, states, ALPHAZERO, 40, zero=False)
    visits = output.search_tree.children_visits[:, 0]
    chosen = visits[jnp.arange(2), output.action]
    np.testing.assert_array_equal(chosen, visits.max(axis=-1))


def test_gumbel_considers_as_many_moves_as_it_is_told():
    states = positions(TIC_TAC_TOE, ())
    config = SearchConfig(max_considered_actions=3)
    output = search(TIC_TAC_TOE, states, config, 20, noise=1.0)
    assert (output.search_tree.children_visits[:, 0] > 0).sum() == 3


@CONFIGS
def test_a_bfloat16_network_is_searched_in_float32_with_integer_counts(config):
    low = dataclasses.replace(TINY, dtype="bfloat16")
    _, variables = network_for(TIC_TAC_TOE, low)
    states = positions(TIC_TAC_TOE, ())
    run = searcher(TIC_TAC_TOE, config, 4, low)
    output = run(variables, jax.random.key(0), states, 1.0)
    tree = output.search_tree
    chex.assert_type(
        [
            output.action_weights,
            improved_value(output),
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


def test_a_bfloat16_root_is_refused():
    network, variables = network_for(TIC_TAC_TOE)
    states = positions(TIC_TAC_TOE, ())
    logits = jnp.zeros((1, 9), jnp.bfloat16)
    with pytest.raises(AssertionError):
        run_search(
            GUMBEL,
            variables,
            jax.random.key(0),
            make_root(logits, jnp.zeros((1, 3)), states),
            make_recurrent_fn(TIC_TAC_TOE, network),
            2,
            invalid_actions=jnp.zeros((1, 9), bool),
            noise=0.0,
        )


def searched_root(visits, qvalues, action_weights, *, root_value) -> mctx.PolicyOutput:
    """A tree of the root alone, after which the opponent moves."""
    visits = jnp.array([visits], jnp.int32)
    nodes = jnp.zeros((1, 1))
    unused = {
        field: nodes
        for field in ("raw_values", "parents", "action_from_parent", "embeddings")
    }
    tree = mctx.Tree(
        node_visits=1 + visits.sum(axis=-1, keepdims=True),
        node_values=jnp.array([[root_value]]),
        children_index=jnp.where(visits > 0, 1, -1)[:, None],
        children_prior_logits=jnp.zeros((1, 1, visits.shape[-1])),
        children_visits=visits[:, None],
        children_rewards=jnp.zeros((1, 1, visits.shape[-1])),
        children_discounts=-jnp.ones((1, 1, visits.shape[-1])),
        children_values=-jnp.array([[qvalues]]),
        root_invalid_actions=jnp.zeros(visits.shape, bool),
        extra_data=None,
        **unused,
    )
    weights = jnp.array([action_weights])
    return mctx.PolicyOutput(
        action=weights.argmax(axis=-1), action_weights=weights, search_tree=tree
    )


def test_the_improved_value_weighs_the_visited_moves_by_the_policy():
    output = searched_root([2, 1, 0], [1.0, -0.5, 0.0], [0.6, 0.2, 0.2], root_value=0.3)
    # (0.6 * 1 - 0.2 * 0.5) / (0.6 + 0.2)
    np.testing.assert_allclose(improved_value(output), [0.625], rtol=1e-6)


def test_the_improved_value_does_not_count_visits():
    few = searched_root([1, 1], [0.5, -0.5], [0.9, 0.1], root_value=0.0)
    many = searched_root([1, 99], [0.5, -0.5], [0.9, 0.1], root_value=0.0)
    np.testing.assert_allclose(improved_value(few), [0.4], rtol=1e-6)
    np.testing.assert_allclose(improved_value(many), [0.4], rtol=1e-6)


def test_the_improved_value_is_the_roots_where_the_policy_likes_no_visited_move():
    output = searched_root([1, 0], [-1.0, 0.0], [0.0, 1.0], root_value=0.3)
    np.testing.assert_allclose(improved_value(output), [0.3], rtol=1e-6)


@CONFIGS
def test_the_improved_value_lies_between_the_best_and_the_worst_move(config):
    states = positions(CONNECT_FOUR, CAN_WIN, MUST_BLOCK, NEARLY_FULL)
    output = search(CONNECT_FOUR, states, config, 16, noise=1.0, zero=False)
    value = improved_value(output)
    assert (jnp.abs(value) <= 1 + 1e-6).all()
    assert value[0] > value[1]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"algorithm": "minimax"}, "search.algorithm must be gumbel or alphazero"),
        ({"max_considered_actions": 0}, "search.max_considered_actions must be >= 1"),
        ({"value_scale": float("nan")}, "search.value_scale must be >= 0"),
        ({"dirichlet_alpha": 0.0}, "search.dirichlet_alpha must be > 0"),
        ({"dirichlet_fraction": 1.5}, "search.dirichlet_fraction must be between 0"),
    ],
)
def test_a_wrong_setting_is_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        SearchConfig(**setting)


def test_a_whole_number_is_a_dirichlet_alpha_too():
    config = SearchConfig(algorithm="alphazero", dirichlet_alpha=1)
    output = search(TIC_TAC_TOE, positions(TIC_TAC_TOE, ()), config, 2, noise=1.0)
    assert 0 <= output.action[0] < 9

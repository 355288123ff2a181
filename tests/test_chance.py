"""A game with chance, through search and training."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from coin_toss import CoinToss
from training.tiny_runs import config

from azjax import games
from azjax.arena.exhaustive import solve
from azjax.devices import tracing_for
from azjax.games import registry
from azjax.games.core import initial_states
from azjax.games.random_moves import play_random_moves
from azjax.players import MCTSPlayer, choose
from azjax.players.model import is_illegal, make_root, recurrent_fn_of
from azjax.search import AlphaZeroConfig, GumbelConfig, improved_value, subtree
from azjax.training import train
from azjax.training.territory import training_network

GAME = CoinToss()
KEY = jax.random.key(0)


def guess(game, sharpness, states):
    """Returns logits and results, fixed functions of the positions; with a sharpness of
    0 all legal actions are equally likely and all results are even."""
    legal = jax.vmap(game.legal_action_mask)(states)
    seen = jax.vmap(game.observe)(states).reshape(len(legal), -1)
    weights = np.random.default_rng(0).normal(size=(18, 10))
    drawn = sharpness * jnp.sin(seen @ weights)
    logits = jnp.where(legal, 2 * drawn[:, 1:], jnp.finfo(jnp.float32).min)
    win = (1 + drawn[:, :1]) / 2
    return logits, jnp.concatenate([win, 0 * win, 1 - win], axis=1)


@functools.partial(
    jax.jit, static_argnums=(0, 1, 2), static_argnames=("platform", "sharpness")
)
def search(
    game, config, num_simulations, states, *, tree=None, platform="cpu", sharpness=1.0
):
    """Searches with a model of `guess`, and returns the output."""
    evaluate = functools.partial(guess, game, sharpness)
    with tracing_for(platform):
        root = make_root(game, *evaluate(states), states)
        return config.policy(explores=False)(
            None,
            KEY,
            root,
            recurrent_fn_of(game, lambda variables, key, states: evaluate(states)),
            num_simulations,
            invalid_actions=is_illegal(root.prior_logits),
            max_depth=game.max_moves,
            tree=tree,
        )


@functools.partial(jax.jit, static_argnums=(0, 1))
def positions(game, number, num_moves):
    """Returns positions after random moves, none of which waits for chance."""
    states = initial_states(game, number)
    return play_random_moves(game, KEY, states, jnp.full(number, num_moves))


def nodes_of(tree):
    """Yields the used nodes of all trees, as (tree without batch axis, index)."""
    for game in range(len(tree.node_visits)):
        one = jax.tree.map(lambda leaf: leaf[game], tree)  # noqa: B023
        for node in np.flatnonzero(one.node_visits):
            yield one, node


def state_of(tree, node):
    return jax.tree.map(lambda leaf: leaf[node], tree.embeddings)


@pytest.fixture(scope="module", params=[GumbelConfig(), AlphaZeroConfig()])
def searched(request):
    output = search(GAME, request.param, 100, positions(GAME, 4, 2))
    return request.param, jax.device_get(output.search_tree)


def test_chance_nodes_have_the_likeliest_outcomes_and_their_weighted_value(searched):
    _, tree = searched
    num_chance = 0
    for one, node in nodes_of(tree):
        waits = bool(one.embeddings.waits[node])
        assert waits == one.is_chance[node]
        visits = one.children_visits[node]
        if not waits:
            assert node == 0 or visits.sum() in (0, one.node_visits[node] - 1)
            continue
        num_chance += 1
        assert visits.sum() == one.node_visits[node] > 0
        probability = np.asarray(GAME.chance(state_of(one, node)))
        np.testing.assert_allclose(
            np.exp(one.children_prior_logits[node])[:3], probability, rtol=1e-6
        )
        # The visits are those that the rule gives one after the other.
        expected = np.zeros(9, int)
        for _ in range(visits.sum()):
            expected[np.argmax(probability / (expected[:3] + 1))] += 1
        np.testing.assert_array_equal(visits, expected)
        is_visited = visits[:3] > 0
        values = (
            one.children_rewards[node]
            + one.children_discounts[node] * one.children_values[node]
        )[:3]
        weights = probability * is_visited
        np.testing.assert_allclose(
            one.node_values[node], (weights * values).sum() / weights.sum(), atol=1e-5
        )
        # Of the player whose turn it is; after tails the other one moves.
        signs = np.array([1, -1, 0])
        np.testing.assert_array_equal(
            one.children_discounts[node, :3][is_visited], signs[is_visited]
        )
        if is_visited[2]:
            assert values[2] == 1
    assert num_chance > 100


@pytest.mark.slow
def test_a_program_for_an_accelerator_makes_the_same_tree(searched):
    config, expected = searched
    platform = "tpu" if isinstance(config, AlphaZeroConfig) else "gpu"
    states = positions(GAME, 4, 2)
    found = search(GAME, config, 100, states, platform=platform).search_tree
    for name in ("children_index", "node_visits", "node_values", "is_chance"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), atol=2e-6
        )


class OneOutcome(CoinToss):
    """Tic-tac-toe with a coin that changes nothing."""

    name = "one_outcome"
    num_outcomes = 1

    def chance(self, state):
        return state.waits.astype(jnp.float32)[None]


@pytest.mark.slow
def test_with_one_outcome_the_search_is_that_of_the_game_without_chance():
    trees = []
    for game in OneOutcome(), games.make("tic_tac_toe"):
        states = initial_states(game, 2)
        if game.num_outcomes:
            states = jax.vmap(game.chance_step)(states, jnp.zeros(2, jnp.int32))
        trees.append(search(game, AlphaZeroConfig(), 64, states).search_tree)
    found, expected = trees
    root = found.ROOT_INDEX
    np.testing.assert_array_equal(
        found.children_visits[:, root], expected.children_visits[:, root]
    )
    np.testing.assert_allclose(
        found.summary().qvalues, expected.summary().qvalues, atol=2e-6
    )


@pytest.fixture(scope="module")
def late():
    """16 positions of perhaps four more moves, with the exact values of the actions."""
    solution = solve(GAME)
    states = solution.states
    rows = np.flatnonzero((solution.num_moves == 5) & ~states.terminated)
    rows = rows[np.linspace(0, len(rows) - 1, 16).astype(int)]
    return (
        jax.tree.map(lambda leaf: leaf[rows], states),
        solution.action_values[rows],
    )


@pytest.mark.slow
@pytest.mark.parametrize("config", [GumbelConfig(), AlphaZeroConfig()])
def test_searches_converge_to_the_exact_values(config, late):
    states, exact = late
    output = search(GAME, config, 1000, states, sharpness=0.0)
    best, chosen = np.nanmax(exact, axis=1), exact[np.arange(16), output.action]
    assert (best - chosen).mean() < 0.01
    assert np.abs(improved_value(output) - best).mean() < 0.1


@pytest.mark.slow
def test_uct_plays_out_with_chance(late):
    states, exact = late
    choice = choose(MCTSPlayer(GAME, 600), KEY, states)
    chosen = exact[np.arange(16), choice.action]
    assert (np.nanmax(exact, axis=1) - chosen).mean() < 0.02
    assert np.abs(choice.value - np.nanmax(exact, axis=1)).mean() < 0.1


@pytest.mark.slow
def test_the_subtree_after_a_move_and_its_outcome_goes_on(searched):
    config, tree = searched
    move = tree.children_visits[:, 0].argmax(axis=1)
    chance_node = tree.children_index[np.arange(4), 0, move]
    below = tree.children_index[np.arange(4), chance_node, 0]
    assert (below > 0).all()
    kept = subtree(jax.tree.map(jnp.asarray, tree), below, max_nodes=60)
    states = jax.tree.map(lambda leaf: leaf[np.arange(4), below], tree.embeddings)
    goes_on = ~states.terminated
    after = jax.device_get(search(GAME, config, 20, states, tree=kept).search_tree)
    for row in np.flatnonzero(goes_on):
        before = tree.node_visits[row, below[row]]
        assert kept.node_visits[row, 0] == before
        assert after.node_visits[row, 0] == before + 20
    assert not after.is_chance[:, 0].any()


@pytest.mark.slow
def test_a_run_keeps_the_outcomes_and_another_run_learns_from_them(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(registry._GAMES, GAME.name, CoinToss)
    first = config(tmp_path / "first", game=GAME.name, iterations=6)
    train(first)
    rows = pq.read_table(first.directory / "games").to_pydict()
    order = np.lexsort((rows["ply"], rows["game"]))
    game, ply, player, ended, outcome = (
        np.array(rows[name])[order]
        for name in ("game", "ply", "player", "terminated", "outcome")
    )
    follows = (game[1:] == game[:-1]) & (np.diff(ply) == 1)
    assert set(outcome[:-1][follows]) == {0, 1}
    np.testing.assert_array_equal(
        (player[1:] == player[:-1])[follows], (outcome[:-1] == 1)[follows]
    )
    assert set(outcome[ended]) == {-1, 2}
    second = config(
        tmp_path / "second",
        game=GAME.name,
        iterations=1,
        learn_from=(str(first.directory),),
    )
    assert train(second).finished


def test_the_solver_is_refused_in_games_with_chance():
    settings = config("unused", game=GAME.name, search=GumbelConfig(use_solver=True))
    with pytest.raises(ValueError, match=r"use_solver must be False.*coin_toss"):
        training_network(settings, GAME, None)

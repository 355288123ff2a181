"""Searches with edges for the legal actions only find what others find."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games, players
from azjax.games.chess import Chess
from azjax.games.core import initial_states
from azjax.games.random_moves import play_random_moves
from azjax.networks import ConvTrunkConfig, NetworkConfig
from azjax.players import AlphaZeroPlayer, MCTSPlayer, first_network
from azjax.players.edges import (
    ListedState,
    action_of,
    at_edges,
    by_action,
    to_search,
)
from azjax.search import AlphaZeroConfig, GumbelConfig

CHESS = games.make("chess")
# Petrović 1964: the most legal moves of a position that a game can reach.
MOST_MOVES = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"
NETWORK = NetworkConfig(trunk=ConvTrunkConfig(num_blocks=1, channels=8), heads="board")
NUM_GAMES = 8
step = jax.jit(jax.vmap(CHESS.step))


class AllActions(Chess):
    max_legal_actions = 0


@pytest.fixture(scope="module")
def positions():
    """Returns positions of chess after random moves."""
    moves = jnp.arange(NUM_GAMES) * 8
    play = jax.jit(lambda key, states: play_random_moves(CHESS, key, states, moves))
    return play(jax.random.key(3), initial_states(CHESS, NUM_GAMES))


def legal_actions(states):
    return jax.jit(jax.vmap(CHESS.legal_action_mask))(states)


@pytest.mark.parametrize("num_actions", [1, 9, 31, 32, 33, 64, 200])
@pytest.mark.parametrize("fraction", [0, 0.1, 0.7, 1])
def test_the_actions_of_the_edges_are_the_legal_ones(num_actions, fraction):
    class Few(games.TicTacToe):
        max_legal_actions = size = num_actions - 1

    Few.num_actions = num_actions
    rng = np.random.default_rng(0)
    legal = rng.random((50, num_actions)) < fraction
    found = jax.jit(lambda legal: to_search(Few(), (), legal))(legal)
    if num_actions == 1:  # an edge for each action
        assert found == ()
        return
    for row, wanted in zip(np.asarray(found.actions), legal, strict=True):
        actions = np.flatnonzero(wanted)[: Few.size]
        np.testing.assert_array_equal(row[: len(actions)], actions)
        np.testing.assert_array_equal(row[len(actions) :], num_actions)


def test_a_position_with_218_moves_has_an_edge_for_each():
    state = jax.tree.map(lambda leaf: leaf[None], CHESS.from_fen(MOST_MOVES))
    legal = legal_actions(state)
    assert legal.sum() == CHESS.max_legal_actions
    actions = to_search(CHESS, state, legal).actions
    np.testing.assert_array_equal(actions[0], np.flatnonzero(legal[0]))


def test_numbers_of_edges_are_those_of_their_actions(positions):
    legal = legal_actions(positions)
    listed = to_search(CHESS, positions, legal)
    assert isinstance(listed, ListedState)
    numbers = jax.random.uniform(jax.random.key(0), legal.shape)
    of_edges = at_edges(listed, numbers, -1)
    np.testing.assert_array_equal(
        (of_edges >= 0).sum(axis=1), np.asarray(legal).sum(axis=1)
    )
    back = by_action(listed, of_edges, CHESS.num_actions)
    np.testing.assert_array_equal(back, np.where(legal, numbers, 0))
    best = action_of(listed, of_edges.argmax(axis=1))
    np.testing.assert_array_equal(best, jnp.where(legal, numbers, -1).argmax(axis=1))


@pytest.mark.parametrize(
    "search", [GumbelConfig(), AlphaZeroConfig(), GumbelConfig(tree_reuse_nodes=20)]
)
def test_a_search_finds_what_it_finds_with_all_actions(search, positions):
    network, variables = first_network(0, CHESS, NETWORK)
    found = []
    for game in (CHESS, AllActions()):
        player = AlphaZeroPlayer(game, search, 24, network, variables)
        analyze = jax.jit(player.analyze)
        key, carry = jax.random.key(0), players.init_carry(player, positions)
        first, analysis, carry = analyze(key, positions, carry)
        after = step(positions, first.action)
        found.append(jax.device_get((first, analysis, *analyze(key, after, carry)[:2])))
    assert (found[0][1].visits.sum(axis=1) == 24).all()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), *found)


def test_playouts_search_chess():
    """A mate in one is found, and no visit is lost."""
    state = CHESS.from_fen("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1")
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
    player = MCTSPlayer(CHESS, 200)
    choice, analysis, _ = jax.jit(
        lambda states: player.analyze(jax.random.key(0), states, None)
    )(states)
    assert CHESS.action_to_text(state, int(choice.action[0])) == "a1a8"
    assert analysis.visits.sum() == 200
    assert analysis.line[0, 0] == choice.action[0]

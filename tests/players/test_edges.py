"""Searches with edges for the legal actions only find what others find."""

import jax
import numpy as np
import pytest

from azjax import games, players
from azjax.games.tic_tac_toe import TicTacToe
from azjax.players import MCTSPlayer
from azjax.players.model import ListedState, action_of, at_edges, by_action, to_search
from azjax.search import AlphaZeroConfig

CHESS = games.make("chess")
# Petrović 1964: the most legal moves of a position that a game can reach.
MOST_MOVES = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"


class Listed(TicTacToe):
    """Tic-tac-toe from positions with a stone."""

    max_legal_actions = 8


@pytest.mark.parametrize("num_actions", [1, 9, 31, 32, 33, 64, 200])
def test_the_actions_of_the_edges_are_the_legal_ones(num_actions):
    class Few(TicTacToe):
        max_legal_actions = size = num_actions - 1

    Few.num_actions = num_actions
    chances = np.repeat([0, 0.1, 0.7, 1], 50)[:, None]
    legal = np.random.default_rng(0).random((200, num_actions)) < chances
    found = jax.jit(lambda legal: to_search(Few(), (), legal))(legal)
    if num_actions == 1:  # an edge for each action
        assert found == ()
        return
    for row, wanted in zip(np.asarray(found.actions), legal, strict=True):
        actions = np.flatnonzero(wanted)[: Few.size]
        np.testing.assert_array_equal(row[: len(actions)], actions)
        np.testing.assert_array_equal(row[len(actions) :], num_actions)


def test_numbers_of_edges_are_those_of_their_actions_in_a_position_with_218_moves():
    @jax.jit
    def convert(states, numbers):
        legal = jax.vmap(CHESS.legal_action_mask)(states)
        listed = to_search(CHESS, states, legal)
        assert isinstance(listed, ListedState)
        of_edges = at_edges(listed, numbers, -1)
        back = by_action(listed, of_edges, CHESS.num_actions)
        best = action_of(listed, of_edges.argmax(axis=1))
        return legal, listed.actions, of_edges, back, best

    states = [CHESS.from_fen(MOST_MOVES), CHESS.init()]
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    numbers = np.random.default_rng(0).random((2, CHESS.num_actions), np.float32)
    legal, actions, of_edges, back, best = jax.device_get(convert(states, numbers))
    assert legal.sum(axis=1).tolist() == [CHESS.max_legal_actions, 20]
    np.testing.assert_array_equal(actions[0], np.flatnonzero(legal[0]))
    np.testing.assert_array_equal((of_edges >= 0).sum(axis=1), legal.sum(axis=1))
    np.testing.assert_array_equal(back, np.where(legal, numbers, 0))
    np.testing.assert_array_equal(best, np.where(legal, numbers, -1).argmax(axis=1))


def two_moves(player, states, analyze):
    """Returns the choices and analyses of two moves, the second with the carry."""
    carry, found = jax.device_get(players.init_carry(player, states)), []
    step = jax.jit(jax.vmap(player.game.step))
    for _ in range(2):
        choice, analysis, carry = analyze(player, states, carry)
        found.append((choice, analysis))
        states = step(states, analysis.visits.argmax(axis=1).astype(np.int32))
    assert not jax.device_get(states).terminated.any()
    return found


@pytest.fixture(scope="module")
def moves(searcher, after, analyze):
    """Returns two moves with all actions, and with the legal ones."""
    states = after([4], [0, 4], [0, 4, 8], [1, 3, 5])

    def both(player):
        listed = player.replace(game=Listed())
        return two_moves(player, states, analyze), two_moves(listed, states, analyze)

    return both


def assert_equal(found, expected):
    for leaves in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(*leaves, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def reusing(moves, searcher):
    return moves(searcher)


def test_a_search_finds_what_it_finds_with_all_actions(reusing):
    assert_equal(*reusing)


@pytest.mark.slow
def test_puct_finds_what_it_finds_with_all_actions(moves, searcher):
    puct = searcher.replace(search=AlphaZeroConfig())
    found, expected = moves(puct)
    # Where two moves have the most visits, the key decides.
    tops = np.stack([np.sort(analysis.visits)[:, -2:] for _, analysis in expected])
    is_clear = (tops[..., 0] < tops[..., 1]).all(axis=0)
    assert is_clear.any()
    assert_equal(*jax.tree.map(lambda leaf: leaf[is_clear], (found, expected)))


@pytest.mark.slow
def test_playouts_search_chess(analyze):
    """A mate in one is found, and no visit is lost."""
    state = CHESS.from_fen("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1")
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
    choice, analysis, _ = analyze(MCTSPlayer(CHESS, 200), states, None)
    assert CHESS.action_to_text(state, int(choice.action[0])) == "a1a8"
    assert analysis.visits.sum() == 200
    assert analysis.line[0, 0] == choice.action[0]

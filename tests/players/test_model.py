import functools

import chex
import jax
import numpy as np
import pytest
from compiled_games import play, stack

from azjax import games, players
from azjax.games.tic_tac_toe import TicTacToe
from azjax.networks import DenseTrunkConfig, NetworkConfig, expected_value, init_network
from azjax.players import MCTSPlayer
from azjax.players.model import (
    ListedState,
    action_of,
    at_edges,
    by_action,
    evaluate,
    evaluate_symmetries,
    make_recurrent_fn,
    make_root,
    mover_reward,
    to_search,
)
from azjax.search import AlphaZeroConfig

GAME = games.make("tic_tac_toe")
# X to move wins at c3:    O to move wins at c2:    The last cell, c1, draws:
#   X X .                    X X .                    X O X
#   O O .                    O O .                    X O O
#   . . .                    X . .                    O X .
BEFORE = ("a3 a2 b3 b2", "a3 a2 b3 b2 a1", "a3 b3 c3 b2 a2 c2 b1 a1")
LAST = ("c3", "c2", "c1")


def positions(*lines):
    """Returns the positions after the moves of each line, as a batch."""
    return stack([play(GAME, line) for line in lines])


@functools.cache
def network():
    config = NetworkConfig(
        trunk=DenseTrunkConfig(num_blocks=0, width=4, stem_channels=8, window=2)
    )
    return jax.jit(lambda: init_network(jax.random.key(0), (3, 3, 2), 9, config))()


@functools.cache
def model():
    """Returns the model as a function of actions and states."""
    structure, variables = network()
    compiled = jax.jit(make_recurrent_fn(GAME, structure))
    return lambda actions, states: jax.device_get(
        compiled(variables, jax.random.key(0), np.int32(actions), states)
    )


@functools.cache
def last_moves():
    """The positions before the last moves of the three games, and after them."""
    return positions(*BEFORE), positions(*map(" ".join, zip(BEFORE, LAST, strict=True)))


look = jax.jit(evaluate, static_argnums=(0, 1))


def test_a_last_move_has_its_reward_for_the_mover_and_later_moves_have_none():
    before, after = last_moves()
    actions = [GAME.text_to_action(GAME.init(), move) for move in LAST]
    reward_of = jax.jit(mover_reward, static_argnums=0)
    # Terminated positions have discount and value 0 too.
    for moves, states, reward in (
        (actions, before, [1, 1, 0]),
        (actions, after, [0, 0, 0]),
        ([7, 7, 7], after, [0, 0, 0]),
    ):
        output, found = model()(moves, states)
        chex.assert_trees_all_equal(found, after)
        np.testing.assert_array_equal(output.reward, reward)
        np.testing.assert_array_equal(reward_of(GAME, states, after), reward)
        np.testing.assert_array_equal(output.discount, 0)
        np.testing.assert_array_equal(output.value, 0)


def test_an_illegal_move_loses():
    before = positions("", "a3", "a3 b3")
    # The cell is occupied, except on the first board.
    output, after = model()([0, 0, 0], before)
    np.testing.assert_array_equal(output.reward, [0, -1, -1])
    np.testing.assert_array_equal(after.terminated, [False, True, True])


def test_before_the_end_the_value_is_the_network_value_of_the_next_position():
    structure, variables = network()
    before = positions("", "a3", "a3 b3")
    output, after = model()([8, 8, 8], before)
    logits, result = look(GAME, structure, variables, after)
    np.testing.assert_array_equal(output.reward, 0)
    np.testing.assert_array_equal(output.discount, -1)
    expected = jax.jit(expected_value)(result)
    np.testing.assert_allclose(output.value, expected, rtol=1e-5)
    np.testing.assert_allclose(output.prior_logits, logits, rtol=1e-5)


def test_illegal_moves_have_no_prior_probability_and_results_sum_to_1():
    structure, variables = network()
    states = positions("", "a3", "a3 b2")
    logits, result = jax.device_get(look(GAME, structure, variables, states))
    legal = np.ones((3, 9), bool)
    legal[1:, 0] = legal[2, 4] = False
    np.testing.assert_array_equal(logits > np.finfo(np.float32).min, legal)
    np.testing.assert_allclose(result.sum(axis=-1), 1, rtol=1e-6)


def test_outputs_over_the_symmetries_are_the_mean_over_a_position_s_images():
    structure, variables = network()
    # The eight images of a stone in a corner are four positions, each of them twice.
    corners = positions("a3", "c3", "a1", "c1")
    single, single_result = jax.device_get(look(GAME, structure, variables, corners))
    assert np.ptp(single_result, axis=0).max() > 1e-3
    everything = jax.jit(evaluate_symmetries, static_argnums=(0, 1))
    mean, result = jax.device_get(everything(GAME, structure, variables, corners))
    expected = single_result.mean(axis=0, keepdims=True).repeat(4, axis=0)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    # Actions that each symmetry maps to each other: the center, the opposite corner.
    rows = np.arange(4)
    for actions in ([4, 4, 4, 4], [8, 6, 2, 0]):
        expected = single[rows, actions].mean().repeat(4)
        np.testing.assert_allclose(mean[rows, actions], expected, rtol=1e-4)
    is_lowest = mean == np.finfo(np.float32).min
    np.testing.assert_array_equal(
        np.argwhere(is_lowest), [[0, 0], [1, 2], [2, 6], [3, 8]]
    )


def test_a_root_has_the_network_outputs():
    states = positions("")
    root = make_root(GAME, np.ones((1, 9)), np.array([[0.5, 0.3, 0.2]]), states)
    np.testing.assert_allclose(root.value, [0.3], rtol=1e-6)
    np.testing.assert_array_equal(root.prior_logits, 1)
    chex.assert_trees_all_equal(root.embedding, states)


# Edges for the legal actions only find what others find

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

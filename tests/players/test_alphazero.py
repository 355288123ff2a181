import functools

import chex
import jax
import numpy as np
import pytest

from azjax.players import AlphaZeroPlayer, choose
from azjax.players.core import choose_with_carry, init_carry
from azjax.search import SEARCHES, GumbelConfig

ALGORITHMS = pytest.mark.parametrize(
    "algorithm", ["gumbel", pytest.param("alphazero", marks=pytest.mark.slow)]
)
# Both sides have two in a row. X to move wins at c3:    O to move wins at c2:
#                                X X .                     X X .
#                                O O .                     O O .
#                                . . .                     X . .
X_TO_MOVE = ("a3", "a2", "b3", "b2")
O_TO_MOVE = ("a3", "a2", "b3", "b2", "a1")
# X threatens c3, and O has no threat:
#   X X .
#   . O .
#   . . .
O_MUST_BLOCK = ("a3", "b2", "b3")


@pytest.fixture(scope="module")
def choice_of(trained):
    """The choices of an untrained network's player in the three positions."""
    game = trained.game
    step = jax.jit(game.step)
    states = [
        functools.reduce(
            lambda state, move: step(state, game.text_to_action(state, move)),
            moves,
            game.init(),
        )
        for moves in (X_TO_MOVE, O_TO_MOVE, O_MUST_BLOCK)
    ]
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    variables = jax.tree.map(np.zeros_like, trained.variables)

    @functools.cache
    def choice(algorithm, seed=0):
        config = SEARCHES.find(algorithm)()
        player = AlphaZeroPlayer(game, config, 300, trained.network, variables)
        return jax.device_get(choose(player, jax.random.key(seed), states))

    return choice


@ALGORITHMS
def test_both_players_play_winning_moves(algorithm, choice_of):
    action = choice_of(algorithm).action
    np.testing.assert_array_equal(action[:2], [2, 5])


@ALGORITHMS
def test_a_threat_is_blocked(algorithm, choice_of):
    assert choice_of(algorithm).action[2] == 2


@ALGORITHMS
def test_the_value_is_that_of_the_player_to_move(algorithm, choice_of):
    value = choice_of(algorithm).value
    assert (value[:2] > 0.5).all()


@ALGORITHMS
def test_the_chosen_move_has_the_highest_probability(algorithm, choice_of):
    choice = choice_of(algorithm)
    np.testing.assert_array_equal(choice.policy.argmax(axis=-1), choice.action)


@ALGORITHMS
def test_the_best_move_does_not_depend_on_the_key(algorithm, choice_of):
    choices = [choice_of(algorithm, seed) for seed in (1, 2)]
    np.testing.assert_array_equal(choices[0].action, choices[1].action)


def test_gumbel_play_does_not_depend_on_the_key_at_all(choice_of):
    choices = [choice_of("gumbel", seed) for seed in (1, 2)]
    chex.assert_trees_all_equal(*choices)


# Carry: trees reused between moves

SIMULATIONS = 24
KEPT_NODES = 40
GAMES = 4


@pytest.fixture(scope="module")
def reusing_player(trained):
    """A player with tree reuse, compiled once, for four games."""
    search = GumbelConfig(tree_reuse_nodes=KEPT_NODES, use_solver=True)
    return AlphaZeroPlayer(
        trained.game, search, SIMULATIONS, trained.network, trained.variables
    )


@pytest.fixture(scope="module")
def step(trained):
    """Returns a function that makes a move in all games and returns NumPy arrays."""
    compiled = jax.jit(jax.vmap(trained.game.step))
    return lambda states, actions: jax.device_get(compiled(states, np.int32(actions)))


@pytest.fixture(scope="module")
def first(trained):
    return jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (GAMES, *np.shape(leaf))),
        trained.game.init(),
    )


@pytest.fixture(scope="module")
def empty(reusing_player, first):
    """The carry before the first move."""
    return jax.device_get(init_carry(reusing_player, first))


def choose_in(player, states, carry, seed=0):
    """Returns the choice and the carry as NumPy arrays."""
    return jax.device_get(
        choose_with_carry(player, jax.random.key(seed), states, carry)
    )


def visits(carry):
    """Returns the simulations at the root: those of this move and reused ones."""
    return carry.children_visits[:, 0].sum(axis=-1)


def answer(carry, action):
    """Returns the most visited replies to the moves."""
    games = np.arange(GAMES)
    child = carry.children_index[games, 0, action]
    return carry.children_visits[games, child].argmax(axis=-1), child


def test_a_player_without_tree_reuse_has_no_carry(trained, states):
    player = AlphaZeroPlayer(
        trained.game, GumbelConfig(), 4, trained.network, trained.variables
    )
    assert init_carry(player, states) is None


@pytest.mark.slow
def test_the_first_move_is_searched_from_an_empty_tree(reusing_player, first, empty):
    assert (empty.node_visits == 0).all()
    choice, carry = choose_in(reusing_player, first, empty)
    np.testing.assert_array_equal(visits(carry), SIMULATIONS)
    fresh = choose(reusing_player, jax.random.key(0), first)
    np.testing.assert_array_equal(choice.action, fresh.action)
    np.testing.assert_allclose(choice.policy, fresh.policy, atol=1e-6)
    np.testing.assert_allclose(choice.value, fresh.value, atol=1e-6)


def test_the_subtree_after_two_moves_is_reused(reusing_player, first, empty, step):
    choice, carry = choose_in(reusing_player, first, empty)
    reply, child = answer(carry, choice.action)
    assert (visits(carry) == SIMULATIONS).all()
    games = np.arange(GAMES)
    grandchild = carry.children_index[games, child, reply]
    known = carry.children_visits[games, grandchild].sum(axis=-1)
    assert (grandchild > 0).all()
    after = step(step(first, choice.action), reply)
    _, carry = choose_in(reusing_player, after, carry)
    np.testing.assert_array_equal(visits(carry), SIMULATIONS + known)


def test_an_unrelated_position_is_searched_from_an_empty_tree(
    reusing_player, first, empty, step
):
    _, carry = choose_in(reusing_player, first, empty)
    # The last game has a position that is not in its tree.
    later = first
    for action in (0, 1, 2, 4, 3, 5, 7):
        later = step(later, np.full(GAMES, action))
    assert not later.terminated.any()
    mixed = jax.tree.map(
        lambda new, old: np.concatenate([old[:-1], new[-1:]]), later, first
    )
    choice, carry = choose_in(reusing_player, mixed, carry)
    # Two moves are left: simulations of terminal nodes count too.
    np.testing.assert_array_equal(
        visits(carry), [2 * SIMULATIONS] * (GAMES - 1) + [SIMULATIONS]
    )
    fresh = jax.device_get(choose(reusing_player, jax.random.key(0), mixed))
    np.testing.assert_allclose(choice.value[-1], fresh.value[-1], atol=1e-6)
    assert int(choice.action[-1]) in (6, 8)


def test_a_subtree_is_not_reused_after_an_undo(reusing_player, first, empty, step):
    choice, carry = choose_in(reusing_player, first, empty)
    reply, _ = answer(carry, choice.action)
    after = step(step(first, choice.action), reply)
    _, carry = choose_in(reusing_player, after, carry)
    again, carry = choose_in(reusing_player, first, carry)
    # The position is above the reused subtree.
    np.testing.assert_array_equal(visits(carry), SIMULATIONS)
    np.testing.assert_array_equal(again.action, choice.action)
    np.testing.assert_allclose(again.value, choice.value, atol=1e-6)


def test_a_game_is_searched_with_one_compilation(
    reusing_player, first, empty, step, monkeypatch
):
    states = first
    choice, carry = choose_in(reusing_player, states, empty)
    legal_actions = jax.jit(jax.vmap(reusing_player.game.legal_action_mask))

    def not_traced(*arguments):
        raise AssertionError("traced")

    monkeypatch.setattr(AlphaZeroPlayer, "choose_with_carry", not_traced)
    for move in range(9):
        legal = np.asarray(legal_actions(states))
        assert legal[np.arange(GAMES), choice.action].all()
        states = step(states, choice.action)
        if states.terminated.any():
            break
        choice, carry = choose_in(reusing_player, states, carry, seed=move)
        assert (visits(carry) >= SIMULATIONS).all()
    assert move >= 4


def test_a_player_is_shown_without_its_weights(trained):
    for shown in (repr(trained), repr(trained.player(4))):
        assert "tic_tac_toe" in shown
        assert len(shown) < 1000

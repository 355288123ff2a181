import functools

import chex
import jax
import numpy as np
import pytest
from compilations import compilations

from azjax.players.core import choose, init_carry
from azjax.players.model import evaluate
from azjax.search import SEARCHES, GumbelConfig

# Both sides have two in a row. X to move wins at c3:    O to move wins at c2:
#                                X X .                     X X .
#                                O O .                     O O .
#                                . . .                     X . .
# X threatens c3, and O has no threat:    Only corners draw:
#   X X .                                 . . .
#   . O .                                 . X .
#   . . .                                 . . .
TACTICS = [0, 3, 1, 4], [0, 3, 1, 4, 6], [0, 4, 1], [4]
GAMES = len(TACTICS)


@pytest.fixture(scope="module")
def searched(searcher, after, analyze, begun):
    """Returns the choices of an untrained network's player in these positions."""
    states = after(*TACTICS)

    @functools.cache
    def choice(algorithm, seed=0):
        config = SEARCHES.find(algorithm)
        use_solver = algorithm == "gumbel"
        player = searcher.replace(
            search=config(tree_reuse_nodes=40, use_solver=use_solver),
            variables=jax.tree.map(np.zeros_like, searcher.variables),
        )
        return analyze(player, states, init_carry(player, states), seed)[0]

    return choice


@pytest.mark.parametrize(
    "algorithm", ["gumbel", pytest.param("alphazero", marks=pytest.mark.slow)]
)
def test_winning_moves_are_played_and_threats_are_blocked(algorithm, searched):
    choice = searched(algorithm)
    assert choice.action[:3].tolist() == [2, 5, 2]
    assert choice.action[3] in (0, 2, 6, 8)
    # The values are those of the player to move.
    assert (choice.value[:2] > 0.5).all()
    np.testing.assert_array_equal(choice.policy.argmax(axis=-1), choice.action)
    # The best move does not depend on the key.
    other = searched(algorithm, seed=1)
    np.testing.assert_array_equal(choice.action[:3], other.action[:3])


def test_gumbel_play_does_not_depend_on_the_key_at_all(searched):
    chex.assert_trees_all_equal(searched("gumbel", 0), searched("gumbel", 1))


# Carry: trees reused between moves


@pytest.fixture(scope="module")
def step(searcher):
    """Returns a function that makes a move in all games and returns NumPy arrays."""
    compiled = jax.jit(jax.vmap(searcher.game.step))
    return lambda states, actions: jax.device_get(compiled(states, np.int32(actions)))


@pytest.fixture(scope="module")
def begun(searcher, after, analyze):
    """The first positions, the choices there, and the carry before and after them."""
    states = after(*[[]] * GAMES)
    empty = jax.device_get(init_carry(searcher, states))
    choice, _, carry = analyze(searcher, states, empty)
    return states, choice, empty, carry


def visits(carry):
    """Returns the simulations at the root: those of this move and reused ones."""
    return carry.children_visits[:, 0].sum(axis=-1)


def test_the_probability_of_a_draw_is_that_of_the_network(searcher, begun):
    states, choice, _, _ = begun
    run = jax.jit(evaluate, static_argnums=(0, 1))
    _, result = run(searcher.game, searcher.network, searcher.variables, states)
    _, draw, loss = np.asarray(result).T
    np.testing.assert_allclose(choice.draw, draw, rtol=1e-5)
    assert not np.allclose(draw, loss, rtol=1e-2)


def test_a_player_without_tree_reuse_has_no_carry(searcher, states):
    player = searcher.replace(search=GumbelConfig())
    assert init_carry(player, states) is None


@pytest.mark.slow
def test_a_search_without_a_carry_is_one_from_an_empty_tree(searcher, begun):
    states, choice, _, _ = begun
    fresh = choose(searcher, jax.random.key(0), states)
    np.testing.assert_array_equal(choice.action, fresh.action)
    np.testing.assert_allclose(choice.policy, fresh.policy, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(choice.value, fresh.value, rtol=1e-5, atol=1e-6)


def test_the_subtree_after_two_moves_is_reused_but_not_after_an_undo(
    searcher, begun, step, analyze
):
    first, choice, empty, carry = begun
    assert (empty.node_visits == 0).all()
    assert (visits(carry) == searcher.simulations).all()
    games = np.arange(GAMES)
    child = carry.children_index[games, 0, choice.action]
    reply = carry.children_visits[games, child].argmax(axis=-1)
    grandchild = carry.children_index[games, child, reply]
    known = carry.children_visits[games, grandchild].sum(axis=-1)
    assert (grandchild > 0).all()
    assert (known > 0).all()
    _, _, carry = analyze(searcher, step(step(first, choice.action), reply), carry)
    kept = np.minimum(known, searcher.search.tree_reuse_nodes)
    np.testing.assert_array_equal(visits(carry), searcher.simulations + kept)
    # The first position is above the reused subtree.
    again, _, carry = analyze(searcher, first, carry)
    np.testing.assert_array_equal(visits(carry), searcher.simulations)
    np.testing.assert_array_equal(again.action, choice.action)
    np.testing.assert_allclose(again.value, choice.value, rtol=1e-5, atol=1e-6)


def test_an_unrelated_position_is_searched_from_an_empty_tree(
    searcher, begun, after, analyze
):
    first, _, empty, carry = begun
    # The last game has a position that is not in its tree.
    later = after([0, 1, 2, 4, 3, 5, 7])
    assert not later.terminated.any()
    mixed = jax.tree.map(lambda new, old: np.concatenate([old[:-1], new]), later, first)
    choice, _, carry = analyze(searcher, mixed, carry)
    # Two moves are left: simulations of terminal nodes count too.
    np.testing.assert_array_equal(
        visits(carry), [2 * searcher.simulations] * (GAMES - 1) + [searcher.simulations]
    )
    fresh, _, _ = analyze(searcher, mixed, empty)
    np.testing.assert_allclose(choice.value[-1], fresh.value[-1], rtol=1e-5, atol=1e-6)
    assert int(choice.action[-1]) in (6, 8)


def test_a_game_is_searched_with_one_compilation(searcher, begun, step, analyze):
    states, choice, _, carry = begun
    legal_actions = jax.jit(jax.vmap(searcher.game.legal_action_mask))
    with compilations() as names:
        for move in range(9):
            legal = np.asarray(legal_actions(states))
            assert legal[np.arange(GAMES), choice.action].all()
            states = step(states, choice.action)
            if states.terminated.any():
                break
            choice, _, carry = analyze(searcher, states, carry, seed=move)
            assert (visits(carry) >= searcher.simulations).all()
    assert "jit(analyze)" not in names
    assert move >= 4


def test_a_player_is_shown_without_its_weights(trained):
    for shown in (repr(trained), repr(trained.player(4))):
        assert "tic_tac_toe" in shown
        assert len(shown) < 1000

import dataclasses

import chex
import jax
import numpy as np

from azjax.players import NetworkPlayer, choose


def preferring(trained, policy_bias, value_bias, temperature=0.0) -> NetworkPlayer:
    """A player whose network has constant outputs."""
    variables = jax.tree.map(np.zeros_like, trained.variables)
    variables.params["policy_head"]["linear"]["bias"] = np.float32(policy_bias)
    variables.params["value_head"]["linear"]["bias"] = np.float32(value_bias)
    return NetworkPlayer(trained.game, trained.network, variables, temperature)


def chosen(player, states, seed=0):
    return jax.device_get(choose(player, jax.random.key(seed), states))


def test_the_legal_move_with_the_highest_logit_is_chosen(trained, states):
    # a3 is occupied in all three positions, b2 in two of them.
    player = preferring(trained, [9.0, 0, 0, 0, 8, 7, 0, 0, 0], [0.0, 0, 0])
    choice = chosen(player, states)
    np.testing.assert_array_equal(choice.action, [4, 5, 5])


def test_the_policy_is_a_softmax_over_legal_moves_and_the_value_win_minus_loss(
    trained, states
):
    logits = np.log([9.0, 1, 1, 1, 3, 1, 1, 1, 1]), np.log([0.5, 0.3, 0.2])
    choice = chosen(preferring(trained, *logits), states)
    np.testing.assert_allclose(choice.policy[0] * 10, [0, 1, 1, 1, 3, 1, 1, 1, 1], 1e-5)
    np.testing.assert_allclose(choice.policy[1] * 7, [0, 1, 1, 1, 0, 1, 1, 1, 1], 1e-5)
    np.testing.assert_allclose(choice.value, [0.3] * 3, rtol=1e-5)
    np.testing.assert_allclose(choice.draw, [0.3] * 3, rtol=1e-5)


def test_the_key_has_no_effect(trained, states):
    player = NetworkPlayer(trained.game, trained.network, trained.variables)
    chex.assert_trees_all_equal(chosen(player, states, 1), chosen(player, states, 2))


def test_with_a_temperature_moves_are_sampled_from_the_policy(trained):
    # A temperature of 0.5 squares the odds: 1 to 9 and 16 instead of 1 to 3 and 4.
    number = 2600
    player = preferring(trained, np.log([1.0, 3, 4, *[1e-9] * 6]), [0.0] * 3, 0.5)
    states = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (number,)), trained.game.init()
    )
    choice = chosen(player, states)
    expected = np.array([1, 9, 16]) / 26
    np.testing.assert_allclose(choice.policy[0, :3], expected, rtol=1e-5)
    counts = np.bincount(choice.action, minlength=9)
    assert counts[:3].sum() == number
    # Six standard deviations of a binomial count.
    spread = 6 * np.sqrt(number * expected * (1 - expected))
    assert (abs(counts[:3] - number * expected) < spread).all()


def test_at_any_temperature_moves_are_legal(trained, states):
    legal = np.asarray(jax.jit(jax.vmap(trained.game.legal_action_mask))(states))
    for temperature in (1e-30, 100.0):
        player = preferring(trained, [90.0, *[0] * 8], [0.0] * 3, temperature)
        choice = chosen(player, states)
        assert legal[np.arange(3), np.asarray(choice.action)].all()
        assert (np.asarray(choice.policy)[~legal] == 0).all()
        np.testing.assert_allclose(choice.policy.sum(axis=1), 1, rtol=1e-5)


def test_with_symmetries_the_outputs_are_averaged_over_them(trained):
    # A linear policy that prefers the left column prefers no column on the average.
    player = preferring(trained, [5.0, 0, 0, 6, 0, 0, 7, 0, 0], [0.0] * 3)
    states = jax.tree.map(lambda leaf: leaf[None], trained.game.init())
    averaged = dataclasses.replace(player, use_symmetries=True)
    board = chosen(averaged, states).policy.reshape(3, 3)
    np.testing.assert_allclose(board, np.rot90(board), rtol=1e-5)
    assert board[0, 0] > board[0, 1] > board[1, 1]
    # The corners have 5 and 7, of four, the edges 6.
    odds = np.log(board[0, 0] / board[1, 1]), np.log(board[0, 1] / board[1, 1])
    np.testing.assert_allclose(odds, [12 / 4, 6 / 4], rtol=1e-5)

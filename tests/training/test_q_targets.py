import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_games import compiled
from untrained import in_one_program

from azjax import games
from azjax.networks import QNetworkConfig, every_action_value, init_q_network
from azjax.training.q_play import Transition
from azjax.training.q_targets import q_loss, q_targets

GAME = games.make("tic_tac_toe")
MAKES = [(form, separate) for form in ("state", "pair") for separate in (False, True)]
every_make = pytest.mark.parametrize(("form", "separate"), MAKES)


def position(*actions):
    state = jax.device_get(compiled(GAME).init())
    for action in actions:
        state = jax.device_get(compiled(GAME).step(state, np.int32(action)))
    return state


# Previous moves, the action, the opponent's reply or None, and the expected reward and
# discount. Cells are numbered row by row from the top left.
TRANSITIONS = [
    # Self-play: the next position is the opponent's.
    ((), 4, None, 0.0, -1.0),
    ((4,), 0, None, 0.0, -1.0),
    ((4, 0, 2, 6), 3, None, 0.0, -1.0),
    ((0, 3, 1, 4), 2, None, 1.0, 0.0),  # the first player has the top row
    ((0, 3, 1, 4, 8), 5, None, 1.0, 0.0),  # the second player has the middle row
    ((0, 1, 2, 4, 3, 5, 7, 6), 8, None, 0.0, 0.0),  # the board is full
    # With an opponent: the next position is the learner's own.
    ((), 4, 0, 0.0, 1.0),
    ((4,), 0, 8, 0.0, 1.0),
    ((0, 3, 1, 4), 8, 5, -1.0, 0.0),  # the reply ends the game
    ((0, 1, 2, 4, 3, 5, 7), 6, 8, 0.0, 0.0),  # the reply fills the board
    ((0, 3, 1, 4), 2, None, 1.0, 0.0),  # the win leaves no reply
]


IS_MOVE = np.arange(len(TRANSITIONS)) % 3 != 1
TARGET = np.linspace(-1, 1, len(TRANSITIONS), dtype=np.float32)


@functools.cache
def transitions():
    rows = []
    for before, action, reply, reward, discount in TRANSITIONS:
        state = position(*before)
        next_state = position(*before, action, *([] if reply is None else [reply]))
        numbers = np.int32(action), np.float32(reward), np.float32(discount)
        rows.append(Transition(state, *numbers, next_state, np.bool(True)))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


class Found(NamedTuple):
    """What a network gives for the transitions.

    targets: of the moves.
    values, next_values: of all actions in each position and in the next one, by the
        network of the player to move.
    loss: of the moves in `IS_MOVE` against `TARGET`.
    without_moves, of_second: gradients of the loss of no moves, and of the second
        player's moves, for each network.
    """

    targets: Any
    values: Any
    next_values: Any
    loss: Any
    without_moves: Any
    of_second: Any


@functools.cache
def build(form, separate):
    """Returns a network whose last layer is not 0, as it is initially."""
    network, params = in_one_program(
        init_q_network,
        jax.random.key(0),
        GAME.observation_shape,
        GAME.num_actions,
        QNetworkConfig(form=form, hidden=(8,), separate=separate),
    )
    chance = np.random.default_rng(1)
    return network, jax.tree.map(
        lambda leaf: np.float32(leaf + chance.normal(scale=0.4, size=leaf.shape)),
        params,
    )


@functools.cache
def found_by(form, separate):
    network, params = build(form, separate)

    @jax.jit
    def compute(params, batch):
        def values(state):
            player = state.current_player
            observation = jax.vmap(GAME.observe)(state)
            first, second = (
                every_action_value(network, (own,), observation, player)
                for own in (params[0], params[-1])
            )
            return jnp.where(player[:, None] == 1, second, first)

        def loss(params, is_move):
            moves = batch._replace(is_move=is_move)
            return q_loss(params, GAME, network, moves, TARGET)

        return Found(
            q_targets(GAME, network, params, batch),
            values(batch.state),
            values(batch.next_state),
            loss(params, IS_MOVE),
            jax.grad(loss)(params, np.zeros_like(IS_MOVE)),
            jax.grad(loss)(params, batch.state.current_player == 1),
        )

    return jax.device_get(compute(params, transitions()))


@every_make
def test_targets_equal_a_slow_reference(form, separate):
    found, expected = found_by(form, separate), []
    for row, (before, action, reply, reward, discount) in enumerate(TRANSITIONS):
        free = [cell for cell in range(9) if cell not in (*before, action, reply)]
        # A finished game may have no free cell.
        best = found.next_values[row, free].max() if discount else 0
        # -1 where the other player moves next.
        expected.append(reward + (-best if reply is None else best))
    np.testing.assert_allclose(found.targets, expected, rtol=1e-5, atol=1e-5)
    assert len({round(float(target), 4) for target in expected}) > 5


def test_the_bootstrap_value_excludes_illegal_actions():
    # The shared network's values of the nine cells are the bias of its last layer; the
    # occupied cells have the highest ones.
    network, (params,) = build("state", False)
    zeros = jax.tree.map(np.zeros_like, params)
    bias = np.array([0.9, 0.1, 0.2, 0.3, 0.8, 0.1, 0.1, 0.1, 0.1], np.float32)
    zeros["layers"]["out"]["bias"] = np.arctanh(bias)
    row = jax.tree.map(lambda leaf: leaf[1:2], transitions())  # after cells 4 and 0
    found = jax.jit(functools.partial(q_targets, GAME, network))((zeros,), row)
    np.testing.assert_allclose(found, [-0.3], atol=1e-6)


@every_make
def test_the_loss_is_the_mean_squared_error_of_the_moves(form, separate):
    found = found_by(form, separate)
    value = found.values[np.arange(len(TARGET)), transitions().action]
    expected = np.mean(np.square(value - TARGET)[IS_MOVE])
    np.testing.assert_allclose(found.loss, expected, rtol=1e-5)
    # Without moves there is none.
    assert not any(leaf.any() for leaf in jax.tree.leaves(found.without_moves))


@pytest.mark.parametrize("form", ["state", "pair"])
def test_separate_networks_learn_only_from_their_own_moves(form):
    first, second = found_by(form, True).of_second
    assert not any(leaf.any() for leaf in jax.tree.leaves(first))
    assert any(leaf.any() for leaf in jax.tree.leaves(second))

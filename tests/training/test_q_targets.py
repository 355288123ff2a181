import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.networks import QNetworkConfig, every_action_value, init_q_network
from azjax.training.q_play import Transition
from azjax.training.q_targets import q_loss, q_targets

GAME = games.make("tic_tac_toe")
step = jax.jit(GAME.step)

every_make = pytest.mark.parametrize(
    ("form", "separate"),
    [(form, separate) for form in ("state", "pair") for separate in (False, True)],
)


def build(form, separate):
    config = QNetworkConfig(form=form, hidden=(8,), separate=separate)
    network, params = init_q_network(
        jax.random.key(0), GAME.observation_shape, GAME.num_actions, config
    )
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    noisy = [
        leaf + jax.random.normal(key, leaf.shape)
        for leaf, key in zip(leaves, keys, strict=True)
    ]
    return network, jax.tree.unflatten(structure, noisy)


def position(*actions):
    state = GAME.init()
    for action in actions:
        state = step(state, jnp.int32(action))
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


def transitions():
    rows = []
    for before, action, reply, reward, discount in TRANSITIONS:
        moves = [*before, action] if reply is None else [*before, action, reply]
        rows.append(
            Transition(
                state=position(*before),
                action=jnp.int32(action),
                reward=jnp.float32(reward),
                discount=jnp.float32(discount),
                next_state=position(*moves),
                is_move=jnp.bool(True),
            )
        )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def action_values(network, params, state):
    """Returns `[A]` Q(s, a) of one position by the network of the player to move."""
    player = int(state.current_player)
    own = (params[player] if len(params) == 2 else params[0],)
    observation = GAME.observe(state)[None]
    evaluate = jax.jit(every_action_value, static_argnums=0)
    values = evaluate(network, own, observation, state.current_player[None])
    return np.asarray(values[0])


def slow_target(network, params, row):
    before, action, reply, reward, discount = row
    moves = [*before, action] if reply is None else [*before, action, reply]
    if discount == 0:
        return reward
    state = position(*moves)
    free = [cell for cell in range(9) if cell not in moves]
    best = action_values(network, params, state)[free].max()
    # -1 where the other player moves next.
    return float(-best if reply is None else best)


@every_make
def test_targets_equal_a_slow_reference(form, separate):
    network, params = build(form, separate)
    found = jax.jit(functools.partial(q_targets, GAME, network))(params, transitions())
    expected = [slow_target(network, params, row) for row in TRANSITIONS]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len({round(target, 4) for target in expected}) > 5  # the cases differ


def test_the_bootstrap_value_excludes_illegal_actions():
    # The shared network's values of the nine cells are the bias of its last layer; the
    # occupied cells have the highest ones.
    network, (params,) = build("state", False)
    zeros = jax.tree.map(jnp.zeros_like, params)
    bias = jnp.array([0.9, 0.1, 0.2, 0.3, 0.8, 0.1, 0.1, 0.1, 0.1])
    zeros["layers"]["out"]["bias"] = jnp.arctanh(bias)
    row = jax.tree.map(lambda leaf: leaf[1:2], transitions())  # after cells 4 and 0
    found = q_targets(GAME, network, (zeros,), row)
    np.testing.assert_allclose(found, [-0.3], atol=1e-6)


@every_make
def test_the_loss_is_the_mean_squared_error_of_the_moves(form, separate):
    network, params = build(form, separate)
    batch = transitions()
    is_move = np.arange(len(TRANSITIONS)) % 3 != 1
    batch = batch._replace(is_move=jnp.asarray(is_move))
    target = jnp.linspace(-1, 1, len(TRANSITIONS))
    errors = [
        action_values(network, params, position(*before))[action] - float(target[row])
        for row, (before, action, *_) in enumerate(TRANSITIONS)
    ]
    expected = np.mean(np.square(errors)[is_move])
    loss = q_loss(params, GAME, network, batch, target)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_transitions_without_a_move_have_no_loss():
    network, params = build("state", False)
    batch = transitions()
    batch = batch._replace(is_move=jnp.zeros_like(batch.is_move))
    target = jnp.ones(len(TRANSITIONS))
    gradients = jax.grad(q_loss)(params, GAME, network, batch, target)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(gradients))


def test_separate_networks_learn_only_from_their_own_moves():
    network, params = build("pair", True)
    batch = transitions()
    second = batch.state.current_player == 1
    batch = batch._replace(is_move=second)
    target = jnp.ones(len(TRANSITIONS))
    of_first, of_second = jax.grad(q_loss)(params, GAME, network, batch, target)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(of_first))
    assert any((leaf != 0).any() for leaf in jax.tree.leaves(of_second))

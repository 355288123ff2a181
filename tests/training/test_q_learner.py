import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_games import compiled
from flax import struct

from azjax import games
from azjax.networks import (
    QNetworkConfig,
    action_value,
    every_action_value,
    init_q_network,
)
from azjax.players import Choice
from azjax.training.config import FitConfig
from azjax.training.q_learning import (
    Pace,
    Transition,
    init_q_learner,
    make_fit,
    make_move_against,
    make_offline,
    make_online,
    make_self_play_move,
    q_loss,
    q_targets,
    start_q_games,
)

GAME = games.make("tic_tac_toe")
PACE = Pace(epsilon=np.float32(1.0), learning_rate=np.float32(3e-3))
NUM_GAMES, NUM_MOVES = 8, 8
init_learner = jax.jit(init_q_learner)
first_games = jax.jit(start_q_games, static_argnums=(0, 1))
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
def transitions(described=tuple(TRANSITIONS)):
    rows = []
    for before, action, reply, reward, discount in described:
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
    network, params = init_q_network(
        jax.random.key(0),
        GAME.observation_shape,
        GAME.num_actions,
        QNetworkConfig(form=form, hidden=(8,), separate=separate),
    )
    chance = np.random.default_rng(1)
    return network, jax.tree.map(
        lambda leaf: np.float32(leaf + chance.normal(scale=0.4, size=leaf.shape)),
        jax.device_get(params),
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


@functools.cache
def network_of_32():
    return init_q_network(
        jax.random.key(0),
        GAME.observation_shape,
        GAME.num_actions,
        QNetworkConfig(hidden=(32,)),
    )


def fitted(network, learner, batch, **settings):
    config = FitConfig(**{"batch_size": 16, "low_loss": 0.0} | settings)
    fit = jax.jit(make_fit(GAME, network, config))
    return fit(learner, batch, PACE, jax.random.key(2))


def test_fitting_lowers_the_loss_against_fixed_targets():
    network, params = network_of_32()
    play_move = make_self_play_move(GAME, network)

    @jax.jit
    def collect(params):
        def play(games, rng_key):
            return play_move(params, games, PACE.epsilon, rng_key)

        keys = jax.random.split(jax.random.key(1), NUM_MOVES)
        games = start_q_games(GAME, NUM_GAMES, jax.random.key(9))
        moves = jax.lax.scan(play, games, keys)[1]
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), moves)

    @jax.jit
    def loss(fitted_params, batch):
        targets = q_targets(GAME, network, params, batch)
        return q_loss(fitted_params, GAME, network, batch, targets)

    batch = collect(params)  # 64 moves, 4 minibatches
    learner, _ = fitted(network, init_learner(params), batch, sweeps=1, max_epochs=60)
    assert int(learner.updates) == 60 * 4
    before, after = (float(loss(each, batch)) for each in (params, learner.params))
    assert before > 0.05  # some of these games have a winner
    assert after < before / 4


@pytest.mark.slow
def test_a_second_sweep_uses_targets_of_the_first():
    # A move before a win has the value -1 only after the win has the value 1.
    network, params = network_of_32()
    line = (0, 3, 1, 4, 2)  # the top row
    batch = transitions(
        tuple(
            (line[:move], line[move], None, float(move == 4), float(move == 4) - 1)
            for move in range(5)
        )
    )

    def values(sweeps):
        settings = {"batch_size": 5, "sweeps": sweeps, "max_epochs": 300}
        learner, _ = fitted(network, init_learner(params), batch, **settings)
        return np.asarray(value_of_moves(learner.params))

    @jax.jit
    def value_of_moves(params):
        observation = jax.vmap(GAME.observe)(batch.state)
        players = batch.state.current_player
        return action_value(network, params, observation, players, batch.action)

    once, twice = values(1), values(3)
    np.testing.assert_allclose(once, [0, 0, 0, 0, 1], atol=0.1)
    assert twice[4] > 0.9
    assert twice[3] < -0.8


def test_offline_learning_updates_in_the_fit_until_the_loss_is_low():
    network, params = network_of_32()
    play_move = make_self_play_move(GAME, network)
    config = FitConfig(sweeps=3, batch_size=16, max_epochs=5, low_loss=10.0)
    iterate = jax.jit(
        make_offline(GAME, network, play_move, config, num_moves=NUM_MOVES)
    )
    games = first_games(GAME, NUM_GAMES, jax.random.key(9))
    learner, _, metrics = iterate(init_learner(params), games, PACE, jax.random.key(3))
    # Each sweep ends after the first pass.
    assert int(learner.updates) == 3 * 64 // 16
    assert int(metrics.games) > 0
    assert np.isfinite(metrics.loss)


def test_online_updates_are_steps_of_adam_on_the_moves_just_made():
    network, params = network_of_32()
    play_move = make_self_play_move(GAME, network)
    games = first_games(GAME, NUM_GAMES, jax.random.key(9))
    iterate = jax.jit(make_online(GAME, network, play_move, num_moves=NUM_MOVES))
    learner, _, metrics = iterate(init_learner(params), games, PACE, jax.random.key(4))

    @jax.jit
    def play_and_differentiate(params, games, move_key):
        games, transition = play_move(params, games, PACE.epsilon, move_key)
        targets = q_targets(GAME, network, params, transition)
        found = jax.value_and_grad(q_loss)(params, GAME, network, transition, targets)
        return games, (transition.discount == 0).sum(), *found

    leaves, structure = jax.tree.flatten(jax.device_get(params))
    mean, square = [np.zeros_like(leaf) for leaf in leaves], [0.0] * len(leaves)
    losses, finished = [], 0
    for step, key in enumerate(jax.random.split(jax.random.key(4), NUM_MOVES), 1):
        games, ended, loss, gradient = play_and_differentiate(
            jax.tree.unflatten(structure, leaves), games, key
        )
        losses.append(loss)
        finished += int(ended)
        gradient = jax.tree.leaves(jax.device_get(gradient))
        norm = np.sqrt(sum((leaf**2).sum() for leaf in gradient))
        gradient = [leaf / max(norm, 1) for leaf in gradient]
        mean = [0.9 * m + 0.1 * g for m, g in zip(mean, gradient, strict=True)]
        square = [
            0.999 * s + 0.001 * g**2 for s, g in zip(square, gradient, strict=True)
        ]
        leaves = [
            leaf
            - PACE.learning_rate
            * (m / (1 - 0.9**step))
            / (np.sqrt(s / (1 - 0.999**step)) + 1e-8)
            for leaf, m, s in zip(leaves, mean, square, strict=True)
        ]
    found = jax.tree.leaves(learner.params)
    chex.assert_trees_all_close(found, leaves, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(metrics.loss, np.mean(losses), rtol=1e-4)
    assert finished > 0
    assert (int(metrics.games), int(learner.updates)) == (finished, NUM_MOVES)


# Moves


@struct.dataclass
class LastPlayer:
    """Chooses the last legal move."""

    choose: Callable = struct.field(
        pytree_node=False,
        default=lambda rng_key, states: Choice(
            (
                8 - jax.vmap(GAME.legal_action_mask)(states)[:, ::-1].argmax(axis=1)
            ).astype(jnp.int32),
            jnp.zeros((len(states.terminated), 9)),
            jnp.zeros(len(states.terminated)),
        ),
    )


def played(play_move):
    """Returns `[40, 16]` transitions of random games from the initial position."""

    def step(games, rng_key):
        return play_move(network_of_32()[1], games, jnp.float32(1), rng_key)

    @jax.jit
    def moves():
        keys = jax.random.split(jax.random.key(1), 40)
        return jax.lax.scan(step, start_q_games(GAME, 16, jax.random.key(9)), keys)[1]

    return jax.device_get(moves())


def stones(state):
    """Returns `[..., 2]`, the number of each player's marks."""
    return np.stack(
        [np.bitwise_count(state.stones[player][0]) for player in (0, 1)], axis=-1
    )


@pytest.fixture(scope="module")
def self_play():
    return played(make_self_play_move(GAME, network_of_32()[0]))


@pytest.fixture(scope="module")
def against_last():
    return played(make_move_against(GAME, network_of_32()[0], LastPlayer()))


def test_in_self_play_the_players_alternate(self_play):
    goes_on = self_play.discount != 0
    assert self_play.is_move.all()
    assert (self_play.discount[goes_on] == -1).all()
    movers = self_play.state.current_player
    assert (self_play.next_state.current_player == 1 - movers).all()
    np.testing.assert_array_equal(
        self_play.discount == 0, self_play.next_state.terminated
    )


def test_a_won_game_rewards_the_last_mover(self_play):
    # In tic-tac-toe no legal move loses immediately.
    assert set(np.unique(self_play.reward)) == {0.0, 1.0}
    won = self_play.reward == 1
    winner = np.where(self_play.next_state.outcome == 1, 0, 1)
    assert (self_play.state.current_player[won] == winner[won]).all()
    assert (self_play.discount[won] == 0).all()


def test_a_finished_game_is_replaced_by_a_new_one(self_play):
    ended = self_play.next_state.terminated[:-1]
    assert ended.any()
    after = stones(self_play.state)[1:]
    assert (after[ended] == 0).all()
    np.testing.assert_array_equal(
        after[~ended], stones(self_play.next_state)[:-1][~ended]
    )


def test_consecutive_positions_are_separated_by_the_opponents_reply(against_last):
    moves = against_last
    goes_on = (moves.discount != 0) & moves.is_move
    assert (moves.discount[goes_on] == 1).all()
    mover = moves.state.current_player
    assert (moves.next_state.current_player == mover)[goes_on].all()
    added = stones(moves.next_state) - stones(moves.state)
    assert (added[goes_on] == 1).all()  # a mark of each player


def test_a_lost_game_has_reward_minus_1_for_the_learner(against_last):
    lost = against_last.reward == -1
    assert lost.any()
    assert against_last.is_move[lost].all()
    mover = against_last.state.current_player
    winner = np.where(against_last.next_state.outcome == 1, 0, 1)
    assert (winner != mover)[lost].all()


def test_the_learner_alternates_sides(against_last):
    for column in range(16):
        ends = np.flatnonzero(against_last.next_state.terminated[:, column])
        begins = [0, *(ends[:-1] + 1)]
        sides = []
        for begin, end in zip(begins, ends, strict=True):
            moved = against_last.is_move[begin : end + 1, column]
            movers = against_last.state.current_player[begin : end + 1, column]
            (side,) = set(movers[moved].tolist())
            sides.append(side)
            # The first player moves at once, the second after the opponent.
            assert moved[0] == (side == 0)
            assert moved[1:].all()
        assert sides == [(column + index) % 2 for index in range(len(sides))]


def test_the_chosen_opponent_replies(against_last):
    opening = ~against_last.is_move
    assert opening.any()
    assert (against_last.next_state.stones[0][0][opening] == 1 << 8).all()

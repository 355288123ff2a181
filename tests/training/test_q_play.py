from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from azjax import games
from azjax.networks import QNetworkConfig, init_q_network
from azjax.players import Choice
from azjax.training.q_learning import (
    make_move_against,
    make_self_play_move,
    start_q_games,
)

GAME = games.make("tic_tac_toe")
NUM_GAMES, NUM_MOVES = 16, 40


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


@pytest.fixture(scope="module")
def learner():
    return init_q_network(
        jax.random.key(0),
        GAME.observation_shape,
        GAME.num_actions,
        QNetworkConfig(hidden=(4,)),
    )


def play(play_move, params, epsilon=1.0):
    """Returns `[T, B]` transitions of games from the initial position."""

    def step(games, rng_key):
        return play_move(params, games, jnp.float32(epsilon), rng_key)

    @jax.jit
    def moves():
        keys = jax.random.split(jax.random.key(1), NUM_MOVES)
        return jax.lax.scan(step, start_q_games(GAME, NUM_GAMES), keys)[1]

    return jax.device_get(moves())


def stones(state):
    """Returns `[..., 2]`, the number of each player's marks."""
    return np.stack(
        [np.bitwise_count(state.stones[player][0]) for player in (0, 1)], axis=-1
    )


@pytest.fixture(scope="module")
def self_play(learner):
    network, params = learner
    return play(make_self_play_move(GAME, network), params)


@pytest.fixture(scope="module")
def against_last(learner):
    network, params = learner
    return play(make_move_against(GAME, network, LastPlayer()), params)


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
    for column in range(NUM_GAMES):
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

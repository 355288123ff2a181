import jax
import numpy as np
import pytest
from flax import struct

from azjax import arena, games
from azjax.arena.pairs import score_interval
from azjax.networks import QNetworkConfig, init_q_network
from azjax.players import Choice, GreedyPlayer, RandomPlayer, TrainedQ
from azjax.training.q_evaluation import evaluate_q, match_row

GAME = games.make("tic_tac_toe")


@pytest.fixture(scope="module")
def trained():
    config = QNetworkConfig(form="state", hidden=(8,))
    network, params = init_q_network(
        jax.random.key(5), GAME.observation_shape, GAME.num_actions, config
    )
    return TrainedQ(GAME, network, params, config)


@struct.dataclass
class FirstMove:
    """Plays the first legal move: a player without chance."""

    def choose(self, rng_key, states):
        del rng_key
        legal = jax.vmap(GAME.legal_action_mask)(states)
        policy = legal.astype("float32")
        return Choice(legal.argmax(axis=-1).astype("int32"), policy, policy[:, 0])


def test_games_that_repeat_themselves_are_counted_once(trained):
    few, many = (
        evaluate_q(trained, {"first": FirstMove()}, number)["first"]
        for number in (2, 40)
    )
    ends = ("not_lost", "not_lost_low", "not_lost_high")
    np.testing.assert_allclose([many[end] for end in ends], [few[end] for end in ends])


def test_the_interval_is_that_of_the_pairs_of_games_not_lost():
    moves = np.arange(8)[:, None]
    results = np.array([1, 0, -1, -1, 1, -1, 0, 0], np.int8)
    row = match_row(arena.MatchResult(moves, results, ("",) * 8, 0))
    low, high = score_interval([2, 0, 1, 2], 4)
    assert (row["not_lost"], row["not_lost_low"], row["not_lost_high"]) == (
        5 / 8,
        low,
        high,
    )


def test_no_key_is_used_twice(trained):
    opponents = {"random": RandomPlayer(GAME), "greedy": GreedyPlayer(GAME)}
    with jax.debug_key_reuse(True):
        evaluate_q(trained, opponents, 2)

"""Random games, compared with other engines move by move.

`experiments/verify_games.py` plays more of them.
"""

import jax
import pytest

from azjax.games import make

NUM_GAMES = 300

# Counts other than disagreements.
SEEN = ("positions", "illegal")

both_games = pytest.mark.parametrize("name", ["connect_four", "tic_tac_toe"])


@both_games
def test_pgx_agrees_at_every_position(verify_games, name):
    keys = jax.random.split(jax.random.key(1), NUM_GAMES)
    counts = jax.device_get(verify_games.pgx_games.make_comparison(make(name))(keys))
    assert counts["positions"] > 5 * NUM_GAMES
    assert counts["illegal"] > 0
    assert not any(count for fact, count in counts.items() if fact not in SEEN)


@both_games
def test_open_spiel_agrees_at_every_position(verify_games, name):
    game = make(name)
    keys = jax.random.split(jax.random.key(2), NUM_GAMES)
    record = verify_games.make_recorder(game)(keys)
    counts = verify_games.open_spiel.compare(game, record)
    assert counts["positions"] > 5 * NUM_GAMES
    assert not any(count for fact, count in counts.items() if fact not in SEEN)


def test_a_wrong_rule_is_detected(verify_games):
    game = make("connect_four")
    keys = jax.random.split(jax.random.key(3), NUM_GAMES)
    record = verify_games.make_recorder(game)(keys)
    rewards = -record["rewards"]
    legal = record["legal"].at[:, 5, 3].set(~record["legal"][:, 5, 3])
    wrong = {**record, "rewards": rewards, "legal": legal}
    counts = verify_games.open_spiel.compare(game, wrong)
    assert counts["rewards"] > 0
    assert counts["legal"] == NUM_GAMES

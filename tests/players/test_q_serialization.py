import functools
import json

import chex
import jax
import pytest

from azjax import games
from azjax.networks import QNetworkConfig, init_q_network
from azjax.players import (
    QPlayer,
    TrainedQ,
    choose,
    load,
    load_player,
    load_q_player,
    save_player,
    save_q_player,
)

GAME = games.make("tic_tac_toe")
CONFIGS = [
    QNetworkConfig(form=form, hidden=hidden, separate=separate)
    for form, hidden in (("state", (8,)), ("pair", (8, 4)))
    for separate in (False, True)
]


@functools.cache
def trained_q(config):
    network, params = init_q_network(
        *(jax.random.key(5), GAME.observation_shape, GAME.num_actions, config),
    )
    return TrainedQ(GAME, network, jax.tree.map(lambda x: x + 0.1, params), config)


@pytest.fixture
def run(tmp_path):
    save_q_player(tmp_path / "player", trained_q(CONFIGS[0]))
    return tmp_path


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_loaded_player_equals_the_saved_one(config, states, tmp_path):
    trained = trained_q(config)
    save_q_player(tmp_path / "player", trained)
    loaded = load_q_player(tmp_path)
    assert (loaded.game, loaded.config) == (trained.game, config)
    chex.assert_trees_all_equal(loaded.params, trained.params)
    key = jax.random.key(0)
    choice = choose(load(f"q_learning:{tmp_path}", GAME), key, states)
    chex.assert_trees_all_equal(choice, choose(trained.player(), key, states))


def test_q_players_accept_an_epsilon(run):
    player = load(f"q_learning:{run}?epsilon=0.25")
    assert isinstance(player, QPlayer)
    assert player.epsilon == 0.25
    assert load(f"q_learning:{run}").epsilon == 0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        *(
            (f"q_learning:RUN?epsilon={text}", "epsilon must be a number from 0 to 1")
            for text in ("2", "-0.1", "often", "nan")
        ),
        ("network:RUN", "load it as q_learning:RUN"),
        ("alphazero:RUN", "load it as q_learning:RUN"),
        ("q_learning:RUN/nothing", "no player in .*nothing"),
        ("q_learning:RUN/other", "load it as network:RUN or alphazero:RUN"),
    ],
)
def test_a_wrong_epsilon_and_a_wrong_kind_of_player_are_refused(
    run, trained, spec, message
):
    save_player(run / "other", trained)
    with pytest.raises(ValueError, match=message):
        load(spec.replace("RUN", str(run)))


def test_another_game_or_reader_is_refused_and_an_older_version_loads(run):
    with pytest.raises(ValueError, match="is for tic_tac_toe, not for connect_four"):
        load(f"q_learning:{run}", games.make("connect_four"))
    with pytest.raises(ValueError, match="load it as q_learning:RUN"):
        load_player(run)
    change_config(run, {"format": 1})
    assert load_q_player(run).game == GAME


NETWORK = {"form": "state", "hidden": [9], "separate": False}


def change_config(run, changes):
    path = run / "player" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": 99}, "does not fit this version of azjax: its format is 99, and"),
        ({"game": "nim"}, "the unknown game 'nim'"),
        ({"network": {}}, "lack 'form'"),
        *(
            ({"network": NETWORK | wrong}, says)
            for wrong, says in (
                ({"hidden": [10**9]}, "hidden must be an int from 1 to 8192: 100000"),
                ({"hidden": [9] * 99}, "network.hidden must be 1 to 64 numbers: 99"),
                ({"separate": 1}, "network.separate must be True or False: 1"),
                ({"form": []}, "does not fit this version"),
                ({}, "do not fit the network"),
            )
        ),
    ],
)
def test_a_damaged_player_or_another_version_is_refused(run, changes, says):
    change_config(run, changes)
    with pytest.raises(ValueError, match=says) as error:
        load_q_player(run)
    assert "\n" not in str(error.value)

import json

import jax
import pytest

from azjax import games
from azjax.networks import QNetworkConfig, init_q_network
from azjax.players import (
    DEFAULT_SIMULATIONS,
    TrainedQ,
    load_player,
    save_player,
    save_q_player,
)
from azjax.players.learnt import load_learnt


@pytest.fixture
def run(trained, tmp_path):
    save_player(tmp_path / "run" / "player", trained)
    return tmp_path / "run"


def test_a_learnt_player_has_the_settings_of_its_run(trained, run):
    player = load_learnt("alphazero", run, trained.game)
    assert player.search == trained.search
    assert player.simulations == DEFAULT_SIMULATIONS
    assert load_learnt("network", run, trained.game).temperature == 0


@pytest.mark.parametrize("kind", ["gtp:touch owned", "random", "human", ""])
def test_an_unknown_kind_is_refused(trained, run, kind):
    with pytest.raises(ValueError, match="a learnt player is one of alphazero, "):
        load_learnt(kind, run, trained.game)


def test_a_directory_is_no_text(trained, run):
    with pytest.raises(ValueError, match=r"no player in .*run\?simulations=5"):
        load_learnt("alphazero", run.with_name("run?simulations=5"), trained.game)


def test_a_player_of_another_game_is_refused(trained, run):
    with pytest.raises(ValueError, match=f"is for {trained.game}, not for hex"):
        load_learnt("network", run, games.make("hex"))


@pytest.mark.parametrize("kind", ["alphazero", "network"])
def test_a_network_as_large_as_few_are_is_read_by_its_owner_alone(trained, run, kind):
    path = run / "player/config.json"
    config = json.loads(path.read_text())
    config["network"] = {"trunk": "conv", "channels": 2048, "num_blocks": 2}
    path.write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"takes \d+ bytes; at most 536870912 are"):
        load_learnt(kind, run, trained.game)
    with pytest.raises(ValueError, match="do not fit the network"):  # they were read
        load_player(run)


def test_learnt_action_values_larger_than_allowed_are_refused(tmp_path, monkeypatch):
    game, config = games.make("tic_tac_toe"), QNetworkConfig(hidden=(8,))
    network, params = init_q_network(
        jax.random.key(0), game.observation_shape, game.num_actions, config
    )
    save_q_player(tmp_path / "player", TrainedQ(game, network, params, config))
    monkeypatch.setattr("azjax.players.learnt.MAX_WEIGHT_BYTES", 100)
    with pytest.raises(ValueError, match=r"takes \d+ bytes; at most 100 are loaded"):
        load_learnt("q_learning", tmp_path, game)

import dataclasses
import functools
import json
import math

import jax
import pytest
from flax import nnx
from untrained import untrained

from azjax import games, players
from azjax.networks import Parts, QNetworkConfig, init_q_network
from azjax.players import (
    DEFAULT_SIMULATIONS,
    MissingPartsError,
    TrainedQ,
    save_player,
    save_q_player,
)
from azjax.players.registry import load_learned


@pytest.fixture
def run(trained, tmp_path):
    save_player(tmp_path / "run" / "player", trained)
    return tmp_path / "run"


def test_a_learned_player_has_the_settings_of_its_run(trained, run):
    player = load_learned("alphazero", run, trained.game)
    assert player.search == trained.search
    assert player.simulations == DEFAULT_SIMULATIONS
    assert load_learned("network", run, trained.game).temperature == 0


@pytest.mark.parametrize(
    ("kind", "suffix", "game", "message"),
    [
        *(
            (kind, "", "tic_tac_toe", "kind must be one of alphazero, ")
            for kind in ("gtp:touch owned", "uci:touch owned", "random", "human", "")
        ),
        # A directory is not parsed as a player string.
        ("alphazero", "?simulations=5", "tic_tac_toe", r"no player in .*run\?simul"),
        ("network", "", "hex", "is for tic_tac_toe, not for hex"),
    ],
)
def test_another_kind_directory_or_game_is_refused(run, kind, suffix, game, message):
    with pytest.raises(ValueError, match=message):
        load_learned(kind, run.with_name(run.name + suffix), games.make(game))


@pytest.mark.parametrize("kind", ["alphazero", "network"])
def test_a_large_network_is_loaded_by_load_only_and_a_larger_one_not(
    trained, run, kind
):
    path = run / "player/config.json"
    config = json.loads(path.read_text())
    for num_blocks, message in (
        (2, "do not fit the network"),  # they were read
        (8, r"takes \d+ bytes; at most 2147483648 are loaded"),
    ):
        trunk = {"name": "conv", "channels": 2048, "num_blocks": num_blocks}
        path.write_text(json.dumps(config | {"network": {"trunk": trunk}}))
        with pytest.raises(ValueError, match=r"takes \d+ bytes; at most 536870912 are"):
            load_learned(kind, run, trained.game)
        with pytest.raises(ValueError, match=message):
            players.load(f"{kind}:{run}")


class LinearTrunk(nnx.Module):
    def __init__(self, observation_shape, rngs, *, width):
        self.linear = nnx.Linear(math.prod(observation_shape), width, rngs=rngs)

    def __call__(self, observation):
        return self.linear(observation.reshape(len(observation), -1))


def custom_parts(width):
    return Parts(trunk=functools.partial(LinearTrunk, width=width))


def test_a_network_with_custom_parts_is_loaded_with_them_if_they_fit(
    trained, tmp_path, monkeypatch
):
    network, variables = untrained(trained.game, trained.config, custom_parts(3))
    player = dataclasses.replace(
        trained, network=network, variables=variables, has_own_parts=True
    )
    save_player(tmp_path / "player", player)
    load = functools.partial(load_learned, "network", tmp_path, trained.game)
    assert load(custom_parts(3)).game == trained.game
    with pytest.raises(MissingPartsError, match="--parts MODULE:NAME"):
        load()
    # Others are not built before the weights are checked.
    monkeypatch.setattr("azjax.players.serialization.first_network", None)
    for width, message in (
        (4, "do not fit the network"),
        (10**9, r"takes \d+ bytes; at most 536870912 are"),
    ):
        with pytest.raises(ValueError, match=message):
            load(custom_parts(width))


def test_a_q_network_above_the_limit_is_refused(tmp_path, monkeypatch):
    game, config = games.make("tic_tac_toe"), QNetworkConfig(hidden=(8,))
    network, params = init_q_network(
        jax.random.key(0), game.observation_shape, game.num_actions, config
    )
    save_q_player(tmp_path / "player", TrainedQ(game, network, params, config))
    monkeypatch.setattr("azjax.players.registry.MAX_WEIGHT_BYTES", 100)
    with pytest.raises(ValueError, match=r"takes \d+ bytes; at most 100 are loaded"):
        load_learned("q_learning", tmp_path, game)

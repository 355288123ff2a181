import dataclasses
import functools
import json
import threading

import chex
import jax
import jax.numpy as jnp
import pytest
import safetensors.numpy
from flax import nnx
from untrained import untrained

from azjax import games
from azjax.networks import (
    ConvTrunkConfig,
    CustomModules,
    NetworkConfig,
    QNetworkConfig,
    TrunkConfig,
    init_q_network,
    register_trunk,
)
from azjax.players import (
    QPlayer,
    TrainedPlayer,
    TrainedQ,
    choose,
    first_network,
    load,
    load_player,
    load_q_player,
    save_player,
    save_q_player,
)
from azjax.players.serialization import (
    PLAYER_FILE,
    config_of,
    named_leaves,
    pretrained_directory,
)
from azjax.search import GumbelConfig

TIC_TAC_TOE = games.make("tic_tac_toe")


class FlatTrunk(nnx.Module):
    """A trunk without layers and parameters."""

    def __init__(self, observation_shape, rngs):
        pass

    def __call__(self, observation):
        return observation.reshape(len(observation), -1)


def untrained_player(config, modules=None):
    """Returns a player of tic-tac-toe with its first network."""
    return TrainedPlayer(
        TIC_TAC_TOE,
        *untrained(TIC_TAC_TOE, config, modules),
        config,
        GumbelConfig(),
        seed=0,
        has_custom_modules=modules is not None,
    )


@pytest.fixture
def directory(trained, tmp_path):
    save_player(tmp_path / "player", trained)
    return tmp_path / "player"


def change_config(directory, **changes):
    path = directory / PLAYER_FILE
    with safetensors.safe_open(path, framework="numpy") as file:
        config = json.loads(file.metadata()["azjax"]) | changes
    arrays, metadata = safetensors.numpy.load_file(path), {"azjax": json.dumps(config)}
    safetensors.numpy.save_file(arrays, path, metadata=metadata)


def test_a_loaded_player_equals_the_saved_one(trained, directory):
    """A player directory or a run directory, as a path or a string."""
    for path in (directory, directory.parent, str(directory), str(directory.parent)):
        loaded = load_player(path)
        chex.assert_trees_all_equal(loaded.variables, trained.variables)
        settings, expected = (
            dataclasses.replace(player, variables=None, network=None)
            for player in (loaded, trained)
        )
        assert settings == expected
        # Players with equal settings share the network structure.
        assert loaded.network is load_player(directory).network


def test_float16_is_smaller_and_close_and_becomes_float32_again(
    trained, directory, tmp_path
):
    save_player(tmp_path / "half", trained, dtype="float16")
    loaded = load_player(tmp_path / "half")
    chex.assert_type(jax.tree.leaves(loaded.variables), jnp.float32)
    chex.assert_trees_all_close(
        loaded.variables, trained.variables, rtol=2**-11, atol=1e-6
    )
    half, full = (
        (path / PLAYER_FILE).stat().st_size for path in (tmp_path / "half", directory)
    )
    assert half < full


def test_the_file_is_the_same_for_the_same_player_and_other_programs_read_it(
    trained, directory, tmp_path
):
    save_player(tmp_path / "again", load_player(directory))
    path = tmp_path / "again" / PLAYER_FILE
    assert path.read_bytes() == (directory / PLAYER_FILE).read_bytes()
    with safetensors.safe_open(path, framework="numpy") as file:
        assert json.loads(file.metadata()["azjax"]) == config_of(trained)
        assert set(file.keys()) == set(named_leaves(trained.variables))


def test_a_reader_never_reads_an_incomplete_player(trained, directory):
    other = dataclasses.replace(
        trained, variables=jax.tree.map(lambda leaf: leaf + 1, trained.variables)
    )
    done = threading.Event()

    def write():
        for _ in range(10):
            save_player(directory, other)
            save_player(directory, trained)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        load_player(directory)
    writer.join()
    assert [path.name for path in directory.iterdir()] == [PLAYER_FILE]


def test_a_link_is_read_and_replaced(trained, directory):
    path = directory / PLAYER_FILE
    path.rename(directory.parent / "elsewhere")
    path.symlink_to(directory.parent / "elsewhere")
    chex.assert_trees_all_equal(load_player(directory).variables, trained.variables)
    content = path.read_bytes()
    zero = jax.tree.map(jnp.zeros_like, trained.variables)
    save_player(directory, dataclasses.replace(trained, variables=zero))
    chex.assert_trees_all_equal(load_player(directory).variables, zero)
    assert (directory.parent / "elsewhere").read_bytes() == content


def test_custom_modules_are_used_by_networks_that_were_made_with_them(
    trained, directory, tmp_path
):
    modules = CustomModules(trunk=FlatTrunk)
    save_player(tmp_path / "own", untrained_player(trained.config, modules))
    own = load_player(tmp_path / "own", modules)
    assert own.has_custom_modules
    variables = untrained_player(trained.config, modules).variables
    chex.assert_trees_all_equal(own.variables, variables)
    without = load_player(directory, modules)
    assert not without.has_custom_modules
    chex.assert_trees_all_equal(without.variables, trained.variables)


def test_the_first_network_is_the_same_for_the_same_seed(trained):
    first = jax.jit(lambda seed: first_network(seed, trained.game, trained.config)[1])
    one, again, other = (jax.device_get(first(seed)) for seed in (1, 1, 2))
    chex.assert_trees_all_equal(one, again)
    assert any(jax.tree.leaves(jax.tree.map(lambda a, b: (a != b).any(), one, other)))


def test_a_game_without_a_pretrained_player_is_named():
    message = r"no pretrained player for hex:4; .* connect_four, .*tic_tac_toe"
    with pytest.raises(ValueError, match=message):
        pretrained_directory(games.make("hex:4"))


@register_trunk("flat")
@dataclasses.dataclass(frozen=True)
class FlatTrunkConfig(TrunkConfig):
    def make(self, observation_shape, *, dtype, rngs):
        del dtype
        return FlatTrunk(observation_shape, rngs)


def test_a_registered_trunk_is_saved_and_loaded_by_name(tmp_path):
    player = untrained_player(NetworkConfig(FlatTrunkConfig()))
    save_player(tmp_path, player)
    loaded = load_player(tmp_path)
    assert loaded.config == player.config
    assert not loaded.has_custom_modules
    chex.assert_trees_all_equal(loaded.variables, player.variables)
    change_config(tmp_path, network={"trunk": {"name": "round"}})
    with pytest.raises(ValueError, match=r"unknown trunk 'round'; .* import the modul"):
        load_player(tmp_path)


def test_heads_that_do_not_fit_the_game_name_the_player(tmp_path):
    trunk = ConvTrunkConfig(num_blocks=0, channels=2)
    save_player(tmp_path, untrained_player(NetworkConfig(trunk, heads="board")))
    change_config(tmp_path, game="connect_four")
    with pytest.raises(ValueError, match=r"does not fit .*: network.heads must be d"):
        load_player(tmp_path)


@pytest.mark.parametrize("game", ["chess", "hex:5"])
def test_line_planes_are_refused_in_games_without_lines(game):
    config = NetworkConfig(line_length=4)
    with pytest.raises(ValueError, match=f"line_length must be 0 .* {game}: 4$"):
        first_network(0, games.make(game), config)


CONFIGS = [
    QNetworkConfig(form=form, hidden=hidden, separate=separate)
    for form, hidden in (("state", (8,)), ("pair", (8, 4)))
    for separate in (False, True)
]


@functools.cache
def trained_q(config):
    game, key = TIC_TAC_TOE, jax.random.key(5)
    network, params = init_q_network(
        key, game.observation_shape, game.num_actions, config
    )
    return TrainedQ(game, network, jax.tree.map(lambda x: x + 0.1, params), config)


@pytest.fixture
def run(tmp_path):
    save_q_player(tmp_path / "player", trained_q(CONFIGS[0]))
    return tmp_path


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_loaded_player_of_q_learning_equals_the_saved_one(config, states, tmp_path):
    trained = trained_q(config)
    save_q_player(tmp_path / "player", trained)
    loaded = load_q_player(tmp_path)
    assert (loaded.game, loaded.config) == (trained.game, config)
    chex.assert_trees_all_equal(loaded.params, trained.params)
    key = jax.random.key(0)
    choice = choose(load(f"q_learning:{tmp_path}", TIC_TAC_TOE), key, states)
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


def test_another_game_or_reader_is_refused(run):
    with pytest.raises(ValueError, match="is for tic_tac_toe, not for connect_four"):
        load(f"q_learning:{run}", games.make("connect_four"))
    with pytest.raises(ValueError, match="load it as q_learning:RUN"):
        load_player(run)


NETWORK = {"form": "state", "hidden": [9], "separate": False}


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
    change_config(run / "player", **changes)
    with pytest.raises(ValueError, match=says) as error:
        load_q_player(run)
    assert "\n" not in str(error.value)

import functools

import jax
import numpy as np
import onnx
import onnxruntime
import pytest

from azjax import games, players
from azjax.networks import (
    ConvTrunkConfig,
    DenseTrunkConfig,
    NetworkConfig,
    Parts,
    predict,
    result_probabilities,
)
from azjax.networks.trunks import DenseTrunk
from azjax.play import onnx_graph
from azjax.search import GumbelConfig

DENSE = DenseTrunkConfig(width=16, stem_channels=8)
SKIP = DenseTrunkConfig(width=16, stem_channels=8, input_skip=True)
TRUNKS = (
    ConvTrunkConfig(channels=8),
    ConvTrunkConfig(channels=8, global_pooling=True),
    DENSE,
    SKIP,
)
CONFIGS = [
    NetworkConfig(trunk=trunk, value_head=head)
    for trunk in TRUNKS
    for head in ("wdl", "scalar")
]
CONFIGS += [NetworkConfig(trunk=DENSE, line_length=length) for length in (1, 4, 7)]
CONFIGS += [NetworkConfig(trunk=SKIP, line_length=4)]
BATCH_SIZES = (1, 8)


def make_player(config, game=None, parts=None):
    """Returns a player whose layers all change their inputs."""
    game = game or games.make("connect_four")
    network, variables = players.first_network(0, game, config, parts)
    rng = np.random.default_rng(1)
    variables = jax.tree.map(
        lambda leaf: np.asarray(leaf + 0.05 * rng.normal(size=leaf.shape), leaf.dtype),
        jax.device_get(variables),
    )
    return players.TrainedPlayer(game, network, variables, config, GumbelConfig(), 0)


def run_onnx(exported, observation):
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["policy_logits", "result"], {"observation": observation})


def observations(game, batch_size):
    shape = (batch_size, *game.observation_shape)
    return np.random.default_rng(batch_size).integers(0, 2, shape).astype(np.float32)


def check_same(trained):
    exported = onnx_graph.to_onnx(trained)
    predict_jit = jax.jit(functools.partial(predict, trained.network))
    for batch_size in BATCH_SIZES:
        observation = observations(trained.game, batch_size)
        logits, result = run_onnx(exported, observation)
        prediction = predict_jit(trained.variables, observation)
        np.testing.assert_allclose(logits, prediction.policy_logits, atol=1e-5, rtol=0)
        expected = result_probabilities(prediction.value_logits)
        np.testing.assert_allclose(result, expected, atol=1e-5, rtol=0)
        assert np.ptp(logits) > 0.1


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_the_exported_network_has_the_same_outputs(config):
    check_same(make_player(config))


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four"])
def test_exported_shipped_players_have_the_same_outputs(name):
    check_same(players.load_run("pretrained", games.make(name)))


@pytest.mark.parametrize("spec", ["go:5", "breakthrough:5,4"])
@pytest.mark.parametrize("value_head", ["wdl", "scalar"])
def test_exported_board_heads_have_the_same_outputs(spec, value_head):
    config = NetworkConfig(TRUNKS[1], value_head=value_head, heads="board")
    check_same(make_player(config, games.make(spec)))


def test_windows_are_cut_to_small_boards():
    check_same(make_player(CONFIGS[4], games.make("tic_tac_toe")))


def test_a_network_that_computes_in_bfloat16_is_exported_in_float32():
    config = NetworkConfig(trunk=DENSE, dtype="bfloat16")
    exact = make_player(NetworkConfig(trunk=DENSE))
    half = make_player(config)
    observation = observations(exact.game, 8)
    for ours, expected in zip(
        run_onnx(onnx_graph.to_onnx(half), observation),
        run_onnx(onnx_graph.to_onnx(exact), observation),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, expected)


def test_the_file_names_its_game_and_is_readable_by_old_runtimes(tmp_path):
    path = tmp_path / "deep" / "network.onnx"
    onnx_graph.export_onnx(make_player(CONFIGS[4], games.make("hex:5")), path)
    exported = onnx.load(path)
    assert {prop.key: prop.value for prop in exported.metadata_props} == {
        "game": "hex:5"
    }
    assert exported.ir_version == 8
    assert [(o.domain, o.version) for o in exported.opset_import] == [("", 17)]
    assert not exported.graph.value_info
    assert [path.name for path in path.parent.iterdir()] == ["network.onnx"]


def test_custom_modules_are_refused():
    class OwnTrunk(DenseTrunk):
        pass

    def make_trunk(observation_shape, rngs):
        return OwnTrunk(
            observation_shape,
            num_blocks=1,
            width=16,
            stem_channels=8,
            window=3,
            input_skip=False,
            dtype=np.float32,
            rngs=rngs,
        )

    trained = make_player(CONFIGS[4], parts=Parts(trunk=make_trunk))
    with pytest.raises(ValueError, match="the trunk OwnTrunk cannot be exported"):
        onnx_graph.to_onnx(trained)

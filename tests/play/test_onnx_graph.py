import jax
import numpy as np
import onnx
import onnxruntime
import pytest
from untrained import untrained_shapes

from azjax import games, players
from azjax.networks import (
    ConvTrunkConfig,
    CustomModules,
    DenseTrunkConfig,
    NetworkConfig,
    predict,
    result_probabilities,
)
from azjax.networks.trunks import DenseTrunk
from azjax.play import onnx_graph
from azjax.search import GumbelConfig

DENSE = DenseTrunkConfig(num_blocks=2, width=16, stem_channels=8)
SKIP = DenseTrunkConfig(num_blocks=2, width=16, stem_channels=8, input_skip=True)
POOLING = ConvTrunkConfig(num_blocks=2, channels=8, global_pooling=True)
CONFIGS = [
    NetworkConfig(trunk=ConvTrunkConfig(num_blocks=2, channels=8)),
    NetworkConfig(trunk=POOLING, value_head="scalar"),
    NetworkConfig(trunk=DENSE),
    NetworkConfig(trunk=DENSE, value_head="scalar", line_length=1),
    NetworkConfig(trunk=SKIP, value_head="scalar"),
    NetworkConfig(trunk=SKIP, line_length=4),
    NetworkConfig(trunk=DENSE, line_length=7),
]


def make_player(config, game=None, modules=None):
    """Returns a player whose layers all change their inputs."""
    game = game or games.make("connect_four")
    network, shapes = untrained_shapes(game, config, modules)
    rng = np.random.default_rng(1)
    variables = jax.tree.map(
        lambda leaf: np.asarray(
            rng.normal(size=leaf.shape) / np.sqrt(max(3, leaf.size / leaf.shape[-1])),
            leaf.dtype,
        ),
        shapes,
    )
    return players.TrainedPlayer(game, network, variables, config, GumbelConfig(), 0)


def run_onnx(exported, observation):
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["policy_logits", "result"], {"observation": observation})


def observations(game):
    shape = (8, *game.observation_shape)
    return np.random.default_rng(8).integers(0, 2, shape).astype(np.float32)


def check_same(trained):
    @jax.jit
    def run(variables, observation):
        prediction = predict(trained.network, variables, observation)
        return prediction.policy_logits, result_probabilities(prediction.value_logits)

    exported, observation = onnx_graph.to_onnx(trained), observations(trained.game)
    expected = jax.device_get(run(trained.variables, observation))
    for batch_size in (1, 8):
        found = run_onnx(exported, observation[:batch_size])
        for ours, theirs in zip(found, expected, strict=True):
            # The error is relative to the largest output: outputs are sums.
            atol = 1e-5 * max(1, np.abs(theirs).max())
            np.testing.assert_allclose(ours, theirs[:batch_size], atol=atol, rtol=0)
        assert np.ptp(found[0]) > 0.1


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_the_exported_network_has_the_same_outputs(config):
    check_same(make_player(config))


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four"])
def test_exported_shipped_players_have_the_same_outputs(name):
    check_same(players.load_run("pretrained", games.make(name)))


@pytest.mark.parametrize(
    ("spec", "value_head"), [("go:5", "wdl"), ("breakthrough:5,4", "scalar")]
)
def test_exported_board_heads_have_the_same_outputs(spec, value_head):
    config = NetworkConfig(POOLING, value_head=value_head, heads="board")
    check_same(make_player(config, games.make(spec)))


def test_windows_are_cut_to_small_boards():
    check_same(make_player(NetworkConfig(trunk=DENSE), games.make("tic_tac_toe")))


def test_a_network_that_computes_in_bfloat16_is_exported_in_float32():
    config = NetworkConfig(trunk=DENSE, dtype="bfloat16")
    exact = make_player(NetworkConfig(trunk=DENSE))
    half = make_player(config)
    observation = observations(exact.game)
    for ours, expected in zip(
        run_onnx(onnx_graph.to_onnx(half), observation),
        run_onnx(onnx_graph.to_onnx(exact), observation),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, expected)


def test_the_file_names_its_game_and_is_readable_by_old_runtimes(tmp_path):
    path = tmp_path / "deep" / "network.onnx"
    onnx_graph.export_onnx(
        make_player(NetworkConfig(trunk=DENSE), games.make("hex:5")), path
    )
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

    trained = make_player(
        NetworkConfig(trunk=DENSE), modules=CustomModules(trunk=make_trunk)
    )
    with pytest.raises(ValueError, match="the trunk OwnTrunk cannot be exported"):
        onnx_graph.to_onnx(trained)

import dataclasses
import gzip
import hashlib
import json
import re

import jax
import numpy as np
import onnxruntime
import pytest
from untrained import untrained_shapes

from azjax import games, players
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.play.onnx_graph import onnx, to_onnx
from azjax.play.page_files import browser_games, page_files
from azjax.play.web_export import export_web, halved, site
from azjax.search import AlphaZeroConfig, GumbelConfig

LARGEST_SITE = 6_000_000


@pytest.fixture(scope="module", params=browser_games())
def shipped(request):
    return players.load_run("pretrained", games.make(request.param))


def untrained(name, search=None):
    game = games.make(name)
    config = NetworkConfig(trunk=DenseTrunkConfig(width=16, num_blocks=1))
    network, shapes = untrained_shapes(game, config)
    rng = np.random.default_rng(0)
    variables = jax.tree.map(
        lambda leaf: np.asarray(rng.normal(size=leaf.shape), leaf.dtype), shapes
    )
    return players.TrainedPlayer(
        game, network, variables, config, search or GumbelConfig(), seed=0
    )


def outputs(model, observation):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"observation": observation})


def test_a_site_is_complete_and_small(shipped, tmp_path):
    directory = tmp_path / "new" / "site"
    size = export_web(shipped, directory, name="somebody")
    written = [path for path in directory.rglob("*") if path.is_file()]
    assert size == sum(path.stat().st_size for path in written) <= LARGEST_SITE
    config = json.loads((directory / "config.json").read_text())
    assert config["game"] == shipped.game.name
    assert config["player"] == "somebody"
    for part in ("network", "runtime"):
        path = directory / config[part]["file"]
        assert path.stat().st_size == config[part]["bytes"]
    for page in written:
        if page.suffix in (".js", ".html") and "vendor" not in page.parts:
            for name in re.findall(r'(?:from|src=|href=) ?"([^"]+)"', page.read_text()):
                assert (page.parent / name).exists(), f"{page} needs {name}"
    assert (directory / "games" / f"{shipped.game.name}.js").exists()
    assert (directory / "vendor/ort/LICENSE").exists()


def test_a_site_has_no_files_that_only_a_server_needs():
    files = site(untrained("tic_tac_toe"), name="x")
    programs = {path for path in files if path.endswith(".js")}
    needed, waiting = {"boot.js"}, {"app.js", "worker.js", "games/tic_tac_toe.js"}
    while waiting:
        path = waiting.pop()
        needed.add(path)
        imports = re.findall(r'from "\./([^"]+)"', files[path].decode())
        folder = path.rpartition("/")[0]
        waiting |= {f"{folder}/{name}".lstrip("/") for name in imports} - needed
    assert programs == needed


def test_the_page_names_no_other_host():
    for path in page_files().rglob("*"):
        if path.suffix in (".js", ".html", ".css", ".svg") and "vendor" not in str(
            path
        ):
            hosts = set(re.findall(r"https?://([^/\"' ]+)", path.read_text()))
            assert hosts <= {"www.w3.org", "localhost:8000."}, path


def test_the_runtime_is_the_published_one():
    folder = page_files() / "vendor" / "ort"
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        checksum, name = line.split()
        packed = folder / f"{name}.gz"
        content = (
            gzip.decompress(packed.read_bytes())
            if packed.exists()
            else (folder / name).read_bytes()
        )
        assert hashlib.sha256(content).hexdigest() == checksum, name


def test_exact_weights_are_stored_in_16_bits(shipped):
    exact = to_onnx(shipped)
    model = halved(exact)
    assert len(model.SerializeToString()) < 0.52 * len(exact.SerializeToString())
    shape = (8, *shipped.game.observation_shape)
    observation = np.random.default_rng(0).integers(0, 2, shape).astype(np.float32)
    for ours, expected in zip(
        outputs(model, observation), outputs(exact, observation), strict=True
    ):
        np.testing.assert_array_equal(ours, expected)


def test_other_weights_stay_in_32_bits():
    trained = untrained("tic_tac_toe")
    variables = jax.tree.map(lambda leaf: leaf + 1 / 3, trained.variables)
    trained = dataclasses.replace(trained, variables=variables)
    exact, model = to_onnx(trained), halved(to_onnx(trained))
    kept = {tensor.name: tensor for tensor in model.graph.initializer}
    for tensor in exact.graph.initializer:
        if onnx.numpy_helper.to_array(tensor).size > 1:
            assert kept[tensor.name].raw_data == tensor.raw_data


def test_the_export_is_reproducible(shipped):
    assert site(shipped, name="x") == site(shipped, name="x")


def test_the_search_gets_its_settings():
    search = AlphaZeroConfig(c_init=2.0, c_base=100.0, first_play_reduction=0.2)
    files = site(untrained("tic_tac_toe", search), name="x")
    config = json.loads(files["config.json"])
    assert config["search"] == {
        "c_init": 2.0,
        "c_base": 100.0,
        "first_play_reduction": 0.2,
    }
    network = gzip.decompress(files["network.onnx.gz"])
    onnx.checker.check_model(onnx.load_from_string(network))


def test_games_without_rules_in_javascript_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match="connect_four and tic_tac_toe only, not for 'othello'"
    ):
        export_web(untrained("othello"), tmp_path / "site", name="x")
    assert not list(tmp_path.iterdir())


def test_only_an_earlier_export_is_overwritten(tmp_path):
    trained = untrained("tic_tac_toe")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text('{"mine": true}')
    with pytest.raises(ValueError, match="must name a new or empty directory"):
        export_web(trained, other, name="x")
    assert [path.name for path in other.iterdir()] == ["config.json"]
    with pytest.raises(ValueError, match="not a file"):
        export_web(trained, other / "config.json", name="x")
    directory = tmp_path / "site"
    directory.mkdir()
    export_web(trained, directory, name="first")
    (directory / "CNAME").write_text("play.example.org")
    export_web(trained, directory, name="second")
    assert json.loads((directory / "config.json").read_text())["player"] == "second"
    assert (directory / "CNAME").exists()
    assert not list(directory.rglob(".*"))

"""Export of a trained player as a static site that runs in the browser."""

import gzip
import json
from pathlib import Path

import numpy as np

from azjax.files import replace_file
from azjax.play.onnx_graph import onnx, to_onnx
from azjax.play.page_files import (
    RULES,
    browser_games,
    check_browser_rules,
    read_page,
)
from azjax.play.server.positions import describe_start
from azjax.players import DEFAULT_SIMULATIONS, TrainedPlayer
from azjax.search import AlphaZeroConfig

CONFIG_FILE = "config.json"
NETWORK_FILE = "network.onnx.gz"
RUNTIME_FILE = "vendor/ort/ort-wasm-simd-threaded.wasm.gz"
MADE_BY = "azjax export --web"
SERVER_FILES = (  # not part of an exported site
    "compare.html",
    "compare.js",
    "lobby.html",
    "lobby.js",
    "missing.html",
    "run.html",
    "run.js",
    "server_engine.js",
    "widget.js",
)


def export_web(trained: TrainedPlayer, directory: Path, *, name: str) -> int:
    """Writes a static site.

    Files of an earlier export are replaced one by one, the configuration last; other
    files are kept.

    Args:
        trained: the player. On the site it uses PUCT search, also if it was trained
            with another search.
        directory: created if it does not exist.
        name: name of the player on the page.

    Returns:
        The total size of the files in bytes.

    Raises:
        ValueError: the page has no rules for the game, the network cannot be exported,
            or the directory contains other files.
    """
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"--web must name a directory, not a file: {directory}")
    try:
        config = json.loads((directory / CONFIG_FILE).read_text())
    except (OSError, ValueError):
        config = None
    is_ours = isinstance(config, dict) and config.get("made_by") == MADE_BY
    if directory.exists() and any(directory.iterdir()) and not is_ours:
        raise ValueError(
            "--web must name a new or empty directory, or an earlier export: "
            f"{directory}"
        )
    files = site(trained, name=name)
    for path, content in files.items():
        replace_file(directory / path, content)
    return sum(len(content) for content in files.values())


def site(trained: TrainedPlayer, *, name: str) -> dict[str, bytes]:
    """Returns the files of the site by path, the configuration last; see
    `export_web`."""
    game = trained.game
    check_browser_rules(game.name)
    files = {
        path: content
        for path, content in read_page().items()
        if path not in SERVER_FILES
    }
    for other in browser_games():
        if other != game.name:
            del files[f"{RULES}/{other}.js"]
    model = halved(to_onnx(trained)).SerializeToString()
    # Without a time stamp, so that the export is reproducible.
    files[NETWORK_FILE] = gzip.compress(model, mtime=0)
    search = trained.search
    if not isinstance(search, AlphaZeroConfig):
        search = AlphaZeroConfig()
    network, runtime = (
        {"file": path, "bytes": len(files[path])}
        for path in (NETWORK_FILE, RUNTIME_FILE)
    )
    config = {
        "made_by": MADE_BY,
        "game": game.name,
        "description": describe_start(game, game.name).description,
        "player": name,
        "simulations": DEFAULT_SIMULATIONS,
        "search": {
            "c_init": search.c_init,
            "c_base": search.c_base,
            "first_play_reduction": search.first_play_reduction,
        },
        "network": network,
        "runtime": runtime,
    }
    files[CONFIG_FILE] = (json.dumps(config, indent=2) + "\n").encode()
    return files


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with float16 weights where the conversion is exact.

    The network still computes in float32: the runtime casts the weights when it loads.
    The shipped players have float16 weights.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    del graph.initializer[:], graph.node[:]
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        half = array.astype(np.float16) if array.dtype == np.float32 else array
        if half.dtype != np.float16 or (half != array).any():
            graph.initializer.append(tensor)
            continue
        stored = f"{tensor.name}_half"
        graph.initializer.append(onnx.numpy_helper.from_array(half, stored))
        graph.node.append(
            onnx.helper.make_node(
                "Cast", [stored], [tensor.name], to=onnx.TensorProto.FLOAT
            )
        )
    graph.node.extend(model.graph.node)
    onnx.checker.check_model(result, full_check=True)
    return result

"""`azjax export`: writes a trained player for use without JAX."""

from pathlib import Path
from typing import Annotated

import tyro

from azjax import games
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.files import as_directory, resolved
from azjax.play.page_files import check_browser_rules
from azjax.players import load_run
from azjax.players.serialization import player_directory, read_settings


def export_command(
    run: tyro.conf.Positional[str],
    /,
    *,
    onnx: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None,
    web: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None,
    game: str | None = None,
    modules: ModulesOption = None,
) -> None:
    """Write a trained player's network as an ONNX file, or the player as a web page.

    Args:
        run: a run's directory, a player's directory, or `pretrained`.
        onnx: the file to write. Its input is `observation` `[batch, H, W, C]`, its
            outputs are `policy_logits` `[batch, A]` and `result` `[batch, 3]`, the
            probabilities of win, draw and loss for the player to move.
        web: the directory to write: a static site with the player, which computes in
            the visitor's browser.
        game: the game, for `pretrained`.
    """
    if onnx is None and web is None:
        raise ValueError("give --onnx FILE or --web DIR: azjax export RUN --web DIR")
    board_game = None if game is None else games.make(game)
    # Before anything is loaded, and also if the game is not registered.
    if web is not None and board_game is not None:
        check_browser_rules(board_game.name)
    elif web is not None and run != "pretrained":
        directory = player_directory(run)
        config = read_settings(directory)
        if isinstance(config, dict) and "game" in config:  # else `load_run` explains
            check_browser_rules(config["game"])
    try:
        from azjax.play.onnx_graph import export_onnx  # noqa: PLC0415  # an extra
        from azjax.play.web_export import export_web  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    if onnx is not None and Path(onnx).suffix != ".onnx":
        # Another file that is there is not overwritten by mistake.
        raise ValueError(f"--onnx must name a file that ends with .onnx: {onnx}")
    if onnx is not None and Path(onnx).is_dir():
        raise ValueError(f"--onnx must name a file, not a directory: {onnx}")
    trained = load_run(run, board_game, read_custom_modules(modules))
    if onnx is not None:
        path = Path(onnx)
        export_onnx(trained, path)
        print(f"{path}: {path.stat().st_size:,} bytes, {trained.game!r}")
    if web is not None:
        name = run if run == "pretrained" else resolved(as_directory(run)).name
        size = export_web(trained, Path(web), name=f"AlphaZero ({name})")
        print(f"{web}: {size:,} bytes, {trained.game!r}")
        print(f"Try it: python -m http.server --directory {web}")
        print("then open http://localhost:8000 in a browser.")

"""`azjax export`: a trained player for use without JAX."""

from pathlib import Path
from typing import Annotated

import tyro

from azjax import games
from azjax.players import load_run


def export_command(
    run: tyro.conf.Positional[str],
    /,
    *,
    onnx: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None,
    game: str | None = None,
) -> None:
    """Write a trained player's network as an ONNX file.

    Args:
        run: a run's directory, a player's directory, or `pretrained`.
        onnx: the file to write. Its input is `observation` `[batch, H, W, C]`, its
            outputs are `policy_logits` `[batch, A]` and `result` `[batch, 3]`, the
            probabilities of win, draw and loss for the player to move.
        game: which player is meant, for `pretrained`.
    """
    if onnx is None:
        raise ValueError("say what to write: azjax export RUN --onnx FILE")
    try:
        from azjax.play.onnx_graph import export_onnx  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    path = Path(onnx)
    if path.is_dir():
        raise ValueError(f"--onnx must name a file, not a directory: {onnx}")
    trained = load_run(run, None if game is None else games.make(game))
    export_onnx(trained, path)
    print(f"{path}: {path.stat().st_size:,} bytes, {trained.game!r}")

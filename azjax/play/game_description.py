"""Games and boards as JSON for the page."""

import copy
import re
from typing import Any, NamedTuple

import jax

from azjax.games import Game, State, game_title
from azjax.games.rendering import CELL_SIZE, board_parts
from azjax.play.text_output import side_names

_SIZES = re.compile(r'(width|height)="([0-9.]+)')
_VIEW_BOX = re.compile(r'viewBox="([-0-9. ]+)"')


class Preview(NamedTuple):
    """A game before its rules are compiled.

    description: description of the game, without a player.
    position: the first one, without moves.
    picture: of the first position, an SVG document.
    """

    description: dict[str, Any]
    position: dict[str, Any]
    picture: str


def describe_start(game: Game, key: str) -> Preview:
    """Returns the description of a game and of its first position.

    It compiles one small program; without `jit`, each operation would be compiled
    separately, which takes seconds.
    """
    state, cells = jax.device_get(
        jax.jit(lambda: (first := game.init(), game.board(first)))()
    )
    drawn = copy.copy(game)
    vars(drawn)["board"] = lambda _: cells
    picture = picture_of(drawn, state)
    height, width = cells.shape
    description = {
        "game": key,
        "title": game_title(key),
        "height": height,
        "width": width,
        "sides": list(side_names(game)),
        "pieces": list(game.pieces if picture else game.style.names),
        "columns": list(game.column_labels),
        "rows": list(game.row_labels),
        "hasFen": hasattr(game, "from_fen"),
        "targets": "cells" if game.row_labels else "columns",
        "board": _board(game, height, width, picture),
    }
    position = {
        "player": int(state.current_player),
        "cells": cells.ravel().tolist(),
        "moves": [],
        "isOver": False,
        "rewards": [0, 0],
        "last": None,
        "marked": [],
        "resultText": "",
        "winningCells": [],
        "picture": picture,
    }
    return Preview(description, position, picture or drawn.to_svg(state))


def picture_of(game: Game, state: State, last_action: int | None = None) -> str | None:
    """Returns a position as a scalable SVG document if another library draws the game;
    else None."""
    if type(game).to_svg is Game.to_svg:
        return None
    svg = game.to_svg(state, last_action)
    if _VIEW_BOX.search(svg):
        return svg
    sizes = dict(_SIZES.findall(svg[: svg.index(">")]))
    box = f'viewBox="0 0 {sizes["width"]} {sizes["height"]}"'
    return svg.replace("<svg", f"<svg {box}", 1)


def _board(game: Game, height: int, width: int, picture: str | None) -> dict[str, Any]:
    """Returns the geometry of a board (pixels), and its parts as SVG elements."""
    if picture is not None:  # it shows the board and all pieces
        found = _VIEW_BOX.search(picture)
        assert found is not None
        left, top, across, down = box = tuple(map(float, found[1].split()))
        centers = tuple(
            (left + (column + 0.5) * across / width, top + (row + 0.5) * down / height)
            for row in range(height)
            for column in range(width)
        )
        return {
            **_geometry(box, centers),
            **{"ground": "", "front": "", "pieces": [], "mark": ""},
            **{"columnLabels": [], "rowLabels": []},
            **{"marksBelow": False, "isTwoSided": False},
        }
    parts = board_parts(game.style, height, width)
    return {
        **_geometry(parts.box, parts.centers),
        "ground": parts.ground,
        "front": parts.front,
        "pieces": list(parts.pieces),
        "mark": parts.mark,
        "marksBelow": parts.mark_is_below,
        "columnLabels": _rounded(parts.column_labels),
        "rowLabels": _rounded(parts.row_labels[: len(game.row_labels)]),
        "isTwoSided": parts.is_two_sided,
    }


def _geometry(
    box: tuple[float, ...], centers: tuple[tuple[float, float], ...]
) -> dict[str, Any]:
    left, top, width, height = box
    return {
        "left": left,
        "top": top,
        "width": round(width, 2),
        "height": round(height, 2),
        "cell": CELL_SIZE,
        "centers": _rounded(centers),
    }


def _rounded(places: tuple[tuple[float, float], ...]) -> list[list[float]]:
    return [[round(x, 2), round(y, 2)] for x, y in places]

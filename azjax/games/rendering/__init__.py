"""Boards as text and as SVG.

A board is an `[H, W]` int array, the top row first: -1 where a cell is empty, else the
number of the piece that lies there.
"""

from azjax.games.rendering.game import (
    game_to_svg,
    game_to_text,
    policies_of_moves,
    policies_on_cells,
)
from azjax.games.rendering.hexagons import HEXAGONS
from azjax.games.rendering.pawns import CHESSMEN
from azjax.games.rendering.styles import DISCS, MARKS, MEN, OTHELLO, STONES, Style
from azjax.games.rendering.svg import (
    CELL_SIZE,
    MARGIN,
    Arrow,
    BoardParts,
    Policies,
    board_parts,
    board_to_svg,
)
from azjax.games.rendering.text import Cell, board_to_text

__all__ = [
    "CELL_SIZE",
    "CHESSMEN",
    "DISCS",
    "HEXAGONS",
    "MARGIN",
    "MARKS",
    "MEN",
    "OTHELLO",
    "STONES",
    "Arrow",
    "BoardParts",
    "Cell",
    "Policies",
    "Style",
    "board_parts",
    "board_to_svg",
    "board_to_text",
    "game_to_svg",
    "game_to_text",
    "policies_of_moves",
    "policies_on_cells",
]

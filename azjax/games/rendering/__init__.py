"""Boards as text and as SVG.

A board is an `[H, W]` int array, the top row first: -1 where a cell is empty, else the
number of the piece that lies there.
"""

from azjax.games.rendering.boards import (
    CELL_SIZE,
    MARGIN,
    Arrow,
    BoardParts,
    Policies,
    board_parts,
    board_to_svg,
    board_to_text,
    policies_of_moves,
)
from azjax.games.rendering.elements import Cell
from azjax.games.rendering.styles import (
    CHESSMEN,
    DISCS,
    HEXAGONS,
    MARKS,
    MEN,
    OTHELLO,
    SEED_LETTERS,
    SEEDS,
    STONES,
    UR,
    UR_LETTERS,
    Side,
    Style,
)

__all__ = [
    "CELL_SIZE",
    "CHESSMEN",
    "DISCS",
    "HEXAGONS",
    "MARGIN",
    "MARKS",
    "MEN",
    "OTHELLO",
    "SEEDS",
    "SEED_LETTERS",
    "STONES",
    "UR",
    "UR_LETTERS",
    "Arrow",
    "BoardParts",
    "Cell",
    "Policies",
    "Side",
    "Style",
    "board_parts",
    "board_to_svg",
    "board_to_text",
    "policies_of_moves",
]

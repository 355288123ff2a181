"""Draws a sheet with a position of every game.

python experiments/draw_games.py --file experiments/images/games.svg
"""

import dataclasses
import re
from pathlib import Path

import tyro

from azjax import games
from azjax.games.host import first_state, next_state, waits_for_chance

# The game spec, a caption, and the moves; outcomes of chance are numbers.
POSITIONS = (
    ("tic_tac_toe", "Tic-tac-toe", "b2 a3 c3 a1 a2"),
    ("connect_four", "Connect Four", "4 4 4 4 3 5 2 1 5 3 3 6"),
    ("gomoku:9,9,5", "Gomoku and any m,n,k game", "e5 e6 d6 f4 f6 c3 d4 d5 f5 c4"),
    ("othello", "Othello", "e6 f4 c3 c4 d3 e7 f6 c6 e3 c2 b4 a5 g5 g4 b3 b2"),
    ("hex:7", "Hex", "d4 e3 c5 b5 b6 e5 d5 e4 f3"),
    (
        "breakthrough",
        "Breakthrough",
        "d2d3 d7d6 g2f3 f7f6 f3f4 h7h6 h2h3 g8h7 e1d2 h6g5 a2a3",
    ),
    ("kalah", "Kalah, 1 to 7 pits", "c1 f1 e2 f2 d1 c2 f1 b1 f1 d1 e2"),
    (
        "ur",
        "The Royal Game of Ur",
        "4 a1 1 a2 1 d3 2 c2 1 c3 3 b1 2 a3 4 d2 3 g2 2 e2 3 g3 3 b3 3 h2 3 b2 1 d1 "
        "3 e2 3 a1 1 d1 2 g2 2 b2 2 c3 2 d2 1 e2 1 home 2 g1 1 f2 1",
    ),
    ("go", "Go, 2x2 to 19x19", "e5 c3 g7 g3 c6 d7 c7 d6 d5 e7 f3 g4 f4 f2 e2 h6"),
    ("chess", "Chess", "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 O-O f6e4 d2d4 b7b5"),
)
SIDE = 420  # size of a cell (pixels)
CAPTION = 44
COLUMNS = 3


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    file: the SVG to write.
    """

    file: Path = Path("games.svg")


def draw(spec: str, moves: str) -> str:
    """Returns the picture of the position after some moves.

    Raises:
        ValueError: a move is illegal.
    """
    game = games.make(spec)
    state, action = first_state(game), None
    for text in moves.split():
        if waits_for_chance(game, state):
            state = next_state(game, state, game.num_actions + int(text))
        else:
            action = game.text_to_action(state, text)
            state = next_state(game, state, action)
    return game.to_svg(state, action)


def place(svg: str, index: int, caption: str) -> str:
    """Returns a picture with a caption, translated to its place on the sheet."""
    row, column = divmod(index, COLUMNS)
    left, top = column * SIDE, row * (SIDE + CAPTION)
    inner = re.sub(
        r' width="[^"]*" height="[^"]*"',
        f' x="{left + 10}" y="{top + 10}" width="{SIDE - 20}" height="{SIDE - 20}"',
        svg,
        count=1,
    )
    return (
        f'{inner}<text x="{left + SIDE / 2:g}" y="{top + SIDE + 18}" font-size="20" '
        f'font-family="Helvetica, Arial, sans-serif" fill="#26333f" '
        f'text-anchor="middle">{caption}</text>'
    )


def main(settings: Settings) -> None:
    """Draws and writes the sheet."""
    rows = -(-len(POSITIONS) // COLUMNS)
    width, height = COLUMNS * SIDE, rows * (SIDE + CAPTION)
    boards = [
        place(draw(spec, moves), index, caption)
        for index, (spec, caption, moves) in enumerate(POSITIONS)
    ]
    settings.file.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        + "\n".join(boards)
        + "\n</svg>\n"
    )
    print(f"wrote {settings.file}")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))

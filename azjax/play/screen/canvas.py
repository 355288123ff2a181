"""Pixel graphics in text: a character holds two pixels, one above the other."""

import functools
import itertools
from typing import NamedTuple

import numpy as np
from rich.style import Style
from rich.text import Text

NOTHING = -1


class _Letter(NamedTuple):
    """A character drawn over two pixels.

    background: it is only shown on pixels of this color; None for all colors.
    """

    text: str
    color: int
    is_bold: bool
    background: int | None


class Canvas:
    """Pixels with letters over them. Colors are integers such as 0xff8000.

    Args:
        rows: number of character rows.
        columns: number of character columns.
    """

    def __init__(self, rows: int, columns: int):
        self.rows, self.columns = rows, columns
        self.pixels = np.full((2 * rows, columns), NOTHING, np.int32)
        self._letters: dict[tuple[int, int], _Letter] = {}

    def paint(self, y: int, x: int, shape: np.ndarray, color: int) -> None:
        """Paints the pixels of a `[H, W]` bool mask, with its top left at (y, x)."""
        height, width = shape.shape
        self.pixels[y : y + height, x : x + width][shape] = color

    def write(
        self,
        row: int,
        column: int,
        text: str,
        color: int,
        *,
        is_bold: bool = False,
        background: int | None = None,
    ) -> None:
        """Writes characters.

        Args:
            row: character row.
            column: column of the first character.
            text: characters of width 1; spaces are transparent.
            color: color of the characters.
            is_bold: whether they are bold.
            background: write only on pixels of this color; None for all colors.
        """
        for offset, character in enumerate(text):
            if character != " ":
                letter = _Letter(character, color, is_bold, background)
                self._letters[row, column + offset] = letter

    def lines(self) -> list[Text]:
        """Returns the rows as styled text."""
        return [self._line(row) for row in range(self.rows)]

    def _line(self, row: int) -> Text:
        line = Text(no_wrap=True, end="")
        characters = (self._character(row, column) for column in range(self.columns))
        # One run for each style: Textual's time depends on the number of runs.
        for style, run in itertools.groupby(characters, key=lambda found: found[1]):
            line.append("".join(text for text, _ in run), style)
        return line

    def _character(self, row: int, column: int) -> tuple[str, Style]:
        upper, lower = self.pixels[2 * row : 2 * row + 2, column].tolist()
        letter = self._letters.get((row, column))
        if letter and (
            letter.background is None or upper == lower == letter.background
        ):
            background = lower if upper == NOTHING else upper
            return letter.text, _style(letter.color, background, letter.is_bold)
        if upper == lower:
            return " ", _style(NOTHING, upper)
        if upper == NOTHING:
            return "▄", _style(lower, NOTHING)
        return "▀", _style(upper, lower)


@functools.cache
def _style(color: int, background: int, is_bold: bool = False) -> Style:
    return Style(
        color=None if color == NOTHING else f"#{color:06x}",
        bgcolor=None if background == NOTHING else f"#{background:06x}",
        bold=is_bold,
    )

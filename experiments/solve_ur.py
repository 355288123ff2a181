"""Solves the Royal Game of Ur: the win probability of the first player.

    python experiments/solve_ur.py --pieces 3 --file ur_3.npy

Each further piece takes about 20 times as long and 12 times the memory: on two CPU
cores 3 pieces take 5 seconds, 4 pieces 80.
"""

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from azjax.players import ur_solution
from azjax.settings import Within


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    pieces: pieces of each player.
    tolerance: the iteration ends when no probability changes by more.
    file: the .npy file for the probabilities, `[S, S]`, if any; see
        `azjax.players.ur_solution.Solution`.
    """

    pieces: Annotated[int, Within(1, 5)] = 2
    tolerance: float = ur_solution.TOLERANCE
    file: Path | None = None


def main(settings: Settings) -> None:
    """Solves the game and prints the value of the first position."""
    begin = time.perf_counter()
    solution = ur_solution.solve(settings.pieces, settings.tolerance)
    seconds, table = time.perf_counter() - begin, solution.win_probability
    print(
        f"{settings.pieces} pieces: the first player wins {table[0, 0]:.6%}; "
        f"table of {len(table):,} x {len(table):,}, {seconds:.1f} s"
    )
    if settings.file is not None:
        np.save(settings.file, table)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))

"""Solves boards of Kalah: the margin of the first player under perfect play.

    python experiments/solve_kalah.py 3,3 4,4 --file kalah_values.json

Zero-window searches with a table of bounds (MTD(f), Plaat et al. 1996), in plain Python
and without the rules of `azjax.games`. The values of the table are those of the seeds
that are still to be won, so that one entry serves all numbers of stored seeds. There is
no limit of moves, and the seeds that are left belong to the owners of their pits.
"""

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Annotated

import tyro

Pits = tuple[int, ...]  # of the player to move, then of the opponent, as they are sown


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    boards: pits and seeds, such as `3,3`.
    empty_capture: as in azjax.
    file: the JSON file to which each value is added, if any.
    """

    boards: Annotated[tuple[str, ...], tyro.conf.Positional]
    empty_capture: bool = True
    file: Path | None = None


class Solver:
    """Solves positions with the same number of pits.

    size: pits of each player.
    empty_capture: as in azjax.
    table: lower and upper bounds of the margins of positions, for the player to move.
    """

    def __init__(self, size: int, empty_capture: bool = True):
        self.size, self.empty_capture = size, empty_capture
        self.table: dict[Pits, tuple[int, int]] = {}

    def margin(self, pits: Pits) -> int:
        """Returns how many seeds more than the opponent the player to move gets."""
        low, high, guess = -sum(pits), sum(pits), 0
        while low < high:
            beta = guess + 1 if guess == low else guess
            guess = self._search(pits, beta)
            if guess < beta:
                high = guess
            else:
                low = guess
        return low

    def _search(self, pits: Pits, beta: int) -> int:
        """Returns a bound of the margin: an upper one if it is below `beta`, otherwise
        a lower one."""
        total = sum(pits)
        low, high = self.table.get(pits, (-total, total))
        if low >= beta:
            return low
        if high < beta:
            return high
        best = -total
        for stored, after, is_over, is_again in self._moves(pits):
            if is_over:
                found = stored
            elif is_again:
                found = stored + self._search(after, beta - stored)
            else:  # the opponent has the window (-beta, -beta + 1)
                found = stored - self._search(after, stored - beta + 1)
            if found > best:
                best = found
                if best >= beta:
                    break
        self.table[pits] = (best, high) if best >= beta else (low, best)
        return best

    def _moves(self, pits: Pits) -> list[tuple[int, Pits, bool, bool]]:
        """Returns the moves, extra turns and captures first: the seeds stored, less
        those of the opponent, the pits for the next player to move, whether the game is
        over, and whether the same player moves again."""
        size, found = self.size, []
        ring = 2 * size + 1
        for start in range(size - 1, -1, -1):
            hand = pits[start]
            if not hand:
                continue
            # Own pits, own store, the opponent's pits.
            places = [*pits[:size], 0, *pits[size:]]
            places[start] = 0
            place = start
            for _ in range(hand):
                place = place + 1 if place + 1 < ring else 0
                places[place] += 1
            is_again = place == size
            if place < size and places[place] == 1:
                facing = 2 * size - place
                if places[facing] or self.empty_capture:
                    places[size] += 1 + places[facing]
                    places[place] = places[facing] = 0
            stored = places[size]
            own, other = tuple(places[:size]), tuple(places[size + 1 :])
            left, lost = sum(own), sum(other)
            is_over = not left or not lost
            if is_over:
                stored += left - lost
            after = own + other if is_again else other + own
            found.append((stored, after, is_over, is_again))
        found.sort(key=lambda move: (not move[3], -move[0]))
        return found


def main(settings: Settings) -> None:
    """Solves the boards and prints their values."""
    sys.setrecursionlimit(100_000)
    for board in settings.boards:
        size, seeds = map(int, board.split(","))
        solver, begin = Solver(size, settings.empty_capture), time.perf_counter()
        margin = solver.margin((seeds,) * (2 * size))
        print(
            f"{board}: {margin:+d}, {len(solver.table):,} positions, "
            f"{time.perf_counter() - begin:.0f} s",
            flush=True,
        )
        if settings.file is not None:
            known = {}
            if settings.file.exists():
                known = json.loads(settings.file.read_text())
            known[board] = margin
            settings.file.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))

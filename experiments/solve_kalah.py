"""Solves boards of Kalah: the margin of the first player under perfect play.

    python experiments/solve_kalah.py 3,3 4,4 --file kalah_values.json
    python experiments/solve_kalah.py 6,4 --seeds-left 16 24 --positions kalah.csv

With `--seeds-left` it solves no first position, but positions of games, which `azjax
evaluate kalah --positions` reads: those with at most so many seeds in the pits. Half of
the moves before them are random, the others capture or give another turn where they
can. A mistake is possible in each of them.

Zero-window searches with a table of bounds (MTD(f), Plaat et al. 1996), in plain Python
and without the rules of `azjax.games`. The values of the table are those of the seeds
that are still to be won, so that one entry serves all numbers of stored seeds. There is
no limit of moves, and the seeds that are left belong to the owners of their pits.
"""

import csv
import dataclasses
import json
import random
import time
from pathlib import Path
from typing import Annotated

import tyro

Pits = tuple[int, ...]  # of the player to move, then of the opponent, as they are sown
MAX_TABLE = 10_000_000  # entries, about 4 GB
MAX_GAMES = 10_000  # without a position of the kind that is wanted


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    boards: pits and seeds, such as `3,3`.
    empty_capture: as in azjax.
    file: the JSON file to which each value is added, if any.
    seeds_left: highest numbers of seeds in the pits of positions that are solved.
    per_group: positions for each of these numbers.
    positions: the CSV file of these positions; needs one board.
    seed: of the games.
    """

    boards: Annotated[tuple[str, ...], tyro.conf.Positional]
    empty_capture: bool = True
    file: Path | None = None
    seeds_left: tuple[int, ...] = ()
    per_group: int = 300
    positions: Path | None = None
    seed: int = 0

    def __post_init__(self):
        if bool(self.seeds_left) != (self.positions is not None):
            raise ValueError("seeds_left and positions need each other")
        if self.seeds_left and len(self.boards) != 1:
            raise ValueError(f"positions need one board: {self.boards}")


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
        if len(self.table) > MAX_TABLE:
            self.table.clear()
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
        for _, stored, after, is_over, is_again in self.moves(pits):
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

    def moves(self, pits: Pits) -> list[tuple[int, int, Pits, bool, bool]]:
        """Returns the moves, extra turns and captures first: the pit, the seeds stored,
        less those of the opponent, the pits for the next player to move, whether the
        game is over, and whether the same player moves again."""
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
            found.append((start, stored, after, is_over, is_again))
        found.sort(key=lambda move: (not move[4], -move[1]))
        return found


def write_positions(path: Path, size: int, seeds: int, settings: Settings) -> None:
    """Writes solved positions of one board."""
    solver, rng = Solver(size, settings.empty_capture), random.Random(settings.seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "moves", *(f"q{pit}" for pit in range(size))])
        for most in settings.seeds_left:
            begin = time.perf_counter()
            for _ in range(settings.per_group):
                moves, values = find_position(solver, rng, seeds, most)
                columns = [values.get(pit, "") for pit in range(size)]
                text = "".join(str(pit + 1) for pit in moves)
                writer.writerow([f"at most {most} seeds", text, *columns])
            print(
                f"{settings.per_group} positions with at most {most} seeds, "
                f"{time.perf_counter() - begin:.0f} s",
                flush=True,
            )


def find_position(
    solver: Solver, rng: random.Random, seeds: int, most: int
) -> tuple[list[int], dict[int, int]]:
    """Plays games up to the first position with at most `most` seeds in the pits in
    which a mistake is possible.

    Returns:
        The moves of its game, and the result of each of its moves for the player to
        move: 1 win, 0 draw, -1 loss.

    Raises:
        ValueError: there is none in many games.
    """
    for _ in range(MAX_GAMES):
        pits, lead, is_over = (seeds,) * (2 * solver.size), 0, False
        played: list[int] = []
        while not is_over:
            moves = solver.moves(pits)
            if sum(pits) <= most:
                values = {}
                for pit, stored, after, ends, is_again in moves:
                    left = 0 if ends else solver.margin(after)
                    margin = lead + stored + (left if is_again else -left)
                    values[pit] = (margin > 0) - (margin < 0)
                if len(set(values.values())) > 1:
                    return played, values
            move = rng.choice(moves) if rng.random() < 0.5 else moves[0]
            pit, stored, pits, is_over, is_again = move
            played.append(pit)
            lead = lead + stored if is_again else -lead - stored
    raise ValueError(
        f"no position with at most {most} seeds in the pits allows a mistake, in "
        f"{MAX_GAMES:,} games"
    )


def main(settings: Settings) -> None:
    """Solves the boards, or positions of one, and prints what it found."""
    for board in settings.boards:
        size, seeds = map(int, board.split(","))
        if settings.positions is not None:
            write_positions(settings.positions, size, seeds, settings)
            continue
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

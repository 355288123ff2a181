"""Makes the solved Connect Four positions that azjax contains.

    pip install -e '.[solver]' && python experiments/make_solved_positions.py

The positions come from games between players of different strengths; the solver
BitBully computes the value of each move. The same seed makes the same file.
"""

import csv
import dataclasses
import random
from pathlib import Path

import tyro
from bitbully import BitBully, Board

WIDTH = 7
STAGES = {
    "opening": range(8),
    "early": range(8, 15),
    "middle": range(15, 22),
    "late": range(22, 29),
    "end": range(29, 42),
}
# Probabilities of a random move instead of the best one.
NOISES = (0.0, 0.1, 0.3, 1.0)
MAX_RANDOM_OPENING = 16


@dataclasses.dataclass(frozen=True)
class Config:
    """Options.

    output: the CSV file to write.
    positions_per_stage: distinct positions per stage of the game; the opening has only
        a few thousand.
    seed: of the games.
    """

    output: Path = Path("azjax/arena/data/connect_four.csv")
    positions_per_stage: int = 600
    seed: int = 0

    def __post_init__(self):
        if self.positions_per_stage < 1:
            raise ValueError(
                f"positions_per_stage must be >= 1: {self.positions_per_stage}"
            )


def main(config: Config) -> None:
    """Writes the file."""
    solver, rng = BitBully(), random.Random(config.seed)
    sets = {stage: [] for stage in STAGES}
    seen = set()
    while any(len(rows) < config.positions_per_stage for rows in sets.values()):
        moves = play_game(solver, rng)
        for stage, rows in sets.items():
            if len(rows) == config.positions_per_stage:
                continue
            # One position per stage, because neighboring positions are correlated.
            counts = [count for count in STAGES[stage] if count < len(moves)]
            for count in rng.sample(counts, len(counts)):
                board = Board(moves[:count])
                key = min(board.uid(), board.mirror().uid())
                values = action_values(solver, board)
                if key not in seen and len(set(values.values())) > 1:
                    seen.add(key)
                    rows.append((moves[:count], values))
                    break
    write(config.output, sets)


def play_game(solver: BitBully, rng: random.Random) -> list[int]:
    """Returns the moves of a game: random ones, then best ones with noise."""
    board, moves = Board(), []
    noise, num_random = rng.choice(NOISES), rng.randint(0, MAX_RANDOM_OPENING)
    while not board.is_game_over():
        if len(moves) < num_random or rng.random() < noise:
            candidates = sorted(board.legal_moves())
        else:
            scores = solver.score_all_moves(board)
            best = max(scores.values())
            candidates = sorted(move for move in scores if scores[move] == best)
        moves.append(rng.choice(candidates))
        board.play(moves[-1])
    return moves


def action_values(solver: BitBully, board: Board) -> dict[int, int]:
    """Returns the value of each legal move for the mover: 1 win, 0 draw, -1 loss."""
    scores = solver.score_all_moves(board)
    return {move: (score > 0) - (score < 0) for move, score in scores.items()}


def write(path: Path, sets: dict[str, list[tuple[list[int], dict[int, int]]]]) -> None:
    """Writes the rows, sorted by stage and length."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "moves", *(f"q{move}" for move in range(WIDTH))])
        for stage, rows in sets.items():
            for moves, values in sorted(rows, key=lambda row: (len(row[0]), row[0])):
                text = "".join(str(move + 1) for move in moves)
                columns = [values.get(move, "") for move in range(WIDTH)]
                writer.writerow([stage, text, *columns])


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))

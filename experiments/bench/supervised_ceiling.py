"""Trains the network of the Connect Four preset on perfect labels.

    pip install -e '.[solver]'
    python experiments/bench/supervised_ceiling.py --labels labels.csv

The result is the ceiling of self-play with this network, optimizer and number of
updates: if it has as many mistakes as a run, the network limits the run; if it has
clearly fewer, the targets or the positions do. Policy targets are uniform over the best
moves, value targets the exact result.

The first call makes `--labels`: positions of games between players of different
strengths, as in `experiments/make_solved_positions.py`, with another seed. The solver
needs more than half an hour of a CPU core for 200,000 positions. A position that is
also among the solved positions of azjax, or its mirror image, is left out. With
`--max-ply 11` there are only openings, a million of which take minutes, because the
solver's opening book knows them.
"""

import csv
import dataclasses
import os
import random
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from bitbully import BitBully, Board

from azjax import arena, games, networks, players, training
from azjax.arena import SolvedPositions

sys.path.insert(0, os.fspath(Path(__file__).resolve().parents[1]))
from make_solved_positions import (
    MAX_RANDOM_OPENING,
    NOISES,
    action_values,
    write,
)

GAME = games.ConnectFour()


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    labels: CSV file of labeled positions; made if it does not exist.
    positions: number of positions of a new file.
    max_ply: greatest number of stones in a position of a new file.
    updates: number of updates of the network.
    num_blocks: residual blocks of the trunk.
    width: of the trunk's layers.
    line_length: as in `networks.NetworkConfig`.
    batch_size: positions per update.
    learning_rate: peak learning rate.
    simulations: network evaluations per move of the evaluated search.
    seed: of the weights, the positions and the batches.
    """

    labels: Path
    positions: int = 200_000
    max_ply: int = 41
    updates: int = 20_000
    num_blocks: int = 3
    width: int = 256
    line_length: int = GAME.line_length
    batch_size: int = 256
    learning_rate: float = 2e-3
    simulations: int = 64
    seed: int = 0

    def __post_init__(self):
        for name in ("positions", "max_ply", "updates", "batch_size", "simulations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1: {getattr(self, name)}")


def make_labels(settings: Settings) -> None:
    """Writes the labeled positions."""
    solver, rng = BitBully(), random.Random(f"ceiling {settings.seed}")
    seen, rows = solved_elsewhere(), []
    while len(rows) < settings.positions:
        for moves, values, board in labeled_game(solver, rng, settings.max_ply):
            key = min(board.uid(), board.mirror().uid())
            if key not in seen and len(rows) < settings.positions:
                seen.add(key)
                rows.append((moves, values))
                if len(rows) % 10_000 == 0:
                    print(f"{len(rows):,} positions labeled", flush=True)
    partial = settings.labels.with_suffix(".partial")
    write(partial, {"labels": rows})
    partial.rename(settings.labels)


def solved_elsewhere() -> set[int]:
    """Returns the positions with which azjax measures mistakes."""
    path = Path(arena.__file__).parent / "data" / "connect_four.csv"
    with path.open(newline="") as file:
        boards = [
            Board([int(digit) - 1 for digit in row["moves"]])
            for row in csv.DictReader(file)
        ]
    return {min(board.uid(), board.mirror().uid()) for board in boards}


def labeled_game(solver: BitBully, rng: random.Random, max_ply: int):
    """Yields `(moves, values, board)` of the positions of a game, from the last random
    move of its opening to `max_ply`."""
    board, moves = Board(), []
    longest = min(MAX_RANDOM_OPENING, max_ply)
    noise, num_random = rng.choice(NOISES), rng.randint(0, longest)
    while not board.is_game_over() and len(moves) <= max_ply:
        candidates = sorted(board.legal_moves())
        if len(moves) >= num_random:
            values = action_values(solver, board)
            yield list(moves), values, board
            if rng.random() >= noise:
                best = max(values.values())
                candidates = sorted(move for move in values if values[move] == best)
        moves.append(rng.choice(candidates))
        board.play(moves[-1])


def make_batch(positions: SolvedPositions, rows: np.ndarray) -> training.Batch:
    """Returns the batch of the positions at `rows`, each mirrored with probability one
    half: the second half of the rows."""
    values = jnp.asarray(positions.action_values[rows])
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf[rows]), positions.states)
    return _batch(states, values)


@jax.jit
def _batch(states, values) -> training.Batch:
    best = jnp.nanmax(values, axis=1)
    is_best = (values == best[:, None]).astype(jnp.float32)
    policy = is_best / is_best.sum(axis=1, keepdims=True)
    observation = jax.vmap(GAME.observe)(states)
    legal = jax.vmap(GAME.legal_action_mask)(states)
    half = len(values) // 2
    mirror = GAME.symmetries[1]

    def mirrored(array, image):
        return jnp.concatenate([array[:half], image(array[half:])])

    number = jnp.arange(len(values))
    return training.Batch(
        observation=mirrored(observation, mirror.observation),
        legal_action_mask=mirrored(legal, lambda mask: mask[:, mirror.actions]),
        targets=training.Targets(
            policy=mirrored(policy, lambda each: each[:, mirror.actions]),
            value=training.one_hot_result(best),
            auxiliary={},
        ),
        has_ended=jnp.zeros(len(values), bool),
        sample=training.Sample(number, number, jnp.ones(len(values))),
    )


def main(settings: Settings) -> None:
    """Labels, trains, and prints the losses and the mistakes."""
    if not settings.labels.exists():
        make_labels(settings)
    positions = arena.read(GAME, settings.labels)
    trunk = networks.DenseTrunkConfig(
        num_blocks=settings.num_blocks, width=settings.width, window=4
    )
    network, variables = networks.init_network(
        jax.random.key(settings.seed),
        GAME.observation_shape,
        GAME.num_actions,
        networks.NetworkConfig(trunk, line_length=settings.line_length),
    )
    config = training.LearnerConfig(
        batch_size=settings.batch_size, learning_rate=settings.learning_rate
    )
    optimizer = training.make_optimizer(config)
    update = training.make_update(
        network, optimizer, training.head_losses, ema_decay=config.ema_decay
    )
    learner = training.init_learner(variables, optimizer)
    rng, begin, losses = np.random.default_rng(settings.seed), time.monotonic(), []
    for number in range(1, settings.updates + 1):
        rows = rng.integers(0, len(positions), settings.batch_size)
        batch = make_batch(positions, rows)
        progress = jnp.float32(number / settings.updates)
        learner, metrics, *_ = update(learner, batch, progress)
        losses.append(metrics)
        if number % max(1, settings.updates // 10) == 0:
            means = jax.tree.map(lambda *each: np.mean(each), *losses)
            losses = []
            text = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
            print(
                f"{time.monotonic() - begin:.0f} s, update {number:,}: {text}; "
                f"{mistakes(settings, network, learner.averaged)}",
                flush=True,
            )


def mistakes(settings: Settings, network, variables) -> str:
    """Returns the mistakes in the solved positions of azjax, by group."""
    solved = arena.shipped(GAME)
    assert solved is not None
    texts = []
    for name, player in (
        ("network", players.NetworkPlayer(GAME, network, variables)),
        (
            f"{settings.simulations} simulations",
            players.AlphaZeroPlayer(
                GAME,
                training.TrainConfig(minutes=1.0).search,
                settings.simulations,
                network,
                variables,
            ),
        ),
    ):
        graded = arena.grade(player, solved, jax.random.key(0))
        groups = ", ".join(
            f"{group} {rate.rate:.1%}" for group, rate in graded.groups.items()
        )
        texts.append(f"{name} {graded.mean:.1%} ({groups})")
    return "; ".join(texts)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))

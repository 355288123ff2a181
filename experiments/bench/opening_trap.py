"""Measures by ply how a search treats the best moves of solved positions.

    python experiments/bench/opening_trap.py --player pretrained

A network and its searches can confirm each other's errors: if more simulations reduce
the visits of the best moves, the values below these moves are wrong, and more search
cannot repair the policy targets. For each stage of the game this script prints

- the error of the network's value, and its mean (positive: too optimistic);
- for each number of simulations, the fraction of visits on the best moves, their
  probability in the improved policy, which is the policy target, and the mistakes. 0
  simulations are the network's own policy.

Positions in which all legal moves are equally good are excluded.
"""

import dataclasses
import json
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import tyro
from harness import make_table, show

from azjax import arena, games, players
from azjax.arena import SolvedPositions
from azjax.devices import jit_network
from azjax.players import NetworkPlayer, TrainedPlayer
from azjax.search import SEARCHES

BATCH_SIZE = 128


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    player: run directory or `pretrained`.
    game: a game with solved positions in which each move places a stone.
    file: solved positions in the format of `azjax.arena.read`; default: those that
        azjax contains.
    simulations: numbers of simulations; 0: the network without search.
    algorithm: search algorithm, without noise; default: that of the player.
    plies: number of plies in a stage.
    max_positions: maximum number of random positions of each stage.
    json: output file.
    """

    player: str = "pretrained"
    game: str = "connect_four"
    file: Path | None = None
    simulations: tuple[int, ...] = (0, 64, 256, 1024)
    algorithm: str | None = None
    plies: int = 4
    max_positions: int = 256
    json: Path | None = None

    def __post_init__(self):
        for name in ("plies", "max_positions"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1: {getattr(self, name)}")
        if min(self.simulations, default=-1) < 0:
            raise ValueError(
                f"simulations must be one or more numbers >= 0: {self.simulations}"
            )


class Found(NamedTuple):
    """The decisions of a player in N positions with A actions.

    action: `[N]`; the chosen move.
    policy: `[N, A]`; the network's policy or the improved policy.
    visits: `[N, A]`; fractions of the visits; the policy without a search.
    value: `[N]`; the expected result for the player to move.
    """

    action: np.ndarray
    policy: np.ndarray
    visits: np.ndarray
    value: np.ndarray


def by_stage(
    positions: SolvedPositions, plies: int, max_positions: int
) -> SolvedPositions:
    """Returns the positions that distinguish moves, grouped by their ply.

    Args:
        positions: of a game in which each move places a stone.
        plies: number of plies in a stage.
        max_positions: maximum number of random positions of each stage.
    """
    values = positions.action_values
    distinguishes = np.nanmax(values, axis=1) > np.nanmin(values, axis=1)
    positions = positions.take(np.flatnonzero(distinguishes))
    boards = np.asarray(jax.vmap(positions.game.board)(positions.states))
    stones = (boards >= 0).sum(axis=(1, 2))  # each move places one
    first = stones // plies * plies
    names = {ply: f"{ply}-{ply + plies - 1}" for ply in np.unique(first)}
    groups = np.array([names[ply] for ply in first])
    positions = dataclasses.replace(positions, groups=groups)
    rng = np.random.default_rng(0)
    rows = [
        rng.permutation(np.flatnonzero(groups == name))[:max_positions]
        for name in names.values()
    ]
    return positions.take(np.concatenate(rows))


def find(trained: TrainedPlayer, positions: SolvedPositions, simulations: int) -> Found:
    """Searches all positions; with 0 simulations, evaluates the network alone."""
    analyze = _make_analyze(trained, simulations)
    found = []
    for start in range(0, len(positions), BATCH_SIZE):
        rows = np.arange(start, start + BATCH_SIZE).clip(max=len(positions) - 1)
        states = positions.take(rows).states
        choice, visits = jax.device_get(analyze(jax.random.key(start), states))
        shares = visits / visits.sum(axis=1, keepdims=True)
        found.append((choice.action, choice.policy, shares, choice.value))
    joined = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Found(*(leaf[: len(positions)] for leaf in joined))


def _make_analyze(trained: TrainedPlayer, simulations: int):
    """Returns a jitted `(rng_key, states) -> (choice, visits)`; without a search, the
    policy replaces the visits."""
    network = NetworkPlayer(trained.game, trained.network, trained.variables)
    search = trained.player(max(simulations, 1))

    def analyze(rng_key, states):
        if not simulations:
            choice = network.choose(rng_key, states)
            return choice, choice.policy
        choice, analysis, _ = search.analyze(rng_key, states, None)
        return choice, analysis.visits

    return jit_network(analyze)


def measure(positions: SolvedPositions, found: Found, simulations: int) -> list[dict]:
    """Returns a row for each stage."""
    best_value = np.nanmax(positions.action_values, axis=1)
    is_best = positions.action_values == best_value[:, None]
    is_legal = ~np.isnan(positions.action_values)
    error = found.value - best_value
    rows = []
    for stage in dict.fromkeys(positions.groups):
        own = positions.groups == stage
        chosen = np.take_along_axis(is_best[own], found.action[own, None], axis=1)
        rows.append(
            {
                "stage": str(stage),
                "positions": int(own.sum()),
                "simulations": simulations,
                "best_moves": float((is_best.sum(1) / is_legal.sum(1))[own].mean()),
                "value_error": float(np.abs(error[own]).mean()),
                "value_bias": float(error[own].mean()),
                "visits_on_best": float((found.visits * is_best).sum(1)[own].mean()),
                "policy_on_best": float((found.policy * is_best).sum(1)[own].mean()),
                "mistakes": float(1 - chosen.mean()),
            }
        )
    return rows


def main(settings: Settings) -> None:
    """Measures and prints."""
    game = games.make(settings.game)
    positions = (
        arena.read(game, settings.file) if settings.file else arena.shipped(game)
    )
    if positions is None:
        raise SystemExit(f"there are no solved positions of {settings.game}")
    positions = by_stage(positions, settings.plies, settings.max_positions)
    trained = players.load_run(settings.player, game)
    if settings.algorithm not in (None, trained.search.algorithm):
        search = SEARCHES.find(settings.algorithm)()
        trained = dataclasses.replace(trained, search=search)
    rows = [
        row
        for number in settings.simulations
        for row in measure(positions, find(trained, positions, number), number)
    ]
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    rows.sort(key=lambda row: (stages.index(row["stage"]), row["simulations"]))
    columns = {
        name.replace("_", " "): f"{{{name}:.3f}}"
        if isinstance(value, float)
        else f"{{{name}}}"
        for name, value in rows[0].items()
    }
    show(rows, make_table(rows, columns, section="stage"), as_json=False)
    if settings.json:
        settings.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))

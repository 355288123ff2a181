"""Measures what value targets would say about solved positions.

    python experiments/bench/target_quality.py --simulations 64 256

A value target is made of values of searches and of results of games. For each stage of
the game this script compares them with perfect play, for the player to move: the
network's value, the value of a search, and the result of a game that the player plays
against itself from the position on. `bias` is their mean error, with half the width of
its 95% interval, and `square` the mean squared error, which for the result of one game
is mostly chance. A network that learns from many games averages chance out, and keeps
the bias.

The positions are those in which a mistake is possible, so that none is lost for the
player to move: uncertain values are too low.
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from harness import make_table, show
from opening_trap import by_stage

from azjax import arena, games, players
from azjax.arena import SolvedPositions
from azjax.devices import jit_network
from azjax.games import State
from azjax.games.core import select
from azjax.networks import expected_value
from azjax.players import TrainedPlayer
from azjax.players.model import evaluate, make_recurrent_fn, make_root
from azjax.search import GumbelConfig, improved_value


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    player: run directory or `pretrained`.
    game: a game with solved positions in which each move places a stone.
    simulations: numbers of simulations.
    value_scale: of the Gumbel search; default: that of the player.
    explores: whether the moves of the games are chosen with noise, as in self-play.
    plies: number of plies in a stage.
    max_ply: the last stage begins before this ply.
    max_positions: maximum number of random positions of each stage.
    json: output file.
    """

    player: str = "pretrained"
    game: str = "connect_four"
    simulations: tuple[int, ...] = (64, 256)
    value_scale: float | None = None
    explores: bool = False
    plies: int = 4
    max_ply: int = 20
    max_positions: int = 250
    json: Path | None = None


def chosen_positions(settings: Settings) -> SolvedPositions:
    """Returns the positions, grouped by stage."""
    positions = arena.shipped(games.make(settings.game))
    if positions is None:
        raise SystemExit(f"there are no solved positions of {settings.game}")
    positions = by_stage(positions, settings.plies, settings.max_positions)
    first = np.array([int(stage.split("-")[0]) for stage in positions.groups])
    return positions.take(np.flatnonzero(first < settings.max_ply))


def make_search(
    trained: TrainedPlayer, simulations: int, *, explores: bool
) -> Callable:
    """Returns `(rng_key, states) -> mctx.PolicyOutput`."""
    game, network, variables = trained.game, trained.network, trained.variables
    policy = trained.search.policy(explores)
    recurrent_fn = make_recurrent_fn(game, network)

    def search(rng_key: jax.Array, states: State):
        root = make_root(game, *evaluate(game, network, variables, states), states)
        return policy(
            variables,
            rng_key,
            root,
            recurrent_fn,
            simulations,
            invalid_actions=~jax.vmap(game.legal_action_mask)(states),
            max_depth=game.max_moves,
        )

    return search


def make_play(trained: TrainedPlayer, simulations: int, *, explores: bool) -> Callable:
    """Returns a jitted `(rng_key, states) -> [N]` float32, the results of games from
    these positions on for the player to move in them."""
    game = trained.game
    search = make_search(trained, simulations, explores=explores)

    def move(states: State, rng_key: jax.Array):
        after = jax.vmap(game.step)(states, search(rng_key, states).action)
        return jax.vmap(select)(states.terminated, states, after), None

    @jit_network
    def play(rng_key: jax.Array, states: State) -> jax.Array:
        keys = jax.random.split(rng_key, game.max_moves)
        last, _ = jax.lax.scan(move, states, keys)
        movers = states.current_player[:, None]
        rewards = jax.vmap(game.rewards)(last)
        return jnp.take_along_axis(rewards, movers, axis=1)[:, 0]

    return play


def values_by_source(
    trained: TrainedPlayer, states: State, settings: Settings
) -> dict[str, np.ndarray]:
    """Returns the values of N positions by each source, `[N]`."""
    rng_key = jax.random.key(0)
    _, result = evaluate(trained.game, trained.network, trained.variables, states)
    values = {"network": expected_value(result)}
    for number in settings.simulations:
        search = make_search(trained, number, explores=False)
        values[f"search, {number}"] = jit_network(
            lambda rng_key, states, search=search: improved_value(
                search(rng_key, states)
            )
        )(rng_key, states)
    for number in settings.simulations:
        play = make_play(trained, number, explores=settings.explores)
        values[f"game, {number}"] = play(rng_key, states)
    return {source: np.asarray(found) for source, found in values.items()}


def measure(values: np.ndarray, positions: SolvedPositions) -> list[dict]:
    """Returns a row for each stage."""
    error = values - np.nanmax(positions.action_values, axis=1)
    rows = []
    for stage in dict.fromkeys(positions.groups):
        own = error[positions.groups == stage]
        rows.append(
            {
                "stage": str(stage),
                "positions": len(own),
                "bias": float(own.mean()),
                "margin": float(1.96 * own.std() / len(own) ** 0.5),
                "square": float((own**2).mean()),
            }
        )
    return rows


def main(settings: Settings) -> None:
    """Measures and prints."""
    positions = chosen_positions(settings)
    trained = players.load_run(settings.player, positions.game)
    if settings.value_scale is not None:
        search = GumbelConfig(value_scale=settings.value_scale)
        trained = dataclasses.replace(trained, search=search)
    states = jax.tree.map(jnp.asarray, positions.states)
    values = values_by_source(trained, states, settings)
    rows = {source: measure(found, positions) for source, found in values.items()}
    cells = [
        {"source": source}
        | {
            f"stage_{place}": f"{row['bias']:+.2f}±{row['margin']:.2f} "
            f"{row['square']:.2f}"
            for place, row in enumerate(of_source)
        }
        for source, of_source in rows.items()
    ]
    columns = {"source": "{source}"} | {
        f"{row['stage']}: {row['positions']}": f"{{stage_{place}}}"
        for place, row in enumerate(next(iter(rows.values())))
    }
    title = "bias ± margin, square; stages: positions"
    show(rows, make_table(cells, columns, title), as_json=False)
    if settings.json:
        settings.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))

"""Measures the fraction of self-play's time that the network takes.

Self-play makes `moves` moves in each of `games` games of Connect Four; each move runs a
search with `simulations` network evaluations and one of the root. For comparison, the
network alone makes the same number of evaluations in batches of `games` within one
compiled loop, so that no time is lost between them. Both, of all networks, run in
turns; the medians are reported. The remaining time of self-play is the search's:
selection, rules and backup.

    python experiments/bench/network_share.py
"""

import dataclasses
import statistics
from collections.abc import Callable

import jax
import jax.numpy as jnp
import tyro
from harness import make_table, show, time_in_turns

from azjax import games
from azjax.devices import jit_network
from azjax.networks import ConvTrunkConfig, NetworkConfig, predict
from azjax.players import first_network
from azjax.search import GumbelConfig
from azjax.training import SelfPlayConfig, preset
from azjax.training.self_play import make_self_play, start_games


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    games: parallel games, and the network's batch size.
    simulations: simulations of each search.
    moves: moves of each game in a run.
    repeats: interleaved runs of each kind; the median is reported.
    quick: only check that everything runs, with small sizes.
    json: print JSON instead of the table.
    """

    games: int = 256
    simulations: int = 32
    moves: int = 4
    repeats: int = 5
    quick: bool = False
    json: bool = False


NETWORKS = {
    "conv, 4 blocks of 64 channels": NetworkConfig(
        trunk=ConvTrunkConfig(num_blocks=4, channels=64)
    ),
    "dense, as in the cpu preset": preset("cpu").network,
    "dense, bfloat16": dataclasses.replace(preset("cpu").network, dtype="bfloat16"),
}


def measure(settings: Settings) -> list[dict]:
    """Returns the measurements of each network, by name."""
    game = games.make("connect_four")
    evaluations = (settings.simulations + 1) * settings.moves
    runs = {}
    for name, config in NETWORKS.items():
        network, variables = first_network(0, game, config)
        runs[name, "self_play"] = self_play_run(game, network, variables, settings)
        runs[name, "network"] = network_run(
            game, network, variables, evaluations, settings
        )
    times = time_in_turns(runs, settings.repeats)
    seconds = {run: statistics.median(of_run) for run, of_run in times.items()}
    return [
        {
            "network": name,
            "device": jax.devices()[0].device_kind,
            "games": settings.games,
            "simulations": settings.simulations,
            "self_play_seconds": seconds[name, "self_play"],
            "network_seconds": seconds[name, "network"],
            "positions_per_second": settings.games
            * settings.moves
            / seconds[name, "self_play"],
            "evaluations_per_second": settings.games
            * evaluations
            / seconds[name, "network"],
            "network_share": seconds[name, "network"] / seconds[name, "self_play"],
        }
        for name in NETWORKS
    ]


def self_play_run(game, network, variables, settings: Settings) -> Callable:
    """Returns a function without arguments that plays a chunk and waits.

    The games continue from run to run, as in training.
    """
    config = SelfPlayConfig(
        num_games=settings.games,
        moves_per_chunk=settings.moves,
        num_simulations=(settings.simulations,),
    )
    play_chunk = make_self_play(game, network, GumbelConfig(), config)
    in_progress = start_games(game, settings.games, jax.random.key(1))
    rng_key = jax.random.key(2)

    def run() -> None:
        nonlocal in_progress, rng_key
        rng_key, chunk_key = jax.random.split(rng_key)
        in_progress, trajectory, *_ = play_chunk(
            variables, settings.simulations, in_progress, chunk_key
        )
        jax.block_until_ready((in_progress, trajectory))

    return run


def network_run(
    game, network, variables, evaluations: int, settings: Settings
) -> Callable:
    """Returns a function without arguments that evaluates batches and waits."""

    @jit_network
    def run(variables, observation):
        def evaluate(observation, _):
            prediction = predict(network, variables, observation)
            # The next batch depends on this one, so that XLA cannot remove an
            # evaluation; the change is negligible.
            outputs = prediction.policy_logits.mean() + prediction.value_logits.mean()
            return observation + 1e-9 * outputs, None

        return jax.lax.scan(evaluate, observation, length=evaluations)[0]

    first = start_games(game, settings.games, jax.random.key(1))
    observation = jax.vmap(game.observe)(first.state).astype(jnp.float32)
    return lambda: jax.block_until_ready(run(variables, observation))


def main(settings: Settings) -> None:
    """Measures and prints."""
    if settings.quick:
        settings = dataclasses.replace(
            settings, games=8, simulations=4, moves=2, repeats=1
        )
    results = measure(settings)
    columns = {
        "network": "{network}",
        "positions/s": "{positions_per_second:,.0f}",
        "evaluations/s": "{evaluations_per_second:,.0f}",
        "network's share": "{network_share:.0%}",
    }
    title = (
        f"Connect Four, {settings.games:,} games at once, {settings.simulations} "
        f"simulations a move, on {results[0]['device']}"
    )
    show(results, make_table(results, columns, title), as_json=settings.json)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))

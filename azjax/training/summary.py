"""What a person sees at the end of a run."""

import jax
from rich.console import Console

from azjax.players import AlphaZeroPlayer, NetworkPlayer, choose
from azjax.training.loop import Run
from azjax.training.reporting import print_summary

SIMULATIONS = 200


def print_run(console: Console, run: Run) -> None:
    """Prints how far the run came, what it thinks of the opening position, and the
    command to play against it; nothing if the run was stopped before its end."""
    if not run.finished or run.last is None:
        return
    trained = run.player
    network = NetworkPlayer(trained.game, trained.network, trained.variables)
    search = AlphaZeroPlayer(
        trained.game, trained.search, SIMULATIONS, trained.network, trained.variables
    )
    opening = jax.tree.map(lambda leaf: leaf[None], trained.game.init())
    print_summary(
        console,
        game=trained.game,
        run_dir=run.directory,
        first=run.first,
        last=run.last,
        network_choice=choose(network, jax.random.key(0), opening),
        search_choice=choose(search, jax.random.key(0), opening),
    )

"""`azjax reanalyze`: searches stored games again with a newer player."""

from pathlib import Path

import tyro

from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.compilation_cache import enable_compilation_cache
from azjax.data import stored_game
from azjax.files import as_directory
from azjax.players import AlphaZeroPlayer, load
from azjax.program import note
from azjax.settings import Seed
from azjax.training.reanalysis import reanalyze


def reanalyze_command(
    sources: tyro.conf.Positional[tuple[str, ...]],
    /,
    *,
    player: str,
    to: str,
    seed: Seed = 0,
    modules: ModulesOption = None,
) -> None:
    """Search stored games again with a newer player, to learn from better targets.

    Moves and results remain; policy targets, values, probabilities of a draw and
    regrets are new. Repeat the same command to continue after an interruption.

    Args:
        sources: runs that kept their games, or directories of imported games.
        player: the player, such as alphazero:RUN?simulations=200, with settings as in
            azjax play; RUN is a run directory, a player directory, or `pretrained`.
        to: the new directory, for `azjax train --learn-from` and `azjax data`.
        seed: seed of the player.
    """
    if not sources:
        raise ValueError("give at least one run with games")
    directory = as_directory(to)
    if not isinstance(directory, Path):
        raise ValueError(f"--to must be a directory on this machine: {to}")
    enable_compilation_cache()
    game = stored_game(sources[0])
    searcher = load(player, game, read_custom_modules(modules))
    if not isinstance(searcher, AlphaZeroPlayer):
        raise ValueError(
            f"--player must be alphazero:RUN, which searches with a network: {player!r}"
        )
    found = reanalyze(sources, directory, searcher, seed=seed, report=note)
    print(
        f"{found.games:,} games of {game!r} with {found.positions:,} positions in {to}"
    )

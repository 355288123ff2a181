"""`azjax gtp`: a player for GTP front ends and match programs."""

import contextlib
import os
import sys

import tyro

from azjax import games, players
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.compilation_cache import enable_compilation_cache
from azjax.play.gtp import GtpEngine, Inbox, serve
from azjax.play.input_lines import read_lines
from azjax.play.opponents import default_opponent
from azjax.program import note
from azjax.settings import Seed


def gtp_command(
    game: tyro.conf.Positional[str],
    /,
    *,
    player: str | None = None,
    seed: Seed = 0,
    modules: ModulesOption = None,
) -> None:
    """Speak GTP 2, the Go Text Protocol, on the standard input and output.

    In every game `b` is the player who moves first, in chess White. An analysis
    (`lz-analyze`, `kata-analyze`) adds simulations as long as it runs if the player
    keeps its tree: alphazero:RUN?simulations=200&tree_reuse_nodes=20000. Win rates and
    utilities are for the player to move.

    Args:
        game: any game that `azjax games` lists.
        player: the player, such as alphazero:RUN?simulations=400, where RUN is a run
            directory or `pretrained`. Default: the pretrained player of the game, else
            a search.
        seed: seed of the player.
    """
    if player == "human":
        raise ValueError("--player must not be 'human', who needs the terminal")
    enable_compilation_cache()
    output = sys.stdout

    def write(text: str) -> None:
        output.write(text)
        output.flush()

    # Standard output is for the protocol only.
    with contextlib.redirect_stdout(sys.stderr):
        first_game = games.make(game)
        own_modules = read_custom_modules(modules)
        note(f"loading {first_game} ...")
        name = player or default_opponent(first_game)
        engine = GtpEngine(
            first_game, lambda game: players.load(name, game, own_modules), seed
        )
        note(f"{name} plays")
        with contextlib.closing(engine):
            try:
                serve(engine, Inbox(read_lines(sys.stdin.fileno())), write)
            except BrokenPipeError:
                # The reader is gone; Python would fail to flush at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())

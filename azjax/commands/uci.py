"""`azjax uci`: a player for chess front ends and match programs."""

import contextlib
import os
import sys

import tyro

from azjax import games, players
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.compilation_cache import enable_compilation_cache
from azjax.play.input_lines import read_lines
from azjax.play.opponents import default_opponent
from azjax.play.uci import UciEngine
from azjax.players.uci import check_is_chess
from azjax.program import PIPE_CLOSED, note
from azjax.settings import Seed

QUIT_SECONDS = 0.5


def uci_command(
    game: tyro.conf.Positional[str],
    /,
    *,
    player: str | None = None,
    seed: Seed = 0,
    modules: ModulesOption = None,
) -> None:
    """Speak UCI, the Universal Chess Interface, on the standard input and output.

    A search ends at the limits of `go` (nodes, depth, movetime, a clock), and has at
    most the simulations of the player: with alphazero:RUN?simulations=6400 and a clock,
    the clock decides. Nodes are simulations, the depth is the length of the principal
    variation, and the score is 400 log10((1 + v) / (1 - v)) centipawns for the expected
    result v in [-1, 1]. A player without search ignores the limits.

    Args:
        game: chess, or chess with options.
        player: the player, such as alphazero:RUN?simulations=800, where RUN is a run
            directory. Default: a search.
        seed: seed of the player.
    """
    enable_compilation_cache()
    output = sys.stdout

    def write(line: str) -> None:
        try:
            output.write(f"{line}\n")
            output.flush()
        except BrokenPipeError:
            os._exit(PIPE_CLOSED)  # from any thread: the front end is gone

    # Standard output is for the protocol only.
    with contextlib.redirect_stdout(sys.stderr):
        chess = check_is_chess(games.make(game))
        name = player or default_opponent(chess)
        note(f"loading {name} ...")
        loaded = players.load_compiled(name, chess, read_custom_modules(modules))
        engine = UciEngine(chess, loaded, write, seed)
        try:
            for line in read_lines(sys.stdin.fileno()):
                if not engine.execute(line):
                    break
            else:
                engine.finish()
        finally:
            if not engine.close(QUIT_SECONDS):
                os._exit(0)  # Python would wait for the search or its compilation

"""`azjax play`: a game in the terminal."""

import io
import os
import sys

import tyro

from azjax import games
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.compilation_cache import enable_compilation_cache
from azjax.play.input_lines import drop_typeahead
from azjax.play.opponents import default_opponent
from azjax.play.plain import Plain
from azjax.play.session import Background, Session
from azjax.players import load as load_player_named
from azjax.players.player_spec import split_name
from azjax.program import INTERRUPTED, PIPE_CLOSED, note
from azjax.settings import OptionalSeed

PATIENCE = 0.5  # seconds to wait for a search when the user quits


def play_command(
    game: tyro.conf.Positional[str],
    /,
    *,
    opponent: str | None = None,
    second: bool = False,
    seed: OptionalSeed = None,
    load: str | None = None,
    plain: bool = False,
    modules: ModulesOption = None,
) -> None:
    """Play a game in the terminal; type `help` for the commands.

    Args:
        game: a game that `azjax games` lists.
        opponent: random, greedy, minimax:DEPTH, mcts:N, q_learning:RUN, network:RUN,
            alphazero:RUN, perfect, human (a second person), gtp:COMMAND or, for
            chess, uci:COMMAND, where RUN is a run directory or `pretrained`. Settings
            follow a ? and are joined by &:
            alphazero:RUN?simulations=200&tree_reuse_nodes=2000. NAME=PLAYER sets the
            player's name. Default: the pretrained player of the game, else a search.
        second: let the opponent move first.
        seed: seed of the opponent and of the dice. Default: 0 for the opponent, and
            dice that differ from game to game.
        load: a saved game to continue.
        plain: print lines instead of using the full screen.
    """
    enable_compilation_cache()
    board_game = games.make(game)
    note(f"loading {game} ...")
    name, text = split_name(opponent or default_opponent(board_game))
    player = load_player_named(text, board_game, read_custom_modules(modules))

    session = Session(
        board_game,
        player,
        Background(),
        name=name or text,
        user=int(second),
        seed=seed,
    )
    streams = (sys.stdin, sys.stdout, sys.stderr)
    is_dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown")
    plain = plain or is_dumb or not all(stream.isatty() for stream in streams)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    status = 0
    try:
        if plain:
            interface = Plain(session, read=_read, write=_write, note=note)
            interface.begin(load)
            drop_typeahead()
            interface.run()
        else:
            from azjax.play.screen import PlayApp  # noqa: PLC0415, slow to import

            app = PlayApp(session)
            session.begin(load)
            drop_typeahead()
            app.run()
            status = app.return_code or 0
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as ended:  # by a signal
        status = int(ended.code or 0)
    except BrokenPipeError:
        # Python would fail to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = PIPE_CLOSED
    finally:
        is_idle = session.background.close(PATIENCE)
        session.close()
    if not is_idle:  # a search is running, which cannot be stopped
        sys.stdout.flush()
        os._exit(status)
    if status:
        raise SystemExit(status)


def _read(prompt: str) -> str:
    """Reads a line; in a pipe, the prompt has its own line."""
    if sys.stdin.isatty():
        return input(prompt)
    _write(prompt.strip())
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def _write(text: str) -> None:
    print(text, flush=True)

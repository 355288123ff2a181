"""`azjax play`."""

import io
import os
import sys
from collections.abc import Callable

import tyro

from azjax import games
from azjax.arena.executor import Executor
from azjax.checks import check_seed
from azjax.commands.common import INTERRUPTED, PIPE_CLOSED, note
from azjax.commands.parts import read_parts
from azjax.compilation_cache import enable_compilation_cache
from azjax.play.background import BackgroundExecutor, CallbackQueue
from azjax.play.opponents import default_opponent
from azjax.play.plain import Plain
from azjax.play.session import Session
from azjax.play.typeahead import drop_typeahead
from azjax.players import load as load_player_named
from azjax.players.names import split_name

PATIENCE = 0.5  # seconds that a search may take to end when the user leaves


def play_command(
    game: tyro.conf.Positional[str],
    /,
    *,
    opponent: str | None = None,
    second: bool = False,
    seed: int = 0,
    load: str | None = None,
    plain: bool = False,
    parts: str | None = None,
) -> None:
    """Play a game in the terminal; `help` shows what you can do there.

    Args:
        game: one of those that `azjax games` lists.
        opponent: who answers: random, greedy, minimax:DEPTH, mcts:N, q_learning:RUN,
            network:RUN, alphazero:RUN, perfect, human (a second person) or
            gtp:COMMAND, where RUN is a run's directory or `pretrained`. Settings stand
            after a ?, joined by &: alphazero:RUN?simulations=200&tree_reuse_nodes=2000.
            NAME=PLAYER calls one by another name.
            Without it, the player that ships for the game, or else a search.
        second: let the opponent begin.
        seed: of the opponent's chance.
        load: a saved game to go on with.
        plain: lines in place of a full screen, as in a pipe.
        parts: MODULE:NAME, the azjax.networks.Parts of the opponent's network, if it
            has modules of your own.
    """
    check_seed("--seed", seed)
    enable_compilation_cache()
    board_game = games.make(game)
    note(f"loading {game} ...")
    name, text = split_name(opponent or default_opponent(board_game))
    player = load_player_named(text, board_game, read_parts(parts))

    def sit_down(run: Executor) -> Session:
        return Session(
            board_game, player, name=name or text, user=int(second), seed=seed, run=run
        )

    if plain or not _has_screen():
        _play_plain(sit_down, load)
    else:
        _play_on_screen(sit_down, load)


def _has_screen() -> bool:
    """Returns whether there is a full screen, and somebody in front of it."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    is_dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown")
    return all(stream.isatty() for stream in streams) and not is_dumb


def _play_on_screen(sit_down: Callable[[Executor], Session], saved: str | None) -> None:
    from azjax.play.screen import PlayApp  # noqa: PLC0415, it takes its time

    app = PlayApp(sit_down)
    try:
        app.session.begin(saved)
        drop_typeahead()
        app.run()
    finally:
        is_idle = _close(app.session, app.callbacks.background)
    _end(app.return_code or 0, is_idle)


def _play_plain(sit_down: Callable[[Executor], Session], saved: str | None) -> None:
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    callbacks = CallbackQueue()
    session = sit_down(callbacks.background)
    status = 0
    try:
        interface = Plain(session, callbacks, read=_read, write=_write, note=note)
        interface.begin(saved)
        drop_typeahead()
        interface.run()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as ended:  # by a signal
        status = int(ended.code or 0)
    except BrokenPipeError:
        # Python would complain when it writes what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = PIPE_CLOSED
    finally:
        is_idle = _close(session, callbacks.background)
    _end(status, is_idle)


def _read(prompt: str) -> str:
    """Asks for a line; in a pipe, the question has a line of its own."""
    if sys.stdin.isatty():
        return input(prompt)
    _write(prompt.strip())
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def _write(text: str) -> None:
    print(text, flush=True)


def _close(session: Session, background: BackgroundExecutor) -> bool:
    """Gives back what a session holds; returns whether nobody thinks any more."""
    is_idle = background.close(PATIENCE)
    session.close()
    return is_idle


def _end(status: int, is_idle: bool) -> None:
    """Ends the program, if need be in the middle of a search, which knows no stop."""
    if not is_idle:
        sys.stdout.flush()
        os._exit(status)
    if status:
        raise SystemExit(status)

"""The command line: `azjax` and `python -m azjax`."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence

import tyro

from azjax.commands.arena import arena_command
from azjax.commands.common import INTERRUPTED
from azjax.commands.evaluate import evaluate_command
from azjax.commands.export import export_command
from azjax.commands.games import games_command
from azjax.commands.gtp import gtp_command
from azjax.commands.play import play_command
from azjax.commands.serve import serve_command
from azjax.commands.train import train_command, train_with_settings
from azjax.commands.train_q import train_q_command

USAGE_ERROR = 2


def main(args: Sequence[str] | None = None) -> None:
    """Runs the command that the arguments name."""
    args = list(sys.argv[1:] if args is None else args)
    app = tyro.extras.SubcommandApp()
    app.command(name="games")(games_command)
    app.command(name="train")(train_command)
    app.command(name="train-q")(train_q_command)
    app.command(name="evaluate")(evaluate_command)
    app.command(name="arena")(arena_command)
    app.command(name="play")(play_command)
    app.command(name="gtp")(gtp_command)
    app.command(name="export")(export_command)
    app.command(name="serve")(serve_command)
    with ends_in_order(), one_line_errors():
        # `train` has all settings of a run, whose defaults depend on the preset.
        if args[:1] == ["train"] and len(args) > 1 and args[1] not in ("-h", "--help"):
            train_with_settings(args[1:])
        else:
            app.cli(prog="azjax", args=args)


@contextlib.contextmanager
def ends_in_order() -> Iterator[None]:
    """A context in which SIGTERM and SIGHUP end the program as Ctrl-C does, so that the
    programs that it started end with it."""

    previous = {}

    def end(number: int, _frame: object) -> None:
        for other in previous:  # once is enough
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # not under nohup
                previous[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """A context in which a user's mistake ends the program with one line and status 2.

    Mistakes are what azjax or its script refuses by a ValueError, and what the file
    system refuses; everything else is a fault of the program and keeps its traceback.
    """
    try:
        yield
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else f"{error}")
    except ValueError as error:
        if not _is_raised_here(error):
            raise
        _fail(str(error))
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _fail(message: str) -> None:
    print(f"azjax: {message}", file=sys.stderr)
    raise SystemExit(USAGE_ERROR)


def _is_raised_here(error: BaseException) -> bool:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = traceback.tb_frame.f_globals.get("__name__", "") if traceback else ""
    return name.split(".")[0] in ("azjax", "__main__")

"""The command line: `azjax` and `python -m azjax`."""

import contextlib
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import tyro

from azjax.commands.common import INTERRUPTED, PIPE_CLOSED
from azjax.commands.parsing import bind
from azjax.program import NAME, USAGE_ERROR, error_line, program
from azjax.suggestions import did_you_mean

HELP_OPTIONS = ("-h", "--help", "--tyro-")


# Command names; `train-q` is `train_q_command` in `azjax.commands.train_q`.
COMMANDS = (
    "games",
    "plan",
    "train",
    "train-q",
    "evaluate",
    "arena",
    "play",
    "gtp",
    "export",
    "serve",
)
# Functions of commands whose options are all settings of a run; their defaults depend
# on the run.
WITH_SETTINGS = {
    "plan": "plan_with_settings",
    "train": "train_with_settings",
    "train-q": "train_with_settings",
}


def main(args: Sequence[str] | None = None) -> None:
    """Runs the command that the arguments name."""
    prog = program() if args is None else NAME
    args = list(sys.argv[1:] if args is None else args)
    with ends_in_order(), one_line_errors():
        if args and args[0].startswith(HELP_OPTIONS):
            _help(args, prog)
        name, rest = _command_name(args, prog)
        prog = f"{prog} {name}"
        if name in WITH_SETTINGS and rest and not rest[0].startswith(HELP_OPTIONS):
            getattr(_module(name), WITH_SETTINGS[name])(rest, prog)
        else:
            bind(_command(name), rest, prog=prog)()


def _module(name: str) -> ModuleType:
    """Imports the module of a command, and so what only this command needs."""
    return importlib.import_module(f"azjax.commands.{name.replace('-', '_')}")


def _command(name: str) -> Callable[..., None]:
    """Returns the function of a command."""
    return getattr(_module(name), f"{name.replace('-', '_')}_command")


def _help(args: Sequence[str], prog: str) -> None:
    """Prints the commands, or what completes them in a shell, and ends."""
    app = tyro.extras.SubcommandApp()
    for name in COMMANDS:
        app.command(name=name)(_command(name))
    app.cli(prog=prog, args=args)


def _command_name(args: Sequence[str], prog: str) -> tuple[str, Sequence[str]]:
    """Returns the command's name and its arguments.

    Raises:
        ValueError: there is no such command.
    """
    known = f"commands are {', '.join(COMMANDS)}; see {prog} --help"
    if not args:
        raise ValueError(f"a command is missing; {known}")
    name, *rest = args
    if name not in COMMANDS:
        close = did_you_mean(name, COMMANDS)
        raise ValueError(f"unknown command {name!r}; {known}{close}")
    return name, rest


def ending_signals() -> tuple[signal.Signals, ...]:
    """Returns the signals that end a program from outside, beside Ctrl-C: SIGHUP where
    terminals send it, SIGBREAK where closing a console of Windows does."""
    names = ("SIGTERM", "SIGHUP", "SIGBREAK")
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


@contextlib.contextmanager
def ends_in_order() -> Iterator[None]:
    """A context in which the signals that end a program end it as Ctrl-C does, so that
    the programs that it started end with it."""

    previous = {}

    def end(number: int, _frame: object) -> None:
        for other in previous:  # once is enough
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread():
        for number in ending_signals():
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
        try:
            yield
        finally:
            sys.stdout.flush()  # now, while a closed pipe can still be answered
    except BrokenPipeError:
        # Nobody reads any more; neither will what Python writes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(PIPE_CLOSED) from None
    except OSError as error:
        _fail(error_line(error))
    except ValueError as error:
        if not _is_raised_here(error):
            raise
        _fail(error_line(error))
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

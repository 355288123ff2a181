"""The command line: `azjax` and `python -m azjax`."""

import contextlib
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from azjax.program import (
    HELP_OPTIONS,
    INTERRUPTED,
    NAME,
    PIPE_CLOSED,
    USAGE_ERROR,
    error_line,
    is_users_mistake,
    program,
    quiet_libraries,
)
from azjax.text import did_you_mean

COMPLETION_OPTIONS = "--tyro-"  # they print shell completions

# The commands, with a line each for `azjax --help`. A command's module is imported when
# it is called: `train-q` is `train_q_command` in `azjax.commands.train_q`.
COMMANDS = {
    "games": "List the games, their sizes and options.",
    "plan": "Forecast memory and speed of a run, also on an absent device.",
    "train": "Learn a game by self-play.",
    "sweep": "Train a run for each combination of settings.",
    "train-q": "Learn a small game by Q-learning, as a baseline.",
    "evaluate": "Measure a player's mistakes and match scores.",
    "compare": "Compare runs: settings, progress, strength.",
    "data": "Query the games that a run has kept, in SQL.",
    "import-games": "Store games of people and other programs, to learn from.",
    "reanalyze": "Search stored games again with a newer player, to learn from.",
    "arena": "Play a tournament and rate the players.",
    "play": "Play a game in the terminal.",
    "review": "Review a game: values of its positions, and mistakes.",
    "gtp": "Speak GTP, the Go Text Protocol, for Go front ends.",
    "uci": "Speak UCI, the Universal Chess Interface, for chess front ends.",
    "export": "Write a trained player as an ONNX file or as a web page.",
    "push": "Write a trained player to the Hugging Face Hub.",
    "pull": "Load a player from the Hugging Face Hub.",
    "serve": "Serve a web page to play on and to follow runs.",
}
# Commands that take the settings of a run, whose defaults depend on the run:
# `train_with_settings` in `azjax.commands.train`. `train_command` has only the help
# without a game.
WITH_SETTINGS = ("plan", "train", "train-q")


def main(args: Sequence[str] | None = None) -> None:
    """Runs the command given by the arguments, by default those of the program."""
    prog = NAME
    if args is None:
        prog, args = program(), sys.argv[1:]
        quiet_libraries()
    args = list(args)
    # The null device is opened in place of standard files that are closed (`>&-`).
    for file, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, file) is None:
            setattr(sys, file, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # a file may be in another encoding
        sys.stdout.reconfigure(errors="replace")
    with ends_in_order(), one_line_errors():
        if not args or args[0] in HELP_OPTIONS:
            print(_help(prog))
        elif args[0].startswith(COMPLETION_OPTIONS):
            import tyro  # noqa: PLC0415, not needed for help

            app = tyro.extras.SubcommandApp()
            for name in COMMANDS:
                app.command(name=name)(_function(name, "command"))
            app.cli(prog=prog, args=args)
        elif (name := args.pop(0)) not in COMMANDS:
            raise ValueError(
                f"unknown command {name!r}; commands are {', '.join(COMMANDS)}; see "
                f"{prog} --help{did_you_mean(name, COMMANDS)}"
            )
        elif (
            name in WITH_SETTINGS
            and args
            and not args[0].startswith((*HELP_OPTIONS, COMPLETION_OPTIONS))
        ):
            game, *settings = args
            prog = f"{prog} {name}"
            if game.startswith("-"):
                raise ValueError(f"the game must come first: {prog} GAME [OPTIONS]")
            _function(name, "with_settings")(game, settings, prog=f"{prog} {game}")
        else:
            from azjax.commands.parsing import bind  # noqa: PLC0415, as above

            bind(_function(name, "command"), args, prog=f"{prog} {name}")()


def _help(prog: str) -> str:
    """Returns the help text, a line per command."""
    width = max(map(len, COMMANDS))
    lines = (f"  {name:{width}}  {purpose}" for name, purpose in COMMANDS.items())
    return "\n".join(
        [
            "azjax learns board games by self-play, AlphaZero in JAX, and plays them.",
            f"Begin with {prog} play connect_four, or {prog} train tic_tac_toe.",
            "",
            f"usage: {prog} COMMAND [ARGUMENTS]",
            "",
            *lines,
            "",
            f"{prog} COMMAND --help lists the arguments of a command, and",
            f"{prog} train GAME --help the settings of a run.",
        ]
    )


def _function(name: str, suffix: str) -> Callable[..., None]:
    """Imports a command's module and returns its function with this suffix."""
    name = name.replace("-", "_")
    module = importlib.import_module(f"azjax.commands.{name}")
    return getattr(module, f"{name}_{suffix}")


def ending_signals() -> tuple[signal.Signals, ...]:
    """Returns the signals, besides SIGINT, that end a program: SIGTERM, SIGHUP when its
    terminal closes, SIGBREAK when a console of Windows does."""
    names = ("SIGTERM", "SIGHUP", "SIGBREAK")
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


@contextlib.contextmanager
def ends_in_order() -> Iterator[None]:
    """A context in which ending signals raise SystemExit, so that cleanup runs and
    child processes end."""

    previous = {}

    def end(number: int, _frame: object) -> None:
        for other in previous:  # ignore further signals
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread():
        for number in ending_signals():
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
                previous[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """A context in which a user's mistake ends the program with one line and status 2.

    All exceptions but a user's mistakes are bugs and keep their traceback.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, where a closed pipe is handled
    except BrokenPipeError:
        _end_without_reader()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # rich's own status is 1
            _end_without_reader()
        raise
    except OSError as error:
        _fail(error_line(error))
    except ValueError as error:
        if not is_users_mistake(error):
            raise
        _fail(error_line(error))
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _end_without_reader() -> NoReturn:
    # Python flushes at exit; without a reader that would fail too.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(PIPE_CLOSED) from None


def _fail(message: str) -> None:
    print(f"azjax: {message}", file=sys.stderr)
    raise SystemExit(USAGE_ERROR)

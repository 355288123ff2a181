"""The running program: its name, environment, exit statuses, notes and errors."""

import contextlib
import glob
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from azjax.text import printable

NAME = "azjax"
HELP_OPTIONS = ("-h", "--help")
# Exit statuses.
USAGE_ERROR = 2  # a user's mistake
STOPPED = 75  # EX_TEMPFAIL: a run was stopped and saved, and can be continued
INTERRUPTED = 130  # 128 + SIGINT, as in shells
PIPE_CLOSED = 141  # 128 + SIGPIPE

# Environment variables for libtpu where there is no TPU: no query of the cloud's
# metadata server, and no messages about the missing TPU.
WITHOUT_TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_MIN_LOG_LEVEL": "3",
}


def has_tpu() -> bool:
    """Returns whether the machine has the device files of a TPU."""
    return bool(glob.glob("/dev/accel[0-9]*") or glob.glob("/dev/vfio/[0-9]*"))


def quiet_libraries() -> None:
    """Sets environment variables that turn off messages of XLA about slow compilation,
    and of libtpu where there is no TPU; for a program, before it imports jax."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", **({} if has_tpu() else WITHOUT_TPU)}
    for name, value in quiet.items():
        os.environ.setdefault(name, value)


def program() -> str:
    """Returns the command that started the program: `azjax`, `python nim.py` or `python
    -m my_games.nim`; in a notebook, `azjax`."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m
        name = spec.name.removesuffix(".__main__")
        return NAME if name == NAME else f"python -m {name}"
    script = Path(sys.argv[0])
    if not hasattr(main, "__file__") or script.stem == NAME:
        return NAME
    return f"python {shlex.quote(script.as_posix())}"


def note(text: str) -> None:
    """Prints a progress note on the standard error."""
    print(f"azjax: {printable(text)}", file=sys.stderr, flush=True)


def error_line(error: BaseException) -> str:
    """Returns the one-line message for an error that ends the program."""
    text = str(error)
    if isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: {error.strerror}"
    return printable(text)


def is_users_mistake(error: BaseException) -> bool:
    """Returns whether an exception is a file system error, or a ValueError raised in
    azjax or its script; others are bugs."""
    if isinstance(error, OSError):
        return True
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = traceback.tb_frame.f_globals.get("__name__", "") if traceback else ""
    is_raised_here = name.split(".")[0] in (NAME, "__main__")
    return isinstance(error, ValueError) and is_raised_here


def program_for(game: object) -> str:
    """Returns the program that knows a game: `azjax`, or the running one for a user's
    game."""
    is_own = type(game).__module__.partition(".")[0] != NAME
    return program() if is_own else NAME


@contextlib.contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """A context in which SIGTERM raises KeyboardInterrupt, as SIGINT does; a second one
    has its previous effect."""
    previous = signal.getsignal(signal.SIGTERM)
    # None is a handler that Python cannot restore.
    is_ours = previous not in (None, signal.SIG_IGN) and (
        threading.current_thread() is threading.main_thread()
    )

    def restore() -> None:
        if is_ours:
            signal.signal(signal.SIGTERM, previous)

    def interrupt(_number: int, _frame: object) -> None:
        restore()
        raise KeyboardInterrupt

    if is_ours:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        restore()

"""Exit statuses, signals and notes of all commands; imports nothing slow."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

INTERRUPTED = 130  # exit status: 128 + SIGINT, as in shells
PIPE_CLOSED = 141  # 128 + SIGPIPE
STOPPED = 75  # EX_TEMPFAIL: a run was stopped and saved, and can be continued


def note(text: str) -> None:
    """Prints a progress note on the standard error."""
    print(f"azjax: {text}", file=sys.stderr, flush=True)


def ending_signals() -> tuple[signal.Signals, ...]:
    """Returns the signals, besides SIGINT, that end a program: SIGTERM, SIGHUP when its
    terminal closes, SIGBREAK when a console of Windows does."""
    names = ("SIGTERM", "SIGHUP", "SIGBREAK")
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


@contextlib.contextmanager
def interrupted_by_ending_signals() -> Iterator[None]:
    """A context in which the first ending signal raises KeyboardInterrupt, as Ctrl-C
    does; the next one has its previous effect."""
    previous: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def interrupt(_number: int, _frame: object) -> None:
        restore()
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in ending_signals():
            # nohup ignores SIGHUP; None is a handler that Python cannot restore.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                previous[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        restore()

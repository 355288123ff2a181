"""Options, exit statuses, signals and notes of all commands; imports nothing slow."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator

from azjax.text import printable

HELP_OPTIONS = ("-h", "--help")
INTERRUPTED = 130  # exit status: 128 + SIGINT, as in shells
PIPE_CLOSED = 141  # 128 + SIGPIPE
STOPPED = 75  # EX_TEMPFAIL: a run was stopped and saved, and can be continued


def note(text: str) -> None:
    """Prints a progress note on the standard error."""
    print(f"azjax: {printable(text)}", file=sys.stderr, flush=True)


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

"""What commands have in common; it imports nothing that takes time."""

import sys

INTERRUPTED = 130  # an exit status: 128 and the number of SIGINT, as shells count
PIPE_CLOSED = 141  # the same for SIGPIPE
STOPPED = 75  # EX_TEMPFAIL: a run was stopped and saved; the same command goes on


def note(text: str) -> None:
    """Tells the user why nothing happens for a while, on the standard error."""
    print(f"azjax: {text}", file=sys.stderr, flush=True)

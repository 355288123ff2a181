"""Exit statuses and notes of all commands; imports nothing slow."""

import sys

INTERRUPTED = 130  # exit status: 128 + SIGINT, as in shells
PIPE_CLOSED = 141  # 128 + SIGPIPE
STOPPED = 75  # EX_TEMPFAIL: a run was stopped and saved, and can be continued


def note(text: str) -> None:
    """Prints a progress note on the standard error."""
    print(f"azjax: {text}", file=sys.stderr, flush=True)

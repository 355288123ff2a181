"""Counts of the requests that clients wait for."""

import time

QUIET_SECONDS = 2.0  # without a waiting client, after which the server is idle


class Activity:
    """Open requests, updated by the event loop's thread only.

    num_decisions: requested move decisions that are not answered yet, and reviews,
        which have one at a time.
    num_reviews: requested reviews that are not answered yet.
    num_starts: clients that wait for a game to start.
    last_answer: time of the last answer to either, initially of creation (seconds,
        monotonic clock).
    """

    def __init__(self) -> None:
        self.num_decisions = self.num_reviews = self.num_starts = 0
        self.last_answer = time.monotonic()

    @property
    def is_busy(self) -> bool:
        """Whether a client waits, or did within `QUIET_SECONDS`: a client that plays
        soon sends the next request."""
        is_quiet = time.monotonic() - self.last_answer >= QUIET_SECONDS
        return self.num_decisions > 0 or self.num_starts > 0 or not is_quiet

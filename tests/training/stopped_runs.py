"""Runs that are stopped at a chosen iteration."""

import contextlib
import os
import signal

import pytest

from azjax.training.reporting import Reporter


@contextlib.contextmanager
def stopping_after(iteration, number=signal.SIGTERM):
    """Sends a signal to this process after a number of iterations."""

    def report(self, row, original=Reporter.iteration):
        original(self, row)
        if row["iteration"] == iteration:
            os.kill(os.getpid(), number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reporter, "iteration", report)
        yield

"""Whether a run is asked to stop: one answer in all its processes."""

import itertools
from collections.abc import Callable
from typing import TypeVar

from jax.experimental import multihost_utils

from azjax.training.distributed import gathered
from azjax.training.signals import StopSignals

Result = TypeVar("Result")

# Of JAX's preemption service. It tells a notice to all processes at the step after the
# newest that one of them has reached: no number may be left out.
_steps = itertools.count(1)


class StopRequests:
    """Requests to stop: a signal to any process, or one of JAX's preemption service.

    That service receives SIGTERM from `jax.distributed.initialize` on, until `signals`
    are entered.

    Args:
        signals: of this process.
    """

    def __init__(self, signals: StopSignals):
        self._signals = signals
        self._is_preempted = False

    def is_requested(self) -> bool:
        """Returns whether the run is to stop; all processes ask together."""
        return bool(gathered([self._is_requested_here()]).any())

    def interrupting(
        self, work: Callable[[Callable[[], None]], Result]
    ) -> Result | None:
        """Does what every process does for itself. Returns None, in all of them, if a
        stop was requested before all of them were done.

        Args:
            work: called with a function that it calls now and then, and whose error it
                does not catch. Processes may call it different numbers of times.
        """
        try:
            result = work(lambda: self._poll(is_done=False))
            self._poll(is_done=True)
        except _RequestedError:
            return None
        return result

    def _poll(self, *, is_done: bool) -> None:
        """Compares with the other processes, and waits for them if this one is done."""
        while True:
            flags = gathered([self._is_requested_here(), is_done])
            requested, done = flags[:, 0].any(), flags[:, 1].all()
            if requested and not done:
                raise _RequestedError
            if done or not is_done:
                return

    def _is_requested_here(self) -> bool:
        self._is_preempted = self._is_preempted or _reached_preemption()
        return self._is_preempted or self._signals.stopping


class _RequestedError(Exception):
    """Ends work that is interrupted."""


def _reached_preemption() -> bool:
    try:
        return multihost_utils.reached_preemption_sync_point(next(_steps))
    except RuntimeError:  # the user has turned the service off
        return False

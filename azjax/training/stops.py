"""Stop requests, with the same answer in all processes of a run."""

import itertools
from collections.abc import Callable
from typing import TypeVar

import jax
from jax.experimental import multihost_utils

from azjax.arena import Poll
from azjax.training.distributed import in_any
from azjax.training.signals import StopSignals

Result = TypeVar("Result")

# Steps of JAX's preemption service. It stops all processes at the step after the newest
# one that any of them has reached: no number may be skipped.
_steps = itertools.count(1)


class StopRequests:
    """Stop requests: a signal to any process, or one of JAX's preemption service.

    That service receives SIGTERM from `jax.distributed.initialize` until `signals` is
    entered.

    Args:
        signals: of this process.
    """

    def __init__(self, signals: StopSignals):
        self._signals = signals
        self._is_preempted = False

    def is_requested(self) -> bool:
        """Returns whether to stop; a collective call of all processes."""
        return in_any(self._is_requested_here())

    def interrupting(self, work: Callable[[Poll], Result]) -> Result | None:
        """Returns the result of `work`, or None in all processes if a stop was
        requested meanwhile.

        Args:
            work: called with a poll function that it calls regularly and whose
                exception it does not catch.
        """
        try:
            return work(self._poll)
        except _RequestedError:
            return None

    def _poll(self, *, alone: bool = False) -> None:
        """Raises an exception if a stop is requested; see `Poll`."""
        if alone and jax.process_count() > 1:
            return
        if self.is_requested():
            raise _RequestedError

    def _is_requested_here(self) -> bool:
        self._is_preempted = self._is_preempted or _reached_preemption()
        return self._is_preempted or self._signals.stopping


class _RequestedError(Exception):
    """Ends interrupted work."""


def _reached_preemption() -> bool:
    try:
        return multihost_utils.reached_preemption_sync_point(next(_steps))
    except RuntimeError:  # the service is disabled
        return False

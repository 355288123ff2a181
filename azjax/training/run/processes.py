"""Several processes, each with its own devices, that compute one run together.

Every process runs the same loop on the same values. Values that may differ, such as
clocks and signals, are taken from the first process or gathered from all, here.
"""

import contextlib
import itertools
import json
import os
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from azjax.arena import Poll
from azjax.files import Directory, store_errors
from azjax.program import USAGE_ERROR, error_line
from azjax.training.run.signals import StopSignals

HEARTBEAT_SECONDS = 20  # timeout after which a silent process counts as lost
ROLL_CALL_SECONDS = 5  # timeout after which a process counts as missing
FAREWELL_SECONDS = 3  # that the first process waits for the others to print
START_SECONDS = 45  # timeout for all processes to connect
_TEXT_BYTES = 1_000  # maximum size of a message to the other processes
# Steps of JAX's preemption service. It stops all processes at the step after the newest
# one that any of them has reached: no number may be skipped.
_steps = itertools.count(1)

Result = TypeVar("Result")


def join_processes(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
) -> None:
    """Joins this process to the others of a run; call it before JAX computes.

    On TPU pods, and under Slurm or Open MPI, JAX finds the arguments itself.

    Args:
        coordinator: `HOST:PORT` of the first process.
        num_processes: number of processes.
        process_id: index of this process, from 0.

    Raises:
        ValueError: an argument is missing or invalid, or the other processes do not
            connect.
    """
    given = (coordinator, num_processes, process_id)
    if any(argument is not None for argument in given):
        if coordinator is None or num_processes is None or process_id is None:
            raise ValueError(
                "--coordinator, --num-processes and --process-id must be given together"
            )
        host, _, port = coordinator.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ValueError(f"--coordinator must be HOST:PORT: {coordinator!r}")
        if num_processes < 1:
            raise ValueError(f"--num-processes must be >= 1: {num_processes}")
        if not 0 <= process_id < num_processes:
            raise ValueError(
                f"--process-id must be from 0 to {num_processes - 1}: {process_id}"
            )
        # JAX would end this process if the first one did not answer.
        end = time.monotonic() + START_SECONDS
        while process_id:
            try:
                where = (host.strip("[]"), int(port))
                socket.create_connection(where, timeout=5).close()
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise ValueError(
                        f"no process answers at --coordinator {coordinator} within "
                        f"{START_SECONDS} seconds ({error}): start process 0 there, "
                        "with the same options"
                    ) from None
                time.sleep(0.5)

    def give_up() -> None:
        text = (
            f"azjax: not all processes connected within {START_SECONDS} seconds: start "
            "--num-processes of them, with the same options\n"
        )
        os.write(sys.stderr.fileno(), text.encode())
        os._exit(USAGE_ERROR)

    # `jax.distributed.initialize` cannot be interrupted. JAX would end this process
    # too, but with a long traceback.
    waiting = threading.Timer(START_SECONDS, give_up)
    waiting.daemon = True
    waiting.start()
    try:
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            initialization_timeout=2 * START_SECONDS,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=HEARTBEAT_SECONDS,
        )
        waiting.cancel()
        multihost_utils.sync_global_devices("azjax: all processes are connected")
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            "the processes of this run could not find each other "
            f"({first_line(error)}): give --coordinator HOST:PORT, --num-processes and "
            "--process-id where JAX cannot find them"
        ) from None
    finally:
        waiting.cancel()


def is_first_process() -> bool:
    """Returns whether this is the first process, which writes shared files."""
    return jax.process_index() == 0


def broadcast_from_first_process(value: Any) -> Any:
    """Broadcasts the first process's JSON value to all processes."""
    if jax.process_count() == 1:
        return value
    text = json.dumps(value).encode() if is_first_process() else b""
    size = int(multihost_utils.broadcast_one_to_all(np.int32(len(text))))
    data = np.zeros(size, np.uint8)
    if is_first_process():
        data[:] = np.frombuffer(text, np.uint8)
    return json.loads(multihost_utils.broadcast_one_to_all(data).tobytes())


def in_any(flag: bool) -> bool:
    """Returns whether the flag is set in any process."""
    if jax.process_count() == 1:
        return flag
    return bool(multihost_utils.process_allgather(np.int32(flag)).any())


@contextlib.contextmanager
def raise_on_all_processes() -> Iterator[None]:
    """A context at whose end a ValueError or OSError of one process is raised in all of
    them, elsewhere as a ValueError that names the process."""
    if jax.process_count() == 1:
        yield
        return
    failure = None
    try:
        yield
    except (ValueError, OSError) as error:
        failure = error
    text = "" if failure is None else error_line(failure) or "an error"
    data = text.encode()[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0")
    rows = multihost_utils.process_allgather(np.frombuffer(data, np.uint8))
    if failure is not None:
        raise failure
    for number, row in enumerate(rows):
        if text := row.tobytes().rstrip(b"\0").decode(errors="ignore"):
            raise ValueError(f"process {number}: {text}")


class StopRequests:
    """Stop requests, with the same answer in all processes of a run: a signal to any
    process, or one of JAX's preemption service.

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
        if not self._is_preempted:
            with contextlib.suppress(RuntimeError):  # the service is disabled
                is_reached = multihost_utils.reached_preemption_sync_point
                self._is_preempted = is_reached(next(_steps))
        return in_any(self._is_preempted or self._signals.stopping)

    def interrupting(self, work: Callable[[Poll], Result]) -> Result | None:
        """Returns the result of `work`, or None in all processes if a stop was
        requested meanwhile.

        Args:
            work: called with a poll function that it calls regularly and whose
                exception it does not catch.
        """

        def poll(*, alone: bool = False) -> None:
            """Raises an exception if a stop is requested; see `Poll`."""
            if (not alone or jax.process_count() == 1) and self.is_requested():
                raise _RequestedError

        try:
            return work(poll)
        except _RequestedError:
            return None


class _RequestedError(Exception):
    """Ends interrupted work."""


class LostSaveError(OSError):
    """A save that failed in one of several processes; Orbax's threads still wait for
    it."""


@contextlib.contextmanager
def raise_save_error_on_all_processes() -> Iterator[None]:
    """`raise_on_all_processes` for errors after which Orbax's threads cannot be joined;
    several processes raise a `LostSaveError` in their place."""
    try:
        with raise_on_all_processes():
            yield
    except (ValueError, OSError) as error:
        if jax.process_count() == 1:
            raise
        raise LostSaveError(error_line(error)) from error


@contextlib.contextmanager
def exit_if_process_lost() -> Iterator[None]:
    """A context in which one of several processes exits at once, with one line, if it
    cannot reach the others or one of them could not save."""
    try:
        yield
    except LostSaveError as error:
        _say(str(error))
        sys.stdout.flush()
        if is_first_process():
            time.sleep(FAREWELL_SECONDS)  # the others end together with this process
        os._exit(USAGE_ERROR)
    except (RuntimeError, ValueError) as error:
        # Gloo's failures, for CPUs, may be ValueErrors.
        is_ours = isinstance(error, ValueError) and "Gloo" not in str(error)
        if jax.process_count() == 1 or is_ours:
            raise
        _say(
            f"process {jax.process_index()} cannot continue, probably because another "
            f"process of the run has ended ({first_line(error)}): start all of them "
            "again to continue from the last checkpoint"
        )
        # Seconds later, and JAX may end this process before.
        from orbax.checkpoint import multihost  # noqa: PLC0415, slow

        try:
            multihost.get_barrier_sync_fn()(
                key="azjax: which processes remain", timeout_ms=1000 * ROLL_CALL_SECONDS
            )
            _say("all processes answer, but cannot exchange results")
        except RuntimeError as barrier_error:
            # The first process runs the barrier.
            silent = () if is_first_process() else (0,)
            missing = absent_processes(str(barrier_error)) or silent
            names = ", ".join(map(str, missing)) or "unknown"
            _say(f"processes that have ended or do not answer: {names}")
        if is_first_process():
            time.sleep(FAREWELL_SECONDS)
        os._exit(1)  # without the shutdown barrier, which other processes miss


def _say(text: str) -> None:
    print(f"azjax: {text}", file=sys.stderr, flush=True)


def absent_processes(text: str) -> tuple[int, ...]:
    """Returns the processes that a message about a barrier says are missing."""
    _, _, names = text.partition("timed out task names:")
    found = re.findall(r"^(?:\S*task:)?(\d+)$", names, flags=re.MULTILINE)
    return tuple(sorted({int(name) for name in found}))


def check_same(values: Mapping[str, Any]) -> None:
    """Checks that all processes have the same settings and versions: JSON values by
    name."""
    if jax.process_count() == 1:
        return
    mine = json.loads(json.dumps(values))
    first = broadcast_from_first_process(mine)
    with raise_on_all_processes():
        differences = [
            f"{name} is {mine.get(name)} here and {first.get(name)} there"
            for name in {**first, **mine}
            if first.get(name) != mine.get(name)
        ]
        if differences:
            raise ValueError(
                f"its settings differ from those of process 0: {'; '.join(differences)}"
            )


def check_shared(directory: Directory) -> None:
    """Checks that all processes see the same directory."""
    if jax.process_count() == 1:
        return
    # A random name, so that the path is neither a link nor an existing file.
    path = directory / f".process-{broadcast_from_first_process(secrets.token_hex(8))}"
    with raise_on_all_processes(), store_errors(directory):
        if is_first_process():
            path.touch(exist_ok=False)
    try:
        with raise_on_all_processes(), store_errors(directory):
            if not path.exists():
                raise ValueError(
                    f"{directory} is not the directory of process 0: give a --run-dir "
                    "that all hosts share"
                )
    finally:
        if is_first_process():
            path.unlink(missing_ok=True)


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]

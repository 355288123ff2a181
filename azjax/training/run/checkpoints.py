"""Checkpoints: the complete training state, saved so that a kill at any time is safe.

A checkpoint is complete or absent: Orbax renames it into place, or in an object store
writes a marker file last. It has a digest of its arrays, by which damage is found.
"""

import contextlib
import gc
import json
import logging
import sys
import threading
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from etils import epath
from jax.experimental import multihost_utils
from orbax.checkpoint import checkpoint_managers

from azjax.files import Directory, resolved, store_errors
from azjax.training.run.directory import disk_errors, system_error_number
from azjax.training.run.processes import (
    first_line,
    in_any,
    is_first_process,
    raise_on_all_processes,
    raise_save_error_on_all_processes,
)

_REPLACED = ".replaced"  # end of the name of a checkpoint that is being replaced
_POLL_SECONDS = 0.1  # interval of checks whether a save is complete
PENDING_SECONDS = 1.0  # longer than pending TensorStore operations take
_LOGGERS = ("absl", "asyncio")  # of messages about failures with one of these words:
_WORDS = ("orbax", "tensorstore", "TensorStore")
_UNAWAITED = "coroutine .* was never awaited"
# Beginnings of TensorStore's messages for a truncated file or a wrong checksum.
_DAMAGE_TEXTS = ("DATA_LOSS: ", "OUT_OF_RANGE: ", "Error decoding ")


class Checkpoints:
    """The checkpoints of a run; a context manager that waits for saves at its end.

    directory: created if missing.
    keep: number of the newest checkpoints to keep, besides the best.
    version: version of the state's layout; checkpoints of other versions are refused.
    run: id of the run; checkpoints of other runs are refused.
    """

    def __init__(
        self, directory: Directory, *, keep: int, version: int = 1, run: str = ""
    ):
        self._directory = resolved(directory)
        self._keep = keep
        self._about = {"format": version, "run": run}
        self._manager: _Manager | None = None
        with disk_errors(self._directory):
            if is_first_process():
                # Orbax fails on unreadable metrics.
                for path in self._directory.glob("*/metrics/metrics"):
                    try:
                        _merit(json.loads(path.read_bytes()))
                    except (ValueError, TypeError, LookupError, RecursionError):
                        path.unlink()
                self._end_replacements()
            try:
                with self._using_manager():
                    pass  # creates the directory, lists the checkpoints
            except Exception as error:  # Orbax has no exception class for damage
                if system_error_number(error) is not None:
                    raise
                reason = f"{type(error).__name__}: {first_line(error)}"
                raise ValueError(
                    f"the checkpoints in {self._directory} cannot be listed ({reason}):"
                    " move the damaged one away, or start a new run in another "
                    "directory"
                ) from error

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Waits for the save in progress and closes Orbax's manager."""
        if exception[0] is not None and jax.process_count() > 1:
            self._manager = None  # the other processes may not save
        if self._manager is None:
            return
        # After an error, that one is raised.
        late = contextlib.suppress(*([Exception] if exception[0] is not None else []))
        with late, disk_errors(self._directory):
            with self._using_manager() as manager:
                manager.close()
                self._manager = None
            if is_first_process():
                self._end_replacements()

    def save(
        self,
        state: Any,
        values: Mapping[str, Any],
        *,
        mistakes: float | None,
        replaces: bool = False,
    ) -> None:
        """Saves in the background, unless the checkpoint exists; `wait` waits for the
        end.

        Args:
            state: a pytree of arrays.
            values: JSON values; `iteration` is the checkpoint's name.
            mistakes: the rate that selects the best checkpoint, if known.
            replaces: whether a checkpoint with this name is replaced, because its
                evaluation was interrupted. Until the new one is complete the old one
                remains under another name.

        Raises:
            OSError: this checkpoint or the last one cannot be written; earlier ones are
                complete.
        """
        with disk_errors(self._directory), self._using_manager() as manager:
            manager.wait_until_finished()
            if values["iteration"] == manager.latest_step():
                if not replaces:
                    return
                with raise_on_all_processes():
                    if is_first_process():
                        path = self._directory / str(values["iteration"])
                        path.rename(path.with_name(f"{path.name}{_REPLACED}"))
                manager.reload()
            about = {
                **self._about,
                "structure": structure(state),
                "digest": digest(state),
                "progress_digest": json_digest(values),
            }
            manager.save(
                values["iteration"],
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave(state),
                    progress=ocp.args.JsonSave({**values, **about}),
                ),
                metrics=None if mistakes is None else {"mistakes": mistakes},
                force=True,
            )

            # Waits in a thread; the next call raises its failure.
            def wait() -> None:
                try:
                    with suppress_orbax_messages():
                        manager.wait_until_finished()
                except Exception as error:
                    manager.failure = manager.failure or error

            manager.watcher = threading.Thread(
                target=wait, daemon=jax.process_count() > 1
            )
            manager.watcher.start()

    def restore(
        self, state: Any, report: Callable[[str], None]
    ) -> tuple[Any, dict[str, Any]] | None:
        """Returns the newest intact checkpoint as state and values; None if there is
        none.

        Args:
            state: gives structure, shapes, dtypes and shardings.
            report: called with a line about each damaged checkpoint, which is renamed.

        Raises:
            ValueError: all checkpoints are damaged, or they are of another version,
                run, network or optimizer.
            OSError: a checkpoint cannot be read; it may be intact and is not renamed.
        """
        with store_errors(self._directory), self._using_manager() as manager:
            steps = sorted(manager.all_steps(), reverse=True)
        for step in steps:
            try:
                with self._using_manager() as manager:
                    return _restore_step(manager, step, state, self._about)
            except _OtherRunError as error:
                raise ValueError(
                    f"checkpoint {step} in {self._directory} {error}, or start a new "
                    "run in another directory"
                ) from None
            except Exception as error:  # Orbax has no exception class for damage
                reason, causes = damage(error), causes_of(error)
                if reason is None and isinstance(error, MemoryError | RuntimeError):
                    raise
                if reason is None:  # one line in place of Orbax's and TensorStore's
                    message = (
                        f"checkpoint {step} cannot be read and is left as it is "
                        f"({first_line(causes[-1])}): remove the cause and repeat the "
                        f"command, or move {self._directory / str(step)} away to "
                        "continue from the checkpoint before it"
                    )
                    number = next(filter(None, map(system_error_number, causes)), None)
                    if number is None:
                        raise ValueError(message) from error
                    raise OSError(number, message, str(self._directory)) from error
            with raise_on_all_processes(), store_errors(self._directory):
                if is_first_process():
                    # An object store renames file by file; what remains under the old
                    # name is damaged too.
                    aside = self._directory / f"{step}.damaged"
                    while aside.exists():
                        aside = aside.with_name(f"{aside.name}+")
                    (self._directory / str(step)).rename(aside)
                    report(
                        f"checkpoint {step} is damaged and was set aside as "
                        f"{aside.name}: {reason}"
                    )
        if steps or any(self._directory.glob("*.damaged*")):
            raise ValueError(
                f"none of the checkpoints in {self._directory} can be read; "
                "start a new run in another directory"
            )
        return None

    def wait(self) -> None:
        """Waits until the last save is complete.

        Raises:
            OSError: it cannot be written; earlier checkpoints are complete.
        """
        with disk_errors(self._directory), self._using_manager() as manager:
            manager.wait_until_finished()

    @contextlib.contextmanager
    def _using_manager(self) -> Iterator["_Manager"]:
        """A context with Orbax's manager, after the save in progress.

        After a failure the next context creates a new manager: the old one may list an
        unfinished checkpoint and miss earlier ones.
        """
        if self._manager is not None and (watcher := self._manager.watcher):
            # The save is complete in all processes, or has failed in one: Orbax would
            # let the other processes wait for minutes.
            while True:
                is_over, failure = not watcher.is_alive(), self._manager.failure
                has_failed, is_saving = in_any(failure is not None), in_any(not is_over)
                if has_failed or not is_saving:
                    break
                watcher.join(_POLL_SECONDS)
            self._manager.watcher = None
            if jax.process_count() == 1:
                watcher.join()
            elif has_failed:
                self._manager = None  # without waiting for its threads
                with raise_save_error_on_all_processes(), disk_errors(self._directory):
                    if failure is not None:
                        raise failure
        with suppress_orbax_messages():
            try:
                if self._manager is None:
                    self._manager = _Manager(self._directory, self._keep)
                yield self._manager
            except BaseException:
                manager, self._manager = self._manager, None
                if manager is not None and jax.process_count() == 1:
                    with contextlib.suppress(Exception):  # the failure is raised
                        manager.close()
                raise

    def _end_replacements(self) -> None:
        """Removes replaced checkpoints, or renames them back if the new one is not
        complete."""
        for aside in self._directory.glob(f"*{_REPLACED}"):
            path = self._directory / aside.name.removesuffix(_REPLACED)
            if path.exists():
                epath.Path(aside).rmtree()
            else:
                aside.rename(path)


class _Manager(ocp.CheckpointManager):
    """Orbax's manager, which keeps the newest checkpoints and the best one.

    failure: exception of the last save; None if it did not fail.
    watcher: thread that waits for the save in progress, if any.
    """

    failure: Exception | None = None
    watcher: threading.Thread | None = None

    def __init__(self, directory: Directory, keep: int):
        policies = checkpoint_managers.preservation_policy
        newest = policies.LatestN(keep)
        best = policies.BestN(
            get_metric_fn=_merit, n=1, keep_checkpoints_without_metrics=False
        )
        super().__init__(
            directory,
            options=ocp.CheckpointManagerOptions(
                best_fn=_merit,  # without it Orbax writes no metrics
                preservation_policy=policies.AnyPreservationPolicy([newest, best]),
                cleanup_tmp_directories=True,
            ),
        )

    def _wait_for_checkpointers(self) -> None:
        # After a failure Orbax's own thread waits for the threads of other processes.
        try:
            super()._wait_for_checkpointers()
        except Exception as error:
            self.failure = error
            raise


def _restore_step(
    manager: ocp.CheckpointManager, step: int, state: Any, about: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    values = manager.restore(
        step, args=ocp.args.Composite(progress=ocp.args.JsonRestore())
    )["progress"]
    names = (*about, "structure", "digest", "progress_digest")
    saved = {name: values.pop(name, None) for name in names}
    if saved["format"] is None:
        raise DamageError("its format is missing")
    if saved["format"] != about["format"]:
        raise _OtherRunError(
            f"has format {saved['format']!r}; this version of azjax reads format "
            f"{about['format']}: finish the run with the version that started it"
        )
    if saved["run"] != about["run"]:
        raise _OtherRunError("is of another run than config.json: move it away")
    if json_digest(values) != saved["progress_digest"]:
        raise DamageError("the digest of its progress is wrong")
    if values.get("iteration") != step:
        raise DamageError("its name is not its iteration")
    if saved["structure"] != structure(state):
        raise _OtherRunError(
            "has another network, optimizer or sampler: give the same `modules`, "
            "`optimizer` and `sampler` again"
        )
    restored = manager.restore(
        step, args=ocp.args.Composite(state=ocp.args.StandardRestore(state))
    )["state"]
    if (found := digest(restored)) != saved["digest"]:
        raise DamageError(f"the digest of its arrays is {found}, not {saved['digest']}")
    return restored, values


def _merit(metrics: Mapping[str, float]) -> float:
    return -metrics["mistakes"]


class _OtherRunError(Exception):
    """An intact checkpoint of another run or version."""


class DamageError(Exception):
    """A checkpoint whose content differs from what was saved."""


def damage(error: BaseException) -> str | None:
    """Returns the damage of a checkpoint's content that made a restore fail; None for
    every other cause, which may be temporary."""
    causes = causes_of(error)
    if any(isinstance(cause, MemoryError | OSError) for cause in causes):
        return None
    contents = (
        *(DamageError, json.JSONDecodeError, UnicodeDecodeError),
        RecursionError,  # JSON of many levels
    )
    for cause in causes:
        is_damage = isinstance(cause, contents) or any(
            text in str(cause) for text in _DAMAGE_TEXTS
        )
        if is_damage and not system_error_number(cause):
            return first_line(cause)
    return None


def causes_of(error: BaseException) -> list[BaseException]:
    """Returns an exception and its chain of causes, the root cause last."""
    causes, cause = [], error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes


def digest(state: Any) -> int:
    """Returns a CRC-32 checksum of all arrays in a pytree, with shapes and dtypes.

    It does not depend on the sharding, which may divide the first axis only.
    """
    value = 0
    for array in jax.tree.leaves(state):
        is_key = jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
        leaf = jax.random.key_data(array) if is_key else array
        value = zlib.crc32(f"{leaf.shape}{leaf.dtype}".encode(), value)
        value = zlib.crc32(_row_sums(leaf).tobytes(), value)
    return value


def _row_sums(leaf: Any) -> np.ndarray:
    """Returns `[L, bytes]` uint8: a checksum of each row along the first axis, or the
    row itself if it is one number."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        if leaf.is_fully_replicated:
            return _row_sums(leaf.addressable_data(0))
        shards = leaf.addressable_shards
        parts = [_row_sums(shard.data) for shard in shards]
        sums = np.zeros((len(leaf), *parts[0].shape[1:]), np.uint8)
        for shard, part in zip(shards, parts, strict=True):
            sums[shard.index[0]] = part
        # Each row is nonzero in one process only.
        return multihost_utils.process_allgather(sums).max(axis=0)
    array = np.ascontiguousarray(leaf)  # has at least one axis
    if array.ndim == 1:
        return array.view(np.uint8).reshape(len(array), -1)
    sums = np.array([zlib.crc32(row.view(np.uint8)) for row in array], np.uint32)
    return sums.view(np.uint8).reshape(len(array), -1)


def structure(state: Any) -> int:
    """Returns a CRC-32 checksum of the names, shapes and dtypes of all arrays."""
    leaves = [
        (jax.tree_util.keystr(path), leaf.shape, str(leaf.dtype))
        for path, leaf in jax.tree.leaves_with_path(state)
    ]
    return zlib.crc32(repr(leaves).encode())


def json_digest(values: Mapping[str, Any]) -> int:
    """Returns a CRC-32 checksum of JSON values."""
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())


@contextlib.contextmanager
def suppress_orbax_messages() -> Iterator[None]:
    """A context that suppresses messages of Orbax, TensorStore and asyncio about a
    failure that is raised; contexts of several threads may overlap.

    After a failure Orbax logs a traceback in each of its threads, and each unfinished
    coroutine and TensorStore operation prints another one when it is garbage collected.
    So the context lasts `PENDING_SECONDS` longer then, and what Orbax's threads release
    in that time is collected before it ends.
    """
    _Suppression.enter()
    try:
        yield
    except BaseException as error:
        # Collects the coroutines and futures that the tracebacks hold.
        for cause in causes_of(error):
            traceback.clear_frames(cause.__traceback__)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _UNAWAITED, RuntimeWarning)
            gc.collect()

        def collect_and_leave() -> None:
            gc.collect()
            _Suppression.leave()

        end = threading.Timer(PENDING_SECONDS, collect_and_leave)
        end.daemon = True
        end.start()
        raise
    _Suppression.leave()


class _Suppression:
    """The process-wide logging filters and unraisable hook, installed while a context
    is active."""

    _lock = threading.Lock()
    _contexts = 0
    _hook: Callable[[Any], object] | None = None

    @classmethod
    def enter(cls) -> None:
        with cls._lock:
            cls._contexts += 1
            if cls._contexts == 1:
                for name in _LOGGERS:
                    logging.getLogger(name).addFilter(_is_kept)
                cls._hook, sys.unraisablehook = sys.unraisablehook, cls._show

    @classmethod
    def leave(cls) -> None:
        with cls._lock:
            cls._contexts -= 1
            if cls._contexts == 0:
                for name in _LOGGERS:
                    logging.getLogger(name).removeFilter(_is_kept)
                if sys.unraisablehook == cls._show and cls._hook is not None:
                    sys.unraisablehook = cls._hook

    @classmethod
    def _show(cls, unraisable: Any) -> None:
        code = getattr(unraisable.object, "cr_code", None)
        is_coroutine = code is not None and "orbax" in code.co_filename
        is_operation = str(unraisable.exc_value) == "Event loop is closed"
        if not is_coroutine and not is_operation and cls._hook is not None:
            cls._hook(unraisable)


def _is_kept(record: logging.LogRecord) -> bool:
    text = record.pathname if record.name == "absl" else record.getMessage()
    return not any(word in text for word in _WORDS)

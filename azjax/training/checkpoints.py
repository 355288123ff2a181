"""Everything needed to go on exactly, saved so that a kill at any moment is survived.

A checkpoint is whole or not there (Orbax renames it into place, or in an object store
writes a last file into it), and carries a digest of its arrays, so that damage is
noticed.
"""

import contextlib
import itertools
import json
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from orbax.checkpoint import checkpoint_managers

from azjax.remote import Directory, resolved, store_errors
from azjax.training.distributed import (
    fails_together,
    fails_together_at_once,
    in_any,
    is_first,
)
from azjax.training.echoes import no_echoes
from azjax.training.run_directory import disk_errors, system_error_number

_LOOK_SECONDS = 0.1  # between two looks whether a save is over


class Checkpoints:
    """The checkpoints of a run; a context manager that waits for them at its end.

    directory: made if it is not there.
    keep: the newest ones that are kept, beside the best.
    version: of the layout of the state; checkpoints of another one are refused.
    """

    def __init__(self, directory: Directory, *, keep: int, version: int = 1):
        self._directory = resolved(directory)
        self._keep = keep
        self._version = version
        self._manager: _Manager | None = None
        self._watcher: _Watcher | None = None
        with disk_errors(self._directory):
            if is_first():
                self._forget_damaged_metrics()
            with self._using_manager():
                pass  # makes the directory

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Waits and lets go of the directory."""
        if exception[0] is not None and jax.process_count() > 1:
            self._abandon()  # the others may be elsewhere
        if self._manager is not None:
            with disk_errors(self._directory), self._using_manager() as manager:
                manager.close()
                self._manager = None

    def save(
        self, state: Any, progress: Mapping[str, Any], *, mistakes: float | None
    ) -> None:
        """Saves in the background, unless the checkpoint is there; `wait` for its end.

        Args:
            state: a pytree of arrays.
            progress: JSON values beside it; `iteration` names the checkpoint.
            mistakes: the rate by which the best checkpoint is chosen, if it is known.

        Raises:
            OSError: this or the last checkpoint cannot be written; those before it are
                whole.
        """
        with disk_errors(self._directory), self._using_manager() as manager:
            manager.wait_until_finished()
            if progress["iteration"] == manager.latest_step():
                return
            about = {
                "format": self._version,
                "structure": structure(state),
                "digest": digest(state),
                "progress_digest": _json_digest(progress),
            }
            manager.save(
                progress["iteration"],
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave(state),
                    progress=ocp.args.JsonSave({**progress, **about}),
                ),
                metrics=None if mistakes is None else {"mistakes": mistakes},
                force=True,
            )
            self._watcher = _Watcher(manager)
            self._watcher.start()

    def restore(
        self, state: Any, report: Callable[[str], None]
    ) -> tuple[Any, dict[str, Any]] | None:
        """Returns the newest checkpoint that is whole, as state and progress.

        Args:
            state: gives structure, shapes, dtypes and placement.
            report: is told of each checkpoint that cannot be used. It is set aside.

        Raises:
            ValueError: there are checkpoints and none can be used, or they are of
                another version, network or optimiser.
            OSError: a checkpoint cannot be read; it may be whole, and is left alone.
        """
        with store_errors(self._directory), self._using_manager() as manager:
            steps = sorted(manager.all_steps(), reverse=True)
        for step in steps:
            try:
                with self._using_manager() as manager:
                    return _restore_step(manager, step, state, self._version)
            except _OtherRunError as error:
                raise ValueError(
                    f"checkpoint {step} in {self._directory} {error}, or start in "
                    "another run directory"
                ) from None
            except Exception as error:  # Orbax has no common class for damage
                reason = _damage(error)
                if reason is None:
                    self._refuse_unread(step, error)
                    raise
            with fails_together(), store_errors(self._directory):
                if is_first():
                    aside = self._set_aside(step)
                    report(
                        f"checkpoint {step} is damaged and was set aside as "
                        f"{aside.name}: {reason}"
                    )
        if steps or any(self._directory.glob("*.damaged*")):
            raise ValueError(
                f"none of the checkpoints in {self._directory} can be read; "
                "start again in another run directory"
            )
        return None

    def wait(self) -> None:
        """Returns when what was saved is on the disk.

        Raises:
            OSError: it cannot be written; the checkpoints before it are whole.
        """
        with disk_errors(self._directory), self._using_manager() as manager:
            manager.wait_until_finished()

    @contextlib.contextmanager
    def _using_manager(self) -> Iterator["_Manager"]:
        """A context with Orbax's manager, after the save in progress. After a failure
        the next context makes another manager: this one may name a checkpoint that was
        never finished, and may have forgotten those before it."""
        self._settle()
        with no_echoes():
            try:
                if self._manager is None:
                    self._manager = _make_manager(self._directory, self._keep)
                yield self._manager
            except BaseException:
                manager = self._manager
                self._abandon()
                if manager is not None and jax.process_count() == 1:
                    with contextlib.suppress(Exception):  # the failure is raised
                        manager.close()
                raise

    def _settle(self) -> None:
        """Waits for the save in progress in all processes, or until it fails in one:
        there Orbax would let the others wait for it for minutes.

        Raises:
            LostSaveError: a process of several could not write its part.
        """
        watcher, self._watcher = self._watcher, None
        if watcher is None:
            return
        while True:
            is_over, failure = not watcher.is_alive(), watcher.failure
            has_failed, is_saving = in_any(failure is not None), in_any(not is_over)
            if has_failed or not is_saving:
                break
            watcher.join(_LOOK_SECONDS)
        if jax.process_count() == 1:
            watcher.join()
        elif has_failed:
            self._abandon()
            with fails_together_at_once(), disk_errors(self._directory):
                if failure is not None:
                    raise failure

    def _abandon(self) -> None:
        """Leaves a save that may never end to its threads."""
        self._manager = self._watcher = None

    def _refuse_unread(self, step: int, error: Exception) -> None:
        """Raises an error of one line in place of Orbax's and TensorStore's."""
        if isinstance(error, MemoryError | RuntimeError):
            return
        causes = _causes(error)
        message = (
            f"checkpoint {step} cannot be read and is left as it is "
            f"({_line(causes[-1])}): put that right and repeat the command, or move "
            f"{self._directory / str(step)} away to go on from the checkpoint before it"
        )
        number = next(filter(None, map(system_error_number, causes)), None)
        if number is not None:
            raise OSError(number, message, str(self._directory)) from error
        raise ValueError(message) from error

    def _forget_damaged_metrics(self) -> None:
        """Removes metrics that cannot be read, on which Orbax would give up."""
        for path in self._directory.glob("*/metrics/metrics"):
            try:
                _merit(json.loads(path.read_bytes()))
            except (ValueError, TypeError, LookupError):
                path.unlink()

    def _set_aside(self, step: int) -> Directory:
        """Renames a checkpoint, so that it is one no more; returns where it is. In an
        object store its files are renamed one by one; the rest stays damaged."""
        names = (f"{step}.damaged" + "+" * count for count in itertools.count())
        aside = next(
            path for name in names if not (path := self._directory / name).exists()
        )
        (self._directory / str(step)).rename(aside)
        return aside


class _Manager(ocp.CheckpointManager):
    """Orbax's manager, which tells at once why a save failed; after a failure Orbax's
    own thread waits for those of the other processes.

    failure: of the last save.
    """

    failure: Exception | None = None

    def _wait_for_checkpointers(self) -> None:
        try:
            super()._wait_for_checkpointers()
        except Exception as error:
            self.failure = error
            raise


def _make_manager(directory: Directory, keep: int) -> _Manager:
    policies = checkpoint_managers.preservation_policy
    return _Manager(
        directory,
        options=ocp.CheckpointManagerOptions(
            best_fn=_merit,  # without it the metrics are not written
            preservation_policy=policies.AnyPreservationPolicy(
                [
                    policies.LatestN(keep),
                    policies.BestN(
                        get_metric_fn=_merit,
                        n=1,
                        keep_checkpoints_without_metrics=False,
                    ),
                ]
            ),
            cleanup_tmp_directories=True,
        ),
    )


class _Watcher(threading.Thread):
    """Waits for a save, whose failure the next call raises in the thread that saves."""

    def __init__(self, manager: _Manager):
        super().__init__(daemon=jax.process_count() > 1)
        self._manager = manager

    @property
    def failure(self) -> Exception | None:
        """Why this process could not save, as soon as it is known."""
        return self._manager.failure

    def run(self) -> None:
        """Waits."""
        try:
            with no_echoes():
                self._manager.wait_until_finished()
        except Exception as error:
            self._manager.failure = self._manager.failure or error


def _restore_step(
    manager: ocp.CheckpointManager, step: int, state: Any, version: int
) -> tuple[Any, dict[str, Any]]:
    progress = manager.restore(
        step, args=ocp.args.Composite(progress=ocp.args.JsonRestore())
    )["progress"]
    if "format" not in progress:
        raise _DamageError("it does not say its format")
    saved_version = progress.pop("format")
    if saved_version != version:
        raise _OtherRunError(
            f"has format {saved_version!r}; this version of azjax reads format "
            f"{version}: finish the run with the version that began it"
        )
    saved_structure = progress.pop("structure", None)
    saved = progress.pop("digest", None), progress.pop("progress_digest", None)
    if _json_digest(progress) != saved[1]:
        raise _DamageError("its progress does not have the digest that was saved")
    if saved_structure != structure(state):
        raise _OtherRunError(
            "was written with another network, optimizer or sampler than the one "
            "given: give the same `parts`, `optimizer` and `sampler` again"
        )
    restored = manager.restore(
        step, args=ocp.args.Composite(state=ocp.args.StandardRestore(state))
    )["state"]
    found = digest(restored)
    if found != saved[0]:
        raise _DamageError(f"its arrays have digest {found}, not {saved[0]}")
    return restored, progress


def _merit(metrics: Mapping[str, float]) -> float:
    return -metrics["mistakes"]


class _OtherRunError(Exception):
    """A checkpoint that is whole, but not for this program."""


class _DamageError(Exception):
    """A checkpoint that does not hold what was saved."""


# What TensorStore says of a file that is cut short, or whose checksum is wrong.
_DAMAGE_TEXTS = ("DATA_LOSS: ", "OUT_OF_RANGE: ", "Error decoding ")


def _damage(error: BaseException) -> str | None:
    """Returns what is wrong with a checkpoint's content if that is why it could not be
    restored. None stands for every other failure, which may pass."""
    causes = _causes(error)
    if any(isinstance(cause, MemoryError | OSError) for cause in causes):
        return None
    contents = (_DamageError, json.JSONDecodeError, UnicodeDecodeError)
    for cause in causes:
        is_damage = isinstance(cause, contents) or any(
            text in str(cause) for text in _DAMAGE_TEXTS
        )
        if is_damage and not system_error_number(cause):
            return _line(cause)
    return None


def _causes(error: BaseException) -> list[BaseException]:
    """Returns an exception and those that led to it, the first one last."""
    causes, cause = [], error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes


def _line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def digest(state: Any) -> int:
    """Returns a checksum (CRC-32) of all arrays in a pytree, shapes and types too.

    It is the same however the arrays are sharded over devices and processes, along
    their first axis at most.
    """
    value = 0
    for leaf in jax.tree.leaves(state):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)  # noqa: PLW2901
        value = zlib.crc32(f"{leaf.shape}{leaf.dtype}".encode(), value)
        value = zlib.crc32(_row_sums(leaf).tobytes(), value)
    return value


def _row_sums(leaf: Any) -> np.ndarray:
    """Returns `[L, bytes]` uint8: of each row along the first axis a checksum, or the
    row itself where it is one number."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        if leaf.is_fully_replicated:
            return _row_sums(leaf.addressable_data(0))
        shards = leaf.addressable_shards
        parts = [_row_sums(shard.data) for shard in shards]
        sums = np.zeros((len(leaf), *parts[0].shape[1:]), np.uint8)
        for shard, part in zip(shards, parts, strict=True):
            sums[shard.index[0]] = part
        # Each row is in one process, and 0 in the others.
        return multihost_utils.process_allgather(sums).max(axis=0)
    array = np.atleast_1d(np.asarray(leaf))
    if array.ndim == 1:
        return array.view(np.uint8).reshape(len(array), -1)
    sums = np.array([zlib.crc32(row.tobytes()) for row in array], np.uint32)
    return sums.view(np.uint8).reshape(len(array), -1)


def structure(state: Any) -> int:
    """Returns a checksum (CRC-32) of the names, shapes and types of all arrays."""
    leaves = [
        (jax.tree_util.keystr(path), leaf.shape, str(leaf.dtype))
        for path, leaf in jax.tree.leaves_with_path(state)
    ]
    return zlib.crc32(repr(leaves).encode())


def _json_digest(values: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())

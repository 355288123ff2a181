"""Everything needed to go on exactly, saved so that a kill at any moment is survived.

A checkpoint is whole or not there (Orbax renames it into place), and carries a digest
of its arrays, so that damage is noticed.
"""

import itertools
import json
import logging
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint import checkpoint_managers

from azjax.training.run_directory import disk_errors

FORMAT = 2


class Checkpoints:
    """The checkpoints of a run; a context manager that waits for them at its end.

    directory: made if it is not there.
    keep: the newest ones that are kept, beside the best.
    """

    def __init__(self, directory: Path, *, keep: int):
        # Orbax logs the traceback of each failure in each of its threads; the failure
        # itself is raised.
        logging.getLogger("absl").setLevel(logging.CRITICAL)
        if not isinstance(sys.unraisablehook, _EchoFilter):
            sys.unraisablehook = _EchoFilter(sys.unraisablehook)
        self._directory = directory.resolve()
        self._forget_damaged_metrics()
        policies = checkpoint_managers.preservation_policy
        self._manager = ocp.CheckpointManager(
            self._directory,
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

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Waits and lets go of the directory."""
        with disk_errors(self._directory):
            self._manager.close()

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
        if progress["iteration"] == self._manager.latest_step():
            return
        about = {
            "format": FORMAT,
            "structure": structure(state),
            "digest": digest(state),
            "progress_digest": _json_digest(progress),
        }
        with disk_errors(self._directory):
            self._manager.save(
                progress["iteration"],
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave(state),
                    progress=ocp.args.JsonSave({**progress, **about}),
                ),
                metrics=None if mistakes is None else {"mistakes": mistakes},
                force=True,
            )

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
        """
        steps = sorted(self._manager.all_steps(), reverse=True)
        for step in steps:
            try:
                return self._restore_step(step, state)
            except _OtherRunError as error:
                raise ValueError(
                    f"checkpoint {step} in {self._directory} {error}, or start in "
                    "another run directory"
                ) from None
            except Exception as error:  # Orbax has no common class for damage
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            aside = self._set_aside(step)
            report(
                f"checkpoint {step} is damaged and was set aside as {aside.name}: "
                f"{reason}"
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
        with disk_errors(self._directory):
            self._manager.wait_until_finished()

    def _forget_damaged_metrics(self) -> None:
        """Removes metrics that cannot be read, on which Orbax would give up."""
        for path in self._directory.glob("*/metrics/metrics"):
            try:
                _merit(json.loads(path.read_bytes()))
            except (ValueError, TypeError, LookupError):
                path.unlink()

    def _set_aside(self, step: int) -> Path:
        """Renames a checkpoint, so that it is one no more; returns where it is."""
        names = (f"{step}.damaged" + "+" * count for count in itertools.count())
        aside = next(
            path for name in names if not (path := self._directory / name).exists()
        )
        (self._directory / str(step)).rename(aside)
        self._manager.reload()
        return aside

    def _restore_step(self, step: int, state: Any) -> tuple[Any, dict[str, Any]]:
        progress = self._manager.restore(
            step, args=ocp.args.Composite(progress=ocp.args.JsonRestore())
        )["progress"]
        saved_format = progress.pop("format")
        if saved_format != FORMAT:
            raise _OtherRunError(
                f"has format {saved_format!r}; this version of azjax reads format "
                f"{FORMAT}: finish the run with the version that began it"
            )
        if progress.pop("structure") != structure(state):
            raise _OtherRunError(
                "was written with another network or optimizer than the one given: "
                "give the same `parts` and `optimizer` again"
            )
        saved = progress.pop("digest"), progress.pop("progress_digest")
        restored = self._manager.restore(
            step,
            args=ocp.args.Composite(state=ocp.args.StandardRestore(state)),
        )["state"]
        found = digest(restored), _json_digest(progress)
        if found != saved:
            raise ValueError(f"its content has digests {found}, not {saved}")
        return restored, progress


def _merit(metrics: Mapping[str, float]) -> float:
    return -metrics["mistakes"]


class _OtherRunError(Exception):
    """A checkpoint that is whole, but not for this program."""


class _EchoFilter:
    """An unraisable hook that leaves out the echoes of a failure in Orbax.

    After the failure itself, which is raised, each of its unfinished coroutines, and
    each of TensorStore's unfinished operations, would print a traceback of its own.

    show: the hook for all else.
    """

    def __init__(self, show: Callable[[Any], object]):
        self._show = show

    def __call__(self, unraisable: Any) -> None:
        code = getattr(unraisable.object, "cr_code", None)
        is_coroutine = code is not None and "orbax" in code.co_filename
        is_operation = str(unraisable.exc_value) == "Event loop is closed"
        if not is_coroutine and not is_operation:
            self._show(unraisable)


def digest(state: Any) -> int:
    """Returns a checksum (CRC-32) of all arrays in a pytree, shapes and types too."""
    value = 0
    for leaf in jax.tree.leaves(state):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)  # noqa: PLW2901
        array = np.asarray(leaf)
        value = zlib.crc32(f"{array.shape}{array.dtype}".encode(), value)
        value = zlib.crc32(array.tobytes(), value)
    return value


def structure(state: Any) -> int:
    """Returns a checksum (CRC-32) of the names, shapes and types of all arrays."""
    leaves = [
        (jax.tree_util.keystr(path), leaf.shape, str(leaf.dtype))
        for path, leaf in jax.tree.leaves_with_path(state)
    ]
    return zlib.crc32(repr(leaves).encode())


def _json_digest(values: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())

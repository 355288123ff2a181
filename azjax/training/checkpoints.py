"""Everything needed to go on exactly, saved so that a kill at any moment is survived.

A checkpoint is whole or not there (Orbax renames it into place), and carries a digest
of its arrays, so that damage is noticed.
"""

import logging
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint import checkpoint_managers

FORMAT = 1


class Checkpoints:
    """The checkpoints of a run.

    directory: made if it is not there.
    keep: the newest ones that are kept, beside the best.
    """

    def __init__(self, directory: Path, *, keep: int):
        logging.getLogger("absl").setLevel(logging.ERROR)
        policies = checkpoint_managers.preservation_policy
        self._manager = ocp.CheckpointManager(
            directory.resolve(),
            options=ocp.CheckpointManagerOptions(
                preservation_policy=policies.AnyPreservationPolicy(
                    [
                        policies.LatestN(keep),
                        policies.BestN(
                            get_metric_fn=lambda metrics: -metrics["mistakes"],
                            n=1,
                            keep_checkpoints_without_metrics=False,
                        ),
                    ]
                ),
                cleanup_tmp_directories=True,
            ),
        )

    def save(
        self, state: Any, progress: Mapping[str, Any], *, mistakes: float | None
    ) -> None:
        """Saves in the background; `wait` for the end of it.

        Args:
            state: a pytree of arrays.
            progress: numbers beside it; `iteration` names the checkpoint.
            mistakes: the rate by which the best checkpoint is chosen, if it is known.
        """
        self._manager.save(
            progress["iteration"],
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(state),
                progress=ocp.args.JsonSave(
                    dict(progress) | {"format": FORMAT, "digest": digest(state)}
                ),
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
            ValueError: there are checkpoints and none can be used.
        """
        steps = sorted(self._manager.all_steps(), reverse=True)
        for step in steps:
            try:
                return self._restore_step(step, state)
            except _OtherVersionError as error:
                raise ValueError(str(error)) from None
            except Exception as error:  # Orbax has no common class for damage
                reason = str(error).strip().splitlines() or [type(error).__name__]
                report(
                    f"checkpoint {step} is damaged and was set aside as "
                    f"{step}.damaged: {reason[0]}"
                )
                directory = Path(self._manager.directory)
                (directory / str(step)).rename(directory / f"{step}.damaged")
                self._manager.reload()
        if steps:
            raise ValueError(
                f"none of the checkpoints in {self._manager.directory} can be read; "
                "start again in another run directory"
            )
        return None

    def wait(self) -> None:
        """Returns when what was saved is on the disk."""
        self._manager.wait_until_finished()

    def close(self) -> None:
        """Waits and lets go of the directory."""
        self._manager.close()

    def _restore_step(self, step: int, state: Any) -> tuple[Any, dict[str, Any]]:
        progress = self._manager.restore(
            step, args=ocp.args.Composite(progress=ocp.args.JsonRestore())
        )["progress"]
        if progress.get("format") != FORMAT:
            raise _OtherVersionError(
                f"checkpoint {step} has format {progress.get('format')!r}; this "
                f"version of azjax reads format {FORMAT}: finish the run with the "
                "version that began it, or start in another run directory"
            )
        restored = self._manager.restore(
            step,
            args=ocp.args.Composite(state=ocp.args.StandardRestore(state)),
        )["state"]
        found = digest(restored)
        if found != progress["digest"]:
            raise ValueError(f"its arrays have digest {found}, not the one saved")
        return restored, progress


class _OtherVersionError(Exception):
    """A checkpoint of another version."""


def digest(state: Any) -> int:
    """Returns a checksum (CRC-32) of all arrays in a pytree, shapes and types too."""
    value = 0
    for leaf in jax.tree.leaves(state):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)  # noqa: PLW2901
        array = np.asarray(leaf)
        value = zlib.crc32(f"{array.shape}{array.dtype}".encode(), value)
        value = zlib.crc32(np.ascontiguousarray(array), value)
    return value

"""The local directory of a run's files, from which a remote run directory is
updated."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from azjax.remote import Directory, open_regular, store_errors
from azjax.training.metrics import MAX_METRICS_BYTES, METRICS_FILE
from azjax.training.sinks import MAX_STATE_BYTES, STATE_FILES


class WorkingDirectory:
    """A local directory with files of a run.

    path: the local directory.
    directory: the run directory; equal to `path` unless it is remote.
    """

    def __init__(self, path: Path, directory: Directory | None = None):
        self.path = path
        self.directory = directory or path
        self._published: dict[str, tuple[int, int]] = {}

    def fetch(self, name: str, most: int) -> None:
        """Copies a file of at most `most` bytes to the local directory, if it exists.

        Raises:
            OSError: it cannot be read.
        """
        with contextlib.suppress(FileNotFoundError):
            with open_regular(self.directory / name, most) as file:
                (self.path / name).parent.mkdir(exist_ok=True)
                (self.path / name).write_bytes(file.read())
            self._published[name] = _version(self.path / name)

    def changed(self, *names: str) -> list[str]:
        """Returns the files that differ from those of the run directory.

        Args:
            *names: files and directories to compare; by default all.
        """
        if self.path == self.directory:
            return []
        files = (path for path in sorted(self.path.rglob("*")) if path.is_file())
        paths = {path.relative_to(self.path).as_posix(): path for path in files}
        return [
            name
            for name, path in paths.items()
            if _version(path) != self._published.get(name)
            and (not names or name.split("/")[0] in names)
            and not path.name.startswith(".")  # unfinished
        ]

    def publish(self, *names: str) -> None:
        """Copies changed files to a remote run directory, each one atomically.

        Args:
            *names: files and directories to copy; by default all.

        Raises:
            OSError: it cannot be written.
        """
        for name in self.changed(*names):
            path, target = self.path / name, self.directory / name
            version = _version(path)
            with store_errors(self.directory):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
            self._published[name] = version


@contextlib.contextmanager
def working_directory(directory: Directory) -> Iterator[WorkingDirectory]:
    """A context with the directory in which a run writes.

    For a remote run directory it is a temporary directory with the run's metrics and
    the ids of its runs in services. At the end changed files are copied and the
    temporary directory is removed; if that fails, the files stay and a line on the
    standard error names them.

    Raises:
        OSError: the metrics cannot be read.
    """
    if isinstance(directory, Path):
        yield WorkingDirectory(directory)
        return
    path = Path(tempfile.mkdtemp(prefix="azjax-"))
    working = WorkingDirectory(path, directory)
    try:
        working.fetch(METRICS_FILE, MAX_METRICS_BYTES)
        for name in STATE_FILES:
            working.fetch(name, MAX_STATE_BYTES)
        yield working
    finally:
        try:
            working.publish()
        except OSError as error:
            names = ", ".join(working.changed())
            text = f"not copied to {directory}, still in {path} ({error}): {names}"
            with contextlib.suppress(OSError):  # the log's disk may be full
                print(f"azjax: {text}", file=sys.stderr, flush=True)
        else:
            shutil.rmtree(path)


def _version(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_mtime_ns, about.st_size

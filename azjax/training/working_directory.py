"""Where a run writes its metrics, plots and player: its directory, or for a remote one
a local directory from which they are copied."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from azjax.players.serialization import CONFIG_FILE
from azjax.players.weights import open_regular
from azjax.remote import Directory, store_errors
from azjax.training.metrics import MAX_METRICS_BYTES, METRICS_FILE


class WorkingDirectory:
    """A local directory with files of a run.

    path: where they are written.
    directory: the run directory; the same one unless it is remote.
    """

    def __init__(self, path: Path, directory: Directory | None = None):
        self.path = path
        self.directory = directory or path
        self._published: dict[str, tuple[int, int]] = {}

    def fetch(self, name: str, most: int) -> None:
        """Copies a file of at most so many bytes here, if there is one.

        Raises:
            OSError: it cannot be read.
        """
        with contextlib.suppress(FileNotFoundError):
            with open_regular(self.directory / name, most) as file:
                (self.path / name).write_bytes(file.read())
            self._published[name] = _version(self.path / name)

    def changed(self, *names: str) -> list[str]:
        """Returns the files that are not in the run directory as they are here.

        Args:
            *names: of files and directories of files; by default all.
        """
        if self.path == self.directory:
            return []
        files = (path for path in sorted(self.path.rglob("*")) if path.is_file())
        found = {path.relative_to(self.path).as_posix(): path for path in files}
        wanted = [
            name
            for name, path in found.items()
            if _version(path) != self._published.get(name)
            and (not names or name.split("/")[0] in names)
            and not path.name.startswith(".")  # not finished
        ]
        # A player is read by its settings: they come after its weights.
        return sorted(wanted, key=lambda name: name.endswith(f"/{CONFIG_FILE}"))

    def publish(self, *names: str) -> None:
        """Copies what changed to a remote run directory, each file as a whole.

        Args:
            *names: of files and directories of files; by default all.

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
    """A context with the directory in which a run writes. For a remote one it is a
    temporary one, with the metrics of the run. At the end of the context what changed
    is copied and the temporary directory removed; what cannot be copied stays there,
    and a line on the standard error says so.

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
        yield working
    finally:
        try:
            working.publish()
        except OSError as error:
            names = ", ".join(working.changed())
            _warn(f"in {path} stays what {directory} did not take ({error}): {names}")
        else:
            shutil.rmtree(path)


def _warn(text: str) -> None:
    with contextlib.suppress(OSError):  # a log's disk may be full
        print(f"azjax: {text}", file=sys.stderr, flush=True)


def _version(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_mtime_ns, about.st_size

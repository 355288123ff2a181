"""The run directory: made, checked against the configuration, written atomically."""

import json
from pathlib import Path
from typing import Any

from azjax.training.config import TrainConfig

FORMAT = 1
CONFIG_FILE = "config.json"


def open_run_directory(config: TrainConfig) -> Path:
    """Makes the directory of a new run, or checks that of one that goes on.

    Raises:
        ValueError: another run is in it, or something that is no run.
        OSError: it cannot be written.
    """
    directory = config.directory
    file = directory / CONFIG_FILE
    wanted = {"format": FORMAT, **_as_json(config)}
    if file.exists():
        found = read_config(directory)
        differences = _differences(found, wanted)
        if differences:
            raise ValueError(
                f"{directory} holds a run with another configuration "
                f"({'; '.join(differences)}): give the same one to go on, or another "
                "--run-dir"
            )
        # Find out now, and not after the first chunk, that nothing can be saved.
        _write(directory / f".{CONFIG_FILE}", file.read_text())
        (directory / f".{CONFIG_FILE}").unlink()
        return directory
    if directory.exists() and any(directory.iterdir()):
        raise ValueError(
            f"{directory} is not empty and holds no run: give another --run-dir"
        )
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / f".{CONFIG_FILE}"
    _write(partial, json.dumps(wanted, indent=2) + "\n")
    partial.replace(file)
    return directory


def read_config(directory: Path) -> dict[str, Any]:
    """Returns what `config.json` says.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        found = json.loads((directory / CONFIG_FILE).read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{directory / CONFIG_FILE} is damaged: {error}; give another --run-dir"
        ) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        version = found.get("format") if isinstance(found, dict) else None
        raise ValueError(
            f"{directory} holds a run of format {version!r}; this version of azjax "
            f"goes on with format {FORMAT}: give another --run-dir"
        )
    return found


def _as_json(config: TrainConfig) -> dict[str, Any]:
    """Returns the configuration as JSON would give it back; a run directory that was
    moved or is reached by another path is still the same run."""
    values = json.loads(json.dumps(config.to_json()))
    del values["run_dir"]
    return values


def _differences(
    found: dict[str, Any], wanted: dict[str, Any], prefix: str = ""
) -> list[str]:
    differences = []
    for key in [*wanted, *(key for key in found if key not in wanted)]:
        old, new = found.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            differences += _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            differences.append(f"{prefix}{key} was {old}, is {new}")
    return differences


def _write(path: Path, text: str) -> None:
    path.write_text(text)

"""The command line with only the modules and signals of Windows."""

import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys

import like_windows
import pytest

import azjax

TESTS = pathlib.Path(__file__).parent
ROOT = pathlib.Path(azjax.__file__).parent
FILES = [
    "test_modules.py::test_every_module_can_be_imported",
    "test_cli.py",
    "commands/test_gtp.py",
    *(
        f"play/screen/test_app.py::test_{name}"
        for name in (
            "a_game_is_played_by_typing_and_wrong_lines_are_explained",
            "a_saved_game_is_shown_from_the_start",
            "the_user_can_quit",
        )
    ),
]
# They start programs, which the plugin does not affect.
ELSEWHERE = "are_imported or is_imported or help_imports or without_importing"
HIDDEN = "|".join(["os", "signal", *like_windows.ABSENT])


@pytest.fixture
def load(monkeypatch):
    """Returns a function that executes a module of azjax again, as on Windows."""
    like_windows.hide(monkeypatch)

    def load_path(path):
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load_path


def test_modules_can_be_executed_with_the_modules_of_windows(load):
    uses_them = re.compile(rf"^\s*(import|from) ({HIDDEN})\b", re.MULTILINE)
    paths = [p for p in ROOT.rglob("*.py") if uses_them.search(p.read_text())]
    assert ROOT / "training/run/directory.py" in paths
    for path in paths:
        load(path)


def test_modules_do_without_what_windows_lacks(load, tmp_path, capsys):
    cli = load(ROOT / "cli.py")
    assert cli.ending_signals() == (signal.SIGTERM,)
    cli.main(["games"])
    assert "tic_tac_toe" in capsys.readouterr().out
    module = load(ROOT / "training/run/directory.py")
    assert module.fcntl is None
    with module.locked(tmp_path), module.locked(tmp_path):  # without a lock
        pass
    load(ROOT / "play/server/running.py").raise_file_limit(10)


@pytest.mark.slow
def test_the_command_line_works_with_the_modules_of_windows():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-q", "-plike_windows"]
        + [f"-knot ({ELSEWHERE} or evaluate or positions)"]
        + [str(TESTS / file) for file in FILES],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""The command line with only the modules and signals of Windows."""

import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parent
FILES = [
    "test_modules.py",
    "test_cli.py",
    "commands/test_gtp.py",
    "play/screen/test_app.py",
]
WITHOUT_TRAINING = (
    "listed or in_one_line or help_shows or be_made or something "
    "or signal or ctrl or by_typing or gtp or can_be_imported"
)
# They start programs, which the plugin does not affect.
ELSEWHERE = "are_imported or is_imported or help_imports"


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(WITHOUT_TRAINING, id="no training"),
        pytest.param(
            f"not ({WITHOUT_TRAINING})", id="other tests", marks=pytest.mark.slow
        ),
    ],
)
def test_the_command_line_works_with_the_modules_of_windows(chosen):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-q", "-plike_windows"]
        + [f"-k({chosen}) and not ({ELSEWHERE})"]
        + [str(TESTS / file) for file in FILES],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

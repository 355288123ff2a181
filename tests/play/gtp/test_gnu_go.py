"""Games between `azjax gtp` and GNU Go, by the program that plays many of them."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[3] / "experiments" / "verify_gtp.py"
PATH = f"{os.environ['PATH']}{os.pathsep}/usr/games"


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("gnugo", path=PATH) is None, reason="GNU Go is not installed"
)
@pytest.mark.parametrize("player", ["random", "gtp:gnugo --mode gtp --never-resign"])
def test_gnu_go_and_we_play_by_the_same_rules(player):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--games", "2", "--player", player],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": PATH},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seats, match = done.stdout.splitlines()
    assert seats.startswith("seats: 2 games")
    assert match.startswith("match: 2 games")
    assert match.endswith("disagreements 0")

"""The commands in the README and the guides have options that exist."""

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from quick_compilation import FEW_OPTIMIZATIONS

from azjax import cli
from azjax.commands.parsing import bind, parse_known
from azjax.commands.plan import PlanOptions
from azjax.commands.train import Processes, parse_train_config

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "devices.md").read_text()
BLOCKS = re.findall(r"```(?:sh|yaml)\n(.*?)```", GUIDE, re.DOTALL)
STARTS = r"(?:azjax (?:train|plan)|python experiments/connect4\.py)"
COMMANDS = re.findall(
    rf"{STARTS}[^\n;&>|`]*", "\n".join(BLOCKS).replace("\\\n", " ")
) + re.findall(rf"`({STARTS} [^`]*)`", GUIDE)
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
WRITTEN = [  # in blocks of commands of all pages, without their comments
    re.split(r"\s{2,}|\s[#&]", line)[0]
    for page in PAGES
    for block in re.findall(r"```(?:sh)?\n(.*?)```", page.read_text(), re.DOTALL)
    for line in re.sub(r"\s*\\\n\s*", " ", block).splitlines()
    if line.startswith("azjax ")
]
SMALLER = r"""\1 8 --evaluation.num-simulations 2 --evaluation.num-games 8 \\
    --evaluation.opponents --network.trunk.width 16 --network.trunk.num-blocks 1 \\
    --network.trunk.stem-channels 8 --replay.capacity 4096 \\
    --replay.min-window 2048"""
LOCAL = GUIDE[GUIDE.index("## Try it") : GUIDE.index("## One machine with")]


def check(command):
    """Raises an error if a command has an invalid option or value."""
    program, kind, *options = shlex.split(command)
    if program == "python":
        kind, options = "train", ["connect_four", *options]
    if kind in ("train", "plan"):
        own = PlanOptions if kind == "plan" else Processes
        game, *options = options
        _, rest = parse_known(own, options, prog="azjax")
        parse_train_config(game, rest, prog="azjax")
    elif kind not in cli.WITH_SETTINGS:
        name = kind.replace("-", "_")
        module = importlib.import_module(f"azjax.commands.{name}")
        bind(getattr(module, f"{name}_command"), options, prog="azjax")


def test_the_pages_have_their_commands():
    assert len(COMMANDS) >= 12
    assert sum("--distributed" in command for command in COMMANDS) >= 6
    assert len(WRITTEN) >= 20


@pytest.mark.parametrize("command", sorted({*WRITTEN, *map(str.strip, COMMANDS)}))
def test_the_commands_of_the_pages_have_options_that_exist(command):
    check(command.replace("GAME", "tic_tac_toe"))


def test_an_option_that_does_not_exist_is_found():
    with pytest.raises(ValueError, match="--process-ids"):
        check("azjax train tic_tac_toe --process-ids 0")


@pytest.mark.slow
def test_the_commands_for_one_machine_work_as_described(tmp_path):
    """Two processes continue the run of one, and one continues theirs until SIGTERM."""
    program = tmp_path / "bin" / "azjax"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m azjax "$@"\n')
    program.chmod(0o755)
    script = "\n".join(re.findall(r"```sh\n(.*?)```", LOCAL, re.DOTALL))
    flags = rf"export XLA_FLAGS='{FEW_OPTIMIZATIONS} \1'"
    script, count = re.subn(r"export XLA_FLAGS=(\S*)", flags, script)
    script, is_smaller = re.subn(r"(--evaluation.num-positions) 100", SMALLER, script)
    assert (count, is_smaller) == (3, 1)
    result = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=os.environ
        | {"PATH": f"{program.parent}:{os.environ['PATH']}", "NPROC": "4"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert result.stdout.splitlines()[-1] == "status 75", result
    assert "continuing after iteration 5" in result.stdout

"""The fake engines, and what the tests see of their processes."""

import os
import pathlib
import shlex
import sys
import time


def command(protocol, behavior="good", log=os.devnull):
    """Returns a command that starts `gtp_engine.py` or `uci_engine.py`."""
    engine = pathlib.Path(__file__).with_name(f"{protocol}_engine.py")
    return shlex.join([sys.executable, "-ISs", str(engine), behavior, str(log)])


def started(log):
    """Returns the process ids of the engines that were started with a log."""
    return list(map(int, pathlib.Path(f"{log}.pids").read_text().split()))


def exists(pid):
    """Returns whether a process runs and, where /proc tells it, is not a zombie."""
    if pathlib.Path("/proc/self/stat").exists():
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return False
        return state.rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition):
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)

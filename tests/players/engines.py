"""The fake engines, what the tests see of their processes, and games with engines."""

import functools
import os
import pathlib
import shlex
import sys
import time

import numpy as np

from azjax.games.host import first_state, legal_actions, next_state


def position(game, actions):
    """Returns the position after actions."""
    step = functools.partial(next_state, game)
    return functools.reduce(step, actions, first_state(game))


def play_random(player, game):
    """Plays a game in which the second player moves at random; closes the player.

    Returns the actions and the last position.
    """
    session, state, actions = player.start_session(game, 3), first_state(game), []
    draw = np.random.default_rng(0).choice
    while not state.terminated:
        if state.current_player == 0:
            action = session.choose(state, actions).action
        else:
            action = int(draw(legal_actions(game, state)))
        state = next_state(game, state, action)
        actions.append(action)
    session.close()
    player.close()
    return actions, state


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

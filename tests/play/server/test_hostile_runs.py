"""Run directories with malicious content, and a valid one."""

import contextlib
import fcntl
import json
import os
import pickle
import shutil
import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import safetensors.numpy
from starlette.testclient import TestClient

from azjax import games
from azjax.play.server import PlayerRegistry, ServerLimits, make_catalog
from azjax.play.server.app import make_app
from azjax.players.serialization import pretrained_directory

URL = "http://localhost:8000"
PLAYER = "player/player.safetensors"
LOADING = 2**27  # bytes by which rejecting runs may increase the process's memory
GROWTH = 2**30  # and including the programs of all searches
LONG = "x" * 1_000_000
HUGE = "1" + "0" * 400

# Inserted into every text of a file: it must never be executed.
COMMAND = "gtp:sh -c 'touch owned' x"
OTHER_COMMANDS = ("$(touch owned)", "`touch owned`", "; touch owned", "os:system")

# Contents of a run's `config.json`, by the run's name.
CONFIGS = {
    "kind-command": json.dumps({"format": 10, "game": "go:size=5", "kind": COMMAND}),
    "game-command": json.dumps({"format": 10, "game": OTHER_COMMANDS[0]}),
    "game-huge": '{"format": 10, "game": "go:size=99999999"}',
    "game-options": json.dumps({"format": 10, "game": f"go:size={HUGE}"}),
    "lengths": (
        f'{{"format": 10, "game": "tic_tac_toe", "minutes": {HUGE}, "iterations": NaN}}'
    ),
}


def dense_player(**settings):
    return {"network": {"trunk": {"name": "dense", **settings}}}


# Replacements in the settings of a valid player, by the run's name.
PLAYERS = {
    "player-commands": {"game": COMMAND, "kind": OTHER_COMMANDS[1]},
    "player-kind": {"kind": COMMAND},
    "player-modules": {"has_custom_modules": True, "modules": OTHER_COMMANDS[3]},
    "player-lists": {name: [] for name in ("game", "options", "network", "seed")},
    "player-flat": {"network": {"width": 8}},
    "player-trunk": {"network": {"trunk": {"name": ["dense"]}}},
    "player-wide": dense_player(width=10**12, num_blocks=10**9),
    "player-tall": dense_player(width=8192, num_blocks=3),
    "player-types": dense_player(width="8", global_pooling="no"),
    "player-search": {
        "search": {"tree_reuse_nodes": 10**12, "value_scale": float("nan")}
    },
    "player-seed": {"seed": 10**400},
    "player-other-game": {"game": "connect_four"},
}

# Search settings of a run, by its name: the server must not apply them.
SEARCHES = {
    "search-kept": {"tree_reuse_nodes": 1_800_000},
}


class Bomb:
    """Executes a command when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch owned",)


def player_files(good):
    """Returns contents of the player's file, by the run's name, given a valid one."""
    length = int.from_bytes(good[:8], "little")
    config = json.loads(good[8 : 8 + length])["__metadata__"]["azjax"]
    arrays = safetensors.numpy.load(good)
    settings = {
        name: json.dumps(json.loads(config) | changes)
        for name, changes in PLAYERS.items()
    }
    search = json.loads(config)["search"]
    for name, changes in SEARCHES.items():
        settings[name] = json.dumps(json.loads(config) | {"search": search | changes})
    files = {name: player_file(text, arrays) for name, text in settings.items()}
    infinite = {name: array * np.float16(np.nan) for name, array in arrays.items()}
    pickled = pickle.dumps(Bomb())
    return files | {
        "weights-truncated": good[: len(good) // 2],
        "weights-none": b"",
        "weights-more": player_file(config, arrays | {"more": np.zeros(10**6)}),
        "weights-pickle": pickled,
        "weights-header": (2 * LOADING).to_bytes(8, "little") + good[8:],
        "weights-long": good[:8] + b" " * LOADING,
        "weights-nan": player_file(config, infinite),
    }


def player_file(config, arrays):
    return safetensors.numpy.save(arrays, metadata={"azjax": config})


def write_good_run(run):
    shutil.copytree(pretrained_directory(games.make("tic_tac_toe")), run / "player")
    (run / "config.json").write_text('{"format": 10, "game": "tic_tac_toe"}')


def write_hostile_runs(directory, good):
    """Writes many invalid runs; returns those with a broken player."""
    for name, content in CONFIGS.items():
        shutil.copytree(good, directory / name)
        (directory / name / "config.json").write_text(content)
    files = player_files((good / PLAYER).read_bytes())
    for name, content in files.items():
        shutil.copytree(good, directory / name)
        (directory / name / PLAYER).write_bytes(content)
    for name in ("a?temperature=nan&b", "n" * 200, "; touch owned", "line\nbreak"):
        shutil.copytree(good, directory / name)
    write_hostile_files(directory, good)
    return [name for name in files if name not in SEARCHES]


def write_hostile_files(directory, good):
    """Writes runs whose files are links, pipes, or larger than the disk."""
    secret = directory.parent / "secret"
    secret.write_bytes(b'{"game": "tic_tac_toe", "loss": 1, "kind": "a secret"}')
    names = ("config.json", PLAYER, "metrics.jsonl")
    for number, name in enumerate((*names, "plots/learning.png", ".lock")):
        for kind in ("link", "zero", "pipe", "sparse"):
            path = directory / f"{kind}-{number}" / name
            shutil.copytree(good, directory / f"{kind}-{number}")
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            if kind == "pipe":
                os.mkfifo(path)
            elif kind == "sparse":
                with path.open("wb") as file:
                    file.truncate(10**12)
            else:
                path.symlink_to(secret if kind == "link" else "/dev/zero")
    shutil.copytree(good, directory / "metrics")
    rows = [
        f'{{"iteration": {HUGE}, "seconds": 1e300, "games": [], "matches": 3}}',
        "[" * 100_000,
        json.dumps({f"score_{LONG[:100_000]}": 0.5, "matches": {COMMAND: {}}}),
    ]
    (directory / "metrics/metrics.jsonl").write_text("\n".join(rows))
    (directory / "loop").symlink_to("loop")


def memory(name):
    """Returns a field of this process's memory on Linux (bytes); 0 elsewhere."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return 1024 * int(line.split()[1])
    return 0


def forget_peak():
    """Resets Linux's record of the peak memory; returns the memory in use (bytes)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def listing(directory):
    return {
        path: path.lstat().st_mtime_ns for path in sorted(directory.parent.rglob("*"))
    }


@pytest.fixture
def processes():
    """Events of processes that are started during the test."""
    started, is_on = [], [True]

    def note(event, arguments):
        starts = event.startswith(("subprocess.", "os.exec", "os.spawn", "os.posix"))
        if is_on and (starts or event in ("os.fork", "os.system", "os.forkpty")):
            started.append((event, arguments))

    sys.addaudithook(note)  # cannot be removed, but records nothing after this test
    yield started
    is_on.clear()


class Requests:
    def __init__(self, socket):
        self.socket, self.id = socket, 0

    def __call__(self, method, **params):
        self.id += 1
        message = {"id": self.id, "method": method, "params": params}
        self.socket.send_json(message)
        while True:
            answer = self.socket.receive_json()
            if answer["id"] == self.id and answer["kind"] in ("answer", "error"):
                return answer["kind"], answer["value"]


@pytest.mark.slow
def test_hostile_runs_do_not_affect_a_valid_run(
    tmp_path, monkeypatch, processes, capsys
):
    directory = tmp_path / "runs"
    write_good_run(directory / "good")
    broken = write_hostile_runs(directory, directory / "good")
    assert len(list(directory.iterdir())) > 30
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")  # commands would write here
    before = listing(directory)
    at_work = (tmp_path / "secret").open()  # simulates a training process
    fcntl.flock(at_work, fcntl.LOCK_EX)
    used = forget_peak()

    catalog = make_catalog(["tic_tac_toe"], (), directory)
    app = make_app(PlayerRegistry(catalog, ServerLimits()), names=["localhost"])
    with TestClient(app, base_url=URL) as client:
        lobby = client.get("/lobby.json").json()
        shown = [run["key"] for run in lobby["runs"]]
        assert not set(shown) & (CONFIGS.keys() - {"lengths"})
        assert {"good", "metrics", "; touch owned"} <= set(shown)
        for page in ("/", "/play/tic_tac_toe/", "/play/tic_tac_toe/config.json"):
            assert client.get(page).status_code == 200
        for key in shown:
            for page in ("", "run.json"):
                answer = client.get(f"/runs/{quote(key, safe='')}/{page}")
                assert answer.status_code == 200
                assert "secret" not in answer.text
                assert '"learning"' not in answer.text
            plot = client.get(f"/runs/{quote(key, safe='')}/learning.png")
            assert plot.status_code == 404
        with client.websocket_connect("ws://localhost:8000/socket") as socket:
            ask = Requests(socket)
            for name in broken:
                for player in (f"network:runs/{name}", f"alphazero:runs/{name}"):
                    kind, told = ask("start", game="tic_tac_toe", player=player)
                    assert kind == "error"
                    assert told.endswith(f"(run {name}) cannot be loaded")
            assert memory("VmHWM") - used < LOADING
            players = [f"alphazero:runs/{name}" for name in SEARCHES]
            for player in ("network:runs/good", *players):
                assert ask("start", game="tic_tac_toe", player=player)[0] == "answer"
                kind, decision = ask("decide", actions=[], simulations=None)
                assert (kind, decision["action"] in range(9)) == ("answer", True)

    reported = capsys.readouterr().err.splitlines()
    assert len(reported) == 2 * len(broken)  # one line for each
    assert max(map(len, reported)) < 1000
    assert processes == []
    assert listing(directory) == before
    at_work.close()
    assert memory("VmHWM") - used < GROWTH

"""Writes what azjax does as text files, to compare two versions of its code.

    python experiments/freeze.py before            in one version
    python experiments/freeze.py after             in the other
    diff -r before after

Runs of 6 iterations (checkpoint, player, stored games, metrics, settings), the help of
each command, transcripts of the terminal, GTP, UCI and the server, and pictures. Times
and paths are left out.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import pyarrow.parquet as pq
from safetensors.numpy import load_file
from websockets.sync.client import connect
from websockets.typing import Origin

from azjax import games

AZJAX = (sys.executable, "-m", "azjax")
CHECKPOINT, SERVER_WAIT = 6, 60.0
SMALL = shlex.split(
    "--iterations 6 --self-play.num-games 16 --self-play.moves-per-chunk 8 "
    "--self-play.num-simulations 4 8 --replay.min-positions 256 "
    "--replay.capacity 16384 --replay.min-window 8192 --learner.batch-size 32 "
    "--evaluation.num-evaluations 2 --evaluation.num-positions 50 "
    "--evaluation.num-games 8 --evaluation.num-simulations 8"
)
DENSE = shlex.split("--network.trunk.width 16 --network.trunk.num-blocks 1")
RUNS: dict[str, tuple[str, ...]] = {
    "lines": ("connect_four", *DENSE),
    "lines_8_devices": ("connect_four", *DENSE),
    "exact_lanes": ("connect_four", *DENSE, "--exact-lanes"),
    "territory": (
        "go:5",
        *shlex.split(
            "--trunk conv --network.trunk.num-blocks 2 --network.trunk.channels 8 "
            "--learner.owners-weight 0.5"
        ),
    ),
    "sparse": ("chess", *DENSE, "--replay.policy-entries", "16"),
    "solver_reuse": (
        "hex:3",
        *DENSE,
        *shlex.split("--search.use-solver --search.tree-reuse-nodes 32"),
    ),
    "puct": ("tic_tac_toe", *DENSE, "--algorithm", "alphazero"),
    "fast": (
        "othello",
        *DENSE,
        *shlex.split(
            "--self-play.full-search-fraction 0.25 --self-play.fast-simulations 2"
        ),
    ),
    "stored": (
        "connect_four",
        *DENSE,
        *shlex.split("--learn-from lines --stored-fraction 0.5"),
    ),
    "from": ("connect_four", *DENSE, "--from", "lines"),
}
Q_RUN = shlex.split(
    "train-q tic_tac_toe --iterations 6 --evaluation.num-evaluations 2 "
    "--evaluation.num-positions 50 --evaluation.num-games 8"
)
COMMANDS = shlex.split(
    "games plan train sweep train-q evaluate compare data import-games reanalyze arena "
    "play review gtp uci export push pull serve"
)
ANSWERS: dict[str, tuple[str, ...]] = {
    "games": ("games",),
    "games_json": ("games", "othello"),
    "evaluate": ("evaluate", "lines", "--games", "8"),
    "evaluate_json": ("evaluate", "lines", "--json"),
    "compare_json": ("compare", "lines", "from", "--json"),
    "data": ("data", "lines", "SELECT count(*), sum(num_moves) FROM games"),
    "arena": (
        *shlex.split("arena tic_tac_toe random minimax:2 mcts:8 alphazero:puct"),
        *shlex.split("--games 8 --json"),
    ),
    "review": (
        "review",
        "moves.txt",
        "--game",
        "connect_four",
        "--player",
        "minimax:3",
    ),
    "unknown": ("train", "conect_four"),
    "bad_value": ("train", "connect_four", "--self-play.num-games", "0"),
    "other_settings": ("train", "connect_four", "--run-dir", "lines", "--seed", "5"),
    "no_game": ("play", "go:1"),
}
MAIN_GAMES = (
    "connect_four",
    "tic_tac_toe",
    "othello",
    "go:5",
    "hex:5",
    "breakthrough",
    "gomoku",
    "chess",
)
GTP = (
    "protocol_version\nname\nlist_commands\nboardsize 9\nboardsize 5\nclear_board\n"
    "komi 5.5\nplay b c3\ngenmove w\nshowboard\nundo\ngenmove w\nfinal_score\n"
    "play w z9\nfoo\nloadsgf /nowhere\nquit\n"
)
UCI = (
    "uci\nisready\nucinewgame\nposition startpos moves e2e4 e7e5\ngo nodes 16\n"
    "position fen 6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1\ngo nodes 32\nposition bad\nquit\n"
)
MESSAGES: tuple[dict[str, Any], ...] = (
    {"method": "start", "params": {"game": "connect_four", "player": "random"}},
    {"method": "position", "params": {"actions": []}},
    {"method": "position", "params": {"actions": [3, 3, 2]}},
    {"method": "replay", "params": {"actions": [3, 3, 2]}},
    {"method": "parse", "params": {"actions": [3], "text": "4"}},
    {"method": "parse", "params": {"actions": [3], "text": "9"}},
    {"method": "read", "params": {"text": "4 4 3"}},
    {"method": "decide", "params": {"actions": [3], "simulations": None}},
    {"method": "position", "params": {"actions": [9]}},
    {"method": "start", "params": {"game": "nothing", "player": "random"}},
    {"method": "start", "params": {"game": "connect_four"}},
    {"method": "nothing", "params": {}},
)
PAGES = ("lobby.json", "play/connect_four/config.json", "play/go/", "nothing", "")
PARTS = ("picture", "help", "run", "play")
_TIMES = re.compile(
    r"second|time|per_second|^date|started|version|duration|^run$", re.IGNORECASE
)


def digest(array: Any) -> str:
    """Returns shape, dtype and a hash of an array."""
    array = np.asarray(array)
    sha = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    return f"{array.shape} {array.dtype} {sha}"


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the leaves of nested dictionaries and lists with their paths."""
    if isinstance(tree, dict):
        for key in sorted(tree, key=str):
            yield from leaves(tree[key], f"{path}/{key}")
    elif isinstance(tree, list | tuple):
        for number, item in enumerate(tree):
            yield from leaves(item, f"{path}/{number}")
    elif tree is not None:
        yield path, tree


def without_times(value: Any) -> Any:
    """Removes what a clock or a version decides from JSON values."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if not _TIMES.search(k)}
    return [without_times(item) for item in value] if isinstance(value, list) else value


class Freezer:
    """Writes the texts of a version.

    out: the directory of the texts.
    work: the directory in which commands run.
    """

    def __init__(self, out: pathlib.Path, work: pathlib.Path):
        self.out, self.work = out, work
        out.mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        """Writes a text without the paths of this machine."""
        text = text.replace(str(self.work), "WORK").replace(sys.executable, "PYTHON")
        (self.out / f"{name}.txt").write_text(text.rstrip() + "\n")

    def call(self, args: Sequence[str], given: str = "", **env: str) -> str:
        """Returns status, output and messages of a command."""
        environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"} | env
        done = subprocess.run(
            (*AZJAX, *args),
            input=given,
            capture_output=True,
            text=True,
            cwd=self.work,
            env=environment,
            check=False,
        )
        return f"status {done.returncode}\n{done.stdout}\n--- messages\n{done.stderr}"

    def freeze_run(self, name: str, args: Sequence[str], devices: int) -> None:
        """Trains, and writes what the run directory has."""
        flags = f"--xla_force_host_platform_device_count={devices}"
        text = self.call((*args, "--run-dir", name), XLA_FLAGS=flags)
        if not text.startswith("status 0"):
            raise RuntimeError(f"{name}: {text}")
        run = self.work / name
        files = sorted(
            str(path.relative_to(run))
            for path in run.rglob("*")
            if path.is_file()
            and "checkpoints" not in path.parts
            and "tfevents" not in path.name
        )
        text = re.sub(r"[0-9]{6,}", "NUMBER", "\n".join(files))
        self.write(f"run_{name}_files", text)
        rows = [json.loads(line) for line in (run / "metrics.jsonl").open()]
        lines = [json.dumps(without_times(row), indent=0) for row in rows]
        self.write(f"run_{name}_metrics", "\n".join(lines))
        config = without_times(json.loads((run / "config.json").read_text()))
        self.write(f"run_{name}_config", json.dumps(config, indent=1))
        state = run / "checkpoints" / str(CHECKPOINT) / "state"
        with ocp.PyTreeCheckpointer() as checkpointer:
            tree = checkpointer.metadata(state).item_metadata.tree
            as_numpy = ocp.RestoreArgs(restore_type=np.ndarray)
            restore = jax.tree.map(lambda _: as_numpy, tree)
            arrays = checkpointer.restore(
                state, args=ocp.args.PyTreeRestore(restore_args=restore)
            )
        self.write(
            f"run_{name}_checkpoint",
            "\n".join(f"{path} {digest(leaf)}" for path, leaf in leaves(arrays)),
        )
        player = run / "player"
        weights = [load_file(path) for path in player.glob("*.safetensors")]
        digests = sorted(digest(leaf) for _, leaf in leaves(weights))
        self.write(f"run_{name}_player", "\n".join(digests))
        tables = [pq.read_table(path) for path in sorted(run.glob("games/*.parquet"))]
        self.write(
            f"run_{name}_games",
            "\n".join(
                f"{table.num_rows} {column} {table.schema.field(column).type} "
                + hashlib.sha256(
                    json.dumps(table[column].to_pylist(), default=str).encode()
                ).hexdigest()[:16]
                for table in tables
                for column in table.column_names
                if not _TIMES.search(column)
            ),
        )

    def freeze_server(self) -> None:
        """Writes answers of the server."""
        port = "18743"
        args = (*AZJAX, "serve", "--port", port, "--no-warm-up", "--runs", ".")
        server = subprocess.Popen(
            args, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            self.write(
                "server_pages", "\n".join(self._pages(f"http://127.0.0.1:{port}/"))
            )
            answers = []
            with connect(
                f"ws://127.0.0.1:{port}/socket",
                origin=Origin(f"http://127.0.0.1:{port}"),
            ) as socket:
                for number, message in enumerate(MESSAGES):
                    socket.send(json.dumps({"id": number, **message}))
                    while True:
                        answer = json.loads(socket.recv(timeout=SERVER_WAIT))
                        answers.append(json.dumps(without_times(answer), indent=1))
                        if answer.get("id") == number and not answer.get("partial"):
                            break
                socket.send("no json")
                answers.append(str(socket.recv(timeout=SERVER_WAIT)))
            self.write("server_messages", "\n".join(answers))
        finally:
            server.terminate()
            server.wait()

    def _pages(self, url: str) -> Iterator[str]:
        end = time.monotonic() + SERVER_WAIT
        while True:
            try:
                urllib.request.urlopen(url, timeout=SERVER_WAIT).close()
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        for page in PAGES:
            try:
                with urllib.request.urlopen(url + page, timeout=SERVER_WAIT) as answer:
                    kind, text = answer.headers["content-type"], answer.read().decode()
            except urllib.error.HTTPError as error:
                kind, text = str(error.code), error.read().decode()
            if "json" in kind:
                text = json.dumps(without_times(json.loads(text)), indent=1)
            yield f"== {page} {kind}\n{text}"


def pictures() -> Iterator[tuple[str, str]]:
    """Yields texts and pictures of positions of each game."""
    for name in MAIN_GAMES:
        game = games.make(name)
        state, action, rng = jax.jit(game.init)(), None, np.random.default_rng(3)
        step, mask = jax.jit(game.step), jax.jit(game.legal_action_mask)
        for _ in range(9):
            if state.terminated:
                break
            action = int(rng.choice(np.flatnonzero(mask(state))))
            state = step(state, action)
        policy = np.asarray(mask(state), np.float32)
        policy /= max(policy.sum(), 1)
        yield f"svg_{name}", game.to_svg(state, action, {"network": policy})
        yield f"text_{name}", game.to_text(state, action)


def main() -> None:
    """Reads options and writes the texts."""
    parser = argparse.ArgumentParser(description="Writes texts of what azjax does.")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=PARTS, choices=PARTS)
    options = parser.parse_args()

    def wants(part: str) -> bool:
        return part in options.only

    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        freezer = Freezer(options.out, work)
        if wants("picture"):
            for name, text in pictures():
                freezer.write(name.replace(":", "_"), text)
        if wants("help"):
            for command in COMMANDS:
                freezer.write(f"help_{command}", freezer.call((command, "--help")))
            for command in ("train", "plan", "train-q"):
                text = freezer.call((command, "connect_four", "--help"))
                freezer.write(f"help_{command}_game", text)
        if wants("run"):
            for name, args in RUNS.items():
                print(name, flush=True)
                number = 8 if name.endswith("8_devices") else 1
                freezer.freeze_run(name, ("train", *args, *SMALL), number)
            freezer.freeze_run("q", Q_RUN, 1)
            (work / "moves.txt").write_text("4 4 4 4 3 5 2\n")
            for name, args in ANSWERS.items():
                print(name, flush=True)
                text = re.sub(r'"seconds": [0-9.e-]+', "SECONDS", freezer.call(args))
                freezer.write(f"answer_{name}", re.sub(r"  +[0-9]+ s +", "", text))
        if wants("play"):
            player = "alphazero:pretrained?simulations=16"
            text = freezer.call(("gtp", "go:5", "--player", "mcts:16"), GTP)
            freezer.write("gtp_go", text)
            text = freezer.call(("gtp", "connect_four", "--player", player), GTP)
            freezer.write("gtp_connect_four", text)
            text = freezer.call(("uci", "chess", "--player", player), UCI)
            text = re.sub(r"\b(time|nps|ms) \d+|\d+ ms", "TIME", text)
            freezer.write("uci_chess", text)
            text = freezer.call(
                ("play", "connect_four", "--plain", "--opponent", "minimax:3"),
                "4\n4\nhint\nundo\n9\n1\nresign\n",
            )
            freezer.write("play_connect_four", text)
            freezer.freeze_server()


if __name__ == "__main__":
    main()

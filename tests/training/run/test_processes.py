import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import types
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from quick_compilation import devices_flags

from azjax.commands.train import join_if_asked
from azjax.data import GAMES
from azjax.program import STOPPED
from azjax.training.run import processes as distributed

SETTINGS = (
    "--exact-lanes",
    "--self-play.num-games=16",
    "--self-play.moves-per-chunk=8",
    "--self-play.num-simulations=2",
    "--replay.capacity=2048",
    "--replay.min-window=2048",
    "--replay.min-positions=256",
    "--network.trunk.width=16",
    "--network.trunk.num-blocks=1",
    "--network.trunk.stem-channels=8",
    "--evaluation.num-evaluations=1",
    "--evaluation.num-games=4",
    "--evaluation.num-positions=20",
    "--evaluation.num-simulations=2",
)
EVALUATION = Path(__file__).with_name("shared_evaluation.py")
SECONDS = ("seconds", "positions_per_second", "self_play_seconds", "update_seconds")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--coordinator here:1", "--process-id need --distributed"),
        ("--distributed --process-id 0", "must be given together"),
        (
            "--distributed --coordinator here --num-processes 2 --process-id 0",
            "--coordinator must be HOST:PORT: 'here'",
        ),
        (
            "--distributed --coordinator h:70000 --num-processes 2 --process-id 0",
            "--coordinator must be HOST:PORT: 'h:70000'",
        ),
        (
            "--distributed --coordinator h:1 --num-processes 2 --process-id 2",
            "--process-id must be from 0 to 1: 2",
        ),
        (
            "--distributed --coordinator h:1 --num-processes 0 --process-id 0",
            "--num-processes must be >= 1: 0",
        ),
    ],
)
def test_invalid_process_numbers_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        join_if_asked(arguments.split(), prog="azjax train hex")


def test_join_returns_the_other_arguments():
    left = join_if_asked(["--seed", "3"], prog="azjax train hex")
    assert list(left) == ["--seed", "3"]


def test_an_absent_coordinator_is_named(monkeypatch):
    monkeypatch.setattr(distributed, "START_SECONDS", 0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ValueError, match=f"no process answers .* {where}"):
            distributed.join_processes(where, 2, 1)


def test_collective_functions_are_local_with_one_process():
    assert distributed.broadcast_from_first_process([1.5, None]) == [1.5, None]
    assert distributed.in_any(True)
    assert not distributed.in_any(False)
    with pytest.raises(OSError, match="full"), distributed.raise_on_all_processes():
        raise OSError("full")


@pytest.fixture
def signals():
    return types.SimpleNamespace(stopping=False)


def test_a_signal_is_a_request(signals):
    stops = distributed.StopRequests(signals)
    assert not stops.is_requested()
    signals.stopping = True
    assert stops.is_requested()


def test_a_notice_of_the_preemption_service_is_stored(signals, monkeypatch):
    steps = []

    def reached(step):
        steps.append(step)
        return len(steps) == 3

    monkeypatch.setattr(
        distributed.multihost_utils, "reached_preemption_sync_point", reached
    )
    stops = distributed.StopRequests(signals)
    found = [stops.is_requested() for _ in range(5)]
    assert found == [False, False, True, True, True]
    assert steps == list(range(steps[0], steps[0] + 3))  # it requires all of them


def test_a_disabled_preemption_service_is_ignored(signals, monkeypatch):
    def reached(step):
        raise RuntimeError("has not been initialized")

    monkeypatch.setattr(
        distributed.multihost_utils, "reached_preemption_sync_point", reached
    )
    assert not distributed.StopRequests(signals).is_requested()


def test_work_is_interrupted_when_it_polls(signals):
    def work(poll):
        poll()
        signals.stopping = True
        poll()
        raise AssertionError("it goes on")

    assert distributed.StopRequests(signals).interrupting(work) is None


def test_work_that_is_done_is_kept(signals):
    def work(poll):
        poll()
        signals.stopping = True
        return "done"

    assert distributed.StopRequests(signals).interrupting(work) == "done"


def test_the_request_of_another_process_interrupts_work(signals, monkeypatch):
    monkeypatch.setattr(distributed, "in_any", lambda flag: True)
    assert distributed.StopRequests(signals).interrupting(lambda poll: poll()) is None


def test_several_processes_synchronize_only_at_common_points(signals, monkeypatch):
    monkeypatch.setattr(distributed.jax, "process_count", lambda: 2)
    monkeypatch.setattr(distributed, "in_any", lambda flag: True)
    stops = distributed.StopRequests(signals)
    assert stops.interrupting(lambda poll: [poll(alone=True)]) == [None]
    monkeypatch.setattr(distributed.jax, "process_count", lambda: 1)
    assert stops.interrupting(lambda poll: [poll(alone=True)]) is None


# An `azjax` that receives SIGTERM after joining the others, before the run begins.
PREEMPTED = """
import os, signal
from azjax.commands import train

join = train.join_processes

def join_and_be_preempted(*where):
    join(*where)
    os.kill(os.getpid(), signal.SIGTERM)

train.join_processes = join_and_be_preempted
from azjax import cli

cli.main()
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start(directory, number, changes, program=("-m", "azjax")):
    """Starts the processes of one run, with 4 devices together."""
    port = free_port()
    processes = []
    for index in range(number):
        command = [sys.executable, *program, "train", "tic_tac_toe", *SETTINGS]
        if number > 1:
            command += ["--distributed", "--coordinator", f"127.0.0.1:{port}"]
            command += ["--num-processes", str(number), "--process-id", str(index)]
        command += ["--run-dir", str(directory), *changes[index]]
        processes.append(
            subprocess.Popen(
                command,
                env=os.environ | {"XLA_FLAGS": devices_flags(4 // number)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return processes


def ended(processes):
    """Returns the exit statuses, and the last lines of each process's output."""
    try:
        said = [
            process.communicate(timeout=300)[0].splitlines() for process in processes
        ]
    finally:
        for process in processes:
            process.kill()
    lines = [
        [line for line in text if line and "peer ranks" not in line]  # interleaved
        for text in said
    ]
    return [process.returncode for process in processes], lines


def metrics(directory):
    rows = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
    return [
        {name: value for name, value in row.items() if name not in SECONDS}
        for row in rows
    ]


def weights(directory):
    return (directory / "player" / "player.safetensors").read_bytes()


def kept(directory):
    """Returns the kept positions, in one order."""
    table = pq.read_table(directory / GAMES).drop_columns("run")
    return table.sort_by([("game", "ascending"), ("ply", "ascending")]).to_pydict()


def assert_equal_runs(one, two):
    assert metrics(one) == metrics(two)
    assert weights(one) == weights(two)
    assert kept(one) == kept(two)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The directory of a run of 5 iterations by one process."""
    directory = tmp_path_factory.mktemp("runs") / "alone"
    assert ended(start(directory, 1, [["--iterations=5"]]))[0] == [0]
    return directory


@pytest.mark.slow
def test_two_processes_give_the_run_of_one_and_can_continue_it(alone, tmp_path):
    """They end after 5 iterations; two processes or one continue to 8."""
    lengths = (("--iterations=5",),) * 2
    statuses, said = ended(start(tmp_path / "two", 2, lengths))
    assert statuses == [0, 0], said
    assert "\n".join(said[0]).count("learned by self-play") == 1
    assert said[1] == []
    assert_equal_runs(alone, tmp_path / "two")

    shutil.copytree(alone, tmp_path / "one")
    lengths = (("--iterations=8",),) * 2
    assert ended(start(tmp_path / "one", 2, lengths))[0] == [0, 0]
    assert ended(start(tmp_path / "two", 1, lengths))[0] == [0]
    assert_equal_runs(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_a_full_disk_in_one_of_two_processes_ends_both_and_the_run_can_continue(
    tmp_path,
):
    """A limit on the size of files simulates the full disk."""
    resource = pytest.importorskip("resource")
    lengths = ("--iterations=5000", "--checkpoint.every-minutes=0")
    processes = start(tmp_path, 2, (lengths,) * 2)
    wait_for_metrics(tmp_path)
    limits = (20_000, resource.RLIM_INFINITY)
    resource.prlimit(processes[1].pid, resource.RLIMIT_FSIZE, limits)
    statuses, said = ended(processes)
    assert statuses == [2, 2], said
    problem = "File too large; the run cannot be saved there, earlier checkpoints"
    assert any(problem in line for line in said[1]), said
    assert said[0][-1].startswith(f"azjax: process 1: {tmp_path}")
    assert problem in said[0][-1]

    last = metrics(tmp_path)[-1]["iteration"]
    processes = start(tmp_path, 2, ((f"--iterations={last + 1}",),) * 2)
    statuses, said = ended(processes)
    assert statuses == [0, 0], said
    assert "continuing after iteration" in "\n".join(said[0])


@pytest.mark.slow
def test_a_signal_to_one_of_two_processes_saves_and_ends_both(tmp_path):
    processes = start(tmp_path, 2, (("--iterations=5000",),) * 2)
    wait_for_metrics(tmp_path)
    processes[1].send_signal(signal.SIGTERM)
    statuses, said = ended(processes)
    assert statuses == [STOPPED, STOPPED], said
    assert said[0][-1].startswith("stopped after iteration ")
    iteration = metrics(tmp_path)[-1]["iteration"]
    assert (tmp_path / "checkpoints" / str(iteration)).is_dir()


@pytest.mark.slow
def test_an_interrupted_evaluation_is_repeated_when_the_run_continues(alone, tmp_path):
    lengths = (("--iterations=5",),) * 2
    processes = start(tmp_path / "stopped", 2, lengths)
    lines = iter(processes[0].stdout.readline, "")
    assert any("compiling evaluation" in line for line in lines)
    processes[1].send_signal(signal.SIGTERM)
    statuses, said = ended(processes)
    assert statuses == [STOPPED, STOPPED], said
    assert said[0][-1].startswith("stopped after iteration 0")
    assert metrics(tmp_path / "stopped") == []
    statuses, said = ended(start(tmp_path / "stopped", 2, lengths))
    assert statuses == [0, 0], said
    assert_equal_runs(alone, tmp_path / "stopped")


@pytest.mark.slow
def test_sigterm_before_the_run_is_received_from_the_preemption_service(tmp_path):
    lengths = (("--iterations=5000",),) * 2
    processes = start(tmp_path, 2, lengths, program=("-c", PREEMPTED))
    statuses, said = ended(processes)
    assert statuses == [STOPPED, STOPPED], said
    assert any("stopped after iteration" in line for line in said[0])
    assert list((tmp_path / "checkpoints").iterdir())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Some timed out task names:\n1\n\n\nRPC: /xla/7\n", (1,)),
        ("Some timed out task names:\n/job:jax_worker/replica:0/task:12\n3\n", (3, 12)),
        ("UNAVAILABLE: failed to send RPC 5\n6\n", ()),
    ],
)
def test_the_message_of_a_barrier_names_the_missing_processes(text, expected):
    assert distributed.absent_processes(text) == expected


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_other_within_a_minute(tmp_path, killed):
    processes = start(tmp_path, 2, (("--iterations=5000",),) * 2)
    wait_for_metrics(tmp_path)
    processes[killed].kill()
    began = time.monotonic()
    statuses, said = ended(processes)
    assert time.monotonic() - began < 60
    assert statuses[1 - killed] not in (0, STOPPED), said
    if killed:  # JAX may end a process that loses the first one before it prints
        assert said[0][-2].startswith("azjax: process 0 cannot continue, probably")
        assert said[0][-1] == "azjax: processes that have ended or do not answer: 1"


def wait_for_metrics(directory):
    path = directory / "metrics.jsonl"
    while not path.exists() or len(path.read_text().splitlines()) < 5:
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ("--seed=0", "--seed=3"),
            "its settings differ from those of process 0: seed is 3",
        ),
        (("--run-dir={}/a", "--run-dir={}/b"), "/b is not the directory of process 0"),
    ],
    ids=["settings", "directories"],
)
def test_different_settings_of_processes_raise_one_line(tmp_path, changes, message):
    given = [(f"{change}".format(tmp_path), "--iterations=5") for change in changes]
    statuses, said = ended(start(tmp_path / "run", 2, given))
    assert statuses == [2, 2]
    assert said[0] == [said[1][0].replace("azjax: ", "azjax: process 1: ")]
    assert message in said[1][0]
    assert not list(tmp_path.glob("*/checkpoints/*"))


def evaluations(number):
    """Returns the evaluations by a number of processes, with 4 devices together."""
    port = str(free_port())
    processes = [
        subprocess.Popen(
            [sys.executable, EVALUATION, *([port, str(index)] if number > 1 else [])],
            env=os.environ | {"XLA_FLAGS": devices_flags(4 // number), "NPROC": "4"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(number)
    ]
    said = [process.communicate(timeout=120)[0] for process in processes]
    return [json.loads(text.splitlines()[-1]) for text in said]


@pytest.mark.slow
def test_two_processes_share_an_evaluation_with_the_result_of_one():
    (alone,), both = evaluations(1), evaluations(2)
    for name in ("row", "matches"):
        assert [found[name] for found in both] == [alone[name]] * 2
    assert {tuple(size) for size in alone["sizes"]} == {(512, 4), (72, 4)}
    for found in both:
        assert {tuple(size) for size in found["sizes"]} == {(256, 2), (36, 2)}

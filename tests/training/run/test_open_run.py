import dataclasses
import itertools
import json
import math
import os
import shutil
import signal

import jax
import jax.numpy as jnp
import pytest
from flax import struct
from training.saved_runs import with_interval

from azjax.training.config import CheckpointConfig, QConfig, QEvaluationConfig
from azjax.training.run import clock as clocks
from azjax.training.run import open_run as module
from azjax.training.run.open_run import Counters, open_run
from azjax.training.run.schedule import new_schedule, read_schedule

pytestmark = pytest.mark.usefixtures("quick_plots")

DEVICE = jax.sharding.SingleDeviceSharding(jax.devices()[0])


@struct.dataclass
class State:
    total: jax.Array
    iteration: jax.Array


EVALUATION = {**with_interval("network_mistakes", 0.1), "scores": {}}


class Task:
    """Adds the numbers of the iterations."""

    state_version = 1
    positions = 32
    game_writer = None

    def __init__(self, config):
        self.config, self.totals = config, {}

    def init(self):
        state = State(jnp.float32(0), jnp.int32(0))
        return jax.device_put(state, jax.devices()[0])

    def shardings(self, state):
        return jax.tree.map(lambda leaf: DEVICE, state)

    def step(self, state, progress, enter):
        enter("adding")
        iteration = state.iteration + 1
        state = State(state.total + iteration, iteration)
        self.totals = {"games": self.totals.get("games", 0) + 2}
        return state, {"value_loss": 0.5, "learning_rate": 1 - progress}

    def counts(self, state):
        return {"games": self.totals.get("games", 0), "updates": 1}

    def player(self, state):
        return float(state.total)

    def evaluate(self, player, poll):
        return EVALUATION

    def save_player(self, directory, player):
        directory.mkdir(exist_ok=True)
        (directory / "total").write_text(str(player))

    def iteration_seconds(self, row, progress):
        return 32 / row["positions_per_second"]


def config(run_dir, **changes):
    evaluation = QEvaluationConfig(num_evaluations=2, opponents=())
    settings = {"iterations": 4, "evaluation": evaluation, "run_dir": str(run_dir)}
    return QConfig("tic_tac_toe", **settings | changes)


def run(run_dir, settings=None, hooks=None, run="a1", task=Task):
    run_dir.mkdir(exist_ok=True)
    (run_dir / "config.json").write_text(json.dumps({"run": run}))
    task, hooks = task(settings or config(run_dir)), hooks or {}
    with open_run(task, run_dir, notes=[], started=clocks.now(), **hooks) as opened:
        for progress in opened:
            opened.state, metrics = task.step(opened.state, progress, opened.enter)
            opened.report(metrics)
    return opened.result()


def rows(run_dir, *names):
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    return [tuple(json.loads(line)[name] for name in names) for line in lines]


def stop_at(iteration):
    def on_iteration(row):
        if row["iteration"] == iteration:
            os.kill(os.getpid(), signal.SIGTERM)

    return {"on_iteration": on_iteration}


def newest_checkpoint(run_dir):
    checkpoints = run_dir / "checkpoints"
    newest = max((path.name for path in checkpoints.iterdir()), key=int)
    return json.loads((checkpoints / newest / "progress" / "metadata").read_text())


WHOLE_RUN = [
    ("evaluation", 0, 0, 0),
    ("iteration", 1, 32, 2),
    ("iteration", 2, 64, 4),
    ("evaluation", 2, 64, 4),
    ("iteration", 3, 96, 6),
    ("iteration", 4, 128, 8),
    ("evaluation", 4, 128, 8),
]


def test_a_run_iterates_to_its_end_with_evenly_spaced_evaluations(tmp_path, capsys):
    iterations, evaluations = [], []
    hooks = {"on_iteration": iterations.append, "on_evaluation": evaluations.append}
    often = CheckpointConfig(every_minutes=0.0, keep=9)
    found = run(tmp_path, config(tmp_path, checkpoint=often), hooks=hooks)
    assert found.finished
    assert found.player == 1 + 2 + 3 + 4
    assert rows(tmp_path, "kind", "iteration", "positions", "games") == WHOLE_RUN
    assert (found.first["iteration"], found.last["iteration"]) == (0, 4)
    assert (tmp_path / "player" / "total").read_text() == "10.0"
    # Hooks get every row, and a checkpoint follows after every 0 minutes.
    assert [row["iteration"] for row in iterations] == [1, 2, 3, 4]
    assert [row["iteration"] for row in evaluations] == [0, 2, 4]
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"0", "1", "2", "3", "4"}
    # A second start changes nothing.
    before = (tmp_path / "metrics.jsonl").read_text()
    assert run(tmp_path) == found
    assert (tmp_path / "metrics.jsonl").read_text() == before
    assert "finished after iteration 4" in capsys.readouterr().out
    # It cannot become shorter, and can be extended.
    with pytest.raises(ValueError, match="iterations must be more than the 4 that"):
        run(tmp_path, config(tmp_path, iterations=3))
    assert run(tmp_path, config(tmp_path, iterations=8)).player == sum(range(9))
    graded = [n for kind, n in rows(tmp_path, "kind", "iteration") if kind[0] == "e"]
    assert graded == [0, 2, 4, 8]


def test_the_first_process_decides_the_evaluation(tmp_path, monkeypatch):
    """Here another process is the first one."""
    row = {"network_mistakes": 0.2, "scores": {}}
    monkeypatch.setattr(
        module,
        "broadcast_from_first_process",
        lambda value: row if isinstance(value, dict) else value,
    )
    assert run(tmp_path).last["network_mistakes"] == 0.2


def test_a_stopped_run_continues_with_state_totals_and_metrics(tmp_path, capsys):
    stopped = run(tmp_path, hooks=stop_at(3))
    assert not stopped.finished
    assert (tmp_path / "player" / "total").read_text() == "6.0"
    assert "stopped after iteration 3; saved in" in capsys.readouterr().out
    assert run(tmp_path).player == 10
    assert "continuing after iteration 3" in capsys.readouterr().out
    assert rows(tmp_path, "kind", "iteration", "positions", "games") == WHOLE_RUN


class NotEvaluated(Task):
    evaluate = None


@pytest.mark.parametrize("iteration", [0, 2, 4])
def test_a_run_stopped_in_an_evaluation_repeats_it(tmp_path, iteration):
    class Interrupted(Task):
        def evaluate(self, player, poll):
            if player == sum(range(iteration + 1)):
                os.kill(os.getpid(), signal.SIGTERM)
            poll()
            return EVALUATION

    stopped = run(tmp_path, task=Interrupted)
    assert not stopped.finished
    assert newest_checkpoint(tmp_path)["iteration"] == iteration
    assert run(tmp_path).finished
    # The repeated evaluation was saved: it is not made again, and ranks the checkpoint.
    assert run(tmp_path, task=NotEvaluated).last["iteration"] == 4
    assert newest_checkpoint(tmp_path)["last"]["iteration"] == 4
    assert (tmp_path / "checkpoints" / "4" / "metrics").exists()
    assert not list((tmp_path / "checkpoints").glob("*.replaced"))
    assert rows(tmp_path, "kind", "iteration", "positions", "games") == WHOLE_RUN


def test_a_run_in_minutes_continues_from_the_time_used(tmp_path, monkeypatch):
    evaluation = QEvaluationConfig(num_evaluations=1, opponents=())
    settings = config(tmp_path, iterations=None, minutes=60.0, evaluation=evaluation)
    assert not run(tmp_path, settings, stop_at(1)).finished
    seconds = newest_checkpoint(tmp_path)["seconds"]
    assert seconds > 0
    # The run's clock is one hour later: the run only has to finish.
    monkeypatch.setattr(module, "Counters", AnHourLater)
    finished = run(tmp_path, settings)
    assert finished.finished
    assert finished.last["seconds"] >= 3600 + seconds
    assert finished.last["iteration"] == 1


@dataclasses.dataclass
class AnHourLater(Counters):
    def __post_init__(self):
        self.seconds += 3600


@pytest.mark.parametrize("name", ["value_loss", "gradient_norm", "weight_norm"])
def test_a_loss_or_weight_that_is_not_finite_ends_the_run(tmp_path, name):
    class Diverging(Task):
        def step(self, *args):
            state, metrics = super().step(*args)
            number = float("nan") if state.iteration == 2 else 0.5
            return state, metrics | {name: number}

    with pytest.raises(ValueError, match=f"{name} is nan in iteration 2: the run"):
        run(tmp_path, task=Diverging)
    assert newest_checkpoint(tmp_path)["iteration"] == 0


def test_a_full_disk_ends_the_run_and_keeps_the_checkpoint_before(tmp_path):
    class OnFullDisk(Task):
        def save_player(self, directory, player):
            if player:
                raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="free space, or give another --run-dir"):
        run(tmp_path, task=OnFullDisk)
    assert run(tmp_path).player == 10


def test_a_checkpoint_of_another_run_is_refused_in_one_line(tmp_path):
    """A copy of the whole directory continues."""
    run(tmp_path / "a", hooks=stop_at(1))
    run(tmp_path / "b", hooks=stop_at(2))
    shutil.copytree(tmp_path / "b", tmp_path / "copy")
    assert run(tmp_path / "copy").player == 10
    shutil.copytree(tmp_path / "b/checkpoints/2", tmp_path / "a/checkpoints/2")
    with pytest.raises(
        ValueError, match=r"checkpoint 2 .* is of another run than"
    ) as e:
        run(tmp_path / "a", run="b2")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("other", ["", '{"run": "b2"}'])
def test_a_run_whose_directory_is_removed_or_replaced_stops(tmp_path, other):
    def remove(row):
        if (tmp_path / "run" / "metrics.jsonl").exists():
            (tmp_path / "run").rename(tmp_path / "removed")
        if other:
            (tmp_path / "run").mkdir(exist_ok=True)
            (tmp_path / "run" / "config.json").write_text(other)

    with pytest.raises(ValueError, match="run was removed or replaced while") as error:
        run(tmp_path / "run", hooks={"on_iteration": remove})
    assert "\n" not in str(error.value)
    # A checkpoint that was being written may end up there.
    left = {path.name for path in tmp_path.glob("run/*")} - {"checkpoints"}
    assert left == ({"config.json"} if other else set())


def test_a_run_continues_with_a_metrics_file_of_any_content(tmp_path):
    run(tmp_path, hooks=stop_at(3))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{}\n{"kind": "iteration", "iteration": "4"}\n[7]\n')
    assert run(tmp_path).player == 10
    assert rows(tmp_path, "kind", "iteration", "positions", "games") == WHOLE_RUN


def test_progress_survives_a_round_trip_with_totals():
    schedule = new_schedule(("minutes", 2.0)).ending(3, 9)
    counters = {"seconds": 1.0, "positions": 9, "games": 1, "updates": 1}
    values = {
        "schedule": schedule.to_json(),
        "seconds": 2.5,
        "evaluations": 1,
        "first": {"iteration": 0, **counters},
        "last": {"iteration": 3, **counters},
        "games": 7,
        "waiting": 2,
    }
    counters, totals = Counters.from_values(values)
    assert totals == {"games": 7, "waiting": 2}
    assert counters.schedule == schedule
    assert counters.values(totals) == values


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schedule", None),
        ("seconds", "1"),
        ("seconds", math.nan),
        ("evaluations", None),
        ("last", {"iteration": "3"}),
        ("last", {}),
        ("first", [1]),
        ("games", 10**400),
        ("waiting", []),
    ],
)
def test_progress_of_no_run_is_refused(name, value):
    schedule = new_schedule(("minutes", 2.0)).to_json()
    values = {"schedule": schedule, "seconds": 2.5, "evaluations": 1}
    Counters.from_values(values)
    with pytest.raises(ValueError, match=f"{name} is|it is not a {name}"):
        Counters.from_values(values | {name: value})


class Clock:
    """A clock that advances with each iteration and evaluation."""

    seconds = compiling = 0.0


@pytest.fixture
def clock(monkeypatch):
    """An iteration takes 2 seconds, the first one 3 after 18 of compilation, an
    evaluation 1."""
    clock = Clock()
    monkeypatch.setattr(
        clocks, "now", lambda: clocks.Moment(clock.seconds, clock.compiling)
    )
    return clock


def run_on(clock, run_dir, settings=None, seconds=lambda clock: 2.0):
    shares = []

    class Timed(Task):
        def step(self, state, progress, enter):
            shares.append(progress)
            clock.compiling += 0.0 if state.iteration else 18.0
            clock.seconds += seconds(clock) if state.iteration else 3.0
            return super().step(state, progress, enter)

        def evaluate(self, player, poll):
            clock.seconds += 1.0
            return EVALUATION

    return run(run_dir, settings, task=Timed), shares


def minutes(run_dir, number=2.0):
    return config(run_dir, iterations=None, minutes=number)


def test_a_run_of_minutes_ends_on_time_without_its_compilation(tmp_path, clock, capsys):
    found, shares = run_on(clock, tmp_path, minutes(tmp_path))
    assert found.finished
    assert clock.seconds == pytest.approx(120, abs=3)
    steps = [after - before for before, after in itertools.pairwise([*shares, 1.0])]
    assert max(steps) == pytest.approx(steps[3], rel=0.6)  # no jump, also at the end
    out = capsys.readouterr().out
    assert out.count("planned: 60 iterations") == out.count("planned") == 1
    times = "2 min 01 s of training, 18 s of compilation, 1 s of preparation"
    assert f"it took 2 min 20 s: {times}" in out
    assert "too few" not in out


@pytest.mark.parametrize(("first", "iterations"), [(9, 9), (99, 60)])
def test_a_run_of_minutes_goes_on_to_its_first_update(
    tmp_path, clock, capsys, first, iterations
):
    """For ten times its length at most; an iteration takes 2 seconds."""

    class Late(Task):
        def counts(self, state):
            return {"games": 0, "updates": int(state.iteration >= first)}

        def step(self, *args):
            clock.seconds += 2.0
            state, metrics = super().step(*args)
            return state, metrics if state.iteration >= first else {}

    found = run(tmp_path, minutes(tmp_path, 0.2), task=Late)
    out = capsys.readouterr().out
    assert out.count("0.2 minutes are over before the first update") == 1
    assert ("too few to learn much: give more --minutes" in out) == (first < 60)
    assert ("nothing was learned: no update was made" in out) == (first > 60)
    assert (found.last["iteration"], found.updates) == (iterations, first < 60)
    more = minutes(tmp_path, (clock.seconds + 1) / 60)  # a little
    more = run(tmp_path, more, task=Late)
    assert (more.last["iteration"], more.updates) == (max(iterations + 1, first), 1)


def test_a_slower_run_is_replanned_at_an_evaluation(tmp_path, clock):
    settings = dataclasses.replace(
        minutes(tmp_path), evaluation=QEvaluationConfig(opponents=())
    )
    found, shares = run_on(
        clock, tmp_path, settings, lambda clock: 2.0 if clock.seconds < 50 else 4.0
    )
    assert clock.seconds == pytest.approx(120, abs=6)
    assert shares[-1] > 0.9
    assert len(read_schedule(tmp_path).entries) > 3
    assert found.last["iteration"] == len(shares)


def test_a_finished_run_is_extended(tmp_path, clock, capsys):
    first, _ = run_on(clock, tmp_path, minutes(tmp_path))
    capsys.readouterr()
    found, shares = run_on(clock, tmp_path, minutes(tmp_path, 4.0))
    out = capsys.readouterr().out
    assert "from 2 minutes to 4 minutes: 5" in out
    assert "instead of 100%" in out
    assert shares[0] == pytest.approx(0.5, abs=0.02)
    assert shares[-1] > 0.9
    assert found.last["seconds"] == pytest.approx(240, abs=3)
    evaluations = [number for (number,) in rows(tmp_path, "iteration")]
    assert evaluations.count(first.last["iteration"]) == 2  # a row of each kind
    assert len(set(evaluations)) == found.last["iteration"] + 1

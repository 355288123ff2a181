import functools
import io
import threading
import types

import pytest
from training.run import test_display
from training.run.test_display import ROWS, start
from training.saved_runs import evaluation_row, iteration_row

from azjax import cli
from azjax.training import LearnerConfig, ReportConfig, TrainConfig
from azjax.training.run import sinks
from azjax.training.run.sinks import (
    BackgroundSink,
    MlflowSink,
    WandbSink,
    check_sinks,
)

pytestmark = pytest.mark.usefixtures("quick_plots")
CONFIG = TrainConfig(
    game="tic_tac_toe", iterations=10, report=ReportConfig(sinks=("wandb",))
)
report = functools.partial(test_display.report, config=CONFIG)
OF_SERVICE = TrainConfig(
    game="tic_tac_toe",
    iterations=4,
    run_dir="/secret/place/my_run",
    learner=LearnerConfig(batch_size=24),
)


class Service:
    """A service that records its rows by run."""

    title = "Fake"

    def __init__(self):
        self.runs = {}
        self.closed = []
        self.error = None

    def check(self):
        pass

    def __call__(self, files, config, run_id):
        service, run_id = self, run_id or f"run{len(self.runs)}"
        rows = self.runs.setdefault(run_id, [])

        class Sink:
            id, place = run_id, f"place of {run_id}"

            def write(self, row):
                if service.error:
                    raise service.error
                rows.append((row["kind"], row["iteration"]))

            def close(self):
                service.closed.append(run_id)

        return Sink()


@pytest.fixture
def service(monkeypatch):
    found = Service()
    monkeypatch.setitem(sinks.SERVICES, "wandb", found)
    return found


EVERY_ROW = [("evaluation", 0), ("iteration", 1), ("iteration", 2), ("evaluation", 2)]


def test_a_continued_run_writes_each_row_once_to_the_same_run(tmp_path, service):
    report(tmp_path, ROWS[:3])
    report(tmp_path, ROWS[2:3], start=start(1, evaluated=0))  # stopped again
    report(tmp_path, ROWS[2:], start=start(1, evaluated=0))
    assert service.runs == {"run0": EVERY_ROW}
    assert service.closed == ["run0"] * 3


def test_a_run_that_starts_over_gets_a_new_run(tmp_path, service):
    report(tmp_path, ROWS[:2])
    report(tmp_path, ROWS)
    assert service.runs == {"run0": EVERY_ROW[:2], "run1": EVERY_ROW}


def test_a_sink_that_is_added_later_gets_the_earlier_rows(tmp_path, service):
    test_display.report(tmp_path, ROWS[:3])
    assert service.runs == {}
    report(tmp_path, ROWS[3:], start=start(2, evaluated=0))
    assert service.runs == {"run0": EVERY_ROW}


def test_a_failing_service_is_reported_once_and_catches_up_later(tmp_path, service):
    service.error = ConnectionError("the network\nis away")
    file = io.StringIO()
    report(tmp_path, ROWS[:3], file=file)
    text = "writing to Fake failed, the run continues: "
    assert file.getvalue().count(text) == 1
    assert "place of run0\n" in file.getvalue()
    assert f"{text}ConnectionError: the network is away\n" in file.getvalue()
    assert service.closed == ["run0"]
    service.error = None
    report(tmp_path, ROWS[3:], start=start(2, evaluated=0))
    assert service.runs == {"run0": EVERY_ROW}


def test_a_service_that_does_not_answer_does_not_delay_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sinks, "CLOSE_SECONDS", 0.01)
    answer = threading.Event()

    def connect(run_id):
        answer.wait()
        raise ConnectionError

    sink = BackgroundSink(connect, tmp_path / "a.json", [], print)
    try:
        sink.write(iteration_row(1))
        with pytest.raises(OSError, match="the rest is written when the run continues"):
            sink.close()
    finally:
        answer.set()


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"id": "../x"}', '{"id": "a", "iteration": "1"}']
)
def test_a_damaged_state_is_not_trusted(tmp_path, service, content):
    report(tmp_path, ROWS[:3])
    (tmp_path / "sinks" / "wandb.json").write_text(content)
    file = io.StringIO()
    report(tmp_path, ROWS[3:], start=start(2, evaluated=0), file=file)
    assert "wandb.json is damaged" in file.getvalue()
    assert service.runs == {"run0": EVERY_ROW[:3]}
    assert (tmp_path / "sinks" / "wandb.json").read_text() == content


def test_a_missing_package_is_named_before_anything_is_written(
    tmp_path, monkeypatch, capsys
):
    # A directory of the package's name is not the package.
    no_origin = types.SimpleNamespace(origin=None)
    for spec in (None, no_origin):
        monkeypatch.setattr(sinks.importlib.util, "find_spec", lambda name: spec)  # noqa: B023
        path = tmp_path / "run"
        options = ("--run-dir", str(path), "--report.sinks", "mlflow")
        for command in ("train", "train-q"):
            with pytest.raises(SystemExit) as end:
                cli.main([command, "tic_tac_toe", *options])
            assert end.value.code == 2
            assert capsys.readouterr().err == (
                "azjax: report.sinks mlflow: mlflow is not installed: pip install "
                "'azjax[mlflow]'\n"
            )
        assert not path.exists()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("tensorbord",), r"report\.sinks must be wandb or mlflow: 'tensorbord'"),
        (("wandb", "wandb"), r"report\.sinks has 'wandb' twice"),
    ],
)
def test_sinks_are_checked(names, message):
    with pytest.raises(ValueError, match=message):
        ReportConfig(sinks=names)


def test_no_service_needs_no_package(monkeypatch):
    monkeypatch.setattr(sinks.importlib.util, "find_spec", None)
    check_sinks(())


@pytest.fixture
def wandb(monkeypatch, tmp_path):
    import wandb  # noqa: PLC0415, in every process otherwise

    wandb.teardown()  # it reads the environment once
    for name in ("WANDB_API_KEY", "WANDB_PROJECT", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("WANDB_MODE", "offline")
    yield wandb
    wandb.teardown()


def written(wandb, directory, run_id):
    """Returns the newest file of a run, which W&B writes in another process."""
    wandb.teardown()
    files = directory.rglob(f"run-{run_id}.wandb")
    return max(files, key=lambda path: path.stat().st_mtime_ns).read_bytes()


# The import of the libraries takes seconds. The warnings are their own.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_run_is_written_offline_and_continued(wandb, tmp_path):
    first = WandbSink(tmp_path, OF_SERVICE, None)
    first.write(evaluation_row(0, mistakes=0.25))
    first.close()
    content = written(wandb, tmp_path, first.id)
    for text in (b"mistakes/network", b"positions", b"seconds", b"batch_size"):
        assert text in content
    assert b"/secret/place" not in content
    assert first.place.startswith("W&B writes to ")
    # In the same second W&B writes to the same file again.
    again = WandbSink(tmp_path, OF_SERVICE, first.id)
    again.write(iteration_row(1) | {"policy_loss": 1.5})
    again.close()
    assert again.id == first.id
    assert b"loss/policy" in written(wandb, tmp_path, first.id)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_key_is_a_mistake_unless_the_run_is_offline(wandb, monkeypatch):
    WandbSink.check()
    wandb.teardown()
    monkeypatch.setenv("WANDB_MODE", "online")
    with pytest.raises(ValueError, match="W&B has no key: run `wandb login`, or set"):
        WandbSink.check()
    wandb.teardown()
    monkeypatch.setenv("WANDB_API_KEY", "abc")
    with pytest.raises(ValueError, match=r"report\.sinks wandb: WANDB_API_KEY invalid"):
        WandbSink.check()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_run_is_written_to_a_database_and_continued(tmp_path, monkeypatch):
    from mlflow import MlflowClient  # noqa: PLC0415, in every process otherwise

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    first = MlflowSink(tmp_path, OF_SERVICE, None)
    first.write(evaluation_row(0, mistakes=0.25, **{"gtp:x --y=1": 0.5}))
    first.close()
    again = MlflowSink(tmp_path, OF_SERVICE, first.id)
    again.write(evaluation_row(1, mistakes=0.5))
    again.write(iteration_row(1) | {"policy_loss": 1.5})
    client = MlflowClient()
    assert client.get_run(first.id).info.status == "RUNNING"
    again.close()
    run = client.get_run(first.id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "my_run"
    assert run.data.params["learner.batch_size"] == "24"
    assert not any("place" in value for value in run.data.params.values())
    assert run.data.metrics["loss/policy"] == 1.5
    assert run.data.metrics["score/gtp_x --y_1"] == 0.5
    history = client.get_metric_history(first.id, "mistakes/network")
    assert [(point.step, point.value) for point in history] == [(0, 0.25), (1000, 0.5)]
    assert first.id in first.place

import pytest
from training.saved_runs import evaluation_row, iteration_row

from azjax.training import LearnerConfig, TrainConfig
from azjax.training.mlflow_sink import MlflowSink

# The import of the library takes seconds. The warnings are its own.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
CONFIG = TrainConfig(
    game="tic_tac_toe",
    iterations=4,
    run_dir="place/my_run",
    learner=LearnerConfig(batch_size=24),
)


def test_a_run_is_written_to_a_database_and_continued(tmp_path, monkeypatch):
    from mlflow import MlflowClient  # noqa: PLC0415, in every process otherwise

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    first = MlflowSink(tmp_path, CONFIG, None)
    first.write(evaluation_row(0, mistakes=0.25, **{"gtp:x --y=1": 0.5}))
    first.close()
    again = MlflowSink(tmp_path, CONFIG, first.id)
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

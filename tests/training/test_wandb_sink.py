import pytest
from training.saved_runs import evaluation_row, iteration_row

from azjax.training import TrainConfig
from azjax.training.wandb_sink import WandbSink

# The import of the library takes seconds. The warnings are its own.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
CONFIG = TrainConfig(game="tic_tac_toe", iterations=4, run_dir="/secret/place/run")


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


def test_a_run_is_written_offline_and_continued(wandb, tmp_path):
    first = WandbSink(tmp_path, CONFIG, None)
    first.write(evaluation_row(0, mistakes=0.25))
    first.close()
    content = written(wandb, tmp_path, first.id)
    for text in (b"mistakes/network", b"positions", b"seconds", b"batch_size"):
        assert text in content
    assert b"/secret/place" not in content
    assert first.place.startswith("W&B writes to ")
    # In the same second W&B writes to the same file again.
    again = WandbSink(tmp_path, CONFIG, first.id)
    again.write(iteration_row(1) | {"policy_loss": 1.5})
    again.close()
    assert again.id == first.id
    assert b"loss/policy" in written(wandb, tmp_path, first.id)


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

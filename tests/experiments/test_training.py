"""Scripts that train."""

import jax
import pytest
from shared_programs import shared_programs

from azjax.training import preset

TINY_TEXT = """
    --iterations 2 --network.trunk.width 16 --network.trunk.num-blocks 1
    --network.trunk.stem-channels 8 --self-play.num-games 8
    --self-play.moves-per-chunk 4 --self-play.num-simulations 2
    --replay.capacity 288 --replay.min-window 280 --replay.min-positions 32
    --learner.batch-size 16 --learner.replay-ratio 1
    --evaluation.num-evaluations 1 --evaluation.num-positions 32
    --evaluation.num-simulations 2
    --evaluation.num-games 2 --evaluation.opponents
"""
TINY = TINY_TEXT.split()


@pytest.fixture(scope="module", autouse=True)
def sharing():
    with shared_programs():
        yield


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "name"),
    [("tic_tac_toe.py", "tic_tac_toe"), ("connect4.py", "connect_four")],
)
def test_a_training_script_learns_and_prints_commands(script, name, run, tmp_path):
    assert f"azjax play {name}" in run(script, *TINY)
    assert (tmp_path / "runs" / name / "player" / "player.safetensors").exists()


@pytest.mark.slow
def test_a_variation_is_trained(run, tmp_path):
    run("variations.py", "pure_z", "tic_tac_toe", *TINY)
    player = tmp_path / "runs" / "pure_z_tic_tac_toe" / "player"
    assert (player / "player.safetensors").exists()


@pytest.mark.parametrize("name", ["cpu", "accelerator"])
def test_the_connect_four_script_has_the_settings_of_the_preset(
    name, load, monkeypatch
):
    backend = "cpu" if name == "cpu" else "tpu"
    with monkeypatch.context() as patch:
        patch.setattr(jax, "default_backend", lambda: backend)
        script = load("connect4.py")
    assert preset(name, minutes=20.0) == script.CONFIG
    assert script.settings(minutes=2.0) == preset(name, minutes=2.0)


def test_a_training_script_refuses_a_wrong_setting_in_one_line(run, tmp_path, capsys):
    with pytest.raises(AssertionError, match=r"\(2, ''\)"):
        run("connect4.py", "--minutes", "-1")
    message = "azjax: minutes must be a number > 0 and <= 1000000000: -1.0\n"
    assert capsys.readouterr().err == message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_killed_run_loses_no_data_and_continues_on_more_devices(
    load, monkeypatch, capsys
):
    script = load("bench/kill_resume.py")
    monkeypatch.setitem(script.main.__globals__, "ITERATIONS_PER_KILL", 6)
    script.main(script.Settings(kills=1, patience=120.0, devices=("1", "2")))
    assert "no data was lost" in capsys.readouterr().out


@pytest.mark.slow
def test_runs_on_different_numbers_of_devices_are_compared(run):
    tiny = """--self-play.num-games 8 --self-play.num-simulations 2
        --learner.batch-size 8 --replay.min-positions 64 --evaluation.num-evaluations 1
        --evaluation.num-positions 8 --evaluation.opponents"""
    settings = "--game tic_tac_toe --devices 1 2x1 --iterations 2 --patience 120"
    out = run("bench/device_counts.py", *settings.split(), f"--options={tiny}")
    assert "bit for bit" in out


@pytest.mark.slow
def test_a_custom_loop_learns(run):
    last = run("own_loop.py", "--iterations", 10).splitlines()[-1]
    assert last.startswith("10: ")
    # An untrained network's search misses the best move in more than 1% of them.
    assert float(last.rsplit(maxsplit=1)[1].rstrip("%")) < 0.8


@pytest.mark.slow
def test_ppo_learns_to_beat_random_moves(run):
    out = run("ppo.py", "--iterations", 14)
    first, *_, last = (float(line.split()[-1].rstrip("%")) for line in out.splitlines())
    assert first < 72
    assert last > 80


@pytest.mark.slow
def test_muzero_learns_a_model_that_its_search_can_use(run):
    out = run("muzero.py", "--iterations", 10)
    first, *_, last = (float(line.split()[3].rstrip("%,")) for line in out.splitlines())
    assert first > 36
    assert last < 34

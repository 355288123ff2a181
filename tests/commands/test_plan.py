import dataclasses
import json
import types

import jax
import pytest
from commands.refusal import assert_refused
from rich.console import Console

from azjax import cli
from azjax.commands import plan as module
from azjax.devices import CHIPS, Counts, target_platform
from azjax.training import preset
from azjax.training.analysis import forecast as forecast_module
from azjax.training.analysis.forecast import CompiledPhase

TINY_TEXT = """
    --network.trunk.width 16 --network.trunk.num-blocks 1
    --network.trunk.stem-channels 8 --network.trunk.window 3
    --self-play.num-games 8 --self-play.moves-per-chunk 4
    --self-play.num-simulations 2 --replay.capacity 128 --replay.min-window 104
    --replay.min-positions 32 --learner.batch-size 16
    --evaluation.num-simulations 2
"""
TINY = TINY_TEXT.split()


PHASES = ("self-play, 2 simulations", "insertion", "index", "gradient", "update")


def compiled(phase, mesh, simulations):
    """Returns a compiler's report on a phase that is not compiled."""
    sizes = (900, 400, 700, 800, 60)
    counts = (Counts(1200, 34, 1_500_000, 56, 78, 9),) * len(simulations)
    return CompiledPhase(phase.name, phase.runs, 1.0, *sizes, {}, counts)


@pytest.fixture(scope="module")
def planned():
    """The forecast of a run on this machine's device."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecast_module, "compile_phase", compiled)
        patch.setattr(module, "print_forecast", lambda _, result: found.append(result))
        cli.main(["plan", "tic_tac_toe", *TINY])
    return found[0]


def printed(forecast, capsys, **changes):
    module.print_forecast(Console(width=100), dataclasses.replace(forecast, **changes))
    return capsys.readouterr().out


def test_a_run_is_planned_for_this_machines_device(planned, capsys):
    out = printed(planned, capsys)
    assert "tic_tac_toe on cpu, 1 device" in out
    for phase in PHASES:
        assert out.count(phase) >= 2
    assert "this device's peak speed is unknown" in out
    assert "predicates" not in out


def test_the_arithmetic_of_a_gpus_speed_is_shown(planned, capsys):
    out = printed(planned, capsys, chip=CHIPS["h100"], num_chips=8)
    (speed,) = dataclasses.replace(planned, chip=CHIPS["h100"], num_chips=8).speeds
    assert "predicates" in out
    assert f"; {speed:,.0f} positions/s" in out
    assert "22.9 us a predicate" in out


def test_the_arithmetic_of_a_tpus_speed_is_shown(planned, capsys):
    out = printed(planned, capsys, chip=CHIPS["v5e"])
    assert "scatters  custom calls" in out
    # 1.5 million cycles are a millisecond.
    seconds = f"gradient {planned.config.updates_per_iteration / 1e3:.3g}"
    assert f"self-play 0.001 + insertion 0.001 + index 0.001 + {seconds}" in out
    assert "gathers, scatters and others have no estimate" in out
    out = printed(planned, capsys, chip=CHIPS["v6e"])
    assert "this device's clock is unknown" in out


def test_a_plan_is_one_json_object(planned, capsys, monkeypatch):
    monkeypatch.setattr(module, "forecast", lambda *args, **kwargs: planned)
    cli.main(["plan", "tic_tac_toe", *TINY, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] is True
    assert found["needed_bytes"] == planned.needed[0]
    assert [phase["name"] for phase in found["phases"]] == [
        phase.name for phase in planned.phases
    ]


def test_a_run_that_does_not_fit_is_shown_and_refused(planned, capsys, monkeypatch):
    small = dataclasses.replace(planned, usable=10, to_lower="lower this (3)")
    monkeypatch.setattr(module, "forecast", lambda *args, **kwargs: small)
    with pytest.raises(SystemExit) as error:
        cli.main(["plan", "tic_tac_toe", *TINY])
    assert error.value.code == 2
    out, err = capsys.readouterr()
    assert "of 10 B, with all code" in out
    assert "GiB of each chip" in err
    assert err.endswith("lower this (3)\n")


def test_an_accelerator_has_the_settings_of_its_preset(planned, monkeypatch):
    asked = []

    def record(config, device, **settings):
        asked.append((config, device))
        return planned

    monkeypatch.setattr(module, "forecast", record)
    monkeypatch.setattr(module.jax.config, "update", lambda name, value: None)
    cli.main(["plan", "tic_tac_toe", "--device", "v5e:2x4", "--seed", "3"])
    config = preset("accelerator", "tic_tac_toe", minutes=20.0)
    assert asked == [(dataclasses.replace(config, seed=3), "v5e:2x4")]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["tic_tac_toe", "--device", "v9"], "unknown device 'v9'; known devices are"),
        (["--device", "h100", "tic_tac_toe"], "the game must come first: azjax plan"),
        (["nim", "--device", "h100"], "unknown game 'nim'"),
        (["tic_tac_toe", "--devise", "h100"], "unknown option --devise; see"),
        (["tic_tac_toe", "--self-play.num-games", "0"], "num_games must be an int"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(args, says, capsys, monkeypatch):
    monkeypatch.setattr(module.jax.config, "update", lambda name, value: None)
    assert_refused(capsys, says, "plan", *args)


def test_a_run_that_cannot_fit_is_refused_before_compilation(capsys, monkeypatch):
    monkeypatch.setattr(forecast_module, "available_bytes", lambda: 1000)
    message = "this run needs about 0.00 GiB of memory"
    assert_refused(capsys, message, "plan", "tic_tac_toe", *TINY)


def test_devices_that_do_not_divide_the_lanes_are_refused(capsys, monkeypatch):
    chip = types.SimpleNamespace(device_kind="TPU v5 lite", platform="tpu")
    mesh = types.SimpleNamespace(devices=[chip] * 16)
    monkeypatch.setattr(forecast_module, "topology_mesh", lambda name: mesh)
    monkeypatch.setattr(module.jax.config, "update", lambda name, value: None)
    message = "num_lanes must be a multiple of the 16 devices: 8"
    args = ("tic_tac_toe", "--preset", "cpu", *TINY, "--device", "v5e:4x4")
    assert_refused(capsys, message, "plan", *args)


def test_a_run_is_traced_for_the_platform_of_the_device(monkeypatch):
    chip = types.SimpleNamespace(device_kind="TPU v5 lite", platform="tpu")
    mesh = types.SimpleNamespace(devices=[chip])
    monkeypatch.setattr(forecast_module, "topology_mesh", lambda name: mesh)

    def traced(*args, **kwargs):
        raise ValueError(f"traced for {target_platform()}")

    monkeypatch.setattr(forecast_module, "make_algorithm", traced)
    config = preset("cpu", "tic_tac_toe", iterations=1)
    with pytest.raises(ValueError, match="traced for tpu"):
        forecast_module.forecast(config, "v5e:1x1")
    assert target_platform() == "cpu"


def test_a_program_that_the_compiler_finds_too_large_is_refused(capsys, monkeypatch):
    def compile_phase(phase, *_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Ran out of memory on HBM")

    monkeypatch.setattr(forecast_module, "compile_phase", compile_phase)
    with pytest.raises(SystemExit) as error:
        cli.main(["plan", "tic_tac_toe", *TINY])
    assert error.value.code == 2
    *_, note, line = capsys.readouterr().err.splitlines()
    assert note == "azjax: compiling self-play, 2 simulations ..."
    assert "self-play, 2 simulations does not fit into the memory of cpu: lower" in line

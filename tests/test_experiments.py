"""Runs every script in `experiments/` with tiny settings."""

import dataclasses
import itertools
import json
import os
import pathlib
import re
import resource
import runpy
import shutil
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

from azjax import arena, games, players
from azjax.commands.train import parse_train_config
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players.schema import VERSION
from azjax.players.serialization import pretrained_directory
from azjax.search import GumbelConfig
from azjax.training import preset

# The scripts' programs run only briefly.

FOLDER = pathlib.Path(__file__).parents[1] / "experiments"
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


def run(script, *args, folder):
    """Runs a script in its own folder; returns its output."""
    result = subprocess.run(
        [sys.executable, FOLDER / script, *map(str, args)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_script_is_tested_here():
    tested = pathlib.Path(__file__).read_text()
    for script in FOLDER.glob("*.py"):
        assert f'"{script.name}"' in tested


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("tic_tac_toe.py", "tic_tac_toe"),
        ("connect4.py", "connect_four"),
    ],
)
def test_a_training_script_learns_and_prints_commands(script, name, tmp_path):
    out = run(script, *TINY, folder=tmp_path)
    assert f"azjax play {name}" in out
    assert (tmp_path / "runs" / name / "player" / "weights.npz").exists()


@pytest.mark.parametrize("name", ["cpu", "accelerator"])
def test_the_connect_four_script_has_the_settings_of_the_preset(name, monkeypatch):
    backend = "cpu" if name == "cpu" else "tpu"
    with monkeypatch.context() as patch:
        patch.setattr(jax, "default_backend", lambda: backend)
        script = runpy.run_path(str(FOLDER / "connect4.py"))
    assert script["CONFIG"] == preset(name, minutes=20.0)
    assert script["settings"](minutes=2.0) == preset(name, minutes=2.0)


def test_a_training_script_refuses_a_wrong_setting_in_one_line(tmp_path):
    result = subprocess.run(
        [sys.executable, FOLDER / "connect4.py", "--minutes", "-1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert (
        result.stderr == "azjax: minutes must be a number > 0 and <= 1000000000: -1.0\n"
    )
    assert list(tmp_path.iterdir()) == []


def save_untrained_player(directory, dtype="float32"):
    game = games.make("tic_tac_toe")
    config = NetworkConfig(DenseTrunkConfig(width=16, num_blocks=1), dtype=dtype)
    network, variables = players.first_network(0, game, config)
    trained = players.TrainedPlayer(
        game, network, variables, config, GumbelConfig(), seed=0
    )
    players.save_player(directory, trained)


def test_a_player_can_be_shipped_at_half_its_size(tmp_path, monkeypatch):
    save_untrained_player(tmp_path / "run" / "player", dtype="bfloat16")
    settings = preset("cpu", "tic_tac_toe", iterations=1).to_json()
    settings["format"] = VERSION
    (tmp_path / "run" / "config.json").write_text(json.dumps(settings))
    row = {"kind": "evaluation", "iteration": 1, "seconds": 9.0, "positions": 77}
    row |= {"games": 5, "updates": 1}
    (tmp_path / "run" / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    script = runpy.run_path(str(FOLDER / "ship_player.py"))
    names = script["main"].__globals__
    monkeypatch.setitem(names, "shipped_players", lambda: tmp_path / "shipped")
    script["main"](str(tmp_path / "run"), hardware="an abacus")
    card = (tmp_path / "shipped" / "tic_tac_toe" / "card.md").read_text()
    assert "77 positions" in card
    assert "an abacus" in card
    loaded = players.load_player(tmp_path / "shipped" / "tic_tac_toe")
    assert loaded.game == games.make("tic_tac_toe")
    assert loaded.config.dtype == "float32"  # that of the run: bfloat16
    sizes = [
        (folder / "weights.npz").stat().st_size
        for folder in (tmp_path / "shipped/tic_tac_toe", tmp_path / "run/player")
    ]
    assert sizes[0] < 0.7 * sizes[1]


def test_the_solved_positions_can_be_made(tmp_path):
    path = tmp_path / "positions.csv"
    run(
        "make_solved_positions.py",
        *("--output", path, "--positions-per-stage", "2"),
        folder=tmp_path,
    )
    lines = path.read_text().splitlines()
    assert lines[0] == "set,moves,q0,q1,q2,q3,q4,q5,q6"
    assert len(lines) == 1 + 5 * 2


@pytest.mark.slow
def test_the_games_can_be_verified(tmp_path):
    run(
        "verify_games.py",
        *("--games", "20", "--names", "tic_tac_toe"),
        folder=tmp_path,
    )


@pytest.mark.slow
def test_a_network_is_trained_on_perfect_labels(tmp_path):
    tiny = ("--labels", "labels.csv", "--positions", "40", "--width", "8")
    tiny += ("--updates", "1", "--simulations", "1", "--batch-size", "8")
    printed = run("bench/supervised_ceiling.py", *tiny, folder=tmp_path)
    assert re.search(r"policy_loss \d\.\d+, value_loss 1\.\d+; network \d+", printed)
    game = games.make("connect_four")
    labels = arena.read(game, tmp_path / "labels.csv")
    assert len(labels) == 40
    # None of them is among the positions that measure mistakes.
    solved = {board.tobytes() for board in boards_of(arena.shipped(game))}
    for board in boards_of(labels):
        assert board.tobytes() not in solved
        assert board[:, ::-1].tobytes() not in solved


def boards_of(positions):
    return np.asarray(jax.vmap(positions.game.board)(positions.states))


@pytest.mark.slow
def test_the_search_of_solved_positions_is_measured_by_stage(tmp_path):
    save_untrained_player(tmp_path / "run" / "player")
    options = ("--player", "run", "--game", "tic_tac_toe", "--plies", "3")
    options += ("--simulations", "0", "200", "--max-positions", "8")
    run("bench/opening_trap.py", *options, "--json", "rows.json", folder=tmp_path)
    rows = json.loads((tmp_path / "rows.json").read_text())
    found = [(row["stage"], row["simulations"]) for row in rows]
    stages = ("0-2", "3-5", "6-8")
    assert found == [(stage, number) for stage in stages for number in (0, 200)]
    *_, network_alone, searched = rows
    # The network alone visits by its policy; the sums may differ in the last digit.
    assert network_alone["visits_on_best"] < 1
    assert network_alone["visits_on_best"] == pytest.approx(
        network_alone["policy_on_best"], rel=1e-5
    )
    # At most 3 moves are left: a search sees all of them.
    assert searched["mistakes"] == 0
    assert searched["policy_on_best"] > network_alone["policy_on_best"]


@pytest.mark.slow
def test_value_targets_are_compared_with_perfect_play(tmp_path):
    save_untrained_player(tmp_path / "run" / "player")
    options = ("--player", "run", "--game", "tic_tac_toe", "--plies", "3")
    options += ("--simulations", "1", "200", "--max-positions", "20")
    run("bench/target_quality.py", *options, "--json", "rows.json", folder=tmp_path)
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert list(rows) == ["network", "search, 1", "search, 200", "game, 1", "game, 200"]
    for of_source in rows.values():
        assert [row["stage"] for row in of_source] == ["0-2", "3-5", "6-8"]
    # At most 3 moves are left: a search sees all of them, so the game is perfect.
    assert rows["game, 200"][-1]["square"] == 0
    assert rows["game, 1"][-1]["square"] > 0
    assert rows["search, 200"][-1]["square"] < rows["network"][-1]["square"]


@pytest.mark.slow
def test_the_time_of_a_move_can_be_measured(tmp_path):
    options = ("tic_tac_toe", "mcts:10", "random", "--games", "1", "3", "--json")
    rows = json.loads(run("bench/players.py", *options, folder=tmp_path))
    measured = [(row["player"], row["games"]) for row in rows]
    assert measured == [("mcts:10", 1), ("mcts:10", 3), ("random", 1), ("random", 3)]
    assert all(0 < row["seconds"] <= row["slowest_seconds"] for row in rows)


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
def test_the_browser_is_compared_with_python(tmp_path):
    options = ("--positions", "20", "--simulations", "100", "--json")
    result = json.loads(run("verify_browser.py", *options, folder=tmp_path))
    assert result["positions"] == 20
    assert result["same_move"] >= 0.95
    assert result["requests_to_other_hosts"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("player", ["random", "gtp:gnugo --mode gtp --never-resign"])
def test_gnu_go_and_azjax_play_by_the_same_rules(player, tmp_path, monkeypatch, gnugo):
    folder = os.path.dirname(gnugo)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{folder}")
    options = ("--games", "2", "--player", player)
    seats, match = run("verify_gtp.py", *options, folder=tmp_path).splitlines()
    assert seats.startswith("seats: 2 games")
    assert match.startswith("match: 2 games")
    assert match.endswith("disagreements 0")


@pytest.mark.slow
def test_the_rules_are_timed_against_pgx(tmp_path):
    options = ("--games", "tic_tac_toe", "--batch-size", "8", "--num-steps", "5")
    out = run("bench/games.py", *options, "--repeats", "1", "--json", folder=tmp_path)
    (result,) = json.loads(out)
    assert result["azjax_state_bytes"] < result["pgx_state_bytes"]
    assert result["rules_ratio"] > 0
    assert result["documented_ratio"] > 0


@pytest.mark.slow
def test_visitors_play_on_the_server_during_attacks(tmp_path):
    options = ("--visitors", "4", "--seconds", "2", "--idle-sockets", "40", "--json")
    results = json.loads(run("verify_server.py", *options, folder=tmp_path))
    for result in results.values():
        assert result["lost_games"] == 0
        assert result["errors"] == []
        assert sum(result["games"].values()) >= 4
    assert results["among hostile ones"]["attacks"] > 0


@pytest.mark.slow
def test_variants_are_trained_judged_and_compared(tmp_path, monkeypatch, capsys):
    script = types.SimpleNamespace(**runpy.run_path(str(FOLDER / "ablate.py")))
    trained = []

    def train(command, check):
        """Copies the shipped player in place of a training."""
        *_, game = command[: command.index("--iterations")]
        config = parse_train_config(game, command[5:], prog="azjax train")
        trained.append((pathlib.Path(config.run_dir).parent.name, config.seed))
        shutil.copytree(pretrained_directory(games.make(game)), config.run_dir)
        return types.SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", train)
    settings = script.Settings(
        "tic_tac_toe",
        variants=("default=", "wide=--network.trunk.width 512"),
        iterations=3,
        seeds=(0, 1),
        out=tmp_path,
        simulations=2,
        num_games=4,
    )
    script.main(settings)
    assert trained == [("default", 0), ("wide", 0), ("default", 1), ("wide", 1)]
    found = script.read_results(settings)
    assert found["score against the first"] == {"wide": [0.5, 0.5]}
    assert found["mistakes, network"]["default"] == found["mistakes, network"]["wide"]
    assert found["more mistakes, network"] == {"wide": [0, 0]}
    table = (tmp_path / "ablation.md").read_text()
    assert "| 50.0% (50.0-50.0; 2) |" in table
    assert "| +0.0% (0.0 to 0.0; 2) | `--network.trunk.width 512` |" in table
    assert "tic_tac_toe, 3 iterations a run" in table
    assert table in capsys.readouterr().out
    assert (tmp_path / "ablation.png").stat().st_size > 1000
    script.main(settings)
    assert len(trained) == 4  # nothing is trained again
    with pytest.raises(SystemExit, match="is the result of other settings"):
        script.main(dataclasses.replace(settings, iterations=4))


@pytest.mark.parametrize(
    ("variants", "seeds", "message"),
    [
        (("wide",), (0,), "a variant must be NAME=OPTIONS"),
        (("../x=",), (0,), "a variant must be NAME=OPTIONS"),
        (("x=--variation",), (0,), "--variation must be the first option"),
        (("x=--variation z",), (0,), "name one of pure_z, soft_z, .* muon: .*z"),
        (("x=--seed 1 --variation pure_z",), (0,), "--variation must be the first"),
        (("a=", "a=--seed 1"), (0,), "variants must have different names"),
        (("a=",), (0, 0), "seeds must be different numbers"),
    ],
)
def test_variants_are_checked(variants, seeds, message):
    script = types.SimpleNamespace(**runpy.run_path(str(FOLDER / "ablate.py")))
    with pytest.raises(ValueError, match=message):
        script.Settings("go", variants=variants, seeds=seeds)


def test_a_variant_can_be_a_variation(tmp_path, monkeypatch):
    script = types.SimpleNamespace(**runpy.run_path(str(FOLDER / "ablate.py")))
    commands = []

    def train(command, check):
        commands.append(command[1:])
        return types.SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", train)
    settings = script.Settings("go:5", variants=("z=",), iterations=2)
    script.train(settings, tmp_path, 1, ["--variation", "pure_z", "--preset", "cpu"])
    script.train(settings, tmp_path, 1, ["--preset", "cpu"])
    length = ["go:5", "--iterations", "2", "--seed", "1", "--run-dir", str(tmp_path)]
    assert commands == [
        [str(FOLDER / "variations.py"), "pure_z", *length, "--preset", "cpu"],
        ["-m", "azjax", "train", *length, "--preset", "cpu"],
    ]


def test_a_run_has_minutes_or_iterations():
    script = types.SimpleNamespace(**runpy.run_path(str(FOLDER / "ablate.py")))
    with pytest.raises(ValueError, match=r"give minutes or iterations: 2\.0 and 3"):
        script.Settings("go", variants=("a=",), minutes=2.0, iterations=3)
    assert script.Settings("go", variants=("a=",)).length == ("minutes", 10)


def test_an_interval_is_that_of_student():
    script = types.SimpleNamespace(**runpy.run_path(str(FOLDER / "ablate.py")))
    # 3 runs with mean 2 and standard error 1 / sqrt(3), 4.303 of which are 95%.
    assert script.interval([1, 2, 3]) == pytest.approx((-0.484, 4.484), abs=1e-3)


def test_all_games_are_drawn_on_one_sheet(tmp_path):
    run("draw_games.py", "--file", "games.svg", folder=tmp_path)
    svg = (tmp_path / "games.svg").read_text()
    assert svg.count("<svg") == 1 + len(games.available())


@pytest.mark.slow
def test_the_pictures_of_a_search_are_drawn(tmp_path):
    output = run("draw_lessons.py", "--directory", ".", folder=tmp_path)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"prior.svg", "search.svg", "tree.svg", "visits.svg"}
    prior, *searches = [
        [float(number) for number in re.search(r"\[([^\]]+)", line)[1].split()]
        for line in output.splitlines()
    ]
    # As docs/alphazero.md tells it: the network prefers column 5, and the search finds
    # that column 4 wins.
    assert np.argmax(prior) == 4
    assert [np.argmax(visits) for visits in searches[-3:]] == [3, 3, 3]


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
def test_the_page_is_drawn(tmp_path):
    run("draw_page.py", "--file", "page.png", folder=tmp_path)
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


def test_only_missing_plans_are_computed_and_all_are_drawn(tmp_path, monkeypatch):
    script = runpy.run_path(str(FOLDER / "draw_plans.py"))
    fits = {
        "fits": True,
        "positions_per_second": [2000.0, 1000.0, 1000.0],
        "needed_bytes": 3 * 2**29,
        "usable_bytes": 2**34,
        "chips": 8,
    }
    asked, clock = [], itertools.count(step=90)

    def answer(command, **settings):
        asked.append(command[3:])
        status = 2 if command[-2] == "v6e:2x4" else 0
        out = "" if status else json.dumps(fits)
        return subprocess.CompletedProcess(command, status, out, "azjax: too large")

    def usage(who):
        return types.SimpleNamespace(ru_utime=next(clock) / 2, ru_stime=45.0)

    monkeypatch.setattr(subprocess, "run", answer)
    monkeypatch.setattr(resource, "getrusage", usage)
    settings = script["Settings"](
        cells=tmp_path / "cells",
        file=tmp_path / "docs" / "plan.md",
        games=("hex:5",),
        presets=("cpu",),
        devices=("v5e:4x4", "v6e:2x4"),
    )
    for _ in range(2):  # nothing is computed the second time
        script["main"](settings)
    options = ["plan", "hex:5", "--preset", "cpu"]
    assert asked == [
        [*options, "--num-lanes", "16", "--device", "v5e:4x4", "--json"],
        [*options, "--device", "v6e:2x4", "--json"],
    ]
    page = settings.file.read_text()
    assert "| v5e:4x4, 8 chips of 16.00 GiB | v6e:2x4 |" in page
    assert "| hex:5 | cpu | 1,200 / 1.50 / 45 | refused |" in page
    assert page.endswith("- hex:5, cpu, v6e:2x4: azjax: too large\n")
    settings = dataclasses.replace(settings, devices=("v5e:4x4", "h100"), compute=False)
    script["main"](settings)
    line = "| hex:5 | cpu | 1,200 / 1.50 / 45 | not computed |"
    assert line in settings.file.read_text()


@pytest.mark.slow
def test_the_accelerator_benchmark_keeps_its_time_limit(tmp_path):
    run("bench/accelerator.py", "--quick", "--out", "results", folder=tmp_path)
    result = json.loads((tmp_path / "results" / "accelerator.json").read_text())
    parts = result["parts"]
    assert [part["error"] for part in parts.values()] == [None] * 6
    assert parts["device"]["platform"] == jax.default_backend()
    assert parts["games"]["results"][0]["game"] == "tic_tac_toe"
    assert {row["subject"] for row in parts["search"]["results"]} >= {"azjax", "mctx"}
    assert parts["forecast"]["fits"]
    (speed,) = parts["throughput"]["results"]
    assert min(speed["self_play_positions"], speed["update_positions"]) > 0
    assert parts["learning"]["metrics"][-1]["iteration"] == 4
    pictures = {path.stem for path in (tmp_path / "results").glob("*.png")}
    assert pictures == {"games", "search", "throughput", "learning"}


def test_a_part_that_fails_or_hangs_does_not_stop_the_others(tmp_path, monkeypatch):
    script = runpy.run_path(str(FOLDER / "bench" / "accelerator.py"))
    names = script["main"].__globals__
    program = tmp_path / "accelerator_parts.py"
    program.write_text(
        "import json, pathlib, sys, time\n"
        "name, _, out = sys.argv[1:4]\n"
        "pathlib.Path(out, f'{name}.json').write_text(json.dumps({'found': name}))\n"
        "time.sleep(600 * (name == 'search'))\n"
        "sys.exit('out of memory' if name == 'games' else 0)\n"
    )
    monkeypatch.setitem(names, "__file__", str(tmp_path / "accelerator.py"))
    shares = {"games": 0.6, "search": 0.04, "device": 0.36}
    monkeypatch.setitem(names, "SHARES", shares)
    settings = script["Settings"](
        out=tmp_path / "out", minutes=0.4, parts=tuple(shares)
    )
    with pytest.raises(SystemExit, match="failed: games, search"):
        script["main"](settings)
    parts = json.loads((tmp_path / "out" / "accelerator.json").read_text())["parts"]
    assert parts["games"]["error"] == "exit status 1: out of memory"
    assert parts["search"]["error"].startswith("ended after its")
    assert parts["device"]["error"] is None
    assert [part["found"] for part in parts.values()] == ["games", "search", "device"]
    with pytest.raises(SystemExit, match="is not empty: give another --out"):
        script["main"](settings)


@pytest.mark.slow
def test_a_killed_run_loses_no_data(tmp_path):
    out = run("bench/kill_resume.py", "--kills", "2", folder=tmp_path)
    assert "no data was lost" in out


@pytest.mark.slow
@pytest.mark.parametrize("kills", [0, 1])
def test_runs_on_different_numbers_of_devices_are_compared(kills, tmp_path):
    options = ("--game", "tic_tac_toe", "--iterations", "6", "--devices", "1", "2x1")
    text = "--self-play.num-games 8 --learner.batch-size 8 --replay.min-positions 64"
    args = (*options, f"--options={text}", "--kills", kills)
    out = run("bench/device_counts.py", *args, folder=tmp_path)
    assert "bit for bit" in out


@pytest.mark.slow
def test_extended_runs_are_compared_with_full_ones(tmp_path):
    options = ("runs", "--game", "tic_tac_toe", "--iterations", "4", "--seeds", "0")
    args = ("bench/extended_runs.py", *options, "--quick", "--json")
    out = run(*args, folder=tmp_path)
    rows = json.loads(out.splitlines()[-1])
    assert [(row["run"], row["iteration"]) for row in rows] == [
        ("extended", 4),
        ("whole", 4),
    ]
    again = run(*args, folder=tmp_path)
    assert json.loads(again.splitlines()[-1]) == rows


@pytest.mark.slow
def test_the_searches_are_compared_and_drawn(tmp_path):
    options = ("--quick", "--json", "--plot", "search.png")
    results = json.loads(run("bench/search.py", *options, folder=tmp_path))
    assert {result["subject"] for result in results} == {
        *("azjax", "mctx+azjax", "mctx", "mctx+pgx")
    }
    assert (tmp_path / "search.png").exists()


@pytest.mark.slow
def test_the_programs_of_searches_are_counted(tmp_path):
    options = ["--device", "cpu", "--batch", "4", "--simulations", "4", "--json"]
    ours, theirs = json.loads(run("bench/programs.py", *options, folder=tmp_path))
    assert (ours["engine"], theirs["engine"]) == ("azjax", "mctx")
    # With few optimizations a CPU's program has loops instead of scatters.
    assert all(row["gathers"] > 0 for row in (ours, theirs))
    assert all(row["bytes_accessed"] > 0 for row in (ours, theirs))
    parts = {"bookkeeping", "descent", "values", "backup"}
    assert set(ours["kernels"]) == set(theirs["kernels"]) == parts
    assert all(ours["kernels"].values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "measured"),
    [
        (
            "root-visits --simulations 4 --tree-reuse-nodes 8 --games 4 --moves 8",
            {"kept", "not_kept", "ratio"},
        ),
        (
            "match alphazero:pretrained?simulations=2&tree_reuse_nodes=4 random "
            "--num-games 4",
            {"score", "low", "high", "wins"},
        ),
        ("mistakes network:pretrained", {"player", "mistakes", "low", "high"}),
    ],
)
def test_the_options_of_the_search_are_measured(options, measured, tmp_path):
    script = "bench/search_options.py"
    result = json.loads(run(script, *options.split(), "--json", folder=tmp_path))
    assert measured <= result.keys()


@pytest.mark.slow
def test_averages_over_symmetries_are_measured(tmp_path):
    script = "bench/symmetries.py"
    out = run(
        script,
        "match",
        "tic_tac_toe",
        "root:2",
        "random:2",
        "--num-games",
        4,
        folder=tmp_path,
    )
    assert out.startswith("root:2 against random:2: score ")
    out = run(script, "mistakes", "none:0", "root:0", folder=tmp_path)
    assert [line.split(":")[0] for line in out.splitlines()] == ["none", "root"]


@pytest.mark.slow
def test_searches_with_edges_for_the_legal_actions_are_compared(tmp_path):
    options = "--games 4 --simulations 4 --blocks 1 --channels 8 --repeats 1 --json"
    args = ("bench/edges.py", "chess", *options.split())
    listed, full = json.loads(run(*args, folder=tmp_path))
    assert (listed["edges"], full["edges"]) == (218, 4672)
    assert listed["same_moves"] == full["same_moves"] == 1
    assert 10 * listed["tree_bytes"] < full["tree_bytes"]
    assert listed["seconds"] > 0


@pytest.mark.slow
def test_a_custom_loop_learns(tmp_path):
    out = run("own_loop.py", "--iterations", 20, folder=tmp_path)
    last = out.splitlines()[-1]
    assert last.startswith("20: ")
    # An untrained network's search misses the best move in more than 1% of them.
    assert float(last.rsplit(maxsplit=1)[1].rstrip("%")) < 0.6


@pytest.mark.slow
def test_ppo_learns_to_beat_random_moves(tmp_path):
    out = run("ppo.py", "--iterations", 20, folder=tmp_path)
    first, *_, last = (float(line.split()[-1].rstrip("%")) for line in out.splitlines())
    assert first < 72
    assert last > 80


@pytest.mark.slow
def test_a_variation_is_trained(tmp_path):
    run("variations.py", "pure_z", "tic_tac_toe", "--minutes", 0.05, folder=tmp_path)
    assert (
        tmp_path / "runs" / "pure_z_tic_tac_toe" / "player" / "weights.npz"
    ).exists()

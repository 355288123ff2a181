"""Scripts that check, draw, ship and compare."""

import dataclasses
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
from training.saved_runs import evaluation_row, save_run

from azjax import arena, games, players
from azjax.commands.train import parse_train_config
from azjax.players.serialization import pretrained_directory

FOLDER = pathlib.Path(__file__).parents[2] / "experiments"


def test_every_script_is_tested_here():
    tests = pathlib.Path(__file__).parent.glob("test_*.py")
    tested = "".join(file.read_text() for file in tests)
    for script in FOLDER.glob("*.py"):
        assert f'"{script.name}"' in tested


def test_a_player_can_be_shipped_at_half_its_size(
    tmp_path, monkeypatch, load, save_untrained_player
):
    run = save_run(tmp_path / "run", [evaluation_row(7)])
    save_untrained_player(tmp_path / "run" / "player", dtype="bfloat16")
    script = load("ship_player.py")
    names = script.main.__globals__
    monkeypatch.setitem(names, "shipped_players", lambda: tmp_path / "shipped")
    script.main(run, hardware="an abacus")
    card = (tmp_path / "shipped" / "tic_tac_toe" / "card.md").read_text()
    assert "7,000 positions" in card
    assert "an abacus" in card
    loaded = players.load_player(tmp_path / "shipped" / "tic_tac_toe")
    assert loaded.game == games.make("tic_tac_toe")
    assert loaded.config.dtype == "float32"  # that of the run: bfloat16
    sizes = [
        (folder / "player.safetensors").stat().st_size
        for folder in (tmp_path / "shipped/tic_tac_toe", tmp_path / "run/player")
    ]
    assert sizes[0] < 0.7 * sizes[1]


def test_the_solved_positions_can_be_made(run, tmp_path):
    path = tmp_path / "positions.csv"
    options = ("--output", path, "--positions-per-stage", "2")
    run("make_solved_positions.py", *options)
    lines = path.read_text().splitlines()
    assert lines[0] == "set,moves,q0,q1,q2,q3,q4,q5,q6"
    assert len(lines) == 1 + 5 * 2


@pytest.mark.slow
def test_the_games_can_be_verified(run):
    run("verify_games.py", *("--games", "20", "--names", "tic_tac_toe"))


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
def test_the_browser_is_compared_with_python(run):
    options = ("--positions", "20", "--simulations", "100", "--json")
    result = json.loads(run("verify_browser.py", *options))
    assert result["positions"] == 20
    assert result["same_move"] >= 0.95
    assert result["requests_to_other_hosts"] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
def test_replies_are_timed_where_people_play(run):
    options = ("--games", "tic_tac_toe", "--positions", "2", "--json")
    rows = json.loads(run("reply_times.py", *options))
    places = ("session", "served page", "exported page")
    expected = [("tic_tac_toe", place) for place in places]
    assert [(row["game"], row["where"]) for row in rows] == expected
    assert all(0 < row["median_ms"] <= row["slowest_ms"] for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "player", ["random", "gtp:gnugo --mode gtp --level 1 --never-resign"]
)
def test_gnu_go_and_azjax_play_by_the_same_rules(player, run, monkeypatch, gnugo):
    folder = os.path.dirname(gnugo)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{folder}")
    options = ("--games", "2", "--size", "5", "--komi", "0.5", "--player", player)
    seats, match = run("verify_gtp.py", *options).splitlines()
    assert seats.startswith("seats: 2 games")
    assert match.startswith("match: 2 games")
    assert match.endswith("disagreements 0")


@pytest.mark.slow
def test_visitors_play_on_the_server_during_attacks(tmp_path):
    options = "--visitors 2 --simulations 25 --seconds 1 --idle-sockets 40 --json"
    # In a process, because the attackers leave sockets open.
    out = subprocess.run(
        [sys.executable, FOLDER / "verify_server.py", *options.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        check=True,
        timeout=200,
    ).stdout
    results = json.loads(out)
    for result in results.values():
        assert result["lost_games"] == 0
        assert result["errors"] == []
        assert sum(result["games"].values()) >= 2
    assert results["among hostile ones"]["attacks"] > 0


# Variants


@pytest.fixture
def ablate(load):
    return load("ablate.py")


@pytest.mark.slow
def test_variants_are_trained_judged_and_compared(
    ablate, tmp_path, monkeypatch, capsys
):
    trained = []

    def train(command, check):
        """Copies the shipped player in place of a training."""
        *_, game = command[: command.index("--iterations")]
        config = parse_train_config(game, command[5:], prog="azjax train")
        trained.append((pathlib.Path(config.run_dir).parent.name, config.seed))
        shutil.copytree(pretrained_directory(games.make(game)), config.run_dir)
        return types.SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", train)
    settings = ablate.Settings(
        "tic_tac_toe",
        variants=("default=", "wide=--network.trunk.width 512"),
        iterations=3,
        seeds=(0, 1),
        out=tmp_path,
        simulations=2,
        num_games=4,
    )
    ablate.main(settings)
    assert trained == [("default", 0), ("wide", 0), ("default", 1), ("wide", 1)]
    found = ablate.read_results(settings)
    assert found["score against the first"] == {"wide": [0.5, 0.5]}
    assert found["mistakes, network"]["default"] == found["mistakes, network"]["wide"]
    assert found["more mistakes, network"] == {"wide": [0, 0]}
    table = (tmp_path / "ablation.md").read_text()
    assert "| 50.0% (50.0-50.0; 2) |" in table
    assert "| +0.0% (0.0 to 0.0; 2) | `--network.trunk.width 512` |" in table
    assert "tic_tac_toe, 3 iterations a run" in table
    assert table in capsys.readouterr().out
    assert (tmp_path / "ablation.png").stat().st_size > 1000
    ablate.main(settings)
    assert len(trained) == 4  # nothing is trained again
    with pytest.raises(SystemExit, match="is the result of other settings"):
        ablate.main(dataclasses.replace(settings, iterations=4))


def test_variants_are_judged_by_the_lost_win_probability_in_games_with_chance(
    ablate, tmp_path, monkeypatch
):
    graded = arena.Grade({}, np.array([True, False]), lost=np.array([0.25, 0]))
    monkeypatch.setattr(arena, "shipped", lambda game: game)
    monkeypatch.setattr(arena, "grade", lambda player, positions, key: graded)
    monkeypatch.setattr(players, "load_run", lambda path, game: game)
    names, named = ablate.judge.__globals__, {"network": None}
    monkeypatch.setitem(names, "named_players", lambda trained, simulations: named)
    settings = ablate.Settings("ur:2", variants=("default=",))
    found = ablate.judge(settings, tmp_path, tmp_path)
    assert found == {"win probability lost, network": 0.125}


def test_variants_are_checked(ablate):
    both = {"minutes": 2.0, "iterations": 3}
    for variants, settings, message in (
        (("wide",), {}, "a variant must be NAME=OPTIONS"),
        (("../x=",), {}, "a variant must be NAME=OPTIONS"),
        (("x=--variation",), {}, "--variation must be the first option"),
        (("x=--variation z",), {}, "name one of pure_z, soft_z, .* muon: .*z"),
        (("x=--seed 1 --variation pure_z",), {}, "--variation must be the first"),
        (("a=", "a=--seed 1"), {}, "variants must have different names"),
        (("a=",), {"seeds": (0, 0)}, "seeds must be different numbers"),
        (("a=",), both, r"give minutes or iterations: 2\.0 and 3"),
    ):
        with pytest.raises(ValueError, match=message):
            ablate.Settings("go", variants=variants, **settings)


def test_a_variant_can_be_a_variation(ablate, tmp_path, monkeypatch):
    commands = []

    def train(command, check):
        commands.append(command[1:])
        return types.SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", train)
    settings = ablate.Settings("go:5", variants=("z=",), iterations=2)
    ablate.train(settings, tmp_path, 1, ["--variation", "pure_z", "--preset", "cpu"])
    ablate.train(settings, tmp_path, 1, ["--preset", "cpu"])
    length = ["go:5", "--iterations", "2", "--seed", "1", "--run-dir", str(tmp_path)]
    assert commands == [
        [str(FOLDER / "variations.py"), "pure_z", *length, "--preset", "cpu"],
        ["-m", "azjax", "train", *length, "--preset", "cpu"],
    ]
    # A run takes 10 minutes by default.
    assert ablate.Settings("go", variants=("a=",)).length == ("minutes", 10)


def test_an_interval_is_that_of_student(ablate):
    # 3 runs with mean 2 and standard error 1 / sqrt(3), 4.303 of which are 95%.
    assert ablate.interval([1, 2, 3]) == pytest.approx((-0.484, 4.484), abs=1e-3)


def test_boards_of_kalah_are_solved(run, tmp_path):
    file = tmp_path / "values.json"
    out = run("solve_kalah.py", "2,2", "3,3", "--file", str(file))
    assert "3,3: +2, " in out
    run("solve_kalah.py", "1,3", "--no-empty-capture", "--file", str(file))
    # The results are published; the first is one move.
    assert json.loads(file.read_text()) == {"1,3": 6, "2,2": -2, "3,3": 2}


def test_positions_of_kalah_are_solved_as_by_exhaustive_search(run, tmp_path):
    file, game = tmp_path / "kalah.csv", games.make("kalah:3,2")
    seeds_left = ["--seeds-left", "4", "9", "--per-group", "20"]
    run("solve_kalah.py", "3,2", *seeds_left, "--positions", str(file))
    found, known = arena.read(game, file), arena.shipped(game)
    exact = dict(zip(seeds_and_player(known), known.action_values, strict=True))
    assert len(found) == 40
    for key, values in zip(seeds_and_player(found), found.action_values, strict=True):
        np.testing.assert_array_equal(values, exact[key])


def seeds_and_player(positions):
    states = positions.states
    seeds = [seeds.tobytes() for seeds in states.seeds]
    return list(zip(seeds, states.current_player.tolist(), strict=True))


def test_the_royal_game_of_ur_is_solved(run, tmp_path):
    file = tmp_path / "ur.npy"
    out = run("solve_ur.py", "--pieces", "2", "--file", str(file))
    assert "2 pieces: the first player wins 51.857" in out
    assert np.load(file).shape == (122, 122)


# Drawings


@pytest.mark.slow
def test_all_games_are_drawn_on_one_sheet(run, tmp_path):
    run("draw_games.py", "--file", "games.svg")
    svg = (tmp_path / "games.svg").read_text()
    assert svg.count("<svg") == 1 + len(games.available())


@pytest.mark.slow
def test_the_pictures_of_a_search_are_drawn(load, tmp_path, monkeypatch, capsys):
    script = load("draw_lessons.py")
    # Each number of simulations is another program.
    monkeypatch.setitem(script.main.__globals__, "SIMULATIONS", (8, 200))
    script.main(script.Settings(tmp_path))
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"prior.svg", "search.svg", "tree.svg", "visits.svg"}
    prior, _, visits = [
        [float(number) for number in re.search(r"\[([^\]]+)", line)[1].split()]
        for line in capsys.readouterr().out.splitlines()
    ]
    # As docs/alphazero.md tells it: the network prefers column 5, and the search finds
    # that column 4 wins.
    assert np.argmax(prior) == 4
    assert np.argmax(visits) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
def test_the_page_is_drawn(run, tmp_path):
    run("draw_page.py", "--file", "page.png")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


def test_only_missing_plans_are_computed_and_all_are_drawn(load, tmp_path, monkeypatch):
    script = load("draw_plans.py")
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
    settings = script.Settings(
        cells=tmp_path / "cells",
        file=tmp_path / "docs" / "plan.md",
        games=("hex:5",),
        presets=("cpu",),
        devices=("v5e:4x4", "v6e:2x4"),
    )
    for _ in range(2):  # nothing is computed the second time
        script.main(settings)
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
    script.main(settings)
    line = "| hex:5 | cpu | 1,200 / 1.50 / 45 | not computed |"
    assert line in settings.file.read_text()

"""Scripts that measure."""

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import arena, games
from azjax.devices import read_program


@pytest.mark.slow
def test_a_network_is_trained_on_perfect_labels(run, tmp_path):
    tiny = ("--labels", "labels.csv", "--positions", "40", "--width", "8")
    tiny += ("--updates", "1", "--simulations", "1", "--batch-size", "8")
    printed = run("bench/supervised_ceiling.py", *tiny)
    assert re.search(
        r"policy_loss \d\.\d+, value_loss 1\.\d+, .*; network \d+", printed
    )
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
def test_the_search_of_solved_positions_is_measured_by_stage(
    run, save_untrained_player, tmp_path
):
    save_untrained_player(tmp_path / "run" / "player")
    options = ("--player", "run", "--game", "tic_tac_toe", "--plies", "3")
    options += ("--simulations", "0", "200", "--max-positions", "8")
    run("bench/opening_trap.py", *options, "--json", "rows.json")
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
def test_value_targets_are_compared_with_perfect_play(
    run, save_untrained_player, tmp_path
):
    save_untrained_player(tmp_path / "run" / "player")
    options = ("--player", "run", "--game", "tic_tac_toe", "--plies", "3")
    options += ("--simulations", "1", "200", "--max-positions", "20")
    run("bench/target_quality.py", *options, "--json", "rows.json")
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert list(rows) == ["network", "search, 1", "search, 200", "game, 1", "game, 200"]
    for of_source in rows.values():
        assert [row["stage"] for row in of_source] == ["0-2", "3-5", "6-8"]
    # At most 3 moves are left: a search sees all of them, so the game is perfect.
    assert rows["game, 200"][-1]["square"] == 0
    assert rows["game, 1"][-1]["square"] > 0
    assert rows["search, 200"][-1]["square"] < rows["network"][-1]["square"]


@pytest.mark.slow
def test_the_time_of_a_move_can_be_measured(run):
    options = ("tic_tac_toe", "mcts:10", "random", "--games", "1", "3", "--json")
    rows = json.loads(run("bench/players.py", *options))
    measured = [(row["player"], row["games"]) for row in rows]
    assert measured == [("mcts:10", 1), ("mcts:10", 3), ("random", 1), ("random", 3)]
    assert all(0 < row["seconds"] <= row["slowest_seconds"] for row in rows)


@pytest.mark.slow
def test_the_rules_are_timed_against_pgx(run):
    options = ("--games", "tic_tac_toe", "--batch-size", "8", "--num-steps", "5")
    out = run("bench/games.py", *options, "--repeats", "1", "--json")
    (result,) = json.loads(out)
    assert result["azjax_state_bytes"] < result["pgx_state_bytes"]
    assert result["rules_ratio"] > 0
    assert result["documented_ratio"] > 0


PARTS = ("device", "search", "throughput", "games", "learning")


@pytest.mark.slow
def test_all_parts_of_the_accelerator_benchmark_succeed(run, tmp_path):
    for part in PARTS:
        options = ("--seconds", "60", "--quick", "--out", ".")
        run("bench/accelerator.py", "--parts", part, *options)
    parts = {
        part: json.loads((tmp_path / f"{part}.json").read_text()) for part in PARTS
    }
    assert parts["device"]["platform"] == jax.default_backend()
    assert parts["games"]["results"][0]["game"] == "tic_tac_toe"
    assert {row["subject"] for row in parts["search"]["results"]} >= {"azjax", "mctx"}
    (speed,) = parts["throughput"]["results"]
    assert min(speed["self_play_positions"], speed["update_positions"]) > 0
    assert parts["learning"]["metrics"][-1]["iteration"] == 4
    pictures = {path.stem for path in tmp_path.glob("*.png")}
    assert pictures == {"games", "search", "throughput", "learning"}


@pytest.mark.slow
def test_the_accelerator_benchmark_runs_a_part_in_a_process(run, tmp_path):
    options = ("--quick", "--minutes", "1", "--parts", "device")
    run("bench/accelerator.py", *options, "--out", "results")
    result = json.loads((tmp_path / "results" / "accelerator.json").read_text())
    (part,) = result["parts"].values()
    assert part["error"] is None
    assert part["platform"] == jax.default_backend()


def test_a_part_that_fails_or_hangs_does_not_stop_the_others(
    load, tmp_path, monkeypatch
):
    script = load("bench/accelerator.py")
    names = script.main.__globals__
    program = tmp_path / "accelerator.py"
    program.write_text(
        "import json, pathlib, sys, time\n"
        "_, name, _, out = sys.argv[1:5]\n"
        "pathlib.Path(out, f'{name}.json').write_text(json.dumps({'found': name}))\n"
        "time.sleep(600 * (name == 'search'))\n"
        "sys.exit('out of memory' if name == 'games' else 0)\n"
    )
    monkeypatch.setitem(names, "__file__", str(program))
    shares = {"games": 0.6, "search": 0.04, "device": 0.36}
    monkeypatch.setitem(names, "SHARES", shares)
    settings = script.Settings(out=tmp_path / "out", minutes=0.4, parts=tuple(shares))
    with pytest.raises(SystemExit, match="failed: games, search"):
        script.main(settings)
    parts = json.loads((tmp_path / "out" / "accelerator.json").read_text())["parts"]
    assert parts["games"]["error"] == "exit status 1: out of memory"
    assert parts["search"]["error"].startswith("ended after its")
    assert parts["device"]["error"] is None
    assert [part["found"] for part in parts.values()] == ["games", "search", "device"]
    with pytest.raises(SystemExit, match="is not empty: give another --out"):
        script.main(settings)


@pytest.mark.slow
def test_the_searches_are_compared_and_drawn(run, tmp_path):
    options = ("--quick", "--json", "--plot", "search.png")
    results = json.loads(run("bench/search.py", *options))
    assert {result["subject"] for result in results} == {
        *("azjax", "mctx+azjax", "mctx", "mctx+pgx")
    }
    assert (tmp_path / "search.png").exists()


@pytest.mark.slow
def test_the_programs_of_searches_and_games_are_counted(run):
    options = ["--device", "cpu", "--batch", "4", "--simulations", "4", "--json"]
    options += ["--programs", "azjax", "mctx", "games", "--games", "tic_tac_toe"]
    ours, theirs, rules = json.loads(run("bench/programs.py", *options))
    assert (ours["program"], theirs["program"]) == ("azjax", "mctx")
    for row in (ours, theirs):
        assert row["total"]["gathers"] > 0
        assert row["total"]["kernels"] > 4 * row["longest_loop"]["kernels"] > 0
        assert row["parts"][1]["times"] == 4
    assert 0 < rules["azjax"]["kernels"] < rules["pgx"]["kernels"]


def test_more_kernels_predicates_gathers_or_cycles_are_worse(load):
    worse = load("bench/programs.py").worse
    recorded = {"kernels": 50.0, "predicates": 0.0}
    assert worse({"kernels": 54.9, "predicates": 0.0}, recorded) == []
    assert worse({"kernels": 56.0, "predicates": 1.0}, recorded) == [
        *("56 kernels in place of 50", "1 predicates in place of 0")
    ]
    recorded = {"cycles": 100, "gathers": 23, "scatters": 12}
    assert worse({"cycles": 110, "gathers": 23, "scatters": 12}, recorded) == []
    assert len(worse({"cycles": 111, "gathers": 24, "scatters": 13}, recorded)) == 3


def test_the_iterations_of_loops_are_counted(load):
    trips = load("bench/trips.py")

    def inner(length):
        return jax.lax.while_loop(lambda i: i < length, lambda i: i + 1, 0)

    def outer(lengths):
        def step(total, lengths):
            return total + jax.vmap(inner)(lengths).sum(), None

        return jax.lax.scan(step, 0, lengths)[0]

    # A batch repeats the loop as often as its longest element needs.
    lengths = jnp.array([[1, 3], [5, 2]])
    (found,) = trips.measure_trips(outer, lengths).items()
    assert found[0][0].endswith("inner")
    assert found[1] == (3 + 5) / 2
    program = read_program(jax.jit(outer).lower(lengths).compile().as_text())
    measured = trips.lengths_of(program, lambda: dict([found]))
    assert list(measured.values()) == [4]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "measured"),
    [
        (
            "root-visits --simulations 4 --tree-reuse-nodes 8 --games 4 --moves 8",
            "kept not_kept ratio",
        ),
        (
            "match alphazero:pretrained?simulations=2&tree_reuse_nodes=4 random "
            "--num-games 4",
            "score low high wins",
        ),
        ("match root:2 random:2 --game tic_tac_toe --num-games 4", "score losses"),
    ],
)
def test_the_options_of_the_search_are_measured(options, measured, run):
    script = "bench/search_options.py"
    result = json.loads(run(script, *options.split(), "--json"))
    assert set(measured.split()) <= result.keys()


@pytest.mark.slow
def test_mistakes_are_measured_also_of_averages_over_symmetries(
    load, monkeypatch, capsys
):
    script = load("bench/search_options.py")
    few = arena.shipped(games.make("connect_four")).take(np.arange(200))
    monkeypatch.setitem(script.mistakes.__globals__, "shipped", lambda game: few)
    script.mistakes(("network:pretrained", "none:0", "root:0"), json=True)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["player"] for row in rows] == ["network:pretrained", "none:0", "root:0"]
    # The network alone makes the moves of a search without simulations.
    assert rows[0]["mistakes"] == rows[1]["mistakes"]
    assert all(row["low"] <= row["mistakes"] <= row["high"] for row in rows)


@pytest.mark.slow
def test_searches_with_edges_for_the_legal_actions_are_compared(run):
    options = "--games 4 --simulations 4 --blocks 1 --channels 8 --repeats 1 --json"
    args = ("bench/edges.py", "chess", *options.split())
    listed, full = json.loads(run(*args))
    assert (listed["edges"], full["edges"]) == (218, 4672)
    assert listed["same_moves"] == full["same_moves"] == 1
    assert 10 * listed["tree_bytes"] < full["tree_bytes"]
    assert listed["seconds"] > 0


@pytest.mark.slow
def test_searches_of_a_game_with_chance_are_compared_with_those_of_mctx(run):
    options = "--positions 16 --simulations 128 --repeats 1 --json"
    rows = json.loads(run("bench/perfect_play.py", "ur:2", *options.split()))
    assert [row["search"] for row in rows] == ["PUCT", "Gumbel", "mctx"]
    for row in rows:
        assert 0 <= row["lost"] < 0.05
        assert row["error"] < 0.2
        assert row["seconds"] > 0

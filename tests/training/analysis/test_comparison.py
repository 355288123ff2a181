import json

import pytest
from training.saved_runs import evaluation_row, iteration_row, save_run

from azjax.networks import ConvTrunkConfig, NetworkConfig
from azjax.search import AlphaZeroConfig
from azjax.training import LearnerConfig
from azjax.training.analysis.comparison import (
    Measure,
    differing_settings,
    draw_comparison,
    measures,
    position_unit,
    read_runs,
    sections,
    to_json,
)
from azjax.training.config import QConfig

LION = {"state": ["Lion"], "constants": [0.9], "digest": "1", "versions": {"jax": "1"}}


def compared(tmp_path, *settings, rows=()):
    """Runs with these settings, read from their directories."""
    names = [
        save_run(tmp_path / f"run{number}", rows, **changes)
        for number, changes in enumerate(settings)
    ]
    return read_runs(names)


def test_only_settings_that_differ_are_listed_by_their_options(tmp_path):
    runs = compared(
        tmp_path,
        {"learner": LearnerConfig(batch_size=24), "notes": "the first"},
        {"learner": LearnerConfig(batch_size=32), "seed": 3},
    )
    assert differing_settings(runs) == {
        "seed": [0, 3],
        "learner.batch-size": [24, 32],
    }


def test_trunk_and_search_are_named_and_their_settings_may_be_missing(tmp_path):
    conv = NetworkConfig(ConvTrunkConfig(channels=8))
    differing = differing_settings(
        compared(tmp_path, {}, {"network": conv, "search": AlphaZeroConfig()})
    )
    assert differing["trunk"] == ["dense", "conv"]
    assert differing["algorithm"] == ["gumbel", "alphazero"]
    assert differing["network.trunk.channels"] == [None, 8]
    assert differing["search.value-scale"][1] is None
    assert differing["search.c-init"][0] is None
    names = list(differing)
    searches = [names.index(name) for name in names if name.startswith("search.")]
    assert searches == list(range(searches[0], searches[-1] + 1))


def test_an_optimizer_is_compared_without_versions(tmp_path):
    newer = LION | {"digest": "2", "versions": {"jax": "2"}}
    runs = compared(tmp_path, {"optimizer": LION}, {"optimizer": newer})
    assert differing_settings(runs) == {}
    runs = compared(tmp_path / "b", {"optimizer": LION}, {"optimizer": "adamw"})
    assert differing_settings(runs) == {
        "optimizer.state": [["Lion"], None],
        "optimizer.constants": [[0.9], None],
    }


def test_runs_of_two_algorithms_are_compared_in_the_settings_of_both(tmp_path):
    runs = compared(
        tmp_path, {"seed": 1}, {"config_class": QConfig, "learning_rate": 0.5}
    )
    differing = differing_settings(runs)
    assert differing["kind"] == ["alphazero", "q_learning"]
    assert differing["seed"] == [1, 0]
    assert "learning-rate" not in differing
    assert "learner.learning-rate" not in differing


def test_the_counters_are_those_of_the_newest_row(tmp_path):
    rows = [
        evaluation_row(0, mistakes=0.5, random=0.5),
        iteration_row(1),
        evaluation_row(1, mistakes=0.25, random=0.75, greedy=0.5),
        iteration_row(2),
    ]
    found = to_json(compared(tmp_path, {}, {}, rows=rows))
    assert found["game"] == "tic_tac_toe"
    for number, run in enumerate(found["runs"]):
        assert run["run"] == f"run{number}"
        assert run["counters"]["iteration"] == 2
        last = run["last_evaluation"]
        assert last["positions"] == 1000
        assert last["mistakes"] == {"network": {"rate": 0.25, "low": 0.2, "high": 0.3}}
        assert last["scores"]["random"]["low"] == 0.7
        assert list(last["scores"]) == ["random", "greedy"]


def test_mistakes_come_before_scores(tmp_path):
    first = save_run(tmp_path / "a", [evaluation_row(0, random=0.5)])
    second = save_run(tmp_path / "b", [evaluation_row(0, mistakes=0.5, greedy=0.5)])
    found = measures(read_runs([first, second]))
    labels = {
        Measure("mistakes", "network"): "mistakes, network alone",
        Measure("scores", "random"): "score, network alone against random",
        Measure("scores", "greedy"): "score, network alone against greedy",
    }
    assert found == list(labels)
    assert [measure.label for measure in found] == list(labels.values())


def test_games_with_chance_have_the_win_probability_lost_in_place_of_mistakes(tmp_path):
    runs = compared(tmp_path, {}, {}, rows=[evaluation_row(0, lost=0.0625, random=0.5)])
    lost = to_json(runs)["runs"][0]["last_evaluation"]["win_probability_lost"]
    assert lost["network"]["rate"] == 0.0625
    assert dict(sections(runs))["last evaluation"] == {
        "after": 2 * ["iteration 0, 0 s"],
        "win probability lost, network alone": 2 * ["6.25% (1.25 to 11.25)"],
        "score, network alone against random": 2 * ["50.0% (45.0 to 55.0)"],
    }
    assert "Win probability lost, network alone" in {
        axes.get_title("left") for axes in draw_comparison(runs).axes
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"network_mistakes": "many"},
        {"network_mistakes_high": float("nan")},
        {"scores": [0.5]},
        {"scores": {"random": 0.5}},
        {"scores": {"random": {"score": 2, "score_low": 1, "score_high": 3}}},
        {"positions": None},
        {"seconds": -1.0},
    ],
)
def test_a_malformed_evaluation_is_left_out(tmp_path, changes):
    rows = [
        evaluation_row(0, mistakes=0.5),
        evaluation_row(1, mistakes=0.5, random=0.5) | changes,
        "not a row",
    ]
    for run in compared(tmp_path, {}, {}, rows=rows):
        assert [row.counters["iteration"] for row in run.evaluations] == [0]


def test_a_run_without_metrics_has_no_counters(tmp_path):
    names = [save_run(tmp_path / name) for name in "ab"]
    (tmp_path / "b" / "metrics.jsonl").unlink()
    for run in to_json(read_runs(names))["runs"]:
        assert run["counters"] is run["last_evaluation"] is None


def test_runs_are_named_by_their_directory_where_that_is_unique(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a/0", "a/1", "b/0"):
        save_run(tmp_path / name)
    assert [run.name for run in read_runs(["a/0", "a/1"])] == ["0", "1"]
    assert [run.name for run in read_runs(["a/0", "b/0"])] == ["a/0", "b/0"]


def test_one_run_the_same_run_twice_and_two_games_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"run0 is of hex:3, .*run1 is of hex:4"):
        compared(tmp_path, {"game": "hex:3"}, {"game": "hex:4"})
    name = tmp_path / "run0"
    with pytest.raises(ValueError, match=r"run0/\. is given twice"):
        read_runs([name, f"{name}/."])
    with pytest.raises(ValueError, match="at least two runs: 1"):
        read_runs([name])


def test_directories_without_a_run_are_named(tmp_path):
    name = save_run(tmp_path / "a")
    with pytest.raises(ValueError, match=f"no run in {tmp_path}"):
        read_runs([name, tmp_path])
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config.json is damaged: [^;]*$"):
        read_runs([name, tmp_path])
    content = json.loads((tmp_path / "a" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(content | {"seed": "x"}))
    with pytest.raises(ValueError, match="seed has the wrong type"):
        read_runs([name, tmp_path])


ROWS = [
    evaluation_row(0, mistakes=0.5, random=0.5),
    evaluation_row(4, mistakes=0.25, random=0.75),
]


def drawn(tmp_path, *metrics):
    names = [save_run(tmp_path / f"run{i}", rows) for i, rows in enumerate(metrics)]
    return draw_comparison(read_runs(names))


def curve(axes, name):
    [line] = [line for line in axes.lines if line.get_label() == name]
    return line.get_xdata().tolist(), line.get_ydata().tolist()


def test_each_measure_is_drawn_over_time_and_over_positions(tmp_path):
    figure = drawn(tmp_path, ROWS, ROWS[:1])
    assert len(figure.axes) == 4
    over_time, over_positions = figure.axes[2:]
    assert curve(over_time, "run0") == ([0, 2], [50, 75])
    assert curve(over_positions, "run0") == ([0, 4000], [50, 75])
    assert curve(over_positions, "run1") == ([0], [50])
    assert figure.axes[0].get_title("left") == "Mistakes, network alone"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["run0", "run1"]


def test_a_run_without_the_measure_is_left_out_of_its_panel(tmp_path):
    figure = drawn(tmp_path, ROWS, [evaluation_row(1, random=0.5)], [iteration_row(1)])
    for axes in figure.axes[:2]:
        assert {line.get_label() for line in axes.lines} == {"run0"}
    assert len(figure.legends[0].get_texts()) == 2
    figure.draw_without_rendering()


def test_many_runs_have_different_lines(tmp_path):
    figure = drawn(tmp_path, *([ROWS] * 9))
    lines = [
        (line.get_color(), line.get_linestyle())
        for line in figure.axes[0].lines
        if line.get_label().startswith("run")
    ]
    assert len(set(lines)) == 9


def test_runs_without_evaluations_cannot_be_drawn(tmp_path):
    with pytest.raises(ValueError, match="no run has an evaluation"):
        drawn(tmp_path, [iteration_row(1)], [])


@pytest.mark.parametrize(
    ("most", "unit"),
    [
        (500, ("positions", 1)),
        (300_000, ("thousand positions", 1e3)),
        (3e8, ("million positions", 1e6)),
    ],
)
def test_positions_have_a_readable_unit(most, unit):
    assert position_unit(most) == unit

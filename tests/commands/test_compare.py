import io
import json

import pytest
from commands.refusal import assert_refused
from matplotlib.image import imread
from rich.console import Console
from training.saved_runs import evaluation_row, iteration_row, save_run
from untrained import TINY, untrained_player

from azjax import cli, games
from azjax.commands.compare import print_comparison
from azjax.players import RandomPlayer, TrainedPlayer, save_player
from azjax.training import LearnerConfig
from azjax.training.analysis.comparison import read_runs

ROWS = [evaluation_row(0, random=0.5), evaluation_row(4, mistakes=0.25, random=0.75)]
GAME = games.make("tic_tac_toe")


@pytest.fixture
def runs(tmp_path):
    """Two runs; the second one has no evaluation."""
    return [
        save_run(tmp_path / "first", ROWS, seed=3, network=TINY),
        save_run(tmp_path / "second", [iteration_row(1200)], network=TINY),
    ]


@pytest.fixture
def asked(tmp_path, runs, monkeypatch):
    """Saves an untrained player of the runs, which moves at random in place of a
    search. Returns the numbers of simulations that it is made with."""
    for run in runs:
        save_player(tmp_path / run / "player", untrained_player(GAME))
    asked = []

    def player(self, simulations):
        asked.append(simulations)
        return RandomPlayer(self.game)

    monkeypatch.setattr(TrainedPlayer, "player", player)
    return asked


def compare(*args):
    cli.main(["compare", *map(str, args)])


def lines(text):
    """The cells of each line of a printed table by their first one."""
    cells = [line.split("  ") for line in text.splitlines()]
    rows = [[cell.strip() for cell in row if cell.strip()] for row in cells]
    return {row[0]: row[1:] for row in rows if row}


def test_settings_progress_and_strength_are_printed(runs, capsys):
    compare(*runs)
    out, err = capsys.readouterr()
    table = lines(out)
    assert any(name.startswith("Tic Tac Toe: 2 runs in ") for name in table)
    assert table["first"] == ["second"]
    assert table["settings that differ"] == []
    assert table["seed"] == ["3", "0"]
    assert table["training time"] == ["2 min 00 s", "10 h 00 min"]
    assert table["iterations"] == ["4", "1,200"]
    assert table["positions"] == ["4,000", "1,200,000"]
    assert table["after"] == ["iteration 4,", "-"]
    assert table["mistakes, network alone"] == ["25.0%", "-"]
    assert table["score, network alone against"] == ["75.0%", "-"]
    assert "(70.0 to 80.0)" in table["random"]
    assert "learner.batch-size" not in table
    assert not err


def test_equal_settings_and_missing_evaluations_are_mentioned(tmp_path, capsys):
    compare(*(save_run(tmp_path / name) for name in "ab"))
    table = lines(capsys.readouterr().out)
    assert {"no settings differ", "no evaluations"} <= set(table)
    assert table["iterations"] == ["-", "-"]


def test_columns_fit_80_characters_and_have_each_setting_and_rate_once(tmp_path):
    directories = [
        save_run(
            tmp_path / f"learning-rate={rate},seed={seed}",
            [evaluation_row(1200, mistakes=0.0612, random=rate)],
            seed=seed,
            learner=LearnerConfig(learning_rate=rate),
            notes="unlike",
        )
        for rate in (0.0525, 0.0625)
        for seed in (0, 1)
    ]
    file = io.StringIO()
    print_comparison(Console(file=file, width=80), read_runs(directories))
    title, *lines = file.getvalue().splitlines()
    assert title == f"Tic Tac Toe: 4 runs in {tmp_path}"
    assert max(map(len, lines)) <= 80
    assert lines[:4] == [
        "1  learning-rate=0.0525,seed=0",
        "2  learning-rate=0.0525,seed=1",
        "3  learning-rate=0.0625,seed=0",
        "4  learning-rate=0.0625,seed=1",
    ]
    table = [line.split("  ") for line in lines[4:]]
    cells = [cell.strip() for line in table for cell in line if cell.strip()]
    for text, count in (("1,200,000", 4), ("(1.1 to 11.1)", 4), ("10 h 00 min", 8)):
        assert cells.count(text) == count
    assert not any("learning" in cell or "seed" in cell for cell in cells)
    assert [cell for cell in cells if cell.isdigit()] == ["1", "2", "3", "4"]
    assert cells.count("iterations") == 2  # tables


def test_control_characters_of_files_are_not_printed(tmp_path, capsys):
    compare(*(save_run(tmp_path / f"\x1b{name}") for name in "ab"))
    out = capsys.readouterr().out
    assert lines(out)["?a"] == ["?b"]
    assert "\x1b" not in out


def test_json_is_one_object(runs, capsys):
    compare(*runs, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["differing_settings"] == {"seed": [3, 0]}
    assert [run["directory"] for run in found["runs"]] == runs
    assert found["runs"][1]["last_evaluation"] is None
    assert "tournament" not in found


def test_the_plot_is_a_picture(runs, tmp_path, capsys):
    path = tmp_path / "new" / "plot.png"
    compare(*runs, "--plot", path)
    assert imread(path).shape[1] == 1350
    assert f"plot: {path}" in capsys.readouterr().out


def test_the_players_of_the_runs_play_matches(runs, asked, capsys):
    compare(*runs, "--games", 4, "--simulations", 2, "--json")
    assert asked == [2, 2]
    out, err = capsys.readouterr()
    tournament = json.loads(out)["tournament"]
    assert {line["player"] for line in tournament["players"]} == {"first", "second"}
    [match] = tournament["matches"]
    assert match["games"] == 4
    low, high = match["interval"]
    assert f"95% interval {100 * low:.1f} to {100 * high:.1f}" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--games", 3], "--games must be even, from 0 to 100000: 3"),
        (["--games", 2], "no player"),
        (["--simulations", 0], "--simulations must be"),
        (["--plot", "plot.pdf"], "a file that ends with .png: plot.pdf"),
        (["missing"], "no run in missing"),
        (["--modules", "nothing"], "--modules must be MODULE:NAME"),
    ],
)
def test_a_mistake_ends_with_one_line_and_status_2(runs, args, message, capsys):
    assert_refused(capsys, message, "compare", *runs, *args)


def test_a_plot_without_evaluations_is_refused(tmp_path, capsys):
    path = tmp_path / "plot.png"
    names = [save_run(tmp_path / name) for name in "ab"]
    message = "no run has an evaluation"
    assert_refused(capsys, message, "compare", *names, "--plot", path)
    assert not path.exists()

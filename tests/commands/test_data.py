import json
import sys
from pathlib import Path

import pytest
from commands.refusal import assert_refused
from data.game_rows import GAME, GAMES, rows_of

from azjax import cli
from azjax.data import GAMES as GAMES_DIRECTORY
from azjax.data import game_files
from azjax.data.files import GameFileWriter
from azjax.training import TrainConfig
from azjax.training.run.directory import open_run_directory

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with three kept games."""
    directory = tmp_path_factory.mktemp("runs") / "run"
    config = TrainConfig(game="tic_tac_toe", iterations=1, run_dir=str(directory))
    with open_run_directory(config):
        pass
    games = directory / GAMES_DIRECTORY
    with GameFileWriter(games, GAME, run="abc", seed=3) as writer:
        writer.add(1, lambda: rows_of(GAMES))
        writer.flush()
    return str(directory)


def test_the_overview_counts_positions_and_has_the_columns_and_queries(run, capsys):
    cli.main(["data", run])
    out, err = capsys.readouterr()
    assert out.split()[-5:] == ["16", "3", "2", "1", "1"]
    assert "calibration" in err
    for words in ("positions run, seed,", "terminated, simulations", "num_moves, has_"):
        assert words in " ".join(err.replace("azjax:", "").split())
    assert max(map(len, err.splitlines())) <= 80


def test_a_table_that_is_too_wide_has_folded_names_or_a_line_for_each_value(
    run, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    cli.main(["data", run, "SELECT * FROM games ORDER BY game"])
    lines = capsys.readouterr().out.splitlines()
    assert "first_player_result" in "".join(line.split()[-1] for line in lines[:3])
    assert lines[3].split() == ["abc", "3", "5", "1", "1", "5", "True", "True", "1"]
    cli.main(["data", run, "SELECT * FROM positions ORDER BY game, ply LIMIT 2"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line.split()[:1] == ["move"]] == [
        ["move", "a3"],
        ["move", "a2"],
    ]
    assert ["draw_probability", "0.25"] in [line.split() for line in lines]


def test_json_has_a_line_for_each_row(run, capsys):
    sql = "SELECT game, hex(state) AS h, state FROM openings ORDER BY game LIMIT 2"
    cli.main(["data", run, sql, "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["game"] for row in rows] == [5, 6]
    assert rows[0]["state"] == rows[0]["h"].lower()


def test_csv_has_a_line_of_names(run, capsys):
    cli.main(["data", run, "SELECT game, num_moves FROM games ORDER BY 1", "--csv"])
    assert capsys.readouterr().out.split() == ["game,num_moves", "5,5", "6,9", "7,2"]


def test_a_ready_query_is_run_by_its_name(run, capsys):
    cli.main(["data", run, "longest", "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["num_moves"] for row in rows] == [9, 5, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["DROP TABLE ends"], "must be a SELECT"),
        (["SELECT * FROM read_text('/etc/hostname')"], "Cannot access file"),
        (["SELECT 1", "--csv", "--json"], "one of --csv and --json"),
        (["calibrate"], "unknown query 'calibrate'; ready queries are openings, "),
        (["calibrate"], "; did you mean calibration?"),
        (["SELECT reslt FROM positions"], 'Candidate bindings: "result", "regret"'),
        (["SELECT 1 FROM position"], 'Did you mean "positions"?'),
    ],
)
def test_a_mistake_ends_with_one_line_and_status_2(run, arguments, message, capsys):
    assert_refused(capsys, message, "data", run, *arguments)


def test_without_duckdb_the_extra_is_named(run, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert_refused(capsys, "pip install 'azjax[data]'", "data", run)


def test_control_characters_are_not_printed(run, capsys):
    cli.main(["data", run, "SELECT '\x1b[31m' AS a"])
    assert "\x1b" not in capsys.readouterr().out


def test_a_truncated_file_is_named(run, capsys):
    [file] = game_files(Path(run) / GAMES_DIRECTORY)
    content = file.path.read_bytes()
    file.path.write_bytes(content[:-9])
    message = f"{file.path} is no Parquet file, or damaged"
    try:
        assert_refused(capsys, message, "data", run, "SELECT 1")
    finally:
        file.path.write_bytes(content)

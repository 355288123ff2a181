import pathlib
import shlex
import sys

import pytest
from commands.refusal import assert_refused

from azjax import cli, games
from azjax.games.host import first_state, next_state

pytest.importorskip("duckdb")
UCI_ENGINE = pathlib.Path(__file__).parents[1] / "players" / "uci_engine.py"
CHESS = games.make("chess")
PGN = '[Result "1-0"]\n\n1. f3 e5 1-0\n\n[Result "*"]\n\n1. d4 *\n'
LINES = "a3 b2 c1 b3 b1 a1 c3 c2 a2\n"  # a draw


def test_games_are_imported_and_queried(tmp_path, capsys):
    path, to = tmp_path / "games.pgn", str(tmp_path / "stored")
    path.write_text(PGN)
    cli.main(["import-games", str(path), "--to", to])
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        f"1 games of chess with 2 positions in {to}",
        "left out: 1 without result",
    ]
    cli.main(["data", to, "SELECT ply, value, result FROM positions", "--csv"])
    rows = capsys.readouterr().out.splitlines()
    assert sorted(rows) == ["0,1.0,1.0", "1,-1.0,-1.0", "ply,value,result"]


def test_games_that_cannot_be_read_are_counted(tmp_path, capsys):
    path, to = tmp_path / "games.pgn", str(tmp_path / "stored")
    path.write_text(
        '1. Sf3 1-0\n\n[Result "1-0"]\n\n1. f3 e5 1-0\n' + "1. d5 *\n" * 150
    )
    cli.main(["import-games", str(path), "--to", to, "--skip-unreadable"])
    out, err = capsys.readouterr()
    assert out.splitlines()[1] == "left out: 151 unreadable"
    assert err.startswith(
        f"azjax: left out: {path}: game 1: 'Sf3' in line 1 is no part"
    )
    assert len(err.splitlines()) == 100 + 1 + 1


def test_a_draw_has_the_result_0(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moves.txt").write_text(LINES)
    cli.main(["import-games", "moves.txt", "--game", "tic_tac_toe", "--to", "stored"])
    capsys.readouterr()
    cli.main(["data", "stored", "SELECT DISTINCT result FROM positions", "--csv"])
    assert capsys.readouterr().out.split() == ["result", "0.0"]
    cli.main(["data", "stored", "SELECT result, move FROM openings", "--csv"])
    assert capsys.readouterr().out.split() == ["result,move", "0.0,a3"]
    (tmp_path / "agreed.pgn").write_text('[Result "1/2-1/2"]\n\n1. e4 e5 1/2-1/2\n')
    cli.main(["import-games", "agreed.pgn", "--to", "agreed"])
    capsys.readouterr()
    cli.main(["data", "agreed", "SELECT result FROM positions", "--csv"])
    assert capsys.readouterr().out.split() == ["result", "0.0", "0.0"]
    cli.main(["data", "agreed", "SELECT first_player_result AS r FROM games", "--csv"])
    assert capsys.readouterr().out.split() == ["r", "0.0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give at least one file of games"),
        (["missing.pgn"], "missing.pgn: No such file"),
        (["moves.txt"], "moves.txt has no suffix of a file of games"),
        (["moves.txt", "--game", "tic_tac_toe"], "line 1: move 2: 'a1' is not legal"),
        (["games.pgn", "--to", "gs://a/b"], "--to must be a directory on this machine"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    arguments, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moves.txt").write_text("a1 a1\n")
    if "--to" not in arguments:
        arguments = [*arguments, "--to", "stored"]
    assert_refused(capsys, message, "import-games", *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["moves.txt"]


HEADER = "moves,q0,q1,q2,q3,q4,q5,q6,q7,q8\n"


def test_solved_positions_are_imported(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solved.csv").write_text(HEADER + "5,0,-1,0,-1,,-1,0,-1,0\n")
    options = ("--game", "tic_tac_toe", "--to", "stored")
    cli.main(["import-games", "solved.csv", *options])
    printed = capsys.readouterr().out
    assert printed == "1 games of tic_tac_toe with 1 positions in stored\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solved.csv"], "give the game of the solved positions in solved.csv: --game"),
        (
            ["solved.csv", "moves.txt", "--game", "tic_tac_toe"],
            "import games and solved positions to different directories",
        ),
        (["solved.csv", "--game", "hex:3"], "solved.csv, line 1: no positions after"),
        (["solved.csv", "--game", "connect_four"], "solved.csv, line 1: column 'q7'"),
    ],
)
def test_solved_positions_that_cannot_be_imported_are_refused(
    arguments, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solved.csv").write_text(HEADER)
    assert_refused(capsys, message, "import-games", *arguments, "--to", "stored")
    assert [path.name for path in tmp_path.iterdir()] == ["solved.csv"]


def test_a_teacher_gives_policy_targets_and_values(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.pgn").write_text("")
    (tmp_path / "games.pgn").write_text('[Result "1-0"]\n\n1. Nf3 e5 1-0\n')
    files = ["empty.pgn", "games.pgn"]
    player = "uci:" + shlex.join([sys.executable, "-ISs", str(UCI_ENGINE)])
    cli.main(["import-games", *files, "--to", "stored", "--teacher", player])
    printed = capsys.readouterr()
    assert printed.out == "1 games of chess with 2 positions in stored\n"
    assert printed.err == "azjax: 2 positions\n"
    columns = "(value * 1000)::INT, (regret * 1000)::INT, policy_actions[1]"
    cli.main(["data", "stored", f"SELECT {columns} FROM positions", "--csv"])
    found = capsys.readouterr().out.splitlines()[1:]
    # Each player sees 20 centipawns for itself; the engine moves its king's knight.
    first = first_state(CHESS)
    after = next_state(CHESS, first, CHESS.text_to_action(first, "g1f3"))
    knight, answer = (
        CHESS.text_to_action(state, text)
        for state, text in ((first, "g1f3"), (after, "g8f6"))
    )
    assert sorted(found) == sorted(f"58,115,{move}" for move in (knight, answer))


@pytest.mark.parametrize(
    ("file", "teacher", "message"),
    [
        ("moves.txt", "random", "--teacher must be uci:COMMAND or perfect: 'random'"),
        ("moves.txt", "human", "--teacher must be uci:COMMAND or perfect: 'human'"),
        ("moves.txt", "missing", "unknown player 'missing'"),
        ("solved.csv", "perfect", "--teacher is for games; solved positions have"),
        ("missing.pgn", "perfect", "missing.pgn: No such file"),
        ("empty.pgn", "perfect", "no games in"),
    ],
)
def test_a_teacher_that_cannot_label_is_refused(
    file, teacher, message, tmp_path, capsys
):
    (tmp_path / "moves.txt").write_text(LINES)
    (tmp_path / "empty.pgn").write_text("")
    (tmp_path / "solved.csv").write_text("moves,q0\n1,0\n")
    options = ["--to", str(tmp_path / "stored"), "--teacher", teacher]
    if not file.endswith(".pgn"):
        options += ["--game", "tic_tac_toe"]
    assert_refused(capsys, message, "import-games", tmp_path / file, *options)
    assert not (tmp_path / "stored").exists()

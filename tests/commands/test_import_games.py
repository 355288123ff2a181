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
HEADER = "moves,q0,q1,q2,q3,q4,q5,q6,q7,q8\n"
GAME = ("--game", "tic_tac_toe")
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
    cli.main(["import-games", "moves.txt", *GAME, "--to", "stored"])
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
        (["wrong.txt", *GAME], "line 1: move 2: 'a1' is not legal"),
        (["games.pgn", "--to", "gs://a/b"], "--to must be a directory on this machine"),
        # Solved positions.
        (["solved.csv"], "give the game of the solved positions in solved.csv: --game"),
        (
            ["solved.csv", "moves.txt", *GAME],
            "import games and solved positions to different directories",
        ),
        (["solved.csv", "--game", "hex:3"], "solved.csv, line 1: no positions after"),
        (["solved.csv", "--game", "connect_four"], "solved.csv, line 1: column 'q7'"),
        # A teacher.
        *(
            (["moves.txt", *GAME, "--teacher", name], message)
            for name, message in (
                ("random", "--teacher must be uci:COMMAND or perfect: 'random'"),
                ("human", "--teacher must be uci:COMMAND or perfect: 'human'"),
                ("missing", "unknown player 'missing'"),
            )
        ),
        *(
            ([file, *options, "--teacher", "perfect"], message)
            for file, options, message in (
                ("solved.csv", GAME, "--teacher is for games; solved positions have"),
                ("missing.pgn", (), "missing.pgn: No such file"),
                ("empty.pgn", (), "no games in"),
            )
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(
    arguments, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    files = {"moves.txt": LINES, "solved.csv": HEADER, "empty.pgn": ""}
    files["wrong.txt"] = "a1 a1\n"
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    to = () if "--to" in arguments else ("--to", "stored")
    assert_refused(capsys, message, "import-games", *arguments, *to)
    assert {path.name for path in tmp_path.iterdir()} == set(files)


def test_solved_positions_are_imported(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solved.csv").write_text(HEADER + "5,0,-1,0,-1,,-1,0,-1,0\n")
    cli.main(["import-games", "solved.csv", *GAME, "--to", "stored"])
    printed = capsys.readouterr().out
    assert printed == "1 games of tic_tac_toe with 1 positions in stored\n"


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

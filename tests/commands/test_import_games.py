import pytest

from azjax import cli

pytest.importorskip("duckdb")
PGN = '[Result "1-0"]\n\n1. f3 e5 1-0\n\n[Result "*"]\n\n1. d4 *\n'


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give at least one file of games"),
        (["missing.pgn"], "missing.pgn: No such file"),
        (["moves.txt"], "moves.txt has no suffix of a file of games"),
        (["moves.txt", "--game", "tic_tac_toe"], "line 1: move 2: 'a1' is not legal"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    arguments, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moves.txt").write_text("a1 a1\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["import-games", *arguments, "--to", "stored"])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert [path.name for path in tmp_path.iterdir()] == ["moves.txt"]


def test_an_object_store_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(["import-games", "games.pgn", "--to", "gs://bucket/games"])
    assert ended.value.code == 2
    assert "--to must be a directory on this machine" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())

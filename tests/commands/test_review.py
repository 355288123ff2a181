import json
import pathlib

import pytest
from commands.refusal import assert_refused

from azjax import cli

GAME = ("--game", "tic_tac_toe")
LINES = "a1 b1 b2 c3 a3 a2 c1\na1\n"


@pytest.fixture
def moves(tmp_path, monkeypatch):
    """The name of a file with two games of tic-tac-toe."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moves.txt").write_text(LINES)
    return "moves.txt"


def test_a_game_is_printed_with_its_mistakes(moves, capsys):
    cli.main(["review", moves, *GAME, "--player", "minimax:5"])
    printed = capsys.readouterr()
    assert "minimax:5 reviews 7 moves" in printed.err
    lines = [line.split() for line in printed.out.splitlines()]
    assert lines[0][-1] == "1-0"
    assert lines[3][:3] == ["2.", "b1", "??"]
    assert [line[-1] for line in lines[2:9]].count("+0.00") == 2
    assert "values for the" in printed.out
    assert "1 ??; loses 0.333 a move" in printed.out


def test_json_has_the_moves(moves, capsys):
    options = (*GAME, "--player", "minimax:5", "--json")
    # The game before, which cannot be read, does not matter.
    pathlib.Path(moves).write_text("a1 a1\na1\n")
    cli.main(["review", moves, *options, "--number", "2"])
    found = json.loads(capsys.readouterr().out)
    assert found["game"] == "tic_tac_toe"
    assert found["result"] is None
    assert [move["text"] for move in found["moves"]] == ["a1"]


def test_marks_follow_the_reviewer_in_games_with_chance(tmp_path, capsys):
    path = tmp_path / "rolls.txt"
    path.write_text("roll_4 a1 roll_2\n")
    cli.main(["review", str(path), "--game", "ur:2", "--player", "perfect", "--json"])
    moves = json.loads(capsys.readouterr().out)["moves"]
    # The first player wins 51.857% of the games.
    assert moves[0]["before"] == pytest.approx(2 * 0.51857 - 1, abs=1e-5)
    assert [move["exact_before"] for move in moves] == [None] * 3
    assert [move["loss"] for move in moves] == [0] * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--number", "3"], "moves.txt has 2 games: there is no game 3"),
        (["--number", "0"], "--number must be"),
        (["--player", "human"], "a person cannot review"),
        (["--player", "god"], "unknown player 'god'"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message, moves, capsys):
    assert_refused(capsys, message, "review", moves, *GAME, *arguments)

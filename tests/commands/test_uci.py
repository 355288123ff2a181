"""Runs the command as a separate program, as front ends do."""

import os
import signal
import sys

import chess
import chess.engine
import pytest

from azjax import cli
from azjax.players import RandomPlayer

PATIENCE = 240  # seconds, for a loaded machine


def test_python_chess_plays_a_game_with_it(program_environment):
    # The search that `tests/play/uci` compiles.
    program = [sys.executable, "-m", "azjax", "uci"]
    command = [*program, "chess:max_moves=60", "--player", "mcts:40"]
    with chess.engine.SimpleEngine.popen_uci(
        command, timeout=PATIENCE, env=program_environment
    ) as engine:
        assert engine.id["name"].startswith("azjax ")
        engine.configure({"Simulations": 4})
        board = chess.Board("8/P5k1/8/3pP3/8/8/8/R3K2R w KQ d6 0 9")
        while not board.is_game_over() and board.ply() < 40:
            played = engine.play(
                board, chess.engine.Limit(nodes=4), info=chess.engine.INFO_ALL
            )
            assert played.info["pv"][0] == played.move
            board.push(played.move)
        with engine.analysis(chess.Board(), multipv=2) as analysis:
            assert analysis.get()["nodes"] >= 1


def test_the_last_search_ends_at_the_end_of_the_input(start_azjax):
    process = start_azjax("uci", "chess", "--player", "random")
    text = b"\xff\x00\r\nposition startpos moves e2e4 e7e5 e1e2\ngo infinite"
    output, errors = process.communicate(text, timeout=PATIENCE)
    lines = output.decode().splitlines()
    assert lines[0].startswith("info depth 1 ")
    move = chess.Move.from_uci(lines[-1].split()[1])
    board = chess.Board()
    for text in ("e2e4", "e7e5", "e1e2"):
        board.push_uci(text)
    assert move in board.legal_moves
    assert process.returncode == 0
    assert errors == b"azjax: loading random ...\n"


@pytest.mark.parametrize("go", [b"", b"go infinite\n"])
def test_it_quits_while_the_input_stays_open(start_azjax, go):
    process = start_azjax("uci", "chess", "--player", "random")
    process.stdin.write(b"isready\n" + go + b"quit\n")
    process.stdin.flush()
    assert process.wait(timeout=PATIENCE) == 0
    assert b"Error" not in process.stderr.read()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_ends_an_infinite_search(start_azjax):
    process = start_azjax("uci", "chess", "--player", "random")
    process.stdin.write(b"isready\ngo infinite\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"readyok\n"
    assert process.stdout.readline().startswith(b"info ")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
    assert b"Error" not in process.stderr.read()


def test_it_ends_without_an_error_when_its_output_is_closed(start_azjax):
    process = start_azjax("uci", "chess", "--player", "random")
    process.stdout.close()
    process.stdin.write(b"uci\n" * 50)
    process.stdin.flush()
    assert process.wait(timeout=PATIENCE) == 141
    assert b"Error" not in process.stderr.read()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["go:5", "--player", "random"], "UCI is a protocol for chess only: go:5"),
        (["ludo"], "unknown game 'ludo'"),
        (["chess", "--player", "god"], "unknown player 'god'"),
        (["chess", "--player", "human"], "the player 'human' cannot be compiled"),
        (["chess", "--player", "uci:true"], "'uci:true' cannot be compiled"),
        (["chess", "--player", "alphazero:nowhere"], "no player in nowhere"),
        (["chess", "--player", "random", "--seed", "-1"], "seed must be an int"),
    ],
)
def test_a_wrong_argument_is_refused(args, says, capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(["uci", *args])
    assert error.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err


def test_only_answers_are_written_to_the_standard_output(monkeypatch, capsys):
    def load(name, game, parts):
        print("a library says hello")
        return RandomPlayer(game)

    monkeypatch.setattr("azjax.players.load_compiled", load)
    with open(os.devnull) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        cli.main(["uci", "chess"])
    output = capsys.readouterr()
    assert output.out == ""
    assert "hello" in output.err
    assert "loading alphazero:pretrained" in output.err

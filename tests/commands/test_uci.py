"""The command `azjax uci`, with a front end at its pipes."""

import signal
import sys
import threading
import time

import chess
import chess.engine
import pytest
from commands.refusal import assert_refused
from play.front_end import answers_to, run_with_front_end

PATIENCE = 240  # seconds, for a loaded machine
RANDOM = ["uci", "chess", "--player", "random"]


@pytest.fixture(autouse=True)
def never_exits_at_once(monkeypatch):
    """Gives a search of a loaded machine time to end before the process does."""
    monkeypatch.setattr("azjax.commands.uci.QUIT_SECONDS", PATIENCE)


def test_the_last_search_ends_at_the_end_of_the_input(talkative, capsys):
    text = b"\xff\x00\r\nposition startpos moves e2e4 e7e5 e1e2\ngo infinite"
    status, output = answers_to(text, *RANDOM, *talkative)
    first, *_, last = output.decode().splitlines()
    assert first.startswith("info depth 1 "), "only answers are in the output"
    move = chess.Move.from_uci(last.split()[1])
    board = chess.Board()
    for text in ("e2e4", "e7e5", "e1e2"):
        board.push_uci(text)
    assert move in board.legal_moves
    assert status == 0
    assert capsys.readouterr().err.splitlines() == [
        "azjax: loading random ...",
        "a library says hello",
    ]


@pytest.mark.parametrize(
    "ends_by_signal",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"),
        ),
    ],
)
def test_quit_or_a_signal_ends_a_search_with_an_open_input(ends_by_signal, capsys):
    main_thread = threading.main_thread().ident

    def converse(to_program, from_program):
        to_program.write(b"isready\ngo infinite\n")
        assert from_program.readline() == b"readyok\n"
        assert from_program.readline().startswith(b"info ")
        if ends_by_signal:
            signal.pthread_kill(main_thread, signal.SIGTERM)
        else:
            to_program.write(b"quit\n")

    status = 128 + signal.SIGTERM if ends_by_signal else 0
    assert run_with_front_end(RANDOM, converse) == status
    assert "Error" not in capsys.readouterr().err


@pytest.mark.slow
def test_quit_does_not_wait_for_the_compilation(start_azjax):
    process = start_azjax(*RANDOM)
    process.stdin.write(b"isready\nquit\n")
    process.stdin.flush()
    assert process.wait(timeout=PATIENCE) == 0
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
    assert_refused(capsys, says, "uci", *args)


# The last one: the programs that it compiles are in the cache.
def test_python_chess_plays_a_game_with_the_program(program_environment, tmp_path):
    command = [sys.executable, "-m", "azjax", *RANDOM]
    with (
        open(tmp_path / "errors", "wb") as errors,
        chess.engine.SimpleEngine.popen_uci(
            command, timeout=PATIENCE, env=program_environment, stderr=errors
        ) as engine,
    ):
        assert engine.id["name"].startswith("azjax ")
        board = chess.Board("8/P5k1/8/3pP3/8/8/8/R3K2R w KQ d6 0 9")
        while not board.is_game_over() and board.ply() < 12:
            limit = chess.engine.Limit(nodes=4)
            played = engine.play(board, limit, info=chess.engine.INFO_ALL)
            assert played.info["pv"][0] == played.move
            board.push(played.move)
        with engine.analysis(chess.Board(), multipv=2) as analysis:
            assert analysis.get()["nodes"] >= 1
        engine.ping()  # the analysis has ended
        # A front end that closes its pipe ends the program without an error.
        loop, output = engine.protocol.loop, engine.transport.get_pipe_transport(1)
        pipe = output.get_extra_info("pipe")
        loop.call_soon_threadsafe(output.close)
        while not pipe.closed:
            time.sleep(0.01)
        with pytest.raises(chess.engine.EngineTerminatedError):
            engine.ping()
        assert engine.returncode.result(PATIENCE) == 141
    assert "Error" not in (tmp_path / "errors").read_text()

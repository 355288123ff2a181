"""Runs the command as a separate program, as front ends do."""

import sys

import pytest

from azjax import cli, games, players
from azjax.games.host import first_state, next_state

PATIENCE = 240  # seconds, for a loaded machine


def test_a_program_answers_and_ends_at_the_end_of_its_input(start_azjax):
    text = b"\xff\x00\r\n1 name\r\n\xe4\xb8\xad play b c3\nplay b c3\nkomi 8.5\n4 undo"
    process = start_azjax("gtp", "go:5", "--player", "random")
    output, errors = process.communicate(text, timeout=PATIENCE)
    assert output.decode() == "=1 azjax\n\n= \n\n? illegal move\n\n= \n\n=4 \n\n"
    assert b"compiling" not in errors


def test_it_answers_before_the_next_command_and_quits(start_azjax):
    process = start_azjax("gtp", "tic_tac_toe", "--player", "random", "--seed", "3")
    for line, answer in ((b"name\n", b"= azjax\n"), (b"play b b2\n", b"= \n")):
        process.stdin.write(line)
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(2)] == [answer, b"\n"]
    process.stdin.write(b"quit\n")
    process.stdin.flush()
    # The input stays open: the program must not wait for more of it.
    assert process.wait(timeout=PATIENCE) == 0
    assert b"Error" not in process.stderr.read()


def test_it_analyzes_until_the_next_command(start_azjax):
    process = start_azjax("gtp", "tic_tac_toe")
    assert process.stderr.readline() == b"azjax: loading tic_tac_toe ...\n"
    assert process.stderr.readline() == b"azjax: alphazero:pretrained plays\n"
    process.stdin.write(b"lz-analyze b 1\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"=\n"
    for _ in range(3):
        assert process.stdout.readline().startswith(b"info move ")
    output, errors = process.communicate(b"7 name\n", timeout=PATIENCE)
    assert output.endswith(b"\n=7 azjax\n\n")
    assert process.returncode == 0
    assert errors == b"azjax: compiling the player; its first answer takes longer\n"


def test_it_ends_without_an_error_when_its_output_is_closed(start_azjax):
    process = start_azjax("gtp", "tic_tac_toe", "--player", "random")
    process.stdout.close()
    process.stdin.write(b"showboard\n" * 50)
    process.stdin.flush()
    assert process.wait(timeout=PATIENCE) == 0
    assert b"Error" not in process.stderr.read()


def test_a_wrong_player_is_refused_at_the_start(capsys):
    for args, says in (
        (["go:5", "--player", "god"], "unknown player 'god'"),
        (["ludo", "--player", "random"], "unknown game 'ludo'"),
        (["go:5", "--player", "alphazero:nowhere"], "no player in nowhere"),
        (
            ["go:5", "--player", "random", "--seed", "-1"],
            "seed must be an int",
        ),
    ):
        with pytest.raises(SystemExit) as error:
            cli.main(["gtp", *args])
        assert error.value.code == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert says in err


@pytest.mark.parametrize(
    "name", [pytest.param("connect_four", marks=pytest.mark.slow), "go:4,1.5"]
)
def test_it_is_an_engine_for_azjaxs_gtp_player(monkeypatch, program_environment, name):
    for key, value in program_environment.items():
        monkeypatch.setenv(key, value)
    game = games.make(name)
    command = f"gtp:{sys.executable} -m azjax gtp {name} --player random"
    seats = [players.start_session(players.load(command, game), game, 0)]
    seats.append(players.start_session(players.load("random", game), game, 1))
    state, moves, was_taken_back = first_state(game), [], False
    while not state.terminated:
        action = seats[int(state.current_player)].choose(state, moves).action
        state = next_state(game, state, action)
        moves.append(action)
        if not was_taken_back and len(moves) == 5:
            was_taken_back = True
            del moves[2:]
            state = first_state(game)
            for action in moves:
                state = next_state(game, state, action)
    assert float(game.rewards(state).sum()) == 0
    for seat in seats:
        seat.close()

"""The command `azjax gtp`, with a front end at its pipes."""

import sys

import numpy as np
import pytest
from play.front_end import answers_to, run_with_front_end

from azjax import games, players
from azjax.games.host import first_state, legal_actions, next_state, rewards

TIC_TAC_TOE = ["gtp", "tic_tac_toe", "--player", "random"]


def test_a_program_answers_and_ends_at_the_end_of_its_input(capsys):
    text = b"\xff\x00\r\n1 name\r\n\xe4\xb8\xad play b c3\nplay b c3\nkomi 8.5\n4 undo"
    status, output = answers_to(text, "gtp", "go:5", "--player", "random")
    assert output == b"=1 azjax\n\n= \n\n? illegal move\n\n= \n\n=4 \n\n"
    assert status == 0
    assert "compiling" not in capsys.readouterr().err


def test_it_answers_before_the_next_command_and_quits_with_an_open_input(capsys):
    def converse(to_program, from_program):
        for line, answer in ((b"name\n", b"= azjax\n"), (b"play b b2\n", b"= \n")):
            to_program.write(line)
            assert [from_program.readline() for _ in range(2)] == [answer, b"\n"]
        to_program.write(b"quit\n")

    assert run_with_front_end([*TIC_TAC_TOE, "--seed", "3"], converse) == 0
    assert "Error" not in capsys.readouterr().err


def test_it_analyzes_until_the_next_command(capsys):
    def converse(to_program, from_program):
        to_program.write(b"lz-analyze b 1\n")
        assert from_program.readline() == b"=\n"
        for _ in range(3):
            assert from_program.readline().startswith(b"info move ")
        to_program.write(b"7 name\n")
        to_program.close()
        assert from_program.read().endswith(b"\n=7 azjax\n\n")

    assert run_with_front_end(TIC_TAC_TOE, converse) == 0
    assert capsys.readouterr().err.splitlines() == [
        "azjax: loading tic_tac_toe ...",
        "azjax: random plays",
        "azjax: compiling the player; its first answer takes longer",
    ]


def test_it_ends_without_an_error_when_its_output_is_closed(capsys):
    def converse(to_program, from_program):
        from_program.close()
        to_program.write(b"showboard\n" * 50)

    assert run_with_front_end(TIC_TAC_TOE, converse) == 0
    assert "Error" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["tic_tac_toe", pytest.param("go:4,1.5", marks=pytest.mark.slow)]
)
def test_as_a_program_it_is_an_engine_for_azjaxs_gtp_player(
    monkeypatch, program_environment, name
):
    for key, value in program_environment.items():
        monkeypatch.setenv(key, value)
    game, rng = games.make(name), np.random.default_rng(0)
    command = f"gtp:{sys.executable} -m azjax gtp {name} --player random"
    session = players.start_session(players.load(command, game), game, 0)
    state, moves, was_taken_back = first_state(game), [], False
    while not state.terminated:
        if int(state.current_player) == 0:
            moves.append(session.choose(state, moves).action)
        else:
            moves.append(int(rng.choice(legal_actions(game, state))))
        state = next_state(game, state, moves[-1])
        if not was_taken_back and len(moves) == 5:
            was_taken_back = True
            del moves[2:]
            state = first_state(game)
            for action in moves:
                state = next_state(game, state, action)
    assert was_taken_back
    assert sum(rewards(game, state)) == 0
    session.close()

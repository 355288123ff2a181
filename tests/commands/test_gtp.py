import pytest
from commands.refusal import assert_refused
from play.front_end import answers_to

from azjax.games import make
from azjax.play.opponents import default_mcts


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["go:5", "--player", "human"], "--player must not be 'human'"),
        (["go:5", "--player", "random", "--seed", "-1"], "seed must be an int"),
        (["go:1", "--player", "random"], "from 2 to 19: 1"),
        (["go:5", "--player", "god"], "unknown player 'god'"),
        (["ludo", "--player", "random"], "unknown game 'ludo'"),
        (["go:5", "--player", "alphazero:nowhere"], "no player in nowhere"),
    ],
)
def test_a_wrong_argument_is_refused(args, says, capsys):
    assert_refused(capsys, says, "gtp", *args)


@pytest.mark.parametrize(
    ("game", "player"),
    [("tic_tac_toe", "alphazero:pretrained"), ("go:2", default_mcts(make("go:2")))],
)
def test_without_a_player_the_default_opponent_plays(game, player, capsys):
    size = b"? unacceptable size" if game == "tic_tac_toe" else b"= "
    status, output = answers_to(b"name\nboardsize 4\n", "gtp", game)
    assert (status, output) == (0, b"= azjax\n\n" + size + b"\n\n")
    assert f"azjax: {player} plays" in capsys.readouterr().err.splitlines()


def test_only_answers_are_written_to_the_standard_output(talkative, capsys):
    command = ("gtp", "tic_tac_toe", "--player", "random", *talkative)
    assert answers_to(b"", *command) == (0, b"")
    assert "hello" in capsys.readouterr().err

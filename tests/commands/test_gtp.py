import os

import pytest

from azjax import cli
from azjax.games import make
from azjax.play.opponents import default_mcts
from azjax.players import RandomPlayer


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["go:5", "--player", "human"], "--player must not be 'human'"),
        (
            ["go:5", "--player", "random", "--seed", "-1"],
            "seed must be an int",
        ),
        (["go:1", "--player", "random"], "from 2 to 19: 1"),
    ],
)
def test_a_wrong_argument_is_refused(args, says, capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(["gtp", *args])
    assert error.value.code == 2
    output = capsys.readouterr()
    assert says in output.err
    assert not output.out


@pytest.mark.parametrize(
    ("game", "player"),
    [("tic_tac_toe", "alphazero:pretrained"), ("go:2", default_mcts(make("go:2")))],
)
def test_without_a_player_the_default_opponent_plays(game, player, monkeypatch, capsys):
    read_end, write_end = os.pipe()
    os.write(write_end, b"name\nboardsize 4\n")
    os.close(write_end)
    with open(read_end) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        cli.main(["gtp", game])
    output = capsys.readouterr()
    size = "? unacceptable size" if game == "tic_tac_toe" else "= "
    assert output.out == f"= azjax\n\n{size}\n\n"
    assert output.err.splitlines()[-1] == f"azjax: {player} plays"


def test_only_answers_are_written_to_the_standard_output(monkeypatch, capsys):
    def load(name, game, parts):
        print("a library says hello")
        return RandomPlayer(game)

    monkeypatch.setattr("azjax.players.load", load)
    with open(os.devnull) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        cli.main(["gtp", "tic_tac_toe"])
    output = capsys.readouterr()
    assert output.out == ""
    assert "hello" in output.err

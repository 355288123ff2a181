import pytest

from azjax import cli

TINY_TEXT = """
    --network.hidden 8 --games 8 --moves 4 --fit.sweeps 1 --fit.batch-size 16
    --fit.max-epochs 1 --evaluation.num-evaluations 1 --evaluation.num-games 4
    --evaluation.num-positions 32 --evaluation.opponents random minimax:2
"""
TINY = TINY_TEXT.split()


def train_q(run_dir, *args):
    cli.main(["train-q", "tic_tac_toe", *TINY, "--run-dir", str(run_dir), *args])


def test_a_run_says_what_it_came_to_and_how_to_play(tmp_path, capsys):
    train_q(tmp_path / "run", "--iterations", "2")
    out = capsys.readouterr().out
    player = f"q_learning:{tmp_path / 'run'}"
    for part in (
        f"learn tic_tac_toe for 2 iterations in {tmp_path / 'run'}",
        "mistakes, network alone",
        "score against minimax:2",
        f"azjax play tic_tac_toe --opponent {player}",
        f"azjax arena tic_tac_toe random {player}",
    ):
        assert part in out
    with pytest.raises(SystemExit):
        cli.main(["evaluate", str(tmp_path / "run")])
    assert "as a player it is q_learning:RUN" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nim"], "unknown game 'nim'; known games: breakthrough, chess"),
        (["chess"], "has 4672 actions; Q-learning with network.form=state"),
        (
            ["tic_tac_toe", "--minutes", "0"],
            "minutes must be > 0 and at most 1000000000: 0.0",
        ),
        (["tic_tac_toe", "--network.form", "table"], "'state', 'pair'"),
        (["tic_tac_toe", "--opponent", "god"], "unknown player 'god'"),
        (["tic_tac_toe", "--sweeps", "1"], "did you mean --fit.sweeps?"),
        ([], "missing: GAME"),
    ],
)
def test_what_is_wrong_is_explained(args, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as error:
        cli.main(["train-q", *args])
    assert error.value.code == 2
    written = capsys.readouterr().err
    assert says in written
    assert written.count("\n") == 1
    assert not list(tmp_path.iterdir())

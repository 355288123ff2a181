import pyarrow.parquet as pq
import pytest
from commands.refusal import assert_refused
from data.game_rows import GAME, GAMES, rows_of

from azjax import cli, games
from azjax.data.files import GameFileWriter
from azjax.players.serialization import pretrained_directory

PLAYER = "alphazero:pretrained?simulations=2"


@pytest.fixture
def source(tmp_path, monkeypatch):
    """The name of a directory with two finished games of tic-tac-toe."""
    monkeypatch.chdir(tmp_path)
    rows = rows_of(GAMES)
    rows = rows._replace(
        policy_counts=rows.policy_counts // 2,
        policy_actions=rows.move,
        policy_probabilities=rows.policy_probabilities[::2] + 0.25,
        policy_values=rows.policy_values[::2],
    )
    with GameFileWriter(tmp_path / "run", GAME, run="abc", seed=0) as writer:
        writer.add(1, lambda: rows)
        writer.flush()
    return "run"


def test_the_games_are_written_and_counted(source, tmp_path, capsys):
    cli.main(["reanalyze", source, "--player", PLAYER, "--to", "new"])
    printed = capsys.readouterr()
    assert printed.out == "2 games of tic_tac_toe with 14 positions in new\n"
    assert printed.err == "azjax: 14 of 14 positions\n"
    [file] = (tmp_path / "new" / "games").iterdir()
    assert set(pq.read_table(file)["simulations"].to_pylist()) == {2}


def test_a_player_of_another_game_is_refused(source, capsys):
    directory = pretrained_directory(games.make("connect_four"))
    args = (source, "--player", f"alphazero:{directory}", "--to", "new")
    message = "is for connect_four, not for tic_tac_toe"
    assert_refused(capsys, message, "reanalyze", *args)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "new"], "give at least one run with games"),
        (["nowhere", "--to", "new"], "there is no directory nowhere"),
        (["run", "--to", "gs://bucket/new"], "--to must be a directory on this"),
        (["run", "--to", "run"], "run is not empty: give a new directory"),
        (["run", "--to", "new", "--seed", "-1"], "--seed must be an int from 0"),
        *(
            (["run", "--to", "new", "--player", player], message)
            for player, message in (
                ("alphazero:pretrained?simulations=0", "simulations"),
                ("random", "--player must be alphazero:RUN, which searches with a net"),
                ("alphazero:missing", "missing"),
                ("missing", "unknown player 'missing'; players are"),
            )
        ),
    ],
)
def test_bad_arguments_are_refused(arguments, message, source, tmp_path, capsys):
    player = () if "--player" in arguments else ("--player", PLAYER)
    assert_refused(capsys, message, "reanalyze", *arguments, *player)
    assert [path.name for path in tmp_path.iterdir()] == [source]

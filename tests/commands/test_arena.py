import json
import signal

import pytest
from commands.refusal import assert_refused
from matplotlib.image import imread

from azjax import cli, games, players
from azjax.commands import tables
from azjax.commands.arena import named
from azjax.games import read_games
from azjax.games.host import legal_actions
from azjax.players.registry import PLAYER_KINDS, PlayerKind

GAME = games.make("tic_tac_toe")
PLAYERS = ["random", "other=random", "engine"]
NAMES = ["random", "other", "engine"]
FEW = ["--games", "8", "--opening-moves", "2"]


class Engine:
    """An external player that fails at its first move."""

    starts = True

    def start_session(self, game, seed):
        if not self.starts:
            raise players.ForfeitError("no such program")
        return self

    def choose(self, state, moves):
        raise players.ForfeitError("the engine died")

    def close(self):
        pass


@pytest.fixture
def engine(monkeypatch):
    """Registers an external player as `engine`."""
    engine = Engine()
    monkeypatch.setitem(
        PLAYER_KINDS, "engine", PlayerKind("engine", lambda spec, game: engine)
    )
    return engine


def run(*args):
    cli.main(["arena", *args])


def interrupted(capsys, *args):
    """Returns the output of a command that is interrupted, and its standard error."""
    with pytest.raises(SystemExit) as error:
        run(*args)
    assert error.value.code == 130
    return capsys.readouterr()


def test_a_file_gets_lines_of_progress(monkeypatch, capsys):
    monkeypatch.setattr(tables, "LINE_SECONDS", 0.0)
    run("tic_tac_toe", *PLAYERS[:2], "--games", "8", "--at-once", "4")
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(" of 8 games")] == [
        "4 of 8 games",
        "8 of 8 games",
    ]


def test_a_tournament_is_printed_and_saved(tmp_path, capsys, engine):
    directory = tmp_path / "new" / "results"
    options = ["--anchor", "random:500", "--save", str(directory)]
    run("tic_tac_toe", *PLAYERS, *FEW, *options)
    out, err = capsys.readouterr()
    for part in (
        "random against other: ",
        "random against engine: 100.0% (8 won, 0 drawn, 0 lost)",
        "openings, both colors together: 4 won, 0 shared, 0 lost",
        "  engine forfeits a game: the engine died",
        "and 5 more games were forfeited",
        "tic_tac_toe, 16 games each: ratings, random at 500",
        "+500 to +500",
        "0-0-16",
        f"saved in {directory}",
    ):
        assert part in out
    assert not err
    saved = list(read_games(directory / "games.jsonl"))
    assert len(saved) == 24
    assert sum(bool(game.fault) for _, game in saved) == 16
    assert imread(directory / "ratings.png").shape[1] == 1350
    results = json.loads((directory / "results.json").read_text())
    assert [line["player"] for line in results["players"]][-1] == "engine"


def test_json_output_is_one_object(capsys):
    run("tic_tac_toe", *PLAYERS[:2], *FEW, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["game"] == "tic_tac_toe"
    first, second = found["players"]
    assert first["elo"] == pytest.approx(-second["elo"])
    assert first["wins"] == second["losses"]
    (match,) = found["matches"]
    assert match["games"] == sum(match["as_first"]) + sum(match["as_second"]) == 8
    assert sum(match["by_opening"]) == 4


def test_the_same_seed_gives_the_same_tournament(capsys):
    outputs = []
    for seed in ("3", "3", "4"):
        run("tic_tac_toe", *PLAYERS[:2], *FEW, "--json", "--seed", seed)
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]


def test_a_sequential_test_ends_with_a_verdict(tmp_path, capsys):
    names = ["greedy", "random"]
    run("tic_tac_toe", *names, "--sprt", "0", "100", "--save", str(tmp_path / "test"))
    out = capsys.readouterr().out
    assert "log-likelihood ratio +" in out
    assert "accepted: greedy is stronger than random by 100 Elo" in out
    results = json.loads((tmp_path / "test" / "results.json").read_text())
    assert results["verdict"] == "stronger"
    games = results["wins"] + results["draws"] + results["losses"]
    assert games < 2000
    assert 2 * sum(results["by_opening"]) == games
    assert len(list(read_games(tmp_path / "test" / "games.jsonl"))) == games


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["tic_tac_toe", "random"], "requires at least two players: 1"),
        (["tic_tac_toe", "random", "me=chance"], "unknown player 'chance'"),
        (["tic_tac_toe", *PLAYERS[:2], "--move-seconds", "0"], "--move-seconds must"),
        (["tac_tac_toe", "random", "chance"], "unknown game 'tac_tac_toe'"),
        (["tic_tac_toe", *PLAYERS[:2], "--games", "3"], "--games must be even"),
        (["tic_tac_toe", *PLAYERS[:2], "--games", "20000"], "too few different"),
        (["tic_tac_toe", *PLAYERS[:2], "--at-once", "0"], "an int >= 1: 0"),
        (["tic_tac_toe", *PLAYERS[:2], "--seed", "-1"], "--seed must be an int from 0"),
        (["tic_tac_toe", *PLAYERS[:2], "--opening-moves", "9"], "9 random moves end"),
        *(
            (
                ["tic_tac_toe", *PLAYERS[:2], "--anchor", text],
                "--anchor must be NAME or NAME:ELO, NAME one of random, other: ",
            )
            for text in ("random:", "random:inf", "random:x", "greedy", ":3")
        ),
        (["tic_tac_toe", *PLAYERS[:2], "--sprt", "9", "0"], "must be less than elo1"),
        (["tic_tac_toe", *PLAYERS, "--sprt", "0", "9"], "exactly two players: 3"),
    ],
)
def test_a_wrong_command_is_one_line(args, message, capsys):
    assert_refused(capsys, message, "arena", *args, prints=True)


def test_an_engine_that_does_not_start_is_refused_before_the_first_game(
    capsys, engine, tmp_path
):
    engine.starts = False
    message = "azjax: the player 'engine' does not start: no such program"
    args = ("tic_tac_toe", "random", "engine", "--save", tmp_path / "new")
    assert_refused(capsys, message, "arena", *args)
    assert not (tmp_path / "new").exists()


def test_a_directory_that_is_not_empty_is_not_changed(capsys, tmp_path):
    (tmp_path / "notes").write_text("mine")
    args = ("tic_tac_toe", *PLAYERS[:2], *FEW, "--save", tmp_path)
    assert_refused(capsys, "not a new or empty directory", "arena", *args)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_players_have_different_names():
    texts = ["random", "gnu=gtp:gnugo --mode gtp", "random", "alphazero:a?b=1", "gnu=x"]
    assert named(texts) == {
        "random": "random",
        "gnu": "gtp:gnugo --mode gtp",
        "random#2": "random",
        "alphazero:a?b=1": "alphazero:a?b=1",
        "gnu#2": "x",
    }


def first_legal(state, moves):
    return players.MoveDecision(legal_actions(GAME, state)[0])


def test_a_player_can_play_itself(capsys, engine):
    engine.choose = first_legal
    run("tic_tac_toe", "one=engine", "engine", *FEW[:2], "--json")
    found = json.loads(capsys.readouterr().out)
    assert {line["player"] for line in found["players"]} == {"one", "engine"}
    assert found["opening_moves"] == 1
    assert found["players"][0]["score"] == 0.5


@pytest.mark.parametrize("by_sigterm", [False, True])
def test_an_interrupted_tournament_keeps_its_finished_matches(
    by_sigterm, tmp_path, capsys, engine
):
    def choose(state, moves):
        if not by_sigterm:  # by SIGINT, which shells ignore in background jobs
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGTERM)

    handler = signal.getsignal(signal.SIGTERM)
    engine.choose = choose
    directory = tmp_path / "results"
    args = ("tic_tac_toe", *PLAYERS, *FEW, "--save", str(directory))
    out, _ = interrupted(capsys, *args)
    assert "interrupted: 8 of 24 games count" in out
    assert f"saved in {directory}" in out
    results = json.loads((directory / "results.json").read_text())
    assert results["is_interrupted"]
    assert {line["player"] for line in results["players"]} == set(NAMES[:2])
    assert len(list(read_games(directory / "games.jsonl"))) == 8
    assert signal.getsignal(signal.SIGTERM) == handler


def test_an_interrupted_match_keeps_its_finished_pairs(tmp_path, capsys, engine):
    started = []

    def start_session(game, seed):
        if seed:  # not the checks that it starts
            started.append(seed)
        if len(started) == 6:
            raise KeyboardInterrupt
        return engine

    engine.start_session = start_session
    engine.choose = first_legal
    directory = tmp_path / "results"
    args = ("tic_tac_toe", "random", "engine", *FEW, "--save", str(directory))
    out, _ = interrupted(capsys, *args)
    assert "interrupted: 4 of 8 games count" in out
    results = json.loads((directory / "results.json").read_text())
    assert results["is_interrupted"]
    assert len(list(read_games(directory / "games.jsonl"))) == 4


def test_a_tournament_interrupted_in_its_first_match_has_no_results(capsys, engine):
    def choose(state, moves):
        raise KeyboardInterrupt

    engine.choose = choose
    out, _ = interrupted(capsys, "tic_tac_toe", "engine", "random", *FEW)
    assert "interrupted: 0 of 8 games count" in out


@pytest.mark.parametrize(("moves_made", "fewest_games"), [(40, 4), (300, 66)])
def test_an_interrupted_sequential_test_is_undecided(
    moves_made, fewest_games, capsys, engine
):
    asked = []

    def choose(state, moves):
        asked.append(moves)
        if len(asked) > moves_made:
            raise KeyboardInterrupt
        return first_legal(state, moves)

    engine.choose = choose
    args = ("tic_tac_toe", "engine", "random", "--sprt", "0", "1", "--json")
    out, err = interrupted(capsys, *args)
    found = json.loads(out)
    assert found["is_interrupted"]
    assert found["verdict"] == "undecided"
    num_games = found["wins"] + found["draws"] + found["losses"]
    assert num_games >= fewest_games
    assert f"interrupted: {num_games} of 2000 games count" in err


@pytest.mark.parametrize(
    ("anchor", "name", "rating"),
    [
        ("random:-50.5", "random", -50.5),
        ("minimax:1", "minimax:1", 0),
        ("minimax:1:1000", "minimax:1", 1000),
    ],
)
def test_an_anchor_is_a_name_with_or_without_a_rating(anchor, name, rating, capsys):
    run("tic_tac_toe", "minimax:1", "random", *FEW, "--anchor", anchor, "--json")
    found = json.loads(capsys.readouterr().out)
    assert {line["player"]: line["elo"] for line in found["players"]}[name] == rating

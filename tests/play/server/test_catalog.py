import json
import os

import pytest
from untrained import untrained_player

from azjax import games
from azjax.play.server.catalog import (
    KEPT_TOURNAMENTS,
    MAX_BYTES,
    Catalog,
    find_key,
    find_ratings,
    make_catalog,
    player_key,
)
from azjax.players import DEFAULT_SIMULATIONS, save_player


def make_run(directory, spec):
    """Writes the first files of a run: its settings and a player."""
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps({"format": 10, "game": spec}))
    save_player(directory / "player", untrained_player(games.make(spec)))


def test_without_names_every_game_and_every_board_with_a_player_is_offered(tmp_path):
    catalog = make_catalog((), (), tmp_path)
    assert list(catalog.games()) == sorted(
        [*games.available(), "gomoku:9,width=9", "hex:7"]
    )
    for key in ("gomoku:9,width=9", "hex:7"):
        assert next(iter(catalog.games()[key].players)) == "alphazero:pretrained"


def test_the_pretrained_player_is_first(tmp_path):
    catalog = make_catalog(["connect_four", "go:5"], (), tmp_path)
    assert list(catalog.games()["connect_four"].players) == [
        *("alphazero:pretrained", "network:pretrained", "minimax:7", "mcts:1600"),
        *("greedy", "random"),
    ]
    assert list(catalog.games()["go:5"].players) == ["mcts:1600", "greedy", "random"]


def test_players_have_standard_titles(tmp_path):
    make_run(tmp_path / "first", "tic_tac_toe")
    catalog = make_catalog(["tic_tac_toe"], (), tmp_path)
    offered = catalog.games()["tic_tac_toe"].players
    assert {player.title: player.about for player in offered.values()} == {
        "AlphaZero": "strong: 64 simulations a move",
        "AlphaZero's network": "medium: no search",
        "AlphaZero (run first)": "64 simulations a move",
        "AlphaZero's network (run first)": "no search",
        "MCTS": "medium: 1600 random games a move",
        "Greedy": "easy: looks 2 moves ahead",
        "Random": "easiest: any move",
    }
    name = "chess:max_moves=400"  # without a pretrained player
    minimax = make_catalog([name], (), tmp_path).games()[name].players
    assert next(iter(minimax.values())).about == "medium: looks 3 moves ahead"


def test_players_have_the_ratings_of_the_newest_tournament(tmp_path):
    make_run(tmp_path / "first", "tic_tac_toe")
    catalog = make_catalog(["tic_tac_toe"], (), tmp_path)
    for age, elo in enumerate((100.0, 200.0)):
        (tmp_path / f"arena{age}").mkdir()
        rated = {"random": -elo, f"alphazero:{tmp_path}/first": elo, "mcts:50": 0.0}
        players = [{"player": name, "elo": elo} for name, elo in rated.items()]
        results = {"game": "tic_tac_toe", "players": players}
        path = tmp_path / f"arena{age}" / "results.json"
        path.write_text(json.dumps(results))
        os.utime(path, (1000 - age, 1000 - age))
    offered = catalog.games()["tic_tac_toe"].players
    ratings = {name: player.rating for name, player in offered.items() if player.rating}
    name = f"alphazero:{tmp_path.name}/first"
    assert ratings == {"random": -100.0, name: 100.0}


@pytest.mark.slow
def test_every_offered_player_can_be_loaded(tmp_path):
    for offer in make_catalog((), (), tmp_path).games().values():
        for player in offer.players.values():
            player.load(offer.game)


def test_added_players_are_listed_first(tmp_path):
    specs = ("go:size=5=mcts:7?exploration=2", "go:size=5=random")
    catalog = make_catalog(["go:size=5"], specs, tmp_path)
    assert list(catalog.games()["go:5"].players) == [
        *("mcts:7?exploration=2", "random", "mcts:1600", "greedy")
    ]


def test_spellings_of_a_game_are_offered_once(tmp_path):
    specs = ("hex:size=3=my=random", "hex:3=random", "go:size=9=random")
    catalog = make_catalog(["hex:3", "hex:size=3", "go:size=9", "go"], specs, tmp_path)
    assert list(catalog.games()) == ["hex:3", "go"]
    assert list(catalog.games()["hex:3"].players)[:2] == ["my", "random"]


def test_public_names_have_no_commands_or_paths(tmp_path):
    make_run(tmp_path / "first", "tic_tac_toe")
    specs = (
        "gtp:cat --key /secret/key",
        "gtp:cat",
        "my-engine=gtp:cat --mode gtp",
        "greedy=mcts:7",
        f"network:{tmp_path}/first",
    )
    texts = [f"tic_tac_toe={spec}" for spec in specs]
    offered = make_catalog(["tic_tac_toe"], texts, tmp_path).games()["tic_tac_toe"]
    names = ["cat", "cat#2", "my-engine", "greedy#2", "network:first"]
    assert list(offered.players)[:5] == names
    assert [offered.players[name].title for name in names] == names
    assert offered.players["my-engine"].source == "gtp:cat --mode gtp"


@pytest.mark.parametrize(
    ("names", "specs", "error"),
    [
        (["draughts"], (), "unknown game 'draughts'"),
        (["go:size=99"], (), "size"),
        (
            ["go"],
            ("go",),
            "must be GAME=PLAYER, where GAME is one of go: 'go'",
        ),
        (["go"], ("hex=random",), "--player must be GAME=PLAYER"),
        (["go"], ("go=nobody",), "unknown player 'nobody'"),
        (["go"], ("go=human",), "--player must not be 'human'"),
        (["go"], ("go=alphazero:nowhere",), "no player in nowhere"),
        (["go"], ("go=perfect",), "perfect"),
    ],
)
def test_unknown_games_and_players_are_errors(names, specs, error, tmp_path):
    with pytest.raises(ValueError, match=error):
        make_catalog(names, specs, tmp_path)


def test_added_players_come_before_shipped_ones_and_runs(tmp_path):
    for name in ("first", "second"):
        make_run(tmp_path / "runs" / name, "tic_tac_toe")
    catalog = make_catalog(
        ["tic_tac_toe"], ["tic_tac_toe=my=random"], tmp_path / "runs"
    )
    assert list(catalog.games()["tic_tac_toe"].players)[:7] == [
        *("my", "alphazero:pretrained", "network:pretrained"),
        *("alphazero:runs/first", "network:runs/first"),
        *("alphazero:runs/second", "network:runs/second"),
    ]


@pytest.mark.slow
def test_a_run_of_another_game_is_offered_only_with_all_games(tmp_path):
    make_run(tmp_path / "first", "go:size=5")
    one, every = make_catalog(["go"], (), tmp_path), make_catalog((), (), tmp_path)
    without = make_catalog((), (), tmp_path / "none")
    assert list(one.games()) == ["go"]
    new = set(every.games()) - set(without.games())
    (key,) = new
    assert games.make(key) == games.make("go", size=5)
    assert "alphazero:" in next(iter(every.games()[key].players))


def test_a_run_without_a_player_is_found_but_offers_none(tmp_path):
    make_run(tmp_path / "first", "tic_tac_toe")
    (tmp_path / "first/player/player.safetensors").unlink()
    catalog = make_catalog(["tic_tac_toe"], (), tmp_path)
    assert list(catalog.runs()) == ["first"]
    assert not any("first" in name for name in catalog.games()["tic_tac_toe"].players)


def test_an_error_in_a_runs_game_does_not_affect_others(tmp_path, monkeypatch, caplog):
    def fail(game):
        raise RuntimeError("RESOURCE_EXHAUSTED: no memory")

    make_run(tmp_path / "runs/first", "tic_tac_toe")
    offer = make_catalog(["hex:size=3"], (), tmp_path / "runs").games()
    monkeypatch.setattr("azjax.play.server.catalog.default_mcts", fail)
    for _ in range(2):
        catalog = Catalog(offer, tmp_path / "runs", has_all=True)
        assert list(catalog.games()) == ["hex:3"]
    (line,) = caplog.messages
    assert line.startswith("the game tic_tac_toe is not offered: RESOURCE_EXHAUSTED")


def test_the_name_of_a_run_is_not_parsed_as_settings(tmp_path):
    make_run(tmp_path / "runs/first?temperature=9&simulations=7", "tic_tac_toe")
    catalog = make_catalog(["tic_tac_toe"], (), tmp_path / "runs")
    offer = catalog.games()["tic_tac_toe"]
    name = "runs/first?temperature=9&simulations=7"
    searching = offer.players[f"alphazero:{name}"].load(offer.game)
    alone = offer.players[f"network:{name}"].load(offer.game)
    assert searching.simulations == DEFAULT_SIMULATIONS
    assert alone.temperature == 0


@pytest.fixture(scope="module")
def some_games(tmp_path_factory):
    names = ["go", "go:5", "breakthrough:5,width=5", "gomoku:exact=true"]
    return make_catalog(names, (), tmp_path_factory.mktemp("runs")).games()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("go", "go"),
        ("go:9", "go"),
        ("go:size=9", "go"),
        ("go:9,7.5", "go"),
        ("go:9,komi=7.5,superko=FALSE,max_moves=162", "go"),
        ("go:5", "go:5"),
        ("go:komi=7.5,size=5", "go:5"),
        ("breakthrough:5,5", "breakthrough:5,width=5"),
        ("breakthrough:width=5,height=5", "breakthrough:5,width=5"),
        ("gomoku:15,15,5,true", "gomoku:exact=True"),
    ],
)
def test_every_spelling_of_a_game_finds_it(some_games, text, key):
    assert games.make(text) == some_games[key].game
    assert find_key(text, some_games) == key


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "go:19", "go:komi=6.5", "breakthrough", "breakthrough:5"),
        *("go:9,size=9", "go:9,,", "go:,", "go:size", "go:9,7.5,false,162,1"),
        *("go:sizes=9", "go:=9", "go:9.0", "go:superko=0", "go:nine", "Go:9", "chess"),
        *("go:" + "9" * 10_000, "go:komi=" + "1" * 10_000, "go:" + "," * 10_000),
    ],
)
def test_other_texts_are_not_games(some_games, text):
    assert find_key(text, some_games) is None


def test_no_game_is_built_to_compare_its_spelling(some_games, monkeypatch):
    def build(self, size=9, komi=7.5, superko=False, max_moves=None):
        raise AssertionError

    monkeypatch.setattr(games.Go, "__init__", build)
    assert find_key("go:size=9", some_games) == "go"
    assert find_key("go:size=19", some_games) is None


def test_new_runs_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr("azjax.play.server.catalog.REFRESH_INTERVAL", 0.0)
    catalog = make_catalog(["tic_tac_toe"], (), tmp_path / "runs")
    assert catalog.runs() == {}
    make_run(tmp_path / "runs/first", "tic_tac_toe")
    assert list(catalog.runs()) == ["first"]
    assert "network:runs/first" in catalog.games()["tic_tac_toe"].players


def save(directory, text):
    directory.mkdir()
    (directory / "results.json").write_text(text)


GOOD = {"game": "go:size=9", "players": [{"player": "random", "elo": -50}]}


def test_ratings_are_found_by_game_and_player(tmp_path):
    save(tmp_path / "arena", json.dumps(GOOD))
    assert find_ratings(tmp_path) == {"go:size=9": {"random": -50.0}}


def test_without_tournaments_there_are_no_ratings(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "file").write_text("")
    assert find_ratings(tmp_path) == find_ratings(tmp_path / "nowhere") == {}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '"game"', "[" * 10_000, "\0"),
        *(
            json.dumps({**GOOD, **wrong})
            for wrong in (
                {"game": ["go"]},
                {"players": None},
                {"players": [None]},
                {"players": [{"player": "random"}]},
                {"players": [{"player": ["random"], "elo": 1}]},
                {"players": [{"player": "random", "elo": "1"}]},
                {"players": [{"player": "random", "elo": True}]},
                {"players": [{"player": "random", "elo": 10**400}]},
                {"players": [{"player": "random", "elo": float("inf")}]},
                {"players": [{"player": "random", "elo": float("nan")}]},
                {"players": [{"player": "random", "elo": 1e9}]},
                {"players": {"player": "random", "elo": 1}},
            )
        ),
        json.dumps(GOOD) + " " * MAX_BYTES,
    ],
)
def test_malformed_results_are_ignored(tmp_path, text):
    save(tmp_path / "wrong", text)
    save(tmp_path / "arena", json.dumps(GOOD))
    assert list(find_ratings(tmp_path)) == ["go:size=9"]


def test_results_in_a_run_are_ignored(tmp_path):
    save(tmp_path / "run", json.dumps(GOOD))
    (tmp_path / "run/config.json").write_text("{}")
    assert find_ratings(tmp_path) == {}


def test_the_newest_files_are_read_once(tmp_path, monkeypatch):
    for number in range(KEPT_TOURNAMENTS + 9):
        save(tmp_path / f"{number}", json.dumps({**GOOD, "game": f"go:{number}"}))
        path = tmp_path / f"{number}" / "results.json"
        os.utime(path, (number, number))
    found = find_ratings(tmp_path)
    assert list(found) == [f"go:{n}" for n in range(9, KEPT_TOURNAMENTS + 9)]
    with monkeypatch.context() as patch:
        patch.setattr(json, "loads", None)
        assert find_ratings(tmp_path) == found
    # Same age, different size.
    about = path.stat()
    path.write_text(json.dumps({**GOOD, "game": "hex"}))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert "hex" in find_ratings(tmp_path)


def test_links_are_not_followed(tmp_path):
    save(tmp_path / "outside", json.dumps(GOOD))
    (tmp_path / "runs" / "arena").mkdir(parents=True)
    (tmp_path / "runs/arena/results.json").symlink_to(tmp_path / "outside/results.json")
    assert find_ratings(tmp_path / "runs") == {}


def test_a_run_is_the_same_player_under_any_path():
    here = os.path.abspath("runs/go")
    assert player_key("alphazero:runs/go?simulations=9") == (
        player_key(f"alphazero:{here}?simulations=9")
    )
    assert player_key("alphazero:pretrained") == "alphazero:pretrained"
    assert player_key("gtp:runs/go") == "gtp:runs/go"

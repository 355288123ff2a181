import json
import math
import os
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from azjax import games, players
from azjax.networks import DenseTrunkConfig, NetworkConfig, Parts
from azjax.play.server import House, Limits, make_offers
from azjax.play.server.describing import describe_position
from azjax.play.server.memory import PROGRAM_BYTES
from azjax.players import TrainedPlayer, first_network, save_player
from azjax.search import GumbelConfig


def save(directory, seed, width=8):
    """Writes a run of tic-tac-toe, or a newer player of it."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text('{"format": 1, "game": "tic_tac_toe"}')
    game, config = (
        games.make("tic_tac_toe"),
        NetworkConfig(trunk=DenseTrunkConfig(width=width, num_blocks=1)),
    )
    network, variables = first_network(seed, game, config)
    trained = TrainedPlayer(game, network, variables, config, GumbelConfig(), seed=seed)
    save_player(directory / "player", trained)
    for path in (directory / "player").iterdir():  # as if some time had passed
        os.utime(path, ns=(seed, seed))


@pytest.fixture
def run(tmp_path):
    save(tmp_path / "first", seed=1)
    return tmp_path / "first"


def house_of(directory, **limits):
    return House(make_offers(["tic_tac_toe"], (), directory), Limits(**limits))


def test_a_description_can_be_sent(run):
    house = house_of(run.parent)
    offer, player = house.find("tic_tac_toe", "greedy")
    told = json.loads(json.dumps(house.describe(offer, player)))
    assert told["player"] == "greedy"
    house.close()


def test_a_player_is_loaded_once(run):
    house = house_of(run.parent)
    found = house.find("tic_tac_toe", f"network:{run.parent.name}/first")
    assert house.host(*found) is house.host(*found)
    assert house.rules(found[0]) is house.rules(found[0])
    house.close()


def test_a_newer_player_of_a_run_takes_the_place_of_the_older(run):
    house = house_of(run.parent)
    found = house.find("tic_tac_toe", f"alphazero:{run.parent.name}/first")
    before = house.host(*found)
    table, _ = before.table(25)
    save(run, seed=2)
    after = house.host(*found)
    assert after is not before
    assert after.table(25)[0] is table  # its programs are used again
    save(run, seed=3, width=16)
    assert house.host(*found).table(25)[0] is not table
    house.close()


def test_a_run_whose_player_is_broken_says_so(run, capsys):
    house = house_of(run.parent)
    found = house.find("tic_tac_toe", f"alphazero:{run.parent.name}/first")
    (run / "player/weights.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"AlphaZero \(run first\) cannot be loaded"):
        house.host(*found)
    assert "damaged" in capsys.readouterr().err
    house.close()


def test_visitors_who_ask_for_the_same_share_a_table_and_others_do_not(run):
    house = house_of(run.parent)
    host = house.host(*house.find("tic_tac_toe", "mcts:1600"))
    assert host.table(400) == (host.table(1)[0], 400)
    assert host.table(1600)[0] is not host.table(400)[0]
    assert host.table(None)[1] == 1600
    house.close()


def test_a_player_has_its_own_strength_if_nothing_else_is_asked_for(run):
    offers = make_offers(["tic_tac_toe"], ["tic_tac_toe=mcts:30"], run.parent)
    house = House(offers, Limits())
    host = house.host(*house.find("tic_tac_toe", f"alphazero:{run.parent.name}/first"))
    assert host.default_strength == players.DEFAULT_SIMULATIONS
    assert host.table(None)[1] == players.DEFAULT_SIMULATIONS
    assert house.host(*house.find("tic_tac_toe", "mcts:30")).default_strength == 30
    house.close()


def test_strengths_end_where_the_limits_do(run):
    house = house_of(run.parent, simulations=150)
    host = house.host(*house.find("tic_tac_toe", "mcts:1600"))
    assert host.strengths == [1, 25, 50, 100]
    assert host.default_strength == 100
    with pytest.raises(ValueError, match="must be one of 1, 25, 50, 100: 200"):
        host.table(200)
    house.close()


def test_strengths_end_where_there_is_no_memory_for_trees(tmp_path):
    offers = make_offers(["chess"], (), tmp_path)
    house = House(offers, Limits(search_bytes=2**28))
    host = house.host(*house.find("chess", "mcts:25"))
    assert host.strengths[-1] < 1600
    house.close()


def test_a_search_that_has_no_memory_is_refused_and_never_made_at_once(run):
    house = house_of(run.parent, search_bytes=1)
    for name in ("mcts:1600", f"alphazero:{run.parent.name}/first"):
        found = house.find("tic_tac_toe", name)
        with pytest.raises(ValueError, match="its search needs more memory than"):
            house.describe(*found)
        assert house.loaded(*found) is None
    assert house.host(*house.find("tic_tac_toe", "greedy")).strengths == []
    house.close()


def test_runs_that_come_later_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr("azjax.play.server.house.LOOK_INTERVAL", 0.0)
    house = house_of(tmp_path / "runs")
    assert house.runs() == {}
    save(tmp_path / "runs/first", seed=1)
    assert list(house.runs()) == ["first"]
    assert "network:runs/first" in house.games()["tic_tac_toe"].players
    assert house.key_of(games.make("tic_tac_toe")) == "tic_tac_toe"
    assert house.key_of(games.make("hex")) is None
    house.close()


def test_players_not_used_for_longest_go_when_memory_is_short(tmp_path):
    house = house_of(tmp_path, memory_bytes=2 * PROGRAM_BYTES)
    hosts = {}
    for name in ("greedy", "random", "greedy", "mcts:1600"):
        found = house.find("tic_tac_toe", name)
        hosts[name] = weakref.ref(house.host(*found))
        hosts[name]().table(None)
        assert house.host(*found) is hosts[name]()
    found = [house.find("tic_tac_toe", name) for name in hosts]
    assert [house.loaded(*one) is not None for one in found] == [True, False, True]
    assert hosts["random"]() is None  # nothing holds it any more
    assert house.host(*found[1]).table(None)[1] == 0  # it can be loaded again
    house.close()


def test_another_program_stays_when_memory_is_short(tmp_path, dying, monkeypatch):
    house = house_of(tmp_path, memory_bytes=1)
    with monkeypatch.context() as patch:
        patch.setattr("azjax.play.server.house.load_offered", lambda *_: dying)
        found = house.find("tic_tac_toe", "random")
        house.host(*found).table(None)
    with pytest.raises(ValueError, match="too many players are at work"):
        house.host(*house.find("tic_tac_toe", "greedy")).table(None)
    assert house.loaded(*found) is not None
    house.close()


def test_it_is_busy_until_no_visitor_has_waited_for_a_while(tmp_path, monkeypatch):
    house = house_of(tmp_path)
    assert house.is_busy  # visitors may wait for the server to begin
    house.answered_at = -math.inf
    assert not house.is_busy
    house.num_decisions = 1
    assert house.is_busy
    house.num_decisions, house.answered_at = 0, time.monotonic()
    assert house.is_busy  # a visitor who plays waits again soon
    monkeypatch.setattr("azjax.play.server.house.QUIET_SECONDS", 0.0)
    assert not house.is_busy
    house.close()


def test_positions_compile_nothing_once_the_rules_are_loaded(tmp_path, compilations):
    house = House(make_offers(["othello"], (), tmp_path), Limits())
    rules = house.rules(house.games()["othello"])
    del compilations[:]
    describe_position(rules, ())
    describe_position(rules, (rules.legal_actions(rules.state(()))[0],))
    assert compilations == []
    house.close()


def test_players_of_runs_are_loaded_with_the_parts_of_the_operator(run, monkeypatch):
    given = []
    monkeypatch.setattr(
        "azjax.play.server.catalog.load_learnt", lambda *args: given.append(args[-1])
    )
    parts = Parts()
    house = House(make_offers(["tic_tac_toe"], (), run.parent, parts), Limits())
    found = house.find("tic_tac_toe", f"network:{run.parent.name}/first")
    house.host(*found)
    assert given == [parts]
    house.close()


def test_players_are_loaded_one_at_a_time(tmp_path, monkeypatch):
    num_loading, most = [], []

    def load(player, game, parts):
        num_loading.append(player)
        most.append(len(num_loading))
        time.sleep(0.01)
        num_loading.pop()
        return players.load(player.source, game)

    monkeypatch.setattr("azjax.play.server.house.load_offered", load)
    house = house_of(tmp_path)
    found = [house.find("tic_tac_toe", name) for name in ("greedy", "random") * 4]
    with ThreadPoolExecutor(8) as workers:
        list(workers.map(lambda one: house.host(*one), found))
    assert most == [1, 1]
    house.close()


def test_a_player_that_was_loaded_makes_room_before_it_is_asked(tmp_path):
    house = house_of(tmp_path, memory_bytes=1)
    for name in ("alphazero:pretrained", "network:pretrained"):
        found = house.find("tic_tac_toe", name)
        house.host(*found)
    assert list(house._hosts) == [("tic_tac_toe", "network:pretrained")]
    house.close()

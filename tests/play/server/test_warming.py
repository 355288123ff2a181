from types import SimpleNamespace

import pytest

from azjax.play.server import House, Limits, Warmer
from azjax.play.server.warming import LOOK_INTERVAL


class Recorded:
    """A house that notes what is compiled."""

    def __init__(self, games=("one", "two")):
        self.done, self.is_busy = [], False
        self.evicted = ()
        players = {name: f"{name}'s player" for name in ("first", "second")}
        self.offers = {
            name: SimpleNamespace(key=name, players=players) for name in games
        }

    def games(self):
        return self.offers

    def preview(self, offer):
        self.done.append(("preview", offer.key))

    def rules(self, offer):
        self.done.append(("rules", offer.key))

    def is_ready(self, offer, player):
        search = ("search", offer.key, player)
        return search in self.done and offer.key not in self.evicted

    def host(self, offer, player):
        compile_search = ("search", offer.key, player)
        return SimpleNamespace(compile=lambda: self.done.append(compile_search))


@pytest.fixture
def told():
    return []


def test_every_game_is_compiled_with_its_first_player(told):
    house = Recorded()
    assert Warmer(house, told.append).warm_up() == 2
    steps = [("preview",), ("rules",), ("search",)]
    assert [done[:1] for done in house.done] == [*steps, *steps]
    assert house.done[2] == ("search", "one", "first's player")


def test_a_game_that_memory_did_not_keep_is_not_counted(told):
    house = Recorded()
    house.evicted = ("one",)
    Warmer(house, told.append)._run()
    assert told == ["1 of 2 games are compiled; their pages open at once."]


def test_nothing_begins_while_a_visitor_waits(told, monkeypatch):
    house = Recorded(["one"])
    warmer = Warmer(house, told.append)
    house.is_busy = True

    def wait(seconds):
        assert seconds == LOOK_INTERVAL
        assert house.done == []
        house.is_busy = False

    monkeypatch.setattr(warmer._is_closed, "wait", wait)
    assert warmer.warm_up() == 1
    assert len(house.done) == 3


def test_it_ends_when_it_is_closed(told):
    house = Recorded()
    warmer = Warmer(house, told.append)
    rules = house.rules

    def close(offer):
        rules(offer)
        warmer.close()

    house.rules = close
    assert warmer.warm_up() == 0
    assert house.done == [("preview", "one"), ("rules", "one")]


def test_a_game_that_fails_leaves_the_others(told, capsys):
    house = Recorded()

    def fail(offer):
        if offer.key == "one":
            raise RuntimeError("no memory left")

    house.rules = fail
    assert Warmer(house, told.append).warm_up() == 1
    assert "no memory left" in capsys.readouterr().err
    assert ("search", "two", "first's player") in house.done


def test_a_compiled_game_can_begin_at_once(offers, told, monkeypatch):
    monkeypatch.setattr("azjax.play.server.house.QUIET_SECONDS", 0.0)
    house = House(offers, Limits())
    offer = house.games()["tic_tac_toe"]
    player = offer.players["random"]
    only = SimpleNamespace(key=offer.key, game=offer.game, players={"random": player})
    house.games = lambda: {"tic_tac_toe": only}
    assert Warmer(house, told.append).warm_up() == 1
    assert house.is_ready(offer, player)
    table, _ = house.host(offer, player).table(None)
    assert table.slicer.sizes == [1]
    house.close()

from types import SimpleNamespace

import pytest

from azjax.play.server import Limits, PlayerRegistry, Warmer
from azjax.play.server.registry import POLL_INTERVAL


class FakeRegistry:
    """A registry that records what is compiled."""

    def __init__(self, games=("one", "two")):
        self.done, self.evicted = [], ()
        self.activity = SimpleNamespace(is_busy=False)
        players = {name: f"{name}'s player" for name in ("first", "second")}
        offers = {name: SimpleNamespace(key=name, players=players) for name in games}
        self.catalog = SimpleNamespace(games=lambda: offers)

    def preview(self, offer):
        self.done.append(("preview", offer.key))

    def rules(self, offer):
        self.done.append(("rules", offer.key))

    def is_ready(self, offer, player):
        search = ("search", offer.key, player)
        return search in self.done and offer.key not in self.evicted

    def load(self, offer, player):
        search = ("search", offer.key, player)
        return SimpleNamespace(compile=lambda: self.done.append(search))


@pytest.fixture
def log():
    return []


def test_every_game_is_compiled_with_its_first_player(log):
    registry = FakeRegistry()
    assert Warmer(registry, log.append).warm_up() == 2
    steps = [("preview",), ("rules",), ("search",)]
    assert [done[:1] for done in registry.done] == [*steps, *steps]
    assert registry.done[2] == ("search", "one", "first's player")


def test_an_evicted_game_is_not_counted(log):
    registry = FakeRegistry()
    registry.evicted = ("one",)
    Warmer(registry, log.append)._run()
    assert log == ["1 of 2 games are compiled; their pages open at once."]


def test_no_compilation_starts_while_a_client_waits(log, monkeypatch):
    registry = FakeRegistry(["one"])
    warmer = Warmer(registry, log.append)
    registry.activity.is_busy = True

    def wait(seconds):
        assert seconds == POLL_INTERVAL
        assert registry.done == []
        registry.activity.is_busy = False

    monkeypatch.setattr(warmer._is_closed, "wait", wait)
    assert warmer.warm_up() == 1
    assert len(registry.done) == 3


def test_close_ends_the_compilations(log):
    registry = FakeRegistry()
    warmer = Warmer(registry, log.append)
    rules = registry.rules

    def close(offer):
        rules(offer)
        warmer.close()

    registry.rules = close
    assert warmer.warm_up() == 0
    assert registry.done == [("preview", "one"), ("rules", "one")]


def test_an_error_in_one_game_does_not_affect_the_others(log, capsys):
    registry = FakeRegistry()

    def fail(offer):
        if offer.key == "one":
            raise RuntimeError("no memory left")

    registry.rules = fail
    assert Warmer(registry, log.append).warm_up() == 1
    assert "no memory left" in capsys.readouterr().err
    assert ("search", "two", "first's player") in registry.done


def test_a_compiled_game_is_ready(catalog, log, monkeypatch):
    for name in ("QUIET_SECONDS", "FIRST_SECONDS"):
        monkeypatch.setattr(f"azjax.play.server.loaded_player.{name}", 0.0)
    registry = PlayerRegistry(catalog, Limits())
    offer = registry.catalog.games()["tic_tac_toe"]
    player = offer.players["random"]
    only = SimpleNamespace(key=offer.key, game=offer.game, players={"random": player})
    registry.catalog.games = lambda: {"tic_tac_toe": only}
    assert Warmer(registry, log.append).warm_up() == 1
    assert registry.is_ready(offer, player)
    worker, _ = registry.load(offer, player).worker(None)
    assert worker.search.sizes == [1]
    registry.close()

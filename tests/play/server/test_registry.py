import dataclasses
import json
import math
import time
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from azjax import games, players
from azjax.games.host import legal_actions
from azjax.networks import CustomModules
from azjax.play.server import (
    Catalog,
    PlayerRegistry,
    ServerLimits,
    compile_games,
    make_catalog,
)
from azjax.play.server.catalog import GameOffer, PlayerOffer
from azjax.play.server.memory import PROGRAM_BYTES
from azjax.play.server.positions import describe_position
from azjax.play.server.registry import (
    QUIET_SECONDS,
    Activity,
)
from azjax.players.registry import PLAYER_KINDS, PlayerKind


@pytest.fixture
def make_registry():
    """Makes a registry for a directory with runs; closes it after the test."""
    made = []

    def make(directory, games=("tic_tac_toe",), specs=(), modules=None, **limits):
        catalog = make_catalog(games, specs, directory, modules)
        made.append(PlayerRegistry(catalog, ServerLimits(**limits)))
        return made[-1]

    yield make
    for registry in made:
        registry.close()


def test_a_description_is_json(tmp_path, make_registry):
    registry = make_registry(tmp_path)
    found = registry.catalog.find("tic_tac_toe", "greedy")
    described = json.loads(json.dumps(registry.describe(*found)))
    assert described["player"] == "Greedy"


def test_players_and_rules_are_loaded_once(run, make_registry):
    registry = make_registry(run.parent)
    found = registry.catalog.find("tic_tac_toe", f"network:{run.parent.name}/first")
    assert registry.load(*found) is registry.load(*found)
    assert registry.rules(found[0]) is registry.rules(found[0])


def test_games_with_chance_have_no_solver_of_exact_results(tmp_path, make_registry):
    registry = make_registry(tmp_path, ["ur:2"])
    assert registry.solver(registry.catalog.find("ur:2", "random")[0]) is None


def test_a_newer_player_of_a_run_replaces_the_older(run, make_registry, save_run):
    registry = make_registry(run.parent)
    found = registry.catalog.find("tic_tac_toe", f"alphazero:{run.parent.name}/first")
    before = registry.load(*found)
    worker, _ = before.worker(25)
    save_run(run, seed=2)
    after = registry.load(*found)
    assert after is not before
    assert after.worker(25)[0] is worker  # reuses the compiled programs
    save_run(run, seed=3, width=16)
    assert registry.load(*found).worker(25)[0] is not worker


def test_a_damaged_player_of_a_run_is_an_error(run, make_registry, capsys):
    registry = make_registry(run.parent)
    found = registry.catalog.find("tic_tac_toe", f"alphazero:{run.parent.name}/first")
    (run / "player/player.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match=r"AlphaZero \(run first\) cannot be loaded"):
        registry.load(*found)
    assert "damaged" in capsys.readouterr().err


def test_a_player_whose_search_has_no_memory_is_not_loaded(tmp_path, make_registry):
    registry = make_registry(tmp_path, search_bytes=1)
    found = registry.catalog.find("tic_tac_toe", "mcts:1600")
    with pytest.raises(ValueError, match="exceeds the memory for search trees"):
        registry.describe(*found)
    assert registry.loaded(*found) is None


def test_the_least_recently_used_players_are_evicted(tmp_path, make_registry):
    registry = make_registry(tmp_path, memory_bytes=2 * PROGRAM_BYTES)
    loaded = {}
    for name in ("greedy", "random", "greedy", "mcts:1600"):
        found = registry.catalog.find("tic_tac_toe", name)
        loaded[name] = weakref.ref(registry.load(*found))
        loaded[name]().worker(None)
        assert registry.load(*found) is loaded[name]()
    found = [registry.catalog.find("tic_tac_toe", name) for name in loaded]
    assert [registry.loaded(*one) is not None for one in found] == [True, False, True]
    assert loaded["random"]() is None  # no reference is left
    assert registry.load(*found[1]).worker(None)[1] == 0  # it can be loaded again


def test_an_external_program_is_never_evicted(tmp_path, make_registry, dying):
    registry = make_registry(tmp_path, specs=["tic_tac_toe=dying"], memory_bytes=1)
    found = registry.catalog.find("tic_tac_toe", "dying")
    registry.load(*found).worker(None)
    other = registry.catalog.find("tic_tac_toe", "greedy")
    with pytest.raises(ValueError, match="memory is in use by other players"):
        registry.load(*other).worker(None)
    assert registry.loaded(*found) is not None


def test_positions_compile_nothing_after_the_rules(
    tmp_path, make_registry, compilations
):
    registry = make_registry(tmp_path, ["othello"])
    rules = registry.rules(registry.catalog.games()["othello"])
    del compilations[:]
    describe_position(rules, ())
    describe_position(rules, (legal_actions(rules.game, rules.state(()))[0],))
    assert compilations == []


def test_players_of_runs_are_loaded_with_the_servers_parts(
    run, make_registry, monkeypatch
):
    given = []
    monkeypatch.setattr(
        "azjax.play.server.catalog.load_learned", lambda *args: given.append(args[-1])
    )
    modules = CustomModules()
    registry = make_registry(run.parent, modules=modules)
    name = f"network:{run.parent.name}/first"
    registry.load(*registry.catalog.find("tic_tac_toe", name))
    assert given == [modules]


def test_players_are_loaded_one_at_a_time(tmp_path, make_registry, monkeypatch):
    loading, counts = [], []

    def build(spec, game):
        loading.append(spec)
        counts.append(len(loading))
        time.sleep(0.01)
        loading.pop()
        return players.load("greedy", game)

    monkeypatch.setitem(PLAYER_KINDS, "slow", PlayerKind("slow", build))
    specs = ["tic_tac_toe=a=slow", "tic_tac_toe=b=slow"]
    registry = make_registry(tmp_path, specs=specs)
    found = [registry.catalog.find("tic_tac_toe", name) for name in ("a", "b") * 4]
    counts.clear()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda one: registry.load(*one), found))
    assert counts == [1, 1]


def test_loading_a_player_evicts_others_before_its_first_decision(
    tmp_path, make_registry
):
    registry = make_registry(tmp_path, memory_bytes=1)
    names = ("alphazero:pretrained", "network:pretrained")
    found = [registry.catalog.find("tic_tac_toe", name) for name in names]
    for one in found:
        registry.load(*one)
    assert [registry.loaded(*one) is not None for one in found] == [False, True]


def loaded(text, game="tic_tac_toe", **limits):
    offer = GameOffer(game, games.make(game), {})
    player = PlayerOffer(text, text, players.load(text, offer.game))
    registry = PlayerRegistry(Catalog({}), ServerLimits(**limits), seed=0)
    return registry.load(offer, player)


def test_similar_numbers_of_simulations_share_a_worker():
    player = loaded("mcts:1600")
    assert player.worker(400) == (player.worker(1)[0], 400)
    assert player.worker(1600)[0] is not player.worker(400)[0]
    assert player.worker(None)[1] == 1600


@pytest.mark.parametrize(
    ("text", "strength"),
    [("alphazero:pretrained", players.DEFAULT_SIMULATIONS), ("mcts:30", 30)],
)
def test_the_default_strength_is_the_players_own(text, strength):
    player = loaded(text)
    assert player.default_strength == strength
    assert player.worker(None)[1] == strength


def test_strengths_end_at_the_limit_of_simulations():
    player = loaded("mcts:1600", simulations=150)
    assert player.strengths == [1, 25, 50, 100]
    assert player.default_strength == 100
    with pytest.raises(ValueError, match="must be one of 1, 25, 50, 100: 200"):
        player.worker(200)


def test_strengths_end_at_the_memory_for_trees():
    assert loaded("mcts:25", "chess", search_bytes=2**24).strengths[-1] < 1600


@pytest.mark.parametrize("text", ["mcts:1600", "alphazero:pretrained"])
def test_a_search_without_memory_for_its_tree_is_rejected(text):
    with pytest.raises(ValueError, match="exceeds the memory for search trees"):
        loaded(text, search_bytes=1)


def test_a_player_without_a_search_has_no_strengths():
    player = loaded("greedy", search_bytes=1)
    assert (player.strengths, player.default_strength) == ([], None)
    assert player.worker(None)[1] == 0


def test_the_server_is_busy_until_some_time_after_the_last_request():
    current = Activity()
    assert current.is_busy  # clients can wait for the server to start
    current.last_answer = -math.inf
    assert not current.is_busy
    current.num_decisions = 1
    assert current.is_busy
    current.num_decisions, current.last_answer = 0, time.monotonic()
    assert current.is_busy  # a client that plays soon sends the next request
    current.last_answer -= QUIET_SECONDS
    assert not current.is_busy
    current.compilation = Future()  # of the search for the client's first move
    assert current.is_busy
    current.compilation.set_result(None)
    assert not current.is_busy


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


def ready(number, total=2):
    return [f"{number} of {total} games are compiled; their pages open at once."]


def test_every_game_is_compiled_with_its_first_player(log):
    registry = FakeRegistry()
    compile_games(registry, log.append)
    assert log == ready(2)
    steps = [("preview",), ("rules",), ("search",)]
    assert [done[:1] for done in registry.done] == [*steps, *steps]
    assert registry.done[2] == ("search", "one", "first's player")


def test_an_evicted_game_is_not_counted(log):
    registry = FakeRegistry()
    registry.evicted = ("one",)
    compile_games(registry, log.append)
    assert log == ready(1)


def test_no_compilation_starts_while_a_client_waits(log):
    registry = FakeRegistry(["one"])
    counts = []

    class Busy:
        @property
        def is_busy(self):
            counts.append(len(registry.done))
            return len(counts) < 3

    registry.activity = Busy()
    compile_games(registry, log.append)
    assert counts == [0, 0, 0, 1, 2]


def test_an_error_in_one_game_does_not_affect_the_others(log, capsys):
    registry = FakeRegistry()

    def fail(offer):
        if offer.key == "one":
            raise RuntimeError("no memory left")

    registry.rules = fail
    compile_games(registry, log.append)
    assert log == ready(1)
    assert "no memory left" in capsys.readouterr().err
    assert ("search", "two", "first's player") in registry.done


def test_a_compiled_game_is_ready(catalog, log):
    offer, player = catalog.find("tic_tac_toe", "random")
    offer = dataclasses.replace(offer, players={"random": player})
    registry = PlayerRegistry(Catalog({"tic_tac_toe": offer}), ServerLimits())
    registry.activity.last_answer = -math.inf  # no client is expected
    compile_games(registry, log.append)
    assert log == ready(1, total=1)
    assert registry.is_ready(offer, player)
    worker, _ = registry.load(offer, player).worker(None)
    assert worker.search.sizes == [1]
    registry.close()

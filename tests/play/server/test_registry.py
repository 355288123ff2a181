import json
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from azjax import players
from azjax.networks import Parts
from azjax.play.server import Limits, PlayerRegistry, make_catalog
from azjax.play.server.describing import describe_position
from azjax.play.server.memory import PROGRAM_BYTES


@pytest.fixture
def make_registry():
    """Makes a registry for a directory with runs; closes it after the test."""
    made = []

    def make(directory, games=("tic_tac_toe",), parts=None, **limits):
        catalog = make_catalog(games, (), directory, parts)
        made.append(PlayerRegistry(catalog, Limits(**limits)))
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


def test_an_external_program_is_never_evicted(
    tmp_path, make_registry, dying, monkeypatch
):
    registry = make_registry(tmp_path, memory_bytes=1)
    with monkeypatch.context() as patch:
        patch.setattr("azjax.play.server.registry.load_offered", lambda *_: dying)
        found = registry.catalog.find("tic_tac_toe", "random")
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
    describe_position(rules, (rules.legal_actions(rules.state(()))[0],))
    assert compilations == []


def test_players_of_runs_are_loaded_with_the_servers_parts(
    run, make_registry, monkeypatch
):
    given = []
    monkeypatch.setattr(
        "azjax.play.server.catalog.load_learned", lambda *args: given.append(args[-1])
    )
    parts = Parts()
    registry = make_registry(run.parent, parts=parts)
    name = f"network:{run.parent.name}/first"
    registry.load(*registry.catalog.find("tic_tac_toe", name))
    assert given == [parts]


def test_players_are_loaded_one_at_a_time(tmp_path, make_registry, monkeypatch):
    loading, counts = [], []

    def load(player, game, parts):
        loading.append(player)
        counts.append(len(loading))
        time.sleep(0.01)
        loading.pop()
        return players.load(player.source, game)

    monkeypatch.setattr("azjax.play.server.registry.load_offered", load)
    find = make_registry(tmp_path).catalog.find
    registry = make_registry(tmp_path)
    found = [find("tic_tac_toe", name) for name in ("greedy", "random") * 4]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda one: registry.load(*one), found))
    assert counts == [1, 1]


def test_loading_a_player_evicts_others_before_its_first_decision(
    tmp_path, make_registry
):
    registry = make_registry(tmp_path, memory_bytes=1)
    for name in ("alphazero:pretrained", "network:pretrained"):
        registry.load(*registry.catalog.find("tic_tac_toe", name))
    assert list(registry._players) == [("tic_tac_toe", "network:pretrained")]

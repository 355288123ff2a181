"""A registry with two games, and slow or failing players."""

import dataclasses
import os
import threading

import jax
import numpy as np
import pytest

from azjax import games, players
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.play.server import Limits, PlayerRegistry, make_catalog
from azjax.play.server.incremental_search import IncrementalSearch, SlicePlan
from azjax.players import (
    ForfeitError,
    MoveDecision,
    ResignError,
    TrainedPlayer,
    first_network,
    save_player,
)
from azjax.search import GumbelConfig

# Time limit of a test's waits, on a loaded machine (seconds).
PATIENCE = 300.0


class FailingPlayer:
    """Plays the first legal action; waits, forfeits or resigns on demand."""

    def __init__(self):
        self.is_dead = self.is_beaten = False
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.num_sessions = self.num_closed = 0

    def start_session(self, game, seed):
        self.num_sessions += 1
        self.game = game
        return self

    def choose(self, state, moves):
        assert self.may_go_on.wait(PATIENCE)
        if self.is_dead:
            raise ForfeitError("the engine died")
        if self.is_beaten:
            raise ResignError("resigned")
        legal = np.asarray(self.game.legal_action_mask(state))
        return MoveDecision(int(legal.argmax()))

    def close(self):
        self.num_closed += 1


def _save_run(directory, seed, width=8):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text('{"format": 1, "game": "tic_tac_toe"}')
    game = games.make("tic_tac_toe")
    config = NetworkConfig(trunk=DenseTrunkConfig(width=width, num_blocks=1))
    network, variables = first_network(seed, game, config)
    trained = TrainedPlayer(game, network, variables, config, GumbelConfig(), seed=seed)
    save_player(directory / "player", trained)
    for path in (directory / "player").iterdir():  # a time stamp for each seed
        os.utime(path, ns=(seed, seed))


@pytest.fixture(scope="session")
def save_run():
    """Writes a run of tic-tac-toe, or a newer player of it."""
    return _save_run


@pytest.fixture
def run(tmp_path):
    """A run of tic-tac-toe."""
    _save_run(tmp_path / "first", seed=1)
    return tmp_path / "first"


@pytest.fixture(scope="session")
def player(connect_four):
    return players.load("alphazero:pretrained", connect_four)


@pytest.fixture(scope="session")
def slices(player, connect_four):
    """A search in four slices, compiled for batches of 1 and 4."""
    slices = IncrementalSearch(player, SlicePlan(24, 7), connect_four.init())
    slices.compile(1)
    slices.compile(4)
    return slices


@pytest.fixture(scope="session")
def visits_alone(found_alone):
    """Visits of an unsliced search with 24 simulations, by actions."""
    return {actions: visits for actions, (_, visits) in found_alone.items()}


@pytest.fixture(scope="session")
def found_alone(player, positions):
    """Action and visits of an unsliced search with 24 simulations, by actions."""
    whole = dataclasses.replace(player, simulations=24)
    analyze = jax.jit(lambda state: whole.analyze(jax.random.key(0), state, None)[:2])
    found = {}
    for actions, state in positions:
        choice, analysis = analyze(jax.tree.map(lambda leaf: leaf[None], state))
        found[actions] = int(choice.action[0]), np.asarray(analysis.visits[0])
    return found


@pytest.fixture
def compilations():
    """Names of the threads that compile programs during the test."""
    threads = []

    def note(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            threads.append(threading.current_thread().name)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield threads
    jax.monitoring.unregister_event_duration_listener(note)


@pytest.fixture
def dying():
    return FailingPlayer()


@pytest.fixture(scope="session")
def catalog(tmp_path_factory):
    return make_catalog(
        ["tic_tac_toe", "connect_four"], (), tmp_path_factory.mktemp("runs")
    )


@pytest.fixture(scope="session")
def registry(catalog):
    registry = PlayerRegistry(catalog, Limits())
    yield registry
    registry.close()


@pytest.fixture(scope="session")
def connect_four():
    return games.make("connect_four")


@pytest.fixture(scope="session")
def positions(connect_four):
    """Lists of actions with the unfinished positions to which they lead."""
    step = jax.jit(connect_four.step)
    found = []
    for actions in [(), (3,), (3, 3), (3, 2, 3), (0, 6, 1, 5), (3, 3, 3, 3, 3), (2, 3)]:
        state = connect_four.init()
        for action in actions:
            state = step(state, np.int32(action))
        found.append((actions, jax.tree.map(np.asarray, state)))
    return found

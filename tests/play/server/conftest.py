"""A house with two games, and players that are slow, or that die."""

import dataclasses
import threading

import jax
import numpy as np
import pytest

from azjax import games, players
from azjax.play.server import House, Limits, make_offers
from azjax.play.server.incremental_search import Plan, Slicer
from azjax.players import ForfeitError, MoveDecision, ResignError

# What a visitor may wait for, on a machine with much else to do (seconds).
PATIENCE = 300.0


class Dying:
    """Plays the first legal action once it is let; dies or resigns when told to."""

    def __init__(self):
        self.is_dead = self.is_beaten = False
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.num_seats = self.num_closed = 0

    def start_session(self, game, seed):
        self.num_seats += 1
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


@pytest.fixture(scope="session")
def player(connect_four):
    return players.load("alphazero:pretrained", connect_four)


@pytest.fixture(scope="session")
def slicer(player, connect_four):
    """A search of 24 simulations in four slices, compiled for one and for four."""
    slicer = Slicer(player, Plan(24, 7), connect_four.init())
    slicer.compile(1)
    slicer.compile(4)
    return slicer


@pytest.fixture(scope="session")
def visits_alone(found_alone):
    """The visits of the player's own search with 24 simulations, by actions."""
    return {actions: visits for actions, (_, visits) in found_alone.items()}


@pytest.fixture(scope="session")
def found_alone(player, positions):
    """The choice and visits of the player's own search with 24 simulations."""
    whole = dataclasses.replace(player, simulations=24)
    analyse = jax.jit(lambda state: whole.analyse(jax.random.key(0), state, None)[:2])
    found = {}
    for actions, state in positions:
        choice, analysis = analyse(jax.tree.map(lambda leaf: leaf[None], state))
        found[actions] = int(choice.action[0]), np.asarray(analysis.visits[0])
    return found


@pytest.fixture
def compilations():
    """The names of the threads that compiled a program, while the test runs."""
    threads = []

    def note(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            threads.append(threading.current_thread().name)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield threads
    jax.monitoring.unregister_event_duration_listener(note)


@pytest.fixture
def dying():
    return Dying()


@pytest.fixture(scope="session")
def offers(tmp_path_factory):
    return make_offers(
        ["tic_tac_toe", "connect_four"], (), tmp_path_factory.mktemp("runs")
    )


@pytest.fixture(scope="session")
def house(offers):
    house = House(offers, Limits())
    yield house
    house.close()


@pytest.fixture(scope="session")
def connect_four():
    return games.make("connect_four")


@pytest.fixture(scope="session")
def positions(connect_four):
    """Actions that lead to unfinished positions, and the positions."""
    step = jax.jit(connect_four.step)
    found = []
    for actions in [(), (3,), (3, 3), (3, 2, 3), (0, 6, 1, 5), (3, 3, 3, 3, 3), (2, 3)]:
        state = connect_four.init()
        for action in actions:
            state = step(state, np.int32(action))
        found.append((actions, jax.tree.map(np.asarray, state)))
    return found

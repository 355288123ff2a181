"""A registry with two games, and slow or failing players."""

import os
import threading

import jax
import numpy as np
import pytest
from untrained import untrained_shapes

from azjax import games
from azjax.games.host import legal_actions
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.play.server import PlayerRegistry, ServerLimits, make_catalog
from azjax.players import (
    ForfeitError,
    MoveDecision,
    ResignError,
    TrainedPlayer,
    save_player,
)
from azjax.players.registry import PLAYER_KINDS, PlayerKind
from azjax.search import GumbelConfig

# Time limit of a test's waits, on a loaded machine (seconds).
PATIENCE = 30.0


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
        return MoveDecision(legal_actions(self.game, state)[0])

    def close(self):
        self.num_closed += 1


def _save_run(directory, seed, width=8):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text('{"format": 10, "game": "tic_tac_toe"}')
    game = games.make("tic_tac_toe")
    config = NetworkConfig(trunk=DenseTrunkConfig(width=width, num_blocks=1))
    network, shapes = untrained_shapes(game, config)
    rng = np.random.default_rng(seed)
    variables = jax.tree.map(
        lambda leaf: np.asarray(rng.normal(size=leaf.shape), leaf.dtype), shapes
    )
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


@pytest.fixture
def dying(monkeypatch):
    """The player `dying` of a catalog that is made later."""
    player = FailingPlayer()
    kind = PlayerKind("dying", lambda spec, game: player)
    monkeypatch.setitem(PLAYER_KINDS, "dying", kind)
    return player


@pytest.fixture(scope="session")
def catalog(tmp_path_factory):
    return make_catalog(
        ["tic_tac_toe", "connect_four"], (), tmp_path_factory.mktemp("runs")
    )


@pytest.fixture(scope="session")
def registry(catalog):
    registry = PlayerRegistry(catalog, ServerLimits())
    yield registry
    registry.close()

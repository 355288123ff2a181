import functools

import numpy as np
import pytest

from azjax import games, players
from azjax.games.host import first_state
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.play.uci.limits import Clock, Limits
from azjax.play.uci.searcher import NUM_SLICES, Searcher
from azjax.players import AlphaZeroPlayer
from azjax.search import GumbelConfig

GAME = games.make("tic_tac_toe")
SIMULATIONS = 2 * NUM_SLICES


GUMBEL, UCT, RANDOM = "gumbel", f"mcts:{SIMULATIONS}", "random"


def load(spec):
    if spec != GUMBEL:
        return players.load_compiled(spec, GAME)
    trunk = DenseTrunkConfig(width=4, num_blocks=1, stem_channels=4, window=1)
    network, variables = players.first_network(0, GAME, NetworkConfig(trunk=trunk))
    search = GumbelConfig(max_num_considered_actions=2)
    return AlphaZeroPlayer(GAME, search, SIMULATIONS, network, variables)


@pytest.fixture(scope="module")
def make():
    """Returns the compiled searcher of a player."""

    @functools.cache
    def searcher(spec):
        made = Searcher(load(spec), GAME, 0)
        made.compile()
        return made

    return searcher


def nodes(searcher, limits, simulations=SIMULATIONS, *, is_stopped=False):
    """Returns the reported simulations of a search."""
    reports, clock = [], Clock(limits)
    if is_stopped:
        clock.stop()
    decision = searcher.search(first_state(GAME), clock, simulations, reports.append)
    assert reports[-1].decision == decision
    return [progress.nodes for progress in reports]


@pytest.mark.parametrize("spec", [GUMBEL, pytest.param(UCT, marks=pytest.mark.slow)])
def test_a_search_ends_at_its_limits(make, spec):
    searcher = make(spec)
    assert searcher.simulations == SIMULATIONS
    assert nodes(searcher, Limits()) == list(range(2, SIMULATIONS + 1, 2))
    assert nodes(searcher, Limits(), 7) == [2, 4, 6, 7]
    assert nodes(searcher, Limits(nodes=5)) == [2, 4, 5]
    assert nodes(searcher, Limits(nodes=5), 4) == [2, 4]
    assert nodes(searcher, Limits(depth=1)) == [2]
    assert nodes(searcher, Limits(seconds=0.0))[-1] <= 2
    assert nodes(searcher, Limits(), is_stopped=True) == [2]


def test_sequential_halving_plans_its_simulations_by_the_clock_and_its_speed(make):
    for seconds, planned in ((1e-9, 1), (1e6, SIMULATIONS)):
        assert nodes(make(GUMBEL), Limits(seconds=seconds))[-1] == planned


@pytest.mark.slow
def test_uct_has_no_plan_and_ends_after_a_slice(make):
    assert nodes(make(UCT), Limits(seconds=1e-9)) == [2]
    assert nodes(make(UCT), Limits(seconds=1e6))[-1] == SIMULATIONS


@pytest.mark.parametrize("spec", [GUMBEL, RANDOM])
def test_a_search_is_restricted_to_moves(make, spec):
    allowed, reports = np.isin(np.arange(9), [3, 8]), []
    searcher, clock = make(spec), Clock(Limits(nodes=10))
    most = searcher.simulations
    searcher.search(first_state(GAME), clock, most, reports.append, allowed)
    for decision, _, _ in reports:
        assert decision.action in (3, 8)
        assert not decision.policy[~allowed].any()
        if decision.analysis is not None:
            assert not decision.analysis.visits[~allowed].any()


def test_a_player_without_search_decides_at_once(make):
    searcher = make(RANDOM)
    assert searcher.simulations == 0
    assert nodes(searcher, Limits(is_infinite=True), 0) == [1]

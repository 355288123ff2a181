import functools
import threading

import numpy as np
import pytest

from azjax import games, players
from azjax.games.host import first_state
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.play.uci.searcher import NUM_SLICES, Clock, Limits, Searcher, parse_go
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
    if spec == UCT:  # which has no plan
        assert nodes(searcher, Limits(seconds=1e-9)) == [2]
        assert nodes(searcher, Limits(seconds=1e6))[-1] == SIMULATIONS


def test_sequential_halving_plans_its_simulations_by_the_clock_and_its_speed(make):
    for seconds, planned in ((1e-9, 1), (1e6, SIMULATIONS)):
        assert nodes(make(GUMBEL), Limits(seconds=seconds))[-1] == planned


def test_every_slice_is_restricted_to_moves(make):
    allowed, reports = np.isin(np.arange(9), [3, 8]), []
    make(GUMBEL).search(first_state(GAME), Clock(Limits()), 10, reports.append, allowed)
    for decision, _, _ in reports:
        assert decision.action in (3, 8)
        assert not decision.policy[~allowed].any()
        assert not decision.analysis.visits[~allowed].any()


def test_a_player_without_search_decides_at_once(make):
    searcher = make(RANDOM)
    assert searcher.simulations == 0
    assert nodes(searcher, Limits(is_infinite=True), 0) == [1]


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", Limits()),
        ("nodes 50 depth 3", Limits(nodes=50, depth=3)),
        ("nodes 0 depth -2", Limits(nodes=1, depth=1)),
        ("movetime 1500", Limits(seconds=1.5)),
        ("wtime 60000 btime 1000", Limits(seconds=2.0)),
        ("wtime 60000 winc 2000 btime 1", Limits(seconds=3.5)),
        ("wtime 60000 movestogo 10", Limits(seconds=6.0)),
        ("wtime 1000 movestogo 1", Limits(seconds=0.8)),
        ("wtime 1000 winc 60000", Limits(seconds=0.8)),
        ("wtime -50", Limits(seconds=0.01)),
        ("btime 60000", Limits()),
        ("infinite", Limits(is_infinite=True)),
        ("infinite wtime 60000", Limits(is_infinite=True)),
        ("ponder wtime 60000", Limits(seconds=2.0, is_ponder=True)),
        ("nodes x movetime ٣ searchmoves e2e4", Limits()),
        ("nodes", Limits()),
    ],
)
def test_the_limits_of_white_are_read(text, limits):
    assert parse_go(text.split(), 0) == pytest.approx(limits)
    black = "wtime 60000 btime 30000 winc 0 binc 100"
    assert parse_go(black.split(), 1).seconds == pytest.approx(1.075)


def test_a_clock_ends_at_its_limits():
    assert not Clock(Limits()).is_over(99, 99.0)
    assert Clock(Limits(depth=3)).is_over(3, 0.0)
    assert not Clock(Limits(depth=3)).is_over(2, 0.0)
    assert Clock(Limits(seconds=0.0)).is_over(1, 0.0)
    assert Clock(Limits(seconds=1000.0)).is_over(1, 2000.0)
    assert not Clock(Limits(seconds=1000.0)).is_over(1, 0.0)


@pytest.mark.parametrize("limits", [Limits(is_infinite=True), Limits(is_ponder=True)])
def test_a_waiting_clock_waits_for_stop(limits):
    clock = Clock(limits)
    assert clock.is_waiting
    threading.Timer(0.01, clock.stop).start()
    clock.wait()
    assert clock.is_over(0, 0.0)


def test_time_counts_from_the_hit_of_a_ponder_search():
    clock = Clock(Limits(seconds=0.0, is_ponder=True))
    assert not clock.is_over(1, 0.0)
    clock.ponderhit()
    assert clock.is_over(1, 0.0)
    clock.wait()
    infinite = Clock(Limits(is_infinite=True))
    infinite.ponderhit()
    assert infinite.is_waiting

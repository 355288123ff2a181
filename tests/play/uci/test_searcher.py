import pytest

from azjax import games, players
from azjax.games.host import first_state
from azjax.play.uci.limits import Clock, Limits
from azjax.play.uci.searcher import NUM_SLICES, Searcher

GAME = games.make("tic_tac_toe")
SIMULATIONS = 2 * NUM_SLICES


@pytest.fixture(scope="module")
def make():
    """Returns the compiled searcher of a player."""
    made = {}

    def searcher(spec):
        if spec not in made:
            made[spec] = Searcher(players.load_compiled(spec, GAME), GAME, 0)
            made[spec].compile()
        return made[spec]

    return searcher


SEQUENTIAL_HALVING = f"alphazero:pretrained?simulations={SIMULATIONS}"
UCT = f"mcts:{SIMULATIONS}"


def nodes(searcher, limits, simulations=SIMULATIONS, *, is_stopped=False):
    """Returns the reported simulations of a search."""
    reports, clock = [], Clock(limits)
    if is_stopped:
        clock.stop()
    decision = searcher.search(first_state(GAME), clock, simulations, reports.append)
    assert reports[-1].decision == decision
    return [progress.nodes for progress in reports]


@pytest.mark.parametrize("spec", [SEQUENTIAL_HALVING, UCT])
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


def test_sequential_halving_plans_its_simulations_by_the_clock(make):
    slow = Limits(seconds=1000.0)
    for spec, planned in ((SEQUENTIAL_HALVING, 10), (UCT, SIMULATIONS)):
        searcher = make(spec)
        searcher._speed = 0.01
        assert nodes(searcher, slow)[-1] == planned


def test_a_search_measures_its_speed(make):
    searcher = make(UCT)
    searcher._speed = 0.0
    nodes(searcher, Limits())
    assert searcher._speed > 0


def test_a_player_without_search_decides_at_once(make):
    searcher = make("random")
    assert searcher.simulations == 0
    assert nodes(searcher, Limits(is_infinite=True), 0) == [1]

import jax
import numpy as np
import pytest

from azjax import games, players
from azjax.players.analysis import MAX_BRANCHES

GAME = games.make("tic_tac_toe")
MOVES = ((), (4,), (0, 3, 1, 4))  # the last is won in one
SIMULATIONS = 100
step = jax.jit(GAME.step)


@pytest.fixture(scope="module", params=["alphazero:pretrained", "mcts"])
def found(request):
    """The analysis of three positions, and the kept trees."""
    name, _, run = request.param.partition(":")
    spec = f"{name}:{run}?simulations={SIMULATIONS}&" if run else f"mcts:{SIMULATIONS}?"
    player = players.load_compiled(f"{spec}tree_reuse_nodes=1", GAME)
    states = []
    for actions in MOVES:
        state = GAME.init()
        for action in actions:
            state = step(state, np.int32(action))
        states.append(state)
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *states)

    @jax.jit
    def analyze(player, states):
        carry = players.init_carry(player, states)
        return player.analyze(jax.random.key(0), states, carry)

    return jax.device_get(analyze(player, states)[1:])


def test_branches_are_the_most_visited_nodes_with_their_parents(found):
    analysis, tree = found
    branches = analysis.branches
    for game in range(len(MOVES)):
        most = sorted(tree.node_visits[game].tolist(), reverse=True)
        assert branches.visits[game].tolist() == most[:MAX_BRANCHES]
        known = {0: 0}  # nodes of the tree by their rank
        for rank in range(1, (branches.visits[game] > 0).sum()):
            parent, action = branches.parents[game, rank], branches.actions[game, rank]
            assert 0 <= parent < rank
            node = tree.children_index[game, known[parent], action]
            known[rank] = node
            assert branches.visits[game, rank] == tree.node_visits[game, node]
        assert len(set(known.values())) == len(known)
        rest = branches.visits[game] == 0
        assert (branches.parents[game][rest] == -1).all()
        assert (branches.actions[game][rest] == -1).all()
        assert branches.parents[game, 0] == branches.actions[game, 0] == -1


def test_branches_of_the_root_match_the_analysis(found):
    analysis, _ = found
    branches = analysis.branches
    for game in range(len(MOVES)):
        first = branches.parents[game] == 0
        actions = branches.actions[game][first]
        for field, known in (
            ("visits", analysis.visits),
            ("priors", analysis.prior),
            ("values", analysis.action_values),
        ):
            found = getattr(branches, field)[game][first]
            np.testing.assert_allclose(found, known[game][actions], atol=1e-6)
    assert len(actions) > 1
    won = branches.actions[2] == 2
    assert branches.values[2][won & (branches.parents[2] == 0)] == [1]


def test_deeper_values_are_for_the_player_who_moved(found):
    branches = jax.tree.map(lambda leaf: leaf[1], found[0].branches)
    deeper = np.flatnonzero(branches.parents > 0)
    assert len(deeper) > 10
    for rank in deeper.tolist():
        children = branches.parents == rank
        if children.sum() == 0:
            continue
        # The value of a node is the mean of its network value and its children.
        visits, values = branches.visits[children], branches.values[children]
        num_others = branches.visits[rank] - visits.sum()
        rest = -branches.values[rank] * branches.visits[rank]
        assert abs(rest - (visits * values).sum()) <= num_others + 1e-3


def test_a_small_tree_is_returned_whole():
    player = players.load_compiled("mcts:5", GAME)
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[None], GAME.init())
    analyze = jax.jit(lambda state: player.analyze(jax.random.key(0), state, None)[1])
    analysis = jax.device_get(analyze(state))
    assert analysis.branches.visits.shape == (1, 6)
    assert (analysis.branches.visits[0, 1:] == 1).all()

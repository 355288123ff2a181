import numpy as np
import pytest

from azjax.players import init_carry
from azjax.players.search_players import MAX_BRANCHES

MOVES = [], [4], [0, 3, 1, 4], [0, 4, 1]  # the third is won in one


@pytest.fixture(scope="module", params=["searcher", "playouts"])
def found(request, after, analyze):
    """The analysis of four positions, and the kept trees."""
    player, states = request.getfixturevalue(request.param), after(*MOVES)
    return analyze(player, states, init_carry(player, states))[1:]


def test_branches_are_the_most_visited_nodes_of_the_tree_with_their_parents(found):
    analysis, tree = found
    branches = analysis.branches
    # A small tree is returned whole.
    num_nodes = tree.node_visits.shape[1]
    assert branches.visits.shape[1] == min(num_nodes, MAX_BRANCHES)
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
        # Those of the root match the analysis.
        first = branches.parents[game] == 0
        actions = branches.actions[game][first]
        assert len(actions) > 1
        of_root = analysis.visits, analysis.prior, analysis.action_values
        for name, known in zip(("visits", "priors", "values"), of_root, strict=True):
            numbers = getattr(branches, name)[game][first]
            np.testing.assert_allclose(numbers, known[game][actions], 1e-5, 1e-6)
    won = branches.actions[2] == 2
    assert branches.values[2][won & (branches.parents[2] == 0)] == [1]


@pytest.mark.parametrize("found", ["playouts"], indirect=True)
def test_deeper_values_are_for_the_player_who_moved(found):
    parents, _, _, visits, values = (leaf[1] for leaf in found[0].branches)
    deeper = np.intersect1d(parents, np.arange(1, len(parents)))
    assert len(deeper) > 2
    for rank in deeper:
        # The value of a node is the mean of the result of its playout and its children.
        is_child = parents == rank
        assert visits[is_child].sum() == visits[rank] - 1
        rest = -values[rank] * visits[rank] - (visits * values)[is_child].sum()
        assert min(abs(rest - result) for result in (-1, 0, 1)) < 1e-3

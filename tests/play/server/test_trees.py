import numpy as np
import pytest

from azjax import games
from azjax.play.server.rules import Rules
from azjax.play.server.trees import describe_tree
from azjax.players import Branches


@pytest.fixture(scope="module")
def rules():
    return Rules(games.make("chess"), 10)


def test_each_node_has_the_notation_of_its_move(rules):
    state = rules.state(())
    moves = []
    for text in ("e2e4", "e7e5", "g1f3"):
        moves.append(rules.game.text_to_action(state, text))
        state = rules.after(state, moves[-1])
    branches = Branches(
        parents=np.int32([-1, 0, 1, 0, 2, -1]),
        actions=np.int32([-1, moves[0], moves[1], moves[2], moves[2], -1]),
        priors=np.float32([1, 0.5, 0.25, 0.125, np.nan, 1]),
        visits=np.int32([9, 5, 4, 3, 2, 0]),
        values=np.float32([0.1, 0.5, -0.5, 0.25, -0.25, 0]),
    )
    nodes = describe_tree(rules, rules.state(()), branches)
    assert [node["parent"] for node in nodes] == [-1, 0, -1, 1]
    assert [node["text"] for node in nodes] == ["e2e4", "e7e5", "g1f3", "g1f3"]
    assert nodes[1] == {
        "parent": 0,
        "action": moves[1],
        "text": "e7e5",
        "prior": 0.25,
        "visits": 4,
        "value": -0.5,
    }
    assert nodes[3]["prior"] == 0  # types of JSON


def test_a_tree_without_branches_has_none(rules):
    alone = Branches(
        parents=np.int32([-1]),
        actions=np.int32([-1]),
        priors=np.float32([1]),
        visits=np.int32([1]),
        values=np.float32([0]),
    )
    assert describe_tree(rules, rules.state(()), alone) == []

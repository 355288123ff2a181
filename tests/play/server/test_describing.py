import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.play.server.describing import (
    describe_decision,
    describe_position,
    describe_tree,
)
from azjax.play.server.rules import Rules
from azjax.players import Analysis, Branches, MoveDecision


class Shogi(games.Game):
    """A game in which a piece can be promoted by a move."""

    name = "shogi"
    pieces = "PpGg"
    num_actions = 3
    observation_shape = (1, 3, 1)
    max_moves = 1
    init = games.make("tic_tac_toe").init
    observe = games.make("tic_tac_toe").observe
    rewards = games.make("tic_tac_toe").rewards

    def legal_action_mask(self, state):
        return ~state.terminated & jnp.ones(3, bool)

    def step(self, state, action):
        return dataclasses.replace(
            state, outcome=jnp.int8(1) + action, terminated=jnp.bool(True)
        )

    def board(self, state):
        boards = [[0, -1, -1], [-1, 0, -1], [-1, 2, -1], [-1, -1, 0]]
        return jnp.int8(boards)[state.outcome][None]

    def action_to_text(self, state, action):
        return "abc"[action]

    def action_cells(self, state, action):
        return ((0, 0), (0, 2 if action == 2 else 1))


@pytest.fixture(scope="module")
def rules():
    return Rules(games.make("connect_four"), 100)


def test_a_position_has_board_legal_moves_and_last_move(rules):
    told = json.loads(json.dumps(describe_position(rules, (3, 3))))
    assert told["player"] == 0
    assert told["cells"][38] == 0
    assert told["cells"][31] == 1
    assert told["cells"].count(-1) == 40
    assert [move["action"] for move in told["moves"]] == list(range(7))
    assert told["moves"][3] == {"action": 3, "text": "4", "cells": [24]}
    assert told["last"] == {"action": 3, "text": "4", "cells": [31]}
    assert told["isOver"] is False
    assert told["rewards"] == [0, 0]
    assert told["marked"] == [31]
    assert told["picture"] is None
    assert describe_position(rules, ())["last"] is None


def test_a_finished_game_has_a_result_and_no_moves(rules):
    told = describe_position(rules, (0, 1, 0, 1, 0, 1, 0))
    assert told["isOver"] is True
    assert told["rewards"] == [1, -1]
    assert told["moves"] == []
    assert told["resultText"] == ""
    assert told["winningCells"] == [14, 21, 28, 35]


def test_a_finished_game_has_its_score():
    rules = Rules(games.make("go:2,0.5"), 10)
    assert describe_position(rules, (0, 4))["resultText"] == ""
    assert describe_position(rules, (0, 4, 4))["resultText"] == "B+3.5"


def test_a_move_between_cells_has_two_cells():
    rules = Rules(games.make("breakthrough"), 10)
    told = describe_position(rules, ())
    assert all(len(move["cells"]) == 2 for move in told["moves"])
    assert not any("becomes" in move for move in told["moves"])
    first = told["moves"][0]
    assert describe_position(rules, (first["action"],))["marked"] == first["cells"]


def test_moves_with_the_same_cells_name_the_resulting_piece():
    rules = Rules(Shogi(), 10)
    moves = describe_position(rules, ())["moves"]
    assert [(move["cells"], move.get("becomes")) for move in moves] == [
        ([0, 1], 0),
        ([0, 1], 2),
        ([0, 2], None),
    ]


def test_the_moves_of_a_search_are_ranked(rules):
    analysis = Analysis(
        prior=np.array([0.5, 0.2, 0.1, 0.1, 0.1, 0, 0], np.float32),
        visits=np.array([3, 6, 0, 0, 0, 0, 0], np.int32),
        action_values=np.array([-0.25, 0.5, 0, 0, 0, 0, 0], np.float32),
        line=np.array([1, 0, -1, -1], np.int32),
    )
    policy = np.array([0.25, 0.75, 0, 0, 0, 0, 0], np.float32)
    decision = MoveDecision(1, policy, 0.25, analysis)
    told = describe_decision(
        rules, rules.state(()), decision, 9, 0.5, is_timed_out=True
    )
    told = json.loads(json.dumps(told))
    assert told["isTimedOut"] is True
    assert [move["action"] for move in told["moves"]][:2] == [1, 0]
    assert len(told["moves"]) == 5  # two moves have neither visits nor prior
    assert told["moves"][0] == {
        "action": 1,
        "text": "2",
        "prior": pytest.approx(0.2),
        "visits": 6,
        "value": 0.5,
        "weight": 0.75,
    }
    assert told["moves"][2]["value"] is None
    assert told["line"] == [{"action": 1, "text": "2"}, {"action": 0, "text": "1"}]
    assert (told["visits"], told["simulations"], told["seconds"]) == (10, 9, 0.5)
    assert told["value"] == 0.25
    assert told["result"] is None


@pytest.mark.parametrize(
    ("value", "draw", "result"),
    [
        (0.25, 0.5, [0.375, 0.5, 0.125]),
        (-1.0, 0.5, [0.0, 0.0, 1.0]),  # a loss is not counted as a draw
        (0.5, None, None),
    ],
)
def test_the_result_probabilities_agree_with_the_value(rules, value, draw, result):
    policy = np.full(7, 1 / 7, np.float32)
    decision = MoveDecision(2, policy, value, draw=draw)
    told = describe_decision(rules, rules.state(()), decision, 0, 0.1)
    assert told["result"] == result


def test_a_line_ends_with_the_game(rules):
    line = np.array([0, 1, 2, -1], np.int32)
    zeros = np.zeros(7, np.float32)
    analysis = Analysis(zeros, zeros.astype(np.int32), zeros, line)
    state = rules.state((0, 1, 0, 1, 0, 1))  # one move from a win
    told = describe_decision(
        rules, state, MoveDecision(0, zeros, 1.0, analysis), 1, 0.1
    )
    assert told["line"] == [{"action": 0, "text": "1"}]


def test_a_decision_without_analysis_has_only_its_move(rules):
    told = describe_decision(rules, rules.state(()), MoveDecision(5), 0, 0.1)
    assert told["action"] == 5
    assert told["moves"] == []
    assert told["value"] is None
    assert told["line"] == [{"action": 5, "text": "6"}]


def test_a_policy_has_no_visits(rules):
    policy = np.array([0, 0.25, 0.75, 0, 0, 0, 0], np.float32)
    told = describe_decision(
        rules, rules.state(()), MoveDecision(2, policy, 0.5), 0, 0.1
    )
    assert [(m["action"], m["visits"], m["value"]) for m in told["moves"]] == [
        (2, 0, None),
        (1, 0, None),
    ]
    assert told["visits"] == 0


@pytest.fixture(scope="module")
def chess():
    return Rules(games.make("chess"), 10)


def test_each_node_has_the_notation_of_its_move(chess):
    state = chess.state(())
    moves = []
    for text in ("e2e4", "e7e5", "g1f3"):
        moves.append(chess.game.text_to_action(state, text))
        state = chess.after(state, moves[-1])
    branches = Branches(
        parents=np.int32([-1, 0, 1, 0, 2, -1]),
        actions=np.int32([-1, moves[0], moves[1], moves[2], moves[2], -1]),
        priors=np.float32([1, 0.5, 0.25, 0.125, np.nan, 1]),
        visits=np.int32([9, 5, 4, 3, 2, 0]),
        values=np.float32([0.1, 0.5, -0.5, 0.25, -0.25, 0]),
    )
    nodes = describe_tree(chess, chess.state(()), branches)
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


def test_a_tree_without_branches_has_none(chess):
    alone = Branches(
        parents=np.int32([-1]),
        actions=np.int32([-1]),
        priors=np.float32([1]),
        visits=np.int32([1]),
        values=np.float32([0]),
    )
    assert describe_tree(chess, chess.state(()), alone) == []

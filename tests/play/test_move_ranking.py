import numpy as np
import pytest

from azjax.play.text_output import rank_moves
from azjax.players import Analysis, MoveDecision

PRIOR = np.float32([0.1, 0, 0, 0, 0.6, 0, 0, 0, 0.3])


def searched(action, visits, prior=PRIOR):
    line = np.int32([action, *[-1] * 15])
    values = np.float32([0.5] * 9)
    analysis = Analysis(prior, np.int32(visits), values, line)
    return MoveDecision(action, prior, 0.25, analysis)


def actions(decision):
    return [move.action for move in rank_moves(decision)]


def test_the_chosen_move_is_first_even_if_another_has_more_visits():
    moves = rank_moves(searched(4, [7, 0, 0, 0, 5, 0, 0, 0, 9]))
    assert [move.action for move in moves] == [4, 8, 0]
    assert [move.visits for move in moves] == [5, 9, 7]
    assert [move.value for move in moves] == [0.5] * 3
    assert moves[0].prior == pytest.approx(0.6)


def test_equal_visits_are_ranked_by_prior_then_by_action():
    prior = np.float32([0.1, 0.3, 0.3, 0.2, 0.1, 0, 0, 0, 0])
    assert actions(searched(4, [1] * 5 + [0] * 4, prior)) == [4, 1, 2, 3, 0]


def test_a_move_without_visits_has_no_value():
    moves = rank_moves(searched(4, [0, 0, 0, 0, 5, 0, 0, 0, 0]))
    assert [move.value for move in moves] == [0.5, None, None]


def test_a_policy_without_search_is_ranked_by_probability():
    moves = rank_moves(MoveDecision(8, PRIOR, 0.25))
    assert [move.action for move in moves] == [8, 4, 0]
    assert {move.visits for move in moves} == {move.value for move in moves} == {None}


def test_a_decision_without_search_and_policy_has_no_ranking():
    assert rank_moves(MoveDecision(3)) == []

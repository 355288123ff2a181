import numpy as np
import pytest

from azjax import games
from azjax.games.host import first_state, next_state
from azjax.play.text_output import (
    analysis_lines,
    clock,
    expected_line,
    expected_value,
    rank_moves,
    signed,
    sparkline,
    value_text,
)
from azjax.players import Analysis, MoveDecision

GAME = games.make("tic_tac_toe")
FIRST = first_state(GAME)


PRIOR = np.float32([0.1, 0, 0, 0, 0.6, 0, 0, 0, 0.3])


def decision(action=4, visits=None, prior=PRIOR):
    if visits is None:
        return MoveDecision(action, prior, 0.25)
    moves = np.int32([action, 0, 8, *[-1] * 13])
    analysis = Analysis(prior, np.int32(visits), np.float32([0.5] * 9), moves)
    return MoveDecision(action, prior, 0.25, analysis)


def test_without_a_search_there_is_no_line_and_no_visits():
    assert expected_line(GAME, FIRST, decision()) == []
    lines = list(analysis_lines(GAME, FIRST, decision()))
    assert lines[1].split() == ["move", "prior"]
    assert lines[2].split() == ["b2", "60.0%"]


def test_the_line_is_written_in_the_games_notation():
    game = games.make("hex:3")
    moves = np.int32([game.text_to_action(first_state(game), "b2"), 0, *[-1] * 14])
    nothing = np.zeros(9)
    analysis = Analysis(nothing, nothing.astype(int), nothing, moves)
    decision = MoveDecision(int(moves[0]), None, 0.0, analysis)
    assert expected_line(game, first_state(game), decision) == ["b2", "a1"]


def test_an_analysis_has_all_columns():
    lines = list(analysis_lines(GAME, FIRST, decision(4, [1, 0, 0, 0, 5, 0, 0, 0, 2])))
    assert "for the crosses (1 a win, -1 a loss)" in lines[0]
    assert lines[1].split() == ["move", "prior", "visits", "value"]
    assert lines[2].split() == ["b2", "60.0%", "5", "+0.50"]
    assert lines[-1].startswith("expects: b2 a3 c1")


def test_a_value_names_its_side():
    second = next_state(GAME, FIRST, 0)
    lines = [next(analysis_lines(GAME, s, decision())) for s in (FIRST, second)]
    assert "+0.25 for the crosses" in lines[0]
    assert "+0.25 for the rings" in lines[1]
    chess = games.make("chess")
    assert value_text(chess, 1, -0.5) == "-0.50 for the black pieces"


def test_a_decision_without_analysis_has_a_note():
    assert list(analysis_lines(GAME, FIRST, MoveDecision(0))) == [
        "this player provides no analysis"
    ]


def test_a_zero_value_without_search_is_unknown():
    assert expected_value(MoveDecision(0, None, 0.0)) is None
    assert expected_value(MoveDecision(0)) is None
    assert expected_value(decision()) == 0.25
    assert expected_value(decision(4, [1] * 9)._replace(value=0.0)) == 0.0


def test_numbers_are_rounded():
    assert (signed(-0.001), signed(0.126), signed(-1)) == ("+0.00", "+0.13", "-1.00")
    assert (clock(0), clock(59.9), clock(3600)) == ("0:00", "0:59", "60:00")
    assert sparkline([-1, 0, 1], 10) == "▁▅█"
    assert sparkline([-1, 0, 1], 2) == "▅█"


def test_the_chosen_move_is_first_even_if_another_has_more_visits():
    moves = rank_moves(decision(4, [7, 0, 0, 0, 5, 0, 0, 0, 9]))
    assert [move.action for move in moves] == [4, 8, 0]
    assert [move.visits for move in moves] == [5, 9, 7]
    assert [move.value for move in moves] == [0.5] * 3
    assert moves[0].prior == pytest.approx(0.6)


def test_equal_visits_are_ranked_by_prior_then_by_action():
    prior = np.float32([0.1, 0.3, 0.3, 0.2, 0.1, 0, 0, 0, 0])
    moves = rank_moves(decision(4, [1] * 5 + [0] * 4, prior))
    assert [move.action for move in moves] == [4, 1, 2, 3, 0]


def test_a_move_without_visits_has_no_value():
    moves = rank_moves(decision(4, [0, 0, 0, 0, 5, 0, 0, 0, 0]))
    assert [move.value for move in moves] == [0.5, None, None]


def test_a_policy_without_search_is_ranked_by_probability():
    moves = rank_moves(MoveDecision(8, PRIOR, 0.25))
    assert [move.action for move in moves] == [8, 4, 0]
    assert {move.visits for move in moves} == {move.value for move in moves} == {None}


def test_a_decision_without_search_and_policy_has_no_ranking():
    assert rank_moves(MoveDecision(3)) == []

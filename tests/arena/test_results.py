import numpy as np

from azjax import arena
from azjax.arena.pairs import score_interval
from azjax.arena.results import joined


def result(moves, results, faults=None, opening_moves=0):
    faults = faults or ("",) * len(results)
    results = np.array(results, np.int8)
    return arena.MatchResult(np.array(moves), results, faults, opening_moves)


def test_a_draw_is_half_a_point():
    assert arena.Record(wins=1, draws=2, losses=1).score == 0.5


def test_the_interval_of_a_match_is_that_of_its_distinct_pairs():
    moves = np.arange(12)[:, None]
    match = result(moves, [1, 1, 0, -1, 1, 0] * 2)
    assert match.interval == score_interval([2, 0.5, 1.5] * 2, 6)
    again = result(moves % 6, [1, 1, 0, -1, 1, 0] * 2)
    assert again.interval == score_interval([2, 0.5, 1.5], 3)


def test_the_interval_of_a_match_without_games_is_everything():
    assert result(np.zeros((0, 3), int), []).interval == (0, 1)


def test_the_score_without_a_game_is_no_number():
    assert np.isnan(arena.Record(0, 0, 0).score)


def test_records_add_up_and_turn_round():
    record = arena.Record(1, 2, 3) + arena.Record(10, 20, 30)
    assert record == arena.Record(11, 22, 33)
    assert record.reversed == arena.Record(33, 22, 11)


def test_results_are_counted_by_colour_and_by_opening():
    match = result([[0], [1], [2], [3]], [1, 0, -1, -1])
    assert match.as_first == arena.Record(1, 0, 1)
    assert match.as_second == arena.Record(0, 1, 1)
    assert match.total == arena.Record(1, 1, 2)
    assert match.pair_points.tolist() == [1.5, 0]


def test_games_that_repeat_earlier_ones_are_a_share_of_all():
    match = result([[0, 1], [0, 1], [0, -1], [0, 1]], [1, 1, 1, 1])
    assert match.repeated == 0.5


def test_forfeits_belong_to_the_loser():
    match = result([[0]] * 4, [1, -1, -1, 1], ("hung", "died", "", ""))
    assert match.forfeits == (1, 1)


def test_who_resigns_forfeits_nothing():
    match = result([[0]] * 2, [-1, 1], ("resigned", "hung"))
    assert match.forfeits == (0, 1)
    flags = [ended.is_forfeit for ended in match.finished(("me", "you"))]
    assert flags == [False, True]


def test_games_know_who_was_who():
    match = result([[0, 1, -1], [0, 2, 3]], [1, 1], opening_moves=1)
    first, second = match.finished(("me", "you"))
    assert first == (("me", "you"), [0, 1], 1, "", 1)
    assert second == (("you", "me"), [0, 2, 3], -1, "", 1)


def test_matches_of_different_lengths_are_joined():
    match = joined([result([[0], [1]], [1, 0]), result([[0, 1], [2, -1]], [0, -1])])
    assert match.moves.tolist() == [[0, -1], [1, -1], [0, 1], [2, -1]]
    assert match.results.tolist() == [1, 0, 0, -1]

import dataclasses

import numpy as np

from azjax import arena
from azjax.arena.pairs import score_interval
from azjax.arena.results import concatenate
from azjax.games import GameRecord


def result(moves, results, faults=None, opening_moves=0):
    faults = faults or ("",) * len(results)
    results = np.array(results, np.int8)
    return arena.MatchResult(np.array(moves), results, faults, opening_moves)


def test_results_have_a_score_and_can_be_added_and_reversed():
    # A draw is half a point.
    assert arena.WinDrawLoss(wins=1, draws=2, losses=1).score == 0.5
    assert np.isnan(arena.WinDrawLoss(0, 0, 0).score)
    record = arena.WinDrawLoss(1, 2, 3) + arena.WinDrawLoss(10, 20, 30)
    assert record == arena.WinDrawLoss(11, 22, 33)
    assert record.reversed == arena.WinDrawLoss(33, 22, 11)


def test_the_interval_of_a_match_counts_distinct_pairs():
    moves = np.arange(12)[:, None]
    match = result(moves, [1, 1, 0, -1, 1, 0] * 2)
    assert match.interval == score_interval([2, 0.5, 1.5] * 2, 6)
    again = result(moves % 6, [1, 1, 0, -1, 1, 0] * 2)
    assert again.interval == score_interval([2, 0.5, 1.5], 3)
    assert result(np.zeros((0, 3), int), []).interval == (0, 1)


def test_results_are_counted_by_color_and_by_opening():
    match = result([[0], [1], [2], [3]], [1, 0, -1, -1])
    assert match.as_first == arena.WinDrawLoss(1, 0, 1)
    assert match.as_second == arena.WinDrawLoss(0, 1, 1)
    assert match.total == arena.WinDrawLoss(1, 1, 2)
    assert match.pair_points.tolist() == [1.5, 0]
    assert match.by_opening == arena.WinDrawLoss(1, 0, 1)
    # An opening that both players win once is shared.
    match = result([[0]] * 8, [1, -1, -1, 1, 0, 0, 1, 0])
    assert match.by_opening == arena.WinDrawLoss(1, 3, 0)
    match = result([[0, 1], [0, 1], [0, -1], [0, 1]], [1, 1, 1, 1])
    assert match.repeated == 0.5


def test_forfeits_belong_to_the_loser_and_a_resignation_is_none():
    match = result([[0]] * 4, [1, -1, -1, 1], ("hung", "died", "", ""))
    assert match.forfeits == (1, 1)
    match = result([[0]] * 2, [-1, 1], ("resigned", "hung"))
    assert match.forfeits == (0, 1)
    flags = [ended.is_forfeit for ended in match.game_records(("me", "you"))]
    assert flags == [False, True]


def test_game_records_name_the_players_in_order_and_have_the_known_values():
    match = result([[0, 1, -1], [0, 2, 3]], [1, 1], opening_moves=1)
    first, second = match.game_records(("me", "you"))
    assert first == GameRecord(("me", "you"), [0, 1], 1, "", 1)
    assert second == GameRecord(("you", "me"), [0, 2, 3], -1, "", 1)
    values = np.array([[np.nan] * 3, [np.nan, 0.5, -1]])
    match = dataclasses.replace(match, values=values)
    first, second = match.game_records(("me", "you"))
    assert first.values == ()
    assert second.values == (None, 0.5, -1)


def test_matches_of_different_lengths_are_concatenated():
    short, long = result([[0], [1]], [1, 0]), result([[0, 1], [2, -1]], [0, -1])
    match = concatenate([short, long])
    assert match.moves.tolist() == [[0, -1], [1, -1], [0, 1], [2, -1]]
    assert match.results.tolist() == [1, 0, 0, -1]
    assert match.values is None
    short = dataclasses.replace(short, values=np.array([[0.5], [np.nan]]))
    long = dataclasses.replace(long, values=np.array([[1, 0], [-1, np.nan]]))
    expected = [[0.5, np.nan], [np.nan, np.nan], [1, 0], [-1, np.nan]]
    np.testing.assert_array_equal(concatenate([short, long]).values, expected)

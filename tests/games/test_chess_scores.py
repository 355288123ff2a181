import pytest

from azjax.games.chess.scores import centipawns, expected_result


@pytest.mark.parametrize(
    ("value", "score"),
    [(0.0, 0), (0.5, 191), (-0.5, -191), (1.0, 2000), (-1.0, -2000), (2.0, 2000)],
)
def test_an_expected_result_has_a_score_in_centipawns(value, score):
    assert centipawns(value) == score


def test_a_score_of_100_expects_64_percent():
    assert centipawns(2 * 0.640065 - 1) == 100


@pytest.mark.parametrize("score", [-2000, -35, 0, 1, 191])
def test_a_score_is_that_of_its_expected_result(score):
    assert centipawns(expected_result(score)) == score

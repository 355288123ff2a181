from azjax.games.chess.scores import centipawns, expected_result


def test_an_expected_result_has_a_score_in_centipawns():
    for value, score in {0.0: 0, 0.5: 191, 1.0: 2000, 2.0: 2000}.items():
        assert centipawns(value) == score
        assert centipawns(-value) == -score
    assert centipawns(2 * 0.640065 - 1) == 100  # 64% of the points


def test_a_score_is_that_of_its_expected_result():
    for score in -2000, -35, 0, 1, 191:
        assert centipawns(expected_result(score)) == score

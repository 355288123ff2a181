import pytest

from azjax.players.uci_notation import score_value


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("info depth 9 score cp 191 nodes 5 pv e2e4", 0.5),
        ("info depth 9 score cp -191 upperbound nodes 5", 0.25),
        ("info depth 9 score mate 2 lowerbound nodes 5", 0.25),
        ("info depth 9 score cp -191 nodes 5", -0.5),
        ("info depth 9 multipv 1 score cp 0", 0.0),
        ("info score mate 3 pv e2e4", 1.0),
        ("info score mate -1", -1.0),
        ("info score mate 0", -1.0),
        ("info depth 9 multipv 2 score cp 191", 0.25),
        ("info depth 9 multipv 10 score cp 191", 0.25),
        ("info string score cp x", 0.25),
        ("info score cp 99999999999999999999", 0.25),
        ("bestmove e2e4", 0.25),
    ],
)
def test_a_line_of_an_engine_has_an_expected_result(line, value):
    assert score_value(line, 0.25) == pytest.approx(value, abs=2e-3)

import json

import pytest

from azjax.training.metrics import opponents, read_metrics


@pytest.mark.parametrize("damaged", ['{"a"\n\0\0\n7\n{"a": 2}\n', '{"a": 2}\n{"a": '])
def test_damaged_lines_and_a_truncated_last_line_are_skipped(tmp_path, damaged):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"a": 1}\n' + damaged)
    assert read_metrics(path) == [{"a": 1}, {"a": 2}]


def test_metrics_are_read_only_from_a_regular_file(tmp_path):
    (tmp_path / "metrics.jsonl").symlink_to("/dev/null")
    with pytest.raises(OSError, match="is not a regular file"):
        read_metrics(tmp_path / "metrics.jsonl")


SCORE = {"score": 0.5, "score_low": 0.4, "score_high": 0.6}


@pytest.mark.parametrize("name", ["gtp:fast_low", "q_high", "_low", ""])
def test_an_opponent_can_have_any_name(name):
    assert opponents({"iteration": 1, "scores": {name: SCORE}}) == [name]


def test_rows_of_older_versions_get_their_scores_by_opponent(tmp_path):
    old = {
        "score_random": 0.5,
        "score_random_low": 0.4,
        "score_random_high": 0.6,
        "network_mistakes": 0.1,
        "network_mistakes_low": 0.0,
        "network_mistakes_high": 0.2,
    }
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps(old))
    (row,) = read_metrics(path)
    assert row["scores"] == {"random": SCORE}
    assert row["network_mistakes_low"] == 0.0
    assert "score_random" not in row

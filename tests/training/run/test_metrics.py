import json

import pytest
from training.saved_runs import evaluation_row, iteration_row

from azjax.training.run.metrics import opponents, read_metrics

SCORE = {"score": 0.5, "score_low": 0.4, "score_high": 0.6}
ROWS = [iteration_row(1), evaluation_row(2, mistakes=0.1, random=0.5)]


@pytest.mark.parametrize(
    "damage",
    [
        '{"a"\n\0\0\n7\n[]\n{}\n' + "[" * 100_000,
        *map(
            json.dumps,
            (
                ROWS[0] | {"kind": "note"},
                ROWS[1] | {"kind": "id"},
                ROWS[0] | {"kind": None},
                ROWS[0] | {"iteration": "1"},
                ROWS[0] | {"iteration": None},
                ROWS[0] | {"positions": 1.5},
                ROWS[0] | {"seconds": float("nan")},
                ROWS[0] | {"games": 10**400},
                ROWS[0] | {"policy_loss": "low"},
                ROWS[0] | {"scores": []},
                {**ROWS[1], "network_mistakes_low": None},
                {**ROWS[1], "scores": {"random": SCORE | {"score": "0.5"}}},
                {name: ROWS[1][name] for name in ROWS[1] if name != "updates"},
            ),
        ),
    ],
)
def test_lines_that_are_no_rows_and_a_truncated_last_line_are_skipped(tmp_path, damage):
    path = tmp_path / "metrics.jsonl"
    lines = [*map(json.dumps, ROWS), damage, json.dumps(ROWS[0])[:-5]]
    path.write_text("\n".join(lines))
    assert read_metrics(path) == ROWS


def test_metrics_are_read_only_from_a_regular_file(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.symlink_to("/dev/null")
    with pytest.raises(OSError, match=f"^{path} is not a regular file"):
        read_metrics(path)


@pytest.mark.parametrize("name", ["gtp:fast_low", "q_high", "_low", ""])
def test_an_opponent_can_have_any_name(name):
    assert opponents({"iteration": 1, "scores": {name: SCORE}}) == [name]

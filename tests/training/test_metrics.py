import pytest

from azjax.training.metrics import read_metrics, replace_file


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n{"a": ')
    assert read_metrics(path) == [{"a": 1}, {"a": 2}]


def test_damaged_lines_among_others_are_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"a": 1}\n{"a"\n\0\0\n7\n{"a": 3}\n')
    assert read_metrics(path) == [{"a": 1}, {"a": 3}]


def test_a_file_that_cannot_be_replaced_stays_and_no_other_is_left(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        replace_file(tmp_path / "taken", b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]

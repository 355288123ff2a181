import pytest

from azjax.training.metrics import read_metrics, replace_file


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n{"a": ')
    assert read_metrics(path) == [{"a": 1}, {"a": 2}]


def test_a_damaged_line_among_others_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"a": 1}\n{"a"\n{"a": 3}\n')
    with pytest.raises(ValueError, match="line 2 of"):
        read_metrics(path)


def test_a_file_that_cannot_be_replaced_stays_and_no_other_is_left(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        replace_file(tmp_path / "taken", b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]

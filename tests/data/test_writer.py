import pyarrow.parquet as pq
import pytest
from data.game_rows import GAME, GAMES, rows_of

from azjax.data import game_files, writer
from azjax.data.writer import GamesWriter


def write(directory, *groups, flushes=True, **changes):
    """Writes the games in each of some iterations; flushes after each group of them."""
    with GamesWriter(directory, GAME, run="abc", seed=0, **changes) as games_writer:
        for iterations in groups:
            for iteration in iterations:
                games_writer.add(iteration, lambda: rows_of(GAMES))
            if flushes:
                games_writer.flush()


def ranges(directory):
    return [(file.first, file.last) for file in game_files(directory)]


def test_chunks_are_collected_to_one_file_until_they_are_flushed(tmp_path):
    write(tmp_path, (1, 2, 3), (4,), ())
    assert ranges(tmp_path) == [(1, 3), (4, 4)]
    iterations = pq.read_table(tmp_path)["iteration"].to_pylist()
    assert [iterations.count(number) for number in (1, 2, 3, 4)] == [16] * 4


def test_collected_chunks_are_written_at_a_size(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "FILE_BYTES", 1)
    write(tmp_path, (1, 2))
    assert ranges(tmp_path) == [(1, 1), (2, 2)]


def test_positions_that_are_not_flushed_are_dropped(tmp_path):
    write(tmp_path, (1,), flushes=False)
    assert ranges(tmp_path) == []


def test_each_process_has_its_own_files(tmp_path):
    for process in (0, 1):
        write(tmp_path, (1,), process=process)
    assert [file.process for file in game_files(tmp_path)] == [0, 1]


def test_a_row_group_has_a_limited_size(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_GROUP_BYTES", 1)
    write(tmp_path, (1,))
    [file] = game_files(tmp_path)
    assert pq.ParquetFile(file.path).num_row_groups == 16


def test_the_oldest_files_are_deleted_above_the_limit(tmp_path):
    write(tmp_path, (1,), (2,), max_bytes=1)
    assert ranges(tmp_path) == [(2, 2)]


def test_a_failure_to_write_is_raised_at_the_flush(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OSError, match="taken"):
        write(tmp_path / "taken", (1,))

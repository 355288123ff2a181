import pytest
from data.game_rows import GAME, GAMES, rows_of

from azjax.data import game_files, writer
from azjax.data.writer import GamesWriter

pq = pytest.importorskip("pyarrow.parquet")


def opened(directory, **changes):
    return GamesWriter(directory, GAME, run="abc", seed=0, **changes)


def add(games_writer, *iterations):
    for iteration in iterations:
        games_writer.add(iteration, lambda: rows_of(GAMES))


def ranges(directory):
    return [(file.first, file.last) for file in game_files(directory)]


def test_chunks_are_collected_to_one_file_until_they_are_flushed(tmp_path):
    with opened(tmp_path) as games_writer:
        add(games_writer, 1, 2, 3)
        games_writer.flush()
        add(games_writer, 4)
        games_writer.flush()
        games_writer.flush()
    assert ranges(tmp_path) == [(1, 3), (4, 4)]
    iterations = pq.read_table(tmp_path)["iteration"].to_pylist()
    assert [iterations.count(number) for number in (1, 2, 3, 4)] == [16] * 4


def test_collected_chunks_are_written_at_a_size(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "FILE_BYTES", 1)
    with opened(tmp_path) as games_writer:
        add(games_writer, 1, 2)
        games_writer.flush()
    assert ranges(tmp_path) == [(1, 1), (2, 2)]


def test_positions_that_are_not_flushed_are_dropped(tmp_path):
    with opened(tmp_path) as games_writer:
        add(games_writer, 1)
    assert ranges(tmp_path) == []


def test_each_process_has_its_own_files(tmp_path):
    for process in (0, 1):
        with opened(tmp_path, process=process) as games_writer:
            add(games_writer, 1)
            games_writer.flush()
    assert [file.process for file in game_files(tmp_path)] == [0, 1]


def test_a_row_group_has_a_limited_size(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_GROUP_BYTES", 1)
    with opened(tmp_path) as games_writer:
        add(games_writer, 1)
        games_writer.flush()
    [file] = game_files(tmp_path)
    assert pq.ParquetFile(file.path).num_row_groups == 16


def test_the_oldest_files_are_deleted_above_the_limit(tmp_path):
    with opened(tmp_path, max_bytes=1) as games_writer:
        for iteration in (1, 2):
            add(games_writer, iteration)
            games_writer.flush()
    assert ranges(tmp_path) == [(2, 2)]


def test_a_failure_to_write_is_raised_at_the_flush(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with opened(tmp_path / "taken") as games_writer:
        add(games_writer, 1)
        with pytest.raises(OSError, match="taken"):
            games_writer.flush()

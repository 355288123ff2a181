import pytest

from azjax.data import delete_oldest, drop_after, game_files
from azjax.data.files import file_name


@pytest.fixture
def directory(tmp_path):
    for first, last in ((1, 4), (5, 6), (7, 12)):
        (tmp_path / file_name(first, last, 0)).write_bytes(b"x" * 10)
    return tmp_path


def ranges(directory):
    return [(file.first, file.last) for file in game_files(directory)]


def test_files_are_ordered_by_iteration_and_dropped_after_a_checkpoint(directory):
    assert game_files(directory / "missing") == []
    unfinished = directory / f".{file_name(13, 13, 0)}.4711"
    unfinished.write_bytes(b"")
    (directory / "notes.parquet").write_bytes(b"")
    (directory / file_name(13, 13, 0)).mkdir()
    assert ranges(directory) == [(1, 4), (5, 6), (7, 12)]
    drop_after(directory, 6)
    assert ranges(directory) == [(1, 4), (5, 6)]
    assert not unfinished.exists()
    assert (directory / "notes.parquet").exists()


@pytest.mark.parametrize(("most", "kept"), [(20, [(5, 6), (7, 12)]), (1, [(7, 12)])])
def test_the_oldest_files_are_deleted_above_the_limit_but_not_the_newest(
    directory, most, kept
):
    delete_oldest(directory, most)
    assert ranges(directory) == kept

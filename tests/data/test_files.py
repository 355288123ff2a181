import os

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data.game_rows import GAME, GAMES, rows_of, write_files

from azjax import games
from azjax.data import (
    GameFileWriter,
    delete_oldest,
    drop_after,
    file_schema,
    files,
    game_files,
    read_games,
    stored_files,
    stored_game,
)
from azjax.data.files import file_name
from azjax.data.rows import from_table, to_table


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


def write_groups(directory, *groups, flushes=True, **changes):
    """Writes the games in each of some iterations; flushes after each group of them."""
    with GameFileWriter(directory, GAME, run="abc", seed=0, **changes) as games_writer:
        for iterations in groups:
            for iteration in iterations:
                games_writer.add(iteration, lambda: rows_of(GAMES))
            if flushes:
                games_writer.flush()


def test_chunks_are_collected_to_one_file_until_they_are_flushed(tmp_path):
    write_groups(tmp_path, (1, 2, 3), (4,), ())
    assert ranges(tmp_path) == [(1, 3), (4, 4)]
    iterations = pq.read_table(tmp_path)["iteration"].to_pylist()
    assert [iterations.count(number) for number in (1, 2, 3, 4)] == [16] * 4


def test_collected_chunks_are_written_at_a_size(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FILE_BYTES", 1)
    write_groups(tmp_path, (1, 2))
    assert ranges(tmp_path) == [(1, 1), (2, 2)]


def test_positions_that_are_not_flushed_are_dropped(tmp_path):
    write_groups(tmp_path, (1,), flushes=False)
    assert ranges(tmp_path) == []


def test_each_process_has_its_own_files(tmp_path):
    for process in (0, 1):
        write_groups(tmp_path, (1,), process=process)
    assert [file.process for file in game_files(tmp_path)] == [0, 1]


def test_a_row_group_has_a_limited_size(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_GROUP_BYTES", 1)
    write_groups(tmp_path, (1,))
    [file] = game_files(tmp_path)
    assert pq.ParquetFile(file.path).num_row_groups == 16


def test_the_oldest_files_are_deleted_above_the_limit(tmp_path):
    write_groups(tmp_path, (1,), (2,), max_bytes=1)
    assert ranges(tmp_path) == [(2, 2)]


def test_a_failure_to_write_is_raised_at_the_flush(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OSError, match="taken"):
        write_groups(tmp_path / "taken", (1,))


def plies(first, last):
    """Returns the rows of all games with plies from `first` to `last` - 1."""
    rows = rows_of(GAMES)
    chosen = (rows.ply >= first) & (rows.ply < last)
    entries = np.repeat(chosen, rows.policy_counts)
    by_length = {len(mask): mask for mask in (chosen, entries)}
    return jax.tree.map(lambda leaf: leaf[by_length[len(leaf)]], rows)


def read(directory):
    """Returns the moves of the games by their id, in the order in which they come."""
    [files] = stored_files([str(directory)], GAME)
    found = {}
    for _, rows, starts in read_games(files, GAME):
        for part in np.split(np.arange(len(rows.game)), starts[1:]):
            found[int(rows.game[part[0]])] = rows.move[part].tolist()
    return found


def table_of(rows):
    schema = file_schema(GAME, run="a")
    return to_table(rows, schema, run="a", seed=0, iteration=1)


FINISHED = {5: GAMES[5], 6: GAMES[6]}


def test_rows_are_read_as_they_were_written():
    rows = rows_of(GAMES)
    table = table_of(rows)
    for name, value in from_table(table, GAME)._asdict().items():
        np.testing.assert_array_equal(value, getattr(rows, name), err_msg=name)
    # A slice of a table has its own rows.
    part = from_table(table.slice(5, 3), GAME)
    np.testing.assert_array_equal(part.move, GAMES[6][:3])
    np.testing.assert_array_equal(part.state, rows.state[5:8])
    np.testing.assert_array_equal(part.policy_actions, [0, 1, 4, 5, 8, 0])


def test_only_finished_games_are_read(tmp_path):
    write_files(tmp_path / "games", rows_of(GAMES))
    # A run and its folder of games are the same source.
    assert read(tmp_path) == read(tmp_path / "games") == FINISHED
    assert stored_game(str(tmp_path)) == GAME


@pytest.mark.parametrize("cuts", [(3,), (1, 2, 4, 7), range(1, 9)])
def test_a_game_goes_on_in_later_files(tmp_path, cuts):
    write_files(tmp_path, *map(plies, (0, *cuts), (*cuts, 99)))
    assert read(tmp_path) == FINISHED


@pytest.mark.parametrize("missing", ["beginning", "middle"])
def test_a_game_without_a_part_is_left_out(tmp_path, missing):
    is_middle = missing == "middle"
    write_files(tmp_path, plies(0, 2), plies(2 + is_middle, 99), rows_of({8: GAMES[5]}))
    if not is_middle:
        min(tmp_path.iterdir()).unlink()
    assert read(tmp_path) == {8: GAMES[5]}


def test_a_source_that_is_not_one_run_of_the_game_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no games"):
        read(tmp_path)
    with pytest.raises(ValueError, match=r"there is no directory .*none"):
        read(tmp_path / "none")
    write_files(tmp_path, rows_of(GAMES))
    with pytest.raises(ValueError, match="games of tic_tac_toe, not of hex:5"):
        stored_files([str(tmp_path)], games.make("hex:5"))
    write_files(tmp_path / "games", rows_of(GAMES), run="def")
    file = next((tmp_path / "games").iterdir())
    file = file.rename(tmp_path / "00000009-00000009-0.parquet")
    with pytest.raises(ValueError, match="games of several runs"):
        read(tmp_path)
    file.rename(file.with_name("copy.parquet"))
    with pytest.raises(ValueError, match=r"copy.parquet is not named as files of game"):
        read(tmp_path)


@pytest.mark.parametrize("place", [4, -500, -8])  # of positions, of the description
def test_a_damaged_file_is_named(tmp_path, place):
    write_files(tmp_path, rows_of(GAMES))
    path = next(tmp_path.iterdir())
    content = path.read_bytes()
    damaged = content[:place] + bytes(56) + content[place:][56:]
    path.write_bytes(damaged[: len(content)])
    with pytest.raises(ValueError, match=rf"^{path}[^\n]*$"):
        read(tmp_path)


def test_more_positions_than_memory_is_for_are_refused(tmp_path, monkeypatch):
    """A small file can declare any number of equal positions."""
    write_files(tmp_path, rows_of(GAMES))
    monkeypatch.setattr(files, "MAX_POSITION_BYTES", 2000)
    with pytest.raises(ValueError, match="has 16 positions of more than 2,000 bytes"):
        read(tmp_path)


def test_the_file_of_an_impossible_game_is_named(tmp_path):
    write_files(tmp_path, rows_of(GAMES))
    path = next(tmp_path.iterdir())
    about = {b"azjax": b'{"game": "hex:100000"}'}
    pq.write_table(pq.read_table(path).replace_schema_metadata(about), path)
    with pytest.raises(ValueError, match=f"^{path}: size must be an int from 2 to 19"):
        stored_game(str(tmp_path))


def test_a_pipe_is_no_file_of_games(tmp_path):
    os.mkfifo(tmp_path / file_name(1, 2, 0))
    with pytest.raises(ValueError, match="is not a regular file: remove"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("move", 9, "move must be from 0 to 8: 9"),
        ("move", -1, "move must be from 0 to 8: -1"),
        ("value", np.nan, "value must be from -1 to 1: nan"),
        ("value", 2.0, "value must be from -1 to 1: 2"),
        ("draw_probability", -0.5, "draw_probability must be from 0 to 1: -0.5"),
        ("regret", -1.0, "regret must be from 0 to 2: -1"),
        ("reward", 0.5, "reward must be -1, 0 or 1: 0.5"),
        ("policy_actions", 9, "policy_actions must be from 0 to 8: 9"),
        ("policy_actions", 1, "policy_actions lists an action of a position twice"),
        ("policy_probabilities", np.nan, "policy_probabilities must be from 0 to 1"),
        ("policy_probabilities", 0.9, "policy_probabilities of a pos.* sum to 1: 1.15"),
        ("policy_values", -1.5, "policy_values must be from -1 to 1: -1.5"),
        ("policy_values", np.inf, "policy_values must be from -1 to 1: inf"),
    ],
)
def test_impossible_values_are_refused(tmp_path, name, value, message):
    rows = rows_of(GAMES)
    getattr(rows, name)[0] = value
    write_files(tmp_path, rows)
    with pytest.raises(ValueError, match=f"parquet: {message}"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["policy_probabilities", "policy_values"])
def test_lists_of_other_lengths_than_the_actions_are_refused(name):
    table = table_of(rows_of(GAMES))
    place, field = table.schema.get_field_index(name), table.schema.field(name)
    lists = pa.array([[0.5]] * table.num_rows, field.type)
    with pytest.raises(ValueError, match=f"policy_actions and {name} differ in length"):
        from_table(table.set_column(place, field, lists), GAME)

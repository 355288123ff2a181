import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data.game_rows import GAME, GAMES, rewrite_as_schema_1, rows_of

from azjax import games
from azjax.data import (
    Rows,
    file_schema,
    read_games,
    reader,
    stored_files,
    stored_game,
)
from azjax.data.files import file_name
from azjax.data.rows import from_table, to_table
from azjax.data.writer import GamesWriter


def write(directory, *chunks, run="abc"):
    """Writes a file for each chunk of rows."""
    with GamesWriter(directory, GAME, run=run, seed=3) as writer:
        for iteration, rows in enumerate(chunks, 1):
            writer.add(iteration, lambda rows=rows: rows)
            writer.flush()


def plies(first, last):
    """Returns the rows of all games with plies from `first` to `last` - 1."""
    rows = rows_of(GAMES)
    chosen = (rows.ply >= first) & (rows.ply < last)
    entries = np.repeat(chosen, rows.policy_counts)
    by_length = {len(mask): mask for mask in (chosen, entries)}
    return Rows(*(value[by_length[len(value)]] for value in rows))


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


@pytest.mark.parametrize("is_schema_1", [False, True])
def test_only_finished_games_are_read(tmp_path, is_schema_1):
    write(tmp_path / "games", rows_of(GAMES))
    if is_schema_1:
        rewrite_as_schema_1(next((tmp_path / "games").iterdir()))
    # A run and its folder of games are the same source.
    assert read(tmp_path) == read(tmp_path / "games") == FINISHED
    assert stored_game(str(tmp_path)) == GAME


@pytest.mark.parametrize("cuts", [(3,), (1, 2, 4, 7), range(1, 9)])
def test_a_game_goes_on_in_later_files(tmp_path, cuts):
    write(tmp_path, *map(plies, (0, *cuts), (*cuts, 99)))
    assert read(tmp_path) == FINISHED


def test_the_values_of_actions_are_missing_in_schema_1(tmp_path):
    """A run that began with an older version has files of both."""
    write(tmp_path, plies(0, 3), plies(3, 99))
    rewrite_as_schema_1(min(tmp_path.iterdir()))
    assert read(tmp_path) == FINISHED
    [files] = stored_files([str(tmp_path)], GAME)
    [(_, rows, _)] = read_games(files, GAME)
    values = np.where(rows.ply < 3, np.nan, 0.5)
    np.testing.assert_array_equal(rows.policy_values[::2], values)
    np.testing.assert_array_equal(rows.policy_actions[::2], rows.move)


@pytest.mark.parametrize("missing", ["beginning", "middle"])
def test_a_game_without_a_part_is_left_out(tmp_path, missing):
    is_middle = missing == "middle"
    write(tmp_path, plies(0, 2), plies(2 + is_middle, 99), rows_of({8: GAMES[5]}))
    if not is_middle:
        min(tmp_path.iterdir()).unlink()
    assert read(tmp_path) == {8: GAMES[5]}


def test_a_source_that_is_not_one_run_of_the_game_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no games"):
        read(tmp_path)
    with pytest.raises(ValueError, match=r"there is no directory .*none"):
        read(tmp_path / "none")
    write(tmp_path, rows_of(GAMES))
    with pytest.raises(ValueError, match="games of tic_tac_toe, not of hex:5"):
        stored_files([str(tmp_path)], games.make("hex:5"))
    write(tmp_path / "games", rows_of(GAMES), run="def")
    file = next((tmp_path / "games").iterdir())
    file = file.rename(tmp_path / "00000009-00000009-0.parquet")
    with pytest.raises(ValueError, match="games of several runs"):
        read(tmp_path)
    file.rename(file.with_name("copy.parquet"))
    with pytest.raises(ValueError, match=r"copy.parquet is not named as files of game"):
        read(tmp_path)


@pytest.mark.parametrize("place", [4, -500, -8])  # of positions, of the description
def test_a_damaged_file_is_named(tmp_path, place):
    write(tmp_path, rows_of(GAMES))
    path = next(tmp_path.iterdir())
    content = path.read_bytes()
    damaged = content[:place] + bytes(56) + content[place:][56:]
    path.write_bytes(damaged[: len(content)])
    with pytest.raises(ValueError, match=rf"^{path}[^\n]*$"):
        read(tmp_path)


def test_more_positions_than_memory_is_for_are_refused(tmp_path, monkeypatch):
    """A small file can declare any number of equal positions."""
    write(tmp_path, rows_of(GAMES))
    monkeypatch.setattr(reader, "MAX_POSITION_BYTES", 2000)
    with pytest.raises(ValueError, match="has 16 positions of more than 2,000 bytes"):
        read(tmp_path)


def test_the_file_of_an_impossible_game_is_named(tmp_path):
    write(tmp_path, rows_of(GAMES))
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
    write(tmp_path, rows)
    with pytest.raises(ValueError, match=f"parquet: {message}"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["policy_probabilities", "policy_values"])
def test_lists_of_other_lengths_than_the_actions_are_refused(name):
    table = table_of(rows_of(GAMES))
    place, field = table.schema.get_field_index(name), table.schema.field(name)
    lists = pa.array([[0.5]] * table.num_rows, field.type)
    with pytest.raises(ValueError, match=f"policy_actions and {name} differ in length"):
        from_table(table.set_column(place, field, lists), GAME)

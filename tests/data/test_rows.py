import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data.game_rows import GAME, GAMES, rows_of

from azjax import games
from azjax.data import file_schema, state_bytes, unpack_states
from azjax.data.rows import (
    SCHEMA_VERSION,
    checked_run,
    pack_states,
    read_about,
    to_table,
)


@pytest.mark.parametrize("name", games.available())
def test_packed_positions_are_unpacked_exactly(name):
    game = games.make(name)
    first, generator = jax.device_get(game.init()), np.random.default_rng(0)

    def other(leaf):
        """Any bits of the first position, changed: a position need not be legal."""
        leaf = np.asarray(leaf)
        size = leaf.dtype.itemsize * leaf.size
        noise = generator.integers(0, 2 if leaf.dtype == bool else 256, size, np.uint8)
        return noise.view(leaf.dtype).reshape(leaf.shape)

    states = [first, *(jax.tree.map(other, first) for _ in range(2))]
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    packed = pack_states(states, 1)
    assert packed.shape == (3, state_bytes(game))
    assert len(np.unique(packed, axis=0)) == 3
    unpacked = unpack_states(game, packed)
    for found, expected in zip(*map(jax.tree.leaves, (unpacked, states)), strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()  # some are NaN


def test_packed_positions_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"must be \[N, "):
        unpack_states(GAME, np.zeros((2, 1), np.uint8))


@pytest.fixture
def path(tmp_path):
    schema = file_schema(GAME, run="abc")
    table = to_table(rows_of(GAMES), schema, run="abc", seed=3, iteration=2)
    pq.write_table(table, tmp_path / "file.parquet")
    return tmp_path / "file.parquet"


def test_a_file_has_the_metadata_of_its_run_and_the_columns_of_the_rows(path):
    _, about = read_about(path)
    assert about["schema"] == SCHEMA_VERSION
    assert about["game"] == "tic_tac_toe"
    assert checked_run(path, GAME) == "abc"
    columns = pq.read_table(path).to_pydict()
    assert columns["move"] == [move for moves in GAMES.values() for move in moves]
    assert set(columns["seed"]) == {3}
    assert columns["policy_actions"][0] == [0, 1]
    assert columns["policy_probabilities"][0] == [0.75, 0.25]
    assert columns["policy_values"][0] == [0.5, None]  # without visits


def test_files_of_other_games_columns_and_schemas_are_refused(path, tmp_path):
    with pytest.raises(ValueError, match="games of tic_tac_toe, not of hex:5"):
        checked_run(path, games.make("hex:5"))
    table, other = pq.read_table(path), tmp_path / "other.parquet"
    for content, message in (
        (table.drop_columns("value"), "has other columns"),
        (table.drop_columns("policy_values"), "has other columns"),
        (pa.table({"a": [1]}), "no file of games of azjax"),
    ):
        pq.write_table(content, other)
        with pytest.raises(ValueError, match=message):
            checked_run(other, GAME)
    other.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="no Parquet file, or damaged"):
        checked_run(other, GAME)
    about = {b"azjax": b'{"schema": 3}'}
    pq.write_table(table.replace_schema_metadata(about), other)
    with pytest.raises(ValueError, match="has schema 3, and this version"):
        checked_run(other, GAME)

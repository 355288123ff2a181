"""The rows of the files of games: a row for each position of self-play.

`SCHEMA_VERSION` is stored in each file, with the game spec, the version of azjax, the
run's id, and the layout of the packed states.

Functions that read a file raise a ValueError, whose message has the path, if it is no
file of games of the wanted game and the current schema, or damaged, and an OSError if
it cannot be read.
"""

import contextlib
import importlib.metadata
import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from azjax.files import Directory, open_regular
from azjax.games import Game, State, make
from azjax.text import printable

SCHEMA_VERSION = 2  # raised when columns change
MAX_FILE_BYTES = 2**31
_METADATA = b"azjax"


class Rows(NamedTuple):
    """N positions of self-play, as NumPy arrays.

    game: `[N]` int64; id of the game, unique in the run and increasing in time.
    ply: `[N]` int32; moves since the game's opening.
    player: `[N]` int8; the player to move.
    move: `[N]` the action that was played.
    state: `[N, bytes]` uint8; the packed position before the move.
    policy_counts: `[N]` number of entries of each policy target; 0 after a fast search.
    policy_actions: `[M]` actions of all entries, position by position.
    policy_probabilities: `[M]` their probabilities.
    policy_values: `[M]` the search's values of these actions for the player to move;
        NaN for actions without visits, and where it is not known.
    value: `[N]` float32; the search's value for the player to move.
    draw_probability: `[N]` float32; the network's.
    regret: `[N]` float32; how much lower the search values the move than its best move;
        of an imported game with evaluations or a teacher, what the move cost.
    reward: `[N]` float32; to the player who moved.
    terminated: `[N]` bool; whether the move ended the game.
    simulations: `[N]` int32; of the search.
    outcome: `[N]` int16; of chance after the move, -1 where none followed; None in
        games without chance.
    """

    game: np.ndarray
    ply: np.ndarray
    player: np.ndarray
    move: np.ndarray
    state: np.ndarray
    policy_counts: np.ndarray
    policy_actions: np.ndarray
    policy_probabilities: np.ndarray
    policy_values: np.ndarray
    value: np.ndarray
    draw_probability: np.ndarray
    regret: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    simulations: np.ndarray
    outcome: np.ndarray | None = None


def file_schema(game: Game, *, run: str) -> pa.Schema:
    """Returns the columns of a file, with the metadata of the games of a run, whose id
    is `run`."""
    leaves = _state_leaves(game)
    about = {
        "schema": SCHEMA_VERSION,
        "game": repr(game),
        "azjax": importlib.metadata.version("azjax"),
        "run": run,
        "state": [[name, leaf.dtype.name, leaf.shape] for name, leaf in leaves],
        "initial_state": initial_state(game).hex(),
    }
    columns: list[tuple[str, Any]] = [
        ("run", pa.string()),
        ("seed", pa.int64()),
        ("iteration", pa.int32()),
        ("game", pa.int64()),
        ("ply", pa.int32()),
        ("player", pa.int8()),
        ("move", pa.int32()),
        ("state", pa.binary(_num_bytes(leaves))),
        ("policy_actions", pa.list_(pa.int32())),
        ("policy_probabilities", pa.list_(pa.float32())),
        ("policy_values", pa.list_(pa.float32())),
        ("value", pa.float32()),
        ("draw_probability", pa.float32()),
        ("regret", pa.float32()),
        ("reward", pa.float32()),
        ("terminated", pa.bool_()),
        ("simulations", pa.int32()),
        ("full_search", pa.bool_()),
    ]
    if game.num_outcomes:
        columns.append(("outcome", pa.int16()))
    return pa.schema(columns, {_METADATA: json.dumps(about).encode()})


def to_table(
    rows: Rows, schema: pa.Schema, *, run: str, seed: int, iteration: int
) -> pa.Table:
    """Returns positions of one iteration as a table with the columns of a file."""
    count = len(rows.game)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(rows.policy_counts, out=offsets[1:])
    state = np.ascontiguousarray(rows.state)
    size = pa.binary(state.shape[1])
    made = {
        "run": pa.array([run]).take(pa.array(np.zeros(count, np.int32))),
        "seed": np.full(count, seed, np.int64),
        "iteration": np.full(count, iteration, np.int32),
        "state": pa.Array.from_buffers(size, count, [None, pa.py_buffer(state)]),
        "policy_actions": pa.ListArray.from_arrays(
            offsets, rows.policy_actions.astype(np.int32)
        ),
        "policy_probabilities": pa.ListArray.from_arrays(
            offsets, rows.policy_probabilities.astype(np.float32)
        ),
        "policy_values": pa.ListArray.from_arrays(
            offsets,
            pa.array(rows.policy_values.astype(np.float32), from_pandas=True),
        ),  # null for NaN
        "full_search": rows.policy_counts > 0,
    }
    columns = rows._asdict() | made
    arrays = [
        value if isinstance(value, pa.Array) else pa.array(value, field.type)
        for field in schema
        for value in (columns[field.name],)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def from_table(table: pa.Table, game: Game) -> Rows:
    """Returns the positions of a table with the columns of a file, at least one."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        columns[name] = pa.concat_arrays(table[name].chunks)
        if columns[name].null_count:
            raise ValueError(f"{name} has missing values")
    state, actions = columns.pop("state"), columns.pop("policy_actions")
    counts = actions.value_lengths().to_numpy()
    entries = {}
    for name in ("policy_probabilities", "policy_values"):
        lists = columns.pop(name)
        if not np.array_equal(counts, lists.value_lengths().to_numpy()):
            raise ValueError(f"policy_actions and {name} differ in length")
        entries[name] = lists.flatten().to_numpy(zero_copy_only=False)  # NaN for null
    # Without a copy; the column may begin within its buffer.
    packed = np.frombuffer(state.buffers()[1], np.uint8)
    packed = packed.reshape(-1, state_bytes(game))[state.offset :][: len(state)]
    rows = Rows(
        state=packed,
        policy_counts=counts,
        policy_actions=actions.flatten().to_numpy(),
        **entries,
        **{
            name: columns[name].to_numpy(zero_copy_only=False)
            for name in Rows._fields
            if name in columns
        },
    )
    check_values(rows, game)
    return rows


def check_values(rows: Rows, game: Game) -> None:
    """Checks what the rules of the game do not need to be known for."""
    actions, probabilities = rows.policy_actions, rows.policy_probabilities
    of_row = np.repeat(np.arange(len(rows.game)), rows.policy_counts)
    sums = np.bincount(of_row, probabilities, minlength=len(rows.game))
    last = game.num_actions - 1
    outcomes = np.zeros(0, np.int16) if rows.outcome is None else rows.outcome
    known_values = rows.policy_values[~np.isnan(rows.policy_values)]
    for name, values, low, high, tolerance in (
        ("move", rows.move, 0, last, 0),
        ("outcome", outcomes, -1, game.num_outcomes - 1, 0),
        ("policy_actions", actions, 0, last, 0),
        ("policy_probabilities", probabilities, 0, 1, 0.001),
        ("policy_values", known_values, -1, 1, 0.001),
        ("value", rows.value, -1, 1, 0.001),
        ("draw_probability", rows.draw_probability, 0, 1, 0.001),
        ("regret", rows.regret, 0, 2, 0.001),
    ):
        is_right = (values >= low - tolerance) & (values <= high + tolerance)
        if not is_right.all():  # False for NaN
            wrong = values[is_right.argmin()].item()
            raise ValueError(f"{name} must be from {low} to {high}: {wrong:.6g}")
    sums = sums[rows.policy_counts > 0]
    is_one = abs(sums - 1) < 0.01
    if not is_one.all():
        wrong = sums[is_one.argmin()].item()
        raise ValueError(
            f"policy_probabilities of a position must sum to 1: {wrong:.6g}"
        )
    is_reward = np.isin(rows.reward, (-1, 0, 1))
    if not is_reward.all():
        wrong = rows.reward[is_reward.argmin()].item()
        raise ValueError(f"reward must be -1, 0 or 1: {wrong:.6g}")
    unique = np.unique(of_row.astype(np.int64) * game.num_actions + actions)
    if len(unique) < len(actions):
        raise ValueError("policy_actions lists an action of a position twice")


def read_about(path: Directory) -> tuple[pa.Schema, dict[str, Any]]:
    """Returns the columns and the metadata of a file of games."""
    with opened_parquet(path) as parquet:
        schema = parquet.schema_arrow
    try:
        about = json.loads((schema.metadata or {})[_METADATA])
    except (KeyError, ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise ValueError(f"{path} is no file of games of azjax")
    return schema, about


@contextlib.contextmanager
def opened_parquet(path: Directory) -> Iterator[pq.ParquetFile]:
    """A context with an open Parquet file of any content."""
    with open_regular(path, MAX_FILE_BYTES) as file:
        try:
            yield pq.ParquetFile(file)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # of the file system
            reason = printable(str(error).splitlines()[0], 200)
            text = f"{path} is no Parquet file, or damaged: {reason}"
            raise ValueError(text) from None


def stated_game(path: Directory) -> Game:
    """Returns the game that a file says it has."""
    name = str(read_about(path)[1].get("game"))
    try:
        return make(name)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def checked_run(path: Directory, game: Game) -> str:
    """Returns the run's id of a file of games."""
    schema, about = read_about(path)
    if about.get("schema") != SCHEMA_VERSION:
        raise ValueError(
            f"{path} has schema {str(about.get('schema'))[:40]}, and this version of "
            f"azjax reads schema {SCHEMA_VERSION}"
        )
    if about.get("game") != repr(game):
        found = str(about.get("game"))[:40]
        raise ValueError(f"{path} holds games of {found}, not of {game!r}")
    run = about.get("run")
    if not isinstance(run, str) or not run.isalnum():
        raise ValueError(f"{path} has no run id")
    if not schema.equals(file_schema(game, run=run)):
        raise ValueError(f"{path} has other columns than the games of {game!r}")
    return run


def pack_states(states: State, num_batch_axes: int) -> np.ndarray:
    """Packs positions, NumPy leaves with some batch axes, into `[..., bytes]` uint8."""
    parts = []
    for leaf in jax.tree.leaves(states):
        values = np.ascontiguousarray(leaf)
        size = math.prod(values.shape[num_batch_axes:])
        flat = values.reshape(*values.shape[:num_batch_axes], size)
        parts.append(flat.view(np.uint8))
    return np.concatenate(parts, axis=-1)


def unpack_states(game: Game, packed: np.ndarray) -> State:
    """Returns packed positions, `[N, bytes]` uint8, as NumPy leaves `[N, ...]`."""
    leaves = _state_leaves(game)
    if packed.ndim != 2 or packed.shape[1] != _num_bytes(leaves):
        raise ValueError(
            f"packed positions of {game!r} must be [N, {_num_bytes(leaves)}]: "
            f"{list(packed.shape)}"
        )
    unpacked, start = [], 0
    for _, leaf in leaves:
        size = leaf.size * leaf.dtype.itemsize
        part = np.ascontiguousarray(packed[:, start : start + size])
        unpacked.append(part.view(leaf.dtype).reshape(len(packed), *leaf.shape))
        start += size
    structure = jax.tree.structure(jax.eval_shape(game.init))
    return jax.tree.unflatten(structure, unpacked)


def state_bytes(game: Game) -> int:
    """Returns the bytes of a packed position."""
    return _num_bytes(_state_leaves(game))


def initial_state(game: Game) -> bytes:
    """Returns the packed initial position."""
    return pack_states(jax.device_get(game.init()), 0).tobytes()


def _state_leaves(game: Game) -> list[tuple[str, jax.ShapeDtypeStruct]]:
    leaves = jax.tree.leaves_with_path(jax.eval_shape(game.init))
    return [(jax.tree_util.keystr(path).lstrip("."), leaf) for path, leaf in leaves]


def _num_bytes(leaves: list[tuple[str, jax.ShapeDtypeStruct]]) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for _, leaf in leaves)

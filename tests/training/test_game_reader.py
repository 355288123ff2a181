import json
import re
import threading
from typing import NamedTuple

import jax
import numpy as np
import pytest
from data.game_rows import GAMES, decided_rows, rows_of, write_files
from training.tiny_runs import config, game_reader, metrics

from azjax import games
from azjax.data import Rows, games_of_file, read_games, stored_files
from azjax.training import Trajectory, train
from azjax.training import game_reader as module
from azjax.training.game_reader import policies_of
from azjax.training.stored_policy import expand_policy, store_policy

GAME = games.make("tic_tac_toe")
pytestmark = pytest.mark.usefixtures("quick_plots", "shared_programs")


@pytest.fixture(scope="module")
def played(undisturbed):
    """The directory of a run that kept its games."""
    return undisturbed.directory


@pytest.fixture(scope="module")
def learned(played, tmp_path_factory):
    """A run that learns from these games only."""
    directory = tmp_path_factory.mktemp("runs") / "learned"
    return train(config(directory, iterations=3, learn_from=(str(played),)))


# Cells that win tic-tac-toe.
LINES = [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}]
LINES += [{0, 4, 8}, {2, 4, 6}]
NUM_FILES, FILE_GAMES = 11, 16


def random_game(generator):
    """Returns the moves of a finished game of tic-tac-toe."""
    moves = generator.permutation(9).tolist()
    for end in range(5, 9):
        if any(line <= set(moves[:end][end - 1 :: -2]) for line in LINES):
            return moves[:end]
    return moves


@pytest.fixture(scope="module")
def long_source(tmp_path_factory):
    """A directory of several files, and the moves of its games in their order."""
    directory, generator = tmp_path_factory.mktemp("long"), np.random.default_rng(0)
    found = [random_game(generator) for _ in range(NUM_FILES * FILE_GAMES)]
    firsts = range(0, len(found), FILE_GAMES)
    parts = [dict(enumerate(found[n : n + FILE_GAMES], n)) for n in firsts]
    write_files(directory, *map(decided_rows, parts))
    return directory, found


class Reading(NamedTuple):
    """What a run reads: the moves of its chunks, `[T, S]` each, and after each chunk
    the number of positions that were read and not yet handed out."""

    chunks: list[Trajectory]
    waiting: list[int]


@pytest.fixture(scope="module")
def long_reading(long_source):
    """The reading of a run that plays in a quarter of its slots, and its settings."""
    directory, waiting = long_source[0], 0
    reading = Reading([], [])

    def counted(*file):
        nonlocal waiting
        games_found = games_of_file(*file)
        waiting += len(games_found.rows.ply)
        return games_found

    with (
        pytest.MonkeyPatch.context() as patch,
        game_reader(directory, stored_fraction=0.75) as found,
    ):
        patch.setattr(module, "games_of_file", counted)
        for _ in range(130):
            chunk, _ = found.chunk()
            waiting -= chunk.action.size
            reading.chunks.append(jax.tree.map(by_slot, jax.device_get(chunk)))
            reading.waiting.append(waiting)
    settings = config("unused", learn_from=(str(directory),), stored_fraction=0.75)
    return reading, settings


def by_slot(leaf):
    """Returns a leaf `[L, T, S / L, ...]` as `[T, S, ...]`."""
    return np.moveaxis(leaf, 0, 1).reshape(leaf.shape[1], -1, *leaf.shape[3:])


def games_in_order(chunks):
    """Returns the moves of the finished games of chunks, in the order in which they
    began; of two that began together, that of the first slot first."""
    action = np.concatenate([chunk.action for chunk in chunks])
    terminated = np.concatenate([chunk.terminated for chunk in chunks])
    found = {}
    for slot in range(action.shape[1]):
        ends = np.flatnonzero(terminated[:, slot]) + 1
        starts = np.append(0, ends[:-1])
        for start, end in zip(starts, ends, strict=True):
            found[start, slot] = action[start:end, slot].tolist()
    return [found[place] for place in sorted(found)]


def test_each_slot_holds_whole_games_one_after_the_other(played):
    """Also games that go on in another file, which is read at another time."""
    [files] = stored_files([str(played)], GAME)
    known = []
    for _, rows, starts in read_games(files, GAME):
        known += [tuple(moves) for moves in np.split(rows.move, starts[1:])]
    with game_reader(played) as found:
        chunks = jax.device_get([found.chunk()[0] for _ in range(12)])
    action, terminated = (
        np.concatenate([by_slot(getattr(chunk, name)) for chunk in chunks])
        for name in ("action", "terminated")
    )
    begun = []
    for slot in range(action.shape[1]):
        ends = np.flatnonzero(terminated[:, slot]) + 1
        moves = [tuple(part) for part in np.split(action[:, slot], ends)]
        assert all(part in known for part in moves[:-1])
        assert any(game[: len(moves[-1])] == moves[-1] for game in known)
        begun += moves[:-1]
    assert set(begun) <= set(known)
    assert len(begun) >= len(known)  # more than an epoch


def test_each_pass_gives_every_game_once_in_an_order_of_its_own(
    long_source, long_reading
):
    """From a source of ten times the replay."""
    _, known = long_source
    reading, settings = long_reading
    assert sum(map(len, known)) >= 10 * settings.replay.capacity
    found = games_in_order(reading.chunks)
    first, second = found[: len(known)], found[len(known) : 2 * len(known)]
    assert sorted(first) == sorted(known)
    # A file's games come together, in another order; the files as well.
    of_file = {tuple(game): n // FILE_GAMES for n, game in enumerate(known)}
    files = [of_file[tuple(game)] for game in first[::FILE_GAMES]]
    assert files != sorted(files) == list(range(NUM_FILES))
    assert [of_file[tuple(game)] for game in second[::FILE_GAMES]] != files
    for place, file in enumerate(files):
        games_of_place = first[place * FILE_GAMES :][:FILE_GAMES]
        in_order = known[file * FILE_GAMES :][:FILE_GAMES]
        assert games_of_place != in_order
        assert sorted(games_of_place) == sorted(in_order)


def test_at_most_two_files_wait_in_memory_besides_the_begun_games(
    long_source, long_reading
):
    _, known = long_source
    reading, settings = long_reading
    file = max(
        sum(map(len, known[first : first + FILE_GAMES]))
        for first in range(0, len(known), FILE_GAMES)
    )
    # Up to a chunk and a game are queued in each slot when the next file is taken.
    queued = settings.stored_slots * (settings.self_play.moves_per_chunk + 9)
    assert max(reading.waiting) <= 2 * file + queued
    assert 2 * file + queued < sum(map(len, known)) / 3


@pytest.mark.parametrize("place", ["run", "run/games", "run/../run"])
def test_a_run_cannot_learn_from_its_own_directory(tmp_path, place):
    settings = config(tmp_path / "run", learn_from=(str(tmp_path / place),))
    with pytest.raises(ValueError, match="must not name the run's own directory"):
        train(settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("begun", [1, 7, 30])
def test_a_cursor_continues_exactly_and_reads_only_begun_games(
    long_source, monkeypatch, begun
):
    with game_reader(long_source[0]) as found:
        for _ in range(begun):
            found.chunk()
        cursor = json.loads(json.dumps(found.cursor))
        expected = [found.chunk() for _ in range(30)]
    read = []

    def counted(files, number, game):
        read.append(number)
        return games_of_file(files, number, game)

    monkeypatch.setattr(module, "games_of_file", counted)
    with game_reader(long_source[0]) as resumed:
        resumed.seek(cursor)
        assert set(read) == {file for _, file, _, _ in cursor["queued"]}
        assert len(read) == len(set(read)) < NUM_FILES / 2
        resumed.seek(resumed.cursor)  # changes nothing
        found = [resumed.chunk() for _ in range(30)]
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    with game_reader(long_source[0], seed=1) as other:
        same = np.array_equal(other.chunk()[0].action, expected[0][0].action)
    assert not same


def test_a_cursor_of_other_files_is_refused(tmp_path):
    cursors = []
    for number in (1, 2):
        write_files(tmp_path, *[rows_of({5: GAMES[5]})] * number)
        with game_reader(tmp_path) as found:
            found.chunk()
            cursors.append(found.cursor)
    foreign = (
        None,
        {"files": cursors[1]["files"]},
        cursors[1] | {"next": [0, -1, 0]},
        cursors[1] | {"next": 7},
        cursors[1] | {"queued": [[0, 99, 0, 0]]},
        cursors[1] | {"queued": [["a"] * 4]},
    )
    with game_reader(tmp_path) as changed:
        for cursor in (cursors[0], *foreign):
            with pytest.raises(ValueError, match="have changed since"):
                changed.seek(cursor)


def test_the_metrics_count_the_finished_games(played):
    with game_reader(played) as found:
        chunk, metrics = found.chunk()
    ended = np.asarray(chunk.terminated)
    assert metrics["games"] == ended.sum() > 0
    first = np.asarray(chunk.state.current_player) == 0
    score = np.where(first, chunk.reward, -chunk.reward)[ended].mean()
    assert metrics["first_player_score"] == pytest.approx(score)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"move": 3}, "move 3 of game 5"),  # of the other player
        ({"policy_actions": 3}, "move 3 of game 5"),
        ({"reward": 1.0}, "move 3 of game 5"),
        ({"state": 255}, "move 2 of game 5"),  # leads to another position
    ],
)
def test_a_move_that_the_rules_do_not_allow_is_named(tmp_path, changes, place):
    rows = rows_of({5: GAMES[5]})
    [(name, value)] = changes.items()
    getattr(rows, name)[4 if name == "policy_actions" else 2] = value
    write_files(tmp_path, rows)
    message = f"^{re.escape(str(tmp_path))}: .* the rules do not allow: {place}$"
    with game_reader(tmp_path) as found, pytest.raises(ValueError, match=message):
        found.chunk()


def test_games_without_an_end_are_not_enough(tmp_path):
    write_files(tmp_path, rows_of({7: GAMES[7]}))
    threads = threading.enumerate()
    with (
        game_reader(tmp_path) as found,
        pytest.raises(ValueError, match="no finished game"),
    ):
        found.chunk()
    assert set(threading.enumerate()) <= set(threads)


def test_a_run_learns_from_stored_games_and_plays_none(learned):
    rows = metrics(learned)
    assert any(row.get("policy_loss") for row in rows)
    assert not any("simulations" in row for row in rows)
    assert rows[-1]["games"] > 0
    assert not (learned.directory / "games").exists()


@pytest.mark.parametrize(("num_actions", "entries"), [(9, 4), (60, 4), (5000, 32)])
def test_policies_are_those_that_self_play_stores(num_actions, entries):
    chance = np.random.default_rng(num_actions)
    policy = np.exp(3 * chance.normal(size=(50, num_actions)))
    policy = (policy / policy.sum(axis=1, keepdims=True)).astype(np.float32)
    policy[policy < np.quantile(policy, 0.5)] = 0
    policy[::7] = 0  # fast searches
    row, action = np.nonzero(policy)
    rows: dict[str, np.ndarray] = dict.fromkeys(Rows._fields, np.zeros(50))
    rows["policy_counts"] = np.bincount(row, minlength=50)
    rows |= {"policy_actions": action, "policy_probabilities": policy[row, action]}

    @jax.jit
    def stored_and_expanded(found, policy):
        both = found, store_policy(policy, entries)[0]
        return both, [expand_policy(made, num_actions) for made in both]

    found = policies_of(Rows(**rows), num_actions, entries)
    both, expanded = jax.device_get(stored_and_expanded(found, policy))
    for made in both:
        if made.action is not None:
            assert all(len(set(of_row)) == entries for of_row in made.action)
    np.testing.assert_allclose(*expanded, atol=1e-3)

import csv
import importlib.resources
import itertools

import bitbully
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data.game_rows import stored_rows
from flax import struct
from training.tiny_runs import game_reader

from azjax import arena, games
from azjax.arena import solved
from azjax.data import unpack_states
from azjax.games.connect_four import ConnectFour
from azjax.games.tic_tac_toe import TicTacToe
from azjax.players import RandomPlayer
from azjax.players.core import Choice

GAME = games.make("tic_tac_toe")
HEADER = "moves,q0,q1,q2,q3,q4,q5,q6,q7,q8"
EMPTY_BOARD = ",0,0,0,0,0,0,0,0,0"
AFTER_CENTER = "5,0,-1,0,-1,,-1,0,-1,0"  # a corner draws, an edge loses
STAGES = {
    "opening": (0, 7),
    "early": (8, 14),
    "middle": (15, 21),
    "late": (22, 28),
    "end": (29, 41),
}
TRACED = []


@struct.dataclass
class TablePlayer:
    """Plays moves from a table, indexed by the marks on a tic-tac-toe board.

    It records the batch sizes of its traces.
    """

    table: jax.Array  # [512, 512] int32, by marks of mover and opponent

    def choose(self, rng_key, states) -> Choice:
        del rng_key
        TRACED.append(len(states.terminated))
        mine, theirs = marks(states)
        action = self.table[mine, theirs]
        return Choice(action, jax.nn.one_hot(action, 9), jnp.zeros(action.shape))


@jax.jit
def marks(states) -> tuple[jax.Array, jax.Array]:
    """Returns two `[N]` int32: the marks of mover and opponent, one bit per cell."""
    observations = jax.vmap(GAME.observe)(states).astype(int)
    bits = observations.reshape(-1, 9, 2) << jnp.arange(9)[:, None]
    return bits[..., 0].sum(axis=1), bits[..., 1].sum(axis=1)


class WideTicTacToe(TicTacToe):
    """Tic-tac-toe with three additional actions, which are always illegal."""

    num_actions = 12

    def legal_action_mask(self, state):
        return jnp.append(super().legal_action_mask(state), jnp.zeros(3, bool))


@pytest.fixture(scope="module")
def positions():
    return arena.shipped(GAME)


@pytest.fixture(scope="module")
def connect_four():
    return arena.shipped(games.make("connect_four"))


def table_player(positions, actions) -> TablePlayer:
    table = np.zeros((512, 512), np.int32)
    table[tuple(np.asarray(side) for side in marks(positions.states))] = actions
    return TablePlayer(table)


def fixed_player(action) -> TablePlayer:
    return TablePlayer(np.full((512, 512), action, np.int32))


def distinct(boards):
    """Returns the number of different boards `[N, ...]`."""
    return len(np.unique(boards.reshape(len(boards), -1), axis=0))


def boards_of(positions) -> np.ndarray:
    """Returns `[N, 6, 7, 2]` float32: the discs of both players."""
    return np.asarray(jax.jit(jax.vmap(positions.game.observe))(positions.states))


def read(tmp_path, *lines, game=GAME):
    path = tmp_path / "positions.csv"
    path.write_text("\n".join(lines))
    return arena.read(game, path)


# Reading


def test_moves_are_played_from_the_initial_position(tmp_path):
    # Blank lines are skipped, and other columns ignored.
    lines = ["note,set," + HEADER, "", "x,start," + EMPTY_BOARD]
    found = read(tmp_path, *lines, "y,one," + AFTER_CENTER, "")
    mine, theirs = marks(found.states)
    assert (mine.tolist(), theirs.tolist()) == ([0, 0], [0, 1 << 4])
    assert found.states.current_player.tolist() == [0, 1]
    assert found.groups.tolist() == ["start", "one"]
    # Values are NaN where illegal.
    expected = [[0] * 9, [0, -1, 0, -1, np.nan, -1, 0, -1, 0]]
    np.testing.assert_array_equal(found.action_values, expected)
    # Without a column of sets there is one group.
    assert read(tmp_path, HEADER, EMPTY_BOARD).groups.tolist() == ["all"]


def test_moves_of_more_than_nine_actions_are_separated_by_spaces(tmp_path):
    header = ",".join(["moves", *(f"q{action}" for action in range(12))])
    line = "5 1,,0,-1,0,,-1,-1,0,0,,,"
    positions = read(tmp_path, header, line, game=WideTicTacToe())
    mine, theirs = marks(positions.states)
    assert (mine.tolist(), theirs.tolist()) == ([1 << 4], [1 << 0])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: no column 'moves'"),
        (["5,0,0,0,0,,0,0,0,0"], "line 1: no column 'moves'"),
        ([HEADER.replace("q3,", ""), EMPTY_BOARD], "line 1: no column 'q3'"),
        ([HEADER + ",q9", EMPTY_BOARD + ","], "line 1: column 'q9'.* 9 actions"),
        ([HEADER], "line 1: no positions"),
        ([HEADER, EMPTY_BOARD, "5,0,0"], "line 3: 3 fields, but the header has 10"),
        ([HEADER, "50" + EMPTY_BOARD], "line 2: move 2 is '0', not a number from 1"),
        ([HEADER, "5a" + EMPTY_BOARD], "line 2: move 2 is 'a', not a number from 1"),
        ([HEADER, "1234567891" + EMPTY_BOARD], "line 2: 10 moves, but no game is"),
        ([HEADER, "5125" + EMPTY_BOARD], "line 2: move 4, 5, is illegal"),
        ([HEADER, "142537" + EMPTY_BOARD], "line 2: move 6, 7, follows the game's end"),
        ([HEADER, "", "14253" + EMPTY_BOARD], "line 3: the game is over"),
        ([HEADER, ",0,0,,0,0,0,0,0,0"], "line 2: q2 is empty, but the action is legal"),
        ([HEADER, "5" + EMPTY_BOARD], "line 2: q4 has a value, but the action is ill"),
        ([HEADER, ",0,0,0.5,0,0,0,0,0,0"], "line 2: q2 is '0.5'; a value is 1, 0 or"),
        (["set," + HEADER, "a" * 81 + "," + EMPTY_BOARD], "line 2: set has more than"),
        ([HEADER, ",0,0,2,0,0,0,0,0,0"], "line 2: q2 is '2'; a value is 1, 0 or -1"),
    ],
)
def test_an_error_names_the_file_the_line_and_the_fault(tmp_path, lines, message):
    with pytest.raises(ValueError, match=rf"positions\.csv, {message}") as error:
        read(tmp_path, *lines)
    assert "\n" not in str(error.value)


def test_a_file_for_a_game_with_chance_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"csv, line 1: ur has chance, and a file has"):
        read(tmp_path, HEADER, EMPTY_BOARD, game=games.make("ur"))


def test_a_file_without_an_end_is_refused():
    with pytest.raises(ValueError, match="/dev/zero: it has more than 67108864 bytes"):
        arena.read(GAME, "/dev/zero")


def test_a_missing_file_and_one_that_is_not_text_are_refused(tmp_path):
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for name, message in (("nothing", "No such file"), ("binary", "not a text file")):
        with pytest.raises(ValueError, match=rf"{name}\.csv: {message}"):
            arena.read(GAME, tmp_path / f"{name}.csv")


# Grading


def test_a_perfect_player_makes_no_mistake_and_the_worst_all(positions):
    values = positions.action_values
    is_possible = np.nanmin(values, axis=1) < np.nanmax(values, axis=1)
    for choose, mistakes in ((np.nanargmax, 0), (np.nanargmin, is_possible)):
        player = table_player(positions, choose(values, axis=1))
        grade = arena.grade(player, positions, jax.random.key(0))
        np.testing.assert_array_equal(grade.is_mistake, mistakes)
        num_mistakes = np.sum(grade.is_mistake)
        assert grade.groups == {"all": arena.MistakeRate(num_mistakes, 4520)}


def test_a_random_player_has_the_expected_mistake_rate(positions):
    values = positions.action_values
    is_bad = values < np.nanmax(values, axis=1, keepdims=True)
    chance = is_bad.sum(axis=1) / (~np.isnan(values)).sum(axis=1)
    deviation = np.sqrt((chance * (1 - chance)).sum())
    with jax.debug_key_reuse(True):  # the reuse of a key raises an error
        grade = arena.grade(RandomPlayer(GAME), positions, jax.random.key(0))
    assert abs(grade.is_mistake.sum() - chance.sum()) < 5 * deviation


def test_an_illegal_action_is_a_mistake(positions):
    rows = [0, np.flatnonzero(np.isnan(positions.action_values[:, 4]))[0]]
    player, some = fixed_player(4), positions.take(rows)
    grade = arena.grade(player, some, jax.random.key(0), 10)
    assert grade.is_mistake.tolist() == [False, True]


def test_new_weights_and_a_short_last_batch_are_not_compiled_again(positions):
    some = positions.take(np.arange(25))
    TRACED.clear()
    found = []
    for action in (0, 1):
        player = fixed_player(action)
        found.append(arena.grade(player, some, jax.random.key(0), 9).is_mistake)
    assert TRACED == [9]
    assert (found[0] != found[1]).any()
    # The batch size does not change a deterministic player.
    at_once = arena.grade(player, some, jax.random.key(0), 25)
    np.testing.assert_array_equal(found[1], at_once.is_mistake)


def test_every_batch_has_its_own_key(positions):
    is_half = (positions.action_values == 1).sum(axis=1) == 2
    half = positions.take(np.repeat(np.flatnonzero(is_half)[:1], 64))
    grade = arena.grade(RandomPlayer(GAME), half, jax.random.key(0), batch_size=1)
    assert 0 < grade.is_mistake.sum() < 64


def test_mistakes_are_counted_by_group_and_groups_weigh_the_same(tmp_path):
    lines = ["a," + EMPTY_BOARD, *["b," + AFTER_CENTER] * 3]
    positions = read(tmp_path, "set," + HEADER, *lines)
    grade = arena.grade(fixed_player(1), positions, jax.random.key(0), 10)
    rates = arena.MistakeRate(0, 1), arena.MistakeRate(3, 3)
    assert grade.groups == dict(zip("ab", rates, strict=True))
    assert grade.mean == 0.5


def graded(groups) -> arena.Grade:
    return arena.Grade(groups, np.zeros(0, bool), np.zeros(0))


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 50, 0.0434, 0.2136), (10, 10, 0.7225, 1.0)],
)
def test_the_interval_of_a_rate_is_wilsons_interval(successes, trials, low, high):
    interval = arena.wilson_interval(successes / trials, trials)
    np.testing.assert_allclose(interval, (low, high), atol=1e-4)
    # The interval of the mean of one group is that of the group.
    rates = {"all": arena.MistakeRate(successes, trials)}
    mean_interval = graded(rates).mean_interval
    np.testing.assert_allclose(mean_interval, interval, atol=1e-12)
    # That of two equal groups is narrower by the square root of 2.
    rates["more"], rate = rates["all"], successes / trials
    mean_interval = graded(rates).mean_interval
    expected = rate + (np.array(interval) - rate) / 2**0.5
    np.testing.assert_allclose(mean_interval, expected, atol=1e-12)


def test_the_interval_of_the_mean_covers_95_percent():
    rng, rates = np.random.default_rng(0), (0.02, 0.1, 0.4)
    holds = 0
    for _ in range(1000):
        groups = {
            str(rate): arena.MistakeRate(int(rng.binomial(200, rate)), 200)
            for rate in rates
        }
        low, high = graded(groups).mean_interval
        holds += low <= sum(rates) / 3 <= high
    assert 915 < holds < 985


# Subsets


def test_a_subset_has_different_positions_of_every_group_with_their_values(
    connect_four, tmp_path
):
    subset = connect_four.subset(500)
    groups, counts = np.unique(subset.groups, return_counts=True)
    assert dict(zip(groups, counts, strict=True)) == dict.fromkeys(STAGES, 100)
    legal = jax.jit(jax.vmap(connect_four.game.legal_action_mask))(subset.states)
    np.testing.assert_array_equal(~np.isnan(subset.action_values), legal)
    assert distinct(boards_of(subset)) == 500
    # Other groups fill up for a small group.
    lines = ["a," + EMPTY_BOARD] + ["b," + AFTER_CENTER] * 9
    few = read(tmp_path, "set," + HEADER, *lines).subset(6)
    assert sorted(few.groups) == ["a", *"bbbbb"]


def test_a_subset_larger_than_the_set_is_the_set(positions):
    # In the order of their marks.
    found, expected = (
        solved.take(np.lexsort(np.asarray(marks(solved.states))))
        for solved in (positions.subset(10_000), positions)
    )
    jax.tree.map(np.testing.assert_array_equal, found.states, expected.states)
    np.testing.assert_array_equal(found.action_values, expected.action_values)


# Positions shipped with azjax


@pytest.mark.parametrize("changes", [{"name": "unknown"}, {"options": {"size": 8}}])
def test_a_long_game_without_a_file_or_with_options_has_no_positions(changes):
    assert arena.shipped(type("Other", (ConnectFour,), changes)()) is None


def test_a_short_game_with_too_many_positions_has_no_positions(monkeypatch):
    monkeypatch.setattr(solved, "_EXHAUSTIVE_MAX_POSITIONS", 100)
    assert arena.shipped(type("Wide", (TicTacToe,), {"name": "wide"})()) is None


def test_games_of_few_actions_are_solved_however_long_they_may_be():
    positions = arena.shipped(games.make("kalah:3,2"))
    assert len(positions) > 1000
    assert positions.action_values[0].max() == 1  # as published
    assert arena.shipped(games.make("kalah:6,1")) is None


def test_connect_four_has_positions_of_each_stage_in_which_a_mistake_is_possible(
    connect_four,
):
    groups, counts = np.unique(connect_four.groups, return_counts=True)
    assert dict(zip(groups, counts, strict=True)) == dict.fromkeys(STAGES, 600)
    boards = boards_of(connect_four)
    discs = boards.sum(axis=(1, 2, 3))
    for stage, (low, high) in STAGES.items():
        of_stage = discs[connect_four.groups == stage]
        assert low <= of_stage.min()
        assert of_stage.max() <= high
    # The positions differ even when mirrored.
    symmetries = connect_four.game.symmetries
    images = [np.asarray(symmetry.observation(boards)) for symmetry in symmetries]
    canonical = {
        min(image.tobytes() for image in of_one) for of_one in zip(*images, strict=True)
    }
    assert len(canonical) == len(connect_four)
    values = connect_four.action_values
    assert (np.nanmin(values, axis=1) < np.nanmax(values, axis=1)).all()


def test_a_solver_agrees_with_the_connect_four_values():
    solver = bitbully.BitBully()
    data = importlib.resources.files("azjax.arena") / "data" / "connect_four.csv"
    rows = csv.DictReader(data.read_text().splitlines())
    for row in itertools.islice(rows, 0, None, 50):
        board = bitbully.Board([int(move) - 1 for move in row["moves"]])
        scores = solver.score_all_moves(board)
        expected = {action: np.sign(score) for action, score in scores.items()}
        values = {action: row[f"q{action}"] for action in range(7)}
        assert expected == {a: int(q) for a, q in values.items() if q}


# Positions as games to learn from


X_WINS = "1425,,,1,,,0,-1,-1,-1"  # 2 completes a row, 5 blocks one
O_LOSES = "12597,,,-1,-1,,-1,,-1,"  # X threatens 2 and 3


def write_positions(path, *lines):
    path.write_text("\n".join([HEADER, *lines]))
    return path


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("positions")
    first = write_positions(path / "first.csv", AFTER_CENTER, X_WINS)
    second = write_positions(path / "second.csv", O_LOSES)
    found = arena.import_positions([first, second], path / "stored", GAME)
    return found, path


def test_every_position_is_stored_as_a_game(stored):
    found, path = stored
    assert (found.games, found.positions) == (3, 3)
    rows = stored_rows(path / "stored").rows
    np.testing.assert_array_equal(rows.game, [0, 1, 2])
    states = unpack_states(GAME, rows.state)
    solved = arena.read(GAME, path / "first.csv").states
    first = jax.tree.map(lambda leaf: leaf[:2], states)
    jax.tree.map(np.testing.assert_array_equal, first, solved)


def test_the_targets_are_the_best_moves_and_the_solved_results(stored):
    rows = stored_rows(stored[1] / "stored").rows
    np.testing.assert_array_equal(rows.policy_counts, [4, 1, 4])
    np.testing.assert_array_equal(rows.policy_actions, [0, 2, 6, 8, 2, 2, 3, 5, 7])
    expected = np.repeat([0.25, 1, 0.25], [4, 1, 4])
    np.testing.assert_array_equal(rows.policy_probabilities, expected)
    np.testing.assert_array_equal(rows.value, [0, 1, -1])
    np.testing.assert_array_equal(rows.reward, [0, 1, -1])
    np.testing.assert_array_equal(rows.draw_probability, [1, 0, 0])
    expected = np.repeat([0, 1, -1], [4, 1, 4])
    np.testing.assert_array_equal(rows.policy_values, expected)


def test_a_run_learns_the_solved_results(stored):
    chunk, _ = game_reader(stored[1] / "stored").chunk()
    assert np.asarray(chunk.terminated).all()
    assert set(np.unique(chunk.reward)) == {-1, 0, 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("5,0,-1,0,-1,0,-1,0,-1,0", "bad.csv, line 2: q4 has a value, but the action"),
        ("1425,,,0,,,0,-1,-1,-1", "bad.csv, position 1: action 3 ends the game"),
    ],
)
def test_nothing_is_written_after_an_error(line, message, stored, tmp_path):
    bad = write_positions(tmp_path / "bad.csv", line)
    with pytest.raises(ValueError, match=message):
        arena.import_positions(
            [stored[1] / "first.csv", bad], tmp_path / "stored", GAME
        )
    assert list(tmp_path.iterdir()) == [bad]

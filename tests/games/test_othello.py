import dataclasses
import importlib
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import bitboard, make, othello

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
GAME = make("othello")
STEP = jax.jit(GAME.step)
MASK = jax.jit(GAME.legal_action_mask)
BLACK, WHITE = 0, 1
# The shortest game in which all discs of a player are flipped.
SHORTEST = "e6 f4 e3 f6 g5 d6 e7 f5 c5"


FACTS = ("terminated", "rewards", "player", "legal", "board")


@pytest.fixture
def engine(monkeypatch):
    """Returns the comparisons with OpenSpiel and pgx."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("engines.othello")


@pytest.fixture(scope="module")
def record(verify_games):
    """Returns random games."""
    return verify_games.make_recorder(GAME)(jax.random.split(jax.random.key(1), 200))


def position(picture, player):
    """Returns the position of a picture of X (black), O (white) and points.

    Missing rows at the end are empty.
    """
    rows = [row.ljust(8, ".") for row in picture.split()]
    board = np.array([list(row) for row in rows + 8 * ["." * 8]][:8])
    stones = (
        bitboard.constant(othello.CELLS[board == letter], othello.NUM_CELLS)
        for letter in "XO"
    )
    return othello.State(
        stones=jax.tree.map(jnp.uint32, tuple(stones)),
        current_player=jnp.int8(player),
        outcome=jnp.int8(0),
        terminated=jnp.bool(False),
    )


def picture(state):
    """Returns the rows of a position as texts, without empty rows at the end."""
    board = np.array(list("XO."))[np.asarray(GAME.board(state))]
    rows = ["".join(row) for row in board]
    while rows and rows[-1] == "." * 8:
        rows.pop()
    return rows


def play(state, texts):
    """Returns the position after moves in one text without separators."""
    for text in texts.split():
        state = STEP(state, GAME.text_to_action(state, text))
    return state


def legal_texts(state):
    actions = np.flatnonzero(MASK(state))
    return {GAME.action_to_text(state, int(action)) for action in actions}


def test_black_has_four_first_moves():
    state = GAME.init()
    assert picture(state)[3:] == ["...OX...", "...XO..."]
    assert legal_texts(state) == {"d3", "c4", "f5", "e6"}


def test_rows_are_numbered_from_the_top():
    state = GAME.init()
    texts = [GAME.action_to_text(state, action) for action in (0, 7, 56, 63, 64)]
    assert texts == ["a1", "h1", "a8", "h8", "pass"]
    assert GAME.to_text(state).splitlines()[1].startswith("1")


@pytest.mark.parametrize("text", ["a1", "pass"])
def test_an_illegal_move_is_refused_with_the_legal_ones(text):
    with pytest.raises(ValueError, match="not legal here; legal: d3 c4 f5 e6"):
        GAME.text_to_action(GAME.init(), text)


def test_there_are_no_options():
    with pytest.raises(ValueError, match="it has none"):
        make("othello", size=8)


def test_a_disc_flips_rows_in_all_eight_directions():
    rows = "X..X..X. .O.O.O.. ..OOO... XOO.OX.. ..OOO... .O.O.O.. X..X..X."
    after = play(position(rows, BLACK), "d4")
    assert picture(after) == [
        "X..X..X.",
        ".X.X.X..",
        "..XXX...",
        "XXXXXX..",
        "..XXX...",
        ".X.X.X..",
        "X..X..X.",
    ]


def test_only_rows_that_end_at_an_own_disc_are_flipped():
    rows = ".OOX.... OO...... O.O..... X......O"
    after = play(position(rows, BLACK), "a1")
    assert picture(after) == ["XXXX....", "XO......", "X.O.....", "X......O"]


def test_flipped_discs_flip_no_others():
    # b1 flips c1; c1 is then between c2 and no placed disc.
    rows = "..OX.... ..O..... ..X....."
    after = play(position(rows, BLACK), "b1")
    assert picture(after) == [".XXX....", "..O.....", "..X....."]


def test_only_straight_rows_are_flipped():
    """Tests all rows of evenly spaced cells in reading order, with all numbers of
    discs.

    This includes rows that wrap around the edges.
    """
    cases = [
        (start, step, length)
        for start in range(64)
        for step in (-9, -8, -7, -1, 1, 7, 8, 9)
        for length in range(1, 7)
        if 0 <= start + (length + 1) * step < 64
    ]
    black, white, expected = (np.zeros((len(cases), 64), bool) for _ in range(3))
    for case, (start, step, length) in enumerate(cases):
        cells = start + step * np.arange(length + 2)
        is_straight = (abs(np.diff(cells % 8)) < 2).all()
        black[case, cells[-1]] = True
        white[case, cells[1:-1]] = True
        expected[case, cells if is_straight else cells[-1]] = True
    states = othello.State(
        stones=(words(black), words(white)),
        current_player=jnp.zeros(len(cases), jnp.int8),
        outcome=jnp.zeros(len(cases), jnp.int8),
        terminated=jnp.zeros(len(cases), bool),
    )
    starts = np.array([start for start, _, _ in cases])
    after = jax.jit(jax.vmap(GAME.step))(states, jnp.asarray(starts, jnp.int32))
    legal = jax.jit(jax.vmap(GAME.legal_action_mask))(states)
    boards = jax.jit(jax.vmap(GAME.board))(after)
    np.testing.assert_array_equal(boards.reshape(-1, 64) == BLACK, expected)
    is_legal = expected[np.arange(len(cases)), starts]
    assert 0 < is_legal.sum() < len(cases)
    np.testing.assert_array_equal(legal[np.arange(len(cases)), starts], is_legal)


def words(cells):
    """Returns the bitboards of cells `[N, 64]` bool."""
    bits = cells.reshape(-1, 2, 32).astype(np.uint32) << np.arange(32, dtype=np.uint32)
    return tuple(jnp.asarray(bits.sum(axis=-1, dtype=np.uint32).T))


def test_an_occupied_cell_is_illegal():
    state = GAME.init()
    assert not MASK(state)[np.array([27, 28, 35, 36])].any()


def test_a_player_without_a_move_must_pass():
    state = position("XO......", WHITE)
    assert legal_texts(state) == {"pass"}
    after = play(state, "pass")
    assert not after.terminated
    assert after.current_player == BLACK
    assert picture(after) == ["XO......"]
    assert legal_texts(after) == {"c1"}


def test_a_pass_is_illegal_if_a_disc_can_be_placed():
    after = STEP(GAME.init(), othello.PASS)
    assert after.terminated
    np.testing.assert_array_equal(GAME.rewards(after), [-1, 1])


def test_placing_a_disc_is_illegal_if_a_pass_is_required():
    after = STEP(position("XO......", WHITE), 2)
    assert after.terminated
    np.testing.assert_array_equal(GAME.rewards(after), [1, -1])


def test_an_illegal_move_does_not_change_the_discs():
    after = STEP(GAME.init(), 0)
    assert picture(after) == picture(GAME.init())
    assert GAME.result_text(after) == ""  # the discs are not counted


@pytest.mark.parametrize(
    ("last_row", "rewards", "result_text"),
    [
        pytest.param("......OO", [1, -1], "3 to 2", id="more black discs"),
        pytest.param(".....OOO", [0, 0], "3 to 3", id="equally many"),
        pytest.param("....OOOO", [-1, 1], "4 to 3", id="more white discs"),
    ],
)
def test_the_game_ends_when_neither_player_can_move(last_row, rewards, result_text):
    state = position("XO......" + " ........" * 6 + " " + last_row, BLACK)
    assert GAME.result_text(state) == ""
    after = play(state, "c1")
    assert GAME.result_text(after) == result_text
    assert picture(after)[0] == "XXX....."
    assert after.terminated
    np.testing.assert_array_equal(GAME.rewards(after), rewards)


def test_the_game_ends_when_a_player_has_no_discs_left():
    after = play(GAME.init(), SHORTEST)
    assert after.terminated
    assert bitboard.count(after.stones[BLACK]) == 13
    assert not bitboard.has_any(after.stones[WHITE])
    assert GAME.result_text(after) == "13 to 0"
    np.testing.assert_array_equal(GAME.rewards(after), [1, -1])


@pytest.mark.parametrize(
    ("rows", "rewards"),
    [
        pytest.param(7 * ["XXXXXXXX"], [1, -1], id="more black discs"),
        pytest.param(
            ["OXXXXXXO", "XOXXXXXO", "XXOXXXXO", "XXXOXXXO", *(3 * ["OOOOOOOO"])],
            [0, 0],
            id="equally many",
        ),
        pytest.param(7 * ["OOOOOOOO"], [-1, 1], id="more white discs"),
    ],
)
def test_a_full_board_is_won_by_the_player_with_more_discs(rows, rewards):
    after = play(position(" ".join([*rows, "XOOOOOO."]), BLACK), "h8")
    assert after.terminated
    assert picture(after) == [*rows, "XXXXXXXX"]
    np.testing.assert_array_equal(GAME.rewards(after), rewards)


def test_the_first_plane_has_the_movers_discs():
    state = play(GAME.init(), "d3")
    observation = np.asarray(GAME.observe(state))
    board = np.asarray(GAME.board(state))
    np.testing.assert_array_equal(observation[..., 0], board == WHITE)
    np.testing.assert_array_equal(observation[..., 1], board == BLACK)


@pytest.mark.parametrize("moves", ["", "d3", "d3 c5 d6"])
def test_two_planes_have_the_moves_of_both_players(moves):
    state = play(GAME.init(), moves)
    passed = dataclasses.replace(state, current_player=1 - state.current_player)
    for plane, mover in ((2, state), (3, passed)):
        legal = np.asarray(GAME.legal_action_mask(mover))[: othello.PASS]
        observed = np.asarray(GAME.observe(state))[..., plane]
        np.testing.assert_array_equal(observed, legal.reshape(8, 8))
        assert observed.any()


def test_a_player_who_must_pass_has_an_empty_plane():
    observation = np.asarray(GAME.observe(position("XO......", WHITE)))
    assert not observation[..., 2].any()
    assert observation[..., 3].any()


def test_symmetries_keep_the_colors_of_the_initial_position():
    observation = GAME.observe(GAME.init())
    assert len(GAME.symmetries) == 4
    for symmetry in GAME.symmetries:
        np.testing.assert_array_equal(symmetry.observation(observation), observation)


def test_a_pass_marks_no_cell():
    state = play(position("XO......", WHITE), "pass")
    assert "[" not in GAME.to_text(state, last_action=othello.PASS)


def test_the_number_of_games_is_the_published_one(verify_games):
    plies = verify_games.perft.enumerate_plies(GAME, 6)
    published = verify_games.perft.NUM_LINES["othello"][:7]
    assert [ply.num_lines() for ply in plies] == published


def test_open_spiel_agrees_at_every_position(engine, record):
    counts = engine.compare(GAME, record)
    assert counts.pop("positions") > 50 * 200
    assert not any(counts.values())


def test_open_spiel_detects_a_wrong_rule(engine, record):
    wrong = {name: np.array(facts[:10]) for name, facts in record.items()}
    wrong["legal"][:, 3, othello.PASS] ^= True
    wrong["board"][:, 5, 3, 3] = -1
    counts = engine.compare(GAME, wrong)
    assert counts["legal"] == counts["board"] == 10


def test_pgx_agrees_at_every_position(engine):
    keys = jax.random.split(jax.random.key(3), 300)
    counts = jax.device_get(engine.make_pgx_comparison(GAME)(keys))
    assert counts["positions"] > 50 * 300
    assert counts["illegal"] > 0
    assert not any(counts[fact] for fact in FACTS)


def test_the_heuristic_value_counts_moves_and_corners():
    # Black has a corner and the moves c1 and e8, White has the move e4.
    discs = """
    XO......
    ........
    ........
    ........
    ....X...
    ....X...
    ....O..."""
    black = GAME.evaluate(position(discs, BLACK))
    lead = (2 - 1) + 4
    assert black == pytest.approx(lead / (16 + lead))
    assert GAME.evaluate(position(discs, WHITE)) == -black

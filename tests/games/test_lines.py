"""Games that are won by a line: tic-tac-toe, Connect Four and gomoku."""

import itertools
import re

import jax
import numpy as np
import pytest
from compiled_games import all_lines, bitboards, board_of, compiled, play

from azjax.games import bitboard, connect_four, make
from azjax.games.stones import cells_in_lines

DRAWN = "X...O .X.O. ..XXX .O.X. OOOOX"
# Games of Connect Four that fill the board.
DRAW = "656173566152215676422337377473141445425321"
WON_WITH_THE_LAST_DISC = "571376236345225146673541242612413735415776"

won, lost, drawn = [1, -1], [-1, 1], [0, 0]


def columns(text):
    """Returns moves of Connect Four, written without spaces."""
    return " ".join(text)


def test_lines_are_found_in_all_directions_and_for_both():
    board = board_of(DRAWN)
    diagonal = [(place, place) for place in range(5)]
    bottom = [(4, column) for column in range(4)]
    assert cells_in_lines(board, 5) == tuple(diagonal)
    assert cells_in_lines(board, 4) == tuple(sorted({*diagonal, *bottom}))
    threes = cells_in_lines(board, 3)
    assert {(2, 2), (2, 3), (2, 4)} <= set(threes)
    assert (3, 1) not in threes
    # Longer lines do not count with `exact`.
    assert cells_in_lines(board, 5, exact=True) == tuple(diagonal)
    assert cells_in_lines(board, 4, exact=True) == tuple(bottom)


def test_lines_turn_with_the_board():
    board = board_of("O.. .O. XXO")
    for turns in range(4):
        marked = np.zeros((3, 3), bool)
        marked[tuple(np.transpose(cells_in_lines(np.rot90(board, turns), 3)))] = True
        np.testing.assert_array_equal(np.rot90(marked, -turns), board == 1)


def test_an_empty_board_and_a_full_one_without_lines_have_none():
    assert cells_in_lines(np.full((6, 7), -1), 1) == ()
    assert cells_in_lines(board_of("XOX XOO OXX"), 3) == ()


@pytest.mark.parametrize(
    ("spec", "moves", "rewards"),
    [
        pytest.param("connect_four", columns("1122334"), won, id="row at the left"),
        pytest.param("connect_four", columns("4455667"), won, id="row at the right"),
        pytest.param("connect_four", columns("1212121"), won, id="left column"),
        pytest.param("connect_four", columns("7171717"), won, id="right column"),
        pytest.param("connect_four", columns("12234334744"), won, id="rising"),
        pytest.param("connect_four", columns("76654554144"), won, id="falling"),
        pytest.param("connect_four", columns("71212131"), lost, id="player 1"),
        pytest.param(
            "connect_four", columns(WON_WITH_THE_LAST_DISC), lost, id="last disc"
        ),
        ("tic_tac_toe", "a3 a2 b3 b2 c1 c2", lost),
        ("tic_tac_toe", "a3 b3 c3 a2 b2 c2 b1 a1 c1", won),
        ("gomoku:3,3,3", "a3 b3 c3 a2 b2 c1 c2 b1 a1", won),
        ("gomoku:5,5,3", "a1 a2 b2 b3 c3", won),
        ("gomoku:2,3,1", "b1", won),
    ],
)
def test_a_line_wins_and_its_cells_are_marked(spec, moves, rewards):
    game = compiled(spec)
    *others, last = moves.split()
    before = play(game, " ".join(others))
    state = play(game, last, before)
    assert not before.terminated
    assert state.terminated
    np.testing.assert_array_equal(game.rewards(state), rewards)
    lines = all_lines(*game.observation_shape[:2], game.line_length)
    assert set(game.winning_cells(state)) in map(set, lines)


def test_each_of_the_eight_lines_of_tic_tac_toe_wins():
    game, cells = compiled("tic_tac_toe"), list(np.ndindex(3, 3))
    lines = all_lines(3, 3, 3)
    assert len(lines) == 8
    for line in lines:
        others = [cell for cell in cells if cell not in line]
        # Two cells of the opponent cannot be a line.
        moves = [*itertools.chain(*zip(line[:2], others[:2], strict=True)), line[2]]
        state = play(game, " ".join(f"{'abc'[c]}{3 - r}" for r, c in moves))
        np.testing.assert_array_equal(game.rewards(state), won)
        assert game.winning_cells(state) == tuple(sorted(line))


def test_the_69_lines_win_and_other_evenly_spaced_cells_do_not():
    lines = {frozenset(7 * r + c for r, c in line) for line in all_lines(6, 7, 4)}
    assert len(lines) == 69
    # Evenly spaced cells in reading order, which wrap around the edges.
    cells = [
        [start + stride * i for i in range(4)]
        for start in range(42)
        for stride in range(1, 15)
        if start + stride * 3 < 42
    ]
    assert lines <= set(map(frozenset, cells))
    boards = np.zeros((len(cells), 42), bool)
    boards[np.arange(len(cells))[:, None], cells] = True
    words = bitboards(
        connect_four.CELLS, connect_four.NUM_BITS, boards.reshape(-1, 6, 7)
    )
    has_line = jax.jit(
        lambda *board: bitboard.has_line(board, 4, connect_four.DIRECTIONS)
    )
    is_line = [frozenset(row) in lines for row in cells]
    np.testing.assert_array_equal(has_line(*words), is_line)


def test_the_reflection_reverses_the_columns():
    game = compiled("connect_four")
    _, mirror = game.symmetries
    np.testing.assert_array_equal(mirror.actions, [6, 5, 4, 3, 2, 1, 0])
    seen, image = (game.observe(play(game, moves)) for moves in ("1 1 2", "7 7 6"))
    np.testing.assert_array_equal(mirror.observation(np.asarray(seen)), image)


def test_one_disc_can_complete_several_lines():
    row, rising = {(5, c) for c in range(4)}, {(5 - i, i) for i in range(4)}
    state = play(compiled("connect_four"), columns("272733374464461"))
    assert set(compiled("connect_four").winning_cells(state)) == row | rising


@pytest.mark.parametrize(
    ("spec", "moves"),
    [
        ("connect_four", columns(DRAW)),
        ("tic_tac_toe", "a3 b3 c3 b2 a2 c2 b1 a1 c1"),
        ("gomoku:2,4,3", "a1 b1 b2 a2 c1 d1 d2 c2"),
        ("gomoku:2,4,3,true", "a1 b1 b2 a2 c1 d1 d2 c2"),
        # An overline of five.
        ("gomoku:2,5,4,true", "a1 a2 b1 b2 d1 d2 e1 e2 c1 c2"),
    ],
)
def test_a_full_board_without_a_line_is_a_draw(spec, moves):
    game = compiled(spec)
    state = play(game, moves)
    assert state.terminated
    assert not game.legal_action_mask(state).any()
    np.testing.assert_array_equal(game.rewards(state), drawn)
    assert game.winning_cells(state) == ()


@pytest.mark.parametrize(
    ("spec", "moves", "text", "message"),
    [
        ("connect_four", "4 4 4 4 4 4", "4", "not legal here; legal: 1 2 3 5 6 7$"),
        ("connect_four", "", "8", "no action .* 1 2 3 4 5 6 7$"),
        ("tic_tac_toe", "b2 c1", "c1", "not legal here; .* a3 b3 c3 a2 c2 a1 b1$"),
        ("gomoku:3,3,3", "b2", "b2", "not legal here; .* a3 b3 c3 a2 c2 a1 b1 c1$"),
    ],
)
def test_an_illegal_move_is_refused_with_the_legal_ones(spec, moves, text, message):
    game = compiled(spec)
    with pytest.raises(ValueError, match=f"'{text}' is {message}"):
        game.text_to_action(play(game, moves), text)


@pytest.mark.parametrize(
    ("spec", "moves", "last_action", "labels", "rows"),
    [
        (
            *("connect_four", "4 3 2 4", 3, " 1  2  3  4  5  6  7\n"),
            4 * " .  .  .  .  .  .  .\n" + " .  .  . [O] .  .  .\n .  X  O  X  .  .  .",
        ),
        (
            *("tic_tac_toe", "b2 c1 a3", 0, "  a  b  c\n"),
            "3[X] .  .\n2 .  X  .\n1 .  .  O",
        ),
        ("gomoku:2,3,3", "a1 c2 b1", 4, "  a  b  c\n", "2 .  .  O\n1 X [X] ."),
    ],
)
def test_stones_are_drawn_and_observed_by_the_mover(
    spec, moves, last_action, labels, rows
):
    game = compiled(spec)
    state = play(game, moves)
    assert game.to_text(state, last_action) == labels + rows
    board = board_of(re.sub(r"[^XO.\n]", "", rows))
    mover = state.current_player
    expected = [board == side for side in (mover, 1 - mover)]
    np.testing.assert_array_equal(np.moveaxis(game.observe(state), -1, 0), expected)


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ("tic_tac_toe", 8),
        ("connect_four", 2),
        ("gomoku:5,5,4", 8),
        ("gomoku:5,7,4", 4),
        ("gomoku:7,5", 4),
    ],
)
def test_a_square_has_eight_symmetries_and_a_rectangle_four(spec, count):
    """Connect Four has two, because discs fall."""
    assert len(make(spec).symmetries) == count


@pytest.mark.parametrize(
    ("name", "num_moves"),
    [
        ("tic_tac_toe", 9),
        ("connect_four", 6),
        pytest.param("connect_four", 8, marks=pytest.mark.slow),
    ],
)
def test_positions_and_lines_have_the_published_counts(engine, name, num_moves):
    perft = engine("perft")
    plies = perft.enumerate_plies(make(name), num_moves)
    positions = [ply.num_positions() for ply in plies]
    assert positions == perft.NUM_POSITIONS[name][: num_moves + 1]
    lines = [ply.num_lines() for ply in plies]
    assert lines == perft.NUM_LINES[name][: num_moves + 1]


@pytest.mark.parametrize("name", ["tic_tac_toe", "gomoku:3,3,3"])
def test_tic_tac_toe_has_5478_positions_and_255168_games(engine, name):
    plies = engine("perft").enumerate_plies(make(name), 9)
    assert sum(ply.num_positions() for ply in plies) == 5_478
    assert sum(ply.num_finished_games() for ply in plies) == 255_168


def test_another_rule_is_detected(engine, random_games):
    free, exact = make("gomoku:4,6,3"), make("gomoku:4,6,3,true")
    compare = engine("gomoku").compare
    assert compare(exact, random_games(free, 41))["terminated"] > 0
    assert compare(free, random_games(exact, 41))["terminated"] > 0
    assert compare(make("gomoku:4,6,4"), random_games(free, 41))["rewards"] > 0

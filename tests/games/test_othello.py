import dataclasses

import numpy as np
import pytest
from compiled_games import (
    batched,
    board_of,
    compiled,
    legal_texts,
    picture_of,
    play,
    positions,
    single,
)

from azjax.games import host, make, othello

GAME = compiled("othello")
BLACK, WHITE = 0, 1
FIRST = "........ ........ ........ ...OX... ...XO..."
# The shortest game in which all discs of a player are flipped.
SHORTEST = "e6 f4 e3 f6 g5 d6 e7 f5 c5"


def position(picture, player):
    """Returns the position of a picture of X (black), O (white) and points.

    Missing rows at the end are empty.
    """
    rows = [row.ljust(8, ".") for row in picture.split()]
    board = board_of(" ".join((rows + 8 * ["." * 8])[:8]))
    return single(positions(othello.CELLS, othello.NUM_CELLS, board[None], player))


def picture(state):
    """Returns the rows of a position as texts, without empty rows at the end."""
    rows = picture_of(GAME, state)
    while rows and rows[-1] == "." * 8:
        rows.pop()
    return rows


def test_black_has_four_first_moves_and_rows_are_numbered_from_the_top():
    state = GAME.init()
    assert picture(state) == FIRST.split()
    assert legal_texts(GAME, state) == {"d3", "c4", "f5", "e6"}
    texts = [GAME.action_to_text(state, action) for action in (0, 7, 56, 63, 64)]
    assert texts == ["a1", "h1", "a8", "h8", "pass"]
    assert GAME.to_text(state).splitlines()[1].startswith("1")
    for text in "a1", "pass":
        with pytest.raises(ValueError, match="not legal here; legal: d3 c4 f5 e6"):
            GAME.text_to_action(state, text)


@pytest.mark.parametrize(
    ("rows", "move", "expected"),
    [
        (  # in all eight directions
            *("X..X..X. .O.O.O.. ..OOO... XOO.OX.. ..OOO... .O.O.O.. X..X..X.", "d4"),
            "X..X..X. .X.X.X.. ..XXX... XXXXXX.. ..XXX... .X.X.X.. X..X..X.",
        ),
        (  # only up to an own disc
            *(".OOX.... OO...... O.O..... X......O", "a1"),
            "XXXX.... XO...... X.O..... X......O",
        ),
        # b1 flips c1; c1 is then between c2 and no placed disc.
        ("..OX.... ..O..... ..X.....", "b1", ".XXX.... ..O..... ..X....."),
    ],
)
def test_a_disc_flips_the_rows_that_end_at_an_own_disc(rows, move, expected):
    assert picture(play(GAME, move, position(rows, BLACK))) == expected.split()


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
    boards, expected = np.full((len(cases), 64), -1), np.zeros((len(cases), 64), bool)
    for case, (start, step, length) in enumerate(cases):
        cells = start + step * np.arange(length + 2)
        is_straight = (abs(np.diff(cells % 8)) < 2).all()
        boards[case, cells[-1]] = BLACK
        boards[case, cells[1:-1]] = WHITE
        expected[case, cells if is_straight else cells[-1]] = True
    states = positions(
        othello.CELLS, othello.NUM_CELLS, boards.reshape(-1, 8, 8), BLACK
    )
    starts = np.array([start for start, _, _ in cases], np.int32)
    board = batched(GAME).board(batched(GAME).step(states, starts))
    np.testing.assert_array_equal(np.reshape(board, (-1, 64)) == BLACK, expected)
    legal = np.asarray(batched(GAME).legal_action_mask(states))
    is_legal = expected[np.arange(len(cases)), starts]
    assert 0 < is_legal.sum() < len(cases)
    np.testing.assert_array_equal(legal[np.arange(len(cases)), starts], is_legal)


def test_a_player_without_a_move_must_pass():
    state = position("XO......", WHITE)
    assert legal_texts(GAME, state) == {"pass"}
    after = play(GAME, "pass", state)
    assert not after.terminated
    assert after.current_player == BLACK
    assert picture(after) == ["XO......"]
    assert legal_texts(GAME, after) == {"c1"}
    assert "[" not in GAME.to_text(after, last_action=othello.PASS)
    mine, theirs = np.moveaxis(np.asarray(GAME.observe(state))[..., 2:], -1, 0)
    assert not mine.any()
    assert theirs.any()


@pytest.mark.parametrize(
    ("state", "action", "rewards"),
    [
        (position(FIRST, BLACK), othello.PASS, [-1, 1]),
        (position("XO......", WHITE), 2, [1, -1]),  # no pass
        (position(FIRST, BLACK), 0, [-1, 1]),  # no flip
    ],
)
def test_an_illegal_move_loses_and_does_not_change_the_discs(state, action, rewards):
    after = host.next_state(GAME, state, action)
    assert after.terminated
    np.testing.assert_array_equal(GAME.rewards(after), rewards)
    assert picture(after) == picture(state)
    assert GAME.result_text(after) == ""  # the discs are not counted


@pytest.mark.parametrize(
    ("last_row", "rewards", "result_text"),
    [
        ("......OO", [1, -1], "3 to 2"),
        (".....OOO", [0, 0], "3 to 3"),
        ("....OOOO", [-1, 1], "4 to 3"),
    ],
)
def test_the_game_ends_when_neither_player_can_move(last_row, rewards, result_text):
    state = position("XO......" + " ........" * 6 + " " + last_row, BLACK)
    assert GAME.result_text(state) == ""
    after = play(GAME, "c1", state)
    assert GAME.result_text(after) == result_text
    assert picture(after)[0] == "XXX....."
    assert after.terminated
    np.testing.assert_array_equal(GAME.rewards(after), rewards)


def test_the_game_ends_when_a_player_has_no_discs_left():
    after = play(GAME, SHORTEST)
    assert after.terminated
    board = np.asarray(GAME.board(after))
    assert ((board == BLACK).sum(), (board == WHITE).sum()) == (13, 0)
    assert GAME.result_text(after) == "13 to 0"
    np.testing.assert_array_equal(GAME.rewards(after), [1, -1])


@pytest.mark.parametrize(
    ("rows", "rewards"),
    [
        (7 * "XXXXXXXX ", [1, -1]),
        ("OXXXXXXO XOXXXXXO XXOXXXXO XXXOXXXO " + 3 * "OOOOOOOO ", [0, 0]),
        (7 * "OOOOOOOO ", [-1, 1]),
    ],
)
def test_a_full_board_is_won_by_the_player_with_more_discs(rows, rewards):
    after = play(GAME, "h8", position(rows + "XOOOOOO.", BLACK))
    assert after.terminated
    assert picture(after) == [*rows.split(), "XXXXXXXX"]
    np.testing.assert_array_equal(GAME.rewards(after), rewards)


@pytest.mark.parametrize("moves", ["", "d3", "d3 c5 d6"])
def test_planes_have_the_discs_and_the_moves_of_both_players(moves):
    state = play(GAME, moves)
    mover = int(state.current_player)
    planes = np.moveaxis(np.asarray(GAME.observe(state)), -1, 0)
    board = np.asarray(GAME.board(state))
    np.testing.assert_array_equal(planes[:2], [board == mover, board == 1 - mover])
    for plane, player in zip(planes[2:], (mover, 1 - mover), strict=True):
        turned = dataclasses.replace(state, current_player=np.int8(player))
        legal = np.asarray(GAME.legal_action_mask(turned))[: othello.PASS]
        np.testing.assert_array_equal(plane, legal.reshape(8, 8))
        assert plane.any()


def test_symmetries_keep_the_colors_of_the_initial_position():
    observation = np.asarray(GAME.observe(GAME.init()))
    assert len(GAME.symmetries) == 4
    for symmetry in GAME.symmetries:
        np.testing.assert_array_equal(symmetry.observation(observation), observation)


def test_the_number_of_games_is_the_published_one(engine):
    perft = engine("perft")
    plies = perft.enumerate_plies(make("othello"), 6)
    assert [ply.num_lines() for ply in plies] == perft.NUM_LINES["othello"][:7]


def test_the_heuristic_value_counts_moves_and_corners():
    # Black has a corner and the moves c1 and e8, White has the move e4.
    discs = "XO...... ........ ........ ........ ....X... ....X... ....O..."
    black = GAME.evaluate(position(discs, BLACK))
    lead = (2 - 1) + 4
    assert black == pytest.approx(lead / (16 + lead))
    assert GAME.evaluate(position(discs, WHITE)) == -black

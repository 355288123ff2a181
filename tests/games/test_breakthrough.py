import numpy as np
import pytest
from compiled_games import (
    bitboards,
    board_of,
    compiled,
    legal_texts,
    picture_of,
    play,
    single,
)

from azjax.games import breakthrough, host, make

GAME = compiled("breakthrough")
CELLS = 8 * np.arange(8)[:, None] + np.arange(8)  # the bits of the cells


def position(picture, player):
    """Returns the game of a picture's size, and the position in it.

    X is a piece of player 0, who moves up, O one of player 1.
    """
    board = board_of(picture)
    height, width = board.shape
    seen = board if player == 0 else board[::-1]
    state = breakthrough.State(
        men=tuple(
            single(bitboards(CELLS[:height, :width], 64, (seen == side)[None]))
            for side in (player, 1 - player)
        ),
        current_player=np.int8(player),
        outcome=np.int8(0),
        terminated=np.bool_(False),
    )
    return compiled(make("breakthrough", height=height, width=width)), state


def test_a_wrong_size_is_named():
    for value in 1, 9, 6.0, True, "6":
        for option in "height", "width":
            with pytest.raises(ValueError, match=f"{option} .* to 8: {value!r}"):
                make("breakthrough", **{option: value})
    # The home rows must not overlap.
    with pytest.raises(ValueError, match=r"height .* from 4 to 8: 3"):
        make("breakthrough:3,5")


def test_pieces_fill_the_two_home_rows():
    game = compiled("breakthrough:6,5")
    rows = ["OOOOO", "OOOOO", ".....", ".....", "XXXXX", "XXXXX"]
    assert picture_of(game, game.init()) == rows


def test_player_0_moves_up_and_player_1_down():
    texts = legal_texts(GAME, GAME.init())
    assert len(texts) == 22
    assert {"a2a3", "a2b3", "h2g3", "h2h3"} <= texts
    after = play(GAME, "a2b3")
    assert picture_of(GAME, after)[5:] == [".X......", ".XXXXXXX", "XXXXXXXX"]
    texts = legal_texts(GAME, after)
    assert len(texts) == 22
    assert {"a7a6", "a7b6", "h7g6", "h7h6"} <= texts
    # A move of player 1 uses the cells of the drawing.
    assert GAME.text_to_action(after, "a7a6") == (6 * 8 + 0) * 3 + 1
    after = play(GAME, "a7b6", after)
    assert picture_of(GAME, after)[:3] == ["OOOOOOOO", ".OOOOOOO", ".O......"]


@pytest.mark.parametrize(
    ("rows", "player", "expected"),
    [
        ("....O .OOO. ..X.. ..... ....X", 0, {"c3b4", "c3d4"}),
        ("....O ..... ..O.. .XXX. ....X", 1, {"c3b2", "c3d2"}),
        ("....O .XXX. ..X.. ..... ....X", 0, set()),
    ],
)
def test_a_piece_captures_diagonally_and_is_blocked_otherwise(rows, player, expected):
    game, state = position(rows, player)
    assert {t for t in legal_texts(game, state) if t.startswith("c3")} == expected


def test_a_captured_piece_is_removed():
    game, state = position("....O .OOO. ..X.. ..... .....", 0)
    after = play(game, "c3b4", state)
    assert picture_of(game, after) == ["....O", ".XOO.", ".....", ".....", "....."]
    assert not after.terminated


@pytest.mark.parametrize("width", range(2, 9))
def test_pieces_do_not_leave_the_board_at_its_sides(width):
    rows = ["O" * width, "." * width, "X" + "." * (width - 2) + "X", "." * width]
    game, state = position(" ".join(rows), 0)
    inner, last = "abcdefgh"[width - 2 : width]
    expected = {"a2a3", "a2b3", f"{last}2{last}3", f"{last}2{inner}3"}
    assert legal_texts(game, state) == expected


@pytest.mark.parametrize(
    ("rows", "player", "move", "rewards"),
    [
        ("..O. .X.. .O.. ..X.", 0, "b3b4", [1, -1]),  # the last row
        ("..O. .X.. .O.. ..X.", 1, "b2b1", [-1, 1]),  # the first row
        (".... ..O. .X.. ....", 0, "b2xc3", [1, -1]),  # the last piece
        ("O... ..O. .X.. ....", 0, "b2c3", [0, 0]),
    ],
)
def test_reaching_the_last_row_or_capturing_all_wins(rows, player, move, rewards):
    game, state = position(rows, player)
    after = play(game, move, state)
    assert after.terminated == any(rewards)
    np.testing.assert_array_equal(game.rewards(after), rewards)


def test_an_illegal_move_loses_and_moves_no_piece():
    after = host.next_state(GAME, GAME.init(), 0)
    assert after.terminated
    np.testing.assert_array_equal(GAME.rewards(after), [-1, 1])
    assert picture_of(GAME, after) == picture_of(GAME, GAME.init())


def test_the_observation_shows_the_movers_pieces_moving_up():
    game, state = position("O.O. .OO. .... X.X.", 1)
    own, other = np.moveaxis(np.asarray(game.observe(state)), -1, 0)
    np.testing.assert_array_equal(own[-2:], [[0, 1, 1, 0], [1, 0, 1, 0]])
    np.testing.assert_array_equal(other[0], [1, 0, 1, 0])
    assert own.sum() == 4
    assert other.sum() == 2


def test_the_reflection_exchanges_left_and_right():
    _, mirror = GAME.symmetries
    state = GAME.init()
    columns = str.maketrans("abcdefgh", "hgfedcba")
    directions = {" left": " right", " straight": " straight", " right": " left"}
    for action, image in enumerate(mirror.actions.tolist()):
        text, image_text = (GAME.action_to_text(state, a) for a in (action, image))
        start, end = text[:2].translate(columns), text[2:]
        assert image_text == start + directions.get(end, end.translate(columns))


def test_a_move_can_be_written_with_an_x_between_the_cells():
    for text in "d2e3", "d2xe3", " D2E3\n", "D2XE3":
        assert GAME.text_to_action(GAME.init(), text) == (6 * 8 + 3) * 3 + 2
    for text in "", "x", "a2x", "axb3", "a2b3x", "a2xxb3", "a2 left":
        with pytest.raises(ValueError, match="legal: "):
            GAME.text_to_action(GAME.init(), text)


def test_the_cells_of_the_last_move_are_marked_and_moves_are_arrows():
    action = GAME.text_to_action(GAME.init(), "b2c3")
    after = play(GAME, "b2c3")
    assert GAME.last_cells(after, action) == ((6, 1), (5, 2))
    answer = GAME.text_to_action(after, "b7c6")
    assert GAME.last_cells(play(GAME, "b7c6", after), answer) == ((1, 1), (2, 2))
    policy = np.eye(GAME.num_actions)[action]
    svg = GAME.to_svg(GAME.init(), policies={"search": policy})
    assert svg.count("search 100%") == 1


def test_boards_with_another_initial_position_in_open_spiel_are_refused(engine):
    with pytest.raises(ValueError, match="below 6 rows"):
        engine("breakthrough").compare(make("breakthrough:5,5"), {})


def test_the_heuristic_value_counts_pieces():
    for player, lead in (0, 1 - 3), (1, 3 - 1):
        game, state = position("OOO. .... .... X...", player)
        assert game.evaluate(state) == pytest.approx(lead / 8)

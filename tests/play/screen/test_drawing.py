import functools

import jax
import numpy as np
import pytest

from azjax import games
from azjax.play.screen.drawing import (
    Canvas,
    Frame,
    Scene,
    draw,
    frame,
    smallest,
    theme_of,
)

SPECS = [*games.available(), "go:19", "hex:19", "hex:2", "gomoku:19,19,5"]
HUGE = (300, 400)


@functools.cache
def begun(spec):
    """Returns a game that has computed its first board, in one program."""
    game = games.make(spec)
    board = np.asarray(jax.jit(lambda: game.board(game.init()))())
    vars(game).update(init=lambda: board, board=np.asarray)
    return game


def shown(name, pieces=(), room=HUGE):
    """Returns the frame, and the picture of the first position with more pieces."""
    game = begun(name)
    board = game.init().copy()
    for cell, piece in pieces:
        board[cell] = piece
    found = frame(game, theme_of(game), *room)
    assert found is not None
    return found, draw(found, Scene(board))


@pytest.mark.parametrize("spec", SPECS)
def test_a_board_fits_into_its_room_and_its_cells_are_found(spec):
    game = begun(spec)
    theme, board = theme_of(game), game.board(game.init())
    rows, columns = smallest(game, theme)
    cells = []
    for room in ((21, 45), (24, 80), (40, 100), (60, 160), HUGE):
        found = frame(game, theme, *room)
        if found is None:
            assert rows > room[0] or columns > room[1]
            cells.append(0)
            continue
        cells.append(found.cell)
        lines = draw(found, Scene(board)).split("\n")
        assert len(lines) == found.rows <= room[0]
        assert {line.cell_len for line in lines} == {found.columns}
        assert found.columns <= room[1]
        for row, column in np.ndindex(found.height, found.width):
            x = found.x(row) + column * found.cell + found.cell // 2
            assert found.cell_at(found.middle(row), x) == (row, column)
        assert found.cell_at(-1, found.x(0)) is None
        assert found.cell_at(found.middle(0), found.x(0) - 1) is None
    assert cells == sorted(cells), "the board grows with its room"


@pytest.mark.parametrize(
    ("name", "letters"),
    [("tic_tac_toe", "XO"), ("connect_four", "●○"), ("hex:3", "●○")],
)
def test_pieces_of_both_players_differ_without_colors(name, letters):
    pieces = [((1, 1), 0), ((0, 0), 1)]
    _, text = shown(name, pieces, room=(7, 19))
    assert [text.plain.count(letter) for letter in letters] == [1, 1]
    if name != "tic_tac_toe":
        _, text = shown(name, pieces)
        assert [text.plain.count(sign) for sign in ("><", "()")] == [1, 1]


def test_chess_pieces_are_drawn_on_their_squares():
    found, text = shown("chess")
    for row, piece in ((6, "♟"), (7, "♜")):
        line = text.plain.split("\n")[found.middle(row)]
        assert line[found.x(row) + found.cell // 2 - 1] == piece


def test_labels_are_drawn_at_their_rows_and_columns():
    found, text = shown("go:9", room=(24, 60))
    lines = text.plain.split("\n")
    assert lines[-1].split() == list("abcdefghj")
    assert [lines[found.middle(row)].split()[0] for row in range(9)] == list(
        "987654321"
    )


def test_the_last_move_the_cursor_and_hints_change_the_picture():
    board = np.zeros((3, 3), int)
    board[1, 1] = -1
    for name in games.available():
        game = games.make(name)
        for cell in (4, 2):
            room = Frame(theme_of(game), "abc", "321", 3, 3, cell)
            plain = draw(room, Scene(board))
            for scene in (
                Scene(board, marked=[(0, 0)]),
                Scene(board, hinted=[(1, 1)]),
                Scene(board, cursor=(1, 1)),
                Scene(board, cursor=(0, 0)),
                Scene(board, selected=(0, 0)),
            ):
                assert draw(room, scene) != plain, (name, cell, scene)


def test_pieces_without_a_theme_are_letters():
    class Other(type(games.make("tic_tac_toe"))):
        pieces = "ABCD"

    theme = theme_of(Other())
    assert [piece.letter for piece in theme.pieces] == list("ABCD")
    assert theme.pieces[0].color == theme.pieces[1].color != theme.pieces[2].color


def test_a_canvas_shows_two_pixels_in_a_character():
    canvas = Canvas(2, 3)
    canvas.paint(1, 0, np.full((2, 2), True), 0xFF0000)
    canvas.paint(1, 1, np.full((1, 1), True), 0x00FF00)
    canvas.paint(0, 1, np.full((1, 1), True), 0x0000FF)
    canvas.write(1, 2, "x", 0xFFFFFF)
    first, second = canvas.lines()
    assert first.plain == "▄▀ "
    assert second.plain == "▀▀x"


def test_a_letter_for_one_background_is_hidden_on_others():
    canvas = Canvas(1, 2)
    canvas.paint(0, 0, np.full((2, 2), True), 0xFF0000)
    canvas.write(0, 0, "ab", 0, background=0xFF0000)
    canvas.paint(0, 1, np.full((1, 1), True), 0)
    assert canvas.lines()[0].plain == "a▀"

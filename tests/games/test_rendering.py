import xml.etree.ElementTree as ET

import numpy as np
import pytest

from azjax.games import rendering

BOARD = np.array([[-1, -1, -1], [-1, 0, -1], [1, 0, -1]])
SVG = "{http://www.w3.org/2000/svg}"
DRAWINGS = [rendering.discs_to_svg, rendering.marks_to_svg]


def test_cell_a1_is_at_the_bottom_left():
    assert rendering.cell_to_text(5, 0, height=6) == "a1"
    assert rendering.text_to_cell("a1", height=6, width=7) == (5, 0)


def test_the_name_of_a_cell_can_be_read_back():
    for row, column in np.ndindex(19, 19):
        text = rendering.cell_to_text(row, column, height=19)
        assert rendering.text_to_cell(text, height=19, width=19) == (row, column)


def test_capitals_and_spaces_around_a_cell_are_allowed():
    assert rendering.text_to_cell(" B3\n", height=3, width=3) == (0, 1)


@pytest.mark.parametrize("text", ["", "a", "1a", "a0", "a4", "d1", "a1b", "a 1", "a01"])
def test_text_that_is_no_cell_is_refused_with_the_cells_there_are(text):
    with pytest.raises(ValueError, match="cells are a1 to c3"):
        rendering.text_to_cell(text, height=3, width=3)


def test_a_board_is_drawn_with_the_last_move_in_brackets():
    text = rendering.board_to_text(BOARD, (1, 1), "abc", "321")
    assert text.splitlines() == [
        "  a  b  c",
        "3 .  .  .",
        "2 . [X] .",
        "1 O  X  .",
    ]


def test_a_board_without_row_labels_and_last_move_is_drawn():
    text = rendering.board_to_text(BOARD, None, "123")
    assert text.splitlines() == [" 1  2  3", " .  .  .", " .  X  .", " O  X  ."]


def test_the_text_of_a_board_is_ascii():
    assert rendering.board_to_text(BOARD, (1, 1), "abc", "321").isascii()


@pytest.mark.parametrize("draw", DRAWINGS)
def test_a_picture_is_a_document_that_says_what_it_shows(draw):
    root = ET.fromstring(draw(BOARD, (1, 1), "abc", "321"))
    assert root.tag == SVG + "svg"
    assert root.get("role") == "img"
    title = root.findtext(SVG + "title")
    assert title is not None
    assert "2 crosses, 1 rings, last move b2" in title


@pytest.mark.parametrize("draw", DRAWINGS)
def test_a_picture_refers_to_nothing_outside(draw):
    svg = draw(BOARD, None, "abc").replace("http://www.w3.org/2000/svg", "")
    assert "http" not in svg
    assert "href" not in svg


@pytest.mark.parametrize("draw", DRAWINGS)
def test_the_last_move_changes_the_picture(draw):
    assert draw(BOARD, (1, 1), "abc") != draw(BOARD, (2, 1), "abc")
    assert draw(BOARD, (1, 1), "abc") != draw(BOARD, None, "abc")


@pytest.mark.parametrize("draw", DRAWINGS)
def test_the_two_players_differ_in_shape(draw):
    first, second = (
        {element.tag for element in ET.fromstring(draw(board, None, "")).iter()}
        for board in (np.array([[0]]), np.array([[1]]))
    )
    assert SVG + "path" in first
    assert SVG + "path" not in second


@pytest.mark.parametrize("draw", DRAWINGS)
def test_policies_over_columns_are_written_above_them(draw):
    policies = {"network": np.array([0.5, 0.3, 0.2]), "search": np.array([0, 1, 0])}
    texts = [
        element.text
        for element in ET.fromstring(draw(BOARD, None, "abc", policies=policies)).iter()
    ]
    assert {"network", "search", "50%", "30%", "20%", "100%"} <= set(texts)


@pytest.mark.parametrize("draw", DRAWINGS)
def test_policies_over_cells_are_written_into_the_empty_ones(draw):
    policy = np.arange(9).reshape(3, 3) / 36
    svg = draw(BOARD, None, "abc", policies={"network": policy})
    texts = [element.text for element in ET.fromstring(svg).iter(SVG + "text")]
    assert sum(str(text).endswith("%") for text in texts) == (BOARD < 0).sum()


@pytest.mark.parametrize("draw", DRAWINGS)
def test_a_policy_of_another_shape_is_refused(draw):
    with pytest.raises(ValueError, match=r"\(3, 3\)"):
        draw(BOARD, None, "abc", policies={"network": np.ones(4)})


@pytest.mark.parametrize("draw", DRAWINGS)
def test_names_are_escaped(draw):
    svg = draw(BOARD, None, "<&>", policies={"<a & b>": np.ones(3) / 3})
    texts = [element.text for element in ET.fromstring(svg).iter(SVG + "text")]
    assert "<a & b>" in texts

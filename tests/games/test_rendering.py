import dataclasses
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from azjax.games import rendering

BOARD = np.array([[-1, -1, -1], [-1, 0, -1], [1, 0, -1]])
SVG = "{http://www.w3.org/2000/svg}"
STYLES = [
    style for style in vars(rendering).values() if isinstance(style, rendering.Style)
]

every_style = pytest.mark.parametrize("style", STYLES, ids=lambda style: style.names[0])


def to_text(marked=(), column_labels="abc", row_labels="321", **settings):
    labels = {"column_labels": column_labels, "row_labels": row_labels}
    return rendering.board_to_text(BOARD, "XO", marked=marked, **labels, **settings)


def to_svg(style, marked=(), column_labels="abc", **settings):
    labels = {"column_labels": column_labels, "row_labels": "321"}
    return rendering.board_to_svg(style, BOARD, marked=marked, **labels, **settings)


def texts(svg):
    return [str(element.text) for element in ET.fromstring(svg).iter()]


def test_a_board_is_drawn_as_text():
    text = to_text([(1, 1)])
    assert text.splitlines() == ["  a  b  c", "3 .  .  .", "2 . [X] .", "1 O  X  ."]
    assert text.isascii()
    text = to_text(column_labels="123", row_labels="")
    assert text.splitlines() == [" 1  2  3", " .  .  .", " .  X  .", " O  X  ."]
    text = to_text(indent=1)  # the rows lean to the right
    assert text.splitlines() == ["  a  b  c", "3 .  .  .", " 2 .  X  .", "  1 O  X  ."]


@every_style
def test_a_picture_is_a_document_with_a_title_and_the_last_move(style):
    """Every piece looks different."""
    pieces = [piece(0.0, 0.0) for piece in style.pieces]
    assert len(set(pieces)) == len(style.pieces) == len(style.names)
    svg = to_svg(style, [(1, 1)])
    root = ET.fromstring(svg)
    assert root.tag == SVG + "svg"
    assert root.get("role") == "img"
    title = root.findtext(SVG + "title")
    assert title is not None
    assert f"2 {style.names[0]}, 1 {style.names[1]}" in title
    assert title.endswith("last move b2")
    assert svg not in (to_svg(style, [(2, 1)]), to_svg(style))
    # It has no external references.
    content = svg.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in content
    assert "href" not in content


@every_style
def test_the_winning_cells_are_marked_and_described(style):
    won = to_svg(style, [(1, 1)], winning=[(1, 1), (2, 0)])
    assert ET.fromstring(won).findtext(SVG + "title").endswith("won by b2 a1")
    last, *others = (
        to_svg(style, marked).splitlines()[2:]
        for marked in ([(1, 1), (2, 0)], [(1, 1)])
    )
    assert sorted(won.splitlines()[2:]) == sorted(last)
    assert others[0] != last


@every_style
def test_policies_are_drawn_over_columns_cells_or_as_arrows(style):
    policies = {"network": np.array([0.5, 0.3, 0.2]), "search": np.array([0, 1, 0])}
    words = texts(to_svg(style, policies=policies))
    assert {"network", "search", "50%", "30%", "20%", "100%"} <= set(words)
    policy = np.arange(1, 10).reshape(3, 3) / 45
    words = texts(to_svg(style, policies={"network": policy}))
    assert sum(word.endswith("%") for word in words) == (BOARD < 0).sum()
    arrows = [
        rendering.Arrow((0, 0), (2, 2), 0.75),
        rendering.Arrow((2, 0), (0, 0), 0.25),
    ]
    words = texts(to_svg(style, policies={"network": arrows}))
    assert {"network", "network 75%", "network 25%"} <= set(words)
    with pytest.raises(ValueError, match=r"\(3, 3\)"):
        to_svg(style, policies={"network": np.ones(4)})


def test_very_small_probabilities_are_not_drawn():
    policy = np.zeros((3, 3))
    policy[0, 0] = 1.0
    words = texts(to_svg(rendering.MARKS, policies={"network": policy}))
    assert [word for word in words if word.endswith("%")] == ["100%"]
    arrows = [rendering.Arrow((0, 0), (2, 2), p / 66) for p in range(12)]
    svg = to_svg(rendering.MARKS, policies={"network": arrows})
    assert "network 17%" in svg
    assert "network 2%" not in svg


def test_names_are_escaped_and_a_style_can_be_changed():
    policies = {"<a & b>": np.ones(3) / 3}
    svg = to_svg(rendering.MARKS, column_labels="<&>", policies=policies)
    assert "<a & b>" in texts(svg)
    arrows = {"<a & b>": [rendering.Arrow((0, 0), (2, 2), 1.0)]}
    svg = to_svg(rendering.MARKS, policies=arrows)
    assert "<title>&lt;a &amp; b&gt;" in svg
    assert "<a & b>" not in svg
    style = dataclasses.replace(rendering.MARKS, names=("knights", "knaves"))
    assert "2 knights, 1 knaves" in to_svg(style)

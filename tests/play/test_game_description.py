import functools
import json
from xml.etree import ElementTree

import jax
import pytest

from azjax import games
from azjax.play.game_description import describe_start
from azjax.play.server.describing import describe_position
from azjax.play.server.rules import Rules


@functools.cache
def description_of(name):
    return json.loads(json.dumps(describe_start(games.make(name), name).description))


def elements(text):
    return ElementTree.fromstring(f"<svg>{text}</svg>")


@pytest.mark.parametrize("name", games.available())
def test_every_game_is_described(name):
    game = games.make(name)
    told = description_of(name)
    height, width = told["height"], told["width"]
    board = jax.eval_shape(lambda: game.board(game.init()))
    assert (height, width) == board.shape
    assert len(told["columns"]) == width
    assert len(told["rows"]) in (0, height)
    assert told["targets"] == ("cells" if told["rows"] else "columns")
    board = told["board"]
    assert len(told["pieces"]) == len(board["pieces"]) == len(game.pieces)
    assert len(board["columnLabels"]) == width
    assert len(board["rowLabels"]) == len(told["rows"])
    assert len(board["centers"]) == height * width
    for x, y in board["centers"]:
        assert board["left"] < x < board["left"] + board["width"]
        assert board["top"] < y < board["top"] + board["height"]
    for text in (*board["pieces"], board["ground"], board["mark"]):
        assert len(elements(text))


def test_a_board_of_discs_has_a_front_with_a_hole_for_each_cell():
    front = description_of("connect_four")["board"]["front"]
    (plate,) = elements(front)
    assert plate.get("d").count("M") == 1 + 42
    assert plate.get("fill-rule") == "evenodd"


def test_only_boards_with_two_sides_are_turned():
    turned = {
        name
        for name in games.available()
        if description_of(name)["board"]["isTwoSided"]
    }
    assert turned == {"breakthrough", "chess"}


@pytest.mark.parametrize("name", ["connect_four", "tic_tac_toe"])
def test_the_initial_position_is_described_before_the_rules_are_compiled(
    name, monkeypatch
):
    game = games.make(name)
    rules = Rules(game, 1)
    for method in ("step", "legal_action_mask"):
        monkeypatch.setattr(type(game), method, None)
    preview = json.loads(json.dumps(describe_start(game, name)._asdict()))
    monkeypatch.undo()
    first = {**describe_position(rules, ()), "moves": []}
    assert preview["position"] == first


@pytest.mark.slow
def test_a_game_drawn_by_another_library_has_a_picture_of_each_position():
    rules = Rules(games.make("pgx:animal_shogi"), 10)
    told = description_of("pgx:animal_shogi")
    assert told["board"]["pieces"] == []
    assert len(told["pieces"]) == len(rules.game.pieces)
    assert len(told["board"]["centers"]) == 12
    position = json.loads(json.dumps(describe_position(rules, ())))
    assert all(move["cells"] == [] for move in position["moves"])
    assert 'viewBox="0 0 ' in position["picture"]

import importlib
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import bitboard, breakthrough, make

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
GAME = make("breakthrough")


@pytest.fixture
def engine(monkeypatch):
    """Returns the comparison with OpenSpiel."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("engines.breakthrough")


def position(picture, player):
    """Returns the game of a picture's size, and the position in it.

    X is a piece of player 0, who moves up, O one of player 1.
    """
    board = np.array([list(row) for row in picture.split()])
    height, width = board.shape
    own, other = "XO" if player == 0 else "OX"
    seen = board if player == 0 else board[::-1]
    cells = 8 * np.arange(height)[:, None] + np.arange(width)
    men = tuple(bitboard.constant(cells[seen == side], 64) for side in (own, other))
    state = breakthrough.State(
        men=jax.tree.map(jnp.uint32, men),
        current_player=jnp.int8(player),
        outcome=jnp.int8(0),
        terminated=jnp.bool(False),
    )
    return make("breakthrough", height=height, width=width), state


def picture(game, state):
    board = np.array(list("XO."))[np.asarray(game.board(state))]
    return ["".join(row) for row in board]


def play(game, state, text):
    return game.step(state, game.text_to_action(state, text))


def legal_texts(game, state):
    actions = np.flatnonzero(game.legal_action_mask(state))
    return {game.action_to_text(state, int(action)) for action in actions}


@pytest.mark.parametrize("option", ["height", "width"])
@pytest.mark.parametrize("value", [1, 9, 6.0, True, "6"])
def test_an_invalid_size_is_named(option, value):
    with pytest.raises(ValueError, match=f"{option} .* to 8: {value!r}"):
        make("breakthrough", **{option: value})


def test_home_rows_must_not_overlap():
    with pytest.raises(ValueError, match=r"height .* from 4 to 8: 3"):
        make("breakthrough:3,5")


def test_pieces_fill_the_two_home_rows():
    game = make("breakthrough:6,5")
    rows = ["OOOOO", "OOOOO", ".....", ".....", "XXXXX", "XXXXX"]
    assert picture(game, game.init()) == rows


def test_player_0_moves_up_from_the_bottom():
    state = GAME.init()
    texts = legal_texts(GAME, state)
    assert len(texts) == 22
    assert {"a2a3", "a2b3", "h2g3", "h2h3"} <= texts
    after = play(GAME, state, "a2b3")
    assert picture(GAME, after)[5:] == [".X......", ".XXXXXXX", "XXXXXXXX"]


def test_player_1_moves_down_from_the_top():
    state = play(GAME, GAME.init(), "a2a3")
    texts = legal_texts(GAME, state)
    assert len(texts) == 22
    assert {"a7a6", "a7b6", "h7g6", "h7h6"} <= texts
    after = play(GAME, state, "a7b6")
    assert picture(GAME, after)[:3] == ["OOOOOOOO", ".OOOOOOO", ".O......"]


@pytest.mark.parametrize("player", [0, 1])
def test_a_piece_captures_diagonally_and_is_blocked_straight_ahead(player):
    rows = "....O .OOO. ..X.. ..... ....X"
    if player == 1:
        rows = "....O ..... ..O.. .XXX. ....X"
    game, state = position(rows, player)
    center = {text for text in legal_texts(game, state) if text.startswith("c3")}
    assert center == ({"c3b4", "c3d4"} if player == 0 else {"c3b2", "c3d2"})


def test_a_captured_piece_is_removed():
    game, state = position("....O .OOO. ..X.. .....", 0)
    after = play(game, state, "c2b3")
    assert picture(game, after) == ["....O", ".XOO.", ".....", "....."]
    assert not after.terminated


def test_an_own_piece_cannot_be_captured():
    game, state = position("....O .XXX. ..X.. .....", 0)
    assert not {text for text in legal_texts(game, state) if text.startswith("c2")}


@pytest.mark.parametrize("width", range(2, 9))
def test_pieces_do_not_leave_the_board_at_its_sides(width):
    rows = ["O" * width, "." * width, "X" + "." * (width - 2) + "X", "." * width]
    game, state = position(" ".join(rows), 0)
    last = "abcdefgh"[width - 1]
    inner = "abcdefgh"[width - 2]
    expected = {"a2a3", "a2b3", f"{last}2{last}3", f"{last}2{inner}3"}
    assert legal_texts(game, state) == expected


@pytest.mark.parametrize("player", [0, 1])
def test_reaching_the_last_row_wins(player):
    game, state = position("..O. .X.. .O.. ..X.", player)
    after = play(game, state, "b3b4" if player == 0 else "b2b1")
    assert after.terminated
    np.testing.assert_array_equal(
        game.rewards(after), [1, -1] if not player else [-1, 1]
    )


def test_capturing_the_last_piece_wins():
    game, state = position(".... ..O. .X.. ....", 0)
    after = play(game, state, "b2xc3")
    assert after.terminated
    np.testing.assert_array_equal(game.rewards(after), [1, -1])


def test_capturing_another_piece_does_not_end_the_game():
    game, state = position("O... ..O. .X.. ....", 0)
    assert not play(game, state, "b2c3").terminated


def test_an_illegal_move_loses_and_moves_no_piece():
    after = GAME.step(GAME.init(), 0)
    assert after.terminated
    np.testing.assert_array_equal(GAME.rewards(after), [-1, 1])
    assert picture(GAME, after) == picture(GAME, GAME.init())


def test_the_observation_shows_the_movers_pieces_moving_up():
    game, state = position("O.O .OO ... X.X ...", 1)
    own, other = np.moveaxis(np.asarray(game.observe(state)), -1, 0)
    np.testing.assert_array_equal(own[-2:], [[0, 1, 1], [1, 0, 1]])
    np.testing.assert_array_equal(other[1], [1, 0, 1])
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


@pytest.mark.parametrize("text", ["d2e3", "d2xe3", " D2E3\n", "D2XE3"])
def test_a_move_can_be_written_with_an_x_between_the_cells(text):
    assert GAME.text_to_action(GAME.init(), text) == (6 * 8 + 3) * 3 + 2


@pytest.mark.parametrize("text", ["", "x", "a2x", "axb3", "a2b3x", "a2xxb3", "a2 left"])
def test_the_text_of_an_illegal_move_is_refused(text):
    with pytest.raises(ValueError, match="legal: "):
        GAME.text_to_action(GAME.init(), text)


def test_a_move_of_player_1_uses_the_cells_of_the_drawing():
    state = play(GAME, GAME.init(), "a2a3")
    assert GAME.text_to_action(state, "a7a6") == (6 * 8 + 0) * 3 + 1


def test_both_cells_of_the_last_move_are_marked():
    state = GAME.init()
    action = GAME.text_to_action(state, "b2c3")
    after = GAME.step(state, action)
    assert GAME.last_cells(after, action) == ((6, 1), (5, 2))
    answer = GAME.text_to_action(after, "b7c6")
    assert GAME.last_cells(GAME.step(after, answer), answer) == ((1, 1), (2, 2))


def test_moves_are_drawn_as_arrows():
    policy = np.zeros(GAME.num_actions)
    policy[GAME.text_to_action(GAME.init(), "b2c3")] = 1
    assert (
        GAME.to_svg(GAME.init(), policies={"search": policy}).count("search 100%") == 1
    )


def test_open_spiel_agrees_at_every_position(verify_games, engine):
    keys = jax.random.split(jax.random.key(1), 150)
    counts = engine.compare(GAME, verify_games.make_recorder(GAME)(keys))
    assert counts.pop("positions") > 20 * 150
    assert not any(counts.values())


def test_open_spiel_agrees_on_a_small_board(verify_games, engine):
    game = make("breakthrough:6,5")
    keys = jax.random.split(jax.random.key(2), 150)
    record = verify_games.make_recorder(game)(keys)
    counts = engine.compare(game, record)
    assert counts.pop("positions") > 20 * 150
    assert not any(counts.values())
    # the comparison detects a wrong rule
    wrong = {name: np.array(facts[:10]) for name, facts in record.items()}
    wrong["legal"][:, 2, 0] ^= True
    wrong["rewards"] *= -1
    counts = engine.compare(game, wrong)
    assert counts["legal"] == counts["rewards"] == 10


def test_boards_with_another_initial_position_in_open_spiel_are_refused(engine):
    with pytest.raises(ValueError, match="below 6 rows"):
        engine.compare(make("breakthrough:5,5"), {})


def test_the_heuristic_value_counts_pieces():
    game, state = position("OOO\n...\n...\n...\nX..", player=0)
    assert game.evaluate(state) == pytest.approx((1 - 3) / 6)
    game, state = position("OOO\n...\n...\n...\nX..", player=1)
    assert game.evaluate(state) == pytest.approx((3 - 1) / 6)

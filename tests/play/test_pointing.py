import pytest

from azjax import games
from azjax.games.host import first_state, legal_actions, next_state
from azjax.play.screen.board import Pointing


def position(name, *moves):
    game = games.make(name)
    state = first_state(game)
    for text in moves:
        state = next_state(game, state, game.text_to_action(state, text))
    return game, state, Pointing(game, state, legal_actions(game, state))


@pytest.mark.parametrize("name", sorted(set(games.available())))
def test_every_legal_move_can_be_made_by_cells_or_has_a_name(name):
    game, state, pointing = position(name)
    for action in legal_actions(game, state):
        cells = game.action_cells(state, action)
        found = pointing.action(cells) if cells else action
        assert found == action
        assert (action in pointing.unplaced) == (not cells)
        assert len(cells) < 2 or pointing.can_begin(cells[0])


def test_connect_four_needs_only_a_column():
    _, _, pointing = position("connect_four", "4")
    assert pointing.action(((0, 3),)) == 3
    assert pointing.action(((5, 3),)) == 3
    assert pointing.hints(None) == [(4 if c == 3 else 5, c) for c in range(7)]


def test_a_piece_is_selected_before_its_target():
    game, state, pointing = position("breakthrough")
    start = (6, 2)
    assert pointing.action((start,)) is None
    assert pointing.can_begin(start)
    assert sorted(pointing.hints(start)) == [(5, 1), (5, 2), (5, 3)]
    action = pointing.action((start, (5, 3)))
    assert game.action_to_text(state, action) == "c2d3"


def test_a_pawn_promotes_to_a_queen_by_default():
    game = games.make("chess")
    state = game.from_fen("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    pointing = Pointing(game, state, legal_actions(game, state))
    action = pointing.action(((1, 0), (0, 0)))
    assert game.action_to_text(state, action) == "a7a8q"


def test_a_pass_has_a_name():
    game, state, pointing = position("go:5")
    assert [game.action_to_text(state, a) for a in pointing.unplaced] == ["pass"]


def test_hints_are_shown_if_few_cells_are_legal():
    assert len(position("othello")[2].hints(None)) == 4
    assert position("go:5")[2].hints(None) == []
    assert position("tic_tac_toe")[2].hints(None) == []

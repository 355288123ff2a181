import unittest.mock

import pytest

from azjax import games, players

GAME = games.make("tic_tac_toe")


def ask(*answers):
    """Returns the decision after these answers, and the output."""
    written, source = [], unittest.mock.Mock(side_effect=answers)
    session = players.HumanPlayer(source, written.append).start_session(GAME, seed=0)
    try:
        return session.choose(GAME.init(), []), written
    finally:
        session.close()


def test_the_board_is_printed_before_asking():
    decision, written = ask("b2")
    assert decision == players.MoveDecision(4)
    assert written == ["\n" + GAME.to_text(GAME.init())]


def test_invalid_input_is_explained_and_asked_again():
    decision, written = ask("", "z9", " B2 ")
    assert decision.action == 4
    assert "'z9' is no action of tic_tac_toe" in written[2]


@pytest.mark.parametrize(
    ("answer", "reason"), [("resign", "resigned"), (EOFError, "end of input")]
)
def test_resigning_or_the_end_of_input_forfeits(answer, reason):
    with pytest.raises(players.ForfeitError, match=reason):
        ask(answer)


def test_human_loads_a_human_player():
    player = players.load("human")
    assert isinstance(player, players.HumanPlayer)
    assert isinstance(player, players.ExternalPlayer)
    with pytest.raises(ValueError, match="unknown player 'human:x'"):
        players.load("human:x")

import pytest

from azjax import games, players

GAME = games.make("tic_tac_toe")


def ask(*lines):
    """Returns what a person's seat chose with these answers, and what was written."""
    answers, written = iter(lines), []

    def read(prompt):
        line = next(answers)
        if isinstance(line, type):
            raise line
        return line

    seat = players.HumanPlayer(read, written.append).start_session(GAME, seed=0)
    try:
        return seat.choose(GAME.init(), []), written
    finally:
        seat.close()


def test_a_person_is_shown_the_board_and_asked_for_a_move():
    decision, written = ask("b2")
    assert decision == players.MoveDecision(4)
    assert written == ["\n" + GAME.to_text(GAME.init())]


def test_what_is_no_move_is_explained_and_asked_again():
    decision, written = ask("", "z9", " B2 ")
    assert decision.action == 4
    assert "'z9' is no action of tic_tac_toe" in written[2]


@pytest.mark.parametrize(
    ("answer", "reason"), [("resign", "resigned"), (EOFError, "nobody answers")]
)
def test_a_person_may_give_up(answer, reason):
    with pytest.raises(players.ForfeitError, match=reason):
        ask(answer)


def test_a_person_is_named_human():
    player = players.load("human")
    assert isinstance(player, players.HumanPlayer)
    assert isinstance(player, players.ExternalPlayer)
    with pytest.raises(ValueError, match="unknown player 'human:x'"):
        players.load("human:x")

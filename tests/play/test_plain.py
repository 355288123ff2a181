import pytest
from play.heads import Heads

from azjax import games, players
from azjax.play.plain import Plain
from azjax.play.session import Background, Session

GAME = games.make("tic_tac_toe")


@pytest.fixture
def noted():
    """Messages about loading and compilation."""
    return []


@pytest.fixture
def converse(opponent, noted):
    """Plays with these input lines; returns prompts and output."""

    def call(lines, user=0, load=None, opponent=opponent, game=GAME):
        answers, asked, written = iter([*lines, EOFError]), [], []

        def read(prompt):
            asked.append(prompt)
            line = next(answers)
            if isinstance(line, type):
                raise line
            return line

        session = Session(game, opponent, Background(), name="it", user=user)
        interface = Plain(session, read, written.append, noted.append)
        interface.begin(load)
        interface.run()
        assert session.background.close(seconds=60)
        return asked, written

    return call


def boards(written):
    return [text for text in written if text.count("\n") >= 3 and "a  b  c" in text]


def test_a_game_is_played_to_the_users_win(converse, noted):
    asked, written = converse(["hint", "b2", "b2", "c3", "a1"])
    assert "try a3" in written
    assert written.count("it plays a3 (expects +0.50 for the rings)") == 1
    assert "a3 b3 c3 a2 b2 c2 a1 b1 c1" in asked[0]
    assert "b2" not in asked[2]
    assert "'b2' is not legal here; legal: b3 c3 a2 c2 a1 b1 c1" in written
    assert "game is over" in asked[5]
    assert written[-1] == "you win"
    # The board is shown before each move and at the end.
    shown = boards(written)
    assert [board.count("X") for board in shown] == [0, 1, 2, 3]
    assert [board.count("O") for board in shown] == [0, 1, 2, 2]
    assert noted == [], "nothing is compiled"


def test_a_game_is_played_to_the_users_loss_as_second(converse):
    asked, written = converse(["a2", "b2"], user=1)
    assert written[-1] == "you lose"
    assert "a3" not in asked[0]


def test_an_invalid_move_is_an_error_and_asked_again(converse):
    wrong = ["z9", "", "b", "22", "b2b2", "née", "-1", "\x00"]
    asked, written = converse([*wrong, "b2", "c3", "a1"])
    assert written[-1] == "you win"
    assert set(asked[:9]) == {asked[0]}
    assert not any("\n" in text for text in written[2:10])
    assert len(boards(written)) == 4, "the board is not shown again"


def test_the_analysis_is_written_on_request(converse):
    _, written = converse(["analysis", "b2", "analysis", "c3"])
    sides = [
        text.partition("+0.50 for the ")[2].split()[0]
        for text in written
        if text.startswith("  expected result: +0.50 for the ")
    ]
    assert sides == ["crosses", "rings", "crosses"]
    assert any(text.split() == ["b3", "100.0%"] for text in written)


def test_moves_are_undone(converse):
    _, written = converse(["b2", "undo", "redo", "back", "a1"])
    marks = [board.count("X") for board in boards(written)]
    assert marks == [0, 1, 0, 1, 0, 1]


def test_commands_are_accepted_after_the_end(converse):
    _, written = converse(["b2", "c3", "a1", "zz", "hint", "back", "c2", "new", "b2"])
    assert "you win" in written
    assert "'zz' cannot be played: the game is over" in written
    assert "the game is over" in written
    assert boards(written)[-1].count("X") == 1


def test_help_names_the_commands(converse):
    _, written = converse(["help"])
    assert "take back your last move" in written[-1]


def test_an_opponent_that_fails_is_reported(converse, opponent):
    original = opponent.start_session

    def start_session(game, seed):
        seat = original(game, seed)
        seat.is_dead = True
        return seat

    opponent.start_session = start_session
    _, written = converse(["hint", "b2", "save /proc/nothing"])
    assert "no advice: the engine died" in written
    assert "it forfeits: the engine died" in written
    assert "you win: the engine died" in written
    assert "/proc/nothing" in written[-1]


def test_the_compilation_of_the_opponent_is_announced(converse, noted):
    asked, _ = converse(["b2"], opponent=players.RandomPlayer(GAME))
    assert noted == ["compiling it ..."]
    assert "your move" in asked[0]


@pytest.mark.parametrize("end", ["quit", "q", " quit ", EOFError])
def test_the_user_can_stop_at_any_time(converse, end):
    asked, written = converse(["b2", end])
    assert len(asked) == 2
    assert boards(written)[-1].count("X") == 1


def test_an_interrupt_is_raised_to_the_command(converse):
    with pytest.raises(KeyboardInterrupt):
        converse(["b2", KeyboardInterrupt])


def test_a_saved_game_that_cannot_be_loaded_is_raised(converse, tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        converse([], load=str(tmp_path / "nothing"))


def test_outcomes_of_chance_are_written(converse):
    asked, written = converse(["b2", "back"], game=Heads())
    shown = [text for text in written[1:] if "heads" in text]
    once = "heads: it plays a3 (expects +0.50 for the rings)"
    assert shown == ["heads", once, "heads", "heads"]
    assert "[O]" in boards(written)[1], "the last move is marked"
    assert asked[0] == asked[2] == "your move (a3 b3 c3 a2 b2 c2 a1 b1 c1): "

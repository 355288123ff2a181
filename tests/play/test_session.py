import pytest

from azjax import games, players
from azjax.play.session import COMMANDS, Session, help_lines, parse

GAME = games.make("tic_tac_toe")


@pytest.fixture
def session(opponent):
    """A session in which the user moves first."""
    session = Session(GAME, opponent, name="first-cell", user=0)
    session.begin()
    return session


def moves(session):
    return " ".join(move.text for move in session.controller.moves)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("hint", ("hint", "")),
        ("  HINT ", ("hint", "")),
        ("undo", ("back", "")),
        ("redo", ("forward", "")),
        ("q", ("quit", "")),
        ("?", ("help", "")),
        ("save", ("save", "")),
        ("save My Game.txt ", ("save", "My Game.txt")),
        ("load x", ("load", "x")),
        ("b2", None),
        ("hint b2", None),
        ("pass", None),
        ("swap", None),
        ("", None),
        ("hints", None),
    ],
)
def test_a_line_is_a_command_or_not(text, command):
    assert parse(text) == command


def test_the_end_of_a_game_is_described(tmp_path):
    game = games.make("go:2,0.5")
    session = Session(game, players.HumanPlayer(), name="human", user=0)
    session.begin()
    for text in ("a1", "pass", "pass"):
        session.do(text)
    assert session.outcome() == "the black stones win: B+3.5"
    session.do(f"save {tmp_path / 'x'}")
    assert "result: first wins\nending: B+3.5\n" in (tmp_path / "x").read_text()


def test_every_command_is_explained():
    text = "\n".join(help_lines())
    for command in COMMANDS:
        assert all(name in text for name in command.names)
        assert command.help in text


@pytest.mark.parametrize("name", games.available())
def test_no_command_hides_a_move(name):
    game = games.make(name)
    names = {name for command in COMMANDS for name in command.names}
    if name != "chess":  # illegal actions can have other names
        state = game.init()
        texts = (game.action_to_text(state, a) for a in range(game.num_actions))
        assert not names & set(texts)


def test_an_invalid_line_is_an_error_and_keeps_the_game(session):
    for text in ("z9", "hint me", "née", "-1", "b2b2", "load"):
        with pytest.raises(ValueError, match=r"no action of|load FILE"):
            session.do(text)
    with pytest.raises(ValueError, match="`help`"):
        session.do(" ")
    assert moves(session) == ""


def test_a_hint_is_the_opponents_move_and_a_move_is_answered(session):
    session.do("hint")
    assert session.latest_decision()[1].action == 0
    assert session.do(" B2 ") == ""
    assert moves(session) == "b2 a3"
    ply, decision = session.latest_decision()
    assert (ply, decision.action) == (1, 0)
    session.do("back")
    assert moves(session) == ""
    session.do("forward")
    assert moves(session) == "b2 a3"
    assert session.do("new") == "a new game"
    assert moves(session) == ""
    with pytest.raises(ValueError, match="forward"):
        session.do("forward")


def test_sides_are_changed_and_changed_again(session):
    session.do("b2")
    assert session.do("sides") == "you have the rings"
    assert moves(session) == "b2 a3 b3"
    assert session.player_names == ("first-cell", "human")
    session.do("c3")
    session.do("sides")
    assert moves(session) == "b2 a3 b3 c3 a2 c2"
    assert session.player_names == ("human", "first-cell")


def test_the_opponent_plays_for_both_to_the_end(session):
    assert session.do("auto") == "first-cell plays both sides"
    assert session.controller.result == (1.0, -1.0)
    assert session.outcome() == "the crosses win"
    assert session.player_names == ("first-cell", "first-cell")


def test_undo_stops_a_game_that_plays_itself(opponent, later):
    session = Session(GAME, opponent, name="it", user=0, run=later)
    session.begin()
    session.do("auto")
    later.work()
    later.work()
    session.do("back")
    later.work()
    assert moves(session) == ""
    assert not session.is_auto
    assert session.controller.is_persons_turn


def test_the_analysis_advises_at_each_turn_with_values_of_the_first_player(session):
    assert session.do("analysis") == "the analysis is on"
    assert session.latest_decision()[0] == 0
    session.do("b2")
    ply, _ = session.latest_decision()
    assert ply == 2, "for the position, not for the opponent's last move"
    assert session.values() == [0.5, -0.5, 0.5]
    for line in ("back", "new"):
        session.do(line)
        assert session.values() == [0.5]
    session.do("b2")
    assert session.do("analysis") == "the analysis is off"
    session.do("c3")
    assert session.latest_decision()[0] == 3


def test_a_game_is_saved_and_loaded(session, tmp_path, opponent):
    session.do("b2")
    path = tmp_path / "my game.txt"
    assert session.do(f"save {path}") == f"saved in {path}"
    session.do("c3")
    session.do("save")
    other = Session(GAME, opponent, name="it", user=1)
    said = other.begin(str(path))
    assert said == f"loaded {path}: human against first-cell, 4 moves"
    assert moves(other) == "b2 a3 c3 b3"
    assert other.user == 0, "the person has the side that it had"


def test_a_game_without_a_name_gets_one(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session.do("b2")
    session.do("save")
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("tic_tac_toe-")
    session.do("save")
    assert [path] == list(tmp_path.iterdir())


def test_an_invalid_file_is_an_error_and_keeps_the_game(session, tmp_path):
    (tmp_path / "thesis").write_text("words")
    session.do("b2")
    for line, says in [
        (f"load {tmp_path}/nothing", "No such file or directory"),
        (f"load {tmp_path}/thesis", "is not a saved game of azjax"),
        (f"load {tmp_path}", "Is a directory"),
        (f"save {tmp_path}/thesis", "File exists"),
        (f"save {tmp_path}/nowhere/x", "No such file or directory"),
    ]:
        with pytest.raises(ValueError, match=says) as error:
            session.do(line)
        assert str(tmp_path) in str(error.value)
    assert moves(session) == "b2 a3"
    assert (tmp_path / "thesis").read_text() == "words"


def test_a_failed_opponent_loses_and_its_game_is_saved(session, opponent, tmp_path):
    session.do("b2")
    opponent.sessions[0].is_dead = True
    session.do("c3")
    assert session.outcome() == "you win: the engine died"
    session.do(f"save {tmp_path}/x")
    assert "first wins, the other side could" in (tmp_path / "x").read_text()


@pytest.mark.parametrize("line", ["back", "sides", "auto", "new"])
def test_a_failed_opponent_is_replaced(session, opponent, line):
    opponent.sessions[0].is_dead = True
    session.do("b2")
    session.do(line)
    assert len(opponent.sessions) == 2
    assert opponent.sessions[0].is_closed
    assert session.controller.forfeit is None


def test_an_opponent_that_does_not_start_is_explained():
    class Broken:
        def start_session(self, game, seed):
            raise players.ForfeitError("no such program")

    with pytest.raises(ValueError, match="gtp:x: no such program"):
        Session(GAME, Broken(), name="gtp:x", user=0)


def test_the_game_starts_when_the_opponent_is_compiled(later):
    opponent = players.RandomPlayer(GAME)
    session = Session(GAME, opponent, name="it", user=1, run=later)
    session.begin()
    controller = session.controller
    assert (controller.is_started, controller.thinking) == (False, None)
    assert controller.seconds(0) == 0
    with pytest.raises(ValueError, match="not your turn"):
        session.do("b2")
    later.work()
    assert controller.is_started
    later.work()
    assert len(controller.moves) == 1


def test_a_saved_game_is_loaded_before_the_opponent_is_compiled(later, tmp_path):
    opponent = players.RandomPlayer(GAME)
    session = Session(GAME, opponent, name="it", user=0, run=later)
    with pytest.raises(ValueError, match="No such file"):
        session.begin(str(tmp_path / "nothing"))
    assert later.waiting == []


def test_an_error_in_compilation_is_raised(monkeypatch):
    def fail(player, game):
        raise ZeroDivisionError

    monkeypatch.setattr("azjax.play.session.compile_choice", fail)
    session = Session(GAME, players.RandomPlayer(GAME), name="it", user=0)
    with pytest.raises(ZeroDivisionError):
        session.begin()


def test_two_persons_share_a_board():
    session = Session(GAME, players.HumanPlayer(), name="human", user=0)
    session.begin()
    for text in ("a3", "a2", "b3", "b2"):
        session.do(text)
    for line in ("hint", "sides", "auto", "analysis"):
        with pytest.raises(ValueError, match="two people play"):
            session.do(line)
    session.do("back")
    assert moves(session) == "a3 a2 b3"
    session.do("b2")
    session.do("c3")
    assert session.outcome() == "the crosses win"
    assert session.player_names == ("human", "human")


def test_quit_only_sets_a_flag(session, opponent):
    session.do("quit")
    assert session.is_left
    assert not opponent.sessions[0].is_closed
    session.close()
    assert opponent.sessions[0].is_closed

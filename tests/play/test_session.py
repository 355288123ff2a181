import threading
from concurrent.futures import Future

import pytest
from coin_toss import CoinToss
from play.heads import Heads

from azjax import games, players
from azjax.games import registry
from azjax.games.host import waits_for_chance
from azjax.play.session import (
    COMMANDS,
    AdviceFailed,
    Advised,
    Background,
    Forfeited,
    GameOver,
    Jumped,
    Moved,
    Session,
    Thinks,
    help_lines,
    parse,
)
from azjax.players import MoveDecision

GAME = games.make("tic_tac_toe")


def at_once(work, then):
    """An executor that computes in the calling thread."""
    outcome = Future()
    try:
        outcome.set_result(work())
    except Exception as error:
        outcome.set_exception(error)
    then(outcome)


def make_session(opponent, run=at_once, *, game=GAME, user=0, **settings):
    return Session(game, opponent, run, name="first-cell", user=user, **settings)


@pytest.fixture
def session(opponent):
    """A session in which the user moves first."""
    session = make_session(opponent)
    session.begin()
    return session


@pytest.fixture
def events(session):
    """The later events of the session."""
    seen = []
    session.observe(seen.append)
    return seen


@pytest.fixture
def persons():
    """A session of two persons."""
    session = make_session(players.HumanPlayer())
    session.begin()
    return session


def do(session, *lines):
    for line in lines:
        session.do(line)


def moves(session):
    return " ".join(move.text for move in session.moves)


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
    session = make_session(players.HumanPlayer(), game=games.make("go:2,0.5"))
    session.begin()
    do(session, "a1", "pass", "pass")
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


def test_an_invalid_line_is_an_error_and_keeps_the_game(session, events):
    for text in ("z9", "hint me", "née", "-1", "b2b2", "load"):
        with pytest.raises(ValueError, match=r"no action of|load FILE"):
            session.do(text)
    with pytest.raises(ValueError, match="`help`"):
        session.do(" ")
    assert (moves(session), events) == ("", [])
    do(session, "b2")
    with pytest.raises(ValueError, match="'b2' is not legal here"):
        do(session, "b2")
    assert moves(session) == "b2 a3"


def test_a_hint_is_the_opponents_move_and_a_move_is_answered(session):
    session.do("hint")
    assert session.latest_decision()[1].action == 0
    assert moves(session) == ""
    assert session.do(" B2 ") == ""
    assert moves(session) == "b2 a3"
    ply, decision = session.latest_decision()
    assert (ply, decision.action) == (1, 0)
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
    assert session.result == (1.0, -1.0)
    assert session.outcome() == "the crosses win"
    assert session.player_names == ("first-cell", "first-cell")


def test_undo_stops_a_game_that_plays_itself(opponent, later):
    session = make_session(opponent, later)
    session.begin()
    session.do("auto")
    later.work()
    later.work()
    session.do("back")
    later.work()
    assert moves(session) == ""
    assert not session.is_auto
    assert session.is_persons_turn


def test_the_analysis_advises_at_each_turn_with_values_of_the_first_player(
    session, events
):
    assert session.do("analysis") == "the analysis is on"
    assert session.latest_decision()[0] == 0
    session.do("b2")
    kinds = [type(event) for event in events]
    assert kinds == [Thinks, Advised, Moved, Thinks, Moved, Thinks, Advised]
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
    other = make_session(opponent, user=1)
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


def test_a_failed_opponent_loses_and_its_game_is_saved(
    session, events, opponent, tmp_path
):
    session.do("b2")
    opponent.sessions[0].is_dead = True
    session.do("c3")
    assert events[-2:] == [Forfeited(1, "the engine died"), GameOver((1.0, -1.0))]
    assert session.outcome() == "you win: the engine died"
    assert moves(session) == "b2 a3 c3", "nothing is lost"
    session.do(f"save {tmp_path}/x")
    assert "first wins, the other side could" in (tmp_path / "x").read_text()


@pytest.mark.parametrize("line", ["back", "sides", "auto", "new"])
def test_a_failed_opponent_is_replaced(session, opponent, line):
    opponent.sessions[0].is_dead = True
    session.do("b2")
    session.do(line)
    assert len(opponent.sessions) == 2
    assert opponent.sessions[0].is_closed
    assert session.forfeit is None


@pytest.mark.parametrize("line", ["sides", "auto"])
def test_a_redo_replaces_an_opponent_that_failed_with_moves_ahead(
    session, opponent, line
):
    do(session, "b2", "c3", "back", "back")
    opponent.sessions[0].is_dead = True
    session.do(line)
    assert session.forfeit is not None
    do(session, "forward")
    assert session.forfeit is None
    assert [each.is_closed for each in opponent.sessions] == [True, False]
    assert moves(session) == ("b2" if line == "sides" else "b2 a3")
    assert opponent.sessions[1].asked == []
    session.do("c1")
    assert session.forfeit is None
    assert len(opponent.sessions[1].asked) == 1


def test_an_opponent_that_does_not_start_is_explained():
    class Broken:
        def start_session(self, game, seed):
            raise players.ForfeitError("no such program")

    with pytest.raises(ValueError, match="first-cell: no such program"):
        make_session(Broken())


def test_the_game_starts_when_the_opponent_is_compiled(later):
    opponent = players.RandomPlayer(GAME)
    session = make_session(opponent, later, user=1)
    session.begin()
    assert (session.is_started, session.thinking) == (False, None)
    assert session.seconds(0) == 0
    with pytest.raises(ValueError, match="not your turn"):
        session.do("b2")
    later.work()
    assert session.is_started
    later.work()
    assert len(session.moves) == 1


def test_a_saved_game_is_loaded_before_the_opponent_is_compiled(later, tmp_path):
    opponent = players.RandomPlayer(GAME)
    session = make_session(opponent, later)
    with pytest.raises(ValueError, match="No such file"):
        session.begin(str(tmp_path / "nothing"))
    assert later.waiting == []


def test_an_error_in_compilation_is_raised(session, later):
    session = make_session(players.RandomPlayer(GAME), later)
    session.begin()
    _, then = later.waiting.pop()
    with pytest.raises(ZeroDivisionError):
        at_once(lambda: 1 // 0, then)


def test_two_persons_share_a_board(persons):
    do(persons, "a3", "a2", "b3", "b2")
    for line in ("hint", "sides", "auto", "analysis"):
        with pytest.raises(ValueError, match="two people play"):
            persons.do(line)
    persons.do("back")
    assert moves(persons) == "a3 a2 b3", "one move at a time"
    do(persons, "b2", "c3")
    assert persons.outcome() == "the crosses win"
    assert persons.player_names == ("human", "human")
    do(persons, "back")
    assert persons.result is None
    do(persons, "forward")
    assert persons.result == (1.0, -1.0)


def test_quit_only_sets_a_flag(session, opponent):
    session.do("quit")
    assert session.is_left
    assert not opponent.sessions[0].is_closed
    session.close()
    assert opponent.sessions[0].is_closed


def test_a_game_is_played_to_its_end_and_told(persons):
    events = []
    persons.observe(events.append)
    do(persons, "b2", "a3", "c1", "b3", "c3", "a1", "c2")
    assert persons.result == (1.0, -1.0)
    assert persons.legal_actions() == []
    assert [type(event) for event in events] == [*[Moved] * 7, GameOver]
    assert [event.player for event in events[:7]] == [0, 1, 0, 1, 0, 1, 0]
    with pytest.raises(ValueError, match="the game is over"):
        persons.do("a3")


def test_every_observer_receives_all_events_and_the_opponent_all_moves(
    session, events, opponent
):
    second = []
    session.observe(second.append)
    do(session, "b2")
    assert [type(event) for event in events] == [Moved, Thinks, Moved]
    assert events[1] == Thinks(player=1, is_advice=False)
    assert events[2].move.text == "a3"
    assert events[2].move.decision.value == 0.5
    assert second == events
    do(session, "c3")
    assert opponent.sessions[0].asked == [[4], [4, 0, 2]]


def test_a_person_cannot_move_out_of_turn(opponent, later):
    session = make_session(opponent, later)
    session.begin()
    do(session, "b2")
    assert session.thinking == Thinks(1, is_advice=False)
    with pytest.raises(ValueError, match="it is not your turn"):
        do(session, "a1")
    later.work()
    assert session.thinking is None
    assert moves(session) == "b2 a3"


def test_undo_and_redo_go_from_turn_to_turn_of_the_person(session, events, opponent):
    do(session, "b2", "c3", "back")
    assert moves(session) == "b2 a3"
    assert isinstance(events[-1], Jumped)
    do(session, "back")
    with pytest.raises(ValueError, match="no move to take back"):
        do(session, "back")
    do(session, "forward")
    assert moves(session) == "b2 a3"
    do(session, "forward")
    assert moves(session) == "b2 a3 c3 b3"
    assert len(opponent.sessions[0].asked) == 2
    # A new move discards undone moves.
    do(session, "back", "a1")
    assert moves(session) == "b2 a3 a1 b3"
    with pytest.raises(ValueError, match="no move to go forward to"):
        do(session, "forward")


def test_pending_work_is_dropped_after_an_undo(opponent, later):
    session = make_session(opponent, later)
    session.begin()
    do(session, "b2", "back")
    later.work()
    assert moves(session) == ""
    assert opponent.sessions[0].asked == []


def test_a_decision_for_an_old_position_is_dropped(opponent, later):
    session = make_session(opponent, later)
    session.begin()
    do(session, "b2")
    work, then = later.waiting.pop()

    def slow():
        decision = work()
        do(session, "back")
        return decision

    at_once(slow, then)
    assert opponent.sessions[0].asked == [[4]]
    assert moves(session) == ""


def test_a_move_can_be_made_while_advice_is_pending(opponent, later):
    session, events = make_session(opponent, later), []
    session.begin()
    session.observe(events.append)
    do(session, "hint", "b2")
    later.work()
    later.work()
    assert moves(session) == "b2 a3"
    assert not any(isinstance(event, Advised) for event in events)


def test_advice_that_fails_does_not_end_the_game(session, events, opponent):
    opponent.sessions[0].is_dead = True
    do(session, "hint")
    assert events[-1] == AdviceFailed("the engine died")
    assert session.result is None


class Faulty:
    """An external player whose move is that of a function."""

    def __init__(self, decide):
        self.choose = lambda state, moves: decide(moves)

    def start_session(self, game, seed):
        return self

    def close(self):
        pass


def test_an_opponent_that_makes_an_illegal_move_loses():
    session = make_session(Faulty(lambda moves: MoveDecision(moves[-1])))
    session.begin()
    do(session, "b2")
    assert session.result == (1.0, -1.0)
    assert session.forfeit.reason == "illegal move b2"


def test_other_exceptions_of_an_opponent_are_raised():
    session = make_session(Faulty(lambda moves: 1 // 0), user=1)
    with pytest.raises(ZeroDivisionError):
        session.begin()


def test_the_clock_of_the_player_to_move_runs_until_the_end():
    now = [0.0]
    session = make_session(players.HumanPlayer(), clock=lambda: now[0])
    now[0] += 7
    assert (session.seconds(0), session.seconds(1)) == (0, 0), "it has not started"
    session.begin()
    for seconds, text in (3, "b2"), (5, "a1"):
        now[0] += seconds
        do(session, text)
    now[0] += 2
    assert (session.seconds(0), session.seconds(1)) == (5, 5)
    assert [move.seconds for move in session.moves] == [3, 5]
    do(session, "back")
    now[0] += 1
    assert (session.seconds(0), session.seconds(1)) == (3, 1)
    do(session, "a3", "c3", "a1", "a2", "b3", "c2")
    before = session.result, session.seconds(0), session.seconds(1)
    now[0] += 9
    assert (session.result, session.seconds(0), session.seconds(1)) == before
    assert session.result is not None


def test_work_runs_in_another_thread_and_callbacks_in_this_one():
    run, threads, outcomes = Background(), [], []

    def work():
        threads.append(threading.current_thread())
        return MoveDecision(3)

    run(work, lambda outcome: outcomes.append(outcome.result()))
    run.run_next()
    assert outcomes == [MoveDecision(3)]
    assert threads[0] is not threading.main_thread()
    run(lambda: 1 // 0, outcomes.append)
    run.run_next()
    assert isinstance(outcomes[1].exception(), ZeroDivisionError)
    assert run.close(seconds=60)


def test_an_interface_need_not_wait_for_running_work():
    run, may_end, outcomes = Background(), threading.Event(), []
    run(lambda: may_end.wait(60) and None, outcomes.append)
    run.run_next(waits=False)
    assert outcomes == []
    assert not run.close(seconds=0)
    may_end.set()
    run.run_next()
    assert len(outcomes) == 1
    assert run.close(seconds=60)


def test_outcomes_of_chance_are_drawn_after_each_move_and_come_again():
    for seed in range(4):
        session = make_session(players.HumanPlayer(), game=CoinToss(), seed=seed)
        assert session.moves == [], "the game has not started"
        session.begin()
        assert session.moves[0].text == session.outcome_of_chance
        with pytest.raises(ValueError, match=r"no action of coin_toss"):
            session.do("heads")
        while session.result is None and len(session.moves) < 6:
            (action, *_) = session.legal_actions()
            session.do(GAME.action_to_text(GAME.init(), action))
            assert session.last_action == action
        played, movers = moves(session), session.movers
        for ply, state in enumerate(session.states):
            if waits_for_chance(session.game, state):
                assert movers[ply] == int(session.states[ply + 1].current_player)
            elif ply < len(movers):
                assert movers[ply] == int(state.current_player)
        # Back to the decisions, past the outcomes.
        while len(session.moves) > 1:
            session.do("back")
            assert len(session.moves) % 2 == 1
            assert session.is_persons_turn
        with pytest.raises(ValueError, match=r"no move to take back"):
            session.do("back")
        while moves(session) != played:
            session.do("forward")


def test_only_sessions_with_a_seed_have_the_same_outcomes():
    def first(seed):
        session = make_session(players.HumanPlayer(), game=CoinToss(), seed=seed)
        session.begin()
        return session.outcome_of_chance

    assert len({first(seed=1) for _ in range(10)}) == 1
    assert len({first(seed=None) for _ in range(60)}) == 2


def test_the_opponent_answers_after_an_outcome(opponent):
    session = make_session(opponent, game=Heads())
    seen = []
    session.observe(seen.append)
    session.begin()
    session.do("b2")
    assert moves(session) == "heads b2 heads a3 heads"
    moved = [event for event in seen if isinstance(event, Moved)]
    assert [(event.player, event.outcome) for event in moved] == [
        (0, "heads"),
        (1, "heads"),
    ]
    assert session.last_action == 0
    session.do("back")
    assert moves(session) == "heads"


def test_a_game_that_waits_for_chance_goes_on_with_an_outcome(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._GAMES, "heads", Heads)
    session = make_session(players.HumanPlayer(), game=Heads())
    session.begin()
    do(session, "b2", f"save {tmp_path / 'whole'}")
    text = (tmp_path / "whole").read_text()
    (tmp_path / "part").write_text(
        text.replace("\n2. heads", "").replace("b2 heads", "b2")
    )
    for name in ("whole", "part"):
        session.do("new")
        assert moves(session) == "heads"
        message = session.do(f"load {tmp_path / name}")
        assert message.endswith("human against human, 1 moves")
        assert moves(session) == "heads b2 heads"
    (tmp_path / "bad").write_text(text.replace("heads b2", "edge b2"))
    with pytest.raises(ValueError, match=r"edge.* is no outcome of chance"):
        session.do(f"load {tmp_path / 'bad'}")

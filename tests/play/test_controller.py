import pytest

from azjax import games
from azjax.play.controller import (
    AdviceFailed,
    Advised,
    Controller,
    Forfeited,
    GameOver,
    Jumped,
    Moved,
    Thinks,
)
from azjax.players import MoveDecision

GAME = games.make("tic_tac_toe")
PERSONS = (None, None)


def texts(controller):
    return [move.text for move in controller.moves]


def play(controller, *moves):
    for text in moves:
        controller.play(GAME.text_to_action(controller.state, text))


def watched(sessions, **settings):
    """Returns a controller, and a list that receives its events."""
    controller, events = Controller(GAME, sessions, **settings), []
    controller.observe(events.append)
    controller.start()
    return controller, events


def test_two_persons_play_a_game_to_its_end():
    controller, events = watched(PERSONS)
    play(controller, "b2", "a3", "c1", "b3", "c3", "a1", "c2")
    assert controller.result == (1.0, -1.0)
    assert controller.legal_actions() == []
    assert [type(event) for event in events] == [Jumped, *[Moved] * 7, GameOver]
    assert [event.player for event in events[1:8]] == [0, 1, 0, 1, 0, 1, 0]
    with pytest.raises(ValueError, match="the game is over"):
        controller.play(0)


def test_every_observer_receives_all_events_and_a_session_all_moves(session):
    controller, events = watched((None, session))
    second = []
    controller.observe(second.append)
    play(controller, "b2")
    assert [type(event) for event in events] == [Jumped, Moved, Thinks, Moved]
    assert events[2] == Thinks(player=1, is_advice=False)
    assert events[3].move.text == "a3"
    assert events[3].move.decision.value == 0.5
    assert second == events[1:]
    play(controller, "c3")
    assert session.asked == [[4], [4, 0, 2]]


def test_a_session_moves_at_start_and_two_play_to_the_end(session):
    controller, _ = watched((session, None))
    assert texts(controller) == ["a3"]
    assert controller.is_persons_turn
    controller, events = watched((session, session))
    assert texts(controller) == ["a3", "b3", "c3", "a2", "b2", "c2", "a1"]
    assert controller.result == (1.0, -1.0)
    assert isinstance(events[-1], GameOver)


@pytest.mark.parametrize("action", [-1, 9, 4])
def test_an_illegal_move_is_refused_and_changes_nothing(action):
    controller, events = watched(PERSONS)
    controller.play(4)
    count = len(events)
    with pytest.raises(ValueError, match=r"not legal|actions are 0 to 8"):
        controller.play(action)
    assert texts(controller) == ["b2"]
    assert len(events) == count


def test_a_person_cannot_move_out_of_turn(session, later):
    controller, _ = watched((None, session), executor=later)
    play(controller, "b2")
    assert controller.thinking == Thinks(1, is_advice=False)
    with pytest.raises(ValueError, match="it is not your turn"):
        controller.play(0)
    later.work()
    assert controller.thinking is None
    assert texts(controller) == ["b2", "a3"]


def test_undo_and_redo_go_from_turn_to_turn_of_the_person(session):
    controller, events = watched((None, session))
    play(controller, "b2", "c3")
    controller.take_back()
    assert texts(controller) == ["b2", "a3"]
    assert isinstance(events[-1], Jumped)
    controller.take_back()
    assert texts(controller) == []
    with pytest.raises(ValueError, match="no move to take back"):
        controller.take_back()
    controller.forward()
    assert texts(controller) == ["b2", "a3"]
    controller.forward()
    assert texts(controller) == ["b2", "a3", "c3", "b3"]
    assert len(session.asked) == 2
    with pytest.raises(ValueError, match="no move to go forward to"):
        controller.forward()
    # A new move discards undone moves.
    controller.take_back()
    play(controller, "a1")
    assert texts(controller) == ["b2", "a3", "a1", "b3"]
    with pytest.raises(ValueError, match="no move to go forward to"):
        controller.forward()


def test_two_persons_undo_one_move_at_a_time_and_the_last_one_too():
    controller, _ = watched(PERSONS)
    play(controller, "a3", "a2", "b3", "b2", "c3")
    assert controller.result == (1.0, -1.0)
    controller.take_back()
    assert controller.result is None
    assert texts(controller) == ["a3", "a2", "b3", "b2"]
    controller.forward()
    assert controller.result == (1.0, -1.0)


def test_pending_work_is_dropped_after_an_undo(session, later):
    controller, events = watched((None, session), executor=later)
    play(controller, "b2")
    controller.take_back()
    later.work()
    assert texts(controller) == []
    assert session.asked == []
    assert isinstance(events[-1], Jumped)


def test_a_decision_for_an_old_position_is_dropped(session, later):
    controller, _ = watched((None, session), executor=later)
    play(controller, "b2")
    work, then = later.waiting.pop()

    def slow():
        decision = work()
        controller.take_back()
        return decision

    later(slow, then)
    later.work()
    assert session.asked == [[4]]
    assert texts(controller) == []


def test_sessions_can_change_during_a_game(session):
    controller, _ = watched((None, session))
    play(controller, "b2")
    controller.set_sessions((session, None))
    assert texts(controller) == ["b2", "a3", "b3"]
    assert controller.is_persons_turn
    assert controller.player == 1


def test_advice_does_not_make_a_move(session):
    controller, events = watched((None, session))
    controller.advise(session)
    assert events[-2] == Thinks(0, is_advice=True)
    assert isinstance(events[-1], Advised)
    assert events[-1].decision.action == 0
    assert texts(controller) == []
    assert controller.is_persons_turn


def test_a_move_can_be_made_while_advice_is_pending(session, later):
    controller, events = watched((None, session), executor=later)
    controller.advise(session)
    play(controller, "b2")
    later.work()
    later.work()
    assert texts(controller) == ["b2", "a3"]
    assert not any(isinstance(event, Advised) for event in events)


def test_an_adviser_gives_advice_at_every_turn_of_a_person(session):
    controller, events = watched((None, session))
    controller.adviser = session
    play(controller, "b2", "c3")
    kinds = [type(event) for event in events[1:]]
    assert kinds == [Moved, Thinks, Moved, Thinks, Advised] * 2


def test_a_session_that_fails_loses(session):
    controller, events = watched((None, session))
    play(controller, "b2")
    session.is_dead = True
    play(controller, "c3")
    assert events[-2:] == [Forfeited(1, "the engine died"), GameOver((1.0, -1.0))]
    assert controller.result == (1.0, -1.0)
    assert texts(controller) == ["b2", "a3", "c3"], "nothing is lost"
    controller.take_back()
    assert controller.result is None


def test_a_session_that_makes_an_illegal_move_loses():
    class IllegalSession:
        def choose(self, state, moves):
            return MoveDecision(moves[-1])

        def close(self):
            pass

    controller, _ = watched((None, IllegalSession()))
    play(controller, "b2")
    assert controller.result == (1.0, -1.0)
    assert controller.forfeit.reason == "illegal move b2"


def test_a_failing_adviser_does_not_end_the_game(session):
    session.is_dead = True
    controller, events = watched(PERSONS)
    controller.advise(session)
    assert events[-1] == AdviceFailed("the engine died")
    assert controller.result is None


def test_other_exceptions_of_a_session_are_raised():
    class Faulty:
        def choose(self, state, moves):
            raise ZeroDivisionError

    controller = Controller(GAME, (Faulty(), None))
    with pytest.raises(ZeroDivisionError):
        controller.start()


def test_a_loaded_game_continues_and_illegal_moves_are_not_loaded(session):
    controller, _ = watched(PERSONS)
    play(controller, "a1")
    for actions in [4, 4], [0, 3, 1, 4, 2, 5], [9]:
        with pytest.raises(ValueError, match=rf"move {len(actions)}, .* is not legal"):
            controller.load(actions, PERSONS)
        assert texts(controller) == ["a1"]
    controller.load([4, 0, 8], (None, session))
    assert texts(controller) == ["b2", "a3", "c1", "b3"]


def test_no_session_moves_and_no_clock_runs_before_start(session):
    now = [0.0]
    controller = Controller(GAME, PERSONS, clock=lambda: now[0])
    controller.load([4], (None, session))
    now[0] += 7
    assert (session.asked, controller.seconds(0), controller.seconds(1)) == ([], 0, 0)
    controller.load([], PERSONS)
    assert not controller.is_persons_turn
    with pytest.raises(ValueError, match="not your turn"):
        controller.play(4)
    controller.load([4], (None, session))
    controller.start()
    assert texts(controller) == ["b2", "a3"]
    assert controller.moves[1].seconds == 0


def test_the_clock_of_the_player_to_move_runs_until_the_end():
    now = [0.0]
    controller, _ = watched(PERSONS, clock=lambda: now[0])
    for seconds, text in (3, "b2"), (5, "a1"):
        now[0] += seconds
        play(controller, text)
    now[0] += 2
    assert (controller.seconds(0), controller.seconds(1)) == (5, 5)
    assert [move.seconds for move in controller.moves] == [3, 5]
    controller.take_back()
    now[0] += 1
    assert (controller.seconds(0), controller.seconds(1)) == (3, 1)
    play(controller, "a3", "c3", "a1", "a2", "b3", "c2")
    before = controller.result, controller.seconds(0), controller.seconds(1)
    now[0] += 9
    assert (controller.result, controller.seconds(0), controller.seconds(1)) == before
    assert controller.result is not None

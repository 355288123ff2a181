import pytest

from azjax import games
from azjax.arena.controller import Controller
from azjax.arena.events import (
    AdviceFailed,
    Advised,
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


def watched(seats, **settings):
    """Returns a controller, and a list that fills with the events."""
    controller, events = Controller(GAME, seats, **settings), []
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


def test_observers_are_told_in_the_order_of_what_happens(seat):
    controller, events = watched((None, seat))
    play(controller, "b2")
    kinds = [type(event) for event in events]
    assert kinds == [Jumped, Moved, Thinks, Moved]
    assert events[2] == Thinks(player=1, is_advice=False)
    assert events[3].move.text == "a3"
    assert events[3].move.decision.value == 0.5


def test_every_observer_is_told_everything(seat):
    controller, first = watched((None, seat))
    second = []
    controller.observe(second.append)
    play(controller, "b2")
    assert second == first[1:]


def test_a_seat_is_asked_about_the_position_with_its_moves(seat):
    controller, _ = watched((None, seat))
    play(controller, "b2", "c3")
    assert seat.asked == [[4], [4, 0, 2]]


def test_a_seat_that_begins_moves_at_the_start(seat):
    controller, _ = watched((seat, None))
    assert texts(controller) == ["a3"]
    assert controller.is_persons_turn


def test_two_seats_play_by_themselves_to_the_end(seat):
    controller, events = watched((seat, seat))
    assert texts(controller) == ["a3", "b3", "c3", "a2", "b2", "c2", "a1"]
    assert controller.result == (1.0, -1.0)
    assert isinstance(events[-1], GameOver)


@pytest.mark.parametrize("action", [-1, 9, 4])
def test_what_is_not_legal_is_refused_and_nothing_happens(action):
    controller, events = watched(PERSONS)
    controller.play(4)
    count = len(events)
    with pytest.raises(ValueError, match=r"not legal|actions are 0 to 8"):
        controller.play(action)
    assert texts(controller) == ["b2"]
    assert len(events) == count


def test_a_person_waits_for_the_turn(seat, later):
    controller, _ = watched((None, seat), run=later)
    play(controller, "b2")
    assert controller.thinking == Thinks(1, is_advice=False)
    with pytest.raises(ValueError, match="it is not your turn"):
        controller.play(0)
    later.work()
    assert controller.thinking is None
    assert texts(controller) == ["b2", "a3"]


def test_taking_back_leads_to_the_persons_last_move(seat):
    controller, events = watched((None, seat))
    play(controller, "b2", "c3")
    controller.take_back()
    assert texts(controller) == ["b2", "a3"]
    assert isinstance(events[-1], Jumped)
    controller.take_back()
    assert texts(controller) == []
    with pytest.raises(ValueError, match="no move to take back"):
        controller.take_back()


def test_going_forward_makes_the_moves_again(seat):
    controller, _ = watched((None, seat))
    play(controller, "b2", "c3")
    controller.take_back()
    controller.take_back()
    controller.forward()
    assert texts(controller) == ["b2", "a3"]
    controller.forward()
    assert texts(controller) == ["b2", "a3", "c3", "b3"]
    assert len(seat.asked) == 2
    with pytest.raises(ValueError, match="no move to go forward to"):
        controller.forward()


def test_another_move_forgets_those_taken_back(seat):
    controller, _ = watched((None, seat))
    play(controller, "b2", "c3")
    controller.take_back()
    play(controller, "a1")
    assert texts(controller) == ["b2", "a3", "a1", "b3"]
    with pytest.raises(ValueError, match="forward"):
        controller.forward()


def test_persons_take_back_one_move_at_a_time():
    controller, _ = watched(PERSONS)
    play(controller, "b2", "a1")
    controller.take_back()
    assert texts(controller) == ["b2"]


def test_the_end_of_a_game_can_be_taken_back():
    controller, _ = watched(PERSONS)
    play(controller, "a3", "a2", "b3", "b2", "c3")
    assert controller.result == (1.0, -1.0)
    controller.take_back()
    assert controller.result is None
    controller.forward()
    assert controller.result == (1.0, -1.0)


def test_a_thought_about_a_position_that_is_gone_is_dropped(seat, later):
    controller, events = watched((None, seat), run=later)
    play(controller, "b2")
    controller.take_back()
    later.work()
    assert texts(controller) == []
    assert seat.asked == [], "nobody waits for this answer any more"
    assert isinstance(events[-1], Jumped)


def test_a_thought_that_ends_after_its_position_is_dropped(seat, later):
    controller, _ = watched((None, seat), run=later)
    play(controller, "b2")
    work, then = later.waiting.pop()

    def slow():
        decision = work()
        controller.take_back()
        return decision

    later(slow, then)
    later.work()
    assert seat.asked == [[4]]
    assert texts(controller) == []


def test_sides_change_in_the_middle_of_a_game(seat):
    controller, _ = watched((None, seat))
    play(controller, "b2")
    controller.seat((seat, None))
    assert texts(controller) == ["b2", "a3", "b3"]
    assert controller.is_persons_turn
    assert controller.player == 1


def test_advice_is_given_and_nothing_is_played(seat):
    controller, events = watched((None, seat))
    controller.advise(seat)
    assert events[-2] == Thinks(0, is_advice=True)
    assert isinstance(events[-1], Advised)
    assert events[-1].decision.action == 0
    assert texts(controller) == []
    assert controller.is_persons_turn


def test_a_move_is_made_while_advice_is_awaited(seat, later):
    controller, events = watched((None, seat), run=later)
    controller.advise(seat)
    play(controller, "b2")
    later.work()
    later.work()
    assert texts(controller) == ["b2", "a3"]
    assert not any(isinstance(event, Advised) for event in events)


def test_an_adviser_speaks_at_each_of_the_persons_turns(seat):
    controller, events = watched((None, seat))
    controller.adviser = seat
    play(controller, "b2", "c3")
    kinds = [type(event) for event in events[1:]]
    assert kinds == [Moved, Thinks, Moved, Thinks, Advised] * 2


def test_a_seat_that_cannot_go_on_loses(seat):
    controller, events = watched((None, seat))
    play(controller, "b2")
    seat.is_dead = True
    play(controller, "c3")
    assert events[-2:] == [Forfeited(1, "the engine died"), GameOver((1.0, -1.0))]
    assert controller.result == (1.0, -1.0)
    assert texts(controller) == ["b2", "a3", "c3"], "nothing is lost"
    controller.take_back()
    assert controller.result is None


def test_a_seat_that_cheats_loses():
    class Cheat:
        def choose(self, state, moves):
            return MoveDecision(moves[-1])

        def close(self):
            pass

    controller, _ = watched((None, Cheat()))
    play(controller, "b2")
    assert controller.result == (1.0, -1.0)
    assert controller.forfeit.reason == "illegal move b2"


def test_a_dead_adviser_ends_no_game(seat):
    seat.is_dead = True
    controller, events = watched(PERSONS)
    controller.advise(seat)
    assert events[-1] == AdviceFailed("the engine died")
    assert controller.result is None


def test_a_fault_in_a_seat_is_not_hidden():
    class Faulty:
        def choose(self, state, moves):
            raise ZeroDivisionError

    controller = Controller(GAME, (Faulty(), None))
    with pytest.raises(ZeroDivisionError):
        controller.start()


def test_a_list_of_moves_is_loaded_and_goes_on(seat):
    controller, _ = watched(PERSONS)
    play(controller, "a1")
    controller.load([4, 0, 8], (None, seat))
    assert texts(controller) == ["b2", "a3", "c1", "b3"]


@pytest.mark.parametrize("actions", [[4, 4], [0, 3, 1, 4, 2, 5], [9]])
def test_moves_that_are_not_legal_are_not_loaded(actions):
    controller, _ = watched(PERSONS)
    play(controller, "a1")
    with pytest.raises(ValueError, match=rf"move {len(actions)}, .* is not legal"):
        controller.load(actions, PERSONS)
    assert texts(controller) == ["a1"]


def test_nothing_happens_before_the_start(seat):
    now = [0.0]
    controller = Controller(GAME, PERSONS, clock=lambda: now[0])
    controller.load([4], (None, seat))
    now[0] += 7
    assert (seat.asked, controller.seconds(0), controller.seconds(1)) == ([], 0, 0)
    controller.load([], PERSONS)
    assert not controller.is_persons_turn
    with pytest.raises(ValueError, match="not your turn"):
        controller.play(4)
    controller.load([4], (None, seat))
    controller.start()
    assert texts(controller) == ["b2", "a3"]
    assert controller.moves[1].seconds == 0


def test_time_is_counted_for_whose_turn_it_is():
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


def test_the_clock_stops_at_the_end():
    now = [0.0]
    controller, _ = watched(PERSONS, clock=lambda: now[0])
    play(controller, "a3", "a2", "b3", "b2", "c3")
    now[0] += 9
    assert (controller.seconds(0), controller.seconds(1)) == (0, 0)

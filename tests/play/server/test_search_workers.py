import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from azjax import players
from azjax.play.server import Limits
from azjax.play.server.incremental_search import Slicer
from azjax.play.server.jobs import Job
from azjax.play.server.search_workers import SearchTable, SeatTable, TreeRoom

PATIENCE = 300.0  # seconds
LIMITS = Limits(progress_seconds=1e-9)


class Waiting:
    """A job, and what whoever waits for it was told."""

    def __init__(self, position, simulations, limits=LIMITS):
        self.actions, state = position
        self.simulations = []
        self.is_over = threading.Event()
        self.news = threading.Event()
        self.job = Job(state, self.actions, simulations, self._notify, limits)

    def _notify(self):
        if self.job.found is not None:
            self.simulations.append(self.job.found.simulations)
        self.news.set()
        if self.job.is_done:
            self.is_over.set()

    def result(self):
        assert self.is_over.wait(PATIENCE)
        return self.job.found


class Paced:
    """A slicer that searches a slice each time it is let, and notes the batches."""

    def __init__(self, slicer):
        self._slicer = slicer
        self.turns = threading.Semaphore(0)
        self.batches = []

    def __getattr__(self, name):
        return getattr(self._slicer, name)

    def search(self, seed, batch, memory):
        assert self.turns.acquire(timeout=PATIENCE)
        self.batches.append(len(batch.made))
        return self._slicer.search(seed, batch, memory)


@pytest.fixture
def compiler():
    """Compiles nothing: the sizes of a batch stay those that there are."""
    with ThreadPoolExecutor(1) as compiler:
        compiler.submit = lambda *_: None
        yield compiler


@pytest.fixture
def table(slicer, compiler):
    return SearchTable(slicer, TreeRoom(2**30), compiler)


def test_visitors_who_come_and_go_think_as_if_they_were_alone(
    slicer, compiler, positions, visits_alone
):
    paced = Paced(slicer)
    table = SearchTable(paced, TreeRoom(2**30), compiler)
    waiting = []
    for position in [*positions, *reversed(positions)]:
        waiting.append(Waiting(position, 24))
        table.ask(waiting[-1].job)
        paced.turns.release()  # the others are in the midst of their thoughts
    for _ in range(4 * len(waiting)):
        paced.turns.release()
    for one in waiting:
        found = one.result()
        assert found.simulations == 24
        np.testing.assert_array_equal(
            found.decision.analysis.visits, visits_alone[one.actions]
        )
    assert set(paced.batches) <= {1, 4}
    assert 4 in paced.batches
    assert len(paced.batches) < 4 * len(waiting)


def test_news_comes_after_every_slice(table, positions):
    waiting = Waiting(positions[0], 24)
    table.ask(waiting.job)
    waiting.result()
    assert waiting.simulations == [7, 14, 21, 24]
    assert not waiting.job.is_cut


def test_news_comes_no_more_often_than_it_may(table, positions):
    waiting = Waiting(positions[0], 24, Limits(progress_seconds=1e9))
    table.ask(waiting.job)
    waiting.result()
    assert waiting.simulations == [24]


def test_a_thought_that_is_given_up_takes_no_further_slice(slicer, compiler, positions):
    paced = Paced(slicer)
    table = SearchTable(paced, TreeRoom(2**30), compiler)
    stopped, other = Waiting(positions[0], 24), Waiting(positions[1], 24)
    table.ask(stopped.job)
    paced.turns.release()
    assert stopped.news.wait(PATIENCE)
    stopped.job.give_up()
    table.ask(other.job)
    for _ in range(8):
        paced.turns.release()
    other.result()
    # One slice was under way when it was given up.
    assert stopped.job.found.simulations <= 14
    assert not stopped.job.is_done


def test_a_thought_that_takes_too_long_answers_with_what_it_has(table, positions):
    waiting = Waiting(positions[0], 24, Limits(thought_seconds=1e-9))
    table.ask(waiting.job)
    assert waiting.result().simulations == 7
    assert waiting.job.is_cut


def test_the_table_is_empty_when_all_are_gone(slicer, compiler, positions):
    room = TreeRoom(2**30)
    table = SearchTable(slicer, room, compiler)
    for _ in range(2):  # it can be used again
        waiting = Waiting(positions[2], 24)
        table.ask(waiting.job)
        waiting.result()
        deadline = time.monotonic() + PATIENCE
        while not room.take("another", 2**30):
            assert time.monotonic() < deadline
        room.leave("another")


def test_a_player_that_fails_tells_all_who_wait_and_can_be_asked_again(
    slicer, compiler, positions, capsys
):
    class Failing(Paced):
        is_broken = True

        def search(self, seed, batch, memory):
            if self.is_broken:
                raise RuntimeError("no memory left")
            return super().search(seed, batch, memory)

    failing = Failing(slicer)
    table = SearchTable(failing, TreeRoom(2**30), compiler)
    waiting = Waiting(positions[0], 24)
    table.ask(waiting.job)
    assert waiting.result() is None
    assert waiting.job.error == "the opponent could not go on"
    assert "no memory left" in capsys.readouterr().err
    failing.is_broken = False
    for _ in range(4):
        failing.turns.release()
    again = Waiting(positions[0], 24)
    table.ask(again.job)
    assert again.result().simulations == 24


def test_what_fails_because_all_ends_is_not_reported(
    slicer, compiler, positions, capsys
):
    class Ending(Paced):
        def search(self, seed, batch, memory):
            table.close()
            raise RuntimeError("what it needs is closed as well")

    table = SearchTable(Ending(slicer), TreeRoom(2**30), compiler)
    waiting = Waiting(positions[0], 24)
    table.ask(waiting.job)
    assert waiting.result() is None
    assert capsys.readouterr().err == ""


def test_thoughts_compile_nothing_when_batches_grow_and_shrink(
    slicer, compiler, positions, compilations
):
    paced = Paced(slicer)
    table = SearchTable(paced, TreeRoom(2**30), compiler)
    waiting = [Waiting(position, 24) for position in positions[:4]]
    for number, one in enumerate(waiting):
        table.ask(one.job)
        paced.turns.release()
        while len(paced.batches) <= number // 3:  # the others come in its midst
            time.sleep(0.001)
    for _ in range(4 * len(waiting)):
        paced.turns.release()
    for one in waiting:
        one.result()
    assert set(paced.batches) == {1, 4}
    assert compilations == []


class Compiling:
    """A slicer whose larger batches are compiled for as long as a test wants."""

    def __init__(self, slicer, sizes=(1,)):
        self._slicer, self.sizes = slicer, list(sizes)
        self.asked, self.may_end = [], threading.Event()

    def __getattr__(self, name):
        return getattr(self._slicer, name)

    def compile(self, size):
        self.asked.append(size)
        assert self.may_end.wait(PATIENCE)

    def compile_first(self, size):
        self.asked.append(size)
        self.sizes.append(size)
        if size not in self._slicer.sizes:  # a search with its size
            self._slicer.compile(size)

    def close(self):
        self.may_end.set()


def test_no_thought_waits_for_the_compilation_of_a_larger_batch(slicer, positions):
    compiling = Compiling(slicer)
    with ThreadPoolExecutor(1) as compiler, contextlib.closing(compiling):
        table = SearchTable(compiling, TreeRoom(2**30), compiler)
        waiting = [Waiting(position, 24) for position in positions]
        for one in waiting:
            table.ask(one.job)
        for one in waiting:
            assert one.result().simulations == 24
        assert compiling.asked == [8]
        assert compiling.sizes == [1]


@pytest.mark.parametrize(
    ("number", "room", "sizes"), [(3, 2**30, []), (4, 2**30, [8]), (4, 1, [])]
)
def test_larger_batches_are_compiled_only_if_half_full_and_if_they_fit(
    slicer, positions, number, room, sizes
):
    compiling = Compiling(slicer)
    compiling.close()
    with ThreadPoolExecutor(1) as compiler:
        table = SearchTable(compiling, TreeRoom(room), compiler)
        waiting = [Waiting(position, 7) for position in positions[:number]]
        table._queue.waiting.extend(one.job for one in waiting[1:])
        table.ask(waiting[0].job)
        for one in waiting:
            one.result()
    assert compiling.asked == sizes


@pytest.mark.parametrize(("number", "size"), [(1, 1), (3, 1), (40, 8)])
def test_what_is_compiled_first_serves_all_who_wait_for_a_game_to_begin(
    connect_four, positions, number, size
):
    player = players.load("random", connect_four)
    compiling = Compiling(Slicer(player, None, connect_four.init()), sizes=())
    compiling.close()
    with ThreadPoolExecutor(1) as compiler:
        table = SearchTable(compiling, TreeRoom(2**30), compiler)
        table.warm_up(number)
        waiting = Waiting(positions[0], 0)
        table.ask(waiting.job)
        waiting.result()
    assert compiling.sizes[0] == size


def test_larger_batches_are_used_once_they_are_compiled(connect_four, positions):
    player = players.load("random", connect_four)
    slicer = Slicer(player, None, connect_four.init())
    slicer.compile(1)
    slicer.compile(8)
    paced = Paced(slicer)
    with ThreadPoolExecutor(1) as compiler:
        table = SearchTable(paced, TreeRoom(2**30), compiler)
        waiting = [Waiting(position, 0) for position in positions]
        for one in waiting:
            table.ask(one.job)
        paced.turns.release(len(waiting))
        for one in waiting:
            one.result()
    assert 8 in paced.batches


def test_trees_have_no_more_room_than_there_is():
    room = TreeRoom(100)
    assert room.take("first", 80)
    assert not room.take("second", 40)
    assert room.take("second", 20)
    assert room.take("first", 60)
    assert room.take("second", 40)
    room.leave("first")
    room.leave("second")
    assert room.take("alone", 1000)
    assert room.take("without trees", 0)


def test_a_table_without_room_waits_for_others(slicer, compiler, positions):
    room = TreeRoom(slicer.bytes(1))
    assert room.take("another", 1)
    table = SearchTable(slicer, room, compiler)
    waiting = Waiting(positions[0], 24)
    table.ask(waiting.job)
    assert not waiting.is_over.wait(0.2)
    room.leave("another")
    assert waiting.result().simulations == 24


def test_a_player_that_is_another_program_is_asked_one_at_a_time(
    dying, connect_four, positions
):
    table = SeatTable(dying, connect_four)
    waiting = [Waiting(position, 0) for position in positions[:3]]
    for one in waiting:
        table.ask(one.job)
    assert [one.result().decision.action for one in waiting] == [0, 0, 0]
    assert dying.num_seats == 1
    table.close()
    assert dying.num_closed == 1


def test_a_player_that_forfeits_says_so_and_sits_down_again(
    dying, connect_four, positions, capsys
):
    table = SeatTable(dying, connect_four)
    dying.is_dead = True
    first = Waiting(positions[0], 0)
    table.ask(first.job)
    assert first.result() is None
    assert first.job.error == "the opponent could not go on"
    assert "the engine died" in capsys.readouterr().err
    assert dying.num_closed == 1
    dying.is_dead = False
    second = Waiting(positions[0], 0)
    table.ask(second.job)
    assert second.result().decision.action == 0
    assert dying.num_seats == 2


def test_a_player_that_fails_in_its_own_code_leaves_its_seat(
    dying, connect_four, positions, capsys, monkeypatch
):
    table = SeatTable(dying, connect_four)
    monkeypatch.setattr(dying, "choose", None)
    waiting = Waiting(positions[0], 0)
    table.ask(waiting.job)
    assert waiting.result() is None
    assert waiting.job.error == "the opponent could not go on"
    assert "not callable" in capsys.readouterr().err
    assert (dying.num_seats, dying.num_closed) == (1, 1)


def test_what_was_given_up_before_its_turn_is_never_asked(
    dying, connect_four, positions
):
    table = SeatTable(dying, connect_four)
    dying.may_go_on.clear()
    first, second, third = (Waiting(position, 0) for position in positions[:3])
    for one in (first, second, third):
        table.ask(one.job)
    second.job.give_up()
    dying.may_go_on.set()
    first.result()
    third.result()
    assert second.job.found is None


def test_who_was_just_let_in_is_told_when_there_is_no_memory_for_the_tree(
    slicer, compiler, positions, monkeypatch
):
    table = SearchTable(slicer, TreeRoom(2**30), compiler)
    waiting = Waiting(positions[0], 24)
    with monkeypatch.context() as patch:
        patch.setattr(slicer, "memory", None)
        table.ask(waiting.job)
        assert waiting.result() is None
    assert waiting.job.error == "the opponent could not go on"
    again = Waiting(positions[0], 24)
    table.ask(again.job)
    assert again.result().simulations == 24


def test_a_batch_that_fails_harms_none_that_still_wait(slicer, compiler, positions):
    class FailingOnce(Paced):
        num_calls = 0

        def search(self, seed, batch, memory):
            self.num_calls += 1
            if self.num_calls == 1:
                assert self.turns.acquire(timeout=PATIENCE)
                raise RuntimeError("no memory left")
            return self._slicer.search(seed, batch, memory)

    failing = FailingOnce(slicer)
    table = SearchTable(failing, TreeRoom(2**30), compiler)
    first, second = (Waiting(position, 24) for position in positions[:2])
    table.ask(first.job)
    deadline = time.monotonic() + PATIENCE
    while not failing.num_calls:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    table.ask(second.job)
    failing.turns.release()
    assert first.result() is None
    assert second.result().simulations == 24


def test_who_cannot_be_told_harms_no_other(table, positions, capsys):
    def fail():
        raise OSError("the page is gone")

    state = positions[0][1]
    gone = Job(state, positions[0][0], 24, fail, LIMITS)
    other = Waiting(positions[1], 24)
    table.ask(gone)
    table.ask(other.job)
    assert other.result().simulations == 24
    assert "the page is gone" in capsys.readouterr().err

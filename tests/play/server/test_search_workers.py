import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from azjax import players
from azjax.play.server import Limits
from azjax.play.server.incremental_search import IncrementalSearch
from azjax.play.server.jobs import Job
from azjax.play.server.search_workers import SearchWorker, SessionWorker, TreeBudget

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
        if self.job.progress is not None:
            self.simulations.append(self.job.progress.simulations)
        self.news.set()
        if self.job.is_done:
            self.is_over.set()

    def result(self):
        assert self.is_over.wait(PATIENCE)
        return self.job.progress


class Paced:
    """A slices that searches a slice each time it is let, and notes the batches."""

    def __init__(self, slices):
        self._slicer = slices
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
def worker(slices, compiler):
    return SearchWorker(slices, TreeBudget(2**30), compiler)


def test_visitors_who_come_and_go_think_as_if_they_were_alone(
    slices, compiler, positions, visits_alone
):
    paced = Paced(slices)
    worker = SearchWorker(paced, TreeBudget(2**30), compiler)
    waiting = []
    for position in [*positions, *reversed(positions)]:
        waiting.append(Waiting(position, 24))
        worker.submit(waiting[-1].job)
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


def test_news_comes_after_every_slice(worker, positions):
    waiting = Waiting(positions[0], 24)
    worker.submit(waiting.job)
    waiting.result()
    assert waiting.simulations == [7, 14, 21, 24]
    assert not waiting.job.is_timed_out


def test_news_comes_no_more_often_than_it_may(worker, positions):
    waiting = Waiting(positions[0], 24, Limits(progress_seconds=1e9))
    worker.submit(waiting.job)
    waiting.result()
    assert waiting.simulations == [24]


def test_a_thought_that_is_given_up_takes_no_further_slice(slices, compiler, positions):
    paced = Paced(slices)
    worker = SearchWorker(paced, TreeBudget(2**30), compiler)
    stopped, other = Waiting(positions[0], 24), Waiting(positions[1], 24)
    worker.submit(stopped.job)
    paced.turns.release()
    assert stopped.news.wait(PATIENCE)
    stopped.job.cancel()
    worker.submit(other.job)
    for _ in range(8):
        paced.turns.release()
    other.result()
    # One slice was under way when it was given up.
    assert stopped.job.progress.simulations <= 14
    assert not stopped.job.is_done


def test_a_thought_that_takes_too_long_answers_with_what_it_has(worker, positions):
    waiting = Waiting(positions[0], 24, Limits(decision_seconds=1e-9))
    worker.submit(waiting.job)
    assert waiting.result().simulations == 7
    assert waiting.job.is_timed_out


def test_the_table_is_empty_when_all_are_gone(slices, compiler, positions):
    budget = TreeBudget(2**30)
    worker = SearchWorker(slices, budget, compiler)
    for _ in range(2):  # it can be used again
        waiting = Waiting(positions[2], 24)
        worker.submit(waiting.job)
        waiting.result()
        deadline = time.monotonic() + PATIENCE
        while not budget.reserve("another", 2**30):
            assert time.monotonic() < deadline
        budget.release("another")


def test_a_player_that_fails_tells_all_who_wait_and_can_be_asked_again(
    slices, compiler, positions, capsys
):
    class Failing(Paced):
        is_broken = True

        def search(self, seed, batch, memory):
            if self.is_broken:
                raise RuntimeError("no memory left")
            return super().search(seed, batch, memory)

    failing = Failing(slices)
    worker = SearchWorker(failing, TreeBudget(2**30), compiler)
    waiting = Waiting(positions[0], 24)
    worker.submit(waiting.job)
    assert waiting.result() is None
    assert waiting.job.error == "the opponent failed"
    assert "no memory left" in capsys.readouterr().err
    failing.is_broken = False
    for _ in range(4):
        failing.turns.release()
    again = Waiting(positions[0], 24)
    worker.submit(again.job)
    assert again.result().simulations == 24


def test_what_fails_because_all_ends_is_not_reported(
    slices, compiler, positions, capsys
):
    class Ending(Paced):
        def search(self, seed, batch, memory):
            worker.close()
            raise RuntimeError("what it needs is closed as well")

    worker = SearchWorker(Ending(slices), TreeBudget(2**30), compiler)
    waiting = Waiting(positions[0], 24)
    worker.submit(waiting.job)
    assert waiting.result() is None
    assert capsys.readouterr().err == ""


def test_thoughts_compile_nothing_when_batches_grow_and_shrink(
    slices, compiler, positions, compilations
):
    paced = Paced(slices)
    worker = SearchWorker(paced, TreeBudget(2**30), compiler)
    waiting = [Waiting(position, 24) for position in positions[:4]]
    for number, one in enumerate(waiting):
        worker.submit(one.job)
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
    """A slices whose larger batches are compiled for as long as a test wants."""

    def __init__(self, slices, sizes=(1,)):
        self._slicer, self.sizes = slices, list(sizes)
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


def test_no_thought_waits_for_the_compilation_of_a_larger_batch(slices, positions):
    compiling = Compiling(slices)
    with ThreadPoolExecutor(1) as compiler, contextlib.closing(compiling):
        worker = SearchWorker(compiling, TreeBudget(2**30), compiler)
        waiting = [Waiting(position, 24) for position in positions]
        for one in waiting:
            worker.submit(one.job)
        for one in waiting:
            assert one.result().simulations == 24
        assert compiling.asked == [8]
        assert compiling.sizes == [1]


@pytest.mark.parametrize(
    ("number", "room", "sizes"), [(3, 2**30, []), (4, 2**30, [8]), (4, 1, [])]
)
def test_larger_batches_are_compiled_only_if_half_full_and_if_they_fit(
    slices, positions, number, room, sizes
):
    compiling = Compiling(slices)
    compiling.close()
    with ThreadPoolExecutor(1) as compiler:
        worker = SearchWorker(compiling, TreeBudget(room), compiler)
        waiting = [Waiting(position, 7) for position in positions[:number]]
        worker._queue.waiting.extend(one.job for one in waiting[1:])
        worker.submit(waiting[0].job)
        for one in waiting:
            one.result()
    assert compiling.asked == sizes


@pytest.mark.parametrize(("number", "size"), [(1, 1), (3, 1), (40, 8)])
def test_what_is_compiled_first_serves_all_who_wait_for_a_game_to_begin(
    connect_four, positions, number, size
):
    player = players.load("random", connect_four)
    compiling = Compiling(
        IncrementalSearch(player, None, connect_four.init()), sizes=()
    )
    compiling.close()
    with ThreadPoolExecutor(1) as compiler:
        worker = SearchWorker(compiling, TreeBudget(2**30), compiler)
        worker.warm_up(number)
        waiting = Waiting(positions[0], 0)
        worker.submit(waiting.job)
        waiting.result()
    assert compiling.sizes[0] == size


def test_larger_batches_are_used_once_they_are_compiled(connect_four, positions):
    player = players.load("random", connect_four)
    slices = IncrementalSearch(player, None, connect_four.init())
    slices.compile(1)
    slices.compile(8)
    paced = Paced(slices)
    with ThreadPoolExecutor(1) as compiler:
        worker = SearchWorker(paced, TreeBudget(2**30), compiler)
        waiting = [Waiting(position, 0) for position in positions]
        for one in waiting:
            worker.submit(one.job)
        paced.turns.release(len(waiting))
        for one in waiting:
            one.result()
    assert 8 in paced.batches


def test_a_table_without_room_waits_for_others(slices, compiler, positions):
    budget = TreeBudget(slices.bytes(1))
    assert budget.reserve("another", 1)
    worker = SearchWorker(slices, budget, compiler)
    waiting = Waiting(positions[0], 24)
    worker.submit(waiting.job)
    assert not waiting.is_over.wait(0.2)
    budget.release("another")
    assert waiting.result().simulations == 24


def test_a_player_that_is_another_program_is_asked_one_at_a_time(
    dying, connect_four, positions
):
    worker = SessionWorker(dying, connect_four)
    waiting = [Waiting(position, 0) for position in positions[:3]]
    for one in waiting:
        worker.submit(one.job)
    assert [one.result().decision.action for one in waiting] == [0, 0, 0]
    assert dying.num_sessions == 1
    worker.close()
    assert dying.num_closed == 1


def test_a_player_that_forfeits_says_so_and_sits_down_again(
    dying, connect_four, positions, capsys
):
    worker = SessionWorker(dying, connect_four)
    dying.is_dead = True
    first = Waiting(positions[0], 0)
    worker.submit(first.job)
    assert first.result() is None
    assert first.job.error == "the opponent failed"
    assert "the engine died" in capsys.readouterr().err
    assert dying.num_closed == 1
    dying.is_dead = False
    second = Waiting(positions[0], 0)
    worker.submit(second.job)
    assert second.result().decision.action == 0
    assert dying.num_sessions == 2


def test_a_player_that_fails_in_its_own_code_leaves_its_seat(
    dying, connect_four, positions, capsys, monkeypatch
):
    worker = SessionWorker(dying, connect_four)
    monkeypatch.setattr(dying, "choose", None)
    waiting = Waiting(positions[0], 0)
    worker.submit(waiting.job)
    assert waiting.result() is None
    assert waiting.job.error == "the opponent failed"
    assert "not callable" in capsys.readouterr().err
    assert (dying.num_sessions, dying.num_closed) == (1, 1)


def test_what_was_given_up_before_its_turn_is_never_asked(
    dying, connect_four, positions
):
    worker = SessionWorker(dying, connect_four)
    dying.may_go_on.clear()
    first, second, third = (Waiting(position, 0) for position in positions[:3])
    for one in (first, second, third):
        worker.submit(one.job)
    second.job.cancel()
    dying.may_go_on.set()
    first.result()
    third.result()
    assert second.job.progress is None


def test_who_was_just_let_in_is_told_when_there_is_no_memory_for_the_tree(
    slices, compiler, positions, monkeypatch
):
    worker = SearchWorker(slices, TreeBudget(2**30), compiler)
    waiting = Waiting(positions[0], 24)
    with monkeypatch.context() as patch:
        patch.setattr(slices, "empty_trees", None)
        worker.submit(waiting.job)
        assert waiting.result() is None
    assert waiting.job.error == "the opponent failed"
    again = Waiting(positions[0], 24)
    worker.submit(again.job)
    assert again.result().simulations == 24


def test_a_batch_that_fails_harms_none_that_still_wait(slices, compiler, positions):
    class FailingOnce(Paced):
        num_calls = 0

        def search(self, seed, batch, memory):
            self.num_calls += 1
            if self.num_calls == 1:
                assert self.turns.acquire(timeout=PATIENCE)
                raise RuntimeError("no memory left")
            return self._slicer.search(seed, batch, memory)

    failing = FailingOnce(slices)
    worker = SearchWorker(failing, TreeBudget(2**30), compiler)
    first, second = (Waiting(position, 24) for position in positions[:2])
    worker.submit(first.job)
    deadline = time.monotonic() + PATIENCE
    while not failing.num_calls:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    worker.submit(second.job)
    failing.turns.release()
    assert first.result() is None
    assert second.result().simulations == 24


def test_who_cannot_be_told_harms_no_other(worker, positions, capsys):
    def fail():
        raise OSError("the page is gone")

    state = positions[0][1]
    gone = Job(state, positions[0][0], 24, fail, LIMITS)
    other = Waiting(positions[1], 24)
    worker.submit(gone)
    worker.submit(other.job)
    assert other.result().simulations == 24
    assert "the page is gone" in capsys.readouterr().err

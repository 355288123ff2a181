import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from azjax import games
from azjax.games.host import first_state
from azjax.play.server import ServerLimits
from azjax.play.server.search_workers import (
    Job,
    SearchWorker,
    SessionWorker,
    TreeBudget,
)
from azjax.players import MoveDecision

PATIENCE = 30.0  # seconds
LIMITS = ServerLimits(progress_seconds=1e-9)
GAME = games.make("tic_tac_toe")


class Search:
    """A search of numbers: a tree is a number and the simulations that it contains.

    It fails if a row has another tree than its position. `IncrementalSearch`, which it
    replaces, has tests of its own.

    asked: batch sizes that the worker wants compiled.
    batches: batch sizes of the slices.
    begun: whether a slice has begun.
    errors: what the next slices raise.
    turns: permissions of slices.
    may_compile: whether a compilation may end.
    """

    per_slice = 7

    def __init__(self, sizes=(1, 4), *, is_paced=False):
        self.sizes, self.asked, self.batches = list(sizes), [], []
        self.begun, self.may_compile = threading.Event(), threading.Event()
        self.may_compile.set()
        self.errors = []
        self.turns = threading.Semaphore(0 if is_paced else 1000)

    def bytes(self, size):
        return size

    def compile(self, size):
        self.asked.append(size)
        assert self.may_compile.wait(PATIENCE)

    def compile_first(self, size):
        self.sizes.append(size)

    def empty_trees(self, size):
        return np.zeros((size, 2), int)

    def rearranged(self, trees, rows):
        return np.concatenate([trees, self.empty_trees(1)])[rows]

    def search(self, seed, states, total, made, trees):
        self.begun.set()
        assert self.turns.acquire(timeout=PATIENCE)
        if self.errors:
            raise self.errors.pop(0)
        assert len(trees) in self.sizes
        self.batches.append(len(trees))
        goes_on, before = made > 0, np.stack([states, made], axis=1)
        np.testing.assert_array_equal(trees[goes_on], before[goes_on])
        made = np.minimum(made + self.per_slice, total)
        decisions = [MoveDecision(int(state)) for state in states]
        return decisions, np.stack([states, made], axis=1)


class Waiting:
    """A job that records its notifications."""

    def __init__(self, state=1, simulations=24, limits=LIMITS):
        self.simulations = []
        self.is_over = threading.Event()
        self.job = Job(state, (), simulations, self._notify, limits)

    def _notify(self):
        if self.job.progress is not None:
            self.simulations.append(self.job.progress.simulations)
        if self.job.is_done:
            self.is_over.set()

    def result(self):
        assert self.is_over.wait(PATIENCE)
        return self.job.progress


def make_worker(search, budget=None):
    """Returns a worker that compiles no larger batches."""
    compiler = types.SimpleNamespace(submit=lambda *_: None)
    return SearchWorker(search, budget or TreeBudget(2**30), compiler)


@pytest.fixture
def search():
    return Search(is_paced=True)


@pytest.fixture
def worker(search):
    return make_worker(search)


def test_each_job_of_a_shared_batch_has_the_result_of_its_position(search, worker):
    waiting = [Waiting(number, 7 * (number % 4) + 3) for number in range(1, 14)]
    for one in waiting:  # later ones join those that have started
        worker.submit(one.job)
        search.turns.release()
    search.turns.release(100)
    for one in waiting:
        found = one.result()
        assert found.simulations == one.job.simulations
        assert found.decision.action == one.job.state
    assert 4 in search.batches
    assert len(search.batches) < sum(1 + number % 4 for number in range(1, 14))


def test_progress_is_reported_after_every_slice_unless_that_is_too_often():
    worker = make_worker(Search())
    often, seldom = Waiting(), Waiting(limits=ServerLimits(progress_seconds=1e9))
    for one in (often, seldom):
        worker.submit(one.job)
        one.result()
    assert often.simulations == [7, 14, 21, 24]
    assert seldom.simulations == [24]
    assert not often.job.is_timed_out


def test_a_cancelled_job_is_searched_no_further(search, worker):
    stopped, other = Waiting(1), Waiting(2)
    worker.submit(stopped.job)
    assert search.begun.wait(PATIENCE)
    stopped.job.cancel()
    worker.submit(other.job)
    search.turns.release(5)
    other.result()
    # One slice was in progress at the cancellation.
    assert stopped.job.progress.simulations == 7
    assert not stopped.job.is_done


def test_a_job_beyond_the_time_limit_returns_its_best_move():
    waiting = Waiting(limits=ServerLimits(decision_seconds=1e-9))
    make_worker(Search()).submit(waiting.job)
    assert waiting.result().simulations == 7
    assert waiting.job.is_timed_out


def test_an_idle_worker_releases_its_trees():
    budget = TreeBudget(2**30)
    worker = make_worker(Search(), budget)
    for _ in range(2):  # it can be used again
        waiting = Waiting()
        worker.submit(waiting.job)
        waiting.result()
        deadline = time.monotonic() + PATIENCE
        while not budget.reserve("another", 2**30):
            assert time.monotonic() < deadline
        budget.release("another")


def test_an_error_fails_the_jobs_of_its_batch_only(search, worker, capsys):
    search.errors = [RuntimeError("no memory left")]
    first, second = Waiting(1), Waiting(2)
    worker.submit(first.job)
    assert search.begun.wait(PATIENCE)
    worker.submit(second.job)
    search.turns.release(5)
    assert first.result() is None
    assert first.job.error == "the opponent failed"
    assert second.result().simulations == 24
    assert "no memory left" in capsys.readouterr().err


def test_a_job_fails_if_its_tree_cannot_be_allocated(monkeypatch):
    search = Search()
    worker = make_worker(search)
    waiting, again = Waiting(), Waiting()
    with monkeypatch.context() as patch:
        patch.setattr(search, "empty_trees", None)
        worker.submit(waiting.job)
        assert waiting.result() is None
    assert waiting.job.error == "the opponent failed"
    worker.submit(again.job)
    assert again.result().simulations == 24


def test_errors_after_close_are_not_reported(search, worker, capsys):
    search.errors = [RuntimeError("its resources are closed")]
    waiting = Waiting()
    worker.submit(waiting.job)
    assert search.begun.wait(PATIENCE)
    worker.close()
    search.turns.release()
    assert waiting.result() is None
    assert capsys.readouterr().err == ""


def test_jobs_do_not_wait_for_a_larger_batch_to_compile():
    search = Search(sizes=[1], is_paced=True)
    search.may_compile.clear()
    with ThreadPoolExecutor(1) as compiler:
        worker = SearchWorker(search, TreeBudget(2**30), compiler)
        waiting = [Waiting(number) for number in range(7)]
        for one in waiting:
            worker.submit(one.job)
        search.turns.release(4 * 7)
        for one in waiting:
            assert one.result().simulations == 24
        assert search.asked == [8]
        search.may_compile.set()


@pytest.mark.parametrize(
    ("number", "room", "sizes"), [(4, 2**30, []), (5, 2**30, [8]), (5, 1, [])]
)
def test_larger_batches_are_compiled_only_if_half_full_and_if_they_fit(
    number, room, sizes
):
    search = Search(sizes=[1], is_paced=True)
    with ThreadPoolExecutor(1) as compiler:
        worker = SearchWorker(search, TreeBudget(room), compiler)
        waiting = [Waiting(simulations=7) for _ in range(number)]
        for one in waiting:  # the first is searched alone, and the others wait
            worker.submit(one.job)
            assert search.begun.wait(PATIENCE)
        search.turns.release(number)
        for one in waiting:
            one.result()
    assert search.asked == sizes


@pytest.mark.parametrize(("number", "size"), [(1, 1), (3, 1), (40, 8)])
def test_the_first_compiled_size_fits_the_waiting_clients(number, size):
    search = Search(sizes=[])
    with ThreadPoolExecutor(1) as compiler:
        worker = SearchWorker(search, TreeBudget(2**30), compiler)
        worker.warm_up(number)
        waiting = Waiting(simulations=0)
        worker.submit(waiting.job)
        waiting.result()
    assert search.sizes[0] == size


def test_a_worker_waits_for_memory_for_its_trees():
    search = Search()
    budget = TreeBudget(search.bytes(1))
    assert budget.reserve("another", 1)
    waiting = Waiting()
    make_worker(search, budget).submit(waiting.job)
    assert not waiting.is_over.wait(0.2)
    budget.release("another")
    assert waiting.result().simulations == 24


@pytest.fixture
def first():
    return first_state(GAME)


def test_an_external_player_gets_one_position_at_a_time(dying, first):
    worker = SessionWorker(dying, GAME)
    waiting = [Waiting(first, 0) for _ in range(3)]
    for one in waiting:
        worker.submit(one.job)
    assert [one.result().decision.action for one in waiting] == [0, 0, 0]
    assert dying.num_sessions == 1
    worker.close()
    assert dying.num_closed == 1


def test_an_unexpected_error_closes_the_session(dying, first, capsys, monkeypatch):
    worker = SessionWorker(dying, GAME)
    monkeypatch.setattr(dying, "choose", None)
    waiting = Waiting(first, 0)
    worker.submit(waiting.job)
    assert waiting.result() is None
    assert waiting.job.error == "the opponent failed"
    assert "not callable" in capsys.readouterr().err
    assert (dying.num_sessions, dying.num_closed) == (1, 1)


def test_a_job_cancelled_while_waiting_is_never_run(dying, first):
    worker = SessionWorker(dying, GAME)
    dying.may_go_on.clear()
    waiting = [Waiting(first, 0) for _ in range(3)]
    for one in waiting:
        worker.submit(one.job)
    waiting[1].job.cancel()
    dying.may_go_on.set()
    waiting[0].result()
    waiting[2].result()
    assert waiting[1].job.progress is None


def test_a_worker_that_cannot_start_a_thread_raises_and_recovers(
    dying, first, monkeypatch
):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    worker = SessionWorker(dying, GAME)
    dropped, waiting = Waiting(first, 0), Waiting(first, 0)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            worker.submit(dropped.job)
    assert not worker.is_busy
    worker.submit(waiting.job)
    waiting.result()
    assert not dropped.job.is_done

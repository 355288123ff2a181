import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from untrained import untrained

from azjax import games, players
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.play.incremental_search import IncrementalSearch, SlicePlan
from azjax.play.server import Limits
from azjax.play.server.jobs import Job
from azjax.play.server.search_workers import SearchWorker, SessionWorker, TreeBudget
from azjax.players import AlphaZeroPlayer
from azjax.search import GumbelConfig

PATIENCE = 30.0  # seconds
LIMITS = Limits(progress_seconds=1e-9)


@pytest.fixture(scope="module")
def connect_four():
    return games.make("connect_four")


@pytest.fixture(scope="module")
def player(connect_four):
    """A player with a tiny network, which compiles quickly."""
    trunk = DenseTrunkConfig(width=4, num_blocks=1, stem_channels=4, window=1)
    network, variables = untrained(connect_four, NetworkConfig(trunk=trunk))
    return AlphaZeroPlayer(connect_four, GumbelConfig(), 24, network, variables)


@pytest.fixture(scope="module")
def slices(player, connect_four):
    """A search in four slices, compiled for batches of 1 and 4."""
    slices = IncrementalSearch(player, SlicePlan(24, 7), connect_four.init())
    slices.compile(1)
    slices.compile(4)
    return slices


@pytest.fixture(scope="module")
def positions(connect_four):
    """Lists of actions with the unfinished positions to which they lead."""
    step = jax.jit(connect_four.step)
    found = []
    for actions in [(), (3,), (3, 3), (3, 2, 3), (0, 6, 1, 5), (3, 3, 3, 3, 3), (2, 3)]:
        state = connect_four.init()
        for action in actions:
            state = step(state, np.int32(action))
        found.append((actions, jax.tree.map(np.asarray, state)))
    return found


class Waiting:
    """A job that records its notifications."""

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
    """A search that waits for permission before each slice, and records batch sizes."""

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
    """A compiler that compiles nothing: batch sizes stay those already compiled."""
    with ThreadPoolExecutor(1) as compiler:
        compiler.submit = lambda *_: None
        yield compiler


@pytest.fixture
def worker(slices, compiler):
    return SearchWorker(slices, TreeBudget(2**30), compiler)


def test_a_shared_batch_gives_the_same_results_as_separate_searches(
    slices, compiler, positions
):
    paced = Paced(slices)
    worker = SearchWorker(paced, TreeBudget(2**30), compiler)
    alone = {}
    for position in positions:
        waiting = Waiting(position, 24)
        worker.submit(waiting.job)
        paced.turns.release(4)
        alone[waiting.actions] = waiting.result().decision.analysis.visits
    assert paced.batches == [1] * 4 * len(positions)
    paced.batches.clear()
    together = []
    for position in [*positions, *reversed(positions)]:
        together.append(Waiting(position, 24))
        worker.submit(together[-1].job)
        paced.turns.release()  # the others have already started
    paced.turns.release(4 * len(together))
    for one in together:
        found = one.result()
        assert found.simulations == 24
        np.testing.assert_array_equal(
            found.decision.analysis.visits, alone[one.actions]
        )
    assert set(paced.batches) <= {1, 4}
    assert 4 in paced.batches
    assert len(paced.batches) < 4 * len(together)


def test_progress_is_reported_after_every_slice(worker, positions):
    waiting = Waiting(positions[0], 24)
    worker.submit(waiting.job)
    waiting.result()
    assert waiting.simulations == [7, 14, 21, 24]
    assert not waiting.job.is_timed_out


def test_progress_reports_are_rate_limited(worker, positions):
    waiting = Waiting(positions[0], 24, Limits(progress_seconds=1e9))
    worker.submit(waiting.job)
    waiting.result()
    assert waiting.simulations == [24]


def test_a_cancelled_job_is_searched_no_further(slices, compiler, positions):
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
    # One slice was in progress at the cancellation.
    assert stopped.job.progress.simulations <= 14
    assert not stopped.job.is_done


def test_a_job_beyond_the_time_limit_returns_its_best_move(worker, positions):
    waiting = Waiting(positions[0], 24, Limits(decision_seconds=1e-9))
    worker.submit(waiting.job)
    assert waiting.result().simulations == 7
    assert waiting.job.is_timed_out


def test_an_idle_worker_releases_its_trees(slices, compiler, positions):
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


def test_an_error_fails_all_jobs_and_the_worker_stays_usable(
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


def test_errors_after_close_are_not_reported(slices, compiler, positions, capsys):
    class Ending(Paced):
        def search(self, seed, batch, memory):
            worker.close()
            raise RuntimeError("its resources are closed")

    worker = SearchWorker(Ending(slices), TreeBudget(2**30), compiler)
    waiting = Waiting(positions[0], 24)
    worker.submit(waiting.job)
    assert waiting.result() is None
    assert capsys.readouterr().err == ""


def test_changing_batch_sizes_compiles_nothing(
    slices, compiler, positions, compilations
):
    paced = Paced(slices)
    worker = SearchWorker(paced, TreeBudget(2**30), compiler)
    waiting = [Waiting(position, 24) for position in positions[:4]]
    for number, one in enumerate(waiting):
        worker.submit(one.job)
        paced.turns.release()
        while len(paced.batches) <= number // 3:  # the others start later
            time.sleep(0.001)
    for _ in range(4 * len(waiting)):
        paced.turns.release()
    for one in waiting:
        one.result()
    assert set(paced.batches) == {1, 4}
    assert compilations == []


class Compiling:
    """A search that compiles larger batches, each until the test allows its end."""

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
        if size not in self._slicer.sizes:  # a search with this batch size
            self._slicer.compile(size)

    def close(self):
        self.may_end.set()


def test_jobs_do_not_wait_for_a_larger_batch_to_compile(slices, positions):
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
def test_the_first_compiled_size_fits_the_waiting_clients(
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


def test_a_worker_waits_for_memory_for_its_trees(slices, compiler, positions):
    budget = TreeBudget(slices.bytes(1))
    assert budget.reserve("another", 1)
    worker = SearchWorker(slices, budget, compiler)
    waiting = Waiting(positions[0], 24)
    worker.submit(waiting.job)
    assert not waiting.is_over.wait(0.2)
    budget.release("another")
    assert waiting.result().simulations == 24


def test_an_external_player_gets_one_position_at_a_time(dying, connect_four, positions):
    worker = SessionWorker(dying, connect_four)
    waiting = [Waiting(position, 0) for position in positions[:3]]
    for one in waiting:
        worker.submit(one.job)
    assert [one.result().decision.action for one in waiting] == [0, 0, 0]
    assert dying.num_sessions == 1
    worker.close()
    assert dying.num_closed == 1


def test_an_unexpected_error_closes_the_session(
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


def test_a_job_cancelled_while_waiting_is_never_run(dying, connect_four, positions):
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


def test_a_job_fails_if_its_tree_cannot_be_allocated(
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


def test_a_failed_batch_does_not_affect_waiting_jobs(slices, compiler, positions):
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


def test_a_failing_notification_does_not_affect_other_jobs(worker, positions, capsys):
    def fail():
        raise OSError("the page is gone")

    state = positions[0][1]
    gone = Job(state, positions[0][0], 24, fail, LIMITS)
    other = Waiting(positions[1], 24)
    worker.submit(gone)
    worker.submit(other.job)
    assert other.result().simulations == 24
    assert "the page is gone" in capsys.readouterr().err

import types

import pytest

from azjax.training.run import open_run as module
from azjax.training.run.open_run import StopRequests


@pytest.fixture
def signals():
    return types.SimpleNamespace(stopping=False)


def test_a_signal_is_a_request(signals):
    stops = StopRequests(signals)
    assert not stops.is_requested()
    signals.stopping = True
    assert stops.is_requested()


def test_a_notice_of_the_preemption_service_is_stored(signals, monkeypatch):
    steps = []

    def reached(step):
        steps.append(step)
        return len(steps) == 3

    monkeypatch.setattr(
        module.multihost_utils, "reached_preemption_sync_point", reached
    )
    stops = StopRequests(signals)
    found = [stops.is_requested() for _ in range(5)]
    assert found == [False, False, True, True, True]
    assert steps == list(range(steps[0], steps[0] + 3))  # it requires all of them


def test_a_disabled_preemption_service_is_ignored(signals, monkeypatch):
    def reached(step):
        raise RuntimeError("has not been initialized")

    monkeypatch.setattr(
        module.multihost_utils, "reached_preemption_sync_point", reached
    )
    assert not StopRequests(signals).is_requested()


def test_work_is_interrupted_when_it_polls(signals):
    def work(poll):
        poll()
        signals.stopping = True
        poll()
        raise AssertionError("it goes on")

    assert StopRequests(signals).interrupting(work) is None


def test_work_that_is_done_is_kept(signals):
    def work(poll):
        poll()
        signals.stopping = True
        return "done"

    assert StopRequests(signals).interrupting(work) == "done"


def test_the_request_of_another_process_interrupts_work(signals, monkeypatch):
    monkeypatch.setattr(module, "in_any", lambda flag: True)
    assert StopRequests(signals).interrupting(lambda poll: poll()) is None


def test_several_processes_synchronize_only_at_common_points(signals, monkeypatch):
    monkeypatch.setattr(module.jax, "process_count", lambda: 2)
    monkeypatch.setattr(module, "in_any", lambda flag: True)
    stops = StopRequests(signals)
    assert stops.interrupting(lambda poll: [poll(alone=True)]) == [None]
    monkeypatch.setattr(module.jax, "process_count", lambda: 1)
    assert stops.interrupting(lambda poll: [poll(alone=True)]) is None

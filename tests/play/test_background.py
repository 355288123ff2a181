import threading

from azjax.play.background import CallbackQueue
from azjax.players import MoveDecision


def test_work_runs_in_another_thread_and_callbacks_in_this_one():
    callbacks, threads, outcomes = CallbackQueue(), [], []

    def work():
        threads.append(threading.current_thread())
        return MoveDecision(3)

    callbacks.background(work, lambda outcome: outcomes.append(outcome.result()))
    callbacks.run_next()
    assert outcomes == [MoveDecision(3)]
    assert threads[0] is not threading.main_thread()
    assert callbacks.background.close(seconds=60)


def test_run_if_ready_does_not_wait_for_running_work():
    callbacks, may_end, outcomes = CallbackQueue(), threading.Event(), []

    def work():
        may_end.wait(60)

    callbacks.background(work, outcomes.append)
    callbacks.run_if_ready()
    assert outcomes == []
    assert not callbacks.background.close(seconds=0)
    may_end.set()
    callbacks.run_next()
    assert len(outcomes) == 1
    assert callbacks.background.close(seconds=60)


def test_an_exception_is_in_the_future():
    callbacks, outcomes = CallbackQueue(), []

    def work():
        raise ZeroDivisionError

    callbacks.background(work, outcomes.append)
    callbacks.run_next()
    assert isinstance(outcomes[0].exception(), ZeroDivisionError)
    callbacks.background.close(seconds=60)

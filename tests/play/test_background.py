import threading

from azjax.play.background import Pump
from azjax.players import MoveDecision


def test_work_is_done_elsewhere_and_its_outcome_is_taken_here():
    pump, threads, outcomes = Pump(), [], []

    def work():
        threads.append(threading.current_thread())
        return MoveDecision(3)

    pump.background(work, lambda outcome: outcomes.append(outcome.result()))
    pump.wait()
    assert outcomes == [MoveDecision(3)]
    assert threads[0] is not threading.main_thread()
    assert pump.background.close(seconds=60)


def test_nobody_waits_while_work_goes_on():
    pump, may_end, outcomes = Pump(), threading.Event(), []

    def work():
        may_end.wait(60)

    pump.background(work, outcomes.append)
    pump.call()
    assert outcomes == []
    assert not pump.background.close(seconds=0)
    may_end.set()
    pump.wait()
    assert len(outcomes) == 1
    assert pump.background.close(seconds=60)


def test_what_goes_wrong_is_in_the_outcome():
    pump, outcomes = Pump(), []

    def work():
        raise ZeroDivisionError

    pump.background(work, outcomes.append)
    pump.wait()
    assert isinstance(outcomes[0].exception(), ZeroDivisionError)
    pump.background.close(seconds=60)

import pytest

from azjax.play.background import InlineExecutor
from azjax.players import MoveDecision


def test_work_from_callbacks_runs_in_order_without_recursion():
    run, said = InlineExecutor(), []

    def work(number):
        return lambda: MoveDecision(number)

    def then(outcome):
        number = outcome.result().action
        if number < 5_000:
            run(work(number + 1), then)
        said.append(number)

    run(work(0), then)
    assert said == list(range(5_001)), "in order, and without a deep recursion"


def test_exceptions_are_in_the_outcome():
    outcomes = []

    def work():
        raise ZeroDivisionError

    InlineExecutor()(work, outcomes.append)
    assert isinstance(outcomes[0].exception(), ZeroDivisionError)


def test_an_exception_in_a_callback_clears_the_queue():
    run, said = InlineExecutor(), []

    def then(outcome):
        run(lambda: None, said.append)
        raise outcome.exception()

    def work():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(work, then)
    run(lambda: MoveDecision(1), lambda outcome: said.append(outcome.result().action))
    assert said == [1]

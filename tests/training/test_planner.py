import pytest

from azjax.training.plan import new_plan
from azjax.training.planner import Planner, plan_text

LENGTH = ("minutes", 10.0)  # 600 seconds


def row(seconds):
    return {"iteration_seconds": seconds}


def planner(num_evaluations=4, seconds=lambda row, share: row["iteration_seconds"]):
    return Planner(LENGTH[1], num_evaluations, seconds)


def planned(planner, plan=None, *, iteration=3, seconds=100.0, evaluated=False):
    plan = plan or new_plan(LENGTH)
    return planner.replanned(plan, iteration, seconds, evaluated=evaluated)


def test_nothing_is_planned_before_an_iteration_that_compiled_nothing():
    clock = planner()
    assert planned(clock).end is None
    clock.add_iteration(row(50.0), has_compiled=True)
    assert planned(clock, evaluated=True).end is None
    clock.add_iteration(row(5.0), has_compiled=False)
    assert planned(clock).end == 3 + 100


def test_the_median_iteration_counts():
    clock = planner()
    for seconds in (4.0, 5.0, 90.0):
        clock.add_iteration(row(seconds), has_compiled=False)
    assert planned(clock).end == 3 + 100


def test_later_iterations_may_take_longer():
    clock = planner(
        seconds=lambda row, share: row["iteration_seconds"] * (1 if share < 0.5 else 3)
    )
    clock.add_iteration(row(5.0), has_compiled=False)
    assert planned(clock).end == 3 + 50


def test_a_plan_is_made_anew_at_an_evaluation_only():
    clock = planner()
    clock.add_iteration(row(5.0), has_compiled=False)
    plan = planned(clock)
    for _ in range(20):
        clock.add_iteration(row(10.0), has_compiled=False)
    assert planned(clock, plan, iteration=28, seconds=300.0) == plan
    plan = planned(clock, plan, iteration=28, seconds=300.0, evaluated=True)
    assert plan.end == 28 + 30
    assert plan.share(28) == 0.25


def test_time_is_left_for_the_evaluations_after_the_first_which_compiles():
    clock = planner()
    clock.add_evaluation(60.0)
    clock.add_iteration(row(5.0), has_compiled=False)
    assert planned(clock).end == 3 + 100
    clock.add_evaluation(10.0)
    assert planned(clock).end == 3 + (500 - 4 * 10) // 5


def test_where_compiling_takes_long_the_first_plan_is_a_rough_one():
    clock = planner()
    clock.add_iteration(row(50.0), has_compiled=True)
    plan = planned(clock, seconds=200.0)
    assert plan.end == 3 + 8
    clock.add_iteration(row(5.0), has_compiled=False)
    plan = planned(clock, plan, iteration=4, seconds=205.0)
    assert plan.end == 4 + 79
    assert planned(clock, plan, iteration=5, seconds=210.0) == plan


@pytest.mark.parametrize("has_compiled", [True, False])
def test_the_run_ends_when_its_time_is_over(has_compiled):
    clock = planner()
    clock.add_iteration(row(5.0), has_compiled=has_compiled)
    plan = planned(clock, seconds=600.0)
    assert plan.share(2) == 0
    assert plan.share(3) == 1


def test_an_iteration_is_left_while_there_is_time():
    clock = planner()
    clock.add_iteration(row(500.0), has_compiled=False)
    assert planned(clock, seconds=599.0).end == 4


def test_the_plan_says_positions_and_warns_of_few_iterations():
    plan = new_plan(LENGTH)
    assert plan_text(plan, 8192) == ""
    text = plan_text(plan.ending(0, 500), 8192)
    assert text == "planned: 500 iterations, 4,096,000 positions in 10 minutes"
    short = plan_text(plan.ending(0, 3), 8192)
    assert "too few iterations to learn much" in short
    assert "--minutes" in short

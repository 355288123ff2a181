from itertools import pairwise

import pytest

from azjax.training.plan import new_plan
from azjax.training.planner import Planner

LENGTH = ("minutes", 10.0)  # 600 seconds


def row(seconds, loss: float | None = 1.0):
    return {"iteration_seconds": seconds, "value_loss": loss}


def planner(num_evaluations=4, seconds=lambda row, share: row["iteration_seconds"]):
    return Planner(LENGTH[1], num_evaluations, 1000, seconds)


def planned(planner, plan=None, *, iteration=3, seconds=100.0, evaluations=0, **rest):
    plan = plan or new_plan(LENGTH)
    settings = {"has_evaluated": False, "updates": 1} | rest
    return planner.replanned(plan, iteration, seconds, evaluations, **settings)


def run(planner, seconds_of, *, evaluation_seconds=0.0, num_evaluations=0):
    """Plans a run of minutes after each iteration.

    Args:
        planner: of a run with `num_evaluations`.
        seconds_of: maps an iteration to its seconds.
        evaluation_seconds: of each evaluation.
        num_evaluations: in the run.

    Returns:
        The seconds of the run, the share after each iteration, the plan, the lines
        about it, and the iterations that were evaluated.
    """
    plan, iteration, seconds = new_plan(LENGTH), 0, 0.0
    evaluations = -1  # before that of the initial network
    shares, lines, evaluated = [0.0], [], []

    def replan(*, has_evaluated=False):
        nonlocal plan
        plan = planner.replanned(
            plan,
            iteration,
            seconds,
            max(evaluations, 0),
            updates=iteration,
            has_evaluated=has_evaluated,
        )
        lines.extend(planner.news())
        return plan.share(iteration)

    while shares[-1] < 1:
        iteration, seconds = iteration + 1, seconds + seconds_of(iteration)
        planner.add_iteration(row(seconds_of(iteration)))
        share = replan()
        is_due = share * num_evaluations >= planner.next_evaluation(max(evaluations, 0))
        if num_evaluations and (evaluations < 0 or is_due):
            seconds += evaluation_seconds
            evaluated.append(iteration)
            evaluations = int(share * num_evaluations)
            planner.add_evaluation(evaluation_seconds)
            share = replan(has_evaluated=True)
        shares.append(share)
    return seconds, shares, plan, lines, evaluated


def test_the_first_iteration_with_updates_counts_until_there_is_a_second():
    clock = planner()
    clock.add_iteration(row(50.0, loss=None))
    assert planned(clock, has_evaluated=True).end is None
    clock.add_iteration(row(50.0))
    plan = planned(clock)
    assert plan.end == 3 + 10
    assert clock.news() == []
    clock.add_iteration(row(5.0))
    assert planned(clock, plan, iteration=4).end == 4 + 100
    assert clock.news() == ["planned: 104 iterations, 104,000 positions in 10 minutes"]


def test_the_plan_uses_the_median_iteration():
    clock = planner()
    for seconds in (1.0, 4.0, 5.0, 90.0):
        clock.add_iteration(row(seconds))
    assert planned(clock).end == 3 + 100


def test_the_plan_allows_for_slower_later_iterations():
    clock = planner(
        seconds=lambda row, share: row["iteration_seconds"] * (1 if share < 0.5 else 3)
    )
    clock.add_iteration(row(5.0))
    assert planned(clock).end == 3 + 50


def test_a_plan_that_is_little_off_changes_at_an_evaluation_only():
    clock = planner()
    clock.add_iteration(row(5.0))
    plan = planned(clock)
    for _ in range(20):
        clock.add_iteration(row(5.5))
    assert planned(clock, plan, iteration=28, seconds=237.0) == plan
    plan = planned(clock, plan, iteration=28, seconds=237.0, has_evaluated=True)
    assert plan.end == 28 + 66
    assert plan.share(28) == 0.25


@pytest.mark.parametrize(("seconds", "number"), [(10.0, 45), (2.0, 223)])
def test_the_run_is_replanned_when_iterations_take_another_time(seconds, number):
    clock = planner()
    clock.add_iteration(row(5.0))
    plan = planned(clock)
    for _ in range(20):
        clock.add_iteration(row(seconds))
    assert planned(clock, plan, iteration=7, seconds=144.0) == plan
    plan = planned(clock, plan, iteration=8, seconds=154.0)
    assert plan.end == 8 + number


def test_a_run_whose_iterations_become_slower_reaches_its_end_step_by_step():
    found = run(planner(0), lambda iteration: 2.0 if iteration < 50 else 12.0)
    seconds, shares, _, lines, _ = found
    assert 590 < seconds < 620
    assert max(after - before for before, after in pairwise(shares)) < 0.1
    assert len(lines) == 1  # the first plan; others are printed after evaluations


def test_a_run_of_fast_and_slow_iterations_is_seldom_replanned():
    found = run(planner(0), lambda iteration: 1.0 if iteration % 2 else 10.0)
    seconds, _, plan, lines, _ = found
    assert 590 < seconds < 620
    assert len(plan.entries) < 20
    assert len(lines) < 5


def test_evaluations_do_not_change_the_plan_of_a_steady_run():
    seconds, _, plan, lines, evaluated = run(
        planner(5), lambda _: 2.0, evaluation_seconds=24.0, num_evaluations=5
    )
    assert 590 < seconds < 620
    assert len(evaluated) == 6
    ends = [entry.end or 0 for entry in plan.entries[3:]]
    assert max(ends) - min(ends) <= 1
    assert len(lines) < 4


def test_the_plan_reserves_time_for_evaluations_after_the_first():
    clock = planner()
    clock.add_evaluation(60.0)
    clock.add_iteration(row(5.0))
    assert planned(clock).end == 3 + 100
    clock.add_evaluation(10.0)
    assert planned(clock).end == 3 + (500 - 4 * 10) // 5
    assert planned(clock, evaluations=3).end == 3 + (500 - 10) // 5
    for seconds in (10.0, 30.0):  # the median counts
        clock.add_evaluation(seconds)
    assert planned(clock, evaluations=3).end == 3 + (500 - 10) // 5


@pytest.mark.parametrize(("evaluation", "seconds"), [(80.0, 10.0), (40.0, 2.0)])
def test_slow_evaluations_are_left_out_and_learning_keeps_its_time(evaluation, seconds):
    found = run(
        planner(20),
        lambda _: seconds,
        evaluation_seconds=evaluation,
        num_evaluations=20,
    )
    total, shares, plan, lines, evaluated = found
    iterations = len(shares) - 1
    # The first two show how long an evaluation takes; the last is made in any case.
    assert iterations * seconds >= 600 - 3 * evaluation - 2 * seconds
    assert 600 - 2 * seconds <= total <= 600 + evaluation
    assert 3 <= len(evaluated) <= 5
    assert evaluated[-1] == plan.end == iterations
    assert [line for line in lines if f"an evaluation takes {evaluation:.0f} s" in line]


def test_the_run_is_replanned_after_half_of_the_remaining_time():
    clock = planner()
    clock.add_iteration(row(10.0))
    plan = new_plan(LENGTH).ending(4, 12)
    assert planned(clock, plan, iteration=7, seconds=542.0) == plan
    assert planned(clock, plan, iteration=8, seconds=552.0).end == 8 + 5
    assert planned(clock, plan, iteration=12, seconds=500.0) == plan


@pytest.mark.parametrize("seconds", [[], [5.0]])
def test_the_run_ends_when_its_time_is_over(seconds):
    clock = planner()
    for each in seconds:
        clock.add_iteration(row(each))
    plan = planned(clock, seconds=600.0)
    assert plan.share(2) == 0
    assert plan.share(3) == 1


def test_a_run_without_an_update_goes_on_to_the_first_one():
    clock, plan = planner(), new_plan(LENGTH)
    for seconds in (600.0, 5999.0):
        assert planned(clock, plan, seconds=seconds, updates=0) == plan
    assert planned(clock, plan, seconds=5999.0, updates=1).share(3) == 1
    assert planned(clock, plan, seconds=6000.0, updates=0).share(3) == 1
    [line] = clock.news()
    assert "10 minutes are over before the first update" in line


def test_a_run_of_iterations_keeps_its_plan():
    clock = Planner(None, 4, 1000, lambda row, share: 1.0)
    clock.add_iteration(row(5.0))
    plan = new_plan(("iterations", 40))
    assert planned(clock, plan, seconds=1e6, has_evaluated=True) == plan


def test_an_iteration_remains_while_there_is_time():
    clock = planner()
    clock.add_iteration(row(500.0))
    assert planned(clock, seconds=599.0).end == 4


def test_only_large_changes_of_the_plan_are_printed():
    clock = planner()
    plan, lines = new_plan(LENGTH), []
    for seconds, used in ((1.0, 100.0), (1.0, 101.0), (1.1, 110.0), (2.0, 120.0)):
        for _ in range(17):
            clock.add_iteration(row(seconds))
        plan = planned(clock, plan, seconds=used, has_evaluated=True)
        lines += clock.news()
    assert lines == [
        "planned: 503 iterations, 503,000 positions in 10 minutes",
        "planned: 243 iterations, 243,000 positions in 10 minutes",
    ]

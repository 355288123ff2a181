from itertools import pairwise

import pytest

from azjax.training.plan import Entry, new_plan
from azjax.training.planner import Planner, plan_text

LENGTH = ("minutes", 10.0)  # 600 seconds


def row(seconds, loss: float | None = 1.0):
    return {"iteration_seconds": seconds, "value_loss": loss}


def planner(num_evaluations=4, seconds=lambda row, share: row["iteration_seconds"]):
    return Planner(LENGTH[1], num_evaluations, seconds)


def add_compiling(planner, seconds):
    """Adds an iteration that included compilation."""
    planner.enter(f"a phase of {seconds} seconds")
    planner.add_iteration(row(seconds))


def planned(planner, plan=None, *, iteration=3, seconds=100.0, evaluations=0, **rest):
    plan = plan or new_plan(LENGTH)
    settings = {"has_evaluated": False} | rest
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
        before = plan
        plan = planner.replanned(
            plan,
            iteration,
            seconds,
            max(evaluations, 0),
            has_evaluated=has_evaluated,
        )
        news = planner.news(before, plan, 1000), planner.thinning(max(evaluations, 0))
        lines.extend(filter(None, news))
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


def test_nothing_is_planned_before_an_iteration_without_compilation():
    clock = planner()
    assert planned(clock).end is None
    add_compiling(clock, 50.0)
    assert planned(clock, has_evaluated=True).end is None
    clock.add_iteration(row(5.0))
    assert planned(clock).end == 3 + 100


def test_the_plan_uses_the_median_iteration():
    clock = planner()
    for seconds in (4.0, 5.0, 90.0):
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
    seconds, shares, plan, lines, _ = found
    assert 590 < seconds < 620
    assert max(after - before for before, after in pairwise(shares)) < 0.1
    assert f"{plan.end} iterations" in lines[-1]


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


def test_the_share_follows_the_clock_during_a_long_compilation():
    clock = planner()
    add_compiling(clock, 140.0)
    plan = planned(clock, iteration=1, seconds=150.0)
    assert plan.share(1) == 0
    plan = planned(clock, plan, iteration=2, seconds=375.0)
    assert (plan.end, plan.share(2)) == (None, 0.5)
    clock.add_iteration(row(5.0))
    plan = planned(clock, plan, iteration=3, seconds=400.0)
    assert (plan.end, plan.share(3)) == (3 + 40, 0.5)


def test_the_run_is_replanned_after_half_of_the_remaining_time():
    clock = planner()
    clock.add_iteration(row(10.0))
    plan = new_plan(LENGTH).ending(4, 12)
    assert planned(clock, plan, iteration=7, seconds=542.0) == plan
    assert planned(clock, plan, iteration=8, seconds=552.0).end == 8 + 5
    assert planned(clock, plan, iteration=12, seconds=500.0) == plan


def test_a_phase_is_compiled_once_and_iterations_without_updates_are_not_used():
    clock = planner()
    clock.add_iteration(row(5.0, loss=None))
    assert planned(clock).end is None
    for _ in range(2):
        clock.enter("self-play")
        clock.add_iteration(row(5.0))
    assert planned(clock).end == 3 + 100


@pytest.mark.parametrize("add", [add_compiling, lambda *_: None])
def test_the_run_ends_when_its_time_is_over(add):
    clock = planner()
    add(clock, 5.0)
    plan = planned(clock, seconds=600.0)
    assert plan.share(2) == 0
    assert plan.share(3) == 1


def test_a_run_of_iterations_keeps_its_plan():
    clock = Planner(None, 4, lambda row, share: 1.0)
    clock.add_iteration(row(5.0))
    plan = new_plan(("iterations", 40))
    assert planned(clock, plan, seconds=1e6, has_evaluated=True) == plan


def test_an_iteration_remains_while_there_is_time():
    clock = planner()
    clock.add_iteration(row(500.0))
    assert planned(clock, seconds=599.0).end == 4


def test_a_late_plan_is_reported_once():
    late = new_plan(LENGTH).continued(Entry(1, 0.1, None))
    text = plan_text(new_plan(LENGTH), late, 8192)
    assert "iteration 1 ended after more than a quarter of 10 minutes" in text
    assert plan_text(late, late.continued(Entry(2, 0.2, None)), 8192) == ""


def test_the_first_plan_is_printed_with_positions_and_a_warning():
    unknown = new_plan(LENGTH)
    text = plan_text(unknown, unknown.ending(0, 500), 8192)
    assert text == "planned: 500 iterations, 4,096,000 positions in 10 minutes"
    short = plan_text(unknown, unknown.ending(0, 3), 8192)
    assert "too few iterations to learn much" in short
    assert "--minutes" in short


def test_only_large_changes_of_the_plan_are_printed():
    plan = new_plan(LENGTH)
    planned, soon = plan.ending(0, 500), plan.ending(0, 9)
    small = [(plan, plan), (plan, plan.ending(0, 0)), (soon, soon.ending(4, 4))]
    for before, after in [*small, (planned, planned.ending(9, 450))]:
        assert plan_text(before, after, 8192) == ""
    assert "planned: 300" in plan_text(planned, planned.ending(9, 300), 8192)

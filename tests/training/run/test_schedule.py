import json
from itertools import pairwise

import pytest

from azjax.training.run.schedule import (
    SCHEDULE_FILE,
    Entry,
    Planner,
    extended_schedule,
    new_schedule,
    read_schedule,
    schedule_from_json,
    schedule_to_repeat,
    write_schedule,
)

MINUTES = ("minutes", 20.0)


def test_the_progress_of_a_run_of_iterations_rises_by_equal_steps_to_1():
    schedule = new_schedule(("iterations", 3))
    assert [schedule.progress(iteration) for iteration in range(5)] == [
        0,
        1 / 3,
        2 / 3,
        1,
        1,
    ]


def test_the_progress_is_0_without_an_end_and_a_new_end_changes_only_the_increment():
    schedule = new_schedule(MINUTES)
    assert schedule.end is None
    assert schedule.progress(7) == 0
    schedule = schedule.ending(2, 10).ending(6, 8)
    done = [schedule.progress(iteration) for iteration in range(9)]
    assert done == [0, 0, 0, 0.125, 0.25, 0.375, 0.5, 0.75, 1]


def test_the_last_of_two_entries_of_an_iteration_is_valid():
    schedule = new_schedule(MINUTES).ending(2, 10).ending(2, 4)
    assert schedule.entries == (Entry(0, 0.0, None), Entry(2, 0.0, 4))


def test_a_run_without_time_ends_at_once():
    schedule = new_schedule(MINUTES).ending(2, 10).ending(6, 6)
    assert schedule.progress(5) < 0.5
    assert schedule.progress(6) == 1


def test_an_extended_run_continues_with_the_progress_of_the_new_length():
    schedule = extended_schedule(
        new_schedule(("iterations", 4)), ("iterations", 16), 4, 60.0
    )
    done = [schedule.progress(iteration) for iteration in (3, 4, 10, 16)]
    assert done == [0.75, 0.25, 0.625, 1]
    assert schedule.length == ("iterations", 16)


def test_a_run_of_minutes_is_planned_again_when_it_becomes_longer_or_shorter():
    finished = new_schedule(MINUTES).ending(2, 10)
    schedule = extended_schedule(finished, ("minutes", 40.0), 10, 20 * 60.0)
    assert schedule.end is None
    assert schedule.progress(9) < 1
    assert schedule.progress(12) == 0.5
    schedule = extended_schedule(
        new_schedule(MINUTES).ending(2, 100), ("minutes", 10.0), 5, 300.0
    )
    assert schedule.progress(5) == 0.5


@pytest.mark.parametrize("length", [("iterations", 4), ("minutes", 1.0)])
def test_a_length_that_has_been_used_is_refused(length):
    with pytest.raises(ValueError, match=f"{length[0]} must be more than the"):
        extended_schedule(new_schedule(MINUTES), length, 4, 60.0)


def test_a_schedule_in_a_file_has_the_same_progress(tmp_path):
    schedule = new_schedule(MINUTES).ending(3, 70).ending(31, 73)
    write_schedule(tmp_path, schedule)
    found = read_schedule(tmp_path)
    assert (
        found
        == schedule
        == schedule_from_json(json.loads(json.dumps(schedule.to_json())))
    )
    assert [found.progress(i) for i in range(80)] == [
        schedule.progress(i) for i in range(80)
    ]


def entry(**changes):
    return {"iteration": 0, "progress": 0.0, "end": 4} | changes


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        {"length": ["hours", 1], "entries": [entry()]},
        {"length": ["minutes", "1"], "entries": [entry()]},
        {"length": ["minutes", 0], "entries": [entry()]},
        {"length": ["minutes", float("nan")], "entries": [entry()]},
        {"length": ["minutes", 10**400], "entries": [entry()]},
        {"length": ["minutes", 1], "entries": []},
        {"length": ["minutes", 1], "entries": 3},
        *(
            {"length": ["minutes", 1], "entries": [wrong]}
            for wrong in (
                entry(iteration=1),
                entry(iteration=0.0),
                entry(progress=-0.1),
                entry(progress=float("nan")),
                entry(progress=None),
                entry(end="4"),
                entry(end=-1),
                entry(end=10**12),
                entry(other=1),
                [0, 0.0, 4],
            )
        ),
        {"length": ["minutes", 1], "entries": [entry(), entry()]},
    ],
)
def test_invalid_schedules_raise(content):
    with pytest.raises(ValueError, match="it is not a schedule"):
        schedule_from_json(content)


@pytest.mark.parametrize("content", [None, b"{", b"[" * 100_000, b"\xff", b"null"])
def test_a_missing_or_damaged_schedule_is_named(tmp_path, content):
    where = tmp_path
    if content is not None:
        where = f".*{SCHEDULE_FILE}"
        (tmp_path / SCHEDULE_FILE).write_bytes(content)
    with pytest.raises(ValueError, match=f"no schedule to repeat in {where}"):
        read_schedule(tmp_path)


@pytest.mark.parametrize(
    "schedule", [new_schedule(MINUTES), new_schedule(MINUTES).ending(0, 0)]
)
def test_a_schedule_without_an_end_cannot_be_followed(tmp_path, schedule):
    write_schedule(tmp_path, schedule)
    with pytest.raises(ValueError, match="has no end, or no iteration"):
        schedule_to_repeat(tmp_path)


LENGTH = ("minutes", 10.0)  # 600 seconds


def row(seconds, loss: float | None = 1.0):
    return {"iteration_seconds": seconds, "value_loss": loss}


def planner(num_evaluations=4, seconds=lambda row, progress: row["iteration_seconds"]):
    return Planner(LENGTH[1], num_evaluations, 1000, seconds)


def planned(
    planner, schedule=None, *, iteration=3, seconds=100.0, evaluations=0, **rest
):
    schedule = schedule or new_schedule(LENGTH)
    settings = {"has_evaluated": False, "updates": 1} | rest
    return planner.replanned(schedule, iteration, seconds, evaluations, **settings)


def run(planner, seconds_of, *, evaluation_seconds=0.0, num_evaluations=0):
    """Plans a run of minutes after each iteration.

    Args:
        planner: of a run with `num_evaluations`.
        seconds_of: maps an iteration to its seconds.
        evaluation_seconds: of each evaluation.
        num_evaluations: in the run.

    Returns:
        The seconds of the run, the progress after each iteration, the schedule, the
        lines about it, and the iterations that were evaluated.
    """
    schedule, iteration, seconds = new_schedule(LENGTH), 0, 0.0
    evaluations = -1  # before that of the initial network
    done, lines, evaluated = [0.0], [], []

    def replan(*, has_evaluated=False):
        nonlocal schedule
        schedule = planner.replanned(
            schedule,
            iteration,
            seconds,
            max(evaluations, 0),
            updates=iteration,
            has_evaluated=has_evaluated,
        )
        lines.extend(planner.news())
        return schedule.progress(iteration)

    while done[-1] < 1:
        iteration, seconds = iteration + 1, seconds + seconds_of(iteration)
        planner.add_iteration(row(seconds_of(iteration)))
        progress = replan()
        due = planner.next_evaluation(max(evaluations, 0))
        is_due = progress * num_evaluations >= due
        if num_evaluations and (evaluations < 0 or is_due):
            seconds += evaluation_seconds
            evaluated.append(iteration)
            evaluations = int(progress * num_evaluations)
            planner.add_evaluation(evaluation_seconds)
            progress = replan(has_evaluated=True)
        done.append(progress)
    return seconds, done, schedule, lines, evaluated


def test_the_first_iteration_with_updates_counts_until_there_is_a_second():
    clock = planner()
    clock.add_iteration(row(50.0, loss=None))
    assert planned(clock, has_evaluated=True).end is None
    clock.add_iteration(row(50.0))
    schedule = planned(clock)
    assert schedule.end == 3 + 10
    assert clock.news() == []
    clock.add_iteration(row(5.0))
    assert planned(clock, schedule, iteration=4).end == 4 + 100
    assert clock.news() == ["planned: 104 iterations, 104,000 positions in 10 minutes"]


def test_the_plan_uses_the_median_iteration():
    clock = planner()
    for seconds in (1.0, 4.0, 5.0, 90.0):
        clock.add_iteration(row(seconds))
    assert planned(clock).end == 3 + 100


def test_the_plan_allows_for_slower_later_iterations():
    clock = planner(
        seconds=lambda row, progress: (
            row["iteration_seconds"] * (1 if progress < 0.5 else 3)
        )
    )
    clock.add_iteration(row(5.0))
    assert planned(clock).end == 3 + 50


def test_a_plan_that_is_little_off_changes_at_an_evaluation_only():
    clock = planner()
    clock.add_iteration(row(5.0))
    schedule = planned(clock)
    for _ in range(20):
        clock.add_iteration(row(5.5))
    assert planned(clock, schedule, iteration=28, seconds=237.0) == schedule
    schedule = planned(clock, schedule, iteration=28, seconds=237.0, has_evaluated=True)
    assert schedule.end == 28 + 66
    assert schedule.progress(28) == 0.25


@pytest.mark.parametrize(("seconds", "number"), [(10.0, 45), (2.0, 223)])
def test_the_run_is_replanned_when_iterations_take_another_time(seconds, number):
    clock = planner()
    clock.add_iteration(row(5.0))
    schedule = planned(clock)
    for _ in range(20):
        clock.add_iteration(row(seconds))
    assert planned(clock, schedule, iteration=7, seconds=144.0) == schedule
    schedule = planned(clock, schedule, iteration=8, seconds=154.0)
    assert schedule.end == 8 + number


def test_a_run_whose_iterations_become_slower_reaches_its_end_step_by_step():
    found = run(planner(0), lambda iteration: 2.0 if iteration < 50 else 12.0)
    seconds, done, _, lines, _ = found
    assert 590 < seconds < 620
    assert max(after - before for before, after in pairwise(done)) < 0.1
    assert len(lines) == 1  # the first schedule; others are printed after evaluations


def test_a_run_of_fast_and_slow_iterations_is_seldom_replanned():
    found = run(planner(0), lambda iteration: 1.0 if iteration % 2 else 10.0)
    seconds, _, schedule, lines, _ = found
    assert 590 < seconds < 620
    assert len(schedule.entries) < 20
    assert len(lines) < 5


def test_evaluations_do_not_change_the_plan_of_a_steady_run():
    seconds, _, schedule, lines, evaluated = run(
        planner(5), lambda _: 2.0, evaluation_seconds=24.0, num_evaluations=5
    )
    assert 590 < seconds < 620
    assert len(evaluated) == 6
    ends = [entry.end or 0 for entry in schedule.entries[3:]]
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
    total, done, schedule, lines, evaluated = found
    iterations = len(done) - 1
    # The first two show how long an evaluation takes; the last is made in any case.
    assert iterations * seconds >= 600 - 3 * evaluation - 2 * seconds
    assert 600 - 2 * seconds <= total <= 600 + evaluation
    assert 3 <= len(evaluated) <= 5
    assert evaluated[-1] == schedule.end == iterations
    assert [line for line in lines if f"an evaluation takes {evaluation:.0f} s" in line]


def test_the_run_is_replanned_after_half_of_the_remaining_time():
    clock = planner()
    clock.add_iteration(row(10.0))
    schedule = new_schedule(LENGTH).ending(4, 12)
    assert planned(clock, schedule, iteration=7, seconds=542.0) == schedule
    assert planned(clock, schedule, iteration=8, seconds=552.0).end == 8 + 5
    assert planned(clock, schedule, iteration=12, seconds=500.0) == schedule


@pytest.mark.parametrize("seconds", [[], [5.0]])
def test_the_run_ends_when_its_time_is_over(seconds):
    clock = planner()
    for each in seconds:
        clock.add_iteration(row(each))
    schedule = planned(clock, seconds=600.0)
    assert schedule.progress(2) == 0
    assert schedule.progress(3) == 1


def test_a_run_without_an_update_goes_on_to_the_first_one():
    clock, schedule = planner(), new_schedule(LENGTH)
    for seconds in (600.0, 5999.0):
        assert planned(clock, schedule, seconds=seconds, updates=0) == schedule
    assert planned(clock, schedule, seconds=5999.0, updates=1).progress(3) == 1
    assert planned(clock, schedule, seconds=6000.0, updates=0).progress(3) == 1
    [line] = clock.news()
    assert "10 minutes are over before the first update" in line


def test_a_run_of_iterations_keeps_its_plan():
    clock = Planner(None, 4, 1000, lambda row, progress: 1.0)
    clock.add_iteration(row(5.0))
    schedule = new_schedule(("iterations", 40))
    assert planned(clock, schedule, seconds=1e6, has_evaluated=True) == schedule


def test_an_iteration_remains_while_there_is_time():
    clock = planner()
    clock.add_iteration(row(500.0))
    assert planned(clock, seconds=599.0).end == 4


def test_only_large_changes_of_the_plan_are_printed():
    clock = planner()
    schedule, lines = new_schedule(LENGTH), []
    for seconds, used in ((1.0, 100.0), (1.0, 101.0), (1.1, 110.0), (2.0, 120.0)):
        for _ in range(17):
            clock.add_iteration(row(seconds))
        schedule = planned(clock, schedule, seconds=used, has_evaluated=True)
        lines += clock.news()
    assert lines == [
        "planned: 503 iterations, 503,000 positions in 10 minutes",
        "planned: 243 iterations, 243,000 positions in 10 minutes",
    ]

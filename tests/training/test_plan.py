import json

import pytest

from azjax.training.plan import (
    PLAN_FILE,
    Entry,
    extended_plan,
    new_plan,
    plan_from_json,
    plan_to_follow,
    read_plan,
    write_plan,
)

MINUTES = ("minutes", 20.0)


def test_the_share_of_a_run_of_iterations_rises_by_equal_steps_to_1():
    plan = new_plan(("iterations", 3))
    assert [plan.share(iteration) for iteration in range(5)] == [0, 1 / 3, 2 / 3, 1, 1]


def test_the_share_is_0_without_an_end_and_a_new_end_changes_only_the_increment():
    plan = new_plan(MINUTES)
    assert plan.end is None
    assert plan.share(7) == 0
    plan = plan.ending(2, 10).ending(6, 8)
    shares = [plan.share(iteration) for iteration in range(9)]
    assert shares == [0, 0, 0, 0.125, 0.25, 0.375, 0.5, 0.75, 1]


def test_the_last_of_two_entries_of_an_iteration_is_valid():
    plan = new_plan(MINUTES).ending(2, 10).ending(2, 4)
    assert plan.entries == (Entry(0, 0.0, None), Entry(2, 0.0, 4))


def test_a_run_without_time_ends_at_once():
    plan = new_plan(MINUTES).ending(2, 10).ending(6, 6)
    assert plan.share(5) < 0.5
    assert plan.share(6) == 1


def test_an_extended_run_continues_with_the_share_of_the_new_length():
    plan = extended_plan(new_plan(("iterations", 4)), ("iterations", 16), 4, 60.0)
    shares = [plan.share(iteration) for iteration in (3, 4, 10, 16)]
    assert shares == [0.75, 0.25, 0.625, 1]
    assert plan.length == ("iterations", 16)


def test_a_run_of_minutes_is_planned_again_when_it_becomes_longer_or_shorter():
    finished = new_plan(MINUTES).ending(2, 10)
    plan = extended_plan(finished, ("minutes", 40.0), 10, 20 * 60.0)
    assert plan.end is None
    assert plan.share(9) < 1
    assert plan.share(12) == 0.5
    plan = extended_plan(new_plan(MINUTES).ending(2, 100), ("minutes", 10.0), 5, 300.0)
    assert plan.share(5) == 0.5


@pytest.mark.parametrize("length", [("iterations", 4), ("minutes", 1.0)])
def test_a_length_that_has_been_used_is_refused(length):
    with pytest.raises(ValueError, match=f"{length[0]} must be more than the"):
        extended_plan(new_plan(MINUTES), length, 4, 60.0)


def test_a_plan_in_a_file_has_the_same_shares(tmp_path):
    plan = new_plan(MINUTES).ending(3, 70).ending(31, 73)
    write_plan(tmp_path, plan)
    found = read_plan(tmp_path)
    assert found == plan == plan_from_json(json.loads(json.dumps(plan.to_json())))
    assert [found.share(i) for i in range(80)] == [plan.share(i) for i in range(80)]


def entry(**changes):
    return {"iteration": 0, "share": 0.0, "end": 4} | changes


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
                entry(share=-0.1),
                entry(share=float("nan")),
                entry(share=None),
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
def test_invalid_plans_raise(content):
    with pytest.raises(ValueError, match="it is not a plan"):
        plan_from_json(content)


@pytest.mark.parametrize("content", [None, b"{", b"[" * 100_000, b"\xff", b"null"])
def test_a_missing_or_damaged_plan_is_named(tmp_path, content):
    where = tmp_path
    if content is not None:
        where = f".*{PLAN_FILE}"
        (tmp_path / PLAN_FILE).write_bytes(content)
    with pytest.raises(ValueError, match=f"no plan to follow in {where}"):
        read_plan(tmp_path)


@pytest.mark.parametrize("plan", [new_plan(MINUTES), new_plan(MINUTES).ending(0, 0)])
def test_a_plan_without_an_end_cannot_be_followed(tmp_path, plan):
    write_plan(tmp_path, plan)
    with pytest.raises(ValueError, match="has no end, or no iteration"):
        plan_to_follow(tmp_path)

import threading

import pytest

from azjax.play.uci.limits import Clock, Limits, parse_go


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", Limits()),
        ("nodes 50 depth 3", Limits(nodes=50, depth=3)),
        ("nodes 0 depth -2", Limits(nodes=1, depth=1)),
        ("movetime 1500", Limits(seconds=1.5)),
        ("wtime 60000 btime 1000", Limits(seconds=2.0)),
        ("wtime 60000 winc 2000 btime 1", Limits(seconds=3.5)),
        ("wtime 60000 movestogo 10", Limits(seconds=6.0)),
        ("wtime 1000 movestogo 1", Limits(seconds=0.8)),
        ("wtime 1000 winc 60000", Limits(seconds=0.8)),
        ("wtime -50", Limits(seconds=0.01)),
        ("btime 60000", Limits()),
        ("infinite", Limits(is_infinite=True)),
        ("infinite wtime 60000", Limits(is_infinite=True)),
        ("ponder wtime 60000", Limits(seconds=2.0, is_ponder=True)),
        ("nodes x movetime ٣ searchmoves e2e4", Limits()),
        ("nodes", Limits()),
    ],
)
def test_the_limits_of_white_are_read(text, limits):
    assert parse_go(text.split(), 0) == pytest.approx(limits)


def test_black_has_its_own_clock():
    words = ["wtime", "60000", "btime", "30000", "winc", "0", "binc", "100"]
    assert parse_go(words, 1).seconds == pytest.approx(1.075)


def test_a_clock_ends_at_its_limits():
    assert not Clock(Limits()).is_over(99, 99.0)
    assert Clock(Limits(depth=3)).is_over(3, 0.0)
    assert not Clock(Limits(depth=3)).is_over(2, 0.0)
    assert Clock(Limits(seconds=0.0)).is_over(1, 0.0)
    assert Clock(Limits(seconds=1000.0)).is_over(1, 2000.0)
    assert not Clock(Limits(seconds=1000.0)).is_over(1, 0.0)


@pytest.mark.parametrize("limits", [Limits(is_infinite=True), Limits(is_ponder=True)])
def test_a_waiting_clock_waits_for_stop(limits):
    clock = Clock(limits)
    assert clock.is_waiting
    threading.Timer(0.01, clock.stop).start()
    clock.wait()
    assert clock.is_over(0, 0.0)


def test_time_counts_from_the_hit_of_a_ponder_search():
    clock = Clock(Limits(seconds=0.0, is_ponder=True))
    assert not clock.is_over(1, 0.0)
    clock.ponderhit()
    assert clock.is_over(1, 0.0)
    clock.wait()


def test_a_hit_does_not_end_an_infinite_search():
    clock = Clock(Limits(is_infinite=True))
    clock.ponderhit()
    assert clock.is_waiting

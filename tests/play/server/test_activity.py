import math
import time

from azjax.play.server import activity
from azjax.play.server.activity import Activity


def test_the_server_is_busy_until_some_time_after_the_last_request(monkeypatch):
    current = Activity()
    assert current.is_busy  # clients can wait for the server to start
    current.last_answer = -math.inf
    assert not current.is_busy
    current.num_decisions = 1
    assert current.is_busy
    current.num_decisions, current.last_answer = 0, time.monotonic()
    assert current.is_busy  # a client that plays soon sends the next request
    monkeypatch.setattr(activity, "QUIET_SECONDS", 0.0)
    assert not current.is_busy

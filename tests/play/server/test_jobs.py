import threading

import pytest

from azjax.play.server import Limits
from azjax.play.server.jobs import Job, JobQueue


def test_a_queue_that_cannot_start_a_thread_raises_and_recovers(monkeypatch):
    served = threading.Event()

    def serve():
        queue.take(1)
        served.set()
        return False

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    queue = JobQueue(serve, "test")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            queue.put(Job(None, (), 0, lambda: None, Limits()))
    assert not queue.waiting
    queue.put(Job(None, (), 0, lambda: None, Limits()))
    assert served.wait(60)

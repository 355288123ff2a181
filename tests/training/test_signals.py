import os
import signal
import threading

import pytest

from azjax.training.signals import StopSignals


@pytest.fixture(autouse=True)
def usual_handler():
    """Python's own; a shell makes its background jobs ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_for_a_stop(number):
    with StopSignals() as signals:
        assert not signals.stopping
        os.kill(os.getpid(), number)
        assert signals.stopping


def test_a_second_signal_does_what_it_did_before():
    with pytest.raises(KeyboardInterrupt), StopSignals() as signals:  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.stopping
        os.kill(os.getpid(), signal.SIGINT)


def test_the_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopSignals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert after == before


def test_in_another_thread_signals_are_left_alone():
    before, seen = signal.getsignal(signal.SIGINT), []

    def run():
        with StopSignals() as signals:
            seen.append((signals.stopping, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(False, before)]

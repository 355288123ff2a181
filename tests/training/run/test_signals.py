import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from azjax.training.run import signals as module
from azjax.training.run.signals import ANNOUNCEMENT, StopSignals


def stop_signals(report=lambda text: None):
    return StopSignals(report, lambda: None)


@pytest.fixture(autouse=True)
def usual_handler():
    """Python's default handler; a shell makes its background jobs ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_requests_a_stop(number):
    with stop_signals() as signals:
        assert not signals.stopping
        os.kill(os.getpid(), number)
        assert signals.stopping


def test_a_second_signal_has_its_previous_effect():
    with pytest.raises(KeyboardInterrupt), stop_signals() as signals:  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.stopping
        os.kill(os.getpid(), signal.SIGINT)


def test_signal_handlers_are_restored():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_signals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert after == before


def test_another_thread_does_not_change_signal_handlers():
    before, seen = signal.getsignal(signal.SIGINT), []

    def run():
        with stop_signals() as signals:
            seen.append((signals.stopping, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(False, before)]


def test_a_stop_is_announced_once(capsys):
    announced, texts = threading.Event(), []

    def report(text):
        texts.append(text)
        announced.set()

    with stop_signals(report):
        os.kill(os.getpid(), signal.SIGTERM)
        assert announced.wait(60)
    assert texts == [ANNOUNCEMENT]


def test_missing_signals_are_skipped(monkeypatch):
    monkeypatch.delattr(module.signal, "SIGTERM")
    with stop_signals() as signals:
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.stopping


# The main thread is in a library call longer than the test may last, as in XLA.
COMPUTING = """
    import hashlib, importlib.util, signal, sys, threading

    spec = importlib.util.spec_from_file_location("signals", sys.argv[1])
    signals = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(signals)

    def report(text):
        print(text, flush=True)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    stop_signals = signals.StopSignals
    with signals.exit_on_second_signal(), stop_signals(report, lambda: report("left")):
        threading.Timer(0.1, report, ["computing"]).start()
        try:
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2**31 - 1)
        except KeyboardInterrupt:  # it had not begun yet: the machine is busy
            report("left")
            sys.exit(130)
"""


def test_signals_are_received_while_the_main_thread_computes():
    command = [sys.executable, "-c", textwrap.dedent(COMPUTING), module.__file__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        lines = program.stdout
        assert lines.readline() == "computing\n"
        program.send_signal(signal.SIGINT)
        assert lines.readline() == f"{ANNOUNCEMENT}\n"
        program.send_signal(signal.SIGINT)
        assert lines.readline() == "left\n"
    assert program.returncode == 128 + signal.SIGINT

"""A pytest plugin that reports fast tests over a limit of CPU time.

A test's CPU time contains that of the child processes for which it waited, but not the
work of fixtures that it shares with other tests.
"""

import os

import pytest

LIMIT_SECONDS = 1.5
MAX_LINES = 30


class CpuLimit:
    """Measures the tests of a worker, and collects those of all workers.

    used: CPU seconds of the current test until its last own work.
    shared: CPU seconds of the current test in shared fixtures.
    over: CPU seconds by name of the tests over the limit.
    """

    def __init__(self):
        self.start = self.used = self.shared = 0.0
        self.over: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self):
        self.start, self.used, self.shared = _cpu_seconds(), 0.0, 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            return (yield)
        shared, start = self.shared, _cpu_seconds()
        try:
            return (yield)
        finally:  # includes the shared fixtures that this one needs
            self.shared = shared + _cpu_seconds() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self):
        try:
            return (yield)
        finally:
            self.used = _cpu_seconds() - self.start

    def pytest_fixture_post_finalizer(self, fixturedef):
        if fixturedef.scope == "function":
            self.used = _cpu_seconds() - self.start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item):
        try:
            return (yield)
        finally:
            item.user_properties.append(("cpu_seconds", self.used - self.shared))

    def pytest_runtest_logreport(self, report):
        if report.when == "teardown" and "slow" not in report.keywords:
            seconds = dict(report.user_properties)["cpu_seconds"]
            if seconds > LIMIT_SECONDS:
                self.over[report.nodeid] = seconds

    def pytest_terminal_summary(self, terminalreporter):
        if not self.over:
            return
        title = f"fast tests that used more than {LIMIT_SECONDS} s of CPU time"
        terminalreporter.section(title)
        names = sorted(self.over, key=lambda name: -self.over[name])
        for name in names[:MAX_LINES]:
            terminalreporter.line(f"{self.over[name]:5.1f} s  {name}")
        if names[MAX_LINES:]:
            terminalreporter.line(f"and {len(names) - MAX_LINES} more")


def _cpu_seconds():
    return sum(os.times()[:4])

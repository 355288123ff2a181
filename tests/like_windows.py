"""Hides the modules and signals that Windows lacks; also a pytest plugin.

azjax and its tests see neither the modules that Windows lacks nor the missing members
of `signal` and `os`; event loops accept no signal handlers. Other packages are not
affected: `python -m pytest -p like_windows`.
"""

import asyncio
import builtins
import os
import signal
import types

import pytest

ABSENT = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
SIGNALS = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM"}
ONLY_UNIX = {"fork", "forkpty", "getpgid", "getuid", "killpg", "mkfifo", "setsid"}

_import = builtins.__import__


def _without(module, absent):
    copy = types.ModuleType(module.__name__)
    kept = {name: value for name, value in vars(module).items() if name not in absent}
    copy.__dict__.update(kept)
    return copy


_os = _without(
    os, {name for name in vars(os) if name in ONLY_UNIX or "sysconf" in name}
)
_signal = _without(
    signal,
    {name for name in vars(signal) if name.isupper() and name[:4] != "SIG_"} - SIGNALS
    | {"alarm", "pause", "pthread_kill", "setitimer", "sigwait"},
)


def _set_handler(number, handler):
    if number not in {getattr(signal, name) for name in SIGNALS}:
        raise ValueError(f"invalid signal value: {number}")
    return signal.signal(number, handler)


_signal.signal = _set_handler


def _import_on_windows(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "").split(".")[0]
    if level == 0 and (importer in ("azjax", "tests") or importer.startswith("test_")):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in ("os", "signal"):
            return _os if name == "os" else _signal
    return _import(name, globals, locals, fromlist, level)


def _no_handler(*_):
    raise NotImplementedError


def hide(patch):
    """Hides them from modules of azjax that are imported from now on."""
    patch.setattr(builtins, "__import__", _import_on_windows)
    patch.setattr(asyncio.SelectorEventLoop, "add_signal_handler", _no_handler)


def pytest_load_initial_conftests():
    hide(pytest.MonkeyPatch())

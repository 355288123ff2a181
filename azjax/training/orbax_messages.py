"""Suppresses messages of Orbax, TensorStore and asyncio about a failure that is raised.

After a failure Orbax logs a traceback in each of its threads, and each unfinished
coroutine and TensorStore operation prints another one when it is garbage collected.
"""

import contextlib
import gc
import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

PENDING_SECONDS = 1.0  # longer than pending TensorStore operations take
_LOGGERS = ("absl", "asyncio")
_WORDS = ("orbax", "tensorstore", "TensorStore")
_UNAWAITED = "coroutine .* was never awaited"


@contextlib.contextmanager
def suppress_orbax_messages() -> Iterator[None]:
    """A context that suppresses these messages, after a failure for `PENDING_SECONDS`
    more; contexts of several threads may overlap.

    What Orbax's threads release in that time is collected before it ends.
    """
    _Suppression.enter()
    try:
        yield
    except BaseException as error:
        _drop_frames(error)

        def collect_and_leave() -> None:
            gc.collect()
            _Suppression.leave()

        end = threading.Timer(PENDING_SECONDS, collect_and_leave)
        end.daemon = True
        end.start()
        raise
    _Suppression.leave()


class _Suppression:
    """The process-wide logging filters and unraisable hook, installed while a context
    is active."""

    _lock = threading.Lock()
    _contexts = 0
    _hook: Callable[[Any], object] | None = None

    @classmethod
    def enter(cls) -> None:
        with cls._lock:
            cls._contexts += 1
            if cls._contexts == 1:
                for name in _LOGGERS:
                    logging.getLogger(name).addFilter(_is_kept)
                cls._hook, sys.unraisablehook = sys.unraisablehook, cls._show

    @classmethod
    def leave(cls) -> None:
        with cls._lock:
            cls._contexts -= 1
            if cls._contexts == 0:
                for name in _LOGGERS:
                    logging.getLogger(name).removeFilter(_is_kept)
                if sys.unraisablehook == cls._show and cls._hook is not None:
                    sys.unraisablehook = cls._hook

    @classmethod
    def _show(cls, unraisable: Any) -> None:
        code = getattr(unraisable.object, "cr_code", None)
        is_coroutine = code is not None and "orbax" in code.co_filename
        is_operation = str(unraisable.exc_value) == "Event loop is closed"
        if not is_coroutine and not is_operation and cls._hook is not None:
            cls._hook(unraisable)


def _is_kept(record: logging.LogRecord) -> bool:
    text = record.pathname if record.name == "absl" else record.getMessage()
    return not any(word in text for word in _WORDS)


def _drop_frames(error: BaseException) -> None:
    """Collects the coroutines and futures that an exception's tracebacks hold."""
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _UNAWAITED, RuntimeWarning)
        gc.collect()

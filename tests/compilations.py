"""Programs that JAX compiles."""

import contextlib
import threading

import jax


@contextlib.contextmanager
def compilations():
    """Records the names of the programs that this thread compiles, or reads from the
    cache on the disk."""
    names, here = [], threading.get_ident()

    def note(event, duration_secs, fun_name="", **_):
        is_compilation = event.endswith("/backend_compile_duration")
        if is_compilation and threading.get_ident() == here:
            names.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield names
    finally:
        jax.monitoring.unregister_event_duration_listener(note)

import contextlib
import errno
import gc
import logging
import shutil
import sys
import time

import chex
import jax
import numpy as np
import pytest
from flax import struct

from azjax.training.run import checkpoints as module
from azjax.training.run.checkpoints import (
    Checkpoints,
    digest,
    suppress_orbax_messages,
)


@struct.dataclass
class State:
    weights: jax.Array
    halves: jax.Array
    small: jax.Array
    flags: jax.Array
    words: jax.Array
    rng_key: jax.Array | None
    iteration: jax.Array


def make_state(seed: int) -> State:
    generator = np.random.default_rng(seed)
    weights = generator.normal(size=(500, 20)).astype(np.float32)
    weights[0, 0] = np.nan
    arrays = State(
        weights=weights,
        halves=generator.normal(size=40).astype(np.float16),
        small=np.arange(-5, 5, dtype=np.int8),
        flags=np.array([True, False]),
        words=np.array([0, 2**32 - 1], np.uint32),
        rng_key=None,
        iteration=np.int32(seed),
    )
    # Copied to the device, not computed there: nothing is compiled.
    state = jax.tree.map(lambda array: jax.device_put(array, may_alias=False), arrays)
    return state.replace(rng_key=jax.random.key(seed))


def make_progress(iteration: int) -> dict:
    return {"iteration": iteration, "seconds": 0.1 + iteration, "last": {"rate": None}}


def save(directory, iterations, mistakes=None, keep=2):
    with Checkpoints(directory, keep=keep) as checkpoints:
        for iteration in iterations:
            checkpoints.save(
                make_state(iteration),
                make_progress(iteration),
                mistakes=mistakes and mistakes[iteration],
            )


def restore(directory, target=None, version=1):
    reports = []
    with Checkpoints(directory, keep=2, version=version) as checkpoints:
        found = checkpoints.restore(target or make_state(99), reports.append)
    return found, reports


@pytest.fixture(scope="session")
def two_saved(tmp_path_factory):
    """A directory with the checkpoints 1 and 2."""
    directory = tmp_path_factory.mktemp("checkpoints")
    save(directory, [1, 2])
    return directory


@pytest.fixture
def saved(two_saved, tmp_path):
    """A copy of this directory."""
    shutil.copytree(two_saved, tmp_path, dirs_exist_ok=True)
    return tmp_path


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def largest_file(directory):
    files = (path for path in directory.rglob("*") if path.is_file())
    return max(files, key=lambda path: path.stat().st_size)


def assert_bits_equal(a: State, b: State) -> None:
    chex.assert_trees_all_equal(a, b, strict=True)
    assert digest(a) == digest(b)


def test_restored_state_equals_saved_state_bit_for_bit(tmp_path):
    save(tmp_path, [3])
    (state, progress), reports = restore(tmp_path)
    assert_bits_equal(state, make_state(3))
    assert progress == make_progress(3)
    assert reports == []


def test_restore_returns_none_without_checkpoints(tmp_path):
    assert restore(tmp_path / "new") == (None, [])


def test_donating_the_state_after_a_save_does_not_damage_the_checkpoint(tmp_path):
    change = jax.jit(
        lambda state: state.replace(weights=state.weights * 0), donate_argnums=0
    )
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        state = make_state(1)
        checkpoints.save(state, make_progress(1), mistakes=None)
        change(state)
    (state, _), _ = restore(tmp_path)
    assert_bits_equal(state, make_state(1))


def test_the_newest_and_the_best_are_kept_also_after_a_restart(tmp_path):
    mistakes = {1: 0.9, 2: 0.2, 3: 0.4, 4: 0.5, 5: 0.6}
    save(tmp_path, mistakes, mistakes)
    assert names(tmp_path) == ["2", "4", "5"]
    save(tmp_path, [6, 7], keep=1)
    assert names(tmp_path) == ["2", "7"]


@pytest.mark.parametrize("content", [bytes(20), b"[" * 100_000])
def test_damaged_metrics_affect_only_the_rank(tmp_path, content):
    save(tmp_path, [1, 2], {1: 0.1, 2: 0.2})
    (tmp_path / "1" / "metrics" / "metrics").write_bytes(content)
    save(tmp_path, [3, 4], {3: 0.3, 4: 0.4})
    assert names(tmp_path) == ["2", "3", "4"]


def test_an_existing_checkpoint_is_not_saved_again(saved):
    before = largest_file(saved / "2").stat().st_mtime_ns
    save(saved, [2])
    assert names(saved) == ["1", "2"]
    assert largest_file(saved / "2").stat().st_mtime_ns == before


def truncate(directory):
    path = largest_file(directory)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(directory):
    largest_file(directory).write_bytes(b"")


def flip_bit(directory):
    path = largest_file(directory)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def change_progress(directory):
    path = directory / "progress" / "metadata"
    path.write_text(path.read_text().replace('"seconds": 2.1', '"seconds": 9.1'))


def nest_progress(directory):
    (directory / "progress" / "metadata").write_text("[" * 100_000)


@pytest.mark.parametrize(
    "damage",
    [truncate, empty, flip_bit, change_progress, nest_progress],
)
def test_a_damaged_checkpoint_is_renamed_and_the_previous_one_restored(saved, damage):
    damage(saved / "2")
    (state, progress), reports = restore(saved)
    assert_bits_equal(state, make_state(1))
    assert progress["iteration"] == 1
    assert len(reports) == 1
    assert "\n" not in reports[0]
    assert "checkpoint 2 is damaged and was set aside as 2.damaged: " in reports[0]
    assert names(saved) == ["1", "2.damaged"]


def test_other_failures_raise_and_leave_checkpoints_unchanged(saved, monkeypatch):
    for failure in (
        OSError(errno.EIO, "Input/output error"),
        MemoryError(),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 7 bytes"),
        ValueError("INTERNAL: Error reading [os_error_code='5']"),
        ValueError("UNAVAILABLE: try again"),
        KeyError("shape"),
    ):

        def fail(*_, failure=failure, **__):
            raise failure

        monkeypatch.setattr(module.ocp.CheckpointManager, "restore", fail)
        with pytest.raises((type(failure), OSError, ValueError)):
            restore(saved)
        assert names(saved) == ["1", "2"]
    monkeypatch.undo()
    assert restore(saved)[0][1]["iteration"] == 2


def test_a_checkpoint_with_the_name_of_another_is_set_aside(saved):
    shutil.copytree(saved / "1", saved / "7")
    (_, progress), (report,) = restore(saved)
    assert progress["iteration"] == 2
    assert "7.damaged: its name is not its iteration" in report


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", '{"commit_timestamp_nsecs": 1e300}']
)
def test_checkpoints_that_cannot_be_listed_are_refused_and_kept(saved, text):
    (saved / "2" / "_CHECKPOINT_METADATA").write_text(text)
    with pytest.raises(ValueError, match=r"cannot be listed \(.*\): move") as error:
        restore(saved)
    assert "\n" not in str(error.value)
    assert names(saved) == ["1", "2"]


def test_a_missing_file_is_named_and_the_checkpoint_left_unchanged(saved):
    largest_file(saved / "2").unlink()
    with pytest.raises(ValueError, match="checkpoint 2 cannot be read") as error:
        restore(saved)
    assert "to continue from the checkpoint before it" in str(error.value)
    assert "\n" not in str(error.value)
    assert names(saved) == ["1", "2"]


def test_a_checkpoint_can_replace_a_damaged_one(tmp_path):
    save(tmp_path, [1])
    for _ in range(2):  # an earlier renamed checkpoint is not overwritten
        save(tmp_path, [2])
        truncate(tmp_path / "2")
        assert restore(tmp_path)[0][1]["iteration"] == 1
    save(tmp_path, [2])
    (state, _), reports = restore(tmp_path)
    assert_bits_equal(state, make_state(2))
    assert reports == []
    assert names(tmp_path) == ["1", "2", "2.damaged", "2.damaged+"]


def test_damage_of_all_checkpoints_raises_and_deletes_nothing(saved):
    truncate(saved / "1")
    flip_bit(saved / "2")
    for _ in range(2):  # also when they have been renamed
        with pytest.raises(ValueError, match="start a new run in another directory"):
            restore(saved)
    assert names(saved) == ["1.damaged", "2.damaged"]


def test_a_checkpoint_of_another_version_is_refused_and_kept(saved):
    with pytest.raises(ValueError, match=r"has format 1; this version .* reads .* 7"):
        restore(saved, version=7)
    assert names(saved) == ["1", "2"]


def test_a_checkpoint_of_another_network_or_optimizer_is_refused_and_kept(saved):
    for other in (
        make_state(0).replace(weights=np.zeros((500, 21), np.float32)),
        make_state(0).replace(halves={"momentum": np.zeros(40, np.float16)}),
        make_state(0).replace(small=np.arange(10, dtype=np.int32)),
    ):
        with pytest.raises(
            ValueError, match="same `modules`, `optimizer` and"
        ) as error:
            restore(saved, other)
        assert "\n" not in str(error.value)
    assert names(saved) == ["1", "2"]


def test_an_unfinished_checkpoint_of_a_killed_process_is_ignored(saved):
    (saved / "3.orbax-checkpoint-tmp" / "state").mkdir(parents=True)
    (_, progress), reports = restore(saved)
    assert progress["iteration"] == 2
    assert reports == []


@contextlib.contextmanager
def full_disk():
    """Limits the size of files that this process can write, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_previous_checkpoint_remains_and_saving_works_after_a_failed_save(
    tmp_path, caplog
):
    """The libraries log nothing about the failure, which is raised as one line."""
    with Checkpoints(tmp_path, keep=1) as checkpoints:
        checkpoints.save(make_state(1), make_progress(1), mistakes=None)
        checkpoints.wait()
        with full_disk():
            checkpoints.save(make_state(2), make_progress(2), mistakes=None)
            message = "File too large; the run cannot be saved"
            with pytest.raises(OSError, match=message) as error:
                checkpoints.wait()
        assert "\n" not in str(error.value)
        assert not caplog.records
        found = checkpoints.restore(make_state(99), pytest.fail)
        assert found is not None
        assert found[1] == make_progress(1)
        checkpoints.save(make_state(2), make_progress(2), mistakes=None)
    (state, _), _ = restore(tmp_path)
    assert_bits_equal(state, make_state(2))
    assert names(tmp_path) == ["2"]


def test_a_failed_background_save_is_raised_by_the_next_call(tmp_path):
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        with full_disk():
            checkpoints.save(make_state(1), make_progress(1), mistakes=None)
            with pytest.raises(OSError, match="File too large"):
                checkpoints.save(make_state(1), make_progress(1), mistakes=None)
        # Threads of Orbax may still be processing the failed save.
        checkpoints.save(make_state(2), make_progress(2), mistakes=None)
    assert names(tmp_path) == ["2"]


def process_settings():
    logger = logging.getLogger("absl")
    return logger.level, list(logger.filters), sys.unraisablehook


def settings_outside_a_save():
    while logging.getLogger("absl").filters:  # a previous test has failed
        time.sleep(0.01)
    return process_settings()


def wait_for(settings):
    while process_settings() != settings:
        time.sleep(0.01)


def test_logging_and_hooks_change_only_during_a_save_that_may_fail(tmp_path):
    before = settings_outside_a_save()
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        assert process_settings() == before
        checkpoints.save(make_state(1), make_progress(1), mistakes=None)
        wait_for(before)
        checkpoints.restore(make_state(0), pytest.fail)
        assert process_settings() == before
        with full_disk():
            checkpoints.save(make_state(2), make_progress(2), mistakes=None)
            with pytest.raises(OSError, match="File too large"):
                checkpoints.wait()
        wait_for(before)


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_checkpoint_is_replaced_and_the_old_one_remains_until_then(
    saved, is_complete, monkeypatch
):
    def killed(self, *args, **settings):
        raise KeyboardInterrupt

    with Checkpoints(saved, keep=2) as checkpoints:
        newer = make_progress(2) | {"last": {"rate": 0.5}}
        with contextlib.ExitStack() as stack:
            if not is_complete:
                patch = stack.enter_context(monkeypatch.context())
                patch.setattr(module.ocp.CheckpointManager, "save", killed)
                stack.enter_context(pytest.raises(KeyboardInterrupt))
            checkpoints.save(make_state(7), newer, mistakes=0.5, replaces=True)
    (state, progress), reports = restore(saved)
    assert_bits_equal(state, make_state(7 if is_complete else 2))
    assert progress == (newer if is_complete else make_progress(2))
    assert reports == []
    assert {"1", "2"} == set(names(saved))


def test_what_is_released_soon_after_a_failure_prints_nothing(monkeypatch):
    settings_outside_a_save()
    gc.freeze()  # what other tests left takes the garbage collector long
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    code = compile("async def write(): pass", "/orbax/serialization.py", "exec")
    exec(code, functions := {})
    held = [functions["write"]()]  # as by a thread of Orbax
    held.append(held)  # only the garbage collector can release it
    with pytest.raises(OSError, match="full"), suppress_orbax_messages():
        raise OSError("full")
    del held
    settings_outside_a_save()
    gc.collect()
    assert shown == []

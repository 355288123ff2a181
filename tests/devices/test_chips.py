import types

import jax
import pytest

from azjax.devices import CHIPS, chip_of


def test_a_chip_is_found_by_the_kind_that_jax_gives_it():
    for chip in CHIPS.values():
        for kind in chip.kinds:
            assert chip_of(types.SimpleNamespace(device_kind=kind)) is chip
        # Its figures have their units.
        assert 1e12 < chip.float32 <= chip.bfloat16 < 1e16
        assert 1e11 < chip.bandwidth < 1e13
        assert 10 * 2**30 < chip.memory < 200 * 2**30
        assert chip.clock is None or 5e8 < chip.clock < 3e9
        assert chip.peak("bfloat16") == chip.bfloat16
    assert chip_of(jax.devices("cpu")[0]) is None
    assert chip_of(types.SimpleNamespace(device_kind="NVIDIA H100 PCIe")) is None


def test_usable_memory_of_a_gpu_is_three_quarters_by_default(monkeypatch):
    name = "XLA_PYTHON_CLIENT_MEM_FRACTION"
    monkeypatch.delenv(name, raising=False)
    assert CHIPS["v5e"].usable_memory == CHIPS["v5e"].memory
    assert CHIPS["h100"].usable_memory == 0.75 * CHIPS["h100"].memory
    monkeypatch.setenv(name, "0.5")
    assert CHIPS["h100"].usable_memory == 0.5 * CHIPS["h100"].memory
    for wrong in ("much", "0", "2"):
        monkeypatch.setenv(name, wrong)
        with pytest.raises(ValueError, match=f"at most 1: '{wrong}'"):
            _ = CHIPS["h100"].usable_memory

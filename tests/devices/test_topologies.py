import os
import re

import jax
import pytest
from jax.experimental import topologies

from azjax.devices import CHIPS, parse_device, topology_mesh
from azjax.devices.topologies import target_config


def test_a_device_has_a_kind_and_a_size():
    for name, chip, shape in (
        *(("v5e:2x4", "v5e", "2x4"), ("v4:2x2x2", "v4", "2x2x2")),
        *(("h100", "h100", "1"), ("t4:8", "t4", "8")),
    ):
        assert parse_device(name) == (CHIPS[chip], shape)


def test_a_wrong_device_is_refused_with_what_is_allowed():
    for name, says in {
        "": "unknown device ''; known devices are v3, v4, v5e, v5p, v6e, h100, h200",
        "tpu:2x4": "unknown device 'tpu:2x4'",
        "v5e": "for example v5e:2x4, or v5e:1x1 for one chip: 'v5e'",
        "v4:8": "for example v4:2x2x2, or v4:1x1x1 for one chip: 'v4:8'",
        "v5e:0x4": "v5e:2x4, or v5e:1x1 for one chip: 'v5e:0x4'",
        "v5e:64x64": "a slice of at most 1024 chips",
        "h100:0": "a number of GPUs from 1 to 8, for example h100:8: 'h100:0'",
        "h100:": "a number of GPUs from 1 to 8",
        "h100:9": "a number of GPUs from 1 to 8",
    }.items():
        with pytest.raises(ValueError, match=re.escape(says)):
            topology_mesh(name)


@pytest.mark.parametrize(
    ("device", "raised", "says"),
    [
        (
            *("v5e:2x4", RuntimeError("JAX TPU support not installed; cannot")),
            "compiling for v5e:2x4 needs JAX's TPU support: pip install 'azjax[tpu]'",
        ),
        (
            *("h100", NotImplementedError("topology not implemented for cuda")),
            "JAX's NVIDIA GPU support: pip install 'azjax[cuda]'",
        ),
        (
            *("v5e:3x3", RuntimeError("INVALID_ARGUMENT: 3x3 is not divisible\nmore")),
            "unknown device 'v5e:3x3': 3x3 is not divisible",
        ),
    ],
)
def test_an_error_of_the_compiler_or_its_absence_is_reported(
    device, raised, says, monkeypatch
):
    def refuse(*args, **kwargs):
        raise raised

    monkeypatch.setattr(topologies, "get_topology_desc", refuse)
    with pytest.raises(ValueError, match=f"{re.escape(says)}$"):
        topology_mesh(device)


@pytest.mark.parametrize(
    ("device", "options"),
    [
        ("v5e:2x4", {"platform": "tpu", "topology_name": "v5e:2x4"}),
        ("v4:2x2x1", {"chip_config_name": "megacore"}),
        ("v6e:1x1", {"chips_per_host_bounds": [1, 1, 1]}),
        ("h100:4", {"platform": "cuda", "topology": "1x1x4"}),
    ],
)
def test_the_compiler_is_asked_for_the_topology(device, options, monkeypatch):
    asked = {}

    def describe(**options):
        asked.update(options)
        return type("Topology", (), {"devices": jax.devices("cpu")[:1]})

    variables = {name: os.environ[name] for name in os.environ if "TPU" not in name}
    monkeypatch.setattr(os, "environ", variables)
    monkeypatch.setattr(topologies, "get_topology_desc", describe)
    assert topology_mesh(device).axis_names == ("data",)
    assert asked.items() >= options.items()
    assert options.get("platform") != "tpu" or os.environ["TPU_SKIP_MDS_QUERY"] == "1"


def test_target_config_describes_the_gpu():
    text = target_config(CHIPS["t4"])
    assert "cuda_compute_capability { major: 7 minor: 5 }" in text
    assert "core_count: 40 " in text
    assert text.count("{") == text.count("}") == 3
    with pytest.raises(ValueError, match="v5e is not a GPU"):
        target_config(CHIPS["v5e"])

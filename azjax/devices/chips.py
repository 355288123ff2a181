"""Catalog of accelerators: memory, peak speed and bandwidth of each.

Sources of the figures:

TPU: the "system architecture" pages of the Cloud TPU documentation (v3, v4, v5e, v5p,
v6e). A JAX device of a v3 is one of the chip's two cores and has half of its figures.
The memory is that available to a program in libtpu 0.0.42 ("available HBM" in its
message about a program that is too large).

Their clocks: v3 and v4 from "TPU v4: An Optically Reconfigurable Supercomputer" (Jouppi
et al. 2023), v5e from part 2 of "How To Scale Your Model", v5p from its documented peak
speed and 8 matrix units of 128x128 multiply-adds (the same division agrees with the
other three). The clock of v6e is not published, and its page has named both 2 and 4
matrix units.

NVIDIA: data sheets of the SXM cards (H100, H200, A100 80 GB) and of L4 and T4, without
sparsity; compute capability, memory and limits as XLA lists them for these cards
(`xla/backends/gpu/target_config/specs`), for L4 and T4 from the CUDA programming guide
and the Ada and Turing white papers.

float32 is the speed of a float32 matrix product at JAX's default precision: one
bfloat16 pass on a TPU, TF32 on NVIDIA cards from compute capability 8.0 on. A T4 has no
bfloat16; XLA computes in float32 there.
"""

import dataclasses
import os
from typing import Any, Literal

GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Gpu:
    """Properties of an NVIDIA card that XLA's compiler needs.

    kind: JAX's `device_kind`.
    capability: compute capability.
    cores: streaming multiprocessors.
    fpus: float32 units per multiprocessor.
    threads: maximum resident threads per multiprocessor.
    shared: bytes of shared memory per multiprocessor.
    shared_block: maximum bytes of shared memory per block.
    cache: bytes of the L2 cache.
    clock: GHz.
    memory: bytes.
    """

    kind: str
    capability: tuple[int, int]
    cores: int
    fpus: int
    threads: int
    shared: int
    shared_block: int
    cache: int
    clock: float
    memory: int


@dataclasses.dataclass(frozen=True)
class Chip:
    """An accelerator as one JAX device.

    name: name of the chip, for example `v5e`.
    kinds: values of JAX's `device_kind`.
    bfloat16: peak speed of bfloat16 matrix products (FLOP/s).
    float32: peak speed of float32 matrix products (FLOP/s).
    bandwidth: bandwidth of its memory (bytes/s).
    memory: available to a program (bytes); all of a GPU's memory.
    clock: cycles per second of a TPU's cores; None if not published, and for a GPU.
    gpu: properties for the compiler; None for a TPU.
    """

    name: str
    kinds: tuple[str, ...]
    bfloat16: float
    float32: float
    bandwidth: float
    memory: int
    clock: float | None = None
    gpu: Gpu | None = None

    def peak(self, dtype: Literal["float32", "bfloat16"]) -> float:
        """Returns the peak speed of matrix products (FLOP/s)."""
        return self.bfloat16 if dtype == "bfloat16" else self.float32

    @property
    def usable_memory(self) -> int:
        """Memory that JAX allocates (bytes): on a GPU the fraction
        `XLA_PYTHON_CLIENT_MEM_FRACTION`, 0.75 by default."""
        if self.gpu is None:
            return self.memory
        text = os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.75")
        try:
            fraction = float(text)
        except ValueError:
            fraction = 0.0
        if not 0 < fraction <= 1:
            raise ValueError(
                "XLA_PYTHON_CLIENT_MEM_FRACTION must be more than 0 and at most 1: "
                f"{text!r}"
            )
        return int(fraction * self.memory)


_H100 = Gpu(
    "NVIDIA H100 80GB HBM3",
    capability=(9, 0),
    cores=132,
    fpus=128,
    threads=2048,
    shared=233_472,
    shared_block=232_448,
    cache=52_428_800,
    clock=1.98,
    memory=84_929_347_584,
)
_H200 = dataclasses.replace(
    _H100, kind="NVIDIA H200 141GB HBM3e", memory=151_397_597_184
)
_A100 = Gpu(
    "NVIDIA A100-SXM4-80GB",
    capability=(8, 0),
    cores=108,
    fpus=64,
    threads=2048,
    shared=167_936,
    shared_block=166_912,
    cache=41_943_040,
    clock=1.41,
    memory=85_100_068_864,
)
_L4 = Gpu(
    "NVIDIA L4",
    capability=(8, 9),
    cores=58,
    fpus=128,
    threads=1536,
    shared=102_400,
    shared_block=101_376,
    cache=50_331_648,
    clock=2.04,
    memory=22 * GIB,
)
_T4 = Gpu(
    "Tesla T4",
    capability=(7, 5),
    cores=40,
    fpus=64,
    threads=1024,
    shared=65_536,
    shared_block=65_536,
    cache=4_194_304,
    clock=1.59,
    memory=int(14.5 * GIB),
)

# Name, kinds, peak speed of both dtypes, bandwidth, memory in GiB, clock.
_TPUS = (
    ("v3", ("TPU v3",), 61.5e12, 450e9, 15.48, 940e6),
    ("v4", ("TPU v4",), 275e12, 1200e9, 30.75, 1.05e9),
    ("v5e", ("TPU v5 lite", "TPU v5e"), 197e12, 819e9, 15.75, 1.5e9),
    ("v5p", ("TPU v5", "TPU v5p"), 459e12, 2765e9, 95.74, 1.75e9),
    ("v6e", ("TPU v6 lite", "TPU v6e"), 918e12, 1638e9, 31.25, None),
)
# Name, further kinds, peak speed in bfloat16 and in float32, bandwidth, properties.
_GPUS = (
    ("h100", (), 989.4e12, 494.7e12, 3352e9, _H100),
    ("h200", ("NVIDIA H200",), 989.4e12, 494.7e12, 4800e9, _H200),
    ("a100", (), 312e12, 156e12, 2039e9, _A100),
    ("l4", (), 121e12, 60.5e12, 300e9, _L4),
    ("t4", (), 8.1e12, 8.1e12, 320e9, _T4),
)
CHIPS = {
    **{
        name: Chip(name, kinds, peak, peak, bandwidth, int(memory * GIB), clock)
        for name, kinds, peak, bandwidth, memory, clock in _TPUS
    },
    **{
        name: Chip(
            *(name, (gpu.kind, *kinds), bfloat16, float32, bandwidth, gpu.memory),
            gpu=gpu,
        )
        for name, kinds, bfloat16, float32, bandwidth, gpu in _GPUS
    },
}


def chip_of(device: Any) -> Chip | None:
    """Returns the chip of a JAX device; None if it is not in the catalog."""
    return next(
        (chip for chip in CHIPS.values() if device.device_kind in chip.kinds), None
    )

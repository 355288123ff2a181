"""Accelerators: their speed and memory, and compilation for absent ones."""

from azjax.devices.chips import CHIPS, Chip, chip_of
from azjax.devices.estimates import Counts, counts
from azjax.devices.hlo import Instruction, Program, read_program
from azjax.devices.products import Product, products, products_of
from azjax.devices.spreading import (
    AXIS,
    DIVIDED,
    REPLICATED,
    mesh_of,
    spread,
    use_all_cores,
)
from azjax.devices.target import (
    jit_network,
    network_compiler_options,
    target_platform,
    tracing_for,
)
from azjax.devices.topologies import (
    compile_for,
    compile_program,
    parse_device,
    topology_mesh,
)

__all__ = [
    "AXIS",
    "CHIPS",
    "DIVIDED",
    "REPLICATED",
    "Chip",
    "Counts",
    "Instruction",
    "Product",
    "Program",
    "chip_of",
    "compile_for",
    "compile_program",
    "counts",
    "jit_network",
    "mesh_of",
    "network_compiler_options",
    "parse_device",
    "products",
    "products_of",
    "read_program",
    "spread",
    "target_platform",
    "topology_mesh",
    "tracing_for",
    "use_all_cores",
]

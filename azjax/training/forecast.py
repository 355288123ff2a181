"""Whether a run fits into a device, and its maximum speed there, without executing
it."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax

from azjax import games as game_register
from azjax.devices import Chip, chip_of, topology_mesh, tracing_for
from azjax.networks import Parts
from azjax.training.algorithm import make_algorithm
from azjax.training.config import TrainConfig
from azjax.training.estimates import (
    Work,
    chip_memory,
    launch_seconds,
    positions_per_second,
    traffic_per_position,
    work,
)
from azjax.training.lanes import abstract_state
from azjax.training.memory import (
    advice,
    available_bytes,
    check_fits,
    required_memory,
)
from azjax.training.phases import (
    CompiledPhase,
    chip_bytes,
    compile_phase,
    phases,
)
from azjax.training.territory import training_network


@dataclasses.dataclass(frozen=True)
class Forecast:
    """Forecast of a run on given devices.

    Attributes:
        config: the run's settings.
        device: name of the devices.
        chip: their type; None if it is not in the catalog.
        num_chips: number of devices.
        state: bytes of each part of the training state on a chip, by name.
        trees: approximate bytes of self-play's trees on a chip.
        phases: the compiled phases.
        usable: bytes of a chip that JAX can allocate; None if unknown.
        work: floating-point operations per position.
        to_lower: settings that lower the memory needed.
    """

    config: TrainConfig
    device: str
    chip: Chip | None
    num_chips: int
    state: dict[str, int]
    trees: int
    phases: tuple[CompiledPhase, ...]
    usable: int | None
    work: Work
    to_lower: str

    @property
    def needed(self) -> tuple[int, str]:
        """Bytes that a chip needs, and the phase that needs most."""
        return chip_memory(sum(self.state.values()), self.phases)

    @property
    def traffic(self) -> float:
        """Bytes that all chips read and write per position."""
        return traffic_per_position(self.config, self.phases, self.num_chips)

    @property
    def peak(self) -> float | None:
        """Peak speed of a chip for the network's dtype (FLOP/s); None if unknown."""
        return self.chip and self.chip.peak(self.config.network.dtype)

    @property
    def speeds(self) -> tuple[float, ...]:
        """Positions per second at 40% of the peak in each stage of the run; empty if
        the peak is unknown."""
        if self.peak is None:
            return ()
        return tuple(
            positions_per_second(self.work.flops(number), self.peak, self.num_chips)
            for number in self.work.evaluations
        )

    @property
    def launch_seconds(self) -> float:
        """Launch time of a chunk's kernels on a GPU (seconds)."""
        return launch_seconds(self.config, self.phases[0])

    def check(self) -> None:
        """Checks that the run fits.

        Raises:
            ValueError: it needs more memory than a chip has.
        """
        needed, phase = self.needed
        if self.usable is not None and needed > self.usable:
            raise ValueError(
                f"{phase} needs {needed / 2**30:,.2f} GiB of each chip, and JAX can "
                f"use {self.usable / 2**30:,.2f} GiB of {self.device}: {self.to_lower}"
            )

    def to_json(self) -> dict[str, Any]:
        """Returns the forecast as JSON values."""
        needed, phase = self.needed
        return {
            "game": self.config.game,
            "device": self.device,
            "chips": self.num_chips,
            "dtype": self.config.network.dtype,
            "peak_flops": self.peak,
            "bandwidth": self.chip and self.chip.bandwidth,
            "usable_bytes": self.usable,
            "needed_bytes": needed,
            "needed_in": phase,
            "fits": self.usable is None or needed <= self.usable,
            "state_bytes": self.state,
            "tree_bytes": self.trees,
            "phases": [
                phase._asdict()
                | {"launches": phase.launches and phase.launches._asdict()}
                for phase in self.phases
            ],
            "simulations": self.config.self_play.num_simulations,
            "network_flops": self.work.forward_flops,
            "evaluations": self.work.evaluations,
            "update_flops": self.work.update,
            "replay_ratio": self.work.replay_ratio,
            "position_flops": [
                self.work.flops(number) for number in self.work.evaluations
            ],
            "position_bytes": self.traffic,
            "positions_per_second": self.speeds,
        }


def forecast(
    config: TrainConfig,
    device: str | None = None,
    *,
    parts: Parts | None = None,
    enter: Callable[[str], None] = lambda phase: None,
) -> Forecast:
    """Compiles the phases of a run for a device, which need not be present.

    Args:
        config: the run's settings.
        device: name, as `azjax.devices.topology_mesh` takes it; None: the available
            devices.
        parts: custom network modules.
        enter: called with the name of each phase before it is compiled.

    Raises:
        ValueError: the device is unknown, its compiler is not installed, or the run
            does not fit.
    """
    # Exact lanes would run the same programs with smaller batches.
    config = dataclasses.replace(config, exact_lanes=False)
    devices = jax.devices() if device is None else [*topology_mesh(device).devices]
    # Covers all tracing, because JAX caches traces.
    with tracing_for(devices[0].platform):
        return _forecast(config, device, devices, parts=parts, enter=enter)


def _forecast(
    config: TrainConfig,
    device: str | None,
    devices: Sequence[Any],
    *,
    parts: Parts | None,
    enter: Callable[[str], None],
) -> Forecast:
    chip = chip_of(devices[0])
    usable = available_bytes() if device is None else chip and chip.usable_memory
    name = device or devices[0].device_kind
    game = game_register.make(config.game)
    network, variables, parts = training_network(config, game, parts)
    algorithm = make_algorithm(config, game, network, parts=parts, devices=devices)
    mesh = algorithm.lanes.mesh
    needed = required_memory(
        config,
        game,
        network,
        variables,
        lambda: algorithm.init(variables),
        num_devices=mesh.size,
        is_cpu=devices[0].platform == "cpu",
        parts=parts,
    )
    check_fits(config, needed, usable)
    to_lower = advice(config, needed)
    state = abstract_state(lambda: algorithm.init(variables), algorithm.shardings)
    compiled, gradient = [], None
    for phase in phases(config, game, network, algorithm, state=state):
        enter(phase.name)
        try:
            compiled.append(compile_phase(phase, mesh))
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise ValueError(
                f"{phase.name} does not fit into the memory of {name}: {to_lower}"
            ) from None
        gradient = phase if phase.name == "gradient" else gradient
    if gradient is None:
        raise RuntimeError("there is no gradient to compile")
    return Forecast(
        config=config,
        device=name,
        chip=chip,
        num_chips=mesh.size,
        state={
            "replay": chip_bytes(state.replay),
            "network and optimizer": chip_bytes(state.learner),
            "games and sampler": chip_bytes((state.games, state.sampler)),
        },
        trees=sum(
            part.size for part in needed if "self_play.num_simulations" in part.settings
        ),
        phases=tuple(compiled),
        usable=usable,
        work=work(config, game, network, variables, gradient=gradient),
        to_lower=to_lower,
    )

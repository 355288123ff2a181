"""`train`, and `AlphaZero`, its task; the iteration is in `alphazero`."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import optax

from azjax import games as game_register
from azjax.arena import Poll
from azjax.compilation_cache import enable_compilation_cache
from azjax.files import as_directory
from azjax.networks import CustomModules
from azjax.players import (
    NetworkPlayer,
    Player,
    TrainedPlayer,
    first_network,
    save_player,
)
from azjax.players.batches import Division
from azjax.training.alphazero import (
    Algorithm,
    TrainState,
    compiled_ahead,
    make_algorithm,
    train_iteration,
)
from azjax.training.config import TrainConfig
from azjax.training.evaluation import Evaluator
from azjax.training.game_reader import GameReader
from azjax.training.initial_player import initial_variables
from azjax.training.lanes import abstract_state, on_one_device
from azjax.training.learner import Loss, learning_rate
from azjax.training.memory import (
    available_bytes,
    check_fits,
    memory_errors,
    required_memory,
)
from azjax.training.replay import Sampler
from azjax.training.run import clock
from azjax.training.run.directory import has_begun, open_run_directory
from azjax.training.run.game_writer import GameWriter
from azjax.training.run.metrics import Row
from azjax.training.run.open_run import Hook, Run, length_of, open_run
from azjax.training.run.optimizer_identity import DEFAULT, optimizer_identity
from azjax.training.run.processes import is_first_process, raise_on_all_processes
from azjax.training.run.schedule import schedule_to_repeat
from azjax.training.run.sinks import check_sinks
from azjax.training.targets import ValueTarget
from azjax.training.territory import (
    training_network,
    with_territory_heads,
    without_territory_heads,
)

CURSOR = "stored_games"  # in the totals; see `GameReader`

_learning_rate = jax.jit(learning_rate, static_argnums=0)


def train(
    config: TrainConfig,
    *,
    optimizer: optax.GradientTransformation | None = None,
    modules: CustomModules | None = None,
    loss: Loss | None = None,
    value_target: ValueTarget | None = None,
    sampler: Sampler | None = None,
    on_iteration: Hook | None = None,
    on_evaluation: Hook | None = None,
) -> Run[TrainedPlayer]:
    """Learns a game by self-play, or continues a stopped run.

    SIGINT, SIGTERM and a notice of JAX's preemption service stop the run after the
    current iteration and save it. An evaluation in progress is discarded and repeated
    when the run continues. A second signal ends the process at once.

    A run continues only with the same optimizer, and only if the same ones of `loss`,
    `value_target` and `sampler` are given; these functions are not compared.

    Args:
        config: the run's settings.
        optimizer: replaces AdamW and its schedule.
        modules: custom network modules and auxiliary heads.
        loss: replaces `head_losses`, with its `value_weight` and the auxiliary losses;
            maps `(prediction, batch)` to a `HeadLoss` by name.
        value_target: replaces `lambda_target`.
        sampler: replaces `uniform_sampler`.
        on_iteration: called with the metrics of each iteration. An exception ends the
            run as last saved; a signal saves it first.
        on_evaluation: called with the metrics of each evaluation, after plotting.

    Raises:
        ValueError: invalid settings or initial player, a run directory that holds
            another run or no readable checkpoint, a hook's result of the wrong shape, a
            loss that is not finite, or too little device memory.
        OSError: the run directory cannot be written.

    Example:
        A run of 20 minutes, and 40 more:

        >>> import dataclasses
        >>> config = training.preset("auto", "connect_four", run_dir="runs/demo")
        >>> run = training.train(config)  # doctest: +SKIP
        >>> config = dataclasses.replace(config, minutes=60)
        >>> run = training.train(config)  # doctest: +SKIP
    """
    started = clock.now()
    enable_compilation_cache()
    hooks: dict[str, Any]
    hooks = {"loss": loss, "value_target": value_target, "sampler": sampler}
    # Invalid settings and functions raise before the run directory is opened.
    with raise_on_all_processes():
        if is_first_process():
            check_sinks(config.report.sinks)
        schedule = None
        if config.repeat_schedule is not None and not has_begun(config.directory):
            schedule, end = schedule_to_repeat(as_directory(config.repeat_schedule))
            if end != config.iterations:
                raise ValueError(
                    f"iterations must be {end}, the last iteration of the schedule in "
                    f"{config.repeat_schedule}: {config.iterations}"
                )
            schedule = dataclasses.replace(schedule, length=length_of(config))
        task = AlphaZero(config, optimizer=optimizer, own_modules=modules, **hooks)
    notes: list[str] = []
    if task.num_devices > 1:
        notes.append(f"{config.num_lanes} lanes on {task.num_devices} devices")
    names = [name for name, hook in hooks.items() if hook is not None]
    identity = task.optimizer_identity
    with (
        task.game_reader or contextlib.nullcontext(),
        open_run_directory(config, identity, notes.append, hooks=names) as directory,
        memory_errors(config, task.memory),
        open_run(
            task,
            directory,
            notes=notes,
            started=started,
            schedule=schedule,
            on_iteration=on_iteration,
            on_evaluation=on_evaluation,
        ) as run,
    ):
        # `run` evaluates, saves and stops between the iterations.
        for progress in run:
            run.state, metrics = task.step(run.state, progress, run.enter)
            run.report(metrics)
    return run.result()


class AlphaZero:
    """AlphaZero as the task of a run; see `Task`.

    Builds everything that a run needs before it opens its directory; writes nothing,
    and compiles no program of an iteration. The arguments are those of `train`.

    num_devices: devices among which the lanes are divided.
    memory: memory required on each device.
    optimizer_identity: identity of the optimizer, for the run directory.
    game_reader: the games to learn from, if any.
    """

    state_version = 7  # raised when the layout of `TrainState` or of `totals` changes

    def __init__(
        self,
        config: TrainConfig,
        *,
        optimizer: optax.GradientTransformation | None,
        own_modules: CustomModules | None,
        loss: Loss | None,
        value_target: ValueTarget | None,
        sampler: Sampler | None,
    ):
        self.config, self.positions = config, config.chunk_positions
        # Sums over the run: finished games; positions that have become eligible, and
        # the moves made in their slots before, summed. Positions that may still become
        # eligible. The cursor of stored games.
        self.totals: dict[str, Any] = {}
        self._game = game = game_register.make(config.game)
        network, variables, modules = training_network(config, game, own_modules)
        self._has_heads = config.learner.owners_weight > 0
        self._has_custom_modules = own_modules is not None
        self._has_own_optimizer = optimizer is not None
        if config.initial_player is not None and not has_begun(config.directory):
            # The player has none of the heads that only training has.
            own = without_territory_heads(variables) if self._has_heads else variables
            found = initial_variables(config, game, own_modules, own)
            variables = (
                with_territory_heads(found, variables) if self._has_heads else found
            )
        self._variables = variables
        self._algorithm = algorithm = make_algorithm(
            config,
            game,
            network,
            optimizer=optimizer,
            modules=modules,
            loss=loss,
            value_target=value_target,
            sampler=sampler,
        )
        self.shardings = algorithm.shardings
        self.num_devices = algorithm.lanes.mesh.size
        # Exact lanes: the division of a batch changes the rounding, so one device
        # computes.
        devices = jax.local_devices()[:1] if config.exact_lanes else jax.devices()
        self._evaluator = Evaluator(
            game,
            config.evaluation,
            config.evaluation.opponents,
            division=Division(config.num_lanes, devices),
            modules=own_modules,
        )
        self.game_writer = GameWriter(config, game) if config.played_slots else None
        self.game_reader = (
            GameReader(config, game, algorithm.lanes) if config.learn_from else None
        )
        self._player_network = network
        if self._has_heads:
            self._player_network, _ = first_network(
                config.seed, game, config.network, own_modules
            )
        self._has_updated = False  # in this process
        self.memory = required_memory(
            config,
            game,
            network,
            variables,
            self.init,
            num_devices=self.num_devices,
            modules=modules,
            loss=loss,
        )
        check_fits(config, self.memory, available_bytes())
        self.optimizer_identity: dict[str, Any] | str = DEFAULT
        if optimizer is not None:
            self.optimizer_identity = optimizer_identity(optimizer, variables.params)

    def init(self) -> TrainState:
        """Returns the initial state."""
        return self._algorithm.init(self._variables)

    @functools.cached_property
    def _programs(self) -> Algorithm:
        """The functions of an iteration; see `compiled_ahead`."""
        state = abstract_state(self.init, self.shardings)
        plays = self.config.played_slots > 0
        return compiled_ahead(self._algorithm, state, plays=plays)

    def step(
        self, state: TrainState, progress: float, enter: Callable[[str], None]
    ) -> tuple[TrainState, dict[str, Any]]:
        """Calls `train_iteration`. The metrics are Python numbers, with the seconds of
        both phases; losses are None if no update was made."""
        times = []  # start of self-play, start of the updates if any, end

        def begin(phase: str) -> None:
            times.append(clock.now().seconds)
            enter(phase)

        config, totals, reader = self.config, self.totals, self.game_reader
        if reader is not None and CURSOR in totals:  # of a continued run, at first
            reader.seek(totals[CURSOR])
        state, metrics = train_iteration(
            self._programs,
            config,
            state,
            progress,
            begin,
            game_writer=self.game_writer,
            game_reader=reader,
            waits=not self._has_updated,
        )
        self._has_updated |= "gradient_norm" in metrics
        times.append(clock.now().seconds)
        row = dict.fromkeys(
            ("policy_loss", "value_loss", "gradient_norm", "weight_norm")
        )
        row |= {name: value.item() for name, value in metrics.items()}
        self.totals = {
            "games": totals.get("games", 0) + row.pop("games"),
            "eligible": totals.get("eligible", 0) + row.pop("newly"),
            "delay": totals.get("delay", 0.0) + row.pop("delay"),
            "waiting": row.pop("waiting"),
            **({} if reader is None else {CURSOR: reader.cursor}),
        }
        row["self_play_seconds"] = times[1] - times[0]
        row["update_seconds"] = times[-1] - times[1]  # 0 without updates
        # Reported only: the optimizer computes the rate from `progress`.
        row["learning_rate"] = None
        if not self._has_own_optimizer:
            row["learning_rate"] = float(_learning_rate(config.learner, progress))
        return state, row

    def counts(self, state: TrainState) -> dict[str, Any]:
        """Returns games, updates, and of the positions the fraction that is eligible
        and its mean delay."""
        positions = int(state.iteration) * self.positions
        decided = positions - self.totals.get("waiting", 0)
        eligible = self.totals.get("eligible", 0)
        return {
            "games": self.totals.get("games", 0),
            "updates": int(state.learner.updates),
            "eligible_share": eligible / decided if decided else None,
            "eligibility_delay": self.totals["delay"] / eligible if eligible else None,
        }

    def player(self, state: TrainState) -> TrainedPlayer:
        """Returns the player, without the heads that only training has."""
        variables = on_one_device(state.learner.averaged)
        return TrainedPlayer(
            self._game,
            self._player_network,
            without_territory_heads(variables) if self._has_heads else variables,
            config=self.config.network,
            search=self.config.search,
            seed=self.config.seed,
            has_custom_modules=self._has_custom_modules,
        )

    def evaluate(self, player: TrainedPlayer, poll: Poll) -> dict[str, Any]:
        """Returns the strength of a player, without search and with search."""
        _ = self._programs  # compile meanwhile
        players = named_players(player, self.config.evaluation.num_simulations)
        return self._evaluator.evaluate(players, poll)

    def save_player(self, directory: Path, player: TrainedPlayer) -> None:
        """Writes the player."""
        save_player(directory, player)

    def iteration_seconds(self, row: Row, progress: float) -> float:
        """Predicts the seconds of an iteration; self-play time is proportional to the
        simulations."""
        if not self.config.played_slots:
            return row["self_play_seconds"] + row["update_seconds"]
        simulations = self.config.self_play.simulations_at(progress)
        search = row["self_play_seconds"] * simulations / row["simulations"]
        return search + row["update_seconds"]


def named_players(trained: TrainedPlayer, simulations: int) -> dict[str, Player]:
    """Returns the players of a network: without search, and with search."""
    network = NetworkPlayer(trained.game, trained.network, trained.variables)
    return {"network": network, "search": trained.player(simulations)}

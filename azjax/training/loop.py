"""`train`: sets up a run of AlphaZero and hands it to the host loop."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import optax

from azjax import games as game_register
from azjax.arena import Poll
from azjax.compilation_cache import enable_compilation_cache
from azjax.games import Game
from azjax.networks import Network, Parts, Variables
from azjax.players import (
    NetworkPlayer,
    Player,
    TrainedPlayer,
    first_network,
    save_player,
)
from azjax.players.batches import Division
from azjax.remote import as_directory
from azjax.training.algorithm import Algorithm, TrainState, make_algorithm
from azjax.training.config import TrainConfig
from azjax.training.distributed import is_first_process, raise_on_all_processes
from azjax.training.evaluation import Evaluator
from azjax.training.host_loop import (
    Hook,
    Run,
    RunFunctions,
    Totals,
    length_of,
    run_loop,
)
from azjax.training.initial_player import initial_variables
from azjax.training.iteration import train_iteration
from azjax.training.kept_games import KeptGames
from azjax.training.lanes import on_one_device
from azjax.training.learner import Loss, learning_rate
from azjax.training.memory import (
    MemoryItem,
    check_memory,
    memory_errors,
    required_memory,
)
from azjax.training.metrics import Row
from azjax.training.optimizer_identity import DEFAULT, optimizer_identity
from azjax.training.plan import Plan, plan_to_follow
from azjax.training.run_directory import has_begun, open_shared_directory
from azjax.training.sampling import Sampler
from azjax.training.sinks import check_sinks
from azjax.training.stored_games import StoredGames
from azjax.training.targets import ValueTarget
from azjax.training.territory import (
    training_network,
    with_territory_heads,
    without_territory_heads,
)

STATE_VERSION = 6  # raised when the layout of `TrainState` or of its progress changes


def train(
    config: TrainConfig,
    *,
    optimizer: optax.GradientTransformation | None = None,
    parts: Parts | None = None,
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
        parts: custom network modules and auxiliary heads.
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
    """
    started = time.monotonic()
    enable_compilation_cache()
    custom = _Custom(optimizer, parts, loss, value_target, sampler)
    with raise_on_all_processes():
        if is_first_process():
            check_sinks(config.report.sinks)
        setup = _set_up(config, custom)
    notes: list[str] = []
    with (
        open_shared_directory(
            config, setup.optimizer, notes.append, hooks=custom.hooks()
        ) as directory,
        memory_errors(config, setup.memory),
    ):
        return run_loop(
            setup.functions,
            directory,
            notes=notes,
            started=started,
            plan=setup.plan,
            on_iteration=on_iteration,
            on_evaluation=on_evaluation,
        )


class _Custom(NamedTuple):
    """Arguments of `train` that replace parts of the algorithm; None: the default."""

    optimizer: optax.GradientTransformation | None
    parts: Parts | None
    loss: Loss | None
    value_target: ValueTarget | None
    sampler: Sampler | None

    def hooks(self) -> list[str]:
        """Returns the names of the replaced functions, stored in `config.json`."""
        names = ("loss", "value_target", "sampler")
        return [name for name in names if getattr(self, name) is not None]


class _Setup(NamedTuple):
    """What `train` needs before it opens the run directory.

    functions: of the run.
    plan: to follow; None if the run makes its own.
    memory: required on each device.
    optimizer: its identity.
    """

    functions: RunFunctions[TrainState, TrainedPlayer]
    plan: Plan | None
    memory: list[MemoryItem]
    optimizer: dict[str, Any] | str


def _set_up(config: TrainConfig, custom: _Custom) -> _Setup:
    """Builds everything that a run needs; compiles and writes nothing."""
    game = game_register.make(config.game)
    network, variables, parts = training_network(config, game, custom.parts)
    if config.initial_player is not None and not has_begun(config.directory):
        variables = _initial_variables(config, game, custom.parts, variables)
    plan = _plan_to_follow(config)
    algorithm = make_algorithm(
        config, game, network, **custom._replace(parts=parts)._asdict()
    )
    functions = _make_functions(
        config,
        algorithm,
        variables,
        _make_evaluator(config, game),
        KeptGames(config, game),
        stored=StoredGames(config, game, algorithm.lanes)
        if config.learn_from
        else None,
        make_player=_player_maker(config, game, network, custom.parts),
        has_own_optimizer=custom.optimizer is not None,
    )
    memory = required_memory(
        config,
        game,
        network,
        variables,
        functions.init,
        num_devices=algorithm.lanes.mesh.size,
        parts=parts,
        loss=custom.loss,
    )
    check_memory(config, memory)
    optimizer = DEFAULT
    if custom.optimizer is not None:
        optimizer = optimizer_identity(custom.optimizer, variables.params)
    return _Setup(functions, plan, memory, optimizer)


def _initial_variables(
    config: TrainConfig, game: Game, parts: Parts | None, variables: Variables
) -> Variables:
    """Returns the weights of the initial player, with the new heads of the run."""
    if not config.learner.owners_weight:
        return initial_variables(config, game, parts, variables)
    found = without_territory_heads(variables)
    found = initial_variables(config, game, parts, found)
    return with_territory_heads(found, variables)


def _player_maker(
    config: TrainConfig, game: Game, network: Network, parts: Parts | None
) -> Callable[[Variables], TrainedPlayer]:
    """Returns a function that makes a player from the variables of training, without
    the heads that only training has.

    Args:
        config: the run's settings.
        game: the game.
        network: the structure of the network in training.
        parts: the user's own modules.
    """
    has_heads = config.learner.owners_weight > 0
    if has_heads:
        network, _ = first_network(config.seed, game, config.network, parts)

    def make(variables: Variables) -> TrainedPlayer:
        return TrainedPlayer(
            game,
            network,
            without_territory_heads(variables) if has_heads else variables,
            config=config.network,
            search=config.search,
            seed=config.seed,
            has_own_parts=parts is not None,
        )

    return make


def _make_evaluator(config: TrainConfig, game: Game) -> Evaluator:
    # Exact lanes: the division of a batch changes the rounding, so one device computes.
    devices = jax.local_devices()[:1] if config.exact_lanes else jax.devices()
    return Evaluator(
        game,
        config.evaluation,
        config.evaluation.opponents,
        division=Division(config.num_lanes, devices),
    )


def _plan_to_follow(config: TrainConfig) -> Plan | None:
    """Returns the plan that a new run follows, if `config.plan` names another run."""
    if config.plan is None or has_begun(config.directory):
        return None
    plan, end = plan_to_follow(as_directory(config.plan))
    if end != config.iterations:
        raise ValueError(
            f"iterations must be {end}, the last iteration of the plan in "
            f"{config.plan}: {config.iterations}"
        )
    return dataclasses.replace(plan, length=length_of(config))


def _make_functions(
    config: TrainConfig,
    algorithm: Algorithm,
    variables: Variables,
    evaluator: Evaluator,
    kept: KeptGames,
    *,
    stored: StoredGames | None,
    make_player: Callable[[Variables], TrainedPlayer],
    has_own_optimizer: bool,
) -> RunFunctions[TrainState, TrainedPlayer]:
    """Returns the functions that the host loop calls.

    Args:
        config: the run's settings.
        algorithm: returned by `make_algorithm`.
        variables: the initial ones.
        evaluator: evaluates the players.
        kept: writes the games.
        stored: gives the moves of the stored games, if the run learns from any.
        make_player: `make_player(variables)` returns a player.
        has_own_optimizer: whether the user gave the optimizer; its learning rate is
            then unknown.
    """

    def evaluate(player: TrainedPlayer, poll: Poll) -> dict[str, Any]:
        players = named_players(player, config.evaluation.num_simulations)
        return evaluator.evaluate(players, poll)

    return RunFunctions(
        config=config,
        state_version=STATE_VERSION,
        positions=config.chunk_positions,
        init=lambda: algorithm.init(variables),
        shardings=algorithm.shardings,
        iterate=functools.partial(
            _iterate,
            algorithm=algorithm,
            config=config,
            kept=kept,
            stored=stored,
            has_own_optimizer=has_own_optimizer,
        ),
        counters=functools.partial(_counters, config),
        player=lambda state: make_player(on_one_device(state.learner.averaged)),
        evaluate=evaluate,
        save_player=save_player,
        iteration_seconds=functools.partial(_iteration_seconds, config),
        kept=kept if config.played_slots else None,
    )


def _iteration_seconds(config: TrainConfig, row: Row, share: float) -> float:
    """Predicts the seconds of an iteration at a fraction of the run from the metrics
    of another one; self-play time is proportional to the simulations."""
    if not config.played_slots:
        return row["self_play_seconds"] + row["update_seconds"]
    simulations = config.self_play.simulations_at(share)
    search = row["self_play_seconds"] * simulations / row["simulations"]
    return search + row["update_seconds"]


def named_players(trained: TrainedPlayer, simulations: int) -> dict[str, Player]:
    """Returns the players of a network: without search, and with search."""
    network = NetworkPlayer(trained.game, trained.network, trained.variables)
    return {"network": network, "search": trained.player(simulations)}


def _iterate(
    state: TrainState,
    totals: Totals,
    share: float,
    enter: Callable[[str], None],
    *,
    algorithm: Algorithm,
    config: TrainConfig,
    kept: KeptGames,
    stored: StoredGames | None,
    has_own_optimizer: bool,
) -> tuple[TrainState, Totals, dict[str, Any]]:
    """Calls `train_iteration`; returns the metrics as Python numbers, with the seconds
    of both phases, and None for losses if no update was made."""
    times = []  # start of self-play, start of the updates if any, end

    def begin(phase: str) -> None:
        times.append(time.monotonic())
        enter(phase)

    state, metrics = train_iteration(
        algorithm, config, state, share, begin, kept=kept, stored=stored
    )
    times.append(time.monotonic())
    row = dict.fromkeys(("policy_loss", "value_loss", "gradient_norm", "weight_norm"))
    row |= {name: value.item() for name, value in metrics.items()}
    totals = _add(totals, row)
    row["self_play_seconds"] = times[1] - times[0]
    row["update_seconds"] = times[-1] - times[1]  # 0 without updates
    # Reported only: the optimizer computes the rate from `share`.
    rate = None if has_own_optimizer else float(learning_rate(config.learner, share))
    return state, totals, {**row, "learning_rate": rate}


def _add(totals: Totals, metrics: dict[str, Any]) -> Totals:
    """Adds an iteration's counts to the totals, and removes them from `metrics`.

    games: finished games.
    eligible: positions that have become eligible.
    delay: moves made in their slots before they became eligible, summed.
    waiting: positions that may still become eligible.
    """
    return {
        "games": totals.get("games", 0) + metrics.pop("games"),
        "eligible": totals.get("eligible", 0) + metrics.pop("newly"),
        "delay": totals.get("delay", 0.0) + metrics.pop("delay"),
        "waiting": metrics.pop("waiting"),
    }


def _counters(config: TrainConfig, state: TrainState, totals: Totals) -> dict[str, Any]:
    """Returns games, updates, and of the positions the fraction that is eligible and
    its mean delay."""
    positions = int(state.iteration) * config.chunk_positions
    decided = positions - totals.get("waiting", 0)
    eligible = totals.get("eligible", 0)
    return {
        "games": totals.get("games", 0),
        "updates": int(state.learner.updates),
        "eligible_share": eligible / decided if decided else None,
        "eligibility_delay": totals["delay"] / eligible if eligible else None,
    }

"""`train`: sets up a run of AlphaZero and hands it to the host loop."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import optax

from azjax import games as game_register
from azjax.arena import Poll
from azjax.compilation_cache import enable_compilation_cache
from azjax.networks import Parts
from azjax.players import (
    NetworkPlayer,
    Player,
    TrainedPlayer,
    first_network,
    save_player,
)
from azjax.players.batches import Division
from azjax.remote import as_directory
from azjax.training import clock
from azjax.training.algorithm import (
    Algorithm,
    TrainState,
    compiled_ahead,
    make_algorithm,
)
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
from azjax.training.iteration import UPDATES, train_iteration
from azjax.training.kept_games import KeptGames
from azjax.training.lanes import abstract_state, on_one_device
from azjax.training.learner import Loss, learning_rate
from azjax.training.memory import (
    MemoryItem,
    available_bytes,
    check_fits,
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

STATE_VERSION = 7  # raised when the layout of `TrainState` or of its progress changes
CURSOR = "stored_games"  # in the totals; see `StoredGames`

_learning_rate = jax.jit(learning_rate, static_argnums=0)


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
    started = clock.now()
    enable_compilation_cache()
    hooks: dict[str, Any]
    hooks = {"loss": loss, "value_target": value_target, "sampler": sampler}
    with raise_on_all_processes():
        if is_first_process():
            check_sinks(config.report.sinks)
        plan = _plan_to_follow(config)
        functions, memory, identity, stored = _set_up(
            config, optimizer=optimizer, own_parts=parts, **hooks
        )
    notes: list[str] = []
    names = [name for name, hook in hooks.items() if hook is not None]
    with (
        stored or contextlib.nullcontext(),
        open_shared_directory(config, identity, notes.append, hooks=names) as directory,
        memory_errors(config, memory),
    ):
        return run_loop(
            functions,
            directory,
            notes=notes,
            started=started,
            plan=plan,
            on_iteration=on_iteration,
            on_evaluation=on_evaluation,
        )


def _set_up(
    config: TrainConfig,
    *,
    optimizer: optax.GradientTransformation | None,
    own_parts: Parts | None,
    loss: Loss | None,
    value_target: ValueTarget | None,
    sampler: Sampler | None,
) -> tuple[
    RunFunctions[TrainState, TrainedPlayer],
    list[MemoryItem],
    dict[str, Any] | str,
    StoredGames | None,
]:
    """Builds everything that a run needs before it opens its directory; compiles and
    writes nothing. Returns the functions that the host loop calls, the memory required
    on each device, the identity of the optimizer, and the stored games, if any."""
    game = game_register.make(config.game)
    network, variables, parts = training_network(config, game, own_parts)
    has_heads = config.learner.owners_weight > 0
    if config.initial_player is not None and not has_begun(config.directory):
        # The player has none of the heads that only training has.
        own = without_territory_heads(variables) if has_heads else variables
        found = initial_variables(config, game, own_parts, own)
        variables = with_territory_heads(found, variables) if has_heads else found
    algorithm = make_algorithm(
        config,
        game,
        network,
        optimizer=optimizer,
        parts=parts,
        loss=loss,
        value_target=value_target,
        sampler=sampler,
    )
    # Exact lanes: the division of a batch changes the rounding, so one device computes.
    devices = jax.local_devices()[:1] if config.exact_lanes else jax.devices()
    evaluator = Evaluator(
        game,
        config.evaluation,
        config.evaluation.opponents,
        division=Division(config.num_lanes, devices),
    )
    kept = KeptGames(config, game)
    stored = StoredGames(config, game, algorithm.lanes) if config.learn_from else None
    player_network = network
    if has_heads:
        player_network, _ = first_network(config.seed, game, config.network, own_parts)

    def player(state: TrainState) -> TrainedPlayer:
        """Returns the player, without the heads that only training has."""
        averaged = on_one_device(state.learner.averaged)
        return TrainedPlayer(
            game,
            player_network,
            without_territory_heads(averaged) if has_heads else averaged,
            config=config.network,
            search=config.search,
            seed=config.seed,
            has_own_parts=own_parts is not None,
        )

    def init() -> TrainState:
        return algorithm.init(variables)

    entered: set[str] = set()  # phases of which this process has compiled the programs

    @functools.cache
    def programs() -> Algorithm:
        state = abstract_state(init, algorithm.shardings)
        return compiled_ahead(algorithm, state, plays=config.played_slots > 0)

    def evaluate(player: TrainedPlayer, poll: Poll) -> dict[str, Any]:
        programs()  # meanwhile
        players = named_players(player, config.evaluation.num_simulations)
        return evaluator.evaluate(players, poll)

    functions = RunFunctions(
        config=config,
        state_version=STATE_VERSION,
        positions=config.chunk_positions,
        init=init,
        shardings=algorithm.shardings,
        iterate=lambda *args: _iterate(
            *args,
            algorithm=programs(),
            config=config,
            kept=kept,
            stored=stored,
            entered=entered,
            has_own_optimizer=optimizer is not None,
        ),
        counters=functools.partial(_counters, config),
        player=player,
        evaluate=evaluate,
        save_player=save_player,
        iteration_seconds=functools.partial(_iteration_seconds, config),
        kept=kept if config.played_slots else None,
    )
    memory = required_memory(
        config,
        game,
        network,
        variables,
        init,
        num_devices=algorithm.lanes.mesh.size,
        parts=parts,
        loss=loss,
    )
    check_fits(config, memory, available_bytes())
    identity = DEFAULT
    if optimizer is not None:
        identity = optimizer_identity(optimizer, variables.params)
    return functions, memory, identity, stored


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
    entered: set[str],
    has_own_optimizer: bool,
) -> tuple[TrainState, Totals, dict[str, Any]]:
    """Calls `train_iteration`; returns the metrics as Python numbers, with the seconds
    of both phases, and None for losses if no update was made."""
    times = []  # start of self-play, start of the updates if any, end

    def begin(phase: str) -> None:
        times.append(clock.now().seconds)
        entered.add(phase)
        enter(phase)

    if stored is not None and CURSOR in totals:
        stored.seek(totals[CURSOR])
    state, metrics = train_iteration(
        algorithm,
        config,
        state,
        share,
        begin,
        kept=kept,
        stored=stored,
        waits=UPDATES not in entered,
    )
    times.append(clock.now().seconds)
    row = dict.fromkeys(("policy_loss", "value_loss", "gradient_norm", "weight_norm"))
    row |= {name: value.item() for name, value in metrics.items()}
    totals = _add(totals, row)
    if stored is not None:
        totals |= {CURSOR: stored.cursor}
    row["self_play_seconds"] = times[1] - times[0]
    row["update_seconds"] = times[-1] - times[1]  # 0 without updates
    # Reported only: the optimizer computes the rate from `share`.
    rate = None if has_own_optimizer else float(_learning_rate(config.learner, share))
    return state, totals, {**row, "learning_rate": rate}


def _add(totals: Totals, metrics: dict[str, Any]) -> dict[str, Any]:
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

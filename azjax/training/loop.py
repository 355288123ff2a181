"""`train`: AlphaZero's loop. Play, learn, evaluate, save."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import optax

from azjax import games as game_register
from azjax.arena import Poll
from azjax.compilation_cache import enable_compilation_cache
from azjax.networks import Parts, Variables
from azjax.players import (
    AlphaZeroPlayer,
    NetworkPlayer,
    Player,
    TrainedPlayer,
    first_network,
    save_player,
)
from azjax.players.batches import Division
from azjax.remote import as_directory
from azjax.training.config import TrainConfig
from azjax.training.distributed import fails_together
from azjax.training.evaluation import Evaluator
from azjax.training.host_loop import (
    Hook,
    Learning,
    Run,
    Totals,
    length_of,
    run_loop,
)
from azjax.training.initial_player import initial_variables
from azjax.training.iteration import (
    Algorithm,
    TrainState,
    make_algorithm,
    train_iteration,
)
from azjax.training.lanes import on_one_device
from azjax.training.learner import Loss, learning_rate
from azjax.training.memory import check_memory, memory_errors, required_parts
from azjax.training.metrics import Row
from azjax.training.optimizer_identity import DEFAULT, optimizer_identity
from azjax.training.plan import Plan, plan_to_follow
from azjax.training.run_directory import has_begun, open_shared_directory
from azjax.training.sampling import Sampler
from azjax.training.targets import ValueTarget

STATE_VERSION = 5  # raised when the layout of `TrainState` or of its progress changes


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
    """Learns a game by self-play, or continues a run that was stopped.

    SIGINT, SIGTERM and a notice of JAX's preemption service end the run after the
    iteration in progress; it is saved then. An evaluation in progress is discarded and
    made when the run goes on. A second signal ends the run at once.

    A run continues only with the same optimizer. Whether `loss`, `value_target` and
    `sampler` are given must be the same, too; what they compute is not compared.

    Args:
        config: the run's settings.
        optimizer: in place of AdamW with its schedule.
        parts: modules of the user's own in the network, and auxiliary heads.
        loss: in place of `head_losses`, `(prediction, batch)` to the losses by name.
        value_target: in place of `lambda_target`.
        sampler: in place of `uniform_sampler`.
        on_iteration: called with the metrics of each iteration. What it raises ends
            the run as it was saved last; a signal ends it with everything saved.
        on_evaluation: called with each evaluation, once its plot is drawn.

    Raises:
        ValueError: the run directory holds another run, no checkpoint in it can be
            read, an opponent to be evaluated against is unknown, the initial player is
            for another game or has another network, a hook returns something of the
            wrong shape, a loss is not finite, or the run cannot fit into the device's
            memory.
        OSError: the run directory cannot be written.
    """
    started = time.monotonic()
    enable_compilation_cache()
    with fails_together():
        game = game_register.make(config.game)
        network, variables = first_network(config.seed, game, config.network, parts)
        if config.initial_player is not None and not has_begun(config.directory):
            variables = initial_variables(config, game, parts)
        plan = _plan_to_follow(config)
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
        learning = _make_learning(
            config,
            algorithm,
            variables,
            Evaluator(
                game,
                config.evaluation,
                config.evaluation.opponents,
                division=Division(
                    config.num_lanes,
                    # How a part is computed makes a difference in rounding.
                    jax.local_devices()[:1] if config.exact_lanes else jax.devices(),
                ),
            ),
            player=functools.partial(
                TrainedPlayer,
                game,
                network,
                config=config.network,
                search=config.search,
                seed=config.seed,
                has_own_parts=parts is not None,
            ),
            has_own_optimizer=optimizer is not None,
        )
        needed = required_parts(
            config,
            game,
            network,
            variables,
            learning.init,
            num_devices=algorithm.lanes.mesh.size,
            parts=parts,
            loss=loss,
        )
        check_memory(config, needed)
    notes: list[str] = []
    identity = optimizer_identity(optimizer, variables.params) if optimizer else DEFAULT
    hooks = {"loss": loss, "value_target": value_target, "sampler": sampler}
    given = [name for name, hook in hooks.items() if hook is not None]
    with (
        open_shared_directory(config, identity, notes.append, hooks=given) as directory,
        memory_errors(config, needed),
    ):
        return run_loop(
            learning,
            directory,
            notes=notes,
            started=started,
            plan=plan,
            on_iteration=on_iteration,
            on_evaluation=on_evaluation,
        )


def _plan_to_follow(config: TrainConfig) -> Plan | None:
    """Returns the plan of another run, which a new run is to follow."""
    if config.plan is None or has_begun(config.directory):
        return None
    plan, end = plan_to_follow(as_directory(config.plan))
    if end != config.iterations:
        raise ValueError(
            f"iterations must be {end}, with which the plan in {config.plan} ends: "
            f"{config.iterations}"
        )
    return dataclasses.replace(plan, length=length_of(config))


def _make_learning(
    config: TrainConfig,
    algorithm: Algorithm,
    variables: Variables,
    evaluator: Evaluator,
    *,
    player: Callable[..., TrainedPlayer],
    has_own_optimizer: bool,
) -> Learning[TrainState, TrainedPlayer]:
    """Returns the algorithm as the host loop calls it.

    Args:
        config: the run's settings.
        algorithm: of `make_algorithm`.
        variables: the first ones.
        evaluator: grades the players.
        player: makes one from `variables=`.
        has_own_optimizer: whether the learning rate is the user's, and unknown.
    """

    def evaluate(player: TrainedPlayer, poll: Poll) -> dict[str, Any]:
        players = named_players(player, config.evaluation.num_simulations)
        return evaluator.evaluate(players, poll)

    return Learning(
        config=config,
        state_version=STATE_VERSION,
        positions=config.chunk_positions,
        init=lambda: algorithm.init(variables),
        shardings=algorithm.shardings,
        iterate=functools.partial(
            _iterate,
            algorithm=algorithm,
            config=config,
            has_own_optimizer=has_own_optimizer,
        ),
        counts=functools.partial(_counts, config),
        player=lambda state: player(variables=on_one_device(state.learner.averaged)),
        evaluate=evaluate,
        save_player=save_player,
        iteration_seconds=functools.partial(_iteration_seconds, config),
    )


def _iteration_seconds(config: TrainConfig, row: Row, share: float) -> float:
    """Returns the seconds that an iteration takes at a share of the run, as the row of
    another one lets expect: a search takes longer with more simulations."""
    simulations = config.self_play.simulations_at(share)
    search = row["self_play_seconds"] * simulations / row["simulations"]
    return search + row["update_seconds"]


def named_players(trained: TrainedPlayer, simulations: int) -> dict[str, Player]:
    """Returns the players of a trained network: alone, and with search."""
    network, variables = trained.network, trained.variables
    return {
        "network": NetworkPlayer(trained.game, network, variables),
        "search": AlphaZeroPlayer(
            trained.game, trained.search, simulations, network, variables
        ),
    }


def _iterate(
    state: TrainState,
    totals: Totals,
    share: float,
    enter: Callable[[str], None],
    *,
    algorithm: Algorithm,
    config: TrainConfig,
    has_own_optimizer: bool,
) -> tuple[TrainState, Totals, dict[str, Any]]:
    """Calls `train_iteration`. The metrics are Python's numbers, with the seconds of
    both phases, and None for losses where nothing was learnt yet."""
    # When self-play began, when the updates began if there were any, and the end.
    times = []

    def begin(phase: str) -> None:
        times.append(time.monotonic())
        enter(phase)

    state, metrics = train_iteration(algorithm, config, state, share, begin)
    times.append(time.monotonic())
    row = {"policy_loss": None, "value_loss": None, "gradient_norm": None}
    row |= {name: value.item() for name, value in metrics.items()}
    totals = _add(totals, row)
    row["self_play_seconds"] = times[1] - times[0]
    row["update_seconds"] = times[-1] - times[1]  # 0 without updates
    # For the metrics: the optimizer computes the rate from the share.
    rate = None if has_own_optimizer else float(learning_rate(config.learner, share))
    return state, totals, {**row, "learning_rate": rate}


def _add(totals: Totals, metrics: dict[str, Any]) -> Totals:
    """Adds the counts of an iteration to the totals, and removes them from `metrics`.

    games: finished.
    eligible: positions that could be sampled at some time.
    delay: moves that were made in their slots until then, summed.
    waiting: positions that may still become eligible.
    """
    return {
        "games": totals.get("games", 0) + metrics.pop("games"),
        "eligible": totals.get("eligible", 0) + metrics.pop("newly"),
        "delay": totals.get("delay", 0.0) + metrics.pop("delay"),
        "waiting": metrics.pop("waiting"),
    }


def _counts(config: TrainConfig, state: TrainState, totals: Totals) -> dict[str, Any]:
    """Returns games, updates and how many positions became eligible, and when."""
    positions = int(state.iteration) * config.chunk_positions
    decided = positions - totals.get("waiting", 0)
    eligible = totals.get("eligible", 0)
    return {
        "games": totals.get("games", 0),
        "updates": int(state.learner.updates),
        "eligible_share": eligible / decided if decided else None,
        "eligibility_delay": totals["delay"] / eligible if eligible else None,
    }

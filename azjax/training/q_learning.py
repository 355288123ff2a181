"""`train_q`: Q-learning, a baseline for small games."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct

from azjax import games as game_register
from azjax.compilation_cache import enable_compilation_cache
from azjax.devices import jit_network
from azjax.games import Game
from azjax.networks import QNetwork, QParams, init_q_network
from azjax.players import TrainedQ, load_compiled, save_q_player
from azjax.training import clock
from azjax.training.evaluation import Evaluator
from azjax.training.host_loop import Hook, Run, RunFunctions, Totals, run_loop
from azjax.training.q_config import SELF, QConfig
from azjax.training.q_learner import (
    Iterate,
    Pace,
    QLearner,
    init_q_learner,
    make_offline,
    make_online,
)
from azjax.training.q_play import (
    QGames,
    make_move_against,
    make_self_play_move,
    start_q_games,
)
from azjax.training.run_directory import open_run_directory
from azjax.training.sinks import check_sinks

STATE_VERSION = 4  # raised when the layout of `QState`, progress or digest changes


@struct.dataclass
class QState:
    """The complete training state; a checkpoint stores it.

    learner: parameters and the optimizer's state.
    games: games in progress.
    rng_key: the run's key; constant, a counter is folded in for each use.
    iteration: `[]` int32; completed iterations.
    """

    learner: QLearner
    games: QGames
    rng_key: jax.Array
    iteration: jax.Array


def train_q(
    config: QConfig,
    *,
    on_iteration: Hook | None = None,
    on_evaluation: Hook | None = None,
) -> Run[TrainedQ]:
    """Learns the action values of a small game, or continues a stopped run.

    It plays and learns on one device, in one process; evaluations use all devices of
    the process.

    SIGINT and SIGTERM stop the run after the current iteration and save it. A second
    signal ends the process at once.

    Args:
        config: the run's settings.
        on_iteration: called with the metrics of each iteration.
        on_evaluation: called with the metrics of each evaluation, after plotting.

    Raises:
        ValueError: a player is unknown or cannot be compiled, the run directory holds
            another run or no readable checkpoint, or a loss is not finite.
        OSError: the run directory cannot be written.
    """
    started = clock.now()
    enable_compilation_cache()
    check_sinks(config.report.sinks)
    game = game_register.make(config.game)
    network, params = init_q_network(
        jax.random.key(config.seed),
        game.observation_shape,
        game.num_actions,
        config.network,
    )
    functions = _make_functions(config, game, network, params)
    notes: list[str] = []
    with open_run_directory(config, report=notes.append) as directory:
        return run_loop(
            functions,
            directory,
            notes=notes,
            started=started,
            on_iteration=on_iteration,
            on_evaluation=on_evaluation,
        )


def _make_functions(
    config: QConfig, game: Game, network: QNetwork, params: QParams
) -> RunFunctions[QState, TrainedQ]:
    """Returns the functions that the host loop calls."""
    evaluator = Evaluator(game, config.evaluation, config.opponents)
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    play_and_learn = jit_network(
        make_iterate(config, game, network), donate_argnums=(0, 1)
    )
    weight_norm = jax.jit(optax.tree.norm)

    # Placed like restored arrays; otherwise a continued run would compile twice.
    @functools.partial(jax.jit, out_shardings=device)
    def init(params: QParams) -> QState:
        return QState(
            learner=init_q_learner(params),
            games=start_q_games(game, config.games),
            rng_key=jax.random.key(config.seed + 1),
            iteration=jnp.int32(0),
        )

    def iterate(
        state: QState, totals: Totals, share: float, enter: Callable[[str], None]
    ) -> tuple[QState, Totals, dict[str, Any]]:
        enter("self-play and updates")
        epsilon, rate = config.epsilon(share), config.learning_rate * (1 - share)
        learner, games, metrics = play_and_learn(
            state.learner,
            state.games,
            Pace(epsilon=jnp.float32(epsilon), learning_rate=jnp.float32(rate)),
            jax.random.fold_in(state.rng_key, state.iteration),
        )
        state = QState(learner, games, state.rng_key, state.iteration + 1)
        metrics, norm = jax.device_get((metrics, weight_norm(learner.params)))
        row = {
            "value_loss": float(metrics.loss),
            "weight_norm": float(norm),
            "learning_rate": rate,
            "epsilon": epsilon,
        }
        return state, {"games": _games(totals) + int(metrics.games)}, row

    def counters(state: QState, totals: Totals) -> dict[str, Any]:
        return {"games": _games(totals), "updates": int(state.learner.updates)}

    def player(state: QState) -> TrainedQ:
        return TrainedQ(game, network, state.learner.params, config.network)

    return RunFunctions(
        config=config,
        state_version=STATE_VERSION,
        positions=config.batch_moves,
        init=lambda: init(params),
        shardings=lambda state: jax.tree.map(lambda leaf: device, state),
        iterate=iterate,
        counters=counters,
        player=player,
        evaluate=lambda trained, poll: evaluator.evaluate(
            {"network": trained.player()}, poll
        ),
        save_player=save_q_player,
        iteration_seconds=lambda row, share: (
            config.batch_moves / row["positions_per_second"]
        ),
    )


def _games(totals: Totals) -> int:
    return int(totals.get("games", 0))


def make_iterate(config: QConfig, game: Game, network: QNetwork) -> Iterate:
    """Returns `(learner, games, pace, rng_key) -> (learner, games, metrics)`, an
    iteration of self-play and updates."""
    if config.opponent == SELF:
        play_move = make_self_play_move(game, network)
    else:
        opponent = load_compiled(config.opponent, game)
        play_move = make_move_against(game, network, opponent)
    if config.learning == "online":
        return make_online(game, network, play_move, num_moves=config.moves)
    return make_offline(game, network, play_move, config.fit, num_moves=config.moves)

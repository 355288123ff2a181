"""Players named by text: `random`, `minimax:4`, `alphazero:RUN?simulations=200`."""

import dataclasses
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from azjax.games import Game
from azjax.networks import CustomModules
from azjax.players.core import AnyPlayer, ExternalPlayer, Player
from azjax.players.gtp import GtpPlayer
from azjax.players.lookahead import MAX_DEPTH, GreedyPlayer, MinimaxPlayer
from azjax.players.player_spec import (
    PlayerSpec,
    parse_settings,
    parse_value,
    require_game,
)
from azjax.players.search_players import MCTSPlayer
from azjax.players.serialization import (
    MAX_WEIGHT_BYTES,
    PRETRAINED,
    Q_LEARNING,
    TrainedPlayer,
    load_player,
    load_q_player,
    pretrained_directory,
)
from azjax.players.simple import (
    HumanPlayer,
    NetworkPlayer,
    RandomPlayer,
    make_perfect_player,
)
from azjax.players.uci import MAX_LIMITS, UciPlayer, check_is_chess
from azjax.search import SEARCHES
from azjax.settings import Fraction, Within
from azjax.text import did_you_mean, quoted

_log = logging.getLogger(__name__)

DEFAULT_SIMULATIONS = 64
MAX_SIMULATIONS = 100_000
MAX_TEMPERATURE = 100
LEARNED_KINDS = ("alphazero", "network", Q_LEARNING)

_Simulations = Annotated[int, Within(1, MAX_SIMULATIONS)]
_Nodes = Annotated[int, Within(0, MAX_SIMULATIONS)]
_Scale = Annotated[float, Within(0, 10**9)]
_SEARCH_SETTINGS = {
    "use_solver": bool,
    "rescale_values": bool,
    "tree_reuse_nodes": _Nodes,
    "max_num_considered_actions": _Simulations,
    "value_scale": _Scale,
    "c_init": _Scale,
    "c_base": Annotated[float, Within(1, 10**9)],
    "first_play_reduction": _Scale,
}


class PlayerKind(NamedTuple):
    """A kind of player.

    form: the syntax shown in messages; it contains a colon if an argument is required.
    build: builds the player from the parsed string and the game, which may be None.
    settings: the types of its settings, as of `parse_value`; None: the player checks
        them.
    is_verbatim: whether the whole text after the colon is the argument, question marks
        included.
    """

    form: str
    build: Callable[[PlayerSpec, Game | None], AnyPlayer]
    settings: Mapping[str, Any] | None = MappingProxyType({})
    is_verbatim: bool = False


def load(
    spec: str, game: Game | None = None, modules: CustomModules | None = None
) -> AnyPlayer:
    """Builds the player that a player string describes.

    - `random`; `greedy`, which looks one move and the reply ahead;
    - `minimax:DEPTH`: alpha-beta search to this depth;
    - `mcts:N`: UCT search with N random playouts; settings `exploration` and
      `tree_reuse_nodes`;
    - `network:RUN`: the policy of a trained network without search; settings
      `temperature` and `use_symmetries`;
    - `alphazero:RUN`: search with the network; settings `simulations` and the fields of
      `SearchConfig` that concern play, which default to those of the run;
    - `q_learning:RUN`: a player trained by `azjax train-q`; setting `epsilon`, the
      probability of a random move;
    - `perfect`: perfect play of Connect Four, with the extra `solver`, and of the
      Royal Game of Ur with one or two pieces;
    - `human`: a person at the terminal; `gtp:COMMAND`: a program that speaks GTP, with
      its arguments;
    - `uci:COMMAND`: chess by a program that speaks UCI; settings `nodes`, `depth` and
      `movetime` limit its search, all others are options of the program.

    RUN is a run directory, a player directory, or `pretrained`. Settings follow a `?`
    and are joined by `&`. `random`, `greedy`, `minimax`, `mcts`, `perfect` and
    `pretrained` need the game.

    Args:
        spec: the player string.
        game: the game.
        modules: the user's own modules, for a run whose network was made with them.

    Raises:
        MissingModulesError: `modules` are required.
        ValueError: the string is not a player, or the player is for another game.
    """
    head, _, query = spec.partition("?")
    name, colon, argument = head.partition(":")
    kind = PLAYER_KINDS.get(name)
    if kind is not None and kind.is_verbatim:
        argument, query = spec.partition(":")[2], ""
    needs_argument = kind is not None and ":" in kind.form
    if kind is None or bool(colon) != needs_argument or bool(colon) != bool(argument):
        forms = ", ".join(kind.form for kind in PLAYER_KINDS.values())
        meant = "" if kind else did_you_mean(name, PLAYER_KINDS)
        if kind is None and (head == PRETRAINED or os.path.isdir(head)):
            meant = "; a run is given as alphazero:RUN, such as alphazero:pretrained"
        raise ValueError(f"unknown player {quoted(spec)}; players are {forms}{meant}")
    settings = parse_settings(spec, query, kind.settings)
    return kind.build(PlayerSpec(spec, argument, settings, modules), game)


def load_compiled(
    spec: str, game: Game | None = None, modules: CustomModules | None = None
) -> Player:
    """Builds a player, as `load` does, that can be called in jitted functions."""
    player = load(spec, game, modules)
    if isinstance(player, ExternalPlayer):
        raise ValueError(f"the player {quoted(spec)} cannot be compiled")
    return player


def _minimax(spec: PlayerSpec, game: Game | None) -> Player:
    limits = Annotated[int, Within(1, MAX_DEPTH)]
    depth = parse_value(spec.text, "DEPTH", spec.argument, limits)
    game = require_game(spec, game)
    has_heuristic = type(game).evaluate is not Game.evaluate
    if not has_heuristic and depth < game.max_moves:
        text = "%s sees wins and losses within its depth only: %r has no heuristic"
        _log.warning(text, spec.text, game)
    return MinimaxPlayer(game, depth)


def _mcts(spec: PlayerSpec, game: Game | None) -> Player:
    simulations = parse_value(spec.text, "N", spec.argument, _Simulations)
    return MCTSPlayer(require_game(spec, game), simulations, **spec.settings)


def _network(spec: PlayerSpec, game: Game | None) -> Player:
    trained = load_run(spec.argument, game, spec.modules)
    return NetworkPlayer(
        trained.game, trained.network, trained.variables, **spec.settings
    )


def _alphazero(spec: PlayerSpec, game: Game | None) -> Player:
    changes = dict(spec.settings)
    simulations = changes.pop("simulations", DEFAULT_SIMULATIONS)
    algorithm = changes.pop("algorithm", None)
    if algorithm is not None:  # refused before anything is loaded
        parse_value(spec.text, "algorithm", algorithm, SEARCHES.names)
    trained = load_run(spec.argument, game, spec.modules)
    search = trained.search
    algorithm = algorithm or search.algorithm
    if algorithm != search.algorithm:
        search = SEARCHES.find(algorithm)(
            tree_reuse_nodes=search.tree_reuse_nodes, use_solver=search.use_solver
        )
    known = {field.name for field in dataclasses.fields(search)}
    for name in changes:
        if name not in known:
            raise ValueError(
                f"{name} is not a setting of the algorithm {algorithm}, in player "
                f"{quoted(spec.text)}"
            )
    search = dataclasses.replace(search, **changes)
    return dataclasses.replace(trained, search=search).player(simulations)


def _uci(spec: PlayerSpec, game: Game | None) -> UciPlayer:
    if game is not None:
        check_is_chess(game)
    limits = {
        name: parse_value(
            spec.text, name, spec.settings[name], Annotated[int, Within(1, most)]
        )
        for name, most in MAX_LIMITS.items()
        if name in spec.settings
    }
    options = {k: value for k, value in spec.settings.items() if k not in limits}
    return UciPlayer(spec.argument, options, **limits)


def _q_learning(spec: PlayerSpec, game: Game | None) -> Player:
    trained = load_q_player(spec.argument)
    _check_is_for(spec.argument, trained.game, game)
    return trained.player(**spec.settings)


PLAYER_KINDS = {
    "random": PlayerKind(
        "random", lambda spec, game: RandomPlayer(require_game(spec, game))
    ),
    "greedy": PlayerKind(
        "greedy", lambda spec, game: GreedyPlayer(require_game(spec, game))
    ),
    "minimax": PlayerKind("minimax:DEPTH", _minimax),
    "mcts": PlayerKind(
        "mcts:N",
        _mcts,
        {
            "exploration": Annotated[float, Within(0, 1000)],
            "tree_reuse_nodes": _Nodes,
        },
    ),
    "network": PlayerKind(
        "network:RUN",
        _network,
        {
            "temperature": Annotated[float, Within(0, MAX_TEMPERATURE)],
            "use_symmetries": bool,
        },
    ),
    "alphazero": PlayerKind(
        "alphazero:RUN",
        _alphazero,
        {"simulations": _Simulations, "algorithm": str, **_SEARCH_SETTINGS},
    ),
    Q_LEARNING: PlayerKind("q_learning:RUN", _q_learning, {"epsilon": Fraction}),
    "perfect": PlayerKind(
        "perfect", lambda spec, game: make_perfect_player(require_game(spec, game))
    ),
    "human": PlayerKind("human", lambda spec, game: HumanPlayer()),
    "gtp": PlayerKind(
        "gtp:COMMAND",
        lambda spec, game: GtpPlayer(spec.argument),  # sessions check the game
        is_verbatim=True,
    ),
    "uci": PlayerKind("uci:COMMAND", _uci, settings=None),
}


def reaches_outside(spec: str) -> bool:
    """Returns whether a player starts a program, or is read from a directory or a URL:
    files, which may come from anywhere, do not name such players."""
    head, _, argument = spec.partition("?")[0].partition(":")
    kind = PLAYER_KINDS.get(head)
    place = "" if kind is None else kind.form.partition(":")[2]
    return place == "COMMAND" or (place == "RUN" and argument != PRETRAINED)


def load_run(
    source: str | os.PathLike[str],
    game: Game | None = None,
    modules: CustomModules | None = None,
) -> TrainedPlayer:
    """Loads the trained player of a run.

    Args:
        source: a run directory, a player directory, or `pretrained`.
        game: the expected game; required for `pretrained`.
        modules: the user's own modules, for a network made with them.

    Raises:
        MissingModulesError: `modules` are required.
        ValueError: there is no player, or it is for another game.
    """
    if source == PRETRAINED:
        if game is None:
            raise ValueError("'pretrained' requires a game: --game NAME")
        trained = load_player(pretrained_directory(game))
    else:
        trained = load_player(source, modules)
    _check_is_for(source, trained.game, game)
    return trained


def load_learned(
    kind: str, directory: Path, game: Game, modules: CustomModules | None = None
) -> Player:
    """Builds a player from a run directory, with the settings of the run.

    Unlike `load`, this parses no player string: kinds and directories may come from
    untrusted files. Networks of more than `MAX_WEIGHT_BYTES` are refused.

    Args:
        kind: kind of player, one of `LEARNED_KINDS`.
        directory: a run directory or a player directory.
        game: the expected game.
        modules: the user's own modules, traceable by JAX, for a run whose network was
            made with them.

    Raises:
        MissingModulesError: `modules` are required.
        ValueError: the kind is unknown, or the player is missing, damaged, too large or
            for another game.
    """
    if kind not in LEARNED_KINDS:
        known = ", ".join(LEARNED_KINDS)
        raise ValueError(f"kind must be one of {known}: {quoted(kind)}")
    if kind == Q_LEARNING:
        player = load_q_player(directory, most=MAX_WEIGHT_BYTES).player()
    else:
        trained = load_player(directory, modules, most=MAX_WEIGHT_BYTES)
        player = trained.player(DEFAULT_SIMULATIONS)
        if kind == "network":
            player = NetworkPlayer(trained.game, trained.network, trained.variables)
    _check_is_for(directory, player.game, game)
    return player


def _check_is_for(
    source: str | os.PathLike[str], found: Game, wanted: Game | None
) -> None:
    if wanted is not None and found != wanted:
        raise ValueError(f"the player in {source} is for {found}, not for {wanted}")

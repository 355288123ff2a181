"""The games and players that clients can choose; requests name them by key."""

import contextlib
import dataclasses
import functools
import json
import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from azjax import games
from azjax.files import read_inside
from azjax.games import Game, game_options
from azjax.networks import CustomModules
from azjax.play.opponents import (
    default_mcts,
    default_minimax,
    is_shipped,
    shipped_games,
)
from azjax.play.server.messages import shown
from azjax.play.server.runs import RunInfo, find_runs, one_line
from azjax.players import DEFAULT_SIMULATIONS, AnyPlayer, load
from azjax.players.player_spec import public_name, split_name, unused_name
from azjax.players.registry import load_learned
from azjax.players.serialization import PLAYER_FILE, PRETRAINED
from azjax.settings import is_number
from azjax.training.run.directory import CONFIG_FILE

RESULTS_FILE = "results.json"
MAX_BYTES = 2**20  # of a file of results
MAX_RATING = 100_000  # Elo
KEPT_TOURNAMENTS = 200  # the newest ones
PATH_KINDS = ("alphazero", "network", "q_learning")  # loaded from a directory
CACHED_OFFERS = 1000
REFRESH_INTERVAL = 2.0  # seconds
_log = logging.getLogger(__name__)
_SEARCH, _NO_SEARCH = f"{DEFAULT_SIMULATIONS} simulations a move", "no search"
# The players of a run, with their titles and their search, by the kind of the run.
_PLAYERS: Mapping[str | None, Mapping[str, tuple[str, str]]] = {
    None: {
        "alphazero": ("AlphaZero", _SEARCH),
        "network": ("AlphaZero's network", _NO_SEARCH),
    },
    "q_learning": {"q_learning": ("Q-learning", _NO_SEARCH)},
}


def find_ratings(directory: Path) -> dict[str, Mapping[str, float]]:
    """Returns the ratings of the newest tournament of each game, of the newest
    `KEPT_TOURNAMENTS`.

    Ratings of different tournaments are not comparable, so only one is used.

    Args:
        directory: contains the directories of the tournaments; other directories, such
            as runs, are ignored.

    Returns:
        Elo ratings by `repr(game)` and by `player_key`.
    """
    try:
        paths = list(directory.iterdir())
    except OSError:
        return {}
    found = []
    for path in paths:
        # An untrusted run must not set the ratings of this server.
        if os.path.lexists(path / CONFIG_FILE):
            continue
        try:
            status = (path / RESULTS_FILE).lstat()
        except (OSError, ValueError):
            continue
        version = (status.st_mtime_ns, status.st_ino, status.st_size)
        found.append((version, str(path)))
    ratings = {}
    for version, path in sorted(found)[-KEPT_TOURNAMENTS:]:
        ratings |= _read_ratings(path, *version)
    return ratings


def player_key(text: str) -> str:
    """Returns a player's text with an absolute path, for comparison."""
    kind, _, argument = text.partition(":")
    path, mark, settings = argument.partition("?")
    if kind not in PATH_KINDS or os.sep not in path:
        return text
    return f"{kind}:{os.path.abspath(path)}{mark}{settings}"


@functools.lru_cache(KEPT_TOURNAMENTS)
def _read_ratings(path: str, *version: int) -> Mapping[str, Mapping[str, float]]:
    """Returns the ratings of a game by `player_key`; none if the results in a directory
    are not a tournament's.

    Args:
        path: the directory.
        *version: numbers that change with the results.
    """
    del version
    try:
        results = json.loads(read_inside(Path(path), RESULTS_FILE, MAX_BYTES))
        game, players = results["game"], results["players"]
        rated = {player_key(player["player"]): player["elo"] for player in players}
    except Exception:  # any content of the file affects its ratings only
        return {}
    ratings = rated.values()
    if not (
        isinstance(game, str)
        and all(is_number(rating) and abs(rating) <= MAX_RATING for rating in ratings)
    ):
        return {}
    return {game: {key: float(rating) for key, rating in rated.items()}}


# Order of the players: from the command line, shipped, from runs, others.
ADDED, SHIPPED, LEARNED, STANDARD = range(4)


@dataclasses.dataclass(frozen=True)
class PlayerOffer:
    """A player that clients can choose.

    name: key of the player.
    title: text for people.
    about: its strength for people; may be empty.
    source: a text for `players.load`, from the operator or this program only; the kind
        of a player of a run; or the player itself.
    rank: players with a lower rank are listed first.
    rating: Elo in the newest tournament, at the player's own strength; None if unrated.
    directory: of the run, whose player may be replaced by a newer version; None without
        a run.
    """

    name: str
    title: str
    source: str | AnyPlayer
    about: str = ""
    rank: int = STANDARD
    rating: float | None = None
    directory: Path | None = None

    def load(self, game: Game, modules: CustomModules | None = None) -> AnyPlayer:
        """Loads the player."""
        if not isinstance(self.source, str):
            return self.source
        if self.directory is None:
            return load(self.source, game, modules)
        return load_learned(self.source, self.directory, game, modules)

    def version(self) -> int | None:
        """Returns the modification time of the player of a run, None without one."""
        if self.directory is not None:
            with contextlib.suppress(OSError):
                return (self.directory / "player" / PLAYER_FILE).stat().st_mtime_ns
        return None

    @property
    def rating_key(self) -> str:
        """The player's key in tournament results."""
        path = "" if self.directory is None else f":{self.directory}"
        return player_key(f"{self.source}{path}")


@dataclasses.dataclass(frozen=True)
class GameOffer:
    """A game that clients can choose.

    key: `repr(game)`.
    game: the game.
    players: players by name; the first is the default.
    """

    key: str
    game: Game
    players: Mapping[str, PlayerOffer]


class Catalog:
    """The games, players and runs that clients can choose; thread-safe.

    The runs are read again every `REFRESH_INTERVAL`.

    modules: the operator's modules for custom networks.

    Args:
        games: games by key, without the players of runs.
        runs_directory: contains the runs; it need not exist; None offers no runs.
        has_all: whether the games of runs are offered in addition to `games`.
        modules: see above.
    """

    def __init__(
        self,
        games: Mapping[str, GameOffer],
        runs_directory: Path | None = None,
        *,
        has_all: bool = False,
        modules: CustomModules | None = None,
    ):
        self.modules = modules
        self._configured, self._has_all = games, has_all
        self._directory = runs_directory
        self._lock = threading.Lock()
        self._runs: dict[str, RunInfo] = {}
        self._games = dict(games)
        self._refreshed_at = -REFRESH_INTERVAL

    def runs(self) -> dict[str, RunInfo]:
        """Returns the runs by key."""
        self._refresh()
        return self._runs

    def games(self) -> dict[str, GameOffer]:
        """Returns the offered games by key, with the players of runs and ratings."""
        self._refresh()
        return self._games

    def find(self, game: str, player: str) -> tuple[GameOffer, PlayerOffer]:
        """Returns the game with a key, and its player with a name.

        Raises:
            ValueError: the game or the player is unknown.
        """
        offer = self.games().get(game)
        if offer is None:
            known = ", ".join(self.games())
            raise ValueError(f"unknown game {shown(game)}; known games: {known}")
        if player not in offer.players:
            known = ", ".join(offer.players)
            raise ValueError(f"unknown player {shown(player)}; known players: {known}")
        return offer, offer.players[player]

    def _refresh(self) -> None:
        with self._lock:
            is_fresh = time.monotonic() - self._refreshed_at < REFRESH_INTERVAL
            if self._directory is None or is_fresh:
                return
            self._runs, offers = find_runs(self._directory), dict(self._configured)
            for run in self._runs.values():
                key = repr(run.game)
                if not run.has_player or not (self._has_all or key in offers):
                    continue
                offer = offers.get(key) or _run_offer(key, run.game)
                if offer is not None:
                    players = _ranked([*offer.players.values(), *run_players(run)])
                    offers[key] = dataclasses.replace(offer, players=players)
            ratings = find_ratings(self._directory)
            for key, offer in offers.items():
                rated = ratings.get(key, {})
                players = {
                    name: dataclasses.replace(
                        player, rating=rated.get(player.rating_key)
                    )
                    for name, player in offer.players.items()
                }
                offers[key] = dataclasses.replace(offer, players=players)
            self._games, self._refreshed_at = offers, time.monotonic()


def make_catalog(
    names: Sequence[str],
    specs: Sequence[str],
    runs_directory: Path,
    modules: CustomModules | None = None,
) -> Catalog:
    """Makes the catalog from the command line's arguments.

    Args:
        names: names of the games; empty for all games.
        specs: additional players, `GAME=SPEC` or `GAME=NAME=SPEC`.
        runs_directory: contains the runs; it need not exist.
        modules: the operator's modules for custom networks.

    Raises:
        ValueError: a game or a player is unknown.
    """
    offered: dict[str, GameOffer] = {}
    keys: dict[str, str] = {}  # by the names allowed in `specs`
    for name in names or sorted({*games.available(), *shipped_games()}):
        game = games.make(name)
        key = repr(game)
        keys |= {name: key, key: key}
        if key not in offered:
            offered[key] = GameOffer(key, game, standard_players(game))
    for text in specs:
        given = [name for name in keys if text.startswith(f"{name}=")]
        if not given:
            raise ValueError(
                "--player must be GAME=PLAYER, where GAME is one of "
                f"{', '.join(keys)}: {text!r}"
            )
        name = max(given, key=len)
        player, key = text.removeprefix(f"{name}="), keys[name]
        offer = offered[key]
        alias, spec = split_name(player)
        if spec == "human":
            raise ValueError("--player must not be 'human'")
        load(spec, offer.game, modules)  # raises early if the player is invalid
        name = alias or public_name(spec)
        same = offer.players.get(name)
        if same is not None and same.source == spec:
            added = dataclasses.replace(same, rank=ADDED)
        else:
            name = unused_name(name, offer.players)
            added = PlayerOffer(name, name, spec, rank=ADDED)
        others = (p for p in offer.players.values() if p.name != added.name)
        players = _ranked([*others, added])
        offered[key] = dataclasses.replace(offer, players=players)
    return Catalog(offered, runs_directory, has_all=not names, modules=modules)


def find_key(text: str, offers: Mapping[str, GameOffer]) -> str | None:
    """Returns the key of the game that a text such as `go:size=9` names, or None.

    The text is only compared with the options of the games; no game is built from it.
    """
    if text in offers:
        return text
    name, _, given = text.partition(":")
    for key, offer in offers.items():
        game_name, _, required = key.partition(":")
        if name != game_name:
            continue
        # All options of the key, and only options with the game's values.
        parameters, values = list(game_options(name)), offer.game.options
        options, needed = _options(given, parameters), _options(required, parameters)
        if options is None or needed is None or not needed.keys() <= options.keys():
            continue
        if all(k in values and _is_value(v, values[k]) for k, v in options.items()):
            return key
    return None


def standard_players(game: Game) -> dict[str, PlayerOffer]:
    """Returns the players that are always offered for a game, by name."""
    offers = []
    if is_shipped(game):
        offers += [
            _offer(f"{kind}:{PRETRAINED}", title, f"{level}: {about}", SHIPPED)
            for level, (kind, (title, about)) in zip(
                ("strong", "medium"), _PLAYERS[None].items(), strict=True
            )
        ]
    minimax, rollouts = default_minimax(game), default_mcts(game)
    if minimax is not None:
        depth = minimax.partition(":")[2]
        offers.append(_offer(minimax, "Minimax", f"medium: looks {depth} moves ahead"))
    number = rollouts.partition(":")[2]
    offers += [
        _offer(rollouts, "MCTS", f"medium: {number} random games a move"),
        _offer("greedy", "Greedy", "easy: looks 2 moves ahead"),
        _offer("random", "Random", "easiest: any move"),
    ]
    return _ranked(offers)


@functools.lru_cache(CACHED_OFFERS)
def _run_offer(key: str, game: Game) -> GameOffer | None:
    """Returns a game of a run with its standard players; logs and returns None if that
    fails."""
    try:
        return GameOffer(key, game, standard_players(game))
    except Exception as error:  # any failure affects this game only
        _log.warning("the game %s is not offered: %s", key, one_line(error))
        return None


def run_players(run: RunInfo) -> list[PlayerOffer]:
    """Returns the players of a run."""
    return [
        PlayerOffer(
            name=f"{kind}:{run.directory.parent.name}/{run.key}",
            title=f"{title} (run {run.key})",
            source=kind,
            about=about,
            rank=LEARNED,
            directory=run.directory,
        )
        for kind, (title, about) in _PLAYERS[run.kind].items()
    ]


def _offer(spec: str, title: str, about: str, rank: int = STANDARD) -> PlayerOffer:
    return PlayerOffer(spec, title, spec, about, rank)


def _options(text: str, parameters: Sequence[str]) -> dict[str, str] | None:
    """Returns options by name as `games.make` does; None if they are malformed."""
    options: dict[str, str] = {}
    for position, part in enumerate(text.split(",") if text else []):
        key, equals, value = part.rpartition("=")
        if not equals and position < len(parameters):
            key = parameters[position]
        if not key or key in options:
            return None
        options[key] = value
    return options


def _is_value(text: str, value: int | float | str | bool) -> bool:
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    try:
        return type(value)(text) == value
    except ValueError:
        return False


def _ranked(players: Iterable[PlayerOffer]) -> dict[str, PlayerOffer]:
    """Returns players by name, sorted by rank."""
    return {p.name: p for p in sorted(players, key=lambda player: player.rank)}

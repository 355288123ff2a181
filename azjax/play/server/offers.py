"""Which games, players and runs visitors find: every name from outside is a key."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from azjax import games
from azjax.games import Game
from azjax.play.opponents import is_shipped, lookahead, playouts
from azjax.play.server.runs import Run, find_runs
from azjax.players import load
from azjax.players.directory import PRETRAINED
from azjax.players.names import public_name, split_name, unused_name


@dataclasses.dataclass(frozen=True)
class PlayerOffer:
    """A player that visitors may choose.

    name: by which they ask for it.
    title: what people are told that it is.
    spec: from which it is built.
    directory: of a run whose player may become newer, if it is one.
    """

    name: str
    title: str
    spec: str
    directory: Path | None = None


@dataclasses.dataclass(frozen=True)
class GameOffer:
    """A game that visitors may play.

    key: by which they ask for it.
    players: by name, the one that is met first at the top.
    """

    key: str
    game: Game
    players: Mapping[str, PlayerOffer]


@dataclasses.dataclass(frozen=True)
class Offers:
    """What there is to play with and to look at.

    games: by key; without the runs' players, which come and go.
    runs_directory: in which runs are looked for.
    has_all: whether games that are learnt in runs are offered beside `games`.
    """

    games: Mapping[str, GameOffer]
    runs_directory: Path
    has_all: bool

    def runs(self) -> dict[str, Run]:
        """Returns the runs that are there now, by key."""
        return find_runs(self.runs_directory)

    def with_runs(self, runs: Mapping[str, Run]) -> dict[str, GameOffer]:
        """Returns all games by key, with the players that runs have now."""
        offers = dict(self.games)
        for run in runs.values():
            if not run.has_player:
                continue
            key = self.key_of(run.game)
            if key is None:
                continue
            offer = offers.get(key) or GameOffer(
                key, run.game, standard_players(run.game)
            )
            players = {player.name: player for player in run_players(run)}
            # What ships comes first, and what was learnt here before what was not.
            shipped = {n: p for n, p in offer.players.items() if n.endswith(PRETRAINED)}
            offers[key] = dataclasses.replace(
                offer, players={**shipped, **players, **offer.players}
            )
        return offers

    def key_of(self, game: Game) -> str | None:
        """Returns under which key a game is offered, None if it is not."""
        for key, offer in self.games.items():
            if offer.game == game:
                return key
        return repr(game) if self.has_all else None


def make_offers(
    names: Sequence[str], specs: Sequence[str], runs_directory: Path
) -> Offers:
    """Returns what the command line says.

    Args:
        names: of the games, all of them if there is none.
        specs: further players, `GAME=SPEC` or `GAME=NAME=SPEC`.
        runs_directory: in which runs are looked for; it need not be there.

    Raises:
        ValueError: a game or a player is unknown.
    """
    offered = {}
    for name in names or games.available():
        game = games.make(name)
        offered[name] = GameOffer(name, game, standard_players(game))
    further: dict[str, dict[str, PlayerOffer]] = {key: {} for key in offered}
    for text in specs:
        key, player = _split(text, list(offered))
        offer = _named_offer(player, offered[key], further[key])
        further[key][offer.name] = offer
    for key, offer in offered.items():
        players = {**further[key], **offer.players}
        offered[key] = dataclasses.replace(offer, players=players)
    return Offers(offered, runs_directory, has_all=not names)


def load_offered(spec: str, game: Game):
    """Loads a player, which must not be a person.

    Raises:
        ValueError: it is one, or there is no such player.
    """
    if spec == "human":
        raise ValueError("visitors play themselves: 'human' is no player for --player")
    return load(spec, game)


def standard_players(game: Game) -> dict[str, PlayerOffer]:
    """Returns the players that every visitor of a game finds, by name."""
    offers = []
    if is_shipped(game):
        offers += [
            _offer(f"alphazero:{PRETRAINED}", "AlphaZero"),
            _offer(f"network:{PRETRAINED}", "Its network, without search"),
        ]
    ahead = lookahead(game)
    if ahead is not None:
        offers.append(_offer(ahead, f"{ahead.partition(':')[2]} moves ahead"))
    offers += [
        _offer(playouts(game), "Search with random playouts"),
        _offer("greedy", "One move ahead"),
        _offer("random", "Chance"),
    ]
    return {offer.name: offer for offer in offers}


def run_players(run: Run) -> list[PlayerOffer]:
    """Returns the players of a run."""
    kinds = {"alphazero": "AlphaZero", "network": "The network, without search"}
    if run.kind is not None:
        kinds = {run.kind: "Q-learning" if run.kind == "q_learning" else run.kind}
    return [
        PlayerOffer(
            name=f"{kind}:{run.directory.parent.name}/{run.key}",
            title=f"{title} (run {run.key})",
            spec=f"{kind}:{run.directory}",
            directory=run.directory,
        )
        for kind, title in kinds.items()
    ]


def _offer(spec: str, title: str) -> PlayerOffer:
    return PlayerOffer(spec, title, spec)


def _named_offer(
    text: str, game_offer: GameOffer, further: Mapping[str, PlayerOffer]
) -> PlayerOffer:
    """Returns the player that `NAME=SPEC` or `SPEC` says, by a name of its own.

    Raises:
        ValueError: there is no such player.
    """
    alias, spec = split_name(text)
    load_offered(spec, game_offer.game)  # to find out now whether there is one
    used = {**game_offer.players, **further}
    name = alias or public_name(spec)
    if name in used and used[name].spec == spec:
        return used[name]
    name = unused_name(name, used)
    return PlayerOffer(name, name, spec)


def _split(text: str, keys: Sequence[str]) -> tuple[str, str]:
    """Returns the game that a text `GAME=...` names, and what stands behind it."""
    for key in sorted(keys, key=len, reverse=True):
        if text.startswith(f"{key}="):
            return key, text.removeprefix(f"{key}=")
    raise ValueError(
        f"--player must be GAME=PLAYER, where GAME is one of {', '.join(keys)}: "
        f"{text!r}"
    )

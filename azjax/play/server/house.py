"""Everything that visitors share: rules, players, and the tables where they think.

What is used for the first time takes seconds, as it is loaded and compiled then: most
methods are not for the thread that serves the visitors.
"""

import contextlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from azjax.games import Game
from azjax.networks import Parts
from azjax.play.server.catalog import Catalog, GameOffer, PlayerOffer, load_offered
from azjax.play.server.describing import (
    Preview,
    describe_position,
    describe_start,
)
from azjax.play.server.incremental_search import (
    MAX_STRENGTH,
    STRENGTHS,
    Plan,
    Slicer,
    batch_sizes,
    in_slices,
    plan_for,
    search_text,
)
from azjax.play.server.limits import Limits
from azjax.play.server.memory import PROGRAM_BYTES, Memory, array_bytes
from azjax.play.server.messages import shown
from azjax.play.server.rules import Rules
from azjax.play.server.runs import Run, one_line
from azjax.play.server.search_workers import SearchTable, SeatTable, TreeRoom
from azjax.players import AnyPlayer, ExternalPlayer
from azjax.players.serialization import CONFIG_FILE, WEIGHTS_FILE

LOOK_INTERVAL = 2.0  # between two looks at the runs' directories (seconds)
QUIET_SECONDS = 2.0  # without a visitor who waits, after which nobody is busy

Table = SearchTable | SeatTable
Stamp = tuple[int, ...]


class House:
    """What there is to play with.

    num_decisions: how many are asked for now; counted by the thread of the visitors.
    num_starts: visitors who wait for a game to begin; counted likewise.
    answered_at: when the last of these waits ended, or everything began; noted
        likewise.

    Args:
        offers: games, players and where runs are.
        limits: of what visitors may ask.
        seed: of the players' chance; None draws one.
    """

    def __init__(self, offers: Catalog, limits: Limits, seed: int | None = None):
        self.limits = limits
        self._seed = seed
        self.num_decisions = self.num_starts = 0
        self.answered_at = time.monotonic()
        self._offers = offers
        self._room = TreeRoom(limits.search_bytes)
        self.memory = Memory(limits.memory_bytes)
        self._compiler = ThreadPoolExecutor(1, thread_name_prefix="azjax-compile")
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._locks: dict[object, threading.Lock] = {}
        self._previews: dict[str, Preview] = {}
        self._rules: dict[str, Rules] = {}
        self._hosts: dict[tuple[str, str], Host] = {}
        self._runs: dict[str, Run] = {}
        self._games: dict[str, GameOffer] = {}
        self._looked_at = -LOOK_INTERVAL

    def runs(self) -> dict[str, Run]:
        """Returns the runs that there are, by key."""
        self._look()
        return self._runs

    def games(self) -> dict[str, GameOffer]:
        """Returns the games that are offered, by key."""
        self._look()
        return self._games

    def key_of(self, game: Game) -> str | None:
        """Returns under which key a game is offered, None if it is not."""
        key = self._offers.key_of(game)
        return key if key in self.games() else None

    def find(self, game: str, player: str) -> tuple[GameOffer, PlayerOffer]:
        """Returns what a visitor asks for.

        Raises:
            ValueError: there is no such thing.
        """
        offer = self.games().get(game)
        if offer is None:
            known = ", ".join(self.games())
            raise ValueError(f"unknown game {shown(game)}; there is {known}")
        if player not in offer.players:
            known = ", ".join(offer.players)
            raise ValueError(f"unknown player {shown(player)}; there is {known}")
        return offer, offer.players[player]

    @property
    def is_busy(self) -> bool:
        """Whether any visitor waits for something, or did within `QUIET_SECONDS`: a
        visitor who plays waits again soon."""
        is_quiet = time.monotonic() - self.answered_at >= QUIET_SECONDS
        return self.num_decisions > 0 or self.num_starts > 0 or not is_quiet

    def is_ready(self, offer: GameOffer, player: PlayerOffer) -> bool:
        """Returns whether a game can begin at once; by any thread."""
        return offer.key in self._rules and self.loaded(offer, player) is not None

    def preview(self, offer: GameOffer) -> Preview:
        """Returns what can be shown of a game before its rules are compiled."""
        with self._lock_of(("preview", offer.key)):
            if offer.key not in self._previews:
                self._previews[offer.key] = describe_start(offer.game, offer.key)
            return self._previews[offer.key]

    def rules(self, offer: GameOffer) -> Rules:
        """Returns the compiled rules of a game."""
        limits = self.limits
        with self._lock_of(offer.key):
            rules = self._rules.get(offer.key)
            if rules is None:
                rules = Rules(offer.game, limits.positions, limits.position_bytes)
                describe_position(rules, ())  # compiles the little that rules do not
                self._rules[offer.key] = rules
            rules.used = self.memory.now()
            return rules

    def loaded(self, offer: GameOffer, player: PlayerOffer) -> "Host | None":
        """Returns who serves a player if it is loaded and there is no newer one; by
        any thread, at once."""
        host = self._hosts.get((offer.key, player.name))
        if host is not None and host.stamp == _stamp(player.directory):
            return host
        return None

    def host(self, offer: GameOffer, player: PlayerOffer) -> "Host":
        """Returns the host of a player; loads it, again if its files have changed.

        Raises:
            ValueError: it cannot be loaded, or its search takes too much memory.
        """
        key = (offer.key, player.name)
        with self._lock_of(key):
            host = self.loaded(offer, player)
            if host is None:
                host = self._load(offer, player)
            host.used = self.memory.now()
            return host

    def _load(self, offer: GameOffer, player: PlayerOffer) -> "Host":
        """Loads a player, one at a time: loaded players exceed the memory limit by one
        at most, and only until there is room for it."""
        key = (offer.key, player.name)
        with self._loading:
            stamp = _stamp(player.directory)
            loaded = _load(offer, player, self._offers.parts)
            host = Host(offer, loaded, stamp, self, self._hosts.get(key))
            self._hosts[key] = host
            try:
                self.make_room(host)
            except ValueError:
                self._hosts.pop(key, None)
                raise
            return host

    def make_room(self, host: "Host") -> None:
        """Lets go of players and rules that were not used for long, but not of `host`.

        Raises:
            ValueError: everything loaded is in use and exceeds the memory limit.
        """
        if not self.memory.make_room(host, self._hosts, self._rules):
            raise ValueError(
                "too many players are at work for the server's memory; try again in a "
                "moment"
            )

    def describe(self, offer: GameOffer, player: PlayerOffer) -> dict[str, Any]:
        """Returns what a page must know before it begins.

        Raises:
            ValueError: the player cannot be loaded, or its search takes too much
                memory.
        """
        host = self.host(offer, player)
        self.rules(offer)  # before the search, which may be compiled until a move
        host.warm_up()
        return {
            **self.preview(offer).description,
            "player": player.title,
            "simulations": host.default_strength,
            "strengths": host.strengths,
            "search": host.search,
        }

    def search_table(self, slicer: Slicer) -> SearchTable:
        """Returns a new table for a player's search."""
        return SearchTable(slicer, self._room, self._compiler, self._seed)

    def seat_table(self, player: ExternalPlayer, game: Game) -> SeatTable:
        """Returns a new table for a player that cannot be compiled."""
        return SeatTable(player, game, self._seed or 0)

    def close(self) -> None:
        """Lets all players go; what is being thought is dropped."""
        for host in self._hosts.values():
            host.close()
        self._compiler.shutdown(wait=False, cancel_futures=True)

    def _look(self) -> None:
        """Looks which runs there are, unless somebody just did."""
        with self._lock_of("runs"):
            if time.monotonic() - self._looked_at < LOOK_INTERVAL:
                return
            self._runs = self._offers.runs()
            self._games = self._offers.with_runs(self._runs)
            self._looked_at = time.monotonic()

    def _lock_of(self, what: object) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(what, threading.Lock())


class Host:
    """A loaded player and its tables.

    strengths: the numbers of simulations that may be asked for; none if the player
        does not search, or cannot be told how far.
    default_strength: the player's own number of simulations, or the most below it that
        may be asked for.
    search: description of its search for the page, None if it does not search.
    stamp: of the files from which it was loaded.
    used: when it was used last.

    Args:
        offer: its game.
        player: as it was loaded.
        stamp: see above.
        house: where its tables stand.
        older: whose compiled programs can be used again, if they fit.

    Raises:
        ValueError: it searches, and there is not enough memory for any search.
    """

    def __init__(
        self,
        offer: GameOffer,
        player: AnyPlayer,
        stamp: Stamp,
        house: House,
        older: "Host | None",
    ):
        self.stamp = stamp
        self._offer, self._player, self._house = offer, player, house
        self._lock = threading.Lock()
        self._tables: dict[Plan | None, Table] = {}
        self._older = older._tables if older else {}
        self._weight_bytes = array_bytes(self._player)
        self.used = house.memory.now()
        self.strengths = self._find_strengths()
        self.default_strength = self._find_default()
        self.search = search_text(player)

    def table(self, simulations: int | None) -> tuple[Table, int]:
        """Returns where to think, and with how many simulations.

        Args:
            simulations: what is asked for; None leaves it to the player.

        Raises:
            ValueError: it is not allowed.
        """
        self.used = self._house.memory.now()
        if not self.strengths:
            return self._table(None), 0
        simulations = self.default_strength if simulations is None else simulations
        if simulations not in self.strengths:
            allowed = ", ".join(map(str, self.strengths))
            raise ValueError(f"simulations must be one of {allowed}: {simulations}")
        return self._table(plan_for(simulations)), simulations

    def warm_up(self) -> None:
        """Prepares for the thoughts that are most likely to be asked for, while
        visitors look at the board."""
        table, _ = self.table(None)
        if isinstance(table, SearchTable):
            table.warm_up(self._house.num_starts)

    def compile(self) -> None:
        """Compiles at once what `warm_up` leaves to another thread."""
        table, _ = self.table(None)
        if isinstance(table, SearchTable):
            table.slicer.compile(batch_sizes()[0])

    @property
    def bytes(self) -> int:
        """About what it takes: its weights and the programs of its searches, of which
        each table has one soon."""
        tables = [*self._tables.values(), *self._older.values()]
        slicers = [t.slicer for t in tables if isinstance(t, SearchTable)]
        num_programs = sum(max(1, len(slicer.sizes)) for slicer in slicers)
        return self._weight_bytes + PROGRAM_BYTES * num_programs

    @property
    def is_busy(self) -> bool:
        """Whether anybody thinks here; another program always stays."""
        is_program = isinstance(self._player, ExternalPlayer)
        return is_program or any(t.is_busy for t in list(self._tables.values()))

    def shrink(self) -> None:
        """Lets go of the tables where nobody thinks; who was just led to one of them
        is still served there."""
        if isinstance(self._player, ExternalPlayer):
            return
        self._older = {}
        for plan, table in list(self._tables.items()):
            if not table.is_busy:
                self._tables.pop(plan, None)

    def close(self) -> None:
        """Closes the tables."""
        for table in list(self._tables.values()):
            table.close()

    def _table(self, plan: Plan | None) -> Table:
        with self._lock:
            table = self._tables.get(plan)
            if table is None:
                table = self._tables[plan] = self._new_table(plan)
        self._house.make_room(self)
        return table

    def _new_table(self, plan: Plan | None) -> Table:
        if isinstance(self._player, ExternalPlayer):
            return self._house.seat_table(self._player, self._offer.game)
        older = self._older.pop(plan, None)
        if isinstance(older, SearchTable) and older.slicer.fits(self._player):
            older.slicer.take(self._player)
            return older
        return self._house.search_table(self._slicer(plan))

    def _slicer(self, plan: Plan | None) -> Slicer:
        assert not isinstance(self._player, ExternalPlayer)
        return Slicer(self._player, plan, self._offer.game.init())

    def _find_strengths(self) -> list[int]:
        if isinstance(self._player, ExternalPlayer):
            return []
        if in_slices(self._player, plan_for(1)) is None:
            return []
        limits = self._house.limits
        own = getattr(self._player, "simulations", 1)
        strengths = [
            number
            for number in sorted({*STRENGTHS, own})
            if number <= min(limits.simulations, MAX_STRENGTH)
            and self._slicer(plan_for(number)).bytes(1) <= limits.search_bytes
        ]
        if not strengths:  # only in slices is it known what a search takes
            raise ValueError("its search needs more memory than searches may take here")
        return strengths

    def _find_default(self) -> int | None:
        own = getattr(self._player, "simulations", 0)
        return max((n for n in self.strengths if n <= own), default=None)


def _load(offer: GameOffer, player: PlayerOffer, parts: Parts | None) -> AnyPlayer:
    try:
        return load_offered(player, offer.game, parts)
    except Exception as error:  # a full memory included: it must not end the server
        # Visitors need not know where runs are.
        reason = one_line(error)
        print(f"azjax: {player.name} cannot be loaded: {reason}", file=sys.stderr)
        raise ValueError(f"{player.title} cannot be loaded") from None


def _stamp(directory: Path | None) -> Stamp:
    """Returns when a run's player was written, nothing for others."""
    if directory is None:
        return ()
    times = []
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        with contextlib.suppress(OSError):
            times.append((directory / "player" / name).stat().st_mtime_ns)
    return tuple(times)

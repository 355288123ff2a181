"""Plays Go against GNU Go over GTP, and compares the rules of both.

    python experiments/verify_gtp.py
    python experiments/verify_gtp.py --games 10 --player "gtp:gnugo --mode gtp"

Plays two kinds of games, with GNU Go as black and as white in turn:

- seats: azjax runs the game, and GNU Go is the opponent, `gtp:gnugo ...`.
- match: a match program relays moves between `azjax gtp` and GNU Go. A third engine,
  another GNU Go, receives all moves.

Every move of a match must be accepted by all engines. At every position, the moves that
GNU Go considers legal must be azjax's, and the stones must be equal. After both have
passed, the passes are undone, and GNU Go plays for both sides until it has captured all
stones that it considers dead. Then the score of `azjax gtp`, which treats all stones as
alive, must equal GNU Go's `final_score`, with one known difference that is counted
separately: an eye in a seki is a point by area, as azjax counts, and a dame for GNU Go.
Exits with an error if the engines disagree.
"""

import collections
import dataclasses
import shlex
import sys
import time

import numpy as np
import tyro

from azjax import players
from azjax.games.go.game import NO_KO, Go, State
from azjax.games.host import first_state, legal_actions, next_state
from azjax.players.gtp import (
    COLORS,
    GtpProcess,
    RefusedError,
    read_vertex,
    to_vertex,
)

SECONDS = 300.0
MOST_MOVES = 2000


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    games: games of each kind.
    size: lines of the board.
    komi: points for white.
    player: azjax's player, a spec as for `azjax gtp`.
    gnu_go: command of the other engine; it must not resign.
    seed: seed of the first game.
    """

    games: int = 100
    size: int = 9
    komi: float = 7.5
    player: str = "random"
    gnu_go: str = (
        "gnugo --mode gtp --level 1 --chinese-rules --never-resign --capture-all-dead"
    )
    seed: int = 0

    @property
    def game(self) -> Go:
        """Returns Go whose games end only by passes."""
        return Go(self.size, self.komi, max_moves=MOST_MOVES)


class DisagreementError(Exception):
    """The engines disagree."""


def play_seats(settings: Settings, number: int, gnu_go: players.GtpPlayer) -> None:
    """Plays a game that azjax runs; raises if an engine forfeits."""
    game = settings.game
    both = [gnu_go, players.load(settings.player, game)]
    if number % 2:
        both.reverse()
    seats = [
        players.start_session(player, game, settings.seed + number) for player in both
    ]
    state, moves = first_state(game), []
    while not state.terminated:
        action = seats[int(state.current_player)].choose(state, moves).action
        moves.append(action)
        state = next_state(game, state, action)
    for seat in seats:
        seat.close()
    if len(moves) >= MOST_MOVES:
        raise DisagreementError(f"no end after {MOST_MOVES} moves")


def check_position(game: Go, state: State, referee: GtpProcess) -> None:
    """Compares the legal moves and the stones with GNU Go's."""
    if not state.terminated:
        color = COLORS[int(state.current_player)]
        theirs = set(referee.ask(f"all_legal {color}", SECONDS).split())
        ours = {
            to_vertex(game, state, action) for action in legal_actions(game, state)
        } - {"pass"}
        if ours != theirs:
            raise DisagreementError(f"legal: {ours - theirs} and {theirs - ours}")
    board = np.asarray(game.board(state))
    for player, color in enumerate(COLORS):
        theirs = set(referee.ask(f"list_stones {color}", SECONDS).split())
        ours = {
            f"{game.column_labels[column]}{game.row_labels[row]}".upper()
            for row, column in np.argwhere(board == player)
        }
        if ours != theirs:
            raise DisagreementError(f"stones: {ours - theirs} and {theirs - ours}")


def play_match(
    settings: Settings,
    number: int,
    azjax: GtpProcess,
    gnu_go: GtpProcess,
    referee: GtpProcess,
) -> collections.Counter:
    """Plays a game of the match and returns counts of the comparisons."""
    engines = (azjax, gnu_go, referee)
    for engine in engines:
        for command in (
            f"boardsize {settings.size}",
            f"komi {settings.komi:g}",
            "clear_board",
        ):
            engine.ask(command, SECONDS)
    gnu_go.ask(f"set_random_seed {settings.seed + number}", SECONDS)
    game, counts = settings.game, collections.Counter()
    sides = (gnu_go, azjax) if number % 2 else (azjax, gnu_go)
    states = [first_state(game)]

    def advance(mover: GtpProcess, command: str = "genmove") -> None:
        state = states[-1]
        check_position(game, state, referee)
        color = COLORS[int(state.current_player)]
        vertex = mover.ask(f"{command} {color}", SECONDS)
        for engine in engines:
            if engine is not mover:
                engine.ask(f"play {color} {vertex}", SECONDS)
        try:
            action = read_vertex(game, state, vertex)
        except ValueError as error:
            raise DisagreementError(str(error)) from error
        states.append(next_state(game, state, action))

    while not states[-1].terminated:
        advance(sides[int(states[-1].current_player)])
    counts["moves"] += len(states) - 1
    counts["scores equal before the cleanup"] += score(azjax) == score(referee)
    # Without a ko, in which a dead stone may not be captured immediately.
    while states[-1].terminated or states[-1].passed or states[-1].ko != NO_KO:
        states.pop()
        for engine in engines:
            engine.ask("undo", SECONDS)
    counts["moves of the cleanup"] -= len(states) - 1
    while not states[-1].terminated:
        advance(gnu_go, "kgs-genmove_cleanup")
    counts["moves of the cleanup"] += len(states) - 1
    state = states[-1]
    check_position(game, state, referee)
    ours, theirs = score(azjax), score(referee)
    black, white = np.asarray(game.score(state)).tolist()
    if ours == theirs == black - white:
        counts["equal scores"] += 1
    elif ours == black - white == theirs + seki_eyes(game, state, referee):
        counts["scores that differ by the eyes of a seki"] += 1
    else:
        raise DisagreementError(f"scores {ours}, {theirs} and {black - white}")
    return counts


def seki_eyes(game: Go, state: State, referee: GtpProcess) -> int:
    """Returns the dames of GNU Go that touch one color only, black's minus white's.

    Returns None without a seki.
    """
    if not referee.ask("final_status_list seki", SECONDS):
        return 0
    dames = referee.ask("final_status_list dame", SECONDS).lower().split()
    board = np.asarray(game.board(state))
    eyes = 0
    for dame in dames:
        row = list(game.row_labels).index(dame[1:])
        column = list(game.column_labels).index(dame[0])
        near = {
            int(board[r, c])
            for r, c in (
                (row - 1, column),
                (row + 1, column),
                (row, column - 1),
                (row, column + 1),
            )
            if 0 <= r < game.size and 0 <= c < game.size
        }
        eyes += (near == {0}) - (near == {1})
    return eyes


def score(engine: GtpProcess) -> float:
    """Returns black's margin by the engine's score."""
    text = engine.ask("final_score", SECONDS)
    return 0.0 if text == "0" else float(text[2:]) * (1 if text[0] == "B" else -1)


def verify_seats(settings: Settings) -> list[str]:
    """Plays the games that azjax runs and returns the errors."""
    wrong, begin = [], time.perf_counter()
    gnu_go = players.GtpPlayer(settings.gnu_go)
    for number in range(settings.games):
        try:
            play_seats(settings, number, gnu_go)
        except (DisagreementError, players.ForfeitError) as error:
            wrong.append(f"seats, game {number}: {error}")
    gnu_go.close()
    seconds = time.perf_counter() - begin
    print(f"seats: {settings.games} games, {seconds:.0f} s; disagreements {len(wrong)}")
    return wrong


def verify_match(settings: Settings) -> list[str]:
    """Plays the games of the match and returns the errors."""
    wrong, begin, counts = [], time.perf_counter(), collections.Counter()
    azjax = [sys.executable, "-m", "azjax", "gtp", f"go:{settings.size}"]
    azjax += ["--player", settings.player, "--seed", str(settings.seed)]
    gnu_go = shlex.split(settings.gnu_go)
    engines = [GtpProcess(words) for words in (azjax, gnu_go, gnu_go)]
    for number in range(settings.games):
        try:
            counts += play_match(settings, number, *engines)
        except (DisagreementError, RefusedError) as error:
            wrong.append(f"match, game {number}: {error}")
    for engine in engines:
        engine.quit()
    seconds = time.perf_counter() - begin
    print(
        f"match: {settings.games} games, "
        + ", ".join(f"{number} {what}" for what, number in counts.items())
        + f", {seconds:.0f} s; disagreements {len(wrong)}"
    )
    return wrong


def main(settings: Settings) -> int:
    """Plays all games and returns the exit status."""
    wrong = [*verify_seats(settings), *verify_match(settings)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Settings, description=__doc__)))

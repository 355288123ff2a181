"""Matches of external players, some of which fail."""

import os
import signal
import threading

import jax
import numpy as np
import pytest
from arena import engine
from players.engines import command, exists, started, wait_until

from azjax import arena, games, players
from azjax.arena import host_match
from azjax.arena.host_match import PATIENCE
from azjax.games.host import first_state, legal_actions, next_state, rewards

GAME = games.make("tic_tac_toe")
KEY = jax.random.key(0)


class Engine(engine.Engine):
    """Plays the first legal cell; may fail at its move `fails_at` of a game.

    how: returns the failing move; None for a forfeit.
    """

    def __init__(self, fails_at=None, how=None, **settings):
        super().__init__(**settings)
        self.fails_at, self.how, self.seeds = fails_at, how, []

    @property
    def num_sessions(self):
        return len(self.seeds)

    def start_session(self, game, seed):
        self.seeds.append(seed)
        self.number = 0
        return super().start_session(game, seed)

    def choose(self, state, moves):
        decision = super().choose(state, moves)
        if self.number == self.fails_at:
            if self.how is None:
                raise players.ForfeitError("the engine died")
            decision = players.MoveDecision(self.how(moves))
        self.number += 1
        return decision


RANDOM = players.RandomPlayer(GAME)


@pytest.mark.parametrize("opponent", [RANDOM, Engine()])
def test_an_engine_plays_compiled_players_and_other_engines(opponent):
    player = Engine()
    result = arena.play_match(GAME, player, opponent, KEY, 12, opening_moves=2)
    assert result.total.games == 12
    assert result.forfeits == (0, 0)
    assert player.num_sessions == player.num_closed == 12
    for ended in result.game_records(("engine", "other")):
        state = first_state(GAME)
        for action in ended.moves:
            assert action in legal_actions(GAME, state)
            assert not state.terminated
            state = next_state(GAME, state, action)
        assert state.terminated
        assert rewards(GAME, state)[0] == ended.result


def test_an_engine_gets_all_moves_and_its_values_are_recorded_for_player_0():
    # It expects to win; after some moves it does not say.
    player = Engine(value=lambda moves: 0.5 if len(moves) < 5 else None)
    result = arena.play_match(GAME, player, RANDOM, KEY, 2, opening_moves=3)
    first, second = result.game_records(("engine", "random"))
    for shown in player.shown:
        assert shown in (first.moves[: len(shown)], second.moves[: len(shown)])
    assert min(map(len, player.shown)) == 3
    # After the moves after which the engine is to move; the openings are random.
    assert first.values == (*[None] * 3, 0.5, *[None] * (len(first.moves) - 4))
    assert second.values == (*[None] * 2, -0.5, *[None] * (len(second.moves) - 3))


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        (None, "the engine died"),
        (lambda moves: moves[-1], "illegal move "),
        (lambda moves: 9, "illegal move: there is no action 9"),
        (lambda moves: -1, "illegal move: there is no action -1"),
    ],
)
@pytest.mark.parametrize("is_second", [False, True])
def test_a_failing_engine_loses_the_game_and_the_match_continues(how, fault, is_second):
    player = Engine(fails_at=1, how=how)
    sides = (RANDOM, player) if is_second else (player, RANDOM)
    result = arena.play_match(GAME, *sides, KEY, 4, opening_moves=2)
    assert result.forfeits[is_second] == 4
    assert player.num_closed == player.num_sessions
    for ended in result.game_records(("a", "b")):
        loser = ended.names[0] if ended.result < 0 else ended.names[1]
        assert loser == ("b" if is_second else "a")
        assert ended.fault.startswith(fault) or ended.fault.startswith("not played")
    assert fault in result.faults[0]


def test_an_engine_that_resigns_plays_the_next_game():
    def resign(moves):
        raise players.ResignError("resigned")

    player = Engine(fails_at=0, how=resign)
    result = arena.play_match(GAME, player, RANDOM, KEY, 10, opening_moves=2)
    assert player.num_sessions == 10
    assert result.total.losses == 10
    assert result.forfeits == (0, 0)
    assert set(result.faults) == {"resigned"}
    assert result.opening_moves == 2


def test_an_illegal_move_is_named_and_not_recorded():
    player = Engine(fails_at=0, how=lambda moves: moves[0])
    result = arena.play_match(GAME, player, RANDOM, KEY, 2, opening_moves=2)
    moves = result.moves[0].tolist()
    assert moves[:2] == result.moves[1, :2].tolist()
    assert set(moves[2:]) <= {-1}
    taken = GAME.action_to_text(GAME.init(), moves[0])
    assert result.faults[0] == f"illegal move {taken}"


def test_consecutive_forfeits_end_the_match_and_separate_ones_do_not():
    class FailingAtTimes(Engine):
        def start_session(self, game, seed):
            self.fails_at = 0 if self.num_sessions % 2 else None
            return super().start_session(game, seed)

    player = Engine(fails_at=0)
    result = arena.play_match(GAME, player, RANDOM, KEY, 10, opening_moves=2)
    assert player.num_sessions == PATIENCE
    assert result.total.losses == 10
    assert result.faults[-1].startswith("not played")
    player = FailingAtTimes()
    result = arena.play_match(GAME, player, RANDOM, KEY, 10, opening_moves=2)
    assert player.num_sessions == 10
    assert result.forfeits == (5, 0)


def test_every_game_has_different_seeds_and_the_same_key_gives_the_same_games():
    engines = Engine(), Engine()
    arena.play_match(GAME, *engines, KEY, 6, opening_moves=2)
    assert len({seed for player in engines for seed in player.seeds}) == 12
    first, again = (
        arena.play_match(GAME, Engine(), RANDOM, KEY, 6, opening_moves=2)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.moves, again.moves)


# Programs


@pytest.fixture
def cores(monkeypatch):
    """Gives the program two cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)


@pytest.fixture
def play(cores, tmp_path):
    """Plays ten games of an engine against random moves."""

    def play(behavior, at_once):
        log = tmp_path / f"{behavior}{at_once}"
        player = players.GtpPlayer(command("gtp", behavior, log))
        return log, arena.play_match(
            GAME, player, RANDOM, KEY, 10, opening_moves=2, games_at_once=at_once
        )

    return play


@pytest.mark.parametrize(
    ("behavior", "fault"), [("good", ""), ("dies", "Fake died at")]
)
def test_games_at_once_are_those_of_one_after_the_other(play, behavior, fault):
    (_, one), (log, two) = play(behavior, 1), play(behavior, 10)
    assert one.game_records(("a", "b")) == two.game_records(("a", "b"))
    assert one.faults[0].startswith(fault)
    assert one.forfeits == (10 if fault else 0, 0)
    assert len(started(log)) <= (PATIENCE + 2 if fault else 2)


def test_two_engines_play_at_once_on_two_cores(play):
    log, match = play("meets", 10)  # neither moves before the other has started
    assert match.forfeits == (0, 0)
    assert len(started(log)) == 2


def test_ctrl_c_ends_all_engines(play, tmp_path):
    log = tmp_path / "hangs10"

    def interrupt():
        wait_until(lambda: log.exists() and log.read_text().count("genmove") == 2)
        os.kill(os.getpid(), signal.SIGINT)

    # A shell starts background programs without it.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            play("hangs", 10)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert not any(map(exists, started(log)))


@pytest.mark.parametrize(
    ("options", "at_once"), [({}, 4), ({"threads": 2}, 2), ({"Threads": 9}, 1)]
)
def test_engines_share_the_cores(monkeypatch, options, at_once):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(4), raising=False)
    engines = players.UciPlayer("true", options), RANDOM
    assert host_match.possible_at_once(engines) == at_once
    assert host_match.possible_at_once((engines[0], Engine())) == 1

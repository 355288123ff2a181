"""Matches of compiled players, and of external players, some of which fail."""

import copy
import dataclasses
import functools
import os
import signal
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arena.engine import Engine
from coin_toss import CoinToss
from flax import struct
from players.engines import command, exists, started, wait_until

from azjax import arena, games, players
from azjax.arena import matches
from azjax.arena.matches import PATIENCE, concatenate
from azjax.arena.statistics import score_interval
from azjax.games import GameRecord
from azjax.games.host import (
    first_state,
    legal_actions,
    legal_moves,
    next_state,
    outcome_probabilities,
    rewards,
)
from azjax.players import RandomPlayer
from azjax.players.core import Choice

CONNECT_FOUR = games.make("connect_four")
TIC_TAC_TOE = games.make("tic_tac_toe")
KEY = jax.random.key(0)
TRACED = []


@struct.dataclass
class PreferringPlayer:
    """Plays the legal action with the highest preference."""

    preference: jax.Array  # [A]
    game: games.Game = struct.field(pytree_node=False)

    def choose(self, rng_key, states) -> Choice:
        del rng_key
        TRACED.append(self.game)
        legal = jax.vmap(self.game.legal_action_mask)(states)
        action = jnp.where(legal, self.preference, -jnp.inf).argmax(axis=-1)
        policy = jax.nn.one_hot(action, self.game.num_actions)
        return Choice(action.astype(jnp.int32), policy, jnp.zeros(action.shape))


@struct.dataclass
class IllegalPlayer:
    """Plays an action that does not exist."""

    def choose(self, rng_key, states) -> Choice:
        del rng_key
        action = jnp.full(states.terminated.shape, 7)
        return Choice(action, jnp.zeros((*action.shape, 7)), jnp.zeros(action.shape))


@struct.dataclass
class RememberingPlayer:
    """Plays random moves, or an illegal one if a position is not two moves later."""

    game: games.Game = struct.field(pytree_node=False)

    def choose(self, rng_key, states) -> Choice:
        return RandomPlayer(self.game).choose(rng_key, states)

    def init_carry(self, states):
        nothing = jnp.full(states.terminated.shape, -1)
        return {"moves": nothing, "first_moves": nothing}

    def choose_with_carry(self, rng_key, states, carry):
        choice = self.choose(rng_key, states)
        seen = jax.vmap(self.game.observe)(states)
        moves = seen.sum(axis=(1, 2, 3)).astype(jnp.int32)
        begins = carry["moves"] < 0
        # Terminated games are replaced by their opening.
        is_opening = moves == jnp.where(begins, moves, carry["first_moves"])
        is_next = moves == carry["moves"] + 2
        illegal = self.game.num_actions
        action = jnp.where(begins | is_next | is_opening, choice.action, illegal)
        first_moves = jnp.where(begins, moves, carry["first_moves"])
        carry = {"moves": moves, "first_moves": first_moves}
        return choice._replace(action=action), carry


def preferring(game, *preference):
    return PreferringPlayer(np.float32(preference), game)


PLAYERS = {
    "left": preferring(CONNECT_FOUR, *range(0, -7, -1)),
    "right": preferring(CONNECT_FOUR, *range(7)),
    "random": RandomPlayer(CONNECT_FOUR),
    "illegal": IllegalPlayer(),
    "remembering": RememberingPlayer(CONNECT_FOUR),
}


@functools.cache
def match_of(first, second, opening_moves):
    """Returns 40 games of Connect Four; reusing a key raises an error.

    Equal numbers of games save compilations.
    """
    with jax.debug_key_reuse(True):
        return arena.play_match(
            *(CONNECT_FOUR, PLAYERS[first], PLAYERS[second], jax.random.key(0), 40),
            opening_moves=opening_moves,
        )


def assert_results_of_moves(game, match):
    """Asserts that each game of a match was played to its end by the rules."""
    for ended in match.game_records(("a", "b")):
        state = first_state(game)
        for action in ended.moves:
            assert action in legal_actions(game, state)
            state = next_state(game, state, action)
        assert state.terminated
        assert rewards(game, state)[0] == ended.result


def test_the_player_that_moves_first_wins_a_race_and_repeated_games_are_counted():
    result = match_of("left", "right", 0)
    assert (result.as_first, result.as_second) == ((20, 0, 0), (0, 0, 20))
    # Without openings all pairs are the same two games.
    assert result.repeated == 38 / 40


def test_each_opening_is_played_with_both_colors():
    result = match_of("left", "right", 3)
    openings = result.moves[:, :3]
    np.testing.assert_array_equal(openings[::2], openings[1::2])
    assert len(np.unique(openings, axis=0)) == 20
    # Player 1 is to move and prefers the right column in every second game.
    is_open = ~(openings[::2] == 6).all(axis=1)
    assert (result.moves[::2, 3][is_open] == 6).all()
    assert (result.moves[1::2, 3][is_open] == 0).mean() > 0.9
    # Player 0's disc decides only if it is below its own column of three.
    assert result.as_second.wins > result.as_first.wins


def test_an_equal_player_wins_as_often_as_it_loses():
    # With equal openings and exchanged colors, the games of a pair have opposite
    # results.
    result = match_of("left", "left", 3)
    assert result.as_first == arena.WinDrawLoss(*reversed(result.as_second))
    # The openings differ.
    assert min(result.as_first.wins, result.as_first.losses) > 0


def test_an_illegal_move_is_a_loss_by_forfeit_and_not_recorded():
    result = match_of("random", "illegal", 2)
    assert result.total == arena.WinDrawLoss(40, 0, 0)
    assert result.forfeits == (0, 40)
    assert set(result.faults) == {"illegal move"}
    assert (result.moves < CONNECT_FOUR.num_actions).all()


@pytest.mark.parametrize("num_moves", [0, 3])
def test_each_half_of_the_games_has_its_own_carry(num_moves):
    """With exchanged carries all games would be lost."""
    result = match_of("remembering", "random", num_moves)
    assert 0.25 < result.total.score < 0.75
    assert min(result.as_first.wins, result.as_second.wins) > 2
    assert result.forfeits == (0, 0)


def test_every_game_is_counted_once_and_has_the_result_of_its_moves():
    result = match_of("random", "left", 2)
    assert result.as_first.games == result.as_second.games == 20
    assert result.total.games == 40
    assert_results_of_moves(CONNECT_FOUR, result)


def test_games_are_drawn_when_the_board_fills_without_a_line():
    # X plays 1 2 6 7 and the last cell, O 3 4 5 and the remaining ones:
    #   X X O
    #   O O X
    #   X . .
    first = preferring(TIC_TAC_TOE, 9, 8, 2, 3, 4, 7, 6, 1, 5)
    second = preferring(TIC_TAC_TOE, 2, 3, 9, 7, 8, 4, 1, 6, 5)
    result = arena.play_match(TIC_TAC_TOE, first, second, KEY, 8, opening_moves=0)
    assert result.as_first == arena.WinDrawLoss(0, 4, 0)


def test_openings_do_not_end_the_game():
    # After eight random moves most games of tic-tac-toe are over.
    player = RandomPlayer(TIC_TAC_TOE)
    arguments = (TIC_TAC_TOE, player, player, KEY, 40)
    result = arena.play_match(*arguments, opening_moves=8, games_at_once=8)
    # One cell is empty: player 0 marks it and wins or draws.
    assert result.as_first.losses == result.as_second.wins == 0


def test_games_in_chunks_are_the_same_openings_with_one_compilation():
    TRACED.clear()
    player = preferring(TIC_TAC_TOE, *range(9))
    other = preferring(TIC_TAC_TOE, *range(0, -9, -1))
    finished, arguments = [], (TIC_TAC_TOE, player, other, KEY, 30)
    apart = arena.play_match(*arguments, games_at_once=12, on_games=finished.append)
    assert finished == [12, 12, 6]
    # Players are compiled for neither new weights nor other opponents.
    for opponent in (RandomPlayer(TIC_TAC_TOE), IllegalPlayer(), player):
        arena.play_match(TIC_TAC_TOE, other, opponent, KEY, 12)
    assert len(TRACED) == 1
    together = arena.play_match(*arguments)
    np.testing.assert_array_equal(apart.results, together.results)
    assert apart.game_records(("a", "b")) == together.game_records(("a", "b"))


def test_an_interrupted_match_has_the_games_that_were_over():
    player, counted = RandomPlayer(TIC_TAC_TOE), []

    def on_games(number):
        counted.append(number)
        if len(counted) == 2:
            raise KeyboardInterrupt

    arguments = TIC_TAC_TOE, player, player, KEY, 24
    whole = arena.play_match(*arguments, games_at_once=8)
    with pytest.raises(arena.MatchInterrupted) as caught:
        arena.play_match(*arguments, games_at_once=8, on_games=on_games)
    match = caught.value.match
    assert match.total.games == 16
    np.testing.assert_array_equal(match.results, whole.results[:16])
    assert match.opening_moves == whole.opening_moves


@pytest.mark.parametrize(
    ("num_games", "num_moves", "message"),
    [
        *((number, 2, "num_games must be even and >= 2") for number in (0, 3, -2)),
        *((4, number, "opening_moves must") for number in (-1, 9)),
    ],
)
def test_invalid_numbers_of_games_and_opening_moves_are_refused(
    num_games, num_moves, message
):
    arguments = (*[RandomPlayer(TIC_TAC_TOE)] * 2, KEY, num_games)
    with pytest.raises(ValueError, match=message):
        arena.play_match(TIC_TAC_TOE, *arguments, opening_moves=num_moves)


# Results


def result(moves, results, faults=None, opening_moves=0):
    faults = faults or ("",) * len(results)
    results = np.array(results, np.int8)
    return arena.MatchResult(
        np.array(moves), results, faults, opening_moves, num_actions=20
    )


def test_results_have_a_score_and_can_be_added_and_reversed():
    # A draw is half a point.
    assert arena.WinDrawLoss(wins=1, draws=2, losses=1).score == 0.5
    assert np.isnan(arena.WinDrawLoss(0, 0, 0).score)
    record = arena.WinDrawLoss(1, 2, 3) + arena.WinDrawLoss(10, 20, 30)
    assert record == arena.WinDrawLoss(11, 22, 33)
    assert record.reversed == arena.WinDrawLoss(33, 22, 11)


def test_the_interval_of_a_match_counts_distinct_pairs():
    moves = np.arange(12)[:, None]
    match = result(moves, [1, 1, 0, -1, 1, 0] * 2)
    assert match.interval == score_interval([2, 0.5, 1.5] * 2, 6)
    again = result(moves % 6, [1, 1, 0, -1, 1, 0] * 2)
    assert again.interval == score_interval([2, 0.5, 1.5], 3)
    assert result(np.zeros((0, 3), int), []).interval == (0, 1)


def test_results_are_counted_by_color_and_by_opening():
    match = result([[0], [1], [2], [3]], [1, 0, -1, -1])
    assert match.as_first == arena.WinDrawLoss(1, 0, 1)
    assert match.as_second == arena.WinDrawLoss(0, 1, 1)
    assert match.total == arena.WinDrawLoss(1, 1, 2)
    assert match.pair_points.tolist() == [1.5, 0]
    assert match.by_opening == arena.WinDrawLoss(1, 0, 1)
    # An opening that both players win once is shared.
    match = result([[0]] * 8, [1, -1, -1, 1, 0, 0, 1, 0])
    assert match.by_opening == arena.WinDrawLoss(1, 3, 0)
    match = result([[0, 1], [0, 1], [0, -1], [0, 1]], [1, 1, 1, 1])
    assert match.repeated == 0.5


def test_forfeits_belong_to_the_loser_and_a_resignation_is_none():
    match = result([[0]] * 4, [1, -1, -1, 1], ("hung", "died", "", ""))
    assert match.forfeits == (1, 1)
    match = result([[0]] * 2, [-1, 1], ("resigned", "hung"))
    assert match.forfeits == (0, 1)
    flags = [ended.is_forfeit for ended in match.game_records(("me", "you"))]
    assert flags == [False, True]


def test_game_records_name_the_players_in_order_and_have_the_known_values():
    match = result([[0, 1, -1], [0, 2, 3]], [1, 1], opening_moves=1)
    first, second = match.game_records(("me", "you"))
    assert first == GameRecord(("me", "you"), [0, 1], 1, "", 1)
    assert second == GameRecord(("you", "me"), [0, 2, 3], -1, "", 1)
    values = np.array([[np.nan] * 3, [np.nan, 0.5, -1]])
    match = dataclasses.replace(match, values=values)
    first, second = match.game_records(("me", "you"))
    assert first.values == ()
    assert second.values == (None, 0.5, -1)


def test_outcomes_after_the_last_action_of_an_opening_belong_to_it():
    moves = [
        [21, 0, 20, 1, 20],
        [0, 1, 20, -1, -1],
        [20, 0, 1, 20, 2],
        [21, 0, *[-1] * 3],
    ]
    match = result(moves, [0] * 4, opening_moves=1)
    found = [ended.opening_moves for ended in match.game_records(("a", "b"))]
    assert found == [3, 1, 2, 2]


def test_matches_of_different_lengths_are_concatenated():
    short, long = result([[0], [1]], [1, 0]), result([[0, 1], [2, -1]], [0, -1])
    match = concatenate([short, long])
    assert match.moves.tolist() == [[0, -1], [1, -1], [0, 1], [2, -1]]
    assert match.results.tolist() == [1, 0, 0, -1]
    assert match.values is None
    short = dataclasses.replace(short, values=np.array([[0.5], [np.nan]]))
    long = dataclasses.replace(long, values=np.array([[1, 0], [-1, np.nan]]))
    expected = [[0.5, np.nan], [np.nan, np.nan], [1, 0], [-1, np.nan]]
    np.testing.assert_array_equal(concatenate([short, long]).values, expected)


# External players


class FailingEngine(Engine):
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


RANDOM = RandomPlayer(TIC_TAC_TOE)


@pytest.mark.parametrize("opponent", [RANDOM, FailingEngine()])
def test_an_engine_plays_compiled_players_and_other_engines(opponent):
    player = FailingEngine()
    result = arena.play_match(TIC_TAC_TOE, player, opponent, KEY, 12, opening_moves=2)
    assert result.total.games == 12
    assert result.forfeits == (0, 0)
    assert player.num_sessions == player.num_closed == 12
    assert_results_of_moves(TIC_TAC_TOE, result)


def test_an_engine_gets_all_moves_and_its_values_are_recorded_for_player_0():
    # It expects to win; after some moves it does not say.
    player = FailingEngine(value=lambda moves: 0.5 if len(moves) < 5 else None)
    result = arena.play_match(TIC_TAC_TOE, player, RANDOM, KEY, 2, opening_moves=3)
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
    player = FailingEngine(fails_at=1, how=how)
    sides = (RANDOM, player) if is_second else (player, RANDOM)
    result = arena.play_match(TIC_TAC_TOE, *sides, KEY, 4, opening_moves=2)
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

    player = FailingEngine(fails_at=0, how=resign)
    result = arena.play_match(TIC_TAC_TOE, player, RANDOM, KEY, 10, opening_moves=2)
    assert player.num_sessions == 10
    assert result.total.losses == 10
    assert result.forfeits == (0, 0)
    assert set(result.faults) == {"resigned"}
    assert result.opening_moves == 2


def test_an_illegal_move_is_named_and_not_recorded():
    player = FailingEngine(fails_at=0, how=lambda moves: moves[0])
    result = arena.play_match(TIC_TAC_TOE, player, RANDOM, KEY, 2, opening_moves=2)
    moves = result.moves[0].tolist()
    assert moves[:2] == result.moves[1, :2].tolist()
    assert set(moves[2:]) <= {-1}
    taken = TIC_TAC_TOE.action_to_text(TIC_TAC_TOE.init(), moves[0])
    assert result.faults[0] == f"illegal move {taken}"


def test_consecutive_forfeits_end_the_match_and_separate_ones_do_not():
    class FailingAtTimes(FailingEngine):
        def start_session(self, game, seed):
            self.fails_at = 0 if self.num_sessions % 2 else None
            return super().start_session(game, seed)

    player = FailingEngine(fails_at=0)
    result = arena.play_match(TIC_TAC_TOE, player, RANDOM, KEY, 10, opening_moves=2)
    assert player.num_sessions == PATIENCE
    assert result.total.losses == 10
    assert result.faults[-1].startswith("not played")
    player = FailingAtTimes()
    result = arena.play_match(TIC_TAC_TOE, player, RANDOM, KEY, 10, opening_moves=2)
    assert player.num_sessions == 10
    assert result.forfeits == (5, 0)


def test_every_game_has_different_seeds_and_the_same_key_gives_the_same_games():
    engines = FailingEngine(), FailingEngine()
    arena.play_match(TIC_TAC_TOE, *engines, KEY, 6, opening_moves=2)
    assert len({seed for player in engines for seed in player.seeds}) == 12
    first, again = (
        arena.play_match(TIC_TAC_TOE, FailingEngine(), RANDOM, KEY, 6, opening_moves=2)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.moves, again.moves)


# Games with chance

COIN_TOSS = CoinToss()


def assert_outcomes_are_drawn(found):
    """Asserts that games have the results of their moves, and that outcomes occur with
    their probabilities, to six standard deviations."""
    assert found.forfeits == (0, 0)
    counts, expected, variance = np.zeros(3), np.zeros(3), np.zeros(3)
    for ended in found.game_records(("a", "b"))[:40]:
        # The opening begins and ends with an outcome.
        assert ended.opening_moves == 2 * found.opening_moves + 1
        state = first_state(COIN_TOSS)
        for number, move in enumerate(ended.moves):
            if number >= ended.opening_moves and state.waits:
                probabilities = outcome_probabilities(COIN_TOSS, state)
                counts[move - COIN_TOSS.num_actions] += 1
                expected += probabilities
                variance += probabilities * (1 - probabilities)
            assert move in legal_moves(COIN_TOSS, state)
            state = next_state(COIN_TOSS, state, move)
        assert state.terminated
        assert rewards(COIN_TOSS, state)[0] == ended.result
    assert (np.abs(counts - expected) < 6 * np.sqrt(variance)).all()
    assert counts.min() > 0


def test_matches_draw_the_same_outcomes_in_both_games_of_a_pair():
    player = preferring(COIN_TOSS, *range(9))
    with jax.debug_key_reuse(True):
        found = arena.play_match(COIN_TOSS, player, player, KEY, 128, opening_moves=1)
    assert_outcomes_are_drawn(found)
    np.testing.assert_array_equal(found.moves[::2], found.moves[1::2])
    assert len(np.unique(found.moves, axis=0)) > 30


def test_external_players_wait_for_the_same_outcomes_in_both_games_of_a_pair():
    player = FailingEngine(value=lambda moves: 0.5)
    found = arena.play_match(
        COIN_TOSS, player, FailingEngine(), KEY, 24, opening_moves=0
    )
    assert_outcomes_are_drawn(found)
    np.testing.assert_array_equal(found.moves[::2], found.moves[1::2])
    for ended in found.game_records(("engine", "other")):
        # The engine values the positions in which it moves, after the outcomes.
        known = [
            number for number, value in enumerate(ended.values) if value is not None
        ]
        movers, state = [], first_state(COIN_TOSS)
        for move in ended.moves:
            state = next_state(COIN_TOSS, state, move)
            is_engines = ended.names[int(state.current_player)] == "engine"
            movers.append(is_engines and not state.waits and not state.terminated)
        assert known == np.flatnonzero(movers).tolist()


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
            TIC_TAC_TOE, player, RANDOM, KEY, 10, opening_moves=2, games_at_once=at_once
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
    assert matches.possible_at_once(engines) == at_once
    assert matches.possible_at_once((engines[0], FailingEngine())) == 1


def test_a_game_that_takes_longer_than_its_limit_is_an_error():
    game = copy.copy(TIC_TAC_TOE)
    game.max_moves = 5
    random = RandomPlayer(game)
    with pytest.raises(ValueError, match="max_moves of tic_tac_toe is 5, and some"):
        arena.play_match(game, random, random, KEY, 16, opening_moves=0)

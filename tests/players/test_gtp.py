import os

import jax
import pytest
from coin_toss import CoinToss
from players.engines import command, play_random, position

from azjax import games, players
from azjax.players import GtpPlayer, ResignError

TIC_TAC_TOE = games.make("tic_tac_toe")
GO = games.make("go:5,komi=0.5,max_moves=2000")


def choose(session, moves, game=TIC_TAC_TOE):
    """Returns the session's choice after these moves."""
    return session.choose(position(game, moves), moves).action


def test_gtp_strings_accept_any_command():
    player = players.load(f"gtp:{command('gtp')}?simulations=3", TIC_TAC_TOE)
    assert isinstance(player, GtpPlayer)
    assert player.arguments[-1] == f"{os.devnull}?simulations=3"
    assert isinstance(player, players.ExternalPlayer)


@pytest.mark.parametrize("behavior", ["good", "forgets", "windows"])
def test_the_engine_follows_moves_and_undone_moves(make_player, behavior):
    session = make_player("gtp", behavior).start_session(TIC_TAC_TOE, 0)
    assert choose(session, []) == 0
    assert choose(session, [0, 4]) == 1
    assert choose(session, [0]) == 1
    assert choose(session, [4, 0, 1]) == 2
    assert choose(session, []) == 0
    session.close()


def test_only_new_moves_are_sent_to_the_engine(make_player, log):
    session = make_player("gtp").start_session(TIC_TAC_TOE, 0)
    choose(session, [])
    choose(session, [0, 4])
    choose(session, [0, 5])
    expected = "clear_board/genmove b/play w B2/genmove b/undo/undo/play w C2/genmove b"
    assert log.read_text().splitlines()[3:] == expected.split("/")


@pytest.mark.parametrize(
    ("behavior", "moves", "expected"),
    [
        ("passes", [12], (10, ["genmove w", "undo", "kgs-genmove_cleanup w"])),
        # Black passed and has three stones, White two: another pass loses.
        ("passes", [12, 6, 7, 25, 8, 9, 25], (10, ["undo", "kgs-genmove_cleanup w"])),
        # Black passed on the empty board: another pass wins by komi.
        ("passes", [25], (25, ["play b pass", "genmove w"])),
        ("passes for good", [12], (25, ["genmove w", "undo"])),
        ("passes untidily", [12], (25, ["kgs-genmove_cleanup w", "play w pass"])),
    ],
)
def test_an_engine_that_passes_is_asked_to_capture_dead_stones(
    make_player, log, behavior, moves, expected
):
    session = make_player("gtp", behavior).start_session(GO, 0)
    action, received = expected
    assert choose(session, moves, GO) == action
    assert log.read_text().splitlines()[-len(received) :] == received


def test_an_engine_can_resign_in_place_of_a_pass_or_refuse_a_game(make_player):
    session = make_player("gtp", "passes or resigns").start_session(GO, 0)
    with pytest.raises(ResignError):
        choose(session, [12], GO)
    go = games.make("go:5,0.5")
    with pytest.raises(ValueError, match=r"Fake cannot play go:.*'boardsize 5' with"):
        make_player("gtp").start_session(go, 0)
    with pytest.raises(ValueError, match=r"engines cannot play coin_toss: .* chance"):
        make_player("gtp").start_session(CoinToss(), 0)


def test_gnu_go_plays_a_game_by_azjaxs_rules(gnugo):
    arguments = "--mode gtp --level 1 --chinese-rules --never-resign"
    player = players.load(f"gtp:{gnugo} {arguments}", GO)
    moves, state = play_random(player, GO)
    # GNU Go passes only at the end: the game ended by two passes.
    assert moves[-2:] == [25, 25]
    # Before, it captured dead stones, which count by azjax's rules.
    assert 25 not in moves[:-2:2]
    assert float(jax.jit(GO.score)(state)[0]) > 0

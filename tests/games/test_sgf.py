import json
import re

import jax
import numpy as np

from azjax import arena, games
from azjax.games import GameRecord
from azjax.games.game_record import to_json_lines
from azjax.games.host import first_state, next_state
from azjax.players import RandomPlayer

GO = games.make("go:5")
NAMES = ("gtp:gnugo --level 1", 'a "player" [x\\y]')


def record(moves, result=0, fault="", opening_moves=0):
    """Returns the record of a game from its moves in the notation of the game."""
    state, actions = first_state(GO), []
    for text in moves.split():
        actions.append(GO.text_to_action(state, text))
        state = next_state(GO, state, actions[-1])
    return GameRecord(NAMES, actions, result, fault, opening_moves)


def test_a_game_is_one_tree():
    # Black has only the right column and white the rest; a5 is the top left point.
    text = GO.record_format.write(GO, [record("a5 pass e1 pass pass", result=1)])
    assert text.startswith("(;FF[4]GM[1]CA[UTF-8]AP[azjax]SZ[5]KM[7.5]")
    assert 'PB[gtp:gnugo --level 1]PW[a "player" [x\\\\y\\]]' in text
    assert "RE[B+17.5]" in text
    assert text.endswith(";B[aa];W[];B[ee];W[];B[])\n")


def test_a_forfeit_is_the_result_and_a_comment():
    ended = record("a1", result=-1, fault="hung [x]")
    assert "RE[W+F]GC[hung [x\\]]" in GO.record_format.write(GO, [ended])
    (line,) = to_json_lines(GO, [ended]).splitlines()
    assert json.loads(line)["forfeit"] == "hung [x]"


def test_resignation_is_the_result_and_random_moves_a_comment():
    ended = record("a1 b1", result=-1, fault="resigned", opening_moves=1)
    text = GO.record_format.write(GO, [ended])
    assert "RE[W+R]" in text
    assert ";B[ae]C[the moves so far were made at random];W[be]" in text
    (found,) = GO.record_format.read(text)
    assert (found.moves, found.opening_moves) == (["a1", "b1"], 1)


def test_margins_are_those_of_the_final_positions():
    score = jax.jit(GO.score)
    player = RandomPlayer(GO)
    match = arena.play_match(GO, player, player, jax.random.key(0), 8)
    records = match.game_records(NAMES)
    trees = GO.record_format.write(GO, records).split("(;FF")[1:]
    for tree, written in zip(trees, records, strict=True):
        state = first_state(GO)
        for action in written.moves:
            state = next_state(GO, state, action)
        black, white = np.asarray(score(state))
        winner = "B" if black > white else "W"
        assert f"RE[{winner}+{abs(black - white):g}]" in tree
        assert len(re.findall(r";[BW]\[", tree)) == len(written.moves)

import os

import pytest
from players.engines import command, play_random

from azjax import games, players
from azjax.games.host import first_state, next_state, rewards
from azjax.players import ForfeitError, UciPlayer
from azjax.players.uci import score_value

CHESS = games.make("chess")


def position_after(texts):
    """Returns a state and the actions that lead to it."""
    state, actions = first_state(CHESS), []
    for text in texts:
        actions.append(CHESS.text_to_action(state, text))
        state = next_state(CHESS, state, actions[-1])
    return state, actions


def choose(session, texts=""):
    """Returns the session's move after some moves."""
    state, actions = position_after(texts.split())
    return CHESS.action_to_text(state, session.choose(state, actions).action)


def received(log):
    """Returns the lines that the engine received after `uci`."""
    return log.read_text().splitlines()[1:]


def test_settings_are_limits_and_options_of_the_engine():
    text = f"uci:{command('uci')}?nodes=50&Skill Level=3&depth=4&Threads=2"
    player = players.load(text, CHESS)
    assert isinstance(player, UciPlayer)
    assert player.arguments[-1] == os.devnull
    assert player.limits == {"nodes": 50, "depth": 4}
    assert player.options == {"Skill Level": "3", "Threads": "2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uci:true?nodes=0", "nodes must be a whole number from 1 to 9999999 in"),
        ("uci:true?movetime=1s", "movetime must be a whole number from 1"),
        ("uci:true?nodes=1&nodes=2", "has the setting 'nodes' twice"),
        ("uci:true?Book=a%0Aquit", r"an option must be one line of text: 'a\\nquit'"),
        ("uci:true?UCI_Elo=1500", "UCI_Elo has no effect without UCI_LimitStrength=t"),
    ],
)
def test_an_invalid_player_string_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        players.load(text, CHESS)


def test_other_games_are_refused(make_player):
    go, message = games.make("go:5"), "UCI is a protocol for chess only: go:5"
    with pytest.raises(ValueError, match=message):
        players.load("uci:true", go)
    with pytest.raises(ValueError, match=message):
        make_player("uci").start_session(go, 0)


def test_the_engine_receives_options_moves_and_limits(make_player, log):
    options = {"skill level": 3, "UCI_LimitStrength": True, "UCI_Elo": 1400}
    player = make_player("uci", "good", options | {"Style": "Very Risky"}, depth=5)
    session = player.start_session(CHESS, 0)
    assert choose(session) == "g1f3"
    assert choose(session, "g1f3 e7e5") == "f3g1"
    assert choose(session, "e2e4") == "g8f6"
    assert received(log) == [
        "setoption name Threads value 1",
        "setoption name Skill Level value 3",
        "setoption name UCI_LimitStrength value true",
        "setoption name UCI_Elo value 1400",
        "setoption name Style value Very Risky",
        "ucinewgame",
        "isready",
        "position startpos",
        "go depth 5",
        "position startpos moves g1f3 e7e5",
        "go depth 5",
        "position startpos moves e2e4",
        "go depth 5",
    ]


def test_buttons_and_threads_are_set_and_no_options_if_there_are_none(make_player, log):
    options = {"Clear Hash": "", "Threads": 2}
    choose(make_player("uci", "windows", options).start_session(CHESS, 0))
    expected = ["name Threads value 2", "name Clear Hash"]
    assert received(log)[:2] == [f"setoption {text}" for text in expected]
    log.unlink()
    choose(make_player("uci", "plain").start_session(CHESS, 0))
    assert received(log)[0] == "ucinewgame"
    assert received(log)[-1] == "go nodes 10000"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node": 9}, "Fake has no option 'node'; its options are .*; did you mean no"),
        ({"SkillLevel": 9}, "no option 'SkillLevel'; .*did you mean Skill L"),
        ({"Skill Level": 21}, "Fake: Skill Level must be an int from 0 to 20: '21'"),
        ({"Skill Level": "x"}, "Fake: Skill Level must be an int from 0 to 20: 'x'"),
        ({"UCI_LimitStrength": 1}, "Fake: UCI_Lim.* must be true or false: '1'"),
        ({"Style": "Risky"}, "Fake: Style must be Solid or Very Risky: 'Risky'"),
        ({"Clear Hash": "now"}, "Fake: Clear Hash must be empty: 'now'"),
        ({"Broken": "x"}, "Fake has no option 'Broken'"),
    ],
)
def test_an_option_that_the_engine_lacks_is_refused(make_player, options, message):
    with pytest.raises(ValueError, match=message):
        make_player("uci", options=options).start_session(CHESS, 0)


@pytest.mark.parametrize(
    ("moves", "answer"),
    [
        ("g1f3 a7a6 e2e3 a6a5 f1e2 a5a4", "e1g1"),
        ("e2e4 a7a6 e4e5 d7d5", "e5d6"),
        ("a2a4 b7b5 a4b5 a7a6 b5a6 c8b7 a6b7 b8c6", "b7b8n"),
        ("a2a4 b7b5 a4b5 a7a6 b5a6 c8b7 a6b7 b8c6", "b7a8q"),
    ],
)
def test_special_moves_are_sent_and_received(make_player, log, moves, answer):
    session = make_player("uci", f"plays {answer}").start_session(CHESS, 0)
    assert choose(session, moves) == answer
    state, _ = position_after([*moves.split(), answer])
    reply = CHESS.action_to_text(state, int(CHESS.legal_action_mask(state).argmax()))
    with pytest.raises(ForfeitError, match="not a legal move"):
        choose(session, f"{moves} {answer} {reply}")
    assert f"position startpos moves {moves} {answer} {reply}" in received(log)


def test_stockfish_plays_the_same_game_twice(stockfish):
    results = []
    for _ in range(2):
        player = UciPlayer(stockfish, nodes=200)
        sessions = [player.start_session(CHESS, 0) for _ in range(2)]
        state, moves = first_state(CHESS), []
        while not state.terminated and len(moves) < 30:
            action = sessions[int(state.current_player)].choose(state, moves).action
            state = next_state(CHESS, state, action)
            moves.append(action)
        results.append(moves)
        for session in sessions:
            session.close()
        player.close()
    assert results[0] == results[1]


def test_stockfish_mates_a_random_player(stockfish):
    player = players.load(f"uci:{stockfish}?depth=6", CHESS)
    _, state = play_random(player, CHESS)
    assert rewards(CHESS, state) == (1, -1)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("info depth 9 score cp 191 nodes 5 pv e2e4", 0.5),
        ("info depth 9 score cp -191 upperbound nodes 5", 0.25),
        ("info depth 9 score mate 2 lowerbound nodes 5", 0.25),
        ("info depth 9 score cp -191 nodes 5", -0.5),
        ("info depth 9 multipv 1 score cp 0", 0.0),
        ("info score mate 3 pv e2e4", 1.0),
        ("info score mate -1", -1.0),
        ("info score mate 0", -1.0),
        ("info depth 9 multipv 2 score cp 191", 0.25),
        ("info depth 9 multipv 10 score cp 191", 0.25),
        ("info string score cp x", 0.25),
        ("info score cp 99999999999999999999", 0.25),
        ("bestmove e2e4", 0.25),
    ],
)
def test_a_line_of_an_engine_has_an_expected_result(line, value):
    assert score_value(line, 0.25) == pytest.approx(value, abs=2e-3)

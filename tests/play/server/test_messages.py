import json

import pytest

from azjax.play.server.messages import (
    AskDecision,
    AskMove,
    AskMoves,
    AskPosition,
    MessageError,
    Start,
    Stop,
    parse,
)


def message(method, **params):
    return json.dumps({"id": 7, "method": method, "params": params})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (message("start", game="go:9", player="random"), Start(7, "go:9", "random")),
        (message("position", actions=[]), AskPosition(7, ())),
        (message("position", actions=[3, 0]), AskPosition(7, (3, 0))),
        (message("replay", actions=[3, 0]), AskMoves(7, (3, 0))),
        (message("read", actions=[3], text="e4"), AskMove(7, (3,), "e4")),
        (
            message("think", actions=[1], simulations=50),
            AskDecision(7, (1,), 50),
        ),
        (
            message("think", actions=[], simulations=None),
            AskDecision(7, (), None),
        ),
        (
            message("think", actions=[], simulations=1, tree=True),
            AskDecision(7, (), 1, tree=True),
        ),
        (message("stop"), Stop(7)),
    ],
)
def test_what_the_page_says_is_understood(text, expected):
    assert parse(text, max_actions=42) == expected
    assert parse(text.encode(), max_actions=42) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "a message is a JSON object"),
        ("{", "a message is a JSON object"),
        ("[1]", "a message is a JSON object"),
        ("[" * 10_000, "a message is a JSON object"),
        ("1" * 10_000, "a message is a JSON object"),
        (b"\xff\xfe\x00", "a message is a JSON object"),
        ("{}", "id must be a whole number >= 0: 'None'"),
        ('{"id": true, "method": "stop", "params": {}}', "id must be"),
        ('{"id": -1, "method": "stop", "params": {}}', "id must be"),
        ('{"id": 1.5, "method": "stop", "params": {}}', "id must be"),
        ('{"id": 1e999, "method": "stop", "params": {}}', "id must be"),
    ],
)
def test_what_has_no_number_is_answered_without_one(text, error):
    with pytest.raises(MessageError, match=error) as raised:
        parse(text, max_actions=42)
    assert raised.value.id is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (message("__init__"), "unknown method '__init__'; known: start, position,"),
        ('{"id": 7, "method": ["stop"], "params": {}}', "unknown method"),
        ('{"id": 7, "method": "stop"}', "params must be an object: 'None'"),
        (message("start", game="go"), "player must be a text: 'None'"),
        (message("start", game=1, player="random"), "game must be a text: '1'"),
        (message("position"), "actions must be a list: 'None'"),
        (message("read", actions=[]), "text must be a text: 'None'"),
        (message("read", actions=[], text="e" * 61), "at most 60 letters"),
        (message("position", actions="0"), "actions must be a list: '0'"),
        (
            message("position", actions=[0] * 43),
            "no game is longer than 42 actions",
        ),
        (message("position", actions=[-1]), "an action is a whole number >= 0: '-1'"),
        (message("position", actions=[True]), "an action is a whole number"),
        (message("position", actions=[0.0]), "an action is a whole number"),
        (message("position", actions=[[0]]), "an action is a whole number"),
        (message("position", actions=[10**30]), "an action is a whole number"),
        (
            message("think", actions=[], simulations="50"),
            "simulations must be a whole number: '50'",
        ),
        (
            message("think", actions=[], simulations=50, tree=1),
            "tree must be true or false: '1'",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line_under_its_number(text, error):
    with pytest.raises(MessageError, match=error) as raised:
        parse(text, max_actions=42)
    assert raised.value.id == 7
    assert "\n" not in str(raised.value)


def test_what_is_sent_back_is_short_and_without_control_characters():
    with pytest.raises(MessageError) as raised:
        parse(message("\n\x1b[31m" + "x" * 10_000), max_actions=42)
    assert len(str(raised.value)) < 200
    assert str(raised.value).isprintable()

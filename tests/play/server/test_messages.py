import dataclasses
import json

import pytest

from azjax.play.server import ServerLimits
from azjax.play.server.messages import (
    DecisionRequest,
    MessageError,
    ParseRequest,
    PositionRequest,
    ReadRequest,
    ReplayRequest,
    ReviewRequest,
    StartRequest,
    StopRequest,
    parse,
)


def message(method, **params):
    return json.dumps({"id": 7, "method": method, "params": params})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            message("start", game="go:9", player="random"),
            StartRequest(7, "go:9", "random"),
        ),
        (message("position", actions=[]), PositionRequest(7, ())),
        (message("position", actions=[3, 0]), PositionRequest(7, (3, 0))),
        (message("replay", actions=[3, 0]), ReplayRequest(7, (3, 0))),
        (message("parse", actions=[3], text="e4"), ParseRequest(7, (3,), "e4")),
        (
            message("decide", actions=[1], simulations=50),
            DecisionRequest(7, (1,), 50),
        ),
        (
            message("decide", actions=[], simulations=None),
            DecisionRequest(7, (), None),
        ),
        (
            message("decide", actions=[], simulations=1, tree=True),
            DecisionRequest(7, (), 1, tree=True),
        ),
        (message("read", text="a1\n<b>"), ReadRequest(7, "a1\n<b>")),
        (
            message("review", actions=[1], player="greedy"),
            ReviewRequest(7, (1,), "greedy"),
        ),
        (message("stop"), StopRequest(7)),
    ],
)
def test_well_formed_messages_are_parsed(text, expected):
    assert parse(text, max_actions=42) == expected
    assert parse(text.encode(), max_actions=42) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "a message must be a JSON object"),
        ("{", "a message must be a JSON object"),
        ("[1]", "a message must be a JSON object"),
        ("[" * 10_000, "a message must be a JSON object"),
        ("1" * 10_000, "a message must be a JSON object"),
        (b"\xff\xfe\x00", "a message must be a JSON object"),
        ("{}", "id must be an integer >= 0: 'None'"),
        ('{"id": true, "method": "stop", "params": {}}', "id must be"),
        ('{"id": -1, "method": "stop", "params": {}}', "id must be"),
        ('{"id": 1.5, "method": "stop", "params": {}}', "id must be"),
        ('{"id": 1e999, "method": "stop", "params": {}}', "id must be"),
    ],
)
def test_an_error_without_a_valid_id_has_none(text, error):
    with pytest.raises(MessageError, match=error) as raised:
        parse(text, max_actions=42)
    assert raised.value.id is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (message("__init__"), "unknown method '__init__'; known: start, position,"),
        ('{"id": 7, "method": ["stop"], "params": {}}', "unknown method"),
        ('{"id": 7, "method": "stop"}', "params must be an object: 'None'"),
        (message("start", game="go"), "player must be a string: 'None'"),
        (message("start", game=1, player="random"), "game must be a string: '1'"),
        (message("position"), "actions must be a list: 'None'"),
        (message("parse", actions=[]), "text must be a string: 'None'"),
        (message("parse", actions=[], text="e" * 61), "at most 60 characters"),
        (
            message("start", game="chess", player="random", setup=" " * 121),
            "setup must have at most 120 characters",
        ),
        (message("read"), "text must be a string: 'None'"),
        (message("read", text="e" * 60_001), "text must have at most 60000 char"),
        (message("review", actions=[]), "player must be a string: 'None'"),
        (message("review", actions=[0] * 43, player="x"), "at most 42 entries: 43"),
        (message("position", actions="0"), "actions must be a list: '0'"),
        (
            message("position", actions=[0] * 43),
            "actions must have at most 42 entries: 43",
        ),
        (message("position", actions=[-1]), "an action must be an integer >= 0: '-1'"),
        (message("position", actions=[True]), "an action must be an integer"),
        (message("position", actions=[0.0]), "an action must be an integer"),
        (message("position", actions=[[0]]), "an action must be an integer"),
        (message("position", actions=[10**30]), "an action must be an integer"),
        (
            message("decide", actions=[], simulations="50"),
            "simulations must be an integer: '50'",
        ),
        (
            message("decide", actions=[], simulations=50, tree=1),
            "tree must be true or false: '1'",
        ),
    ],
)
def test_an_error_is_one_line_with_the_id_of_the_message(text, error):
    with pytest.raises(MessageError, match=error) as raised:
        parse(text, max_actions=42)
    assert raised.value.id == 7
    assert "\n" not in str(raised.value)


def test_an_error_quotes_the_message_shortened_and_escaped():
    with pytest.raises(MessageError) as raised:
        parse(message("\n\x1b[31m" + "x" * 10_000), max_actions=42)
    assert len(str(raised.value)) < 200
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    "name", [field.name for field in dataclasses.fields(ServerLimits)]
)
def test_limits_must_be_positive(name):
    with pytest.raises(ValueError, match=f"^{name} must be a finite number > 0: 0$"):
        ServerLimits(**{name: 0})

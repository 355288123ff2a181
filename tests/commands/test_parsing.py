import dataclasses
import re
from typing import Annotated

import pytest
import tyro

from azjax.commands.parsing import bind, options, parse
from azjax.commands.train import parse_train_config
from azjax.networks import ConvTrunkConfig, NetworkConfig
from azjax.settings import Within
from azjax.training import TrainConfig


@dataclasses.dataclass(frozen=True)
class Part:
    is_fast: bool = False
    is_exact: bool = True
    size: int = 3


@dataclasses.dataclass(frozen=True)
class Settings:
    part: Part = Part()
    loud: bool = False


def command(
    name: tyro.conf.Positional[str],
    /,
    *,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
    words: tuple[str, ...] = (),
    at_once: Annotated[int, Within(ge=1)] = 1,
) -> None:
    SEEN.append((name, as_json, words))


SEEN = []


@pytest.mark.parametrize(
    ("args", "changes"),
    [
        ("--part.is-fast", {"is_fast": True}),
        ("--part.is-fast true", {"is_fast": True}),
        ("--part.is_fast True", {"is_fast": True}),
        ("--part.is-fast=true", {"is_fast": True}),
        ("--part.is-fast false", {}),
        ("--part.is-exact False --part.size 4", {"is_exact": False, "size": 4}),
        ("--part.is-exact=FALSE", {"is_exact": False}),
        ("--part.no-is-exact", {"is_exact": False}),
    ],
)
def test_a_boolean_option_accepts_true_false_or_no_value(args, changes):
    found = parse(Settings, args.split(), prog="test")
    assert found == Settings(part=dataclasses.replace(Part(), **changes))


def test_every_boolean_setting_of_a_run_takes_a_value():
    network = NetworkConfig(ConvTrunkConfig())
    default = TrainConfig(iterations=1, network=network)
    names = [name for name, kind in options(TrainConfig, default) if kind is bool]
    assert {"search.use-solver", "network.trunk.global-pooling"} <= set(names)
    for name in names:
        for value in ("true", "false"):
            args = [f"--{name}", value]
            found = parse(TrainConfig, args, prog="test", default=default)
            for part in name.replace("-", "_").split("."):
                found = getattr(found, part)
            assert found is (value == "true")


def test_a_command_is_called_with_the_parsed_arguments():
    call = bind(command, ["x", "--json", "true", "--words", "true", "y"], prog="test")
    assert SEEN == []
    call()
    assert SEEN == [("x", True, ("true", "y"))]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("--loud=maybe", "--loud must be true or false: 'maybe'"),
        ("--lod", "unknown option --lod; see test --help; did you mean --loud?"),
        ("--part.size x", "; write --part.size INT; see test --help"),
        ("--part.size", "Missing value for argument '--part.size'"),
        ("x", "Unrecognized options: x; see test --help"),
    ],
)
def test_invalid_arguments_raise_one_line(args, says, capsys):
    with pytest.raises(ValueError, match=re.escape(says)) as error:
        parse(Settings, args.split(), prog="test")
    assert "\n" not in str(error.value)
    assert capsys.readouterr().err == ""


def test_a_missing_argument_is_named():
    with pytest.raises(ValueError, match="missing: NAME; see test --help"):
        bind(command, [], prog="test")


def test_an_argument_of_a_command_is_within_its_limits():
    call = bind(command, ["x", "--at-once", "0"], prog="test")
    with pytest.raises(ValueError, match="--at-once must be an int >= 1: 0"):
        call()


def test_help_exits_with_status_0(capsys):
    with pytest.raises(SystemExit) as end:
        parse(Settings, ["--help"], prog="test")
    assert end.value.code in (0, None)
    assert "--part.size" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            ["--self-play.num-games", "8", "--minutes", "abc"],
            "--minutes: no type matching",
        ),
        (["--search.use-solver", "--preset", "gpu"], "'gpu' for argument '--preset'"),
        (
            ["--search.use-solver", "maybe"],
            "--search.use-solver must be true or false: 'maybe'",
        ),
        (["--self-play.num-games", "abc"], "--self-play.num-games: invalid literal"),
    ],
)
def test_only_the_invalid_option_is_named(args, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_train_config("tic_tac_toe", args, prog="azjax train tic_tac_toe")

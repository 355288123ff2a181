import contextlib
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from commands.refusal import assert_refused

from azjax.cli import main
from azjax.play.server.running import listen


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["draughts"], "unknown game 'draughts'; known games:"),
        (["go:size=99"], "size"),
        (["go", "--player", "go"], "--player must be GAME=PLAYER"),
        (["go", "--player", "hex=random"], "--player must be GAME=PLAYER"),
        (["go", "--player", "go=nobody"], "unknown player 'nobody'"),
        (["go", "--player", "go=human"], "--player must not be 'human'"),
        (["go", "--player", "go=me=human"], "--player must not be 'human'"),
        (["go", "--player", "go=network:nowhere"], "no player in nowhere"),
        (
            ["go", "--player", "go=gtp:no-such-program"],
            "there is no program 'no-such",
        ),
        (["go", "--port", "65536"], "--port must be an int from 0 to 65535: 65536"),
        (["go", "--host", "no.such.host.invalid"], "cannot listen at --host no.such"),
        (["go", "--token", "secret"], "--token must have 16 letters or more: 6"),
        (["go", "--memory", "0"], "--memory must be from 0.1 to 1e+06 GiB: 0"),
        (["go", "--memory", "nan"], "--memory must be from 0.1 to 1e+06 GiB: nan"),
        (
            ["go", "--simulations-limit", "0"],
            "limit must be an int >= 1: 0",
        ),
    ],
)
def test_a_mistake_is_one_line(arguments, error, capsys, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
    assert_refused(capsys, error, "serve", *arguments)


def test_a_terminal_shows_that_the_games_are_loading(capsys, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(SystemExit):
        main(["serve", "draughts"])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Loading the games."
    assert lines[1].startswith("azjax: unknown game 'draughts'")


def test_a_port_in_use_is_one_line(capsys, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        message = (
            f"cannot listen at --host 127.0.0.1 --port {port}: Address already in use"
        )
        assert_refused(capsys, message, "serve", "go", "--port", port)


def test_without_the_extra_the_error_names_it(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "azjax.play.server.app", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    assert_refused(capsys, ": pip install 'azjax[web]'", "serve")


@pytest.mark.parametrize(
    ("number", "status", "options"),
    [
        (signal.SIGINT, 130, ["--no-warm-up"]),
        pytest.param(signal.SIGTERM, 143, [], marks=pytest.mark.slow),
    ],
)
def test_other_machines_know_the_host_and_the_server_runs_until_it_is_interrupted(
    number, status, options
):
    command = [sys.executable, "-m", "azjax", "serve", "tic_tac_toe", "--port", "0"]
    command += ["--host", "0.0.0.0", "--token", "0123456789abcdef"]
    with subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        url, _, token = server.stdout.readline().strip().partition("?token=")
        assert token == "0123456789abcdef"
        request = urllib.request.Request(url, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        assert refused.value.code == 421
        refused.value.close()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(f"{url}?token={token}") as answer:
            assert b"<html" in answer.read()
        with opener.open(f"{url}lobby.json") as answer:
            assert b'"tic_tac_toe"' in answer.read()
        server.send_signal(number)
        with contextlib.suppress(OSError):  # until it accepts none
            while True:
                opener.open(f"{url}lobby.json").close()
        server.send_signal(number)  # the second signal of an impatient user
        _, errors = server.communicate(timeout=30)
    assert server.returncode == status
    assert errors == ""


def test_help_has_the_memory_of_players(capsys):
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    told = capsys.readouterr().out
    assert "--memory" in told
    assert "(default: 2.0)" in told

import contextlib
import socket
import threading

import pytest

from azjax.training import peers as module


class Ends(threading.Event):
    """What a watch reports."""

    def __call__(self, how, name):
        self.reason = f"{how} {name}"
        self.set()


def watched(peers, *, left=False):
    """Watches in a thread; returns what it reports, and an event to leave."""
    ends, has_left = Ends(), threading.Event()
    if left:
        has_left.set()
    thread = threading.Thread(target=module._watch, args=(peers, has_left, ends))
    thread.start()
    return ends, thread


@pytest.fixture
def pairs():
    """Connections of a process to two others, and their ends of them."""
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(2)]
        for pair in pairs:
            for end in pair:
                stack.enter_context(end)
        yield pairs


def peers_of(pairs):
    return {
        number: module._Peer(mine, f"process {number} on host{number}")
        for number, (mine, _) in enumerate(pairs, 1)
    }


def test_a_process_that_has_ended_is_named_here_and_to_the_others(pairs):
    ends, thread = watched(peers_of(pairs))
    pairs[1][1].close()
    assert ends.wait(60)
    thread.join()
    assert ends.reason == "ended process 2 on host2"
    assert module._read_line(pairs[0][1]) == ends.reason


def test_what_the_first_process_says_is_reported(pairs):
    ends, thread = watched(peers_of(pairs[:1]))
    module._send(pairs[0][1], "ended process 3 on host3")
    assert ends.wait(60)
    thread.join()
    assert ends.reason == "ended process 3 on host3"


def test_processes_that_leave_are_not_reported(pairs):
    ends, thread = watched(peers_of(pairs))
    for _, other in pairs:
        module._send(other, module._LEFT)
        other.close()
    thread.join()
    assert not ends.is_set()


@pytest.mark.parametrize("left", [True, False])
def test_an_error_is_reported_unless_this_process_ends_as_well(
    pairs, left, monkeypatch
):
    monkeypatch.setattr(module, "GRACE", 0.1)
    ends, thread = watched(peers_of(pairs), left=left)
    module._send(pairs[0][1], module._FAILED)
    thread.join()
    assert ends.is_set() is not left


def test_a_process_without_the_token_is_refused():
    peers, have_tried = {}, threading.Event()
    with module._server() as server:
        thread = threading.Thread(
            target=module._accept, args=(server, "token", peers, have_tried)
        )
        thread.start()
        where = ["127.0.0.1"], server.getsockname()[1]
        assert module._reach(*where, b"wrong 1 process 1\n") is None
        assert module._reach(*where, b"nonsense\n") is None
        connection = module._reach(*where, b"token 1 process 1 on here\n")
        have_tried.set()
        thread.join()
    assert connection is not None
    assert [(number, peer.name) for number, peer in peers.items()] == [
        (1, "process 1 on here")
    ]
    connection.close()
    peers[1].connection.close()


def test_one_process_watches_nobody():
    with pytest.raises(RuntimeError, match="as it is"), module.ends_with_the_others():
        raise RuntimeError("as it is")

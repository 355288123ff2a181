"""Limits of client requests."""

import dataclasses
from typing import Annotated

from azjax.settings import Within, check


@dataclasses.dataclass(frozen=True)
class ServerLimits:
    """Limits of client requests; azjax's own page stays below them.

    Attributes:
        connections: maximum number of open WebSockets; a new one beyond it closes the
            one with the longest silence, those without a game first.
        request_seconds: time limit of an HTTP request, from connecting or the previous
            response until the client has received its response.
        start_seconds: time limit from connecting to the start of a game.
        idle_seconds: silence after which a connection is closed; pages reconnect.
        send_seconds: time limit for the client to receive a message.
        message_bytes: maximum size of one message, such as the text of a game.
        messages_per_second: maximum rate of one client; further messages are read
            later, further WebSocket frames without a message close the connection.
        message_burst: maximum number of messages, or of such frames, that arrive
            together.
        bad_messages: number of malformed messages after which a connection is closed.
        simulations: maximum simulations of one search.
        decision_seconds: time limit of one search, which then returns its best move so
            far.
        decisions: maximum number of decisions requested at the same time, by all
            clients.
        reviews: maximum number of reviews at the same time, by all clients; each has
            one decision at a time, which counts as any other.
        progress_seconds: interval between two progress reports of a search.
        search_bytes: maximum size of all search trees.
        memory_bytes: maximum size of loaded players, their compiled searches, rules,
            positions, previews and compared runs; the least recently used are evicted.
            A requested player is loaded even if it alone exceeds the limit.
        positions: maximum number of cached positions of each game.
        position_bytes: maximum size of the cached positions of a game.
    """

    connections: int = 1000
    request_seconds: float = 300.0
    start_seconds: float = 60.0
    idle_seconds: float = 3600.0
    send_seconds: float = 20.0
    message_bytes: int = 65_536
    messages_per_second: float = 20.0
    message_burst: int = 100
    bad_messages: int = 20
    simulations: int = 1600
    decision_seconds: float = 60.0
    decisions: int = 1000
    reviews: int = 16
    progress_seconds: float = 0.1
    search_bytes: int = 2**31
    memory_bytes: int = 2**31
    positions: int = 20_000
    position_bytes: int = 2**26

    def __post_init__(self) -> None:
        """Checks that all limits are positive numbers."""
        for field in dataclasses.fields(self):
            check(field.name, getattr(self, field.name), Annotated[float, Within(gt=0)])

"""What visitors may ask of a server."""

import dataclasses

from azjax.checks import check_number


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much of everything there is for visitors; none of it is felt by a page.

    visitors: WebSockets; one more closes the one that has been silent longest, those
        that never began first.
    begin_seconds: within which a visitor must begin.
    idle_seconds: after which a silent visitor is dropped; pages connect again.
    send_seconds: within which a visitor must have taken what is sent.
    message_bytes: of one message.
    messages_per_second: of one visitor; more are read later.
    message_burst: messages that may come at once.
    bad_messages: that cannot be understood, after which a visitor is dropped.
    simulations: of one thought.
    thought_seconds: after which a search answers with what it has, once it has begun.
    thoughts: that may be asked for at a time.
    progress_seconds: between two looks into a thought.
    search_bytes: of all search trees.
    memory_bytes: of loaded players, their compiled searches, and the rules and
        positions of games; what was not used for longest goes first. The player that
        is asked for is loaded even if it alone takes more.
    positions: of each game that are kept, lest they be replayed.
    position_bytes: of these positions of a game.
    """

    visitors: int = 1000
    begin_seconds: float = 60.0
    idle_seconds: float = 3600.0
    send_seconds: float = 20.0
    message_bytes: int = 16_384
    messages_per_second: float = 20.0
    message_burst: int = 100
    bad_messages: int = 20
    simulations: int = 1600
    thought_seconds: float = 60.0
    decisions: int = 1000
    progress_seconds: float = 0.1
    search_bytes: int = 2**31
    memory_bytes: int = 2**31
    positions: int = 20_000
    position_bytes: int = 2**26

    def __post_init__(self) -> None:
        """Checks the values."""
        for field in dataclasses.fields(self):
            check_number(field.name, getattr(self, field.name), above=0)

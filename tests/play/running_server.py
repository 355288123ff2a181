"""The server of `azjax serve` in a thread of the tests."""

import threading

from azjax.play.server import PlayerRegistry, ServerLimits, make_catalog
from azjax.play.server.app import make_app
from azjax.play.server.running import listen, make_server

PATIENCE = 30.0  # seconds


class RunningServer:
    """Serves games on a port of this machine; a server can be stopped and restarted.

    Args:
        games: names of games.
        runs: directory with runs.
        players: further players, as those of `azjax serve --player`.
        limits: limits of client requests.
    """

    def __init__(self, games, runs, players=(), limits=None):
        self.arguments = games, players, runs
        self.limits, self.port = limits or ServerLimits(), 0

    def start(self):
        registry = PlayerRegistry(make_catalog(*self.arguments), self.limits)
        app = make_app(registry, names=["127.0.0.1"])
        listener = listen("127.0.0.1", self.port)
        self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.server = make_server(app, self.limits)
        self.thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [listener]}
        )
        self.thread.start()

    def stop(self):
        """Closes all connections."""
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

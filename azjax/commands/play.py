"""`azjax play`: a person against a player."""

import tyro

from azjax import games
from azjax.commands.common import check_seed
from azjax.compilation_cache import enable_compilation_cache
from azjax.play.terminal import play
from azjax.players import load_compiled


def play_command(
    game: tyro.conf.Positional[str],
    /,
    opponent: str = "alphazero:pretrained",
    second: bool = False,
    seed: int = 0,
) -> None:
    """Play a game in the terminal.

    Args:
        game: one of those that `azjax games` lists.
        opponent: random, network:RUN or alphazero:RUN?simulations=N, where RUN is a
            run's directory or `pretrained`. After the ? may stand, joined by &,
            kept_nodes=N, proves=true, leaves_per_step=N and algorithm=NAME as well.
        second: let the opponent begin.
        seed: of the opponent's chance.
    """
    check_seed(seed)
    enable_compilation_cache()
    board_game = games.make(game)
    play(
        board_game,
        load_compiled(opponent, board_game),
        user_player=int(second),
        seed=seed,
    )

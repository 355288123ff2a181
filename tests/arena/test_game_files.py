import numpy as np

from azjax import arena, games
from azjax.arena.game_files import append_games, games_file

NAMES = ("gtp:gnugo --level 1", 'a "player" [x\\y]')


def test_matches_are_appended_to_the_file(tmp_path):
    game = games.make("tic_tac_toe")
    # A win, and a game that ended by a forfeit.
    moves = np.array([[0, 3, 1, 4, 2], [0, 3, 1, -1, -1]])
    match = arena.MatchResult(moves, np.array([1, -1]), ("", "hung"), 2)
    for _ in range(2):
        append_games(tmp_path, game, NAMES, match)
    found = list(games.read_games(games_file(tmp_path, game)))
    assert len(found) == 4
    assert games_file(tmp_path, games.make("go:5")).name == "games.sgf"
    assert games_file(tmp_path, games.make("chess")).name == "games.pgn"

import jax

from azjax import arena, games
from azjax.arena.game_files import append_games, games_file
from azjax.players import RandomPlayer

NAMES = ("gtp:gnugo --level 1", 'a "player" [x\\y]')


def test_matches_are_appended_to_the_file(tmp_path):
    game = games.make("tic_tac_toe")
    player = RandomPlayer(game)
    key = jax.random.key(0)
    match = arena.play_match(game, player, player, key, 4, opening_moves=2)
    for _ in range(2):
        append_games(tmp_path, game, NAMES, match)
    assert len(list(games.read_games(games_file(tmp_path, game)))) == 8
    assert games_file(tmp_path, games.make("go:5")).name == "games.sgf"
    assert games_file(tmp_path, games.make("chess")).name == "games.pgn"

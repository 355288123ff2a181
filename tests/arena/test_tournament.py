from azjax import games

GAME = games.make("tic_tac_toe")

"""Bridges to other libraries of games, which are optional: each module needs its own.

`pgx`: games of azjax as pgx's environments, and pgx's games as games of azjax.
`pettingzoo`: games of azjax as PettingZoo's environments.
"""

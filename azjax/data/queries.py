"""Ready queries over the games of a run, and the views that they and users read."""

from typing import NamedTuple

# `rows` are the rows of the files, `ends` the last rows of the ended games. `notation`
# returns the text of an action. `+ 0` turns the -0 of a draw into 0.
VIEWS = {
    "positions": """
        SELECT rows.* REPLACE (notation(rows.state, rows.move) AS move),
            rows.move AS action,
            CAST(ends.reward * (CASE WHEN rows.player = ends.player THEN 1 ELSE -1 END)
                + 0 AS FLOAT) AS result
        FROM rows LEFT JOIN ends USING (game)
    """,
    "games": """
        SELECT any_value(run) AS run, any_value(seed) AS seed, game,
            min(iteration) AS first_iteration, max(iteration) AS last_iteration,
            count(*) AS num_moves, min(ply) = 0 AS has_beginning,
            bool_or(terminated) AS ended,
            max(CASE WHEN terminated THEN reward * (1 - 2 * player) END) + 0
                AS first_player_result
        FROM rows GROUP BY game
    """,
    "openings": """
        SELECT rows.run, rows.seed, rows.game, rows.iteration, rows.state,
            rows.state = (SELECT state FROM initial) AS is_initial_position,
            rows.player, notation(rows.state, rows.move) AS move, rows.value,
            rows.simulations, rows.move AS action,
            CAST(ends.reward * (CASE WHEN rows.player = ends.player THEN 1 ELSE -1 END)
                + 0 AS FLOAT) AS result
        FROM rows LEFT JOIN ends USING (game) WHERE rows.ply = 0
    """,
}


class Query(NamedTuple):
    """A ready query.

    purpose: one line.
    sql: reads the views.
    """

    purpose: str
    sql: str


QUERIES = {
    "openings": Query(
        "First moves from the initial position, in tenths of the iterations.",
        """
        WITH first AS (
            SELECT *, (iteration - 1) * 10 // (SELECT max(iteration) FROM openings)
                AS tenth
            FROM openings WHERE is_initial_position
        )
        SELECT min(iteration) AS first_iteration, max(iteration) AS last_iteration,
            move, count(*) AS games,
            count(*) / sum(count(*)) OVER (PARTITION BY tenth) AS share,
            avg(value) AS mean_value, avg(result) AS mean_result
        FROM first GROUP BY tenth, move ORDER BY tenth, games DESC, move
        """,
    ),
    "repeated": Query(
        "The positions that occurred most often.",
        """
        WITH most AS (
            SELECT state, count(*) AS times FROM rows GROUP BY state
            HAVING times > 1 ORDER BY times DESC, state LIMIT 20
        )
        SELECT state, any_value(times) AS times, count(DISTINCT game) AS games,
            count(DISTINCT move) AS moves, avg(value) AS mean_value,
            stddev_pop(value) AS value_deviation,
            avg(ends.reward * (CASE WHEN rows.player = ends.player THEN 1 ELSE -1 END))
                AS mean_result
        FROM rows JOIN most USING (state) LEFT JOIN ends USING (game)
        GROUP BY state ORDER BY times DESC, state
        """,
    ),
    "calibration": Query(
        "The search's values against the results, by ply.",
        """
        SELECT ply // 10 * 10 AS from_ply,
            least(floor(value * 5), 4) / 5 AS from_value, count(*) AS positions,
            avg(value) AS mean_value, avg(result) AS mean_result
        FROM positions WHERE result IS NOT NULL
        GROUP BY from_ply, from_value ORDER BY from_ply, from_value
        """,
    ),
    "longest": Query(
        "The longest games.",
        """
        SELECT game, first_iteration, num_moves, ended, first_player_result
        FROM games ORDER BY num_moves DESC, game LIMIT 20
        """,
    ),
    "draws": Query(
        "The network's probability of a draw against the share of draws.",
        """
        SELECT least(floor(draw_probability * 10), 9) / 10 AS from_probability,
            count(*) AS positions, avg(draw_probability) AS mean_probability,
            avg(CASE WHEN result = 0 THEN 1 ELSE 0 END) AS share_of_draws
        FROM positions WHERE result IS NOT NULL
        GROUP BY from_probability ORDER BY from_probability
        """,
    ),
    "regret": Query(
        "How often another move than the search's best was played, by ply.",
        """
        SELECT ply, count(*) AS positions,
            avg(CASE WHEN regret > 0 THEN 1 ELSE 0 END) AS share_with_regret,
            avg(regret) AS mean_regret, max(regret) AS max_regret
        FROM rows GROUP BY ply ORDER BY ply LIMIT 40
        """,
    ),
}

"""Whether a game writes, reads and draws as `azjax.games.check` asks."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.checking_play import Record
from azjax.games.core import Game, State

_SHOWN = 4  # positions of a game that are written and drawn
_READ = 3  # actions whose texts are read back in each of them


def check_texts(game: Game, record: Record) -> Iterator[str]:
    """Returns what is wrong with the texts of actions in the first of the games."""
    for move, state in _shown_positions(record):
        if not state.terminated:
            legal = np.flatnonzero(record.first_game["legal_action_mask"][move])
            found = list(_check_actions(game, state, legal.tolist()))
            yield from (f"{violation} {record.where(move, 0)}" for violation in found)
            if found:
                return


def check_labels(game: Game) -> Iterator[str]:
    """Returns what is wrong with the names of the board's columns and rows."""
    height, width = game.board(game.init()).shape
    columns, rows = list(game.column_labels), list(game.row_labels)
    if len(columns) != width:
        yield f"column_labels: must be {width}, as many as the board has: {columns}"
    if len(rows) not in (0, height):
        yield f"row_labels: must be {height}, as many as the board has, or none: {rows}"


def check_drawings(game: Game, record: Record) -> Iterator[str]:
    """Returns what is wrong with the drawings of the first of the games."""
    shape = game.board(game.init()).shape
    for move, state in _shown_positions(record):
        last_action = int(record.action[move - 1, 0]) if move else None
        found = list(_check_drawing(game, state, last_action, shape))
        yield from (f"{violation} {record.where(move, 0)}" for violation in found)
        if found:
            return


def _shown_positions(record: Record) -> Iterator[tuple[int, State]]:
    """Returns some positions of the first game, the last one among them."""
    length = int((~record.terminated[:, 0]).sum())
    last = min(length, len(record.terminated) - 1)
    states = record.first_game["state"]
    for move in sorted(set(np.linspace(0, last, _SHOWN).astype(int).tolist())):
        yield move, jax.tree.map(lambda leaf, t=move: jnp.asarray(leaf[t]), states)


def _check_actions(game: Game, state: State, legal: list[int]) -> Iterator[str]:
    actions: dict[str, int] = {}
    for action in legal:
        text = game.action_to_text(state, action)
        if not isinstance(text, str) or not text:
            yield f"action_to_text: must return a text; action {action} has {text!r}"
            return
        other = actions.setdefault(text.lower(), action)
        if other != action:
            yield (
                "action_to_text: legal actions must have different texts, capitals or "
                f"not; {other} and {action} have {text!r}"
            )
            return
    for action in legal[:: max(1, len(legal) // _READ)][:_READ]:
        text = game.action_to_text(state, action)
        for written in text, f" {text.upper()}\n":
            found = game.text_to_action(state, written)
            if found != action:
                yield (
                    f"text_to_action: must read {written!r}, the text of action "
                    f"{action}; it returns {found!r}"
                )
                return
    try:
        found = game.text_to_action(state, "no action")
    except ValueError:
        return
    yield f"text_to_action: must refuse 'no action' by a ValueError: {found!r}"


def _check_drawing(
    game: Game, state: State, last_action: int | None, shape: tuple[int, ...]
) -> Iterator[str]:
    if last_action is not None:
        cells = game.last_cells(state, last_action)
        if not all(0 <= cell[axis] < shape[axis] for cell in cells for axis in (0, 1)):
            yield f"last_cells: must be on the board, {shape}: {cells}"
            return
    text = game.to_text(state, last_action)
    if not isinstance(text, str):
        yield f"to_text: must return a text: {text!r}"
    policy = np.full(game.num_actions, 1 / game.num_actions, np.float32)
    svg = game.to_svg(state, last_action, policies={"uniform": policy})
    if not isinstance(svg, str) or not svg.startswith("<svg"):
        yield f"to_svg: must return an SVG document: {svg!r}"

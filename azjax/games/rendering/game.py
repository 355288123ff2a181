"""Positions of any game as text and as SVG."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from azjax.games.rendering.elements import Cell
from azjax.games.rendering.svg import Arrow, Policies, board_to_svg

if TYPE_CHECKING:
    from azjax.games.core import Game


def board_to_text(
    board: np.ndarray,
    pieces: str,
    *,
    marked: Collection[Cell],
    column_labels: Sequence[str],
    row_labels: Sequence[str],
    indent: int = 0,
) -> str:
    """Draws a board: a letter for each piece, `.` where empty, brackets where marked.

    Args:
        board: `[H, W]` int.
        pieces: the letters, by the number of the piece.
        marked: the cells of the last move.
        column_labels: W labels, written above the board.
        row_labels: H labels from the top row down, written to its left; none at all
            leave them out.
        indent: characters by which each row is shifted to the right of the one above.
    """
    margin = max((len(label) for label in row_labels), default=0)
    lines = [" " * margin + "".join(f"{label:^3}" for label in column_labels)]
    for row, cells in enumerate(board):
        label = row_labels[row] if row_labels else ""
        letters = ((pieces + ".")[piece] for piece in cells)
        symbols = (
            f"[{letter}]" if (row, column) in marked else f" {letter} "
            for column, letter in enumerate(letters)
        )
        shift = " " * (indent * row)
        lines.append(shift + f"{label:>{margin}}" + "".join(symbols))
    return "\n".join(line.rstrip() for line in lines)


def game_to_text(
    game: "Game", state: Any, last_action: int | None, indent: int = 0
) -> str:
    """Draws one position as text, with the last move and the winning cells marked.

    Args:
        game: the rules.
        state: one position.
        last_action: the move that led to it, or None.
        indent: shift of each row to the right, as in `board_to_text`.
    """
    return board_to_text(
        _one_board(game, state),
        game.pieces,
        marked=(*_last_cells(game, state, last_action), *game.winning_cells(state)),
        column_labels=game.column_labels,
        row_labels=game.row_labels,
        indent=indent,
    )


def game_to_svg(
    game: "Game",
    state: Any,
    last_action: int | None,
    policies: Mapping[str, np.ndarray] | None,
) -> str:
    """Draws one position as an SVG document; the arguments are as in `Game.to_svg`."""
    arrays = {name: np.asarray(policy) for name, policy in (policies or {}).items()}
    for name, policy in arrays.items():
        if policy.shape != (game.num_actions,):
            raise ValueError(
                f"a policy of {game!r} has [{game.num_actions}] probabilities: "
                f"{name!r} has {list(policy.shape)}"
            )
    return board_to_svg(
        game.style,
        _one_board(game, state),
        marked=_last_cells(game, state, last_action),
        winning=game.winning_cells(state),
        column_labels=game.column_labels,
        row_labels=game.row_labels,
        policies=game.policies_on_board(state, arrays) if arrays else {},
    )


def policies_on_cells(
    game: "Game", state: Any, policies: Mapping[str, np.ndarray]
) -> Policies:
    """Returns `[H, W]` probabilities by name, for games whose first H * W actions are
    cells; the probabilities of the other actions are added to the name."""
    height, width, _ = game.observation_shape
    num_cells = height * width
    placed = {}
    for name, policy in policies.items():
        others = [
            f"{game.action_to_text(state, action)} {100 * policy[action]:.0f}%"
            for action in range(num_cells, game.num_actions)
        ]
        label = f"{name} ({', '.join(others)})" if others else name
        placed[label] = policy[:num_cells].reshape(height, width)
    return placed


def policies_of_moves(
    policies: Mapping[str, np.ndarray],
    legal: np.ndarray,
    ends: Callable[[int], tuple[Cell, Cell]],
) -> Policies:
    """Returns an arrow for each legal move from cell to cell, by name; moves with the
    same ends, such as promotions, share one.

    Args:
        policies: by name, `[A]` probabilities.
        legal: `[A]` bool.
        ends: returns the first and the last cell of an action.
    """
    placed = {}
    for name, policy in policies.items():
        arrows: dict[tuple[Cell, Cell], float] = {}
        for action in np.flatnonzero(legal & (np.asarray(policy) > 0)).tolist():
            cells = ends(action)
            arrows[cells] = arrows.get(cells, 0.0) + float(policy[action])
        placed[name] = [
            Arrow(*cells, probability) for cells, probability in arrows.items()
        ]
    return placed


def _one_board(game: "Game", state: Any) -> np.ndarray:
    """Returns `[H, W]` int8, the board of one position."""
    shape = list(np.shape(state.terminated))
    if shape:
        raise ValueError(
            f"one position is drawn at a time, and these are {shape}; take one by "
            "jax.tree.map(lambda leaf: leaf[0], states)"
        )
    return np.asarray(game.board(state))


def _last_cells(game: "Game", state: Any, last_action: int | None) -> tuple[Cell, ...]:
    return () if last_action is None else game.last_cells(state, last_action)

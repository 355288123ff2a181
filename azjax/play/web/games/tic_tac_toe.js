/** Tic-tac-toe: three in a row on a board of nine cells. */
import { RowGame } from "./rows.js";

const SIZE = 3;

/** Returns the marked cell, -1 if it is not empty or does not exist. */
function cellOf(cells, action) {
  return cells[action] === -1 ? action : -1;
}

export const game = new RowGame({
  name: "tic_tac_toe",
  height: SIZE,
  width: SIZE,
  rowLength: 3,
  numActions: SIZE * SIZE,
  cellOf,
  actionToText: (cell) => "abc"[cell % SIZE] + (SIZE - Math.floor(cell / SIZE)),
});

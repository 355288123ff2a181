/** Connect Four: seven columns, six rows, four in a row wins. */
import { RowGame } from "./rows.js";

const HEIGHT = 6;
const WIDTH = 7;

/** Returns the cell of a dropped disc, -1 if the column is full or does not exist. */
function cellOf(cells, column) {
  if (!(column >= 0 && column < WIDTH)) return -1;
  for (let row = HEIGHT - 1; row >= 0; row--) {
    if (cells[row * WIDTH + column] < 0) return row * WIDTH + column;
  }
  return -1;
}

export const game = new RowGame({
  name: "connect_four",
  height: HEIGHT,
  width: WIDTH,
  rowLength: 4,
  numActions: WIDTH,
  cellOf,
  actionToText: (column) => String(column + 1),
});

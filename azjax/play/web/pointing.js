/** Moves made by pointing at the board: at one cell, or first from and then to. */

/** @typedef {import("./engine.js").Move} Move */

export class Pointing {
  /**
   * @param {Move[]} moves the legal ones
   * @param {(cell: number) => number} targetOf what is pointed at for a cell
   */
  constructor(moves, targetOf) {
    this.unplaced = moves.filter(({ cells }) => cells.length === 0);
    this.placed = moves
      .filter(({ cells }) => cells.length > 0)
      .map((move) => ({ move, targets: move.cells.map(targetOf) }));
  }

  /** @returns {Move[]} the moves that pointing at one target makes */
  at(target) {
    return this.#moves(({ targets }) => targets.length === 1 && targets[0] === target);
  }

  /** @returns {Move[]} the moves from one target to another, which may be several */
  between(from, to) {
    return this.#moves(({ targets }) => targets[0] === from && targets[1] === to);
  }

  /** @returns {number[]} where what is at a target may go */
  ends(from) {
    const ends = this.placed
      .filter(({ targets }) => targets.length > 1 && targets[0] === from)
      .map(({ targets }) => targets[1]);
    return [...new Set(ends)];
  }

  /** @returns {number[]} what may be pointed at without having pointed before */
  get beginnings() {
    return [...new Set(this.placed.map(({ targets }) => targets[0]))];
  }

  /** @returns {number[]} the cells of moves that are made by pointing once */
  get singles() {
    const single = this.placed.filter(({ targets }) => targets.length === 1);
    return single.map(({ move }) => move.cells[0]);
  }

  #moves(isMeant) {
    return this.placed.filter(isMeant).map(({ move }) => move);
  }
}

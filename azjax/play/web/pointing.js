/** Input of moves by clicking one cell, or the start and the end of a move. */

/** @typedef {import("./engine.js").Move} Move */

export class Pointing {
  /**
   * @param {Move[]} moves legal moves
   * @param {(cell: number) => number} targetOf returns the clickable target of a cell
   */
  constructor(moves, targetOf) {
    this.placed = moves
      .filter(({ cells }) => cells.length > 0)
      .map((move) => ({ move, targets: move.cells.map(targetOf) }));
  }

  /** @returns {Move[]} the moves of a single target */
  at(target) {
    return this.#moves(({ targets }) => targets.length === 1 && targets[0] === target);
  }

  /** @returns {Move[]} the moves from one target to another */
  between(from, to) {
    return this.#moves(({ targets }) => targets[0] === from && targets[1] === to);
  }

  /** @returns {number[]} the ends of the moves from a target */
  ends(from) {
    const ends = this.placed
      .filter(({ targets }) => targets.length > 1 && targets[0] === from)
      .map(({ targets }) => targets[1]);
    return [...new Set(ends)];
  }

  /** @returns {number[]} the first targets of all moves */
  get starts() {
    return [...new Set(this.placed.map(({ targets }) => targets[0]))];
  }

  /** @returns {number[]} the cells of the moves with a single target */
  get singles() {
    const single = this.placed.filter(({ targets }) => targets.length === 1);
    return single.map(({ move }) => move.cells[0]);
  }

  #moves(condition) {
    return this.placed.filter(condition).map(({ move }) => move);
  }
}

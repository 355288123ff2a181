/**
 * Games in which a number of stones in a row wins.
 *
 * Rules, actions and observations are the same as in Python: player 0 moves first, cells
 * are numbered row by row from the top left, a step after the end changes nothing, and an
 * illegal action loses the game.
 *
 * @typedef {Object} State
 * @property {Int8Array} cells player of the stone in each cell, -1 where empty
 * @property {number} player to move, 0 or 1
 * @property {boolean} terminated whether the game is over
 * @property {number} winner 0 or 1; -1 for none
 */

const DIRECTIONS = [
  [0, 1],
  [1, 0],
  [1, 1],
  [1, -1],
];

export class RowGame {
  /**
   * @param {Object} rules
   * @param {string} rules.name as in Python
   * @param {number} rules.height
   * @param {number} rules.width
   * @param {number} rules.rowLength stones in a row to win
   * @param {number} rules.numActions
   * @param {(cells: Int8Array, action: number) => number} rules.cellOf cell of a
   *     placed stone, -1 if the action is illegal
   * @param {(action: number) => string} rules.actionToText notation
   */
  constructor(rules) {
    Object.assign(this, rules);
    this.numCells = this.height * this.width;
    this.observationShape = [this.height, this.width, 2];
  }

  /** @returns {State} the first position */
  init() {
    const cells = new Int8Array(this.numCells).fill(-1);
    return { cells, player: 0, terminated: false, winner: -1 };
  }

  /** @returns {State} the position after an action of the player to move */
  step(state, action) {
    if (state.terminated) return state;
    const { player } = state;
    const cell = this.cellOf(state.cells, action);
    if (cell < 0) {
      return { ...state, player: 1 - player, terminated: true, winner: 1 - player };
    }
    const cells = state.cells.slice();
    cells[cell] = player;
    const wins = DIRECTIONS.some(
      (way) => this.#row(cells, cell, way).length >= this.rowLength,
    );
    const terminated = wins || !cells.includes(-1);
    return { cells, player: 1 - player, terminated, winner: wins ? player : -1 };
  }

  /** @returns {number[]} the legal actions, ascending */
  legalActions(state) {
    const actions = [];
    for (let action = 0; action < this.numActions; action++) {
      if (this.cellOf(state.cells, action) >= 0) actions.push(action);
    }
    return actions;
  }

  /**
   * Writes the observation: for each cell, whether it has a stone of the player to move,
   * and of the opponent.
   * @param {State} state
   * @param {Float32Array} planes `[height * width * 2]`
   */
  observe(state, planes) {
    for (let cell = 0; cell < this.numCells; cell++) {
      planes[2 * cell] = state.cells[cell] === state.player ? 1 : 0;
      planes[2 * cell + 1] = state.cells[cell] === 1 - state.player ? 1 : 0;
    }
  }

  /** @returns {number[]} of each player: 1 win, -1 loss, 0 draw or not over */
  rewards(state) {
    if (state.winner < 0) return [0, 0];
    return state.winner === 0 ? [1, -1] : [-1, 1];
  }

  /** @returns {number[]} the cells of all winning rows */
  winningCells(state) {
    const winning = new Set();
    for (let cell = 0; cell < this.numCells; cell++) {
      if (state.cells[cell] < 0) continue;
      for (const way of DIRECTIONS) {
        const row = this.#row(state.cells, cell, way);
        if (row.length >= this.rowLength) row.forEach((one) => winning.add(one));
      }
    }
    return [...winning].sort((a, b) => a - b);
  }

  /** Returns the cells of one color in a row through `cell`, including it. */
  #row(cells, cell, [down, right]) {
    const row = [cell];
    for (const sign of [1, -1]) {
      let y = Math.floor(cell / this.width) + sign * down;
      let x = (cell % this.width) + sign * right;
      while (y >= 0 && y < this.height && x >= 0 && x < this.width) {
        if (cells[y * this.width + x] !== cells[cell]) break;
        row.push(y * this.width + x);
        y += sign * down;
        x += sign * right;
      }
    }
    return row;
  }
}

/** Positions of games with rules in JavaScript, as in `engine.js`. */

const STRENGTHS = [1, 25, 50, 100, 200, 400, 800, 1600]; // simulations a move

/** @returns {import("./engine.js").Description} */
export function describe(config) {
  return {
    ...config.description,
    player: config.player,
    simulations: config.simulations,
    strengths: STRENGTHS,
    search: "It uses PUCT search and keeps its tree from move to move.",
  };
}

/**
 * @param {Object} game
 * @param {number[]} actions from the first position
 * @returns {import("./engine.js").Position}
 */
export function positionAfter(game, actions) {
  const { states, moves } = played(game, actions);
  const state = states.at(-1);
  return {
    player: state.player,
    cells: [...state.cells],
    moves: legalActions(game, state).map((action) => moveOf(game, state, action)),
    isOver: state.terminated,
    rewards: game.rewards(state),
    last: moves.at(-1) ?? null,
    marked: moves.at(-1)?.cells ?? [],
    resultText: "",
    winningCells: game.winningCells(state),
    picture: null,
  };
}

/**
 * @param {Object} game
 * @param {number[]} actions from the first position
 * @param {string} text notation of a move
 * @returns {number} its action
 */
export function parse(game, actions, text) {
  const { moves } = positionAfter(game, actions);
  const move = moves.find((one) => one.text === text.trim().toLowerCase());
  if (move) return move.action;
  const legal = moves.map((one) => one.text).join(", ");
  throw new Error(`'${text}' is no legal move; legal are ${legal}`);
}

/**
 * @param {Object} game
 * @param {number[]} actions from the first position
 * @returns {(import("./engine.js").Move & {player: number})[]} the moves and their players
 */
export function replay(game, actions) {
  const { states, moves } = played(game, actions);
  return moves.map((move, ply) => ({ ...move, player: states[ply].player }));
}

function played(game, actions) {
  const moves = [];
  const states = [game.init()];
  for (const action of actions) {
    const state = states.at(-1);
    if (!legalActions(game, state).includes(action)) {
      throw new Error(`action ${action}, number ${moves.length + 1}, is not legal`);
    }
    moves.push(moveOf(game, state, action));
    states.push(game.step(state, action));
  }
  return { states, moves };
}

function legalActions(game, state) {
  return state.terminated ? [] : game.legalActions(state);
}

function moveOf(game, state, action) {
  const text = game.actionToText(action);
  return { action, text, cells: [game.cellOf(state.cells, action)] };
}

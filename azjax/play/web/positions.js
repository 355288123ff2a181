/** A game's rules as the page asks about them: what `engine.js` calls a position. */

const STRENGTHS = [1, 25, 50, 100, 200, 400, 800, 1600]; // simulations a move

/** @returns {import("./engine.js").Description} */
export function describe(game, config) {
  return {
    game: game.name,
    title: game.title,
    height: game.height,
    width: game.width,
    ...game.look,
    player: config.player,
    simulations: config.simulations,
    strengths: STRENGTHS,
  };
}

/**
 * @param {Object} game
 * @param {number[]} actions from the first position
 * @returns {import("./engine.js").Position}
 */
export function positionAfter(game, actions) {
  let state = game.init();
  let last = null;
  for (const action of actions) {
    last = moveOf(game, state, action);
    state = game.step(state, action);
  }
  const legal = state.terminated ? [] : game.legalActions(state);
  return {
    player: state.player,
    cells: [...state.cells],
    moves: legal.map((action) => moveOf(game, state, action)),
    isOver: state.terminated,
    rewards: game.rewards(state),
    last,
    ending: "",
    winningCells: game.winningCells(state),
  };
}

function moveOf(game, state, action) {
  const text = game.actionToText(action);
  return { action, text, cell: game.cellOf(state.cells, action) };
}

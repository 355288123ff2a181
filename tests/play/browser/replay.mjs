// Replays games by the rules in JavaScript: `node replay.mjs RULES.js < games.json`.
// Reads a list of lists of actions; writes the values of all rule functions for each
// position of each game.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { game } = await import(pathToFileURL(process.argv[2]));
const planes = new Float32Array(game.observationShape.reduce((a, b) => a * b));

function describe(state) {
  game.observe(state, planes);
  return {
    player: state.player,
    terminated: state.terminated,
    legal: game.legalActions(state),
    rewards: game.rewards(state),
    winning: game.winningCells(state),
    board: [...state.cells],
    observation: planes.join(""),
    texts: game.legalActions(state).map(game.actionToText),
  };
}

const games = JSON.parse(readFileSync(0, "utf8"));
const played = games.map((actions) => {
  let state = game.init();
  const seen = [describe(state)];
  for (const action of actions) {
    state = game.step(state, action);
    seen.push(describe(state));
  }
  return seen;
});
process.stdout.write(JSON.stringify(played));

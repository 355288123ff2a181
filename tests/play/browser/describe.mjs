// Positions of a game for the page: `node describe.mjs PAGE_FILES GAME < games.json`.
// Reads a list of lists of actions; writes the position after each list.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const files = `${pathToFileURL(process.argv[2])}/`;
const { game } = await import(new URL(`games/${process.argv[3]}.js`, files));
const { positionAfter } = await import(new URL("positions.js", files));

const games = JSON.parse(readFileSync(0, "utf8"));
const positions = games.map((actions) => positionAfter(game, actions));
process.stdout.write(JSON.stringify(positions));

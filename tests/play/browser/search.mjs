// Searches positions by the search in JavaScript: `node search.mjs SITE < steps.json`.
// Reads a list of `{actions, simulations, isFresh}`; writes the decision for each, or
// `{error}`. The tree is reused unless `isFresh`.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const site = process.argv[2];
const load = (file) => import(pathToFileURL(join(site, file)));
const inflated = ({ file }) => gunzipSync(readFileSync(join(site, file)));

const config = JSON.parse(readFileSync(join(site, "config.json"), "utf8"));
const { game } = await load(`games/${config.game}.js`);
const { loadNetwork, Search } = await load("search.js");
const evaluate = await loadNetwork(
  inflated(config.runtime),
  inflated(config.network),
  game,
);
const search = new Search(game, evaluate, config.search);
const decisions = [];
for (const step of JSON.parse(readFileSync(0, "utf8"))) {
  if (step.isFresh) search.reset();
  try {
    await search.run(step.actions, step.simulations, async () => true);
    decisions.push(search.summary());
  } catch (error) {
    decisions.push({ error: error.message });
  }
}
process.stdout.write(JSON.stringify(decisions));

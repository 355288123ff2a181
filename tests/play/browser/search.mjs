// Searches positions by the page's search: `node search.mjs SITE < steps.json`.
// Reads a list of `{actions, simulations, isFresh}`; writes what the search thought of
// each position, with the tree of the one before unless it is to be fresh, or
// `{error}` where it refuses.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const site = process.argv[2];
const load = (file) => import(pathToFileURL(join(site, file)));
const inflated = ({ file }) => gunzipSync(readFileSync(join(site, file)));

const config = JSON.parse(readFileSync(join(site, "config.json"), "utf8"));
const { game } = await load(`games/${config.game}.js`);
const { loadNetwork } = await load("network.js");
const { Search } = await load("search.js");
const evaluate = await loadNetwork(
  inflated(config.runtime),
  inflated(config.network),
  game,
);
const search = new Search(game, evaluate, config.search);
const thoughts = [];
for (const step of JSON.parse(readFileSync(0, "utf8"))) {
  if (step.isFresh) search.reset();
  try {
    await search.run(step.actions, step.simulations, async () => true);
    thoughts.push(search.summary());
  } catch (error) {
    thoughts.push({ error: error.message });
  }
}
process.stdout.write(JSON.stringify(thoughts));

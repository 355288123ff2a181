/**
 * The computer player: rules, search and network, away from the page, which so never
 * stands still. It answers `{id, method, params}` with `{id, kind, value}`.
 */
import { download, fetchJson } from "./download.js";
import { loadNetwork } from "./network.js";
import { describe, positionAfter, replay } from "./positions.js";
import { Search } from "./search.js";

const REPORT_INTERVAL = 100; // milliseconds

let game;
let searches; // a promise: the network arrives later than the rules
let thinking = Promise.resolve();
let turn = 0; // of the newest thought; older ones give up

const methods = {
  async start() {
    const config = await fetchJson(new URL("./config.json", import.meta.url));
    ({ game } = await import(`./games/${config.game}.js`));
    searches = loadSearches(config);
    searches.catch((error) => postMessage({ kind: "failure", value: error.message }));
    return describe(game, config);
  },

  position({ actions }) {
    return positionAfter(game, actions);
  },

  replay({ actions }) {
    return replay(game, actions);
  },

  think(request, report) {
    const mine = ++turn;
    const isWanted = () => mine === turn;
    const thought = thinking.then(() =>
      isWanted() ? think(request, report, isWanted) : null,
    );
    thinking = thought.catch(() => {});
    return thought;
  },

  stop() {
    turn++;
  },

  forget() {
    turn++;
    thinking = thinking.then(async () => {
      for (const search of Object.values(await searches)) search.reset();
    });
  },
};

onmessage = async ({ data: { id, method, params } }) => {
  const report = (value) => postMessage({ id, kind: "progress", value });
  try {
    postMessage({ id, kind: "answer", value: await methods[method](params, report) });
  } catch (error) {
    postMessage({ id, kind: "error", value: error.message });
  }
};

async function loadSearches({ runtime, network, search }) {
  const report = (share) => postMessage({ kind: "loading", value: share });
  const files = [runtime, network].map(({ file, bytes }) => ({
    url: new URL(file, import.meta.url),
    bytes,
  }));
  const [wasm, model] = await download(files, (share) => report(0.99 * share));
  const evaluate = await loadNetwork(wasm, model, game);
  report(1);
  return {
    play: new Search(game, evaluate, search),
    hint: new Search(game, evaluate, search),
  };
}

/** Searches until all simulations are made, or nobody wants to know any more. */
async function think({ actions, simulations, purpose }, report, isWanted) {
  const search = (await searches)[purpose];
  const start = performance.now();
  let nextReport = start + REPORT_INTERVAL;
  const thought = (done) => ({
    ...search.summary(),
    simulations: done,
    seconds: (performance.now() - start) / 1000,
  });
  await search.run(actions, simulations, async (done) => {
    if (performance.now() > nextReport) {
      report(thought(done));
      nextReport = performance.now() + REPORT_INTERVAL;
    }
    await othersHadTheirTurn();
    return isWanted();
  });
  return isWanted() ? thought(simulations) : null;
}

const channel = new MessageChannel();

/** Lets messages in that have come meanwhile; a timer would wait longer. */
function othersHadTheirTurn() {
  return new Promise((resolve) => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  });
}

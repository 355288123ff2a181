/**
 * The computer player in a worker: rules, search and network. It answers
 * `{id, method, params}` with `{id, kind, value}`.
 */
import { download, fetchJson } from "./download.js";
import { describe, parse, positionAfter, replay } from "./positions.js";
import { loadNetwork, Search } from "./search.js";

const REPORT_INTERVAL = 100; // milliseconds

let game;
let searches; // a promise: the network loads after the rules
let running = Promise.resolve(); // the latest search or reset
let turn = 0; // of the newest request; older ones are cancelled

const methods = {
  async start() {
    const config = await fetchJson(new URL("./config.json", import.meta.url));
    ({ game } = await import(`./games/${config.game}.js`));
    searches = loadSearches(config);
    searches.catch((error) => postMessage({ kind: "failure", value: error.message }));
    return describe(config);
  },

  position({ actions }) {
    return positionAfter(game, actions);
  },

  replay({ actions }) {
    return replay(game, actions);
  },

  parse({ actions, text }) {
    return parse(game, actions, text);
  },

  decide(request, report) {
    const mine = ++turn;
    const isWanted = () => mine === turn;
    const decision = running.then(() =>
      isWanted() ? decide(request, report, isWanted) : null,
    );
    running = decision.catch(() => {});
    return decision;
  },

  stop() {
    turn++;
  },

  forget() {
    turn++;
    running = running.then(async () => {
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

/** Searches until all simulations are made or the request is cancelled. */
async function decide({ actions, simulations, purpose }, report, isWanted) {
  const search = (await searches)[purpose];
  const start = performance.now();
  let nextReport = start + REPORT_INTERVAL;
  const decision = (done) => ({
    ...search.summary(),
    simulations: done,
    seconds: (performance.now() - start) / 1000,
  });
  await search.run(actions, simulations, async (done) => {
    if (performance.now() > nextReport) {
      report(decision(done));
      nextReport = performance.now() + REPORT_INTERVAL;
    }
    await handleMessages();
    return isWanted();
  });
  return isWanted() ? decision(simulations) : null;
}

const channel = new MessageChannel();

/** Lets the worker handle waiting messages; a timer would wait longer. */
function handleMessages() {
  return new Promise((resolve) => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  });
}

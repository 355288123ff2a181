/** Entry point: opens the page with a computer in the browser or on a server. */
import { fetchJson } from "./download.js";
import { WorkerEngine } from "./engine.js";
import { Page } from "./page.js";
import { address } from "./saving.js";

addEventListener("unhandledrejection", ({ reason }) => fail(reason));
open().catch(fail);

function fail(error) {
  window.showFailure(`The player failed: ${error.message}`);
}

async function open() {
  const config = await fetchJson("config.json");
  await (config.engine === "server" ? openWithServer(config) : openWithWorker());
}

async function openWithWorker() {
  const showTitle = ({ title, player }) => {
    document.title = `${title} against ${player}`;
  };
  const options = { address, onStart: showTitle };
  await new Page(document.body, new WorkerEngine(fail), options, fail).open();
}

/** Imports dynamically: this module is not part of an exported site. */
async function openWithServer(config) {
  const { ServerEngine } = await import("./server_engine.js");
  for (const element of document.querySelectorAll(".here")) element.hidden = true;
  for (const element of document.querySelectorAll(".there")) element.hidden = false;
  const { searchParams } = new URL(location);
  const engine = new ServerEngine(config, fail, (problem) => page.showProblem(problem));
  const options = {
    address,
    players: config.players,
    player: searchParams.get("player") ?? config.players[0].name,
    setup: searchParams.get("setup") ?? "",
    begins: searchParams.has("watch") ? "watch" : "you",
    onStart({ title, player }, name, setup) {
      document.title = `${title} against ${player}`;
      address.writePlayer(name, setup);
    },
  };
  const page = new Page(document.body, engine, options, fail);
  await page.open();
}

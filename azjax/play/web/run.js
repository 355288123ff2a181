/** A training run while it learns: its plot, its newest numbers, a sample game. */
import { fetchJson } from "./download.js";
import { tag } from "./html.js";
import { Match } from "./match.js";
import { PictureBoard } from "./picture_board.js";
import { ServerEngine } from "./server_engine.js";

const REFRESH = 5000; // milliseconds, while it learns
const SLOW_REFRESH = 60000;
const LOOK_AT_END = 4000; // milliseconds, before the next sample game

const element = (id) => document.getElementById(id);

let run;

refresh().catch((error) => window.showFailure(`Nothing to show: ${error.message}`));
element("sample").onclick = () => playSample().catch(showProblem);

async function refresh() {
  run = await fetchJson("run.json");
  show(run);
  keepFresh(run);
}

/** Asks again and again; says when the server does not answer. */
function keepFresh({ is_training }) {
  setTimeout(
    async () => {
      try {
        run = await fetchJson("run.json");
        show(run);
        showProblem({ message: "" });
      } catch {
        showProblem({ message: "The server does not answer. Trying again." });
      }
      keepFresh(run);
    },
    is_training ? REFRESH : SLOW_REFRESH,
  );
}

function show({ title, is_training, latest, players, play }) {
  document.title = title;
  element("title").textContent = title;
  element("state").textContent = is_training ? "It is learning now." : "It has ended.";
  element("latest").replaceChildren(
    ...Object.entries(latest).map(([label, number]) =>
      tag("div", {}, tag("dt", {}, label), tag("dd", {}, readable(number))),
    ),
  );
  element("latest").parentElement.hidden = Object.keys(latest).length === 0;
  element("play").href = play ?? "";
  element("sample").parentElement.parentElement.hidden = players.length === 0;
  element("main").classList.remove("waiting");
  showPlot();
}

/** Puts a newer plot in the place of the older one when it has arrived. */
function showPlot() {
  const newer = new Image();
  newer.onload = () => {
    newer.id = "plot";
    newer.alt = element("plot").alt;
    element("plot").replaceWith(newer);
    element("no-plot").hidden = true;
  };
  newer.src = `learning.png?at=${Date.now()}`;
}

function showProblem({ message }) {
  element("notice").textContent = message;
  element("notice").hidden = message === "";
}

function readable(number) {
  if (Number.isInteger(number)) return number.toLocaleString("en");
  return number.toLocaleString("en", { maximumSignificantDigits: 3 });
}

/** Lets the newest player play against itself, one game after the other. */
async function playSample() {
  element("sample").disabled = true;
  const config = { socket: "/socket", game: run.game };
  const problem = (message) => showProblem({ message });
  const engine = new ServerEngine(config, showProblem, problem);
  const start = () => engine.start(() => {}, run.players[0]);
  const description = await start();
  document.body.dataset.style = description.style;
  element("board").hidden = false;
  const board = new PictureBoard(element("board"), description, () => {});
  board.entry.element.hidden = true;
  const settings = { simulations: description.simulations, analyses: false };
  const match = new Match(engine, settings, {
    onChange() {
      const { position, ply } = match;
      board.show(position, false);
      element("board").dataset.moves = ply;
      element("sample-status").textContent = statusText(position, description);
      if (position.isOver) setTimeout(() => again().catch(showProblem), LOOK_AT_END);
    },
    onThought() {
      board.showThought(match.shown.thought);
    },
  });
  const again = async () => {
    await start(); // the player may be newer
    await match.begin(null);
  };
  await match.begin(null);
}

function statusText({ isOver, rewards, last }, { sides }) {
  if (!isOver) return last ? `Last move: ${last.text}.` : "A new game.";
  const winner = rewards.indexOf(1);
  return winner < 0 ? "A draw." : `A win for ${sides[winner]}.`;
}

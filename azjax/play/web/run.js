/** The page of a training run: its plot, its latest metrics and a sample game. */
import { Board } from "./board.js";
import { fetchJson, poll, visible } from "./download.js";
import { tag } from "./elements.js";
import { Match } from "./match.js";
import { ServerEngine } from "./server_engine.js";
import { outcomeText, stateText } from "./texts.js";

const REFRESH = 5000; // of a running training (milliseconds)
const SLOW_REFRESH = 20000; // of a stopped or finished one
const END_PAUSE = 4000; // before the next sample game (milliseconds)

const element = (id) => document.getElementById(id);

let run;
let plotted = null; // version of the shown plot

open().catch((error) => window.showFailure(`The run did not load: ${error.message}`));
element("sample").onclick = () => playSample().catch(fail);

async function open() {
  await refresh();
  element("main").classList.remove("waiting");
  const pause = () => (run.state === "learning" ? REFRESH : SLOW_REFRESH);
  await poll(refresh, pause, showProblem);
}

async function refresh() {
  run = await fetchJson("run.json");
  show(run);
}

function show({ title, state, share, numbers, plot, players, play }) {
  document.title = title;
  element("title").textContent = title;
  setText(element("state"), sentence({ state, share }));
  element("state").className = state;
  showNumbers(numbers);
  element("play").href = play ?? "";
  element("sample").parentElement.parentElement.hidden = players.length === 0;
  if (plot !== plotted) showPlot(plot);
}

function sentence({ state, share }) {
  const text = stateText({ state, share });
  const hint = state === "stopped" ? "; the same command resumes it" : "";
  return `${text[0].toUpperCase()}${text.slice(1)}${hint}.`;
}

/** Sets a text only if it differs, so that screen readers do not repeat it. */
function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

function showNumbers(numbers) {
  element("latest").replaceChildren(
    ...numbers.map(([label, text]) =>
      tag("div", {}, tag("dt", {}, label), tag("dd", {}, text)),
    ),
  );
  element("latest").parentElement.hidden = numbers.length === 0;
}

/** Replaces the plot when the new one has loaded. */
function showPlot(plot) {
  const newer = new Image();
  newer.onload = () => {
    newer.id = "plot";
    newer.alt = element("plot").alt;
    element("plot").replaceWith(newer);
    element("no-plot").hidden = true;
    plotted = plot;
  };
  newer.src = `learning.png?${plot}`;
}

/** Shows why the sample game failed, and enables its button. */
function fail({ message }) {
  showProblem(message);
  element("sample").disabled = false;
}

function showProblem(text) {
  setText(element("notice"), text);
  element("notice").hidden = text === "";
}

/** Shows games of the newest player against itself. */
async function playSample() {
  element("sample").disabled = true;
  const config = { socket: "/socket", game: run.game };
  const engine = new ServerEngine(config, fail, showProblem);
  const start = () => engine.start(() => {}, run.players[0]);
  const description = await start();
  element("board").hidden = false;
  const board = new Board(element("board"), description, () => {});
  board.entry.element.hidden = true;
  const level = { simulations: description.simulations, temperature: 0 };
  const settings = { level, analyzes: false };
  const match = new Match(engine, settings, {
    onChange() {
      const { position, ply } = match;
      board.show(position, false);
      element("board").dataset.moves = ply;
      element("sample-status").textContent = statusText(position, description);
      if (position.isOver) setTimeout(() => again().catch(fail), END_PAUSE);
    },
    onDecision() {
      board.showDecision(match.shown.decision);
    },
  });
  const again = async () => {
    await visible();
    await start(); // there may be a newer player
    await match.start(null);
  };
  await match.start(null);
}

function statusText(position, { sides }) {
  if (position.isOver) return outcomeText(position, null, sides);
  return position.last ? `Last move: ${position.last.text}.` : "A new game.";
}

/** A training run while it learns: its plot, its newest numbers, a sample game. */
import { fetchJson } from "./download.js";
import { poll, seen, stateText } from "./polling.js";
import { tag } from "./html.js";
import { Match } from "./match.js";
import { PictureBoard } from "./picture_board.js";
import { ServerEngine } from "./server_engine.js";

const REFRESH = 5000; // milliseconds, while it learns
const SLOW_REFRESH = 20000;
const LOOK_AT_END = 4000; // milliseconds, before the next sample game

const element = (id) => document.getElementById(id);

let run;
let plotted = null; // which plot is shown

open().catch((error) => window.showFailure(`Nothing to show: ${error.message}`));
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
  const hint = state === "stopped" ? "; the same command goes on from there" : "";
  return `${text[0].toUpperCase()}${text.slice(1)}${hint}.`;
}

/** Changes a text only where it is another, so that it is not read out again. */
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

/** Puts a newer plot in the place of the older one when it has arrived. */
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

/** Says why there is no sample game; it can be asked for again. */
function fail({ message }) {
  showProblem(message);
  element("sample").disabled = false;
}

function showProblem(text) {
  setText(element("notice"), text);
  element("notice").hidden = text === "";
}

/** Lets the newest player play against itself, one game after the other. */
async function playSample() {
  element("sample").disabled = true;
  const config = { socket: "/socket", game: run.game };
  const engine = new ServerEngine(config, fail, showProblem);
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
      if (position.isOver) setTimeout(() => again().catch(fail), LOOK_AT_END);
    },
    onThought() {
      board.showThought(match.shown.thought);
    },
  });
  const again = async () => {
    await seen();
    await start(); // the player may be newer
    await match.begin(null);
  };
  await match.begin(null);
}

function statusText({ isOver, rewards, resultText, last }, { sides }) {
  if (!isOver) return last ? `Last move: ${last.text}.` : "A new game.";
  const winner = rewards.indexOf(1);
  const reason = resultText && `: ${resultText}`;
  return winner < 0 ? `A draw${reason}.` : `A win for ${sides[winner]}${reason}.`;
}

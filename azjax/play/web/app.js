/** The page: joins the game, the board and what is around it. */
import { Analysis } from "./analysis.js";
import { Board } from "./board.js";
import { WorkerEngine } from "./engine.js";
import { Match } from "./match.js";
import { Score } from "./score.js";

const STRENGTHS = [1, 25, 50, 100, 200, 400, 800, 1600]; // simulations a move

const element = (id) => document.getElementById(id);

addEventListener("unhandledrejection", ({ reason }) => fail(reason));
open(new WorkerEngine(fail)).catch(fail);

function fail(error) {
  window.showFailure(`The player cannot be used: ${error.message}`);
}

/** @param {import("./engine.js").Engine} engine */
async function open(engine) {
  const description = await engine.start(showLoading);
  showDescription(description);
  const strengths = strengthsFor(description);
  const settings = {
    get simulations() {
      return strengths[element("strength").value];
    },
    get analyses() {
      return element("analysis").open;
    },
  };
  const score = new Score(
    `${description.game}: ${description.player}`,
    element("score"),
  );
  const match = new Match(engine, settings, {
    onChange: () => show(match, board, analysis),
    onThought: () => showThought(match, board, analysis),
    onEnd: (reward) => score.count(reward, 1),
    onTakenBack: (reward) => score.count(reward, -1),
  });
  const board = new Board(element("board"), description, (action) =>
    match.choose(action),
  );
  const analysis = new Analysis(element("analysis"), description);
  connectControls(match, score, () => showThought(match, board, analysis));
  connectKeys(board);
  await match.begin(whoBegins());
}

function showLoading(share) {
  element("loading").value = share;
  element("loading").classList.toggle("done", share === 1);
}

function showDescription({ title, player, style }) {
  document.body.dataset.style = style;
  document.title = `${title} against ${player}`;
  element("title").textContent = title;
  element("player").textContent = player;
  element("main").classList.remove("waiting");
}

/** Sets up the slider; returns the simulations that its places stand for. */
function strengthsFor({ simulations }) {
  const strengths = [...new Set([...STRENGTHS, simulations])].sort((a, b) => a - b);
  const slider = element("strength");
  const show = () => {
    const number = strengths[slider.value];
    const text = `${number} ${number === 1 ? "simulation" : "simulations"} a move`;
    element("strength-text").textContent = text;
    slider.setAttribute("aria-valuetext", text);
  };
  slider.max = strengths.length - 1;
  slider.value = strengths.indexOf(simulations);
  slider.addEventListener("input", show);
  show();
  return strengths;
}

/** Returns which player the visitor wants to be in the next game; null for none. */
function whoBegins() {
  const { value } = document.querySelector("input[name=begins]:checked");
  return { you: 0, computer: 1, watch: null }[value];
}

function connectControls(match, score, refreshThought) {
  element("new-game").onclick = () => match.begin(whoBegins());
  element("undo").onclick = () => match.undo();
  element("pause").onclick = () => match.pause(!match.isPaused);
  element("reset-score").onclick = () => score.reset();
  element("strength").onchange = () => match.refresh();
  element("analysis").ontoggle = () => {
    match.refresh();
    refreshThought();
  };
  element("on-board").onchange = refreshThought;
  for (const input of document.querySelectorAll("input[name=begins]")) {
    input.onchange = () => match.begin(whoBegins());
  }
}

/** Digits point at columns or cells while no other control has the focus. */
function connectKeys(board) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { activeElement } = document;
    if (activeElement !== document.body && !board.buttons.includes(activeElement))
      return;
    const button = board.buttons[Number(event.key) - 1];
    if (!button) return;
    button.focus();
    button.click();
  });
}

function show(match, board, analysis) {
  const { sides } = board.description;
  board.show(match.position, match.isYourTurn);
  element("status").textContent = statusText(match, sides);
  element("busy").classList.toggle("on", match.isThinking && !match.isYourTurn);
  element("undo").disabled = !match.canUndo;
  element("pause").hidden = match.you !== null;
  element("pause").disabled = match.position.isOver;
  element("pause").textContent = match.isPaused ? "Go on" : "Pause";
  document.body.dataset.you = match.you ?? "nobody";
  element("board").dataset.turn = turnOf(match);
  element("board").dataset.moves = match.positions.length - 1;
  showThought(match, board, analysis);
}

function turnOf({ position, isYourTurn }) {
  if (position.isOver) return "nobody";
  return isYourTurn ? "visitor" : "computer";
}

function showThought(match, board, analysis) {
  if (!match.positions.length) return;
  const isShown = element("analysis").open;
  const thought = match.thoughts[match.positions.length - 1] ?? null;
  board.showThought(isShown && element("on-board").checked ? thought : null);
  if (isShown) analysis.show(match);
}

/** Says what happened last, and what is next. */
function statusText({ position, you, isPaused }, sides) {
  const { last, isOver, rewards, player } = position;
  if (isOver) {
    const winner = rewards.indexOf(1);
    if (winner < 0) return "A draw.";
    if (you === null) return `${sides[winner]} wins.`;
    return winner === you ? "You win!" : "The computer wins.";
  }
  const isYours = player === you;
  const mover = you === null ? sides[1 - player] : isYours ? "Computer" : "You";
  const news = last ? `${mover} played ${last.text}. ` : "";
  if (isYours) return last ? `${news}Your turn.` : `You begin, with ${sides[you]}.`;
  if (you !== null) return `${news}The computer thinks`;
  return isPaused ? `${news}Paused.` : `${news}${sides[player]} thinks`;
}

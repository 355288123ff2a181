/** Texts for people. */
import { CHANCE } from "./engine.js";

/**
 * Returns the result of a game.
 * @param {import("./engine.js").Position} position the last
 * @param {number|null} you the user's player, if any
 * @param {string[]} sides names of the players' pieces
 */
export function outcomeText({ rewards, resultText }, you, sides) {
  const winner = rewards.indexOf(1);
  const reason = resultText && `: ${resultText}`;
  if (winner < 0) return `A draw${reason}.`;
  if (you === null) return `A win for ${sides[winner]}${reason}.`;
  if (winner === you) return resultText ? `You win${reason}.` : "You win!";
  return `The computer wins${reason}.`;
}

/** Returns the title of a player with its rating, if it has one. */
export function playerText({ title, rating = null }) {
  return rating === null ? title : `${title} (${ratingText(rating)})`;
}

export function ratingText(rating) {
  const elo = Math.round(rating);
  return `Elo ${elo < 0 ? "−" : "+"}${Math.abs(elo)}`;
}

/** Returns a value with its sign. */
export function signed(value) {
  const size = Math.abs(value).toFixed(2);
  return `${value < 0 && Number(size) > 0 ? "−" : "+"}${size}`;
}

/** Returns the singular of a piece's name. */
export function singular(name) {
  return name
    .replace(/\bmen\b/, "man")
    .replace(/sses\b/, "ss")
    .replace(/([^s])s\b/, "$1");
}

/** Returns a share as a percentage. */
export function percent(share) {
  return `${Math.round(100 * share)}%`;
}

/** Returns the state of a training run as text. */
export function stateText({ state, share }) {
  const percentage = share === null ? "" : `${Math.floor(100 * share)}%`;
  if (state === "learning") return `training${percentage && `, ${percentage}`}`;
  if (state === "finished") return "finished";
  return `stopped${percentage && ` at ${percentage}`}`;
}

/**
 * Returns the last move and what happens next.
 * @param {import("./match.js").Match} match
 * @param {string[]} sides names of the players' pieces
 * @param {string} stage what runs before an answer, such as compiling
 */
export function statusText({ steps, position, you, isPaused, isStuck }, sides, stage) {
  const { isOver, player } = position;
  const news = newsText(steps, you, sides);
  const endsByChance = steps.at(-2)?.player === CHANCE;
  if (isOver) return `${endsByChance ? news : ""}${outcomeText(position, you, sides)}`;
  const isYours = player === you;
  if (isYours) {
    const isFirst = steps.slice(0, -1).every((step) => step.player === CHANCE);
    const turn = isFirst ? `You move first, with ${sides[you]}.` : "Your turn.";
    const yours = `${news}${turn}`;
    return stage ? `${yours} ${stage}` : yours;
  }
  if (isStuck) return `${news}The computer failed: choose another opponent, or start a new game.`;
  if (isPaused) return `${news}Paused.`;
  if (stage || player === CHANCE) return `${news}${stage}`;
  return you === null
    ? `${news}${capital(sides[player])} to move`
    : `${news}The computer is thinking`;
}

/** Returns the last move, and the outcome of chance after it. */
function newsText(steps, you, sides) {
  const { move } = steps.at(-1);
  if (!move) return "";
  const mover = steps.at(-2).player;
  const before = mover === CHANCE ? newsText(steps.slice(0, -1), you, sides) : "";
  if (mover === CHANCE) return `${before}${capital(move.text)}. `;
  return `${moverText(mover, you, sides)} played ${move.text}. `;
}

function moverText(mover, you, sides) {
  if (you === null) return capital(sides[mover]);
  return mover === you ? "You" : "Computer";
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

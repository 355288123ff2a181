/** The line above the board. */
import { outcomeText } from "./text_output.js";

/**
 * Returns the last move and what happens next.
 * @param {import("./match.js").Match} match
 * @param {string[]} sides names of the players' pieces
 * @param {string} stage what runs before an answer, such as compiling
 */
export function statusText({ position, you, isPaused, isStuck }, sides, stage) {
  const { last, isOver, player } = position;
  if (isOver) return outcomeText(position, you, sides);
  const isYours = player === you;
  const mover = you === null ? capital(sides[1 - player]) : isYours ? "Computer" : "You";
  const news = last ? `${mover} played ${last.text}. ` : "";
  if (isYours) {
    const yours = last ? `${news}Your turn.` : `You move first, with ${sides[you]}.`;
    return stage ? `${yours} ${stage}` : yours;
  }
  if (isStuck) return `${news}The computer failed: choose another opponent, or start a new game.`;
  if (isPaused) return `${news}Paused.`;
  if (stage) return `${news}${stage}`;
  return you === null
    ? `${news}${capital(sides[player])} to move`
    : `${news}The computer is thinking`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/** What people are told. */

/**
 * Says who has won.
 * @param {import("./engine.js").Position} position the last one
 * @param {number|null} you which player the visitor is, if any
 * @param {string[]} sides what the players are called
 */
export function outcomeText({ rewards, resultText }, you, sides) {
  const winner = rewards.indexOf(1);
  const reason = resultText && `: ${resultText}`;
  if (winner < 0) return `A draw${reason}.`;
  if (you === null) return `A win for ${sides[winner]}${reason}.`;
  if (winner === you) return resultText ? `You win${reason}.` : "You win!";
  return `The computer wins${reason}.`;
}

/** Returns what a player is called, with its rating where there is one. */
export function playerText({ title, rating = null }) {
  if (rating === null) return title;
  const elo = Math.round(rating);
  return `${title} (Elo ${elo < 0 ? "−" : "+"}${Math.abs(elo)})`;
}

/** Returns a value with its sign. */
export function signed(value) {
  const size = Math.abs(value).toFixed(2);
  return `${value < 0 && Number(size) > 0 ? "−" : "+"}${size}`;
}

/** Returns the name of one piece, from the name of several. */
export function singular(name) {
  return name
    .replace(/\bmen\b/, "man")
    .replace(/sses\b/, "ss")
    .replace(/([^s])s\b/, "$1");
}

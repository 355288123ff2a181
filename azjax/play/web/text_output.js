/** Texts for people. */

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

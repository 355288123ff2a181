/** Saved games; `azjax play GAME --load FILE` continues them. */

const RESULTS = { 1: "first wins", 0: "drawn", "-1": "second wins" };
const FORFEIT = ", the other side could not go on";

/**
 * @param {string} game its key
 * @param {string} computer name of the computer player
 * @param {import("./match.js").Match} match
 * @returns {{name: string, text: string}} of the file
 */
export function gameFile(game, computer, { steps, you, position }) {
  const [first, second] = [0, 1].map((side) => (side === you ? "human" : computer));
  const moves = steps.slice(1).map(({ move }) => move.text);
  const lines = [
    "azjax game 1",
    `game: ${game}`,
    `first: ${first}`,
    `second: ${second}`,
    `result: ${resultOf(position)}`,
    "",
  ];
  for (let ply = 0; ply < moves.length; ply += 2) {
    lines.push([`${ply / 2 + 1}.`, ...moves.slice(ply, ply + 2)].join(" "));
  }
  const name = `${game}-${new Date().toISOString().slice(0, 19)}`;
  return {
    name: `${name.replace(/[^\w.-]+/g, "-")}.txt`,
    text: `${lines.join("\n")}\n`,
  };
}

function resultOf({ isOver, isResigned, rewards }) {
  return isOver ? `${RESULTS[rewards[0]]}${isResigned ? FORFEIT : ""}` : "unfinished";
}

/** A game as azjax saves games: `azjax play GAME --load FILE` goes on with it. */

const RESULTS = { 1: "first wins", 0: "drawn", "-1": "second wins" };

/**
 * @param {string} game its name
 * @param {string[]} players who played, the first to move first
 * @param {string[]} moves as people write them
 * @param {import("./engine.js").Position} position after them
 * @returns {string}
 */
export function savedGame(game, players, moves, { isOver, rewards }) {
  const [first, second] = players.map((name) => name.replace(/\s+/g, " "));
  const lines = [
    "azjax game 1",
    `game: ${game}`,
    `first: ${first}`,
    `second: ${second}`,
    `result: ${isOver ? RESULTS[rewards[0]] : "unfinished"}`,
    "",
  ];
  for (let ply = 0; ply < moves.length; ply += 2) {
    lines.push([`${ply / 2 + 1}.`, ...moves.slice(ply, ply + 2)].join(" "));
  }
  return `${lines.join("\n")}\n`;
}

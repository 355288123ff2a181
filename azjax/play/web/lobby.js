/** What a server offers: games with their players, and training runs. */
import { fetchJson } from "./download.js";
import { tag } from "./html.js";
import { parsedSvg } from "./svg.js";

open().catch((error) => window.showFailure(`Nothing to show: ${error.message}`));

async function open() {
  const { games, runs } = await fetchJson("lobby.json");
  document.getElementById("games").append(...games.map(gameTile));
  document.getElementById("runs").append(...runs.map(runRow));
  document.getElementById("runs-section").hidden = runs.length === 0;
  document.getElementById("status").hidden = true;
  document.getElementById("main").classList.remove("waiting");
}

function gameTile({ key, title, players, picture }) {
  const address = `play/${encodeURIComponent(key)}/`;
  const drawn = parsedSvg(picture);
  drawn.setAttribute("aria-hidden", "true");
  const against = players.map(({ name, title }) =>
    tag(
      "li",
      {},
      tag("a", { href: `${address}?player=${encodeURIComponent(name)}` }, title),
    ),
  );
  return tag(
    "li",
    { className: "card" },
    tag("a", { href: address, className: "game" }, drawn, tag("strong", {}, title)),
    tag("ul", { ariaLabel: `Players of ${title}` }, ...against),
  );
}

function runRow({ key, game, title }) {
  const address = `runs/${encodeURIComponent(key)}/`;
  return tag("li", {}, tag("a", { href: address }, title), tag("span", {}, game));
}

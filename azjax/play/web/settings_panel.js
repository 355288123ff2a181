/** The settings: who moves first, the opponent and its strength. */

import { playerText } from "./texts.js";

const PLAYERS = { you: 0, computer: 1, watch: null };

// The weakest first. Simulations a move: null for the player's own number; fewer where the
// limit is lower. Temperature of the choice among its moves: 0 for the best one.
const LEVELS = [
  { name: "Beginner", simulations: 1, temperature: 3 },
  { name: "Casual", simulations: 1, temperature: 1.5 },
  { name: "Club", simulations: 25, temperature: 0.5 },
  { name: "Strong", simulations: null, temperature: 0 },
  { name: "Full", simulations: Infinity, temperature: 0 },
];
const DEFAULT = "Strong";

/**
 * @typedef {Object} Level
 * @property {number|null} simulations of the computer's search, null without a search
 * @property {number} temperature of its choice; 0 for the best move
 * @property {number|null} hints simulations for the user's positions
 */

export class SettingsPanel {
  #own = null; // simulations of the player
  #levels = []; // with the player's numbers of simulations

  /**
   * @param {HTMLElement} container of the elements of index.html
   * @param {{onGame: () => void, onStrength: () => void}} page called after a change that
   *     concerns the next game, or the next move
   */
  constructor(container, { onGame, onStrength }) {
    this.container = container;
    this.opponents = this.#find("opponent");
    this.strength = this.#find("strength");
    this.strength.replaceChildren(...LEVELS.map(({ name }) => new Option(name)));
    this.strength.value = DEFAULT;
    this.setups = this.#find("setup");
    this.opponents.onchange = this.setups.onchange = onGame;
    for (const { input } of this.#begins()) input.onchange = onGame;
    this.strength.onchange = () => {
      this.#showStrength();
      onStrength();
    };
  }

  /** The user's player in the next game, 0 or 1; null to watch. */
  get you() {
    return this.#begins().find(({ input }) => input.checked).player;
  }

  set you(you) {
    this.#begins().find(({ player }) => player === you).input.checked = true;
  }

  /** The name of the opponent in the next game, "" without a choice. */
  get player() {
    return this.opponents.value;
  }

  set player(name) {
    this.opponents.value = name;
  }

  /** The FEN of the first position in the next game, "" for the usual one. */
  get setup() {
    return this.setups.value.trim();
  }

  set setup(text) {
    this.setups.value = text;
  }

  /** @returns {Level} */
  get level() {
    const { simulations = null, temperature = 0 } = this.#level ?? {};
    return { simulations, temperature, hints: simulations && Math.max(simulations, this.#own) };
  }

  /** Sets the players to choose from. */
  setPlayers(players) {
    const options = players.map((player) => new Option(playerText(player), player.name));
    this.opponents.replaceChildren(...options);
    this.container.querySelector(".opponent").hidden = players.length < 2;
  }

  /** Sets the numbers of simulations of the levels; hides them without numbers. */
  setStrengths({ simulations, strengths }) {
    const all = [...strengths, simulations].sort((a, b) => a - b);
    const most = (wanted) => all.findLast((number) => number <= wanted);
    this.#own = simulations;
    this.#levels = strengths.length
      ? LEVELS.map((one) => ({ ...one, simulations: most(one.simulations ?? simulations) }))
      : [];
    this.container.querySelector(".strength").hidden = !strengths.length;
    this.#showStrength();
  }

  /** Shows whether a setting differs from the current game. */
  show(you, player, setup) {
    const isPlayer = !this.player || this.player === player;
    this.#find("later").hidden = this.you === you && this.setup === setup && isPlayer;
  }

  #find(id) {
    return this.container.querySelector(`#${id}`);
  }

  #begins() {
    return [...this.container.querySelectorAll("input[name=begins]")].map((input) => {
      return { input, player: PLAYERS[input.value] };
    });
  }

  get #level() {
    return this.#levels[this.strength.selectedIndex];
  }

  #showStrength() {
    if (!this.#level) return;
    const { simulations, temperature } = this.#level;
    const text = `${simulations} ${simulations === 1 ? "simulation" : "simulations"} a move`;
    const choice = temperature ? ", chosen by chance" : "";
    this.#find("strength-text").textContent = text + choice;
  }
}

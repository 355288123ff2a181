/** The settings: who moves first, the opponent and its strength. */

import { playerText } from "./text_output.js";

const PLAYERS = { you: 0, computer: 1, watch: null };

export class SettingsPanel {
  #strengths = [];

  /**
   * @param {HTMLElement} container of the elements of index.html
   * @param {{onGame: () => void, onStrength: () => void}} page called after a change that
   *     concerns the next game, or the next move
   */
  constructor(container, { onGame, onStrength }) {
    this.container = container;
    this.opponents = this.#find("opponent");
    this.slider = this.#find("strength");
    this.opponents.onchange = onGame;
    for (const { input } of this.#begins()) input.onchange = onGame;
    this.slider.oninput = () => this.#showStrength();
    this.slider.onchange = onStrength;
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

  get simulations() {
    return this.#strengths[this.slider.value] ?? null;
  }

  /** Sets the players to choose from. */
  setPlayers(players) {
    const options = players.map((player) => new Option(playerText(player), player.name));
    this.opponents.replaceChildren(...options);
    this.container.querySelector(".opponent").hidden = players.length < 2;
  }

  /** Sets the strengths of the slider; hides it without strengths. */
  setStrengths({ simulations, strengths }) {
    const all = strengths.length ? [...strengths, simulations] : [];
    this.#strengths = [...new Set(all)].sort((a, b) => a - b);
    this.container.querySelector(".strength").hidden = all.length === 0;
    this.slider.max = Math.max(0, this.#strengths.length - 1);
    this.slider.value = this.#strengths.indexOf(simulations);
    this.#showStrength();
  }

  /** Shows which settings differ from the current game. */
  show(you, player) {
    this.#find("begins-later").hidden = this.you === you;
    this.#find("opponent-later").hidden = !this.player || this.player === player;
  }

  #find(id) {
    return this.container.querySelector(`#${id}`);
  }

  #begins() {
    return [...this.container.querySelectorAll("input[name=begins]")].map((input) => {
      return { input, player: PLAYERS[input.value] };
    });
  }

  #showStrength() {
    const number = this.#strengths[this.slider.value];
    const text = `${number} ${number === 1 ? "simulation" : "simulations"} a move`;
    this.#find("strength-text").textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
  }
}

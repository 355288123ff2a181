/** The page: joins the game, the board and what is around it. */
import { Analysis } from "./analysis.js";
import { RefusedError } from "./engine.js";
import { Match } from "./match.js";
import { Score } from "./score.js";

/**
 * @typedef {Object} Options
 * @property {new (...parts) => Object} Board draws the description's style
 * @property {{name: string, title: string}[]} [players] to choose from
 * @property {string} [player] the name of the first one
 * @property {"you"|"computer"|"watch"} [begins] the first game; you, if nothing is said
 * @property {(description: import("./engine.js").Description, player?: string) => void}
 *     [onStart] called for each player that is chosen
 */

export class Page {
  #strengths = [];
  #problem = ""; // of the connection
  #refusal = ""; // of what was asked for last

  /**
   * @param {HTMLElement} container holds the elements of index.html
   * @param {import("./engine.js").Engine} engine
   * @param {Options} options
   * @param {(error: Error) => void} onFailure called when nothing more can be done
   */
  constructor(container, engine, options, onFailure) {
    this.container = container;
    this.engine = engine;
    this.options = options;
    this.onFailure = onFailure;
  }

  /** Shows the board, and begins a game. */
  async open() {
    const { Board, players = [], begins = "you" } = this.options;
    const { description, player, refusal } = await this.#startAny(players);
    this.match = new Match(this.engine, this.#settings(), {
      onChange: () => this.#show(),
      onThought: () => this.#showThought(),
      onEnd: (reward) => this.score.count(reward, 1),
      onTakenBack: (reward) => this.score.count(reward, -1),
    });
    this.board = new Board(
      this.find("board"),
      description,
      (action) => this.#do(() => this.match.choose(action)),
      (text) => this.engine.read(this.match.actions, text),
    );
    this.analysis = new Analysis(this.find("analysis"), description);
    this.container.querySelector(`[value=${begins}]`).checked = true;
    this.#showPlayers(players, player);
    this.#connectControls();
    this.#connectKeys();
    await this.match.begin(this.#whoBegins());
    this.#refusal = refusal;
    this.#showNotice();
  }

  /** Says what is wrong with the connection; "" for nothing. */
  showProblem(text) {
    this.#problem = text;
    this.#showNotice();
  }

  find(id) {
    return this.container.querySelector(`#${id}`);
  }

  /** Starts the player that is wanted, or else the first one that can be used. */
  async #startAny(players) {
    const wanted = this.options.player;
    const names = new Set([wanted, ...players.map(({ name }) => name)]);
    let refusal = "";
    for (const player of names) {
      try {
        return { description: await this.#start(player), player, refusal };
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
        refusal ||= error.message;
      }
    }
    throw new Error(refusal);
  }

  async #start(player) {
    const description = await this.engine.start((share) => {
      this.find("loading").value = share;
      this.find("loading").classList.toggle("done", share === 1);
    }, player);
    this.container.dataset.style = description.style;
    this.find("title").textContent = description.title;
    this.find("player").textContent = description.player;
    this.find("main").classList.remove("waiting");
    this.#showColours(description);
    this.#showStrengths(description);
    this.score = new Score(
      `${description.game}: ${description.player}`,
      this.find("score"),
    );
    this.options.onStart?.(description, player);
    return description;
  }

  /** Gives the sides the colours of their pieces in the picture. */
  #showColours({ figures = [] }) {
    [figures[0], figures[figures.length / 2]].forEach((figure, side) => {
      const [, colour] =
        figure?.match(/fill="(#\w+)"/) ?? figure?.match(/stroke="(#\w+)"/) ?? [];
      if (colour) this.container.style.setProperty(`--side-${side}`, colour);
    });
  }

  #settings() {
    const simulations = () => this.#strengths[this.find("strength").value] ?? null;
    const analyses = () => this.find("analysis").open;
    return {
      get simulations() {
        return simulations();
      },
      get analyses() {
        return analyses();
      },
    };
  }

  /** Does what was asked for; says so if it is refused. */
  async #do(action) {
    try {
      await action();
    } catch (error) {
      if (!(error instanceof RefusedError)) {
        this.onFailure(error);
        return;
      }
      this.#show();
      this.#refusal = error.message;
      this.#showNotice();
    }
  }

  #showNotice() {
    const text = this.#problem || this.#refusal;
    this.find("notice").textContent = text;
    this.find("notice").hidden = text === "";
  }

  /** Sets up the slider, where the player has strengths. */
  #showStrengths({ simulations, strengths }) {
    const all = strengths.length ? [...strengths, simulations] : [];
    this.#strengths = [...new Set(all)].sort((a, b) => a - b);
    const slider = this.find("strength");
    this.container.querySelector(".strength").hidden = all.length === 0;
    slider.max = Math.max(0, this.#strengths.length - 1);
    slider.value = this.#strengths.indexOf(simulations);
    this.#showStrength();
  }

  #showStrength() {
    const slider = this.find("strength");
    const number = this.#strengths[slider.value];
    const text = `${number} ${number === 1 ? "simulation" : "simulations"} a move`;
    this.find("strength-text").textContent = text;
    slider.setAttribute("aria-valuetext", text);
  }

  /** Lets the visitor choose among the players, where there are several. */
  #showPlayers(players, chosen) {
    const select = this.find("opponent");
    select.replaceChildren(
      ...players.map(({ name, title }) => new Option(title, name, false, name === chosen)),
    );
    this.container.querySelector(".opponent").hidden = players.length < 2;
    select.onchange = () =>
      this.#do(async () => {
        await this.#start(select.value);
        await this.match.begin(this.#whoBegins());
      });
  }

  /** Returns which player the visitor wants to be in the next game; null for none. */
  #whoBegins() {
    const { value } = this.container.querySelector("input[name=begins]:checked");
    return { you: 0, computer: 1, watch: null }[value];
  }

  #connectControls() {
    const { match } = this;
    const on = (id, event, action) => {
      this.find(id)[event] = () => this.#do(action);
    };
    on("new-game", "onclick", () => match.begin(this.#whoBegins()));
    on("undo", "onclick", () => match.undo());
    on("pause", "onclick", () => match.pause(!match.isPaused));
    on("reset-score", "onclick", () => this.score.reset());
    on("strength", "oninput", () => this.#showStrength());
    on("strength", "onchange", () => match.refresh());
    on("analysis", "ontoggle", () => {
      this.#showThought();
      return match.refresh();
    });
    on("on-board", "onchange", () => this.#showThought());
    for (const input of this.container.querySelectorAll("input[name=begins]")) {
      input.onchange = () => this.#do(() => match.begin(this.#whoBegins()));
    }
  }

  /** Digits point at columns or cells while no other control has the focus. */
  #connectKeys() {
    const { buttons } = this.board;
    this.container.addEventListener("keydown", (event) => {
      if (buttons.length > 9 || event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.target !== this.container && !buttons.includes(event.target)) return;
      const button = buttons[Number(event.key) - 1];
      if (!button) return;
      button.focus();
      button.click();
    });
  }

  #show() {
    const { match } = this;
    this.#refusal = "";
    this.#showNotice();
    this.board.show(match.position, match.isYourTurn);
    this.find("status").textContent = statusText(match, this.board.description.sides);
    this.find("busy").classList.toggle("on", match.isThinking && !match.isYourTurn);
    this.find("undo").disabled = !match.canUndo;
    this.find("pause").hidden = match.you !== null;
    this.find("pause").disabled = match.position.isOver;
    this.find("pause").textContent = match.isPaused ? "Go on" : "Pause";
    this.container.dataset.you = match.you ?? "nobody";
    this.find("board").dataset.turn = turnOf(match);
    this.find("board").dataset.moves = match.positions.length - 1;
    this.#showThought();
  }

  #showThought() {
    const { match } = this;
    if (!match.positions.length) return;
    const isShown = this.find("analysis").open;
    const thought = match.thoughts[match.positions.length - 1] ?? null;
    this.board.showThought(isShown && this.find("on-board").checked ? thought : null);
    if (isShown) this.analysis.show(match);
  }
}

function turnOf({ position, isYourTurn }) {
  if (position.isOver) return "nobody";
  return isYourTurn ? "visitor" : "computer";
}

/** Says what happened last, and what is next. */
function statusText({ position, you, isPaused, isStuck }, sides) {
  const { last, isOver, rewards, player } = position;
  if (isOver) {
    const winner = rewards.indexOf(1);
    if (winner < 0) return "A draw.";
    if (you === null) return `A win for ${sides[winner]}.`;
    return winner === you ? "You win!" : "The computer wins.";
  }
  const isYours = player === you;
  const mover = you === null ? capital(sides[1 - player]) : isYours ? "Computer" : "You";
  const news = last ? `${mover} played ${last.text}. ` : "";
  if (isYours) return last ? `${news}Your turn.` : `You begin, with ${sides[you]}.`;
  if (isStuck) return `${news}The computer does not go on: begin a new game.`;
  if (you !== null) return `${news}The computer thinks`;
  return isPaused ? `${news}Paused.` : `${news}${capital(sides[player])} to move`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

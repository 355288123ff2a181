/** The page of a game: connects the game, the board and the panels. */
import { Analysis } from "./analysis.js";
import { Board } from "./board.js";
import { RefusedError } from "./engine.js";
import { Match } from "./match.js";
import { lookingText, MoveList } from "./move_list.js";
import { Review } from "./review.js";
import { GameExport, gameFile } from "./saving.js";
import { Score } from "./score.js";
import { SettingsPanel } from "./settings_panel.js";
import { percent, statusText } from "./texts.js";
import { decisionAt } from "./tree_view.js";

const MOST_DIGITS = 9;
const NEEDS_ARROWS = "input:not([type=radio], [type=checkbox]), textarea, .piece-choice, #tree";
const NAVIGATION = ["Tab", "ArrowUp", "ArrowDown"];

/**
 * @typedef {Object} Options
 * @property {typeof import("./saving.js").address} [address] stores the game, if the page
 *     has its own address
 * @property {{name: string, title: string, rating?: number|null}[]} [players] offered
 *     players; ratings are Elo
 * @property {string} [player] name of the first player
 * @property {string} [setup] FEN of the first position, "" for the usual one
 * @property {Object|null} [reviewed] a game to review, as `Engine.read` returns it
 * @property {"you"|"computer"|"watch"} [begins] who moves first in the first game; default
 *     "you"
 * @property {(description: import("./engine.js").Description, player?: string,
 *     setup: string) => void} [onStart] called for each started player
 */

export class Page {
  #problem = ""; // of the connection
  #stage = ""; // what runs before an answer
  #isStarting = false; // whether the rules or a player are being started
  #refusal = ""; // error of the last action

  /**
   * @param {HTMLElement} container of the elements of index.html
   * @param {import("./engine.js").Engine} engine
   * @param {Options} options
   * @param {(error: Error) => void} onFailure called after a fatal error
   */
  constructor(container, engine, options, onFailure) {
    this.container = container;
    this.engine = engine;
    this.options = options;
    this.onFailure = onFailure;
  }

  /** Shows the game in the address, or else a new one. */
  async open() {
    const { address, players = [], setup = "", begins = "you" } = this.options;
    this.container.querySelector(`[value=${begins}]`).checked = true;
    this.settings = new SettingsPanel(this.container, {
      onGame: () => this.#do(() => this.#applySettings()),
      onStrength: () => this.#do(() => this.match.refresh()),
    });
    this.settings.setPlayers(players);
    this.settings.setup = setup;
    this.engine.onStage = (stage) => this.#showStage(stage);
    this.find("flip").onclick = () => {
      this.board?.flip();
      this.#show();
    };
    await this.#startAny(players);
    this.match = new Match(this.engine, this.#matchSettings(), {
      onChange: () => this.#show(),
      onDecision: () => {
        if (this.#stage) this.#showStage("");
        else this.#showDecision();
      },
      onEnd: (reward) => this.score.count(reward, this.#gameText()),
      onTakenBack: (reward) => this.score.takeBack(reward, this.#gameText()),
    });
    this.board ??= this.#makeBoard(this.description);
    this.moveList = new MoveList(
      this.find,
      (ply) => this.#do(() => this.match.look(ply)),
      (steps) => this.#step(steps),
    );
    this.gameExport = new GameExport(this.find, address, () => this.#file());
    this.analysis = new Analysis(this.find("analysis"), this.description, (step, moves) =>
      this.#lookAhead(step, moves),
    );
    this.review = new Review(this.find, this.engine, players, {
      attempt: (action) => this.#do(action),
      onChange: () => this.#show(),
      match: this.match,
      sides: this.description.sides,
    });
    this.#connectControls();
    for (const waiting of this.container.querySelectorAll("[inert]")) waiting.inert = false;
    connectKeys(this.container, this.board.buttons, (steps) => this.#step(steps));
    address?.onOtherGame(() => this.#do(() => this.#openLinked()));
    while (this.#isOpponentNew || this.#isSetupNew) {
      await this.#attempt(() => this.#startOpponent());
    }
    const { reviewed } = this.options;
    await this.#attempt(() => (reviewed ? this.review.open(reviewed) : this.#openLinked()));
    if (!this.match.steps.length) await this.#attempt(() => this.match.start(this.settings.you));
  }

  /** Shows a problem of the connection; "" for none. */
  showProblem(text) {
    this.#problem = text;
    this.#showNotice();
  }

  #makeBoard(description) {
    const { targets, board } = description;
    this.find("flip").hidden = targets === "columns" || !board.pieces.length;
    return new Board(
      this.find("board"),
      description,
      (action) => this.#do(() => this.match.play(action)),
      (text) => this.engine.parse(this.match.actions, text),
    );
  }

  /** Shows the first position until the game is ready, unless the address has a game. */
  #preview({ description, position }) {
    if (this.match || this.board || this.settings.setup || this.#isLinked) return;
    this.#describe(description);
    this.board = this.#makeBoard(description);
    this.board.show(position, false, this.settings.you);
  }

  get #isLinked() {
    try {
      return Boolean(this.options.address?.readGame());
    } catch {
      return false;
    }
  }

  /** Shows what runs before an answer; "" for nothing. */
  #showStage(stage) {
    this.#stage = stage;
    if (this.match) {
      this.#show();
      return;
    }
    this.find("status").textContent = stage;
    this.find("busy").classList.add("on");
  }

  find = (id) => this.container.querySelector(`#${id}`);

  /** Starts the wanted player and position, or else the first ones that work. */
  async #startAny(players) {
    const names = new Set([this.options.player, ...players.map(({ name }) => name)]);
    for (const player of names) {
      for (const setup of new Set([this.settings.setup, ""])) {
        Object.assign(this.settings, { player, setup });
        try {
          await this.#start(player, setup);
          return;
        } catch (error) {
          if (!(error instanceof RefusedError)) throw error;
          this.#refusal ||= error.message;
        }
      }
    }
    throw new Error(this.#refusal);
  }

  async #start(player, setup) {
    this.#isStarting = true;
    const description = await this.engine
      .start(
        (share) => {
          this.find("loading").value = share;
          this.find("loading").classList.toggle("done", share === 1);
          const percentage = `Downloading the player: ${percent(share)}`;
          if (share < 1) this.#showStage(share < 0.99 ? percentage : "Compiling the player");
          else if (this.match) this.#showStage("");
        },
        player,
        (preview) => this.#preview(preview),
        setup,
      )
      .finally(() => {
        this.#isStarting = false;
      });
    this.description = description;
    this.player = player;
    this.setup = setup;
    this.#describe(description);
    this.find("player").textContent = description.player;
    this.find("search").textContent = description.search ?? "";
    this.find("halving").hidden = !description.search?.includes("Gumbel");
    this.settings.setStrengths(description);
    this.score = new Score(
      `${description.game}: ${description.player}`,
      this.find("score"),
    );
    this.options.onStart?.(description, player, setup);
  }

  /** Shows the title and the colors of a game. */
  #describe(description) {
    this.find("title").textContent = description.title;
    this.container.querySelector(".setup").hidden = !(description.hasFen && this.engine.setsUp);
    const { pieces, sideColors } = description.board; // by default those of the pieces
    [pieces[0], pieces[pieces.length / 2]].forEach((piece, side) => {
      const [, ofPiece] =
        piece?.match(/fill="(#\w+)"/) ?? piece?.match(/stroke="(#\w+)"/) ?? [];
      const color = sideColors?.[side] ?? ofPiece;
      if (color) this.container.style.setProperty(`--side-${side}`, color);
    });
  }

  #matchSettings() {
    const { settings } = this;
    const analysis = this.find("analysis");
    const isReviewing = () => this.review.isRunning; // a search would end the review
    return {
      get level() {
        return settings.level;
      },
      get analyzes() {
        return analysis.open && !isReviewing();
      },
    };
  }

  /** Runs an action of the user. */
  async #do(action) {
    this.#refusal = "";
    this.#showNotice();
    await this.#attempt(action);
  }

  /** Runs an action; shows its error if the engine rejects it. */
  async #attempt(action) {
    try {
      await action();
    } catch (error) {
      if (!(error instanceof RefusedError)) {
        this.onFailure(error);
        return;
      }
      this.#show();
      this.#refusal = error.message;
    }
    this.#showNotice();
  }

  #showNotice() {
    const text = this.#problem || this.#refusal;
    this.find("notice").textContent = text;
    this.find("notice").hidden = text === "";
  }

  /** Opens the game in the address, or else a new one. */
  async #openLinked() {
    if (await this.#loadLinked()) await this.match.resume();
    else await this.match.start(this.settings.you);
  }

  async #loadLinked() {
    try {
      const game = this.options.address?.readGame();
      if (!game) return false;
      await this.match.load(game.you, game.actions);
      this.settings.you = this.match.order;
      return true;
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      throw new RefusedError(`The link has no valid game: ${error.message}`);
    }
  }

  /**
   * Applies changed settings: starts a game unless one is under way. Before the first
   * move, or after a failure, a new opponent continues the game.
   */
  async #applySettings() {
    const { settings, match } = this;
    if (!match?.steps.length) return; // they apply to the game that is being loaded
    const isUntouched = match.steps.length === 1 && match.order === settings.you;
    const isReplaced = this.#isOpponentNew && !this.#isSetupNew;
    if (isReplaced && (isUntouched || match.isStuck)) {
      await this.#startOpponent();
      await match.changePlayer();
    } else if (!match.isUnderWay) await this.#startGame();
    else this.#show();
  }

  /** Starts a game with the current settings; keeps the old game on an error. */
  async #startGame() {
    if (this.#isOpponentNew || this.#isSetupNew) await this.#startOpponent();
    await this.match.start(this.settings.you);
  }

  get #isOpponentNew() {
    const { player } = this.settings;
    return Boolean(player) && player !== this.player;
  }

  get #isSetupNew() {
    return this.settings.setup !== this.setup;
  }

  async #startOpponent() {
    const { settings, match, player, setup } = this;
    try {
      await this.#start(settings.player, settings.setup);
    } catch (error) {
      Object.assign(settings, { player, setup });
      // The start has cancelled a decision.
      if (error instanceof RefusedError && match.steps.length) match.resume();
      throw error;
    }
  }

  /** Shows the next or previous position of the game or of the tree. */
  #step(steps) {
    this.#do(() => {
      const { ahead, shown, ply } = this.match;
      if (!ahead) return this.match.look(ply + steps);
      const { moves } = decisionAt(shown.tree ?? [], ahead.moves);
      const after = steps > 0 ? [...ahead.moves, ...moves.slice(0, 1)] : null;
      return this.match.lookAhead(shown, after ?? ahead.moves.slice(0, -1));
    });
  }

  async #lookAhead(step, moves) {
    await this.#do(() => this.match.lookAhead(step, moves));
    const [board, tree] = ["board", "tree"].map((id) =>
      this.find(id).getBoundingClientRect(),
    );
    // In the narrow layout the tree is far below the board.
    if (tree.left < board.right) this.find("status").scrollIntoView({ block: "nearest" });
  }

  #connectControls() {
    const { match } = this;
    const on = (id, event, action) => {
      this.find(id)[event] = () => this.#do(action);
    };
    on("new-game", "onclick", () => this.#startGame());
    on("undo", "onclick", () => match.undo());
    on("resign", "onclick", () => match.resign());
    on("pause", "onclick", () => match.pause(!match.isPaused));
    on("reset-score", "onclick", () => this.score.reset());
    on("analysis", "ontoggle", () => {
      this.#showDecision();
      return match.refresh();
    });
    on("on-board", "onchange", () => this.#showDecision());
  }

  #gameText() {
    return `${this.match.you} ${this.match.actions.join("-")}`;
  }

  #file() {
    const { game, player } = this.description;
    return gameFile(game, this.player ?? player, this.match);
  }

  #show() {
    const { match } = this;
    if (!match?.shown?.position) return; // not answered yet
    const { shown, ahead } = match;
    const { sides } = this.description;
    const isLoading = this.#isStarting || this.find("loading").value < 1;
    const isWaiting = match.isThinking || isLoading;
    if (!isWaiting) this.#stage = "";
    const isLooking = match.isLookingBack || ahead !== null;
    const { position } = ahead ?? shown;
    this.board.show(position, match.isYourTurn && !isLooking, match.you);
    this.find("status").textContent = isLooking
      ? lookingText(match, sides)
      : statusText(match, sides, this.#stage);
    const isBusy = isWaiting && (match.isComputersTurn || this.#stage !== "");
    this.find("busy").classList.toggle("on", isBusy);
    this.find("undo").disabled = !match.canUndo;
    this.find("resign").hidden = match.you === null;
    this.find("resign").disabled = !match.isUnderWay;
    this.find("pause").hidden = match.you !== null;
    this.find("pause").disabled = match.position.isOver;
    this.find("pause").textContent = match.isPaused ? "Continue" : "Pause";
    this.container.dataset.you = match.you ?? "nobody";
    const turn = match.isYourTurn ? "user" : "computer";
    this.find("board").dataset.turn = match.position.isOver ? "nobody" : turn;
    this.find("board").dataset.moves = match.steps.length - 1;
    this.find("board").dataset.ply = match.ply;
    this.moveList.show(match.steps, match.ply, ahead !== null);
    this.review.show();
    this.moveList.showMarks(this.review.moves);
    if (!this.#isStarting) this.settings.show(match.order, this.player, this.setup);
    this.find("save-game").hidden = this.setup !== ""; // its file has moves only
    this.options.address?.writeGame(match.you, match.actions);
    this.gameExport.show();
    this.#showDecision();
  }

  #showDecision() {
    const { match } = this;
    const { shown, ahead } = match;
    if (!shown?.position) return;
    const isShown = this.find("analysis").open;
    const isDrawn = isShown && this.find("on-board").checked;
    const decision = ahead ? decisionAt(shown.tree ?? [], ahead.moves) : shown.decision;
    this.board.showDecision(isDrawn ? decision : null);
    this.board.showBetter(this.review.shownMove);
    if (!isShown) return;
    this.analysis.show(match);
  }
}

/**
 * Digits press the board's buttons if there are at most nine; ← and → step through the
 * game. For users who navigate by keyboard, arrows on the board move the focus instead.
 * @param {HTMLElement} container
 * @param {HTMLButtonElement[]} buttons of the board
 * @param {(steps: number) => void} onLook called to show an earlier or later position
 */
function connectKeys(container, buttons, onLook) {
  let navigates = true; // whether the user moves the focus by keyboard
  container.addEventListener("pointerdown", () => (navigates = false), { capture: true });
  const onKey = (event) => {
    const { key, target, ctrlKey, altKey, metaKey } = event;
    if (ctrlKey || altKey || metaKey) return;
    navigates ||= NAVIGATION.includes(key);
    const steps = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (steps && !target.closest(navigates ? `${NEEDS_ARROWS}, #board` : NEEDS_ARROWS)) {
      event.preventDefault();
      event.stopPropagation();
      onLook(steps);
    }
    const isOnBoard = target === container || buttons.includes(target);
    const button = buttons[Number(key) - 1];
    if (!button || !isOnBoard || buttons.length > MOST_DIGITS) return;
    button.focus();
    button.click();
  };
  container.addEventListener("keydown", onKey, { capture: true });
}

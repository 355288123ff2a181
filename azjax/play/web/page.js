/** The page: joins the game, the board and what is around it. */
import { Analysis } from "./analysis.js";
import { SettingsPanel } from "./settings_panel.js";
import { RefusedError } from "./engine.js";
import { connectKeys } from "./keys.js";
import { Match } from "./match.js";
import { lookingText, MoveList } from "./move_list.js";
import { gameFile } from "./saved_game.js";
import { Score } from "./score.js";
import { GameExport } from "./export_game.js";
import { thoughtAt } from "./tree_view.js";
import { outcomeText } from "./text_output.js";

/**
 * @typedef {Object} Options
 * @property {new (...parts) => Object} Board draws the description's style
 * @property {typeof import("./address.js").address} [address] holds the game, if the page
 *     has an address of its own
 * @property {{name: string, title: string, rating?: number|null}[]} [players] to choose
 *     from; ratings are Elo
 * @property {string} [player] the name of the first one
 * @property {"you"|"computer"|"watch"} [begins] the first game; you, if nothing is said
 * @property {(description: import("./engine.js").Description, player?: string) => void}
 *     [onStart] called for each player that is chosen
 */

export class Page {
  #problem = ""; // of the connection
  #stage = ""; // what is done before an answer begins
  #isStarting = false; // whether a player is being loaded
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

  /** Shows the board, with the game that the address holds, or else a new one. */
  async open() {
    const { address, players = [], begins = "you" } = this.options;
    this.container.querySelector(`[value=${begins}]`).checked = true;
    this.choices = new SettingsPanel(this.container, {
      onGame: () => this.#do(() => this.#takeUpChoice()),
      onStrength: () => this.#do(() => this.match.refresh()),
    });
    this.choices.offer(players);
    this.engine.onStage = (stage) => this.#showStage(stage);
    await this.#startAny(players);
    this.match = new Match(this.engine, this.#settings(), {
      onChange: () => this.#show(),
      onThought: () => {
        if (this.#stage) this.#showStage("");
        else this.#showThought();
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
    this.sharing = new GameExport(this.find, address, () => this.#file());
    this.analysis = new Analysis(this.find("analysis"), this.description, (step, moves) =>
      this.#lookAhead(step, moves),
    );
    this.#connectControls();
    connectKeys(this.container, this.board.buttons, (steps) => this.#step(steps));
    address?.onOtherGame(() => this.#do(() => this.#openLinked()));
    await this.#attempt(() => this.#openLinked());
    if (this.match.steps.length) return;
    await this.#attempt(() => this.match.begin(this.choices.you));
  }

  /** Says what is wrong with the connection; "" for nothing. */
  showProblem(text) {
    this.#problem = text;
    this.#showNotice();
  }

  #makeBoard(description) {
    return new this.options.Board(
      this.find("board"),
      description,
      (action) => this.#do(() => this.match.choose(action)),
      (text) => this.engine.read(this.match.actions, text),
    );
  }

  /** Draws the first position while the game cannot begin, unless a link holds another. */
  #preview({ description, position }) {
    if (this.match || this.board || this.#isLinked) return;
    this.#describe(description);
    this.board = this.#makeBoard(description);
    this.board.show(position, false, this.choices.you);
  }

  get #isLinked() {
    try {
      return Boolean(this.options.address?.readGame());
    } catch {
      return false;
    }
  }

  /** Says what is done before an answer begins; "" when it has begun. */
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

  /** Starts the player that is wanted, or else the first one that can be used. */
  async #startAny(players) {
    const names = new Set([this.options.player, ...players.map(({ name }) => name)]);
    for (const player of names) {
      try {
        await this.#start(player);
        return;
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
        this.#refusal ||= error.message;
      }
    }
    throw new Error(this.#refusal);
  }

  async #start(player) {
    this.#isStarting = true;
    const description = await this.engine
      .start(
        (share) => {
          this.find("loading").value = share;
          this.find("loading").classList.toggle("done", share === 1);
        },
        player,
        (preview) => this.#preview(preview),
      )
      .finally(() => {
        this.#isStarting = false;
      });
    this.description = description;
    this.player = player;
    this.#describe(description);
    this.find("player").textContent = description.player;
    this.find("search").textContent = description.search ?? "";
    this.choices.player = player;
    this.choices.offerStrengths(description);
    this.score = new Score(
      `${description.game}: ${description.player}`,
      this.find("score"),
    );
    this.options.onStart?.(description, player);
  }

  /** Shows what a game is. */
  #describe(description) {
    this.container.dataset.style = description.style;
    this.find("title").textContent = description.title;
    this.#showColours(description);
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
    const { choices } = this;
    const analysis = this.find("analysis");
    return {
      get simulations() {
        return choices.simulations;
      },
      get analyses() {
        return analysis.open;
      },
    };
  }

  /** Does what the visitor asked for. */
  async #do(action) {
    this.#refusal = "";
    this.#showNotice();
    await this.#attempt(action);
  }

  /** Does something; says so if it is refused. */
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

  /** Opens the game that the address holds; a new one if there is none. */
  async #openLinked() {
    if (await this.#loadLinked()) await this.match.resume();
    else await this.match.begin(this.choices.you);
  }

  async #loadLinked() {
    try {
      const game = this.options.address?.readGame();
      if (!game) return false;
      await this.match.load(game.you, game.actions);
      this.choices.you = game.you;
      return true;
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      throw new RefusedError(`The link holds no game: ${error.message}`);
    }
  }

  /**
   * Begins a game, unless one would be lost by it: then it is for the next one. Where
   * nobody has moved, or the computer could not go on, another opponent does.
   */
  async #takeUpChoice() {
    const { choices, match } = this;
    const isUntouched = match.steps.length === 1 && match.you === choices.you;
    if (this.#isOpponentNew && (isUntouched || match.isStuck)) {
      await this.#meetChosen();
      await match.meet();
    } else if (!match.isUnderWay) await this.#begin();
    else this.#show();
  }

  /** Begins a game as the visitor chose; nothing has changed if that is refused. */
  async #begin() {
    if (this.#isOpponentNew) await this.#meetChosen();
    await this.match.begin(this.choices.you);
  }

  get #isOpponentNew() {
    const { player } = this.choices;
    return Boolean(player) && player !== this.player;
  }

  async #meetChosen() {
    const { choices, match } = this;
    try {
      await this.#start(choices.player);
    } catch (error) {
      choices.player = this.player;
      if (error instanceof RefusedError) match.resume(); // a thought may be lost
      throw error;
    }
  }

  /** Looks at the position before or after: of the game, or of the tree. */
  #step(steps) {
    this.#do(() => {
      const { ahead, shown, ply } = this.match;
      if (!ahead) return this.match.look(ply + steps);
      const { moves } = thoughtAt(shown.tree ?? [], ahead.moves);
      const after = steps > 0 ? [...ahead.moves, ...moves.slice(0, 1)] : null;
      return this.match.lookAhead(shown, after ?? ahead.moves.slice(0, -1));
    });
  }

  async #lookAhead(step, moves) {
    await this.#do(() => this.match.lookAhead(step, moves));
    const [board, tree] = ["board", "tree"].map((id) =>
      this.find(id).getBoundingClientRect(),
    );
    // Where the tree is far below the board, and not beside it.
    if (tree.left < board.right) this.find("status").scrollIntoView({ block: "nearest" });
  }

  #connectControls() {
    const { match } = this;
    const on = (id, event, action) => {
      this.find(id)[event] = () => this.#do(action);
    };
    on("new-game", "onclick", () => this.#begin());
    on("undo", "onclick", () => match.undo());
    on("pause", "onclick", () => match.pause(!match.isPaused));
    on("reset-score", "onclick", () => this.score.reset());
    on("analysis", "ontoggle", () => {
      this.#showThought();
      return match.refresh();
    });
    on("on-board", "onchange", () => this.#showThought());
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
    const { shown, ahead } = match;
    if (!shown?.position) return; // as long as it is only asked for
    this.find("main").classList.remove("preparing");
    const { sides } = this.description;
    const isWaiting = match.isThinking || this.#isStarting;
    if (!isWaiting) this.#stage = "";
    const isLooking = match.isLookingBack || ahead !== null;
    const { position } = ahead ?? shown;
    this.board.show(position, match.isYourTurn && !isLooking, match.you);
    this.find("status").textContent = isLooking
      ? lookingText(match, sides)
      : statusText(match, sides, this.#stage);
    this.find("busy").classList.toggle("on", isWaiting && match.isComputersTurn);
    this.find("undo").disabled = !match.canUndo;
    this.find("pause").hidden = match.you !== null;
    this.find("pause").disabled = match.position.isOver;
    this.find("pause").textContent = match.isPaused ? "Go on" : "Pause";
    this.container.dataset.you = match.you ?? "nobody";
    this.find("board").dataset.turn = turnOf(match);
    this.find("board").dataset.moves = match.steps.length - 1;
    this.find("board").dataset.ply = match.ply;
    this.moveList.show(
      match.steps.slice(1).map(({ move }) => move),
      match.ply,
      ahead !== null,
    );
    this.choices.show(match.you, this.player);
    this.options.address?.writeGame(match.you, match.actions);
    this.sharing.show();
    this.#showThought();
  }

  #showThought() {
    const { match } = this;
    if (!match.shown?.position) return;
    const isShown = this.find("analysis").open;
    const isDrawn = isShown && this.find("on-board").checked;
    this.board.showThought(isDrawn ? thoughtOn(match) : null);
    if (!isShown) return;
    this.analysis.show(match);
    if (match.isThinking && this.#stage) this.analysis.showStage(this.#stage);
  }
}

/** Returns what was thought of the moves in the position that is looked at. */
function thoughtOn({ shown: { thought, tree }, ahead }) {
  return ahead ? thoughtAt(tree ?? [], ahead.moves) : thought;
}

function turnOf({ position, isYourTurn }) {
  if (position.isOver) return "nobody";
  return isYourTurn ? "visitor" : "computer";
}

/** Says what happened last, and what is next. */
function statusText({ position, you, isPaused, isStuck }, sides, stage) {
  const { last, isOver, player } = position;
  if (isOver) return outcomeText(position, you, sides);
  const isYours = player === you;
  const mover = you === null ? capital(sides[1 - player]) : isYours ? "Computer" : "You";
  const news = last ? `${mover} played ${last.text}. ` : "";
  if (isYours) return last ? `${news}Your turn.` : `You begin, with ${sides[you]}.`;
  if (isStuck) return `${news}The computer cannot go on: choose another opponent, or begin a new game.`;
  if (isPaused) return `${news}Paused.`;
  if (stage) return `${news}${stage}`;
  return you === null
    ? `${news}${capital(sides[player])} to move`
    : `${news}The computer thinks`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

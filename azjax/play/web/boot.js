// Runs where modules do not, to say why there is no game.
(() => {
  const needs = {
    "module workers": () => typeof Worker === "function",
    WebAssembly: () => typeof WebAssembly === "object",
    DecompressionStream: () => typeof DecompressionStream === "function",
  };

  const problem = () => {
    if (location.protocol === "file:") {
      return (
        "This page does not work as a file: it must come from a web server. In its " +
        "folder run “python -m http.server”, then open http://localhost:8000."
      );
    }
    const missing = Object.keys(needs).filter((name) => !needs[name]());
    if (missing.length) {
      return (
        `This browser is too old for the player: it lacks ${missing.join(", ")}. ` +
        "Firefox 114, Chrome 91, Safari 16.4 or anything newer will do."
      );
    }
    return null;
  };

  window.showFailure = (message) => {
    const show = () => {
      const element = document.getElementById("failure");
      element.textContent = message;
      element.hidden = false;
      document.getElementById("main").hidden = true;
    };
    if (document.readyState === "loading") {
      document.addEventListener("DOMContentLoaded", show);
    } else {
      show();
    }
  };

  const message = problem();
  if (message) {
    window.showFailure(message);
  } else {
    // A script that does not arrive is told to its element only.
    document.addEventListener(
      "error",
      ({ target }) => {
        if (target.tagName === "SCRIPT") {
          window.showFailure("Part of the page did not load. Try again in a while.");
        }
      },
      true,
    );
  }
})();

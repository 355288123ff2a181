// A classic script: loads the page's module, or shows an error where modules do not work.
(() => {
  const { module } = document.currentScript.dataset;
  const needs = {
    "module workers": () => typeof Worker === "function",
    WebAssembly: () => typeof WebAssembly === "object",
    DecompressionStream: () => typeof DecompressionStream === "function",
    "light-dark()": () => CSS.supports("color", "light-dark(red, red)"),
  };

  const problem = () => {
    if (location.protocol === "file:") {
      return (
        "This page must be served by a web server. In its " +
        "folder run “python -m http.server”, then open http://localhost:8000."
      );
    }
    const missing = Object.keys(needs).filter((name) => !needs[name]());
    if (missing.length) {
      return (
        `This browser does not support ${missing.join(", ")}. ` +
        "Use Firefox 120, Chrome 123, Safari 17.5 or newer."
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
    // Loading errors of scripts are dispatched to their elements only.
    document.addEventListener(
      "error",
      ({ target }) => {
        if (target.tagName === "SCRIPT") {
          window.showFailure("Part of the page did not load. Try again later.");
        }
      },
      true,
    );
    addEventListener("DOMContentLoaded", () => {
      const script = document.createElement("script");
      document.head.append(Object.assign(script, { type: "module", src: module }));
    });
  }
})();

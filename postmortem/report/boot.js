"use strict";
// The page is complete without this script. It opens what print would hide, and makes the charts answer to the pointer.
(() => {
  const closed = [];
  addEventListener("beforeprint", () => {
    for (const d of document.querySelectorAll("details:not([open]):not(.sql):not(.data)")) { d.open = true; closed.push(d); }
  });
  addEventListener("afterprint", () => { while (closed.length) closed.pop().open = false; });
  if (typeof vegaEmbed !== "function") return;
  async function bring(figure) {
    const old = figure.querySelector(".drawn");
    const spec = JSON.parse(document.getElementById(figure.dataset.spec).textContent);
    spec.width = Math.max(340, Math.min(1400, Math.floor(old.clientWidth)) || 640);
    const fresh = document.createElement("div"); // off the page until it is ready: the picture stays if Vega fails
    await vegaEmbed(fresh, spec, { ast: true, actions: false, renderer: "svg", defaultStyle: false });
    fresh.className = "drawn live";
    for (const name of ["role", "aria-label", "tabindex"]) fresh.setAttribute(name, old.getAttribute(name));
    fresh.querySelector("svg").setAttribute("aria-hidden", "true");
    old.replaceWith(fresh);
  }
  (async () => {
    for (const figure of document.querySelectorAll("figure[data-spec]")) await bring(figure).catch(() => {});
    document.documentElement.dataset.charts = "live";
  })();
})();

// What the applets of the book share: they draw with the page's own colours,
// ask no other host for anything, and can be used with the keyboard alone.
"use strict";

globalThis.companion ??= {
  SVG: "http://www.w3.org/2000/svg",
  serial: 0,

  // Start `start(root, data)` for each figure that asks for this applet.
  applet(name, start) {
    for (const figure of document.querySelectorAll("figure.applet")) {
      if (figure.dataset.applet !== name || figure.dataset.started) continue;
      figure.dataset.started = "yes";
      const data = figure.querySelector("script[type='application/json']");
      const root = companion.element("div", { class: "applet-body" });
      figure.prepend(root);
      start(root, data ? JSON.parse(data.textContent) : null);
    }
  },

  element(tag, attributes = {}, ...children) {
    return companion.fill(document.createElement(tag), attributes, children);
  },

  svg(tag, attributes = {}, ...children) {
    const node = document.createElementNS(companion.SVG, tag);
    return companion.fill(node, attributes, children);
  },

  fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  },

  // A labelled range input; `changed(value)` runs at each move.
  slider(label, { min, max, step, value }, changed, digits = 2) {
    const id = `applet-control-${++companion.serial}`;
    const input = companion.element("input", {
      type: "range", id, min, max, step, value,
    });
    const shown = companion.element("output", { for: id });
    const set = (number) => {
      input.value = number;
      shown.textContent = Number(input.value).toFixed(digits);
    };
    set(value);
    input.addEventListener("input", () => {
      set(input.value);
      changed(Number(input.value));
    });
    const name = companion.element("label", { for: id }, label);
    const row = companion.element("div", { class: "applet-row" },
      name, input, shown);
    return { row, input, set };
  },

  // A labelled choice among [value, words] pairs.
  choice(label, options, value, changed) {
    const id = `applet-control-${++companion.serial}`;
    const select = companion.element("select", { id });
    for (const [key, words] of options) {
      select.append(companion.element("option", { value: key }, words));
    }
    select.value = value;
    select.addEventListener("change", () => changed(select.value));
    const name = companion.element("label", { for: id }, label);
    const row = companion.element("div", { class: "applet-row" },
      name, select);
    return { row, select };
  },

  button(words, pressed) {
    const node = companion.element("button", { type: "button" }, words);
    node.addEventListener("click", pressed);
    return node;
  },

  // The line that a screen reader hears after a change.
  report() {
    return companion.element("p", {
      class: "applet-report", role: "status", "aria-live": "polite",
    });
  },
};

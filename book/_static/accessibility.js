// What axe-core finds in the theme's own markup, mended on the page. On
// "load", because the icons are put in by another script before that.
// a formula that scrolls sideways must scroll by keyboard, too
function makeWideFormulasReachable() {
  const blocks = 'mjx-container[display="true"]';
  for (const block of document.querySelectorAll(blocks)) {
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  }
}

function hideIcons(button) {
  for (const icon of button.querySelectorAll("svg")) {
    icon.querySelector("title")?.remove();
    icon.removeAttribute("aria-labelledby");
    icon.removeAttribute("role");
    icon.setAttribute("aria-hidden", "true");
  }
}

window.addEventListener("load", () => {
  // the visible text of a button must be part of its name
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.removeAttribute("aria-label");
  }
  // an icon in a named button adds nothing to the name; icons may come late
  for (const button of document.querySelectorAll("button[aria-label]")) {
    new MutationObserver(() => hideIcons(button)).observe(button, {
      childList: true,
      subtree: true,
    });
    hideIcons(button);
  }
  // "Show code cell content" is the name; the theme's label hides it
  for (const fold of document.querySelectorAll("summary[aria-label]")) {
    if (fold.textContent.trim()) fold.removeAttribute("aria-label");
  }
  // the arrows of the contents have no words at all
  for (const fold of document.querySelectorAll("nav summary")) {
    if (!fold.textContent.trim()) {
      fold.setAttribute("aria-label", "Show or hide the pages below");
    }
  }
  // its entries are not list items, so it is not a list
  for (const list of document.querySelectorAll(".citation-list")) {
    list.removeAttribute("role");
  }
  const ready = window.MathJax?.startup?.promise ?? Promise.resolve();
  ready.then(makeWideFormulasReachable);
  window.addEventListener("resize", makeWideFormulasReachable);
});

// What axe-core finds in the theme's own markup, mended on the page. On
// "load", because the icons are put in by another script before that.
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
  // its entries are not list items, so it is not a list
  for (const list of document.querySelectorAll(".citation-list")) {
    list.removeAttribute("role");
  }
});

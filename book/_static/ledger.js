// Filters of the ledger page. Without a script the whole table is shown.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("ledger-filter");
  if (!place) return;
  const tables = [...document.querySelectorAll("table.ledger")];
  const rows = tables.flatMap((t) => [...t.tBodies[0].rows]);
  const classes = (prefix) =>
    [
      ...new Set(
        rows.flatMap((r) =>
          [...r.classList].filter((c) => c.startsWith(prefix)),
        ),
      ),
    ].sort();

  const select = (name, prefix) => {
    const label = document.createElement("label");
    label.textContent = name;
    const box = document.createElement("select");
    box.add(new Option("all", ""));
    for (const c of classes(prefix)) {
      box.add(new Option(c.slice(prefix.length).replaceAll("-", " "), c));
    }
    box.addEventListener("change", apply);
    label.append(box);
    place.append(label);
    return box;
  };

  const words = document.createElement("input");
  words.type = "search";
  words.addEventListener("input", apply);
  const label = document.createElement("label");
  label.textContent = "words";
  label.append(words);

  const paper = select("paper", "paper-");
  const kind = select("kind", "kind-");
  const verdict = select("verdict", "verdict-");
  place.append(label);
  const count = document.createElement("output");
  count.setAttribute("aria-live", "polite");
  place.append(count);

  function apply() {
    const wanted = words.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const keep =
        (!paper.value || row.classList.contains(paper.value)) &&
        (!kind.value || row.classList.contains(kind.value)) &&
        (!verdict.value || row.classList.contains(verdict.value)) &&
        (!wanted || row.textContent.toLowerCase().includes(wanted));
      row.classList.toggle("filtered-out", !keep);
      shown += keep;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
    // a paper without a row left takes its heading with it
    for (const table of tables) {
      const left = table.querySelector("tbody tr:not(.filtered-out)");
      table.closest("section").hidden = !left;
    }
  }
  apply();
});

// Cut the square into the cells of a small network, in double precision;
// choose the network, and walk through its cells.
"use strict";

(() => {
  const { element, svg, slider, button, report } = companion;
  const TINY = 1e-12, SAME = 1e-9, NEAR = 1e-8;
  const SIZE = 360;

  // Values of an affine function [p, q, r] at the corners of a polygon.
  const valuesAt = ([p, q, r], polygon) =>
    polygon.map(([x, y]) => {
      const z = p * x + q * y + r;
      const size = Math.abs(p * x) + Math.abs(q * y) + Math.abs(r);
      return Math.abs(z) <= TINY * size ? 0 : z;
    });

  // The parts where the function is not positive and not negative.
  function split(polygon, z) {
    const below = [], above = [];
    polygon.forEach((v, i) => {
      const j = (i + polygon.length - 1) % polygon.length;
      if (z[i] * z[j] < 0) {
        const u = polygon[j], t = z[j] / (z[j] - z[i]);
        const cut = [u[0] + t * (v[0] - u[0]), u[1] + t * (v[1] - u[1])];
        below.push(cut);
        above.push(cut);
      }
      if (z[i] <= 0) below.push(v);
      if (z[i] >= 0) above.push(v);
    });
    return { below, above };
  }

  // A layer times the affine functions of the layer before.
  const apply = ([W, b], maps) => W.map((row, i) => {
    const sum = [0, 0, b[i]];
    row.forEach((w, j) => maps[j].forEach((v, k) => { sum[k] += w * v; }));
    return sum;
  });

  // All activation cells: polygon, pattern, affine map of the output.
  function cells(layers) {
    const square = [[-1, -1], [1, -1], [1, 1], [-1, 1]];
    let all = [{ polygon: square, maps: [[1, 0, 0], [0, 1, 0]],
      pattern: [] }];
    for (const layer of layers.slice(0, -1)) {
      all = all.flatMap((cell) => {
        const before = apply(layer, cell.maps);
        let parts = [{ polygon: cell.polygon, signs: [] }];
        for (const f of before) {
          parts = parts.flatMap(({ polygon, signs }) => {
            const z = valuesAt(f, polygon);
            if (Math.min(...z) < 0 && Math.max(...z) > 0) {
              const { below, above } = split(polygon, z);
              return [{ polygon: below, signs: [...signs, 0] },
                { polygon: above, signs: [...signs, 1] }];
            }
            return [{ polygon, signs: [...signs, Math.max(...z) > 0 ? 1 : 0] }];
          });
        }
        return parts.map(({ polygon, signs }) => ({
          polygon,
          maps: before.map((f, i) => (signs[i] ? f : [0, 0, 0])),
          pattern: [...cell.pattern, signs],
        }));
      });
    }
    return all.map(({ polygon, maps, pattern }) => ({
      polygon, pattern, map: apply(layers.at(-1), maps)[0],
    }));
  }

  // Corners that agree up to rounding get one name.
  function naming() {
    const seen = new Map();
    let count = 0;
    return ([x, y]) => {
      const i = Math.round(x / NEAR), j = Math.round(y / NEAR);
      for (let p = i - 1; p <= i + 1; p++) {
        for (let q = j - 1; q <= j + 1; q++) {
          const found = seen.get(`${p},${q}`);
          if (found !== undefined) return found;
        }
      }
      seen.set(`${i},${j}`, count);
      return count++;
    };
  }

  // Linear pieces: neighbours with one affine map, a number for each cell.
  function pieces(all) {
    const root = all.map((_, i) => i);
    const find = (i) => (root[i] === i ? i : (root[i] = find(root[i])));
    const name = naming(), owner = new Map();
    all.forEach((cell, c) => {
      const corners = cell.polygon.map(name);
      corners.forEach((v, i) => {
        const u = corners[(i + corners.length - 1) % corners.length];
        const edge = u < v ? `${u},${v}` : `${v},${u}`;
        const other = owner.get(edge);
        if (other === undefined) { owner.set(edge, c); return; }
        const size = 1 + Math.max(...cell.map.map(Math.abs));
        const gap = cell.map.map((m, k) => Math.abs(m - all[other].map[k]));
        if (Math.max(...gap) <= SAME * size) root[find(c)] = find(other);
      });
    });
    return all.map((_, i) => find(i));
  }

  const count = (labels) => new Set(labels).size;

  function area(polygon) {
    let twice = 0;
    polygon.forEach(([x, y], i) => {
      const [u, v] = polygon.at(i - 1);
      twice += u * y - x * v;
    });
    return twice / 2;
  }

  function inside(polygon, x, y) {
    return polygon.every(([p, q], i) => {
      const [u, v] = polygon.at(i - 1);
      return (p - u) * (y - v) - (q - v) * (x - u) >= -TINY;
    });
  }

  // The direction of the gradient as a hue, a flat cell grey.
  function colour([p, q]) {
    const steep = Math.hypot(p, q);
    if (steep < SAME) return "hsl(0 0% 62%)";
    const hue = (Math.atan2(q, p) * 180) / Math.PI + 180;
    return `hsl(${hue.toFixed(0)} ${Math.min(70, 25 + 40 * steep).toFixed(0)}% 62%)`;
  }

  const signed = (v) => `${v < 0 ? "\u2212" : "+"} ${Math.abs(v).toFixed(3)}`;

  function start(root, data) {
    const [width, depth, seed] = data.start;
    const state = { width, depth, seed, all: [], labels: [], chosen: 0,
      at: [0, 0] };
    const picture = svg("svg", {
      viewBox: `0 0 ${SIZE} ${SIZE}`, tabindex: "0", role: "application",
      "aria-label": "The square from -1 to 1; arrow keys move a probe",
      style: "max-width: 30rem; width: 100%; touch-action: pan-y;",
    });
    const polygons = svg("g", { "stroke-width": "0.8",
      stroke: "var(--pst-color-background)" });
    const outline = svg("path", { fill: "none", "stroke-width": "2.5",
      stroke: "var(--pst-color-text-base)" });
    const probe = svg("circle", { r: 4, class: "applet-dot" });
    picture.append(polygons, outline, probe);
    const words = report(), detail = report();

    const px = (x) => (((x + 1) / 2) * SIZE).toFixed(3);
    const py = (y) => (((1 - y) / 2) * SIZE).toFixed(3);
    const path = (polygon) =>
      polygon.map(([x, y], i) => `${i ? "L" : "M"}${px(x)},${py(y)}`)
        .join("") + "Z";

    function choose(index, point) {
      state.chosen = index;
      const cell = state.all[index];
      const n = cell.polygon.length;
      state.at = point ?? [0, 1].map((k) =>
        cell.polygon.reduce((sum, v) => sum + v[k], 0) / n);
      outline.setAttribute("d", path(cell.polygon));
      probe.setAttribute("cx", px(state.at[0]));
      probe.setAttribute("cy", py(state.at[1]));
      const [p, q, r] = cell.map;
      const mates = state.labels
        .filter((label) => label === state.labels[index]).length;
      detail.textContent =
        `Cell ${index + 1} of ${state.all.length}: pattern ` +
        `${cell.pattern.map((s) => s.join("")).join(" | ")}; output ` +
        `${p.toFixed(3)} x ${signed(q)} y ${signed(r)}; area ` +
        `${area(cell.polygon).toPrecision(3)}; ` +
        (mates > 1 ? `its linear piece has ${mates} cells.`
          : "it is a linear piece by itself.");
    }

    function probeAt(x, y) {
      const point = [x, y].map((v) => Math.max(-1, Math.min(1, v)));
      const index = state.all.findIndex((c) => inside(c.polygon, ...point));
      if (index >= 0) choose(index, point);
    }

    function draw() {
      const net = data.nets[`${state.width},${state.depth},${state.seed}`];
      state.all = cells(net.layers);
      state.labels = pieces(state.all);
      polygons.replaceChildren(...state.all.map((cell) =>
        svg("path", { d: path(cell.polygon), fill: colour(cell.map) })));
      words.textContent =
        `${state.all.length} activation cells and ${count(state.labels)} ` +
        `linear pieces on the square, counted here; Python counted ` +
        `${net.cells} and ${net.pieces}.`;
      choose(0);
    }

    const change = (key) => (v) => { state[key] = v; draw(); };
    const rows = [
      slider("neurons in a layer", { min: 4, max: 8, step: 2, value: width },
        change("width"), 0),
      slider("hidden layers", { min: 1, max: 3, step: 1, value: depth },
        change("depth"), 0),
      slider("seed", { min: 0, max: 3, step: 1, value: seed },
        change("seed"), 0),
    ].map((one) => one.row);
    const step = (by) => () => {
      const n = state.all.length;
      choose((state.chosen + by + n) % n);
    };
    const walk = element("div", { style: "display: flex; gap: 0.6em" },
      button("previous cell", step(-1)), button("next cell", step(1)));

    picture.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0],
        ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!move) return;
      event.preventDefault();
      const by = event.shiftKey ? 0.01 : 0.05;
      probeAt(state.at[0] + by * move[0], state.at[1] + by * move[1]);
    });
    const follow = (event) => {
      const box = picture.getBoundingClientRect();
      probeAt((2 * (event.clientX - box.left)) / box.width - 1,
        1 - (2 * (event.clientY - box.top)) / box.height);
    };
    picture.addEventListener("pointermove", follow);
    picture.addEventListener("pointerdown", follow);

    const controls = element("div", { class: "applet-controls" },
      ...rows, walk);
    root.append(controls, words, picture, detail);
    draw();
  }

  companion.regions = { cells, pieces, count, area };
  companion.applet("regions", start);
})();

// Drag the peaks of a sum of triangle waves; see the wave, the sum, its
// derivative and the number of pieces change.
"use strict";

(() => {
  const { element, svg, slider, choice, button, report } = companion;
  const LOW = 0.05, HIGH = 0.95, MOST = 6;
  const WIDTH = 300, HEIGHT = 190, PAD = 28;

  // Recurrence of the scales: s[i+1] = s[i] (1 - a[i+1]) a[i+2].
  function scales(a, mode) {
    const s = [a[1] * (mode === "concave" ? 1 - a[0] : a[0])];
    for (let i = 1; i < a.length - 1; i++) {
      s.push(s[i - 1] * (1 - a[i]) * a[i + 1]);
    }
    return s;
  }

  // Knots of all cells, the last wave there, the sum and its slopes.
  function pieces(a, s, mode) {
    const sign = mode === "concave" ? 1 : -1;
    let cells = [{ left: 0, length: 1, rising: true, slope: 0 }];
    for (let i = 0; i < s.length; i++) {
      cells = cells.flatMap((c) => {
        const first = c.length * (c.rising ? a[i] : 1 - a[i]);
        const second = c.length - first;
        return [
          { left: c.left, length: first, rising: true,
            slope: c.slope + s[i] / first },
          { left: c.left + first, length: second, rising: false,
            slope: c.slope - s[i] / second },
        ];
      });
    }
    const knots = [0], sum = [0];
    const slopes = cells.map((c) => 1 + sign * c.slope);
    cells.forEach((c, i) => {
      knots.push(c.left + c.length);
      sum.push(sum[i] + slopes[i] * c.length);
    });
    const wave = knots.map((_, i) => i % 2);
    return { knots, wave, sum, slopes, lengths: cells.map((c) => c.length) };
  }

  // Neighbours whose slopes differ by rounding alone are one piece.
  function count(slopes) {
    let n = 1;
    for (let i = 1; i < slopes.length; i++) {
      const size = Math.max(1, Math.abs(slopes[i]));
      if (Math.abs(slopes[i] - slopes[i - 1]) > 1e-9 * size) n++;
    }
    return n;
  }

  function largestJump(slopes) {
    let jump = 0;
    for (let i = 1; i < slopes.length; i++) {
      jump = Math.max(jump, Math.abs(slopes[i] - slopes[i - 1]));
    }
    return jump;
  }

  function panel(title, top, bottom = 0) {
    const x = (u) => PAD + u * (WIDTH - PAD - 8);
    const y = (v) =>
      HEIGHT - PAD + 8 - ((v - bottom) / (top - bottom)) * (HEIGHT - PAD - 14);
    const curve = svg("path", { class: "applet-curve" });
    const node = svg("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true",
    },
      svg("path", { class: "applet-axis",
        d: `M${x(0)},${y(top)}V${y(bottom)}H${x(1)}` }),
      svg("text", { x: x(0) - 4, y: y(bottom), class: "applet-tick",
        "text-anchor": "end" }, String(bottom)),
      curve);
    const tick = svg("text", { x: x(0) - 4, y: y(top) + 8,
      class: "applet-tick", "text-anchor": "end" }, String(top));
    node.append(tick);
    const caption = element("figcaption", {}, title);
    return { node: element("figure", { class: "applet-panel" }, node, caption),
      svg: node, curve, x, y, tick };
  }

  const polyline = (xs, ys) =>
    xs.map((u, i) => `${i ? "L" : "M"}${u.toFixed(2)},${ys[i].toFixed(2)}`)
      .join("");

  function start(root, data) {
    const begin = data ?? { peaks: Array(MOST + 1).fill(0.5), depth: 3,
      mode: "convex" };
    const state = { a: [...begin.peaks], depth: begin.depth,
      mode: begin.mode, bend: 1 };
    while (state.a.length < MOST + 1) state.a.push(0.5);

    const tents = panel("Triangles: drag a dot sideways", 1);
    const wave = panel("The last wave", 1);
    const sum = panel("The sum", 1);
    const slope = panel("Its derivative", 4);
    const words = report();
    const dots = state.a.map((_, i) => svg("circle", {
      r: 6, class: "applet-dot", "data-peak": i }));
    const lines = state.a.map(() => svg("path", { class: "applet-thin" }));
    tents.svg.append(...lines, ...dots);
    tents.curve.remove();

    const sliders = state.a.map((value, i) =>
      slider(`peak a${String.fromCharCode(0x2080 + i)}`,
        { min: LOW, max: HIGH, step: 0.01, value },
        (v) => { state.a[i] = v; draw(); }));
    const depth = slider("waves d", { min: 1, max: MOST, step: 1,
      value: state.depth }, (v) => { state.depth = v; draw(); }, 0);
    const mode = choice("the waves are",
      [["convex", "subtracted (convex)"], ["concave", "added (concave)"]],
      state.mode, (v) => { state.mode = v; draw(); });
    const bend = slider("second scale, times", { min: 0.5, max: 2,
      step: 0.05, value: 1 }, (v) => { state.bend = v; draw(); });
    const reset = button("all peaks one half", () => {
      state.a.fill(0.5);
      sliders.forEach((s) => s.set(0.5));
      state.bend = 1;
      bend.set(1);
      draw();
    });

    function draw() {
      const a = state.a.slice(0, state.depth + 1);
      const s = scales(a, state.mode)
        .map((value, i) => (i >= 1 ? value * state.bend : value));
      const p = pieces(a, s, state.mode);
      sliders.forEach((one, i) => { one.row.hidden = i > state.depth; });
      bend.row.hidden = state.depth < 2;
      a.forEach((peak, i) => {
        const t = tents;
        lines[i].setAttribute("d", polyline(
          [t.x(0), t.x(peak), t.x(1)], [t.y(0), t.y(1), t.y(0)]));
        dots[i].setAttribute("cx", t.x(peak));
        dots[i].setAttribute("cy", t.y(1));
      });
      [...dots, ...lines].forEach((d, i) => {
        d.style.display = i % dots.length < state.depth ? "" : "none";
      });
      wave.curve.setAttribute("d",
        polyline(p.knots.map(wave.x), p.wave.map(wave.y)));
      sum.curve.setAttribute("d",
        polyline(p.knots.map(sum.x), p.sum.map(sum.y)));
      const top = Math.max(...p.slopes, 1);
      slope.tick.textContent = top.toFixed(1);
      const level = p.slopes.map((v) => slope.y(4 * v / top));
      slope.curve.setAttribute("d", p.slopes.map((_, i) =>
        `${i ? "L" : "M"}${slope.x(p.knots[i]).toFixed(2)},` +
        `${level[i].toFixed(2)}H${slope.x(p.knots[i + 1]).toFixed(2)}`)
        .join(""));
      words.textContent =
        `${count(p.slopes)} linear pieces on [0, 1] from ${state.depth} ` +
        `${state.depth === 1 ? "wave" : "waves"}; shortest ` +
        `${Math.min(...p.lengths).toPrecision(3)}, largest step of the ` +
        `derivative ${largestJump(p.slopes).toPrecision(3)}.`;
    }

    function drag(event) {
      const i = Number(event.target.dataset?.peak ?? NaN);
      if (Number.isNaN(i)) return;
      event.preventDefault();
      const move = (e) => {
        const box = tents.svg.getBoundingClientRect();
        const u = ((e.clientX - box.left) / box.width) * WIDTH;
        const value = (u - PAD) / (WIDTH - PAD - 8);
        state.a[i] = Math.min(HIGH, Math.max(LOW, value));
        sliders[i].set(state.a[i]);
        draw();
      };
      const stop = () => {
        globalThis.removeEventListener("pointermove", move);
        globalThis.removeEventListener("pointerup", stop);
      };
      globalThis.addEventListener("pointermove", move);
      globalThis.addEventListener("pointerup", stop);
    }
    tents.svg.addEventListener("pointerdown", drag);

    const controls = element("div", { class: "applet-controls" },
      depth.row, mode.row, ...sliders.map((s) => s.row), bend.row, reset);
    const panels = element("div", { class: "applet-panels" },
      tents.node, wave.node, sum.node, slope.node);
    root.append(controls, words, panels);
    draw();
  }

  companion.peaks = { scales, pieces, count, largestJump };
  companion.applet("peaks", start);
})();

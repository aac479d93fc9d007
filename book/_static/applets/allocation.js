// Choose which recurrent weights of a small linear network may learn; see the
// generic rank, computed exactly modulo a prime, its caps and the verdict.
"use strict";

(() => {
  const { element, slider, button, report } = companion;
  // the largest prime below 2^26: products of residues are exact in doubles
  const PRIME = 67108859;
  const MOST = { n: 6, b: 3, d: 3, T: 5, m: 8 };

  // The same pseudo-random residue for the same names, in every browser.
  function residue(...names) {
    let h = 2166136261;
    for (const name of names) {
      h = Math.imul(h ^ (name + 1), 16777619);
      h ^= h >>> 13;
      h = Math.imul(h, 0x5bd1e995);
      h ^= h >>> 15;
    }
    return (h >>> 0) % PRIME;
  }

  const table = (rows, cols, f) =>
    Array.from({ length: rows }, (_, i) =>
      Array.from({ length: cols }, (_, j) => f(i, j)));

  const times = (A, B) => table(A.length, B[0].length, (i, j) => {
    let sum = 0;
    for (let k = 0; k < B.length; k++) sum = (sum + A[i][k] * B[k][j]) % PRIME;
    return sum;
  });

  const plus = (A, B) =>
    table(A.length, A[0].length, (i, j) => (A[i][j] + B[i][j]) % PRIME);

  // a^-1 by Fermat's little theorem.
  function inverse(a) {
    let result = 1, power = a;
    for (let e = PRIME - 2; e > 0; e = Math.floor(e / 2)) {
      if (e % 2) result = (result * power) % PRIME;
      power = (power * power) % PRIME;
    }
    return result;
  }

  // Rank of the span of columns, by elimination.
  function rank(columns) {
    const basis = [];
    for (const column of columns) {
      const v = [...column];
      for (const { pivot, row } of basis) {
        const f = v[pivot];
        if (f) {
          for (let i = 0; i < v.length; i++) {
            v[i] = (v[i] + (PRIME - f) * row[i]) % PRIME;
          }
        }
      }
      const pivot = v.findIndex((x) => x !== 0);
      if (pivot < 0) continue;
      const scale = inverse(v[pivot]);
      basis.push({ pivot, row: v.map((x) => (x * scale) % PRIME) });
    }
    return basis.length;
  }

  // States, and what leads from each step to the labels.
  function run({ n, b, d, T, m }) {
    const B = table(n, b, (i, j) => residue(1, i, j));
    const W = table(n, n, (i, j) => residue(2, i, j));
    const D = table(d, n, (i, j) => residue(3, i, j));
    const X = Array.from({ length: T }, (_, t) =>
      table(b, m, (i, j) => residue(4, t, i, j)));
    const states = [times(B, X[0])];
    for (let t = 1; t < T; t++) {
      states.push(plus(times(W, states[t - 1]), times(B, X[t])));
    }
    const onward = [D];
    for (let s = 1; s < T; s++) onward.push(times(onward[s - 1], W));
    return { X, states, onward };
  }

  const outer = (size, { d, m }, terms) => {
    const column = new Array(d * m).fill(0);
    for (const [left, j, right, l] of terms) {
      for (let a = 0; a < d; a++) {
        for (let c = 0; c < m; c++) {
          const at = a * m + c;
          column[at] = (column[at] + left[a][j] * right[l][c]) % PRIME;
        }
      }
    }
    return column;
  };

  // A learned W_jl moves the labels along this vector.
  function recurrentColumn(size, { states, onward }, j, l) {
    const terms = [];
    for (let s = 1; s < size.T; s++) {
      terms.push([onward[size.T - 1 - s], j, states[s - 1], l]);
    }
    return outer(size, size, terms);
  }

  function ranks(size, entries) {
    const net = run(size), { n, b, d, T } = size;
    const mine = entries.map(([j, l]) => recurrentColumn(size, net, j, l));
    const all = [];
    for (let j = 0; j < n; j++) {
      for (let l = 0; l < n; l++) {
        all.push(recurrentColumn(size, net, j, l));
      }
      for (let c = 0; c < b; c++) {
        all.push(outer(size, size, net.X.map((x, t) =>
          [net.onward[T - 1 - t], j, x, c])));
      }
      for (let a = 0; a < d; a++) {
        const pick = table(d, 1, (i) => (i === a ? 1 : 0));
        all.push(outer(size, size, [[pick, 0, net.states[T - 1], j]]));
      }
    }
    return { rank: rank(mine), whole: rank(all) };
  }

  const gauge = ({ n, b, d }) =>
    n * n - Math.max(n - b, 0) * Math.max(n - d, 0);

  function rowCap(size, k) {
    const { n, b, T, m } = size, d = Math.min(size.d, n);
    let flags = 0;
    for (let s = 1; s < T; s++) {
      const step = Math.min(m, s * b) - Math.min(m, (s - 1) * b);
      flags += step * Math.min(d, k * (T - s));
    }
    return Math.min(k * Math.min(n, (T - 1) * b), flags, gauge(size));
  }

  function columnCap(size, c) {
    const { n, b, T, m } = size, d = Math.min(size.d, n);
    let level = Infinity;
    for (let s = 0; s < T; s++) {
      level = Math.min(level, Math.min(m, s * b) + c * (T - 1 - s));
    }
    return Math.min(c * Math.min(n, (T - 1) * d), d * level, gauge(size));
  }

  // Labels are affine in the learned weights: no path meets two of them.
  function affine({ T }, entries) {
    if (T <= 2) return true;
    const rows = new Set(entries.map(([j]) => j));
    return T === 3 && !entries.some(([, l]) => rows.has(l));
  }

  function judge(size, entries) {
    const found = ranks(size, entries);
    const rows = new Set(entries.map(([j]) => j)).size;
    const columns = new Set(entries.map(([, l]) => l)).size;
    const zero = found.rank < found.whole;
    const one = !zero && found.rank === size.m * size.d
      && affine(size, entries);
    return { ...found, rows, columns,
      rowCap: rowCap(size, rows), columnCap: columnCap(size, columns),
      verdict: zero ? "zero" : one ? "one" : "positive" };
  }

  // p entries in the first k rows, columns in turn; null if they do not fit.
  function deal(n, k, p) {
    if (p > k * n || p < k) return null;
    const entries = [];
    for (let i = 0, used = 0; i < k; i++) {
      const size = Math.floor(p / k) + (i < p % k ? 1 : 0);
      for (let j = 0; j < size; j++, used++) entries.push([i, used % n]);
    }
    return entries;
  }

  const WORDS = {
    zero: "zero: no setting of these weights matches, with probability 1",
    one: "one: full rank, and the labels are affine in these weights",
    positive: "positive: rank cannot say more",
  };

  function start(root, data) {
    const state = { n: 5, b: 2, d: 2, T: 3, m: 2, ...data?.size };
    let learned = table(MOST.n, MOST.n, () => false);
    for (const [j, l] of data?.entries ?? []) learned[j][l] = true;
    const dealt = { k: 2, p: 4 };
    let focus = [0, 0];

    const grid = element("div", { class: "allocation-grid", role: "group",
      "aria-label": "recurrent matrix; arrow keys move, space toggles" });
    const words = report();
    const details = element("p", { class: "applet-detail" });
    const cells = table(MOST.n, MOST.n, (j, l) => {
      const cell = element("button", { type: "button",
        "aria-label": `row ${j + 1}, column ${l + 1}` });
      cell.addEventListener("click", () => {
        learned[j][l] = !learned[j][l];
        focus = [j, l];
        draw();
      });
      grid.append(cell);
      return cell;
    });

    grid.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1],
        ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      focus = focus.map((at, i) =>
        Math.min(state.n - 1, Math.max(0, at + step[i])));
      draw();
      cells[focus[0]][focus[1]].focus();
    });

    const chosen = () => {
      const entries = [];
      for (let j = 0; j < state.n; j++) {
        for (let l = 0; l < state.n; l++) {
          if (learned[j][l]) entries.push([j, l]);
        }
      }
      return entries;
    };

    const NAMES = { n: "neurons n", b: "inputs b", d: "outputs d",
      T: "steps T", m: "examples m" };
    const least = { n: 2, b: 1, d: 1, T: 1, m: 1 };
    const sizes = Object.keys(NAMES).map((key) => slider(NAMES[key],
      { min: least[key], max: MOST[key], step: 1, value: state[key] },
      (v) => { state[key] = v; draw(); }, 0).row);
    const budget = [["rows k", "k", MOST.n], ["budget p", "p", MOST.n ** 2]]
      .map(([name, key, max]) => slider(name,
        { min: 1, max, step: 1, value: dealt[key] },
        (v) => { dealt[key] = v; }, 0).row);
    const put = (entries) => {
      learned = table(MOST.n, MOST.n, () => false);
      for (const [j, l] of entries) learned[j][l] = true;
      draw();
    };
    const buttons = element("div", { class: "allocation-buttons" },
      button("deal p weights over k rows", () => {
        const entries = dealt.k <= state.n
          ? deal(state.n, dealt.k, dealt.p) : null;
        if (entries) return put(entries);
        const room = Math.min(dealt.k, state.n);
        words.textContent = dealt.p < dealt.k && dealt.k <= state.n
          ? `Verdict: does not fit. ${dealt.p} weights leave one of ` +
            `${dealt.k} rows empty.`
          : `Verdict: does not fit. ${room} rows of ${state.n} hold ` +
            `${room * state.n} weights, and ${dealt.k} rows with p = ` +
            `${dealt.p} were asked for. That is not probability zero.`;
        details.textContent = "The allocation below is unchanged.";
      }),
      button("diagonal", () =>
        put(Array.from({ length: state.n }, (_, i) => [i, i]))),
      button("all", () => put(table(state.n, state.n,
        (i, j) => [i, j]).flat())),
      button("none", () => put([])));

    function draw() {
      focus = focus.map((at) => Math.min(at, state.n - 1));
      grid.style.gridTemplateColumns = `repeat(${state.n}, 1fr)`;
      cells.forEach((row, j) => row.forEach((cell, l) => {
        cell.hidden = j >= state.n || l >= state.n;
        cell.setAttribute("aria-pressed", String(learned[j][l]));
        cell.tabIndex = j === focus[0] && l === focus[1] ? 0 : -1;
      }));
      const entries = chosen(), found = judge(state, entries);
      const md = state.m * state.d;
      words.textContent =
        `${entries.length} weights in ${found.rows} rows and ` +
        `${found.columns} columns: rank ${found.rank}, all weights ` +
        `together ${found.whole}, equations md = ${md}. ` +
        `Verdict: ${WORDS[found.verdict]}.`;
      const ceiling = (state.T - 1) * state.b;
      details.textContent =
        `Caps: ${found.rows} rows ${found.rowCap}, ${found.columns} ` +
        `columns ${found.columnCap}. Ceiling: m at most (T − 1) b = ` +
        `${ceiling}${state.m > ceiling ? ", exceeded" : ""}.`;
    }

    const board = element("figure", { class: "applet-panel allocation-board" },
      grid, element("figcaption", {},
        "W: press a cell to let the weight learn"));
    root.append(
      element("div", { class: "applet-controls" }, ...sizes, ...budget),
      buttons, words, details, board);
    draw();
  }

  companion.allocation = { judge, deal, PRIME };
  companion.applet("allocation", start);
})();

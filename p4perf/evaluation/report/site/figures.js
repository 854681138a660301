// Draws the figures of a page over their still drawings, from the numbers that stand in it. Plotly is loaded last.
"use strict";
(() => {
  const assets = document.currentScript.src.replace(/[^/]*$/, "");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touched = matchMedia("(pointer: coarse)");  // there a drag scrolls the page
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const LOWER = [0, 0.26], UPPER = [0.36, 1];

  const text = (value) => String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const column = (rows, at) => rows.map((row) => row[at]);
  const shown = (value) => (typeof value === "number" ? String(Number(value.toPrecision(5))) : text(value));

  function palette() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    return {
      paper: of("--paper"), ink: of("--ink"), grey: of("--grey"), line: of("--line"), mark: of("--mark"), bad: of("--bad"),
      series: [0, 1, 2, 3, 4, 5].map((at) => of(`--c${at}`)),
    };
  }

  function fade(colour, share) {
    const parts = /^#(..)(..)(..)$/.exec(colour.length === 4 ? colour.replace(/[^#]/g, "$&$&") : colour);
    if (!parts) return colour;
    return `rgba(${parts.slice(1).map((part) => parseInt(part, 16)).join(",")},${share})`;
  }

  // --- traces

  function whiskers(rows, colour) {
    const [y, low, high] = [1, 2, 3].map((at) => column(rows, at));
    const away = (ends) => ends.map((end, at) => (end === null ? 0 : Math.abs(end - y[at])));
    return { type: "data", symmetric: false, array: away(high), arrayminus: away(low), color: colour, thickness: 1.5, width: 4 };
  }

  function points(group, entry, data, c, more) {
    const colour = c.series[entry.colour];
    return {
      x: column(group.rows, 0), y: column(group.rows, 1), type: "scatter", mode: "markers", hoverinfo: "text",
      marker: { color: colour, size: 9, symbol: SYMBOLS[entry.symbol], line: { width: 1, color: c.paper } },
      error_y: whiskers(group.rows, colour),
      text: group.rows.map(([x, y, low, high, n]) => `${text(data.x)} ${shown(x)}<br>${text(group.key)}: ${shown(y)} [${shown(low)}, ${shown(high)}]${n === undefined ? "" : `<br>${n} accepted`}`),
      ...more,
    };
  }

  function line(each, entry, c) {
    const colour = c.series[entry.colour];
    const drawn = {
      x: each.x, y: each.y, type: "scatter", mode: each.x.length > 1 ? "lines" : "markers", hoverinfo: "skip",
      line: { color: colour, width: 2.5, dash: DASHES[entry.dash] }, marker: { color: colour, symbol: "line-ew-open", size: 14 },
    };
    if (!each.low || each.x.length < 2) return [drawn];
    const around = { ...drawn, x: each.x.concat([...each.x].reverse()), y: each.high.concat([...each.low].reverse()), fill: "toself", fillcolor: fade(colour, 0.18), line: { width: 0 } };
    return [around, drawn];
  }

  function repetitions(trials, data, colour, symbol) {
    return {
      x: column(trials, 0), y: column(trials, 1), type: "scatter", mode: "markers", hoverinfo: "text", marker: { color: colour, size: 6, symbol },
      text: trials.map((t) => `${text(data.x)} ${shown(t[0])}<br>repetition ${t[2]}: ${shown(t[1])}${t[3] ? "" : "<br>rejected"}${t[4] ? `<br>${text(t[4])}` : ""}`),
    };
  }

  /** All traces, each with the key of its entry in the legend. */
  function traces(data, state, c) {
    const entries = Object.fromEntries(data.legend.map((entry) => [entry.key, entry]));
    const of = (group, made) => made.map((trace) => ({ ...trace, name: group.key, showlegend: false }));
    const found = [
      ...data.lines.flatMap((each) => of(each, line(each, entries[each.key], c))),
      ...data.points.flatMap((group) => of(group, [points(group, entries[group.key], data, c)])),
    ];
    for (const [key, accepted, symbol, colour] of [["repetitions", 1, "circle-open", c.grey], ["rejected", 0, "x-thin-open", c.bad]]) {
      const trials = data.trials.filter((t) => t[3] === accepted);
      if (trials.length) found.push(...of({ key }, [repetitions(trials, data, colour, symbol)]));
    }
    if (data.lower && state.lower) found.push(...data.lower.points.flatMap((group) => of(group, [points(group, entries[group.key], data, c, { yaxis: "y2" })])));
    return found.filter((trace) => !state.hidden.has(trace.name));
  }

  // --- layout

  function upright(x, at, low, paper, colour, dash, words, below) {
    const shape = { type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: low, y1: 1, line: { color: colour, width: 1.2, dash } };
    const label = { x: at(x), xref: "x", yref: "paper", y: below ? low : 1, text: text(words), showarrow: false, textangle: -90, xanchor: "right", yanchor: below ? "bottom" : "top",
      xshift: -4, font: { size: 11, color: colour }, bgcolor: fade(paper, 0.6), borderpad: 1 };
    return [shape, label];
  }

  function layout(data, state, c, log) {
    const axis = { gridcolor: c.line, zeroline: false, linecolor: c.grey, tickcolor: c.grey, automargin: true, exponentformat: "SI" };
    const lower = data.lower && state.lower;
    const low = lower ? UPPER[0] : 0;
    const at = (x) => (log ? Math.log10(x) : x);
    const uprights = [
      ...data.breakpoints.map((b) => [b.x, c.ink, "dash", b.text, b.below]),
      ...data.marks.map((m) => [m.x, c.mark, "dot", m.text, m.below]),
    ].filter(([x]) => !log || x > 0).map(([x, ...rest]) => upright(x, at, low, c.paper, ...rest));
    const spans = data.breakpoints.filter((b) => b.low !== null && b.low < b.high).map((b) => ({
      type: "rect", xref: "x", yref: "paper", x0: b.low, x1: b.high, y0: low, y1: 1, line: { width: 0 }, fillcolor: fade(c.grey, 0.14), layer: "below",
    }));
    const base = lower ? [{ type: "line", xref: "paper", yref: "y2", x0: 0, x1: 1, y0: data.lower.base, y1: data.lower.base, line: { color: c.grey, width: 1, dash: "dot" } }] : [];
    const title = (words, y) => ({ text: text(words), xref: "paper", yref: "paper", x: 0, y, xanchor: "left", yanchor: "bottom", xshift: -50, yshift: 3, showarrow: false, font: { size: 13 } });
    const found = {
      paper_bgcolor: c.paper, plot_bgcolor: c.paper, font: { color: c.ink, family: "system-ui, sans-serif", size: 12 }, hovermode: "closest",
      hoverlabel: { bgcolor: c.paper, bordercolor: c.ink, font: { color: c.ink }, align: "left" }, dragmode: touched.matches ? false : "zoom",
      margin: { l: 58, r: 14, t: 26, b: 44 },
      xaxis: { ...axis, type: data.scale === "category" ? "category" : log ? "log" : "linear", title: { text: text(data.x), standoff: 8, font: { size: 13 } }, anchor: lower ? "y2" : "y" },
      yaxis: { ...axis, type: state.logy ? "log" : "linear", domain: lower ? UPPER : [0, 1] },
      shapes: [...spans, ...base, ...uprights.map(([shape]) => shape)],
      annotations: [...uprights.map(([, label]) => label), title(data.y, 1), ...(lower ? [title(data.lower.y, LOWER[1])] : [])],
    };
    if (lower) found.yaxis2 = { ...axis, domain: LOWER, nticks: 4 };
    if (data.scale === "category") found.xaxis.tickangle = -90;
    return found;
  }

  function draw(figure) {
    const { data, state, place, note } = figure;
    const c = palette();
    const log = state.logx && data.scale !== "category";
    const zero = log && data.points.some((group) => group.rows.some(([x]) => x <= 0));
    note.textContent = zero ? "Points at 0 have no place on a logarithmic axis; they are in the table." : "";
    place.dataset.ground = c.paper;
    window.Plotly.react(place, traces(data, state, c), layout(data, state, c, log), { responsive: true, displayModeBar: false });
  }

  // --- what a reader can do

  function csv(data) {
    const row = (what, key) => (values) => [what, key, ...values];
    return [
      ["what", "name", data.x, data.y, "low", "high", "accepted"],
      ...data.points.flatMap((group) => group.rows.map(row("point", group.key))),
      ...data.trials.map(([x, y, , accepted]) => ["repetition", accepted ? "accepted" : "rejected", x, y, "", "", accepted]),
      ...data.lines.flatMap((each) => each.x.map((x, at) => ["model", each.key, x, each.y[at], each.low?.[at], each.high?.[at], ""])),
      ...(data.lower ? data.lower.points.flatMap((group) => group.rows.map(row(data.lower.y, group.key))) : []),
    ];
  }

  function prepare(element) {
    const data = JSON.parse(element.querySelector("script.data").textContent);
    const place = element.querySelector(".live");
    const state = { logx: data.scale === "log", logy: false, lower: true, hidden: new Set() };
    const figure = { element, data, state, place, note: element.querySelector(".switches .note"), drawn: false };
    const again = () => { if (figure.drawn) draw(figure); };
    const toggle = (button, change) => button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(change()));
      again();
    });
    for (const button of element.querySelectorAll("button[data-switch]")) {
      const name = button.dataset.switch;
      button.setAttribute("aria-pressed", String(state[name]));
      toggle(button, () => (state[name] = !state[name]));
    }
    for (const button of element.querySelectorAll(".legend button")) {
      button.disabled = false;
      toggle(button, () => {
        const { key } = button.dataset;
        return state.hidden.delete(key) || !state.hidden.add(key);
      });
    }
    const name = element.dataset.name;
    const actions = {
      reset: () => window.Plotly.relayout(place, { "xaxis.autorange": true, "yaxis.autorange": true }),
      svg: () => window.Plotly.downloadImage(place, { format: "svg", filename: name, width: 900, height: 560 }),
      csv: () => window.p4perf.save(csv(data), name),
    };
    for (const button of element.querySelectorAll("button[data-do]")) {
      button.addEventListener("click", () => (figure.drawn || button.dataset.do === "csv") && actions[button.dataset.do]());
    }
    element.querySelector(".switches").hidden = false;
    return figure;
  }

  function start() {
    const figures = [...document.querySelectorAll("figure.interactive")].map(prepare);
    const script = document.createElement("script");
    script.src = `${assets}plotly.min.js`;
    script.addEventListener("load", () => {
      for (const figure of figures) {
        figure.element.classList.add("drawn");
        draw(figure);
        figure.drawn = true;
      }
      document.documentElement.dataset.figures = "drawn";
      dark.addEventListener("change", () => figures.forEach(draw));
    });
    script.addEventListener("error", () => figures.forEach((f) => { f.note.textContent = "assets/plotly.min.js is missing: the figure cannot be changed."; }));
    document.head.append(script);
  }

  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(start, 0)));
})();

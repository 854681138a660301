// Tables answer: a click on a head sorts, words and menus filter, a button saves as CSV, and what is too wide becomes cards.
"use strict";
(() => {
  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const text = (cell) => cell.textContent.replace(/\s+/g, " ").trim();
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value);

  // --- CSV, also of figures

  function save(rows, name) {
    const content = rows.map((row) => row.map((value) => quoted(String(value ?? ""))).join(",")).join("\r\n");
    const url = URL.createObjectURL(new Blob([`${content}\r\n`], { type: "text/csv" }));
    const file = `${document.title} ${name}`.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase();
    make("a", { href: url, download: `${file}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
  window.p4perf = { save };

  /** A column of the table is one of the file, or several: a value, and the ends of its interval. */
  function columns(table) {
    const body = [...table.tBodies[0].rows];
    return [...(table.tHead ? table.tHead.rows[0].cells : body[0].cells)].flatMap((head, at) => {
      const name = table.tHead ? text(head) : ["key", "value"][at];
      const some = (key) => body.some((row) => row.cells[at] && key in row.cells[at].dataset);
      const of = (key) => (row) => row.cells[at].dataset[key];
      const ends = (head.dataset.ends || `${name} low|${name} high`).split("|");
      const found = some("low") ? [[ends[0], of("low")], [ends[1], of("high")]] : [];
      if (!name || (found.length && !some("v"))) return found;
      return [[name, (row) => row.cells[at].dataset.v ?? (some("low") ? "" : text(row.cells[at]))], ...found];
    });
  }

  function csv(table) {
    const found = columns(table);
    const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
    return [found.map(([name]) => name), ...rows.map((row) => found.map(([, of]) => of(row)))];
  }

  // --- sorting

  const key = (cell) => cell.dataset.v ?? cell.dataset.low ?? text(cell);

  function order(a, b) {
    const [x, y] = [Number(a), Number(b)];
    if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.localeCompare(b, "en", { numeric: true });
  }

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      if (!text(head) || table.tBodies[0].rows.length < 3) return;
      const button = make("button", { type: "button", className: "sort" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].sort((a, b) => order(key(a.cells[at]), key(b.cells[at])) * (down ? -1 : 1));
        table.tBodies[0].append(...rows);
      });
    });
  }

  // --- search and filters

  function filters(table) {
    const rows = [...table.tBodies[0].rows];
    const count = make("span", { className: "note", role: "status" });
    const words = make("input", { type: "search", placeholder: "Search", ariaLabel: "Search in the table" });
    const menus = [...table.tHead.querySelectorAll("th[data-filter]")].flatMap((head) => {
      const name = text(head);
      const values = [...new Set(rows.map((row) => text(row.cells[head.cellIndex])))].sort();
      if (values.length < 2) return [];
      const menu = make("select", { ariaLabel: name }, make("option", { value: "" }, `all ${name}s`), ...values.map((v) => make("option", { value: v }, v)));
      return [{ menu, at: head.cellIndex }];
    });
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const all = text(row).toLowerCase();
        const shown = wanted.every((word) => all.includes(word)) && menus.every(({ menu, at }) => !menu.value || text(row.cells[at]) === menu.value);
        row.hidden = !shown;
      }
      const left = rows.filter((row) => !row.hidden).length;
      count.textContent = left === rows.length ? "" : `${left} of ${rows.length}`;
    };
    words.addEventListener("input", apply);
    menus.forEach(({ menu }) => menu.addEventListener("change", apply));
    return [words, ...menus.map(({ menu }) => menu), count];
  }

  // --- what does not fit

  const MATRIX_PX = 800;  // from here on a matrix scrolls below its first column, which is worth more than cards

  function fit(scroll, table) {
    table.classList.remove("cards");
    const wide = scroll.clientWidth > 0 && table.scrollWidth > scroll.clientWidth + 1;
    table.classList.toggle("cards", wide && !(table.classList.contains("matrix") && scroll.clientWidth >= MATRIX_PX));
  }

  for (const table of document.querySelectorAll(".scroll > table")) {
    const scroll = table.parentElement;
    const button = make("button", { type: "button", className: "csv", title: "Save this table as CSV" }, "CSV");
    button.addEventListener("click", () => save(csv(table), scroll.getAttribute("aria-label")));
    const tools = make("div", { className: "tools" });
    if (table.tHead) {
      const names = [...table.tHead.rows[0].cells].map(text);
      for (const row of table.tBodies[0].rows) {
        for (const cell of row.cells) {
          cell.dataset.label = names[cell.cellIndex];
          cell.classList.toggle("empty", !cell.children.length && !text(cell));
          cell.replaceChildren(make("div", {}, ...cell.childNodes));
        }
      }
      sortable(table);
      if (table.classList.contains("search")) tools.append(...filters(table));
      let width = -1;
      new ResizeObserver(() => {
        if (scroll.clientWidth !== width) fit(scroll, table);
        width = scroll.clientWidth;
      }).observe(scroll);
      fit(scroll, table);
    }
    tools.append(button);
    if (tools.children.length > 1) scroll.before(tools);
    else scroll.after(tools);
  }
})();

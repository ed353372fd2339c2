// What the parts of the page are made of. Text from the model reaches the page
// as text nodes only.
const model = JSON.parse(document.getElementById("model").textContent);
const texts = JSON.parse(document.getElementById("texts").textContent);
const root = document.documentElement;
let lang = "en", formats = {};

function t(key, values = {}) {
  return texts[key][lang === "zh" ? 1 : 0].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function useLanguage(name) {
  lang = name;
  const locale = lang === "zh" ? "zh-CN" : "en-GB";
  root.dataset.lang = lang;
  root.lang = lang === "zh" ? "zh-Hans" : "en";
  formats = {
    number: new Intl.NumberFormat(locale),
    percent: new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 }),
    time: new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }),
    unit: (unit, n) => new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: 0 }).format(n),
  };
}

const num = (n) => formats.number.format(n);
const percent = (x) => (x === null || x === undefined ? "–" : formats.percent.format(x));

function idle(ms) {
  if (ms === null) return t("never");
  const units = [["day", 86400000], ["hour", 3600000], ["minute", 60000], ["second", 1000]];
  const [unit, size] = units.find(([, size]) => ms >= size) ?? units[3];
  return formats.unit(unit, Math.floor(ms / size));
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const draw = (name, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

const time = (us) => el("time", { datetime: new Date(us / 1000).toISOString() }, formats.time.format(us / 1000));
const badge = (kind, text) => el("span", { class: "badge " + kind }, text);
// A name of the user's cannot turn the direction of what stands around it.
const named = (text) => el("bdi", {}, text);

function button(text, onclick, attributes) {
  return el("button", { type: "button", onclick, ...attributes }, text);
}

// choice is a row of buttons of which one is pressed.
function choice(name, options, chosen, choose) {
  const buttons = options.map(([value, text]) =>
    button(text, () => {
      for (const [i, b] of buttons.entries()) b.setAttribute("aria-pressed", options[i][0] === value);
      choose(value);
    }, { "aria-pressed": String(value === chosen) }));
  return el("div", { class: "row", role: "group", "aria-label": name }, buttons);
}

// table shows rows, the first limit of them until more are asked for. A column
// is {name, cell, number, head, cls, sort}.
function table(label, columns, rows, { limit = 50, sorted, sortBy, rowClass, tall = true } = {}) {
  const body = el("tbody");
  const count = el("p", { class: "about", role: "status" });
  let shown = 0;
  function more(n) {
    for (const row of rows.slice(shown, shown + n)) {
      body.append(el("tr", { class: rowClass?.(row) || undefined }, columns.map((c) => {
        const cls = [c.number && "number", c.cls].filter(Boolean).join(" ") || undefined;
        return el(c.head ? "th" : "td", { class: cls, scope: c.head && "row" }, c.cell(row));
      })));
    }
    shown = Math.min(rows.length, shown + n);
    count.textContent = t("showing", { n: num(shown), all: num(rows.length) });
    next.hidden = shown >= rows.length;
  }
  const next = button(t("more"), () => more(200), { class: "more" });
  const head = columns.map((c) => {
    const order = sorted && sorted.column === c.sort ? (sorted.down ? "descending" : "ascending") : undefined;
    const arrow = order ? (sorted.down ? " ↓" : " ↑") : "";
    return el("th", { scope: "col", class: c.number && "number", "aria-sort": order },
      c.sort ? button(c.name + arrow, () => sortBy(c.sort), { "data-sort": c.sort }) : c.name);
  });
  more(limit);
  return el("div", {},
    el("div", { class: tall ? "scroll tall" : "scroll", role: "region", "aria-label": label, tabindex: "0" },
      el("table", {}, el("caption", { class: "away" }, label), el("thead", {}, el("tr", {}, head)), body)),
    rows.length > limit && count, next);
}

const swatch = (cls) => draw("svg", { class: "dot", viewBox: "0 0 12 12", "aria-hidden": "true" },
  draw("rect", { class: "fill-" + cls, width: 12, height: 12, rx: 3 }));
const legend = (entries) => el("ul", { class: "legend" }, entries.map(([cls, text]) => el("li", {}, cls && swatch(cls), text)));

// plot draws a column for every item, the last at the right, and says below
// which one is chosen. column(item, x, width) gives the marks, axis the labels.
function plot({ id, items, height, title, desc, axis, backdrop, column, read }) {
  const step = Math.max(6, Math.min(30, Math.floor(1000 / items.length)));
  const width = items.length * step + 4;
  const picked = draw("rect", { class: "picked", y: 1, width: step, height: height - 2, rx: 3 });
  const chart = draw("svg", { width, height, role: "img", "aria-labelledby": `${id}-title ${id}-desc` },
    draw("title", { id: id + "-title" }, title), draw("desc", { id: id + "-desc" }, desc),
    backdrop?.(width), items.map((item, i) => column(item, 2 + i * step, Math.max(4, step - 2))), picked);
  const readout = el("div", { class: "readout", "aria-live": "polite" });
  const box = el("div", { class: "plot", tabindex: "0", role: "group", "aria-label": title }, chart);
  let at = -1;
  function pick(i) {
    i = Math.max(0, Math.min(items.length - 1, i));
    if (i === at) return;
    at = i;
    picked.setAttribute("x", 1 + i * step);
    readout.replaceChildren(...read(items[i]));
  }
  const under = (e) => pick(Math.floor((e.clientX - chart.getBoundingClientRect().left - 2) / step));
  chart.addEventListener("pointermove", under);
  chart.addEventListener("pointerdown", under);
  box.addEventListener("keydown", (e) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: items.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    pick(to);
    const x = at * step;
    if (x < box.scrollLeft || x + step > box.scrollLeft + box.clientWidth) box.scrollLeft = x - box.clientWidth / 2;
  });
  pick(items.length - 1);
  requestAnimationFrame(() => { box.scrollLeft = box.scrollWidth; });
  const labels = draw("svg", { width: 52, height, "aria-hidden": "true", class: "labels" },
    axis.map(([y, text]) => draw("text", { x: 46, y: Math.max(10, Math.min(height - 3, y + 4)), "text-anchor": "end" }, text)));
  return el("div", {}, el("div", { class: "plotted" }, labels, box), readout);
}

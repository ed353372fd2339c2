// The parts of the page that are made from the model.

const causes = (event) => (event.operations ?? []).map((o) => (o.page_id ? `${o.operation} ${o.page_id}` : o.operation)).join(", ") || "–";

// Of the first text all is new; its figures are held against nothing.
const fresh = (event) => (event.first ? event.text_bytes : event.rewritten_bytes);

function prefixBadge(event) {
  if (event.first) return badge("", t("intact.first"));
  return event.prefix_intact ? badge("good", t("intact.yes")) : badge("bad", t("intact.no"));
}

function timeline() {
  const events = model.renders.toReversed();
  if (!events.length) return [el("p", { class: "none" }, t("timeline.none"))];
  const most = Math.max(1, ...events.map((e) => e.text_bytes));
  const lost = Math.max(0, ...events.map((e) => e.invalidated_bytes));
  const height = 210, top = 14, scale = (height - top - 8) / (most + lost), zero = top + most * scale;
  // What is under half a pixel is not drawn: it would look like more.
  const bar = (cls, x, y, w, h) => h >= 0.5 && draw("rect", { class: "fill-" + cls, x, y, width: w, height: h });
  const intact = events.filter((e) => e.prefix_intact).length;
  return [
    legend([["reused", t("timeline.reused")], ["written", t("timeline.written")], ["lost", t("timeline.lost")],
      [null, [el("span", { class: "broken", "aria-hidden": "true" }, "▼"), t("timeline.broken")]]]),
    plot({
      id: "timeline-chart", items: events, height,
      title: t("timeline.chart", { n: num(events.length) }), desc: t("timeline.desc", { intact: num(intact) }),
      axis: [[top, num(most)], [zero, "0"], ...(lost ? [[height - 8, "−" + num(lost)]] : [])],
      backdrop: (width) => draw("line", { class: "axis", x1: 0, x2: width, y1: zero, y2: zero }),
      column: (e, x, w) => {
        const common = e.common_bytes * scale, anew = fresh(e) * scale;
        const broken = !e.prefix_intact && !e.first;
        return [
          bar("reused", x, zero - common, w, common),
          bar("written", x, zero - common - anew, w, anew),
          bar("lost", x, zero, w, e.invalidated_bytes * scale),
          broken && draw("path", { class: "fill-lost", d: `M${x + w / 2 - 4} 2h8l-4 8z` }),
        ];
      },
      read: (e) => [
        el("b", {}, t("timeline.read", { generation: num(e.generation) })), " · ", time(e.at_us), " ", prefixBadge(e), el("br"),
        t("timeline.sum", { common: num(e.common_bytes), rewritten: num(fresh(e)), invalidated: num(e.invalidated_bytes) }), el("br"),
        el("code", {}, named(causes(e))),
      ],
    }),
    el("details", {}, el("summary", {}, t("table.events", { n: num(events.length) })),
      table(t("timeline"), [
        { name: t("col.time"), cls: "still", cell: (e) => time(e.at_us) },
        { name: t("col.generation"), number: true, head: true, cell: (e) => num(e.generation) },
        { name: t("col.text"), number: true, cell: (e) => num(e.text_bytes) },
        { name: t("col.reused"), number: true, cell: (e) => num(e.common_bytes) },
        { name: t("col.rewritten"), number: true, cell: (e) => num(e.rewritten_bytes) },
        { name: t("col.invalidated"), number: true, cell: (e) => num(e.invalidated_bytes) },
        { name: t("col.prefix"), cell: prefixBadge },
        { name: t("col.causes"), cls: "causes", cell: (e) => named(causes(e)) },
      ], model.renders)),
  ];
}

const simulated = () => badge("simulated", t("simulated"));

function usageTotals() {
  const rows = [["provider", model.usage.totals.provider], ["simulated", model.usage.totals.simulated]].filter(([, sum]) => sum.calls);
  return table(t("usage.totals"), [
    { name: t("usage.source"), head: true, cell: ([kind]) => (kind === "simulated" ? simulated() : t("usage.provider")) },
    { name: t("col.calls"), number: true, cell: ([, s]) => num(s.calls) },
    { name: t("col.input"), number: true, cell: ([, s]) => num(s.input) },
    { name: t("col.read"), number: true, cell: ([, s]) => num(s.cache_read) },
    { name: t("col.write"), number: true, cell: ([, s]) => num(s.cache_write) },
    { name: t("col.output"), number: true, cell: ([, s]) => num(s.output) },
    { name: t("col.hits"), number: true, cell: ([, s]) => percent(s.hit_rate) },
  ], rows, { tall: false });
}

function usageCosts() {
  if (!model.usage.costs?.length) return null;
  return [
    el("h3", {}, t("usage.costs")), el("p", { class: "about" }, t("usage.costs.about")),
    table(t("usage.costs"), [
      { name: t("usage.profile"), head: true, cell: (c) => named(c.profile) },
      { name: t("usage.source"), cell: (c) => (c.simulated ? simulated() : t("usage.provider")) },
      { name: t("usage.ratio"), number: true, cell: (c) => percent(c.ratio) },
      { name: t("usage.saved"), number: true, cell: (c) => percent(c.saved) },
      { name: t("usage.as_of"), cls: "still", cell: (c) => c.as_of },
    ], model.usage.costs, { tall: false }),
  ];
}

function usage() {
  const calls = model.usage.records.toReversed();
  const { provider, simulated: made } = model.usage.totals;
  if (!provider.calls && !made.calls) return [el("p", { class: "none" }, t("usage.none"))];
  const height = 150, top = 8, full = height - top - 6;
  const place = (r) => (r.turn === undefined && r.step === undefined ? null : t("usage.turn", { turn: num(r.turn ?? 0), step: num(r.step ?? 0) }));
  const chart = calls.length > 0 && plot({
    id: "usage-chart", items: calls, height, title: t("usage.chart", { n: num(calls.length) }), desc: t("usage.desc"),
    axis: [[top, percent(1)], [top + full / 2, percent(0.5)], [top + full, percent(0)]],
    backdrop: (width) => [
      draw("defs", {}, draw("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        draw("rect", { class: "hatch", width: 2, height: 6 }))),
      [0, 0.5, 1].map((y) => draw("line", { class: "axis", x1: 0, x2: width, y1: top + full * y, y2: top + full * y })),
    ],
    column: (r, x, w) => {
      let y = top + full;
      const parts = [["reused", r.cache_read_tokens], ["written", r.cache_write_tokens], ["archive", r.input_tokens]];
      const marks = parts.map(([cls, n]) => {
        const h = r.billed_input ? (n / r.billed_input) * full : 0;
        y -= h;
        return h > 0 && draw("rect", { class: "fill-" + cls, x, y, width: w, height: h });
      });
      return [marks, r.simulated && draw("rect", { fill: "url(#hatch)", x, y: top, width: w, height: full })];
    },
    read: (r) => [
      el("b", {}, r.simulated ? simulated() : named(r.source)), " · ", time(r.at_us), place(r) && " · " + place(r), el("br"),
      t("usage.call", { rate: percent(r.hit_rate), read: num(r.cache_read_tokens), write: num(r.cache_write_tokens),
        input: num(r.input_tokens), output: num(r.output_tokens) }),
    ].filter(Boolean),
  });
  return [
    chart && legend([["reused", t("usage.read")], ["written", t("usage.write")], ["archive", t("usage.input")],
      ...(made.calls ? [[null, t("usage.hatched")]] : [])]),
    chart,
    el("h3", {}, t("usage.totals")), usageTotals(), usageCosts(),
    calls.length > 0 && el("details", {}, el("summary", {}, t("table.calls", { n: num(calls.length) })),
      table(t("usage"), [
        { name: t("col.time"), cls: "still", cell: (r) => time(r.at_us) },
        { name: t("usage.source"), head: true, cell: (r) => (r.simulated ? simulated() : named(r.source)) },
        { name: t("col.turn"), number: true, cell: (r) => (r.turn === undefined ? "–" : num(r.turn)) },
        { name: t("col.step"), number: true, cell: (r) => (r.step === undefined ? "–" : num(r.step)) },
        { name: t("col.input"), number: true, cell: (r) => num(r.input_tokens) },
        { name: t("col.read"), number: true, cell: (r) => num(r.cache_read_tokens) },
        { name: t("col.write"), number: true, cell: (r) => num(r.cache_write_tokens) },
        { name: t("col.output"), number: true, cell: (r) => num(r.output_tokens) },
        { name: t("col.hits"), number: true, cell: (r) => percent(r.hit_rate) },
      ], model.usage.records)),
  ].flat().filter(Boolean);
}

const tierClass = { 2: "core", 3: "working", archive: "archive" };
// What the reader chose stays when the language changes.
const chosen = { segment: "all", query: "", sorted: null, ledger: "all" };

function pages() {
  const all = model.pages;
  if (!all.length) return [el("p", { class: "none" }, t("pages.none"))];
  const box = el("div");
  const values = { bytes: (p) => p.bytes, rendered: (p) => p.rendered_bytes, hits: (p) => p.hits, idle: (p) => p.idle_ms ?? Infinity };
  function update(focus) {
    const query = chosen.query.toLocaleLowerCase();
    let rows = all.filter((p) => (chosen.segment === "all" || p.segment === chosen.segment) &&
      (!query || p.page_id.toLocaleLowerCase().includes(query) || (p.title ?? "").toLocaleLowerCase().includes(query)));
    if (chosen.sorted) {
      const value = values[chosen.sorted.column], sign = chosen.sorted.down ? -1 : 1;
      rows = rows.toSorted((a, b) => { const x = value(a), y = value(b); return x === y ? 0 : x < y ? -sign : sign; });
    }
    if (!rows.length) {
      box.replaceChildren(el("p", { class: "none", role: "status" }, t("pages.no_match")));
      return;
    }
    box.replaceChildren(table(t("pages"), [
      { name: t("col.segment"), cls: "still", cell: (p) => [swatch(tierClass[p.segment]), t("segment." + p.segment)] },
      { name: t("col.page"), cls: "titled", head: true, cell: (p) => [
        named(p.title || t("untitled")), p.outline && [" ", badge("", t("row"))], p.stale && [" ", badge("warn", t("stale"))],
        el("small", {}, named(`${p.page_id}@${p.version}`))] },
      { name: t("col.bytes"), number: true, sort: "bytes", cell: (p) => num(p.bytes) },
      { name: t("col.rendered"), number: true, sort: "rendered", cell: (p) => (p.segment === "archive" ? "–" : num(p.rendered_bytes)) },
      { name: t("col.hits.count"), number: true, sort: "hits", cell: (p) => num(p.hits) },
      { name: t("col.idle"), number: true, sort: "idle", cell: (p) => idle(p.idle_ms) },
    ], rows, {
      sorted: chosen.sorted,
      sortBy: (column) => {
        const s = chosen.sorted;
        chosen.sorted = s?.column !== column ? { column, down: true } : s.down ? { column, down: false } : null;
        update(column);
      },
    }));
    if (focus) box.querySelector(`[data-sort="${focus}"]`)?.focus();
  }
  const counts = { all: all.length };
  for (const p of all) counts[p.segment] = (counts[p.segment] ?? 0) + 1;
  const filter = choice(t("pages.filter"), ["all", "2", "3", "archive"].map((s) => [s, `${t("segment." + s)} ${num(counts[s] ?? 0)}`]),
    chosen.segment, (s) => { chosen.segment = s; update(); });
  filter.append(el("input", { type: "search", "aria-label": t("pages.search"), placeholder: t("pages.search"), value: chosen.query,
    oninput: (e) => { chosen.query = e.target.value; update(); } }));
  update();
  return [filter, box];
}

function ledger() {
  const all = model.residency;
  if (!all.length) return [el("p", { class: "none" }, t("ledger.none"))];
  const box = el("div");
  const tier = (name) => t(name in { core: 1, working: 1, archive: 1 } ? name : "none");
  const faults = all.filter((m) => m.fault);
  const titles = new Map(model.pages.map((p) => [p.page_id, p.title]));
  function update() {
    box.replaceChildren(table(t("ledger"), [
      { name: t("col.time"), cls: "still", cell: (m) => time(m.at_us) },
      { name: t("col.operation"), cls: "still", cell: (m) => [m.operation, m.fault && [" ", badge("bad", t("fault"))]] },
      { name: t("col.page"), cls: "titled", head: true, cell: (m) =>
        (titles.get(m.page_id) ? [named(titles.get(m.page_id)), el("small", {}, named(m.page_id))] : named(m.page_id)) },
      { name: t("col.move"), cls: "still", cell: (m) => `${tier(m.from)} → ${tier(m.to)}` },
      { name: t("col.reason"), cls: "still", cell: (m) => m.reason },
      { name: t("col.bytes"), number: true, cell: (m) => num(m.bytes) },
    ], chosen.ledger === "faults" ? faults : all, { rowClass: (m) => m.fault && "fault" }));
  }
  update();
  return [
    faults.length > 0 && choice(t("ledger"), [["all", `${t("ledger.all")} ${num(all.length)}`], ["faults", `${t("ledger.faults")} ${num(faults.length)}`]],
      chosen.ledger, (which) => { chosen.ledger = which; update(); }),
    box,
  ].filter(Boolean);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);

function show() {
  document.title = `${model.scope.join(" / ")} · ${t("title")}`;
  const language = document.getElementById("language"), theme = document.getElementById("theme");
  language.textContent = t("language");
  language.lang = lang === "zh" ? "en" : "zh-Hans";
  language.title = t("language.name");
  theme.textContent = t(isDark() ? "theme.light" : "theme.dark");
  theme.title = t("theme.name");
  document.getElementById("zone").textContent = t("zone", { zone: Intl.DateTimeFormat().resolvedOptions().timeZone });
  for (const [id, part] of Object.entries({ timeline, usage, pages, ledger })) document.getElementById(id).replaceChildren(...part());
}

// What was chosen stands in the address behind "#", so that it lasts.
function remember() {
  location.replace("#" + [lang, root.dataset.theme].filter(Boolean).join("&"));
}

const asked = location.hash.slice(1).split("&");
const wanted = asked.find((a) => a === "zh" || a === "en") ?? (/^zh\b/i.test(navigator.language) ? "zh" : "en");
const look = asked.find((a) => a === "dark" || a === "light");
if (look) root.dataset.theme = look;
useLanguage(wanted);
show();
document.getElementById("tools").hidden = false;
document.getElementById("language").addEventListener("click", () => { useLanguage(lang === "zh" ? "en" : "zh"); show(); remember(); });
document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; show(); remember(); });
dark.addEventListener("change", show);

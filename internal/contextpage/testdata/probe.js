// The probe stands before everything else in a page under test, looks at what
// the page does, uses it as a reader would, and tells the page around it.
const problems = [];
let violations = 0;
addEventListener("error", (e) => problems.push("error: " + e.message));
addEventListener("unhandledrejection", (e) => problems.push("rejected: " + e.reason));
document.addEventListener("securitypolicyviolation", (e) => { violations++; problems.push("policy: " + e.violatedDirective + " " + e.blockedURI); });

function look() {
  const root = document.documentElement, seen = (e) => e.getClientRects().length > 0;
  const wide = root.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")].filter((e) =>
    e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .plot")).slice(0, 5).map((e) => e.outerHTML.slice(0, 120));
  for (const b of document.querySelectorAll("button, summary, input")) {
    if (!(b.textContent.trim() || b.getAttribute("aria-label"))) problems.push("without a name: " + b.outerHTML.slice(0, 120));
    if (b.tabIndex < 0) problems.push("out of reach: " + b.outerHTML.slice(0, 120));
    if (seen(b) && b.getBoundingClientRect().height < 24) problems.push("too small to hit: " + b.outerHTML.slice(0, 120));
  }
  for (const g of document.querySelectorAll("svg")) {
    const named = (g.getAttribute("aria-labelledby") ?? "").split(" ").every((id) => document.getElementById(id)?.textContent);
    if (g.getAttribute("aria-hidden") !== "true" && !(g.getAttribute("role") === "img" && named)) problems.push("a picture without words: " + g.outerHTML.slice(0, 120));
  }
  for (const table of document.querySelectorAll("table")) {
    if (![...table.querySelectorAll("thead th")].every((th) => th.scope === "col")) problems.push("a table without heads");
    if (!table.closest(".scroll[tabindex='0']")) problems.push("a table that cannot be scrolled by keys");
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) problems.push("an id is there twice");
  const other = root.dataset.lang === "zh" ? "en" : "zh";
  if ([...document.querySelectorAll(`[data-l="${other}"]`)].some((e) => getComputedStyle(e).display !== "none")) problems.push("the other language shows");
  return {
    width: innerWidth, scrollWidth: root.scrollWidth, wide,
    lang: root.lang, scheme: getComputedStyle(root).colorScheme, ground: getComputedStyle(document.body).backgroundColor,
    heading: document.querySelector("h1").innerText, requests: performance.getEntriesByType("resource").length,
    columns: document.querySelectorAll("#timeline .plot g, #timeline .plot .fill-reused, #timeline .plot .fill-written").length,
    pageRows: document.querySelectorAll("#pages tbody tr").length, ledgerRows: document.querySelectorAll("#ledger tbody tr").length,
    faults: document.querySelectorAll("#ledger tr.fault").length, text: document.body.innerText,
  };
}

// use clicks and types its way through the page and says what came of it.
function use() {
  const one = (selector) => document.querySelector(selector), did = {};
  const key = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const rows = (part) => document.querySelectorAll(`#${part} tbody tr`).length;
  const plot = one("#timeline .plot");
  if (plot) {
    key(plot, "Home");
    did.first = one("#timeline .readout").innerText;
    key(plot, "ArrowRight");
    did.second = one("#timeline .readout").innerText;
    key(plot, "End");
    did.last = one("#timeline .readout").innerText;
  }
  const hits = () => [...document.querySelectorAll("#pages tbody tr td:nth-last-child(2)")].map((td) => Number(td.textContent.replace(/\D/g, "")));
  if (one("#pages .row")) {
    one("#pages [data-sort=hits]").click();
    did.mostHits = hits();
    one("#pages [data-sort=hits]").click();
    did.fewestHits = hits();
    did.sorted = one("#pages th[aria-sort]").getAttribute("aria-sort");
    did.focusKept = document.activeElement === one("#pages [data-sort=hits]") || !document.hasFocus();
    one("#pages [data-sort=hits]").click();
    one("#pages .row button:nth-of-type(2)").click();
    did.core = rows("pages");
    one("#pages .row button:nth-of-type(1)").click();
    const search = one("#pages input");
    search.value = "no such page";
    search.dispatchEvent(new Event("input"));
    did.none = rows("pages");
    search.value = "";
    search.dispatchEvent(new Event("input"));
    did.all = rows("pages");
    const more = one("#pages .more");
    if (!more.hidden) more.click();
    did.more = rows("pages");
  }
  const faults = one("#ledger .row button:nth-of-type(2)");
  if (faults) {
    faults.click();
    did.onlyFaults = rows("ledger");
    did.pressed = faults.getAttribute("aria-pressed");
  }
  const before = [document.documentElement.lang, getComputedStyle(document.body).backgroundColor];
  one("#language").click();
  one("#theme").click();
  did.toggled = [document.documentElement.lang, getComputedStyle(document.body).backgroundColor, location.hash];
  did.before = before;
  did.kept = rows("ledger");
  one("#language").click();
  one("#theme").click();
  return did;
}

addEventListener("load", () => setTimeout(() => {
  const report = look();
  report.did = use();
  Object.assign(report, { problems, violations, harmed: window.harmed !== undefined, name: window.name });
  parent.postMessage(JSON.stringify(report), "*");
}, 50));

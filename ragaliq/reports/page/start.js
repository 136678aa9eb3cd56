// Filters, and what happens when something is chosen.

const VERDICT_CHOICES = [
  ["", "all"], ["SUPPORTED", "supported"], ["CONTRADICTED", "contradicted"],
  ["NOT_ENOUGH_INFO", "not covered"], ["NONE", "no verdict"],
];
const CHOICES = {
  metric: [["", "all"], ...[...new Set(DATA.series.map(seriesName))].map((name) => [name, name])],
  pipeline: [["", "all"], ...DATA.pipelines.map((_, position) => [pipelineName(position), pipelineName(position)])],
  verdict: VERDICT_CHOICES,
  status: [["", "all"], ...DATA.statuses.map((status) => [status, status])],
};

function fillFilters() {
  for (const [name, choices] of Object.entries(CHOICES)) {
    byId(`by-${name}`).replaceChildren(...choices.map(([value, words]) => el("option", { value }, words)));
    // With one thing to choose there is no choice.
    byId(`by-${name}`).closest("label").hidden = choices.length < 3;
  }
  for (const name of ["from", "until"]) byId(`by-${name}`).closest("label").hidden = DATA.width === null;
}

// On a narrow screen a row is a card, whose cells name their column.
function nameCells() {
  for (const table of document.querySelectorAll("main > section table")) {
    const names = [...table.querySelectorAll("thead th")].map((each) => each.textContent);
    for (const row of table.tBodies[0].rows) {
      for (const cell of row.cells) if (cell.colSpan === 1) cell.dataset.label = names[cell.cellIndex];
    }
  }
}

function filtersFromAddress() {
  readAddress();
  for (const name of FILTERS) {
    const field = byId(`by-${name}`);
    field.value = chosen[name];
    // What the page does not know is not filtered by.
    chosen[name] = field.value;
  }
}

function readFilters() {
  for (const name of FILTERS) chosen[name] = byId(`by-${name}`).value;
  chosen.set = "";
  show();
}

function show() {
  drawCharts();
  list();
  if (listed.length === 0) {
    byId("answer").replaceChildren(el("p", { class: "empty" }, "No answer fits these filters."));
    writeAddress();
  } else {
    select(Math.max(0, selectedPosition()));
  }
}

let waiting = 0;
function soon(action) {
  clearTimeout(waiting);
  waiting = setTimeout(action, 150);
}

nameCells();
fillFilters();
filtersFromAddress();
byId("filters").addEventListener("input", () => soon(readFilters));
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("filters").addEventListener("reset", () => setTimeout(readFilters));
byId("list").addEventListener("keydown", moveThroughList);
byId("list").addEventListener("click", (event) => {
  const row = event.target.closest("[role=option]");
  if (row) select(listed.indexOf(Number(row.dataset.place)));
});
byId("more").addEventListener("click", () => showMore(0));
byId("answer").addEventListener("keydown", (event) => {
  if (event.key === "Escape") byId("list").focus();
});
window.addEventListener("hashchange", () => {
  // A fragment without a choice is a place in the page, such as the link that skips to the answers.
  if (location.hash === "#answers") return;
  filtersFromAddress();
  show();
});
// What sticks to the top of the window must not cover what is scrolled to.
new ResizeObserver(([bar]) => {
  document.documentElement.style.setProperty("--bar", `${Math.round(bar.target.offsetHeight)}px`);
}).observe(byId("filters"));
window.addEventListener("resize", () => soon(drawCharts));
show();

/** A drafted transformation: its plan, assumptions, evidence, SQL, preview, and the files to take along. */

import { send } from "./api.js";
import { groupThousands } from "./cells.js";
import { element, glyph } from "./dom.js";
import { offer } from "./downloads.js";
import { planPicture } from "./plan_picture.js";
import { resultView } from "./result_view.js";
import { highlighted } from "./sql_highlight.js";
import { label, setLabel } from "./texts.js";
import "./draft_texts.js";

const STATES = ["proven", "unproven", "failed", "needs_input", "not_possible", "cancelled_by_user"];
const LEDGER = ["operation", "table", "rows_in", "rows_out", "filtered", "unmatched", "repeated", "null_keys"];

/** `<section>` for the data of an answer, or of a question about a draft. */
export function draftView(data) {
  const { evidence, plan, artefact } = data;
  const parts = [
    data.summary ? element("p", { class: "answer-text", dir: "auto" }, data.summary) : null, // of a draft to be judged
    STATES.includes(data.status) ? element("p", { class: `draft-status ${data.status}` }, label(`draft_${data.status}`)) : null,
    list("draft_impossible", data.impossible, ({ text, suggestions }) => withSuggestions(text, suggestions)),
    list("draft_questions", data.questions, ({ prompt, choices }) => withSuggestions(prompt, choices.map((one) => one.label))),
    list("draft_assumptions", data.assumptions, assumption),
    learnt(data.learned),
    plan?.nodes?.length ? folded("draft_plan", true, planPicture(plan)) : null,
    evidence ? tests(evidence) : null,
    evidence?.ledger?.length ? folded("draft_ledger", false, ledger(evidence.ledger)) : null,
    artefact ? files(artefact) : null,
    data.preview ? resultView(data.preview) : null,
  ];
  return element("section", { class: "draft" }, ...parts);
}

function folded(key, open, ...parts) {
  return element("details", { class: "draft-part", open }, element("summary", {}, label(key)), ...parts);
}

function list(key, entries, textOf) {
  if (!entries?.length) return null;
  const items = entries.map((entry) => element("li", { dir: "auto" }, textOf(entry)));
  return element("div", { class: "draft-list" }, label(key, {}, "h3"), element("ul", {}, ...items));
}

function withSuggestions(text, suggestions) {
  return suggestions?.length ? `${text} (${suggestions.join(" · ")})` : text;
}

function assumption({ text, rows, amount, of: counted }) {
  const figures = [
    rows == null ? null : label("draft_rows", { count: rows }),
    amount == null ? null : element("span", {}, groupThousands(String(amount))),
    counted ? label(`draft_of_${counted}`) : null,
  ];
  const shown = figures.filter(Boolean).flatMap((figure, place) => (place ? [" · ", figure] : [figure]));
  return element("span", {}, text, " ", element("span", { class: "draft-figures" }, ...shown));
}

/** What was kept of the reader's rating, or of a failure. */
function learnt(learned) {
  const { example, lesson } = learned ?? {};
  if (!example && !lesson) return null;
  const kept = example ? element("li", {}, label(`draft_reference_${standing(example)}`)) : null;
  const told = lesson ? element("li", { dir: "auto" }, label(`failure_${lesson.failure_type}`), ` · ${lesson.root_cause} ${lesson.avoidance_hint}`) : null;
  return element("div", { class: "draft-list draft-learnt" }, label("draft_learnt", {}, "h3"), element("ul", {}, kept, told));
}

function standing({ state, trust }) {
  if (state === "rejected") return "rejected";
  return ["personal", "candidate"].includes(trust) ? trust : "shared";
}

function tests({ tests: all = [], mutants, totals = [] }) {
  const failed = all.filter(({ status, is_warning: isWarning }) => status === "fail" && !isWarning);
  const counts = { count: all.length, failed: failed.length };
  const score = mutants ? label("draft_mutants", { caught: mutants.caught, tried: mutants.tried - mutants.equivalent }, "p") : null;
  const rows = all.map((test) => element("li", { "data-status": test.status }, mark(test.status), element("code", {}, test.id), detail(test)));
  const reconciled = totals.map(({ measure, built, independent }) =>
    element("li", {}, mark(built === independent ? "pass" : "fail"), element("code", {}, measure), ` ${figure(built)} = ${figure(independent)}`),
  );
  const title = element("summary", {}, label("draft_tests", counts));
  const missed = list("draft_survivors", mutants?.survivors, ({ node, detail: text }) => `${node}: ${text}`);
  return element("details", { class: "draft-part", open: failed.length > 0 }, title, score, missed, element("ul", { class: "draft-tests" }, ...reconciled, ...rows));
}

function figure(amount) {
  return amount == null ? "NULL" : groupThousands(String(amount));
}

function mark(status) {
  return glyph({ pass: "done", fail: "failed" }[status] ?? "stopped");
}

function detail({ detail: text, failures, status }) {
  const parts = [status === "fail" && failures ? ` ${failures}` : "", text ? ` ${text}` : ""];
  return element("span", { dir: "auto" }, parts.join(""));
}

/** A table, whose rows are blocks with the heads in them where it is narrow; so its parts say what they are. */
function ledger(entries) {
  const heads = LEDGER.map((key) => element("th", { scope: "col", role: "columnheader" }, label(`draft_${key}`)));
  const rows = entries.map((entry) => element("tr", { role: "row" }, ...LEDGER.map((key) => ledgerCell(key, entry[key]))));
  const head = element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...heads));
  const table = element("table", { role: "table" }, head, element("tbody", { role: "rowgroup" }, ...rows));
  return element("div", { class: "table-scroll ledger", tabindex: "0", role: "group" }, table);
}

function ledgerCell(key, value) {
  const head = element("span", { class: "cell-head", "aria-hidden": "true" }, label(`draft_${key}`));
  const isSource = key === "operation" && value === 0; // what is said of a table before any step
  return element("td", { role: "cell" }, head, isSource ? label("draft_source") : String(value ?? ""));
}

/** The download, and each file's text when it is wanted. */
function files({ artefact_id: id, url, files_url: filesUrl, files: all }) {
  const shown = element("div", { class: "draft-file", "aria-live": "polite" });
  const options = all.map(({ path }) => element("option", { value: path }, path));
  const choice = element("select", { class: "asked-field" }, ...options);
  const open = element("button", { type: "button", class: "secondary" }, label("draft_show_file"));
  open.addEventListener("click", () => showFile(`${filesUrl}/${choice.value}`, choice.value, shown));
  const named = element("label", {}, element("span", {}, label("draft_file")), choice);
  const tools = element("div", { class: "draft-tools" }, downloadButton(url, `${id}.zip`), named, open);
  return element("div", { class: "draft-files" }, label("files", {}, "h3"), tools, shown);
}

function downloadButton(url, name) {
  const text = label("draft_download");
  const button = element("button", { type: "button", class: "primary" }, glyph("download"), text);
  button.addEventListener("click", async () => {
    const response = await fetched(url);
    if (!response) return setLabel(text, "download_failed", { format: "zip" });
    offer(await response.blob(), name);
  });
  return button;
}

async function showFile(url, path, place) {
  const response = await fetched(url);
  if (!response) return place.replaceChildren(label("download_failed", { format: path }, "p"));
  const text = await response.text();
  const code = element("code", {}, ...(path.endsWith(".sql") ? highlighted(text) : [text]));
  place.replaceChildren(element("pre", { class: "tool-sql", tabindex: "0", dir: "auto" }, code));
}

/** The response of an address of the API that an answer names, or null. */
async function fetched(url) {
  try {
    const response = await send(url.replace(/^.*\/api\/v0\//, ""));
    return response.ok ? response : null;
  } catch {
    return null;
  }
}

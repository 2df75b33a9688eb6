/**
 * An answer over MCP in the frame that a client gives it (MCP Apps): rows, chart and cards by the page's own modules. It
 * fetches nothing, and what it shows is text, whatever the database holds.
 */

import { cardList } from "./cards.js";
import { chartColumns, fittingKinds } from "./chart_kinds.js";
import { ChartViews } from "./chart_views.js";
import { element } from "./dom.js";
import { ResultTable } from "./result_table.js";
import { label, preferredLanguage, speak } from "./texts.js";

const VERSION = "2026-01-26";
const INFO = { name: "citu-answer", version: "1" };
const client = window.parent;
const place = document.getElementById("answer");

function send(message) {
  client.postMessage({ jsonrpc: "2.0", ...message }, "*"); // it holds nothing but sizes and names
}

const NOTIFICATIONS = {
  "ui/notifications/tool-result": showResult,
  "ui/notifications/tool-cancelled": () => place.replaceChildren(label("stopped_text", {}, "p")),
  "ui/notifications/host-context-changed": fit,
};

function received({ source, data }) {
  if (source !== client || data?.jsonrpc !== "2.0") return;
  if (data.method === undefined) begin(data);
  else if (data.id !== undefined) send({ id: data.id, result: {} }); // a ping, or the end
  else NOTIFICATIONS[data.method]?.(data.params ?? {});
}

/** Takes the client's answer to the first request. */
function begin({ result }) {
  if (!result) return;
  fit(result.hostContext ?? {});
  send({ method: "ui/notifications/initialized" });
}

/** Looks as the client does, and speaks its language. */
function fit({ theme, locale }) {
  if (theme) globalThis.showTheme(theme);
  if (locale) speak(preferredLanguage([locale]));
}

function showResult({ structuredContent: answer, content = [], isError = false }) {
  const said = content.find(({ type }) => type === "text")?.text ?? "";
  if (isError || !answer) {
    place.replaceChildren(element("p", { class: "answer-text" }, said));
    return;
  }
  const { response, query_result: rows, chart = null, cards, warnings = [] } = answer;
  place.replaceChildren(
    ...(response ? [element("p", { class: "answer-text" }, response)] : []),
    ...(rows ? [rowsView(rows, chart)] : []),
    ...cardList(cards),
    ...warnings.map((warning) => element("p", { class: "count" }, warning)),
  );
}

function rowsView(result, chart) {
  const head = element("header", { class: "block-head" }, label("rows_title", {}, "h3"));
  const section = element("section", { class: "rows" }, head);
  if (result.rows.length === 0) {
    section.append(label("no_rows", {}, "p"));
    return section;
  }
  const table = new ResultTable(result, {});
  const columns = chartColumns(result, chart);
  const kinds = fittingKinds(result, columns);
  if (kinds.length > 1) new ChartViews(result, { columns, kinds, table }).addTo(section, head, element("div"));
  else section.append(table.element);
  return section;
}

addEventListener("message", received);
new ResizeObserver(() => {
  const { width, height } = document.documentElement.getBoundingClientRect();
  send({ method: "ui/notifications/size-changed", params: { width: Math.ceil(width), height: Math.ceil(height) } });
}).observe(document.documentElement);
speak(preferredLanguage());
send({ id: 1, method: "ui/initialize", params: { protocolVersion: VERSION, appInfo: INFO, appCapabilities: {} } });

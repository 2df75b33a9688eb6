/** Shows an earlier question and its answer, as the server keeps them. */

import { element } from "./dom.js";
import { NumberText } from "./exact_json.js";
import { questionHead } from "./question_head.js";
import { resultView } from "./result_view.js";
import { sqlBlock } from "./sql_block.js";
import { label } from "./texts.js";

/** `<article>` for a turn of `GET /api/v0/conversations/{id}`, whose id is needed once the run itself has expired. */
export function pastTurn(turn, conversationId) {
  const askedAt = label("asked_at", { at: turn.asked_at }, "p");
  askedAt.className = "asked-at";
  const article = element(
    "article",
    { class: "turn past", "data-state": "done", "data-run": turn.run_id },
    ...questionHead(turn.question),
    askedAt,
    element("p", { class: "answer-text", dir: "auto" }, turn.response),
  );
  if (turn.columns.length) article.append(resultView(preview(turn), { runId: turn.run_id, conversationId }));
  if (turn.sql) article.append(sqlBlock(turn.sql, "sql", { runsAgain: true }));
  return article;
}

function preview({ columns, column_types: types, labels, units, periods, formats, rows, row_count: total }) {
  const shown = types ?? columns.map((_name, index) => (isNumbers(rows.map((row) => row[index])) ? "numeric" : ""));
  return { columns, column_types: shown, labels, units, periods, formats, rows, row_count: rows.length, total };
}

/** Of turns that are kept without types, columns that hold only numbers are shown as numbers. */
function isNumbers(values) {
  const known = values.filter((value) => value !== null);
  return known.length > 0 && known.every((value) => typeof value === "number" || value instanceof NumberText);
}

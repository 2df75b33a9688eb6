/** Shows an earlier question and its answer, or why it has none, as the server keeps them. */

import { answerText } from "./answer_text.js";
import { element } from "./dom.js";
import { NumberText } from "./exact_json.js";
import { failureBox, stoppedBox } from "./failure.js";
import { questionHead } from "./question_head.js";
import { resultView } from "./result_view.js";
import { sqlBlock } from "./sql_block.js";
import { suggestions } from "./suggestions.js";
import { label } from "./texts.js";

/**
 * `<article>` for a turn of `GET /api/v0/conversations/{id}`, whose id is needed once the run itself has expired.
 * `onAsk(question)` asks one again, or one that was offered; what was offered is shown with the latest turn only.
 * `onRunSql` is as `sqlBlock` has it.
 */
export function pastTurn(turn, conversationId, { onAsk, onRunSql, isLatest = false }) {
  const askedAt = label("asked_at", { at: turn.asked_at }, "p");
  askedAt.className = "asked-at";
  const article = element(
    "article",
    { class: "turn past", "data-state": stateOf(turn), "data-run": turn.run_id },
    ...questionHead(turn.question),
    askedAt,
  );
  article.append(...(turn.failure ? failed(turn, { onAsk, onRunSql }) : answered(turn, conversationId, { onAsk, onRunSql, isLatest })));
  const kinds = isLatest ? ["choices", "rewrites", "follow_ups"] : [];
  article.append(...kinds.flatMap((kind) => suggestions(kind, turn[kind], onAsk)));
  return article;
}

function stateOf({ failure }) {
  if (!failure) return "done";
  return failure.error_type === "cancelled" ? "stopped" : "failed";
}

function answered(turn, conversationId, { onAsk, onRunSql, isLatest }) {
  const parts = answerText(turn.response);
  if (turn.columns.length) parts.push(pastResult(turn, conversationId, isLatest ? onAsk : null));
  if (turn.sql) parts.push(sqlBlock(turn.sql, "sql", { runsAgain: true, database: turn.database, onRun: onRunSql }));
  return parts;
}

function failed({ question, failure: { message, ...data }, sql, database }, { onAsk, onRunSql }) {
  const isStopped = data.error_type === "cancelled";
  const again = () => onAsk(question);
  const box = isStopped ? stoppedBox(data, again) : failureBox({ message, data }, again, { isNews: false });
  return sql ? [box, sqlBlock(sql, isStopped ? "sql" : "sql_refused", { database, onRun: onRunSql })] : [box];
}

/** The rows as the answer showed them, where all of them are kept; else the first ones. */
function pastResult(turn, conversationId, onAsk) {
  const result = preview(turn);
  const isWhole = result.total === result.rows.length;
  return resultView(result, { chart: isWhole ? turn.chart : null, runId: turn.run_id, conversationId, question: turn.question, onAsk });
}

function preview({ columns, column_types: types, labels, units, periods, formats, value_labels, totals, conditions, rows, row_count: total, asked_at: readAt }) {
  const shown = types ?? columns.map((_name, index) => (isNumbers(rows.map((row) => row[index])) ? "numeric" : ""));
  return { columns, column_types: shown, labels, units, periods, formats, value_labels, totals, conditions, rows, row_count: rows.length, total, read_at: readAt };
}

/** Of turns that are kept without types, columns that hold only numbers are shown as numbers. */
function isNumbers(values) {
  const known = values.filter((value) => value !== null);
  return known.length > 0 && known.every((value) => typeof value === "number" || value instanceof NumberText);
}

/** Details of how an answer was made, for readers who want to check it, and for operators. */

import { element } from "./dom.js";
import { label } from "./texts.js";

/** A closed `<details>` for the `data` of a completed answer. */
export function runDetails(data) {
  const rows = ROWS.flatMap(([key, describe]) => {
    const parts = describe(data);
    return parts ? [label(key, {}, "dt"), element("dd", {}, ...parts)] : [];
  });
  return element("details", { class: "about" }, label("about", {}, "summary"), element("dl", {}, ...rows));
}

const ROWS = [
  ["about_database", database],
  ["about_agent", (data) => data.agent && [element("code", {}, data.agent)]],
  ["about_type", (data) => classification(data.classification_info)],
  ["about_reason", (data) => data.classification_info?.reason && [data.classification_info.reason]],
  ["about_mode", routing],
  ["about_path", (data) => data.execution_path && [data.execution_path.join(" → ")]],
  ["about_method", method],
  ["about_figures", (data) => data.figures?.length && [figures(data.figures)]],
  ["about_timings", (data) => data.timings_ms && [timings(data.timings_ms)]],
  ["about_usage", (data) => data.usage && [label("usage", usageValues(data.usage))]],
  ["about_prompt", (data) => data.prompt_parts && [promptParts(data.prompt_parts)]],
  ["about_conversation", (data) => data.conversation_id && [element("code", {}, data.conversation_id)]],
  ["about_run", (data) => data.run_id && [element("code", {}, data.run_id)]],
];

function database({ database: chosen }) {
  if (!chosen) return null;
  return [element("code", {}, chosen.name), " · ", label(`database_${chosen.source}`)];
}

function classification(info) {
  if (!info) return null;
  const value = Number(info.confidence).toFixed(2);
  return [info.question_type, " · ", label("about_confidence", { value }), " · ", element("code", {}, info.method)];
}

function routing(data) {
  if (!data.routing_mode_used) return null;
  const source = data.routing_mode_source === "request" ? "source_request" : "source_configuration";
  return [element("code", {}, data.routing_mode_used), " · ", label(source)];
}

function method(data) {
  if (!data.generation_method) return null;
  const name = element("code", {}, data.generation_method);
  if (!data.example) return [name];
  return [name, " · ", element("code", {}, data.example.example_id), ` (${data.example.trust})`];
}

/** `write_sql: instructions 905 + schema 4200 + … = 5300 tokens`, estimated. */
function promptParts(prompts) {
  return Object.entries(prompts)
    .map(([name, { total, ...parts }]) => {
      const sizes = Object.entries(parts).map(([part, tokens]) => `${part} ${tokens}`);
      return `${name}: ${sizes.join(" + ")} ≈ ${total} tokens`;
    })
    .join("; ");
}

function figures(found) {
  return found.map(({ figure, call_id: callId }) => `${figure} ← ${callId}`).join(" · ");
}

function timings(milliseconds) {
  return Object.entries(milliseconds).map(([name, value]) => `${name} ${value} ms`).join(" · ");
}

function usageValues(usage) {
  return {
    calls: String(usage.llm_calls),
    prompt: String(usage.prompt_tokens),
    completion: String(usage.completion_tokens),
  };
}

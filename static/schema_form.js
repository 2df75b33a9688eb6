/** A form for a JSON Schema of an object: a group of radio buttons for each list of choices, a text field for others. */

import { element } from "./dom.js";
import { label } from "./texts.js";

const FIELD_TEXTS = { rating: "feedback_question", comment: "draft_comment" };
let groups = 0;

/** Whether `schema` is one that this module makes a form for. */
export function isObjectSchema(schema) {
  return schema?.type === "object" && typeof schema.properties === "object";
}

/** `<form>`; `onSubmit(answer)` gets an object of what was filled in. */
export function schemaForm(schema, submit, onSubmit) {
  const fields = Object.entries(schema.properties).map(([name, of]) => fieldOf(name, of, isRequired(schema, name)));
  const form = element("form", { class: "asked-object" }, ...fields.map(({ node }) => node), submit);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onSubmit(Object.fromEntries(fields.flatMap(({ name, read }) => (read() == null ? [] : [[name, read()]]))));
  });
  return form;
}

function isRequired(schema, name) {
  return (schema.required ?? []).includes(name);
}

function fieldOf(name, schema, required) {
  if (schema.enum) return choices(name, schema, required);
  if (schema.type === "object" && schema.properties) return texts(name, schema);
  return text(name, schema, required);
}

function choices(name, schema, required) {
  const group = `asked-${++groups}`;
  const labels = schema["x-labels"] ?? [];
  const inputs = schema.enum.map((value, index) => {
    const input = element("input", { type: "radio", name: group, value: String(index), required });
    const shown = ratingLabel(value) ?? element("span", { dir: "auto" }, labels[index] ?? String(value));
    return { input, node: element("label", { class: "asked-radio" }, input, shown) };
  });
  const legend = element("legend", { dir: "auto" }, titleOf(name, schema));
  const node = element("fieldset", { class: "asked-group" }, legend, ...inputs.map((each) => each.node));
  const read = () => {
    const chosen = inputs.findIndex(({ input }) => input.checked);
    return chosen < 0 ? null : schema.enum[chosen];
  };
  return { name, node, read };
}

function ratingLabel(value) {
  const known = ["satisfied", "unsatisfied", "need_modification", "skip", "__cancel__"];
  return known.includes(value) ? label(`draft_${value.replaceAll("_", "")}`) : null;
}

function text(name, schema, required) {
  const area = element("textarea", { rows: 2, class: "asked-field", required, dir: "auto" });
  const node = element("label", {}, element("span", {}, titleOf(name, schema)), area);
  return { name, node, read: () => area.value.trim() || null };
}

/** An object of texts, folded away: SQL for each node of a draft. */
function texts(name, schema) {
  const areas = Object.entries(schema.properties).map(([key, of]) => {
    const area = element("textarea", { rows: 4, class: "asked-field code", spellcheck: "false" });
    area.value = of.default ?? "";
    return { key, area, before: area.value, node: element("label", {}, element("code", {}, key), area) };
  });
  const title = element("summary", {}, titleOf(name, schema));
  const node = element("details", { class: "tool-fold" }, title, ...areas.map((each) => each.node));
  const read = () => {
    const changed = areas.filter(({ area, before }) => area.value.trim() && area.value !== before);
    return changed.length ? Object.fromEntries(changed.map(({ key, area }) => [key, area.value])) : null;
  };
  return { name, node, read };
}

function titleOf(name, schema) {
  if (FIELD_TEXTS[name] && !schema.title) return label(FIELD_TEXTS[name]);
  return schema.title ?? name;
}

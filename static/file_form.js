/** The form of a draft: what was guessed of a file's tables, to be corrected. */

import { element } from "./dom.js";
import { label, translate } from "./texts.js";
import "./files_texts.js";

const TYPES = ["text", "integer", "numeric", "percentage", "date", "timestamp", "timestamptz", "boolean"];
const DELIMITERS = ["comma", "tab", "semicolon", "pipe"];
const ENCODINGS = ["utf-8", "gb18030", "utf-16", "big5", "cp1252"];

let forms = 0; // of the page so far, for ids

/** The fieldsets of a draft's tables, and `corrections()`, which says what the form says. */
export function draftTables(draft) {
  forms += 1;
  const tables = draft.tables.map((table, number) => new TableFields(table, `file-${forms}-${number}`));
  return {
    nodes: tables.map((table) => table.node),
    corrections: () => tables.map((table) => table.corrections()),
  };
}

class TableFields {
  #table;
  #id;
  #fields = {};
  #columns;

  constructor(table, id) {
    this.#table = table;
    this.#id = id;
    this.#columns = table.columns.map((column) => new ColumnFields(column));
    this.node = element("fieldset", { class: "file-table" }, ...this.#parts());
  }

  *#parts() {
    const table = this.#table;
    yield element("legend", { dir: "auto" }, table.title || table.name, " · ", label("files_rows", { count: table.rows }));
    yield* differenceNotes(table.differences);
    yield element("div", { class: "file-options" }, ...this.#options());
    yield element("div", { class: "file-columns", tabindex: "0" }, this.#columnTable());
    yield* table.references.map((one) => note(label("files_refers", one)));
    yield* table.problems.map(problemNote);
  }

  *#options() {
    const table = this.#table;
    if (table.differences === null) yield this.#option("name", "files_table", element("input", { value: table.name, maxlength: 60 }));
    const row = element("input", { type: "number", min: 0, max: 10000, value: table.header_row });
    row.title = table.header_reason;
    yield this.#option("header_row", "files_header_row", row);
    if (table.delimiter) yield this.#option("delimiter", "files_delimiter", choice(DELIMITERS, table.delimiter.value, "delimiter_"));
    if (table.encoding) yield this.#option("encoding", "files_encoding", choice(ENCODINGS, table.encoding.value));
    const names = table.columns.map((column) => column.name);
    yield this.#option("key", "files_key", keyChoice(names, table.key));
    const include = element("input", { type: "checkbox" });
    include.checked = table.include;
    yield this.#option("include", "files_include", include);
  }

  #option(name, text, field) {
    field.id = `${this.#id}-${name}`;
    this.#fields[name] = field;
    const caption = label(text, {}, "label");
    caption.htmlFor = field.id;
    return element("p", { class: "file-option" }, caption, field);
  }

  #columnTable() {
    const heads = ["files_include", "files_written", "files_name", "files_type", "files_examples"];
    return element(
      "table",
      {},
      element("thead", {}, element("tr", {}, ...heads.map((head) => label(head, {}, "th")))),
      element("tbody", {}, ...this.#columns.map((column) => column.node)),
    );
  }

  corrections() {
    const fields = this.#fields;
    const said = { sheet: this.#table.sheet, include: fields.include.checked, key: fields.key.value };
    said.columns = this.#columns.map((column) => column.correction()).filter(Boolean);
    if (fields.name && fields.name.value !== this.#table.name) said.name = fields.name.value;
    if (Number(fields.header_row.value) !== this.#table.header_row) said.header_row = Number(fields.header_row.value);
    for (const name of ["delimiter", "encoding"]) {
      if (fields[name] && fields[name].value !== this.#table[name].value) said[name] = fields[name].value;
    }
    return said;
  }
}

class ColumnFields {
  #column;
  #include;
  #name;
  #type;

  constructor(column) {
    this.#column = column;
    const title = column.title || column.name;
    this.#include = element("input", { type: "checkbox", "aria-label": translate("files_column_include", { title }) });
    this.#include.checked = column.include;
    this.#name = element("input", { value: column.name, maxlength: 60, "aria-label": translate("files_column_name", { title }) });
    this.#type = choice(TYPES, column.type, "type_");
    this.#type.setAttribute("aria-label", translate("files_column_type", { title }));
    const said = element("td", {}, this.#type, element("p", { class: "file-note" }, column.reason), ...column.problems.map(problemNote));
    this.node = element(
      "tr",
      {},
      element("td", {}, this.#include),
      element("td", { dir: "auto" }, column.title),
      element("td", {}, this.#name),
      said,
      element("td", { class: "file-examples", dir: "auto" }, column.examples.join(" · ")),
    );
  }

  /** What differs from the draft; null where nothing does. */
  correction() {
    const column = this.#column;
    const said = { place: column.place };
    if (this.#include.checked !== column.include) said.include = this.#include.checked;
    if (this.#name.value !== column.name) said.name = this.#name.value;
    if (this.#type.value !== column.type) said.type = this.#type.value;
    return Object.keys(said).length > 1 ? said : null;
  }
}

function choice(values, chosen, prefix = null) {
  const options = values.map((value) => {
    const option = prefix === null ? element("option", {}, value) : label(prefix + value, {}, "option");
    option.value = value;
    return option;
  });
  const select = element("select", {}, ...options);
  select.value = chosen;
  return select;
}

function keyChoice(names, chosen) {
  const none = label("files_no_key", {}, "option");
  none.value = "";
  const select = element("select", {}, none, ...names.map((name) => element("option", { value: name }, name)));
  select.value = chosen ?? "";
  return select;
}

function* differenceNotes(differences) {
  if (differences === null) return;
  yield note(label("files_differs", { before: differences.rows_before, after: differences.rows_after }));
  const said = {
    files_new_columns: differences.new_columns,
    files_missing_columns: differences.missing_columns,
    files_changed_types: differences.changed_types.map(({ column, before, after }) => `${column} ${before} → ${after}`),
  };
  for (const [text, names] of Object.entries(said)) {
    if (names.length) yield note(label(text, { names: names.join(", ") }));
  }
}

function problemNote({ text, rows }) {
  const said = rows.length ? label("files_in_rows", { text, rows: rows.join(", ") }) : text;
  return element("p", { class: "file-note file-problem" }, said);
}

function note(child) {
  return element("p", { class: "file-note" }, child);
}

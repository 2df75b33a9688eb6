/** SQL in colours. Only for reading: what can't be told apart stays plain, and no character is lost. */

import { element } from "./dom.js";

const KEYWORDS = new Set(
  `all alter and any array as asc between by case cast collate create cross current_date current_timestamp date delete desc
  distinct drop else end except exists extract false fetch filter first following for from full group grouping having ilike in inner insert intersect
  interval into is join last lateral left like limit natural not null nulls of offset on only or order outer over
  partition preceding range recursive right rollup row rows select sets similar some table tablesample then timestamp to
  true truncate unbounded union update using values when where window with within`.split(/\s+/),
);
const TOKENS = new RegExp(
  [
    String.raw`(?<comment>--[^\n]*|/\*[^]*?(?:\*/|$))`,
    String.raw`(?<string>'(?:[^']|'')*(?:'|$)|\$(?<tag>\w*)\$[^]*?(?:\$\k<tag>\$|$))`,
    String.raw`(?<quoted>"(?:[^"]|"")*(?:"|$))`,
    String.raw`(?<word>[\p{L}_][\p{L}\p{N}_$]*)`,
    String.raw`(?<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)`,
  ].join("|"),
  "giu",
);

/** `sql` as nodes: texts, and spans with the class of what they hold. */
export function highlighted(sql) {
  const nodes = [];
  let end = 0;
  for (const match of sql.matchAll(TOKENS)) {
    const kind = kindOf(match.groups);
    if (kind === null) continue;
    nodes.push(document.createTextNode(sql.slice(end, match.index)), element("span", { class: `sql-${kind}` }, match[0]));
    end = match.index + match[0].length;
  }
  nodes.push(document.createTextNode(sql.slice(end)));
  return nodes;
}

function kindOf({ comment, string, word, number }) {
  if (comment !== undefined) return "comment";
  if (string !== undefined) return "string";
  if (number !== undefined) return "number";
  return word !== undefined && KEYWORDS.has(word.toLowerCase()) ? "keyword" : null;
}

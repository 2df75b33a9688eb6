/** The sentences of the drawer of the semantic file, in Chinese and English. */

import { addTexts, writtenMoment } from "./texts.js";

addTexts({
  semantic_title: ["语义文件", "The semantic file"],
  semantic_about: [
    ({ name }) => `${name}：数据库对人意味着什么。修改只是建议，由运维人员用命令采纳。`,
    ({ name }) => `${name}: what the database means to people. A change is a proposal; an operator applies it by a command.`,
  ],
  semantic_none: ["这个数据库没有语义文件（SEMANTIC_FILE）。", "This database has no semantic file (SEMANTIC_FILE)."],
  semantic_search: ["搜索条目", "Search its entries"],
  semantic_found: [({ count }) => `${count} 个条目`, ({ count }) => `${count} ${count === 1 ? "entry" : "entries"}`],
  semantic_problem: [({ line, text }) => `第 ${line} 行未使用：${text}`, ({ line, text }) => `Line ${line} is not used: ${text}`],
  semantic_head: ["文件开头", "beginning of the file"],
  semantic_section_tables: ["表", "table"],
  semantic_section_metrics: ["指标", "metric"],
  semantic_section_reports: ["报表", "report"],
  semantic_edit: ["建议修改", "Propose a change"],
  semantic_add: ["建议在末尾添加", "Propose lines at the end"],
  semantic_lines: ["修改后的各行", "What the lines should be"],
  semantic_note: ["为什么（可选）", "Why (optional)"],
  semantic_send: ["提交建议", "Propose it"],
  semantic_sent: ["已提交，等待运维人员采纳。", "Proposed. An operator decides on it."],
  semantic_proposals: ["修改建议", "Proposals"],
  semantic_withdraw: ["撤回", "Withdraw"],
  semantic_by: [({ author, at }) => `${author} · ${writtenMoment(at)}`, ({ author, at }) => `${author} · ${writtenMoment(at)}`],
  semantic_open: ["待处理", "open"],
  semantic_applied: [({ by }) => `已采纳（${by}）`, ({ by }) => `applied by ${by}`],
  semantic_declined: [({ by, reason }) => `未采纳（${by}）${reason ? `：${reason}` : ""}`, ({ by, reason }) => `declined by ${by}${reason ? `: ${reason}` : ""}`],
  semantic_withdrawn: ["已撤回", "withdrawn"],
  semantic_how: [
    ({ id }) => `运维人员：python -m knowledge.semantic apply ${id}`,
    ({ id }) => `Operators: python -m knowledge.semantic apply ${id}`,
  ],
});

/** The sentences of the drawers of conversations, of tables and of what waits for review, in Chinese and English. */

import { addTexts, plural, writtenMoment } from "./texts.js";

addTexts({
  save: ["保存", "Save"],
  delete: ["删除", "Delete"],
  delete_all: ["清空全部对话", "Clear all conversations"],
  delete_all_question: ["清空全部对话？此操作无法撤销。", "Clear all conversations? This can't be undone."],
  none_found: ["没有标题包含这些文字", "No title has that in it"],
  delete_question: ["删除这个对话？", "Delete this conversation?"],
  conversation_title: ["对话标题", "Title of the conversation"],
  conversation_about: [
    ({ at, count }) => `${writtenMoment(at)} · ${count} 个问题`,
    ({ at, count }) => `${writtenMoment(at)} · ${plural(count, "question", "questions")}`,
  ],
  no_conversations: ["还没有对话。提出的问题会保存在这里。", "Nothing here yet. What you ask is kept here."],
  more_conversations: ["更早的对话", "Older conversations"],
  schema_count: [
    ({ count, total }) => (count < total ? `${count} 张表，共 ${total} 张` : `${total} 张表`),
    ({ count, total }) => (count < total ? `${count} of ${plural(total, "table", "tables")}` : plural(total, "table", "tables")),
  ],
  schema_columns: [({ count }) => `${count} 个字段`, ({ count }) => plural(count, "column", "columns")],
  schema_rows: [({ count }) => `约 ${count} 行`, ({ count }) => `about ${plural(count, "row", "rows")}`],
  schema_reload: ["重新读取", "Reload"],
  schema_more: ["更多表", "More tables"],
  schema_back: ["所有表", "All tables"],
  schema_key: ["主键", "key"],
  review_semantic: ["语义文件", "Semantic file"],
  review_examples: ["示例", "Examples"],
  review_lessons: ["经验", "Lessons"],
  review_etl: [({ target }) => `ETL 草稿 · ${target}`, ({ target }) => `ETL draft · ${target}`],
  review_etl_lesson: ["ETL 草稿", "ETL draft"],
  review_none: ["没有等待审核的内容", "Nothing waits"],
  review_more: ["更多", "More"],
  review_by: [({ author, at }) => `${author} · ${writtenMoment(at)}`, ({ author, at }) => `${author} · ${writtenMoment(at)}`],
  review_approve: ["通过", "Approve"],
  review_certify: ["认证", "Certify"],
  review_reject: ["驳回", "Reject"],
});

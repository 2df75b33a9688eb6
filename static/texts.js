/** Every sentence of the page in Chinese and English, and the switch between them. */

/** A time in short form: with the day only if it is not today, with the year only if it is not this year. */
function moment(iso) {
  const then = new Date(iso);
  const now = new Date();
  const isToday = then.toDateString() === now.toDateString();
  const day = isToday ? {} : { month: "short", day: "numeric" };
  const year = then.getFullYear() === now.getFullYear() ? {} : { year: "numeric" };
  const format = { ...year, ...day, hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(LANGUAGE_TAGS[current], format).format(then);
}

/** Seconds are whole from a minute on. */
function duration({ sign, ...parts }, units) {
  const named = Object.keys(units).filter((unit) => parts[unit] !== undefined);
  const isLong = named.length > 1;
  const texts = named.map((unit) => `${Number(parts[unit].toFixed(unit === "seconds" && isLong ? 0 : 2))}${units[unit]}`);
  return `${sign}${texts.join("").trim() || `0${units.seconds}`}`.trim();
}

const DURATION_UNITS = [
  { years: "年", months: "个月", weeks: "周", days: "天", hours: "小时", minutes: "分", seconds: "秒" },
  { years: " y ", months: " mo ", weeks: " w ", days: " d ", hours: " h ", minutes: " min ", seconds: " s " },
];

/** A count with the noun in one of its two forms. */
export const plural = (count, one, many) => `${count} ${Number(count) === 1 ? one : many}`;

/** key → [zh, en]; a sentence with values in it is a function of them. */
const TEXTS = {
  page_title: ["Citu · 用自然语言查询数据库", "Citu · Ask your database"],
  skip_to_question: ["跳到提问框", "Skip to the question"],
  tools: ["工具", "Tools"],
  language: ["语言", "Language"],
  settings: ["设置", "Settings"],
  new_conversation: ["新对话", "New chat"],
  new_conversation_title: ["开始新的对话", "Start a new conversation"],

  no_model: [
    "没有连接大模型，由规则回答：数量、合计、排行、趋势、筛选等可以问；解释原因和多步分析需要大模型。",
    "No model is connected, so rules answer: counts, totals, rankings, trends and filters; reasons and several steps need a model.",
  ],
  no_model_settings: [
    "启动前设置 OPENAI_API_KEY、OPENAI_MODEL，必要时再设置 OPENAI_BASE_URL；各服务商的写法见 docs/models.md。用 python -m llm.check_model 检查。",
    "Set OPENAI_API_KEY, OPENAI_MODEL and, where needed, OPENAI_BASE_URL before the start; docs/models.md has those of each provider. Check them by python -m llm.check_model.",
  ],
  no_model_how: ["如何连接大模型", "How to connect one"],
  no_model_dismiss: ["知道了", "Got it"],
  completions: ["补全建议", "Completions"],
  completions_found: [
    ({ count }) => `${count} 条建议，用上下键选择`,
    ({ count }) => `${plural(count, "suggestion", "suggestions")}; choose by the arrow keys`,
  ],
  completion_table: ["表", "table"],
  completion_column: ["字段", "column"],
  completion_value: ["值", "value"],
  completion_question: ["问过的问题", "asked before"],

  history: ["历史", "History"],
  history_title: ["历史对话", "Earlier conversations"],
  close: ["关闭", "Close"],
  cancel: ["取消", "Cancel"],
  rename: ["重命名", "Rename"],
  search_history: ["搜索标题", "Search titles"],
  earlier_turns: ["更早的问题", "Earlier questions"],
  asked_at: [({ at }) => moment(at), ({ at }) => moment(at)],
  unknown_conversation: [
    "找不到这个对话：它已被删除或过期，或者属于别人。可以在这里开始新的对话。",
    "That conversation isn't here: it was deleted, has expired, or is somebody else's. You can start a new one.",
  ],
  unread: [
    "之前的问题暂时无法显示，仍可继续提问。",
    "Earlier questions can't be shown right now. You can still ask.",
  ],

  schema: ["数据", "Data"],
  schema_title: ["可以查询的数据", "What can be asked about"],
  search_schema: ["搜索表和字段", "Search tables and columns"],

  reviews: ["审核", "Review"],
  reviews_title: ["等待审核", "Waiting for review"],

  key_title: ["请输入 API 密钥", "Enter your API key"],
  key_text: ["此服务需要密钥。请向管理员索取。", "This service needs a key. Ask your administrator for one."],
  key: ["API 密钥", "API key"],
  key_remembered: ["在此设备上记住", "Remember on this device"],
  key_refused: ["密钥无效或已被撤销，请检查后重试。", "This key is not accepted: it is wrong or was revoked."],
  key_impossible: ["密钥不含空格或中文等字符。", "A key has no spaces and only plain characters."],
  key_use: ["使用此密钥", "Use this key"],
  key_in_use: ["正在使用 API 密钥。", "An API key is in use."],
  signed_in: ["已登录：", "Signed in:"],
  sign_in_title: ["请登录", "Please sign in"],
  sign_in: ["登录", "Sign in"],
  sign_out: ["退出", "Sign out"],
  key_instead: ["也可以使用管理员给您的 API 密钥：", "Or use an API key that your administrator gave you:"],
  login_refused: ["没有登录：登录被取消，或没有获得许可。", "You are not signed in: it was cancelled, or not permitted."],
  login_expired: ["登录没有完成：这次登录已过期，请再试一次。", "Signing in took too long, or was begun elsewhere: try again."],
  login_unavailable: ["暂时无法登录：登录服务没有应答，请稍后再试。", "You can't sign in now, because the sign-in service does not answer: try again later."],
  login_invalid: ["登录失败：登录服务的应答不可用，请联系管理员。", "Signing in failed: the answer of the sign-in service can't be used. Tell your administrator."],
  login_too_often: ["暂时无法登录：登录过于频繁，请稍后再试。", "You can't sign in now, because it was tried too often: try again later."],
  login_too_large: ["登录失败：您所属的组太多，请联系管理员。", "Signing in failed, because you are in too many groups. Tell your administrator."],
  logout_failed: ["没有退出登录：服务没有应答，请再试一次。", "You are still signed in, because the service did not answer: try again."],

  theme: ["外观", "Appearance"],
  theme_system: ["跟随系统", "As the system"],
  theme_light: ["浅色", "Light"],
  theme_dark: ["深色", "Dark"],

  agent: ["智能体", "Agent"],
  agent_ask: ["一问一查（ask）", "One question, one query (ask)"],
  agent_tool_loop: ["工具循环（tool_loop）", "Loop of tools (tool_loop)"],
  agent_tool_graph: ["工具状态图（tool_graph）", "Graph of tools (tool_graph)"],
  agent_etl: ["数据加工（etl）", "Transformations (etl)"],
  help_agent_etl: [
    "从一句话到测试过的 dbt 项目：只读源库，在临时库中构建。",
    "From a sentence to a tested dbt project; sources are only read, drafts are built in a scratch database.",
  ],
  help_agent_default: ["使用服务器上配置的智能体。", "The agent configured on the server."],
  help_agent_ask: ["写一条 SQL 回答问题；没有大模型时用规则。", "One query answers the question; rules do without a model."],
  help_agent_tool_loop: ["大模型自行选择工具，可分多步查询；需要大模型。", "The model picks tools, in as many steps as it needs. Needs a model."],
  help_agent_tool_graph: ["大模型只表达意图，步骤由状态图强制；需要大模型。", "The model states what it wants; a graph forces the steps. Needs a model."],
  tool_arguments: ["参数", "Arguments"],
  tool_rows: ["中间结果", "Rows on the way"],

  routing_mode: ["路由模式", "Routing mode"],
  mode_default: ["服务器默认", "Server default"],
  mode_hybrid: ["混合（hybrid）", "Hybrid (hybrid)"],
  mode_llm_only: ["仅模型分类（llm_only）", "Model only (llm_only)"],
  mode_database_direct: ["直接查数据库（database_direct）", "Straight to the database (database_direct)"],
  mode_chat_direct: ["直接对话（chat_direct）", "Straight to chat (chat_direct)"],
  help_default: ["使用服务器上配置的模式。", "The mode configured on the server."],
  help_hybrid: ["先用规则判断问题类型，拿不准时再问大模型。", "Rules decide first; the model is asked when they are unsure."],
  help_llm_only: ["问题类型总由大模型判断；未配置模型时由规则判断。", "The model always decides; without one, rules do."],
  help_database_direct: ["所有问题都当作数据查询。", "Every question is treated as a data question."],
  help_chat_direct: ["所有问题都当作对话，不查询数据库。", "Every question is treated as chat; nothing is queried."],

  welcome_title: ["想了解数据库里的什么？", "What would you like to know?"],
  welcome_text: [
    "用中文或英文提问，Citu 会写出 SQL、只读地执行，并展示每一步。",
    "Ask in plain English or Chinese. Citu writes the SQL, runs it read-only, and shows every step.",
  ],
  examples_title: ["试试这些问题", "Try one of these"],

  examples_want_key: [
    "此服务需要 API 密钥：输入密钥后，这里会显示可以提的问题。没有密钥请向管理员索取。",
    "This service needs an API key. With yours, questions to begin with are shown here; ask your administrator for one.",
  ],
  examples_want_login: [
    "登录后，这里会显示可以提的问题。",
    "Once you have signed in, questions to begin with are shown here.",
  ],
  key_enter: ["输入密钥", "Enter a key"],

  question_label: ["您的问题", "Your question"],
  question_placeholder: ["问一个关于数据的问题…", "Ask about your data…"],
  ask: ["提问", "Ask"],
  stop: ["停止", "Stop"],
  database: ["数据库", "Database"],
  database_by_question: ["按问题选择", "By the question"],
  files: ["文件", "Files"],
  files_title: ["用您的文件提问", "Ask your own files"],
  database_unavailable: ["暂不可用", "unavailable"],
  about_database: ["数据库", "Database"],
  database_request: ["由您指定", "chosen by you"],
  database_only: ["唯一可查询的", "the only one you may ask"],
  database_conversation: ["沿用本次对话的", "as before in this conversation"],
  database_name: ["问题中提到了它", "named in the question"],
  database_words: ["与问题用词最相符", "knows the question’s words best"],
  database_model: ["由大模型从相符的数据库中选择", "chosen by the model among those that fit"],
  database_user: ["由您选择", "chosen by you"],
  database_default: ["默认", "the default"],
  composer_help: ["Enter 提问 · Shift+Enter 换行 · Esc 停止", "Enter to ask · Shift+Enter for a new line · Esc to stop"],

  steps: ["执行步骤", "Steps"],
  step_running: ["进行中", "Running"],
  step_done: ["完成", "Done"],
  step_waiting: ["已提问", "Asked"],
  step_failed: ["失败", "Failed"],
  step_stopped: ["已停止", "Stopped"],
  turn_running: ["处理中…", "Working…"],
  turn_time: [({ seconds }) => `${seconds} 秒`, ({ seconds }) => `${seconds} s`],
  turn_done: [({ seconds }) => `完成 · ${seconds} 秒`, ({ seconds }) => `Done in ${seconds} s`],
  turn_waiting: ["等待您的回答", "Waiting for your answer"],
  turn_reconnecting: ["连接中断，正在恢复…", "Connection lost, getting back…"],
  turn_failed: ["未完成", "Not completed"],
  turn_stopped: ["已停止", "Stopped"],
  stopped_text: ["已停止，未取得完整结果。提问者停止了它。", "Stopped by whoever asked, before the answer was complete."],
  stopped_by_you: ["您已停止，未取得完整结果。", "You stopped it before the answer was complete."],
  stopped_by_service: [
    "服务停止或重启，未取得完整结果。",
    "The service was stopped or restarted before the answer was complete.",
  ],
  ask_again: ["再问一次", "Ask again"],

  asked: ["需要您的回答", "A question to you"],
  asked_answer: ["您的回答", "Your answer"],
  asked_send: ["回答", "Answer"],

  follow_ups: ["接着问", "Ask next"],
  rewrites: ["可以这样问", "What can be asked instead"],
  choices: ["您指的是", "Which one is meant?"],
  show_all: ["展开全部", "Show all"],
  show_less: ["收起", "Show less"],

  answer: ["回答", "Answer"],
  warnings: ["提示", "Notes"],
  repaired: ["SQL 经过一次自动修复", "The SQL was repaired once automatically"],
  sql: ["SQL", "SQL"],
  sql_refused: ["未执行的 SQL", "SQL that was not run"],
  sql_edit: ["编辑", "Edit"],
  sql_run: ["运行", "Run"],
  sql_running: ["正在运行…", "Running…"],
  sql_done: ["已运行", "Done"],
  run_again: ["重新运行", "Run again"],
  copy: ["复制", "Copy"],
  copied: ["已复制", "Copied"],
  copy_failed: ["已选中，请按 Ctrl+C", "Selected: press Ctrl+C"],
  copy_impossible: ["浏览器不允许复制", "The browser doesn't allow it"],
  analyze: ["分析", "Analyze"],
  analyzing: ["正在计算…", "Computing…"],
  analysis_none: ["这个结果没有可以计算的内容", "There is nothing to compute about this result"],
  analysis_methods: ["怎么算的", "How it was computed"],
  copy_tsv: ["复制为表格", "Copy as table"],
  copy_markdown: ["复制为 Markdown", "Copy as Markdown"],
  files: ["文件", "Files"],
  download: [({ format }) => `下载 ${format}`, ({ format }) => `Download ${format}`],
  download_failed: [({ format }) => `${format} 下载失败`, ({ format }) => `${format} failed`],
  feedback_question: ["这个回答对吗？", "Is this answer right?"],
  feedback_right: ["对", "It is right"],
  feedback_wrong: ["不对", "It is wrong"],
  feedback_comment: ["哪里不对？", "What is wrong?"],
  feedback_sql: ["正确的 SQL（可选）", "The SQL that would be right (optional)"],
  feedback_send: ["提交", "Send"],
  feedback_thanks: ["感谢反馈。", "Thank you."],
  feedback_learnt: [({ question }) => `已记为这个问题的示例：${question}`, ({ question }) => ` Kept as an example for: ${question}`],
  feedback_failed: ["反馈未能保存，请重试。", "It could not be kept. Try again."],
  views: ["显示方式", "Shown as"],
  view_bar: ["柱形图", "Bars"],
  view_horizontal: ["条形图", "Horizontal bars"],
  view_line: ["折线图", "Line"],
  view_area: ["面积图", "Area"],
  view_pie: ["饼图", "Pie"],
  view_scatter: ["散点图", "Scatter"],
  view_number: ["数字", "Number"],
  view_table: ["表格", "Table"],
  chart_values: ["数值", "Values"],
  chart_percent: ["百分比", "Percentages"],
  chart_zero: ["从零开始", "From zero"],
  chart_unfinished: ["* 尚未结束", "* not over yet"],
  yes: ["是", "yes"],
  no: ["否", "no"],
  chart_not_from_zero: ["坐标轴不从零开始", "An axis does not begin at zero"],
  duration: DURATION_UNITS.map((units) => (given) => duration(given, units)),
  chart_sum_of: [({ count }) => `${count} 行之和`, ({ count }) => `The sum of ${plural(count, "row", "rows")}`],

  card_conditions: [({ conditions }) => `范围：${conditions.join("；")}`, ({ conditions }) => `Rows: ${conditions.join("; ")}`],
  card_all: ["全部数据，没有筛选条件", "All rows, no conditions"],

  rows_title: ["查询结果", "Result"],
  row_count: [({ count }) => `${count} 行`, ({ count }) => plural(count, "row", "rows")],
  rows_limited: [
    ({ count }) => `只返回了前 ${count} 行，数据库中还有更多`,
    ({ count }) => `Only the first ${plural(count, "row", "rows")}; the database has more`,
  ],
  rows_preview: [
    ({ count, total }) => `前 ${count} 行，共 ${total} 行`,
    ({ count, total }) => `First ${count} of ${plural(total, "row", "rows")}`,
  ],
  no_rows: ["没有符合条件的数据", "No rows match"],
  total_of_rows: [({ count }) => `合计（${count} 行）`, ({ count }) => `Total of ${plural(count, "row", "rows")}`],
  only_these: [
    ({ column, value, isPeriod }) => (isPeriod ? `只看${value}` : `只看${column}为${value}的`),
    ({ column, value, isPeriod }) => (isPeriod ? `only ${value}` : `only where ${column} is ${value}`),
  ],
  unfinished_title: ["尚未结束", "Not over yet"],
  count_all: ["数一数共有多少行", "Count them all"],
  counting: ["正在计数…", "Counting…"],
  count_failed: ["无法计数", "They can’t be counted"],
  more_rows: [({ count }) => `再显示 ${count} 行`, ({ count }) => `Show ${count} more`],
  null_title: ["空值（NULL）", "No value (NULL)"],

  about: ["运行详情", "Run details"],
  about_agent: ["智能体", "Agent"],
  about_figures: ["数字来源", "Where figures come from"],
  about_type: ["问题类型", "Question type"],
  about_confidence: [({ value }) => `置信度 ${value}`, ({ value }) => `confidence ${value}`],
  about_reason: ["判断依据", "Because"],
  about_mode: ["路由模式", "Routing mode"],
  source_request: ["来自本次请求", "from this request"],
  source_configuration: ["来自服务器配置", "from the server's configuration"],
  about_path: ["执行路径", "Path"],
  about_method: ["SQL 来源", "SQL by"],
  about_timings: ["用时", "Time"],
  about_usage: ["模型用量", "Model usage"],
  usage: [
    ({ calls, prompt, completion }) => `调用 ${calls} 次，输入 ${prompt}、输出 ${completion} tokens`,
    ({ calls, prompt, completion }) => `${plural(calls, "call", "calls")}, ${prompt} tokens in, ${completion} out`,
  ],
  about_prompt: ["提示词组成", "Prompt"],
  about_conversation: ["会话", "Conversation"],
  about_run: ["运行", "Run"],

  try_again: ["重试", "Try again"],
  retry_after: [
    ({ seconds }) => `建议 ${seconds} 秒后重试。`,
    ({ seconds }) => `Wait ${plural(seconds, "second", "seconds")} before trying again.`,
  ],
  request_id: ["请求编号", "Request id"],
  reads_only_title: ["Citu 只读数据，没有改动任何内容", "Citu only reads; nothing was changed"],
  reads_only_text: [
    "可以查询数据，但不能新增、修改或删除。",
    "You can ask about the data; nothing can be added, changed or deleted here.",
  ],
  refused_title: ["这条查询没有执行", "This was not run"],
  unreachable_title: ["无法连接服务器", "The server can't be reached"],
  unreachable_text: [
    "请检查网络，并确认 Citu 正在运行，然后重试。",
    "Check the network and that Citu is running, then try again.",
  ],
  connection_lost_title: ["连接中断", "The connection was lost"],
  connection_lost_text: [
    "回答还没有传完，以上内容可能不完整。请检查网络后重试；已经完成的部分不会重做。",
    "The answer had not fully arrived. Check the network and try again: what was begun is not begun again.",
  ],
  stream_ended_title: ["回答提前结束", "The answer ended early"],
  stream_ended_text: [
    "服务器没有给出最终结果就结束了响应，以上内容可能不完整。请重试。",
    "The server closed the response without a final result, so what you see may be incomplete. Try again.",
  ],
  run_gone_title: ["这次提问已过期", "This question has expired"],
  run_gone_text: [
    "服务器不再保留它的过程和结果。请重新提问。",
    "The server no longer keeps its steps and its result. Ask again.",
  ],
  bad_answer_title: ["服务器的回复无法识别", "The server's reply can't be understood"],
  bad_answer_text: [
    ({ code }) => `${code ? `HTTP ${code}。` : ""}可能是中间的代理服务器出错。请稍后重试。`,
    ({ code }) => `${code ? `HTTP ${code}. ` : ""}A proxy in between may be at fault. Try again in a moment.`,
  ],
};

/** Adds sentences of a part of the page that is loaded when it is opened. */
export function addTexts(more) {
  Object.assign(TEXTS, more);
}

/** A time in short form, in the language of the page. */
export function writtenMoment(iso) {
  return moment(iso);
}

const LANGUAGES = ["zh", "en"];
const LANGUAGE_TAGS = ["zh-CN", "en"];
const ATTRIBUTES = ["aria-label", "placeholder", "title"];
const valuesOf = new WeakMap();
let current = 0;
let subject = null; // what the conversation on the page is called

/** The language the page speaks: `zh` or `en`. */
export function language() {
  return LANGUAGES[current];
}

/** The language of this reader's browser: `zh` when any Chinese comes before English in its list, else `en`. */
export function preferredLanguage(tags = navigator.languages ?? [navigator.language]) {
  const known = tags.map((tag) => tag.toLowerCase().slice(0, 2)).find((tag) => LANGUAGES.includes(tag));
  return known ?? "en";
}

/** Switches the language of the page and of everything on it. */
export function speak(chosen) {
  current = LANGUAGES.indexOf(chosen);
  document.documentElement.lang = LANGUAGE_TAGS[current];
  showTitle();
  translateTree(document.body);
  for (const listener of listeners) listener();
}

const listeners = new Set();

/** Names the window after a conversation; null: after the page. */
export function titlePage(text) {
  subject = text;
  showTitle();
}

function showTitle() {
  document.title = subject ? `${subject} · Citu` : translate("page_title");
}

/** Calls `listener` whenever the page changes its language; returns what ends that. */
export function onSpeak(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The sentence `key` in the current language. */
export function translate(key, values = {}) {
  const text = TEXTS[key][current];
  return typeof text === "function" ? text(values) : text;
}

/** A number in few characters, as people write large ones: `1.9亿`, `190M`. */
export function compactNumber(number) {
  const notation = Math.abs(number) < 10_000 ? "standard" : "compact";
  const digits = Math.abs(number) < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2 };
  return new Intl.NumberFormat(LANGUAGE_TAGS[current], { notation, ...digits }).format(number);
}

/** An element whose text follows the language. */
export function label(key, values = {}, tag = "span") {
  const node = document.createElement(tag);
  setLabel(node, key, values);
  return node;
}

/** Gives `node` a text that follows the language. */
export function setLabel(node, key, values = {}) {
  node.dataset.text = key;
  valuesOf.set(node, values);
  node.textContent = translate(key, values);
}

function translateTree(root) {
  for (const node of root.querySelectorAll("[data-text]")) {
    node.textContent = translate(node.dataset.text, valuesOf.get(node));
  }
  for (const attribute of ATTRIBUTES) {
    for (const node of root.querySelectorAll(`[data-text-${attribute}]`)) {
      node.setAttribute(attribute, translate(node.getAttribute(`data-text-${attribute}`)));
    }
  }
}

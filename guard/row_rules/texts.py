"""Tell users that a statement can't be answered under row rules; `{}` stands for a name in
the statement.
"""

from common.text import Text

FOLLOWS_RULED = Text(
    "{} 可能包含并非人人可见的行，不能直接查询；管理员可在 ROW_RULES 文件中为它写规则，或在 "
    "open.views 中开放它。",
    "{} may show rows that not everybody may see, so it can't be read: the ROW_RULES file can "
    "give it a rule of its"
    " own, or open it (open.views).",
)
RELATIVE_OF_RULED = Text(
    "{} 的分区、子表或父表有行级规则，不能查询它；请查询有规则的表，或使用 FROM ONLY。",
    "Row rules hold for tables that {} inherits from or that inherit from it: query the table that "
    "has the rule, or use FROM ONLY.",
)
CLOSED_BY_MISTAKE = Text(
    "{} 的行级规则有误，暂不能查询；原因写在服务日志中。",
    "The row rule of {} has a mistake, so it can't be read now: the service's log says where.",
)
PART_OF_COLUMNS = Text(
    "{} 的部分列不可读，请逐一列出需要的列，不要使用 * 、整行、NATURAL JOIN 或列改名。",
    "Some columns of {} may not be read: name those you need instead of *, whole rows, "
    "NATURAL JOIN or renamed columns.",
)
SYSTEM_COLUMN = Text(
    "在行级规则下，{} 的系统列不能与 * 、整行或 NATURAL JOIN 一起使用。",
    "Under row rules, system columns of {} can't be used together with *, whole rows or NATURAL.",
)
SAME_NAME = Text(
    "在行级规则下，多个表都叫 {} 时请为它们各起一个别名，并用别名引用列。",
    "Several tables are called {}: under row rules, give each an alias and name columns by it.",
)
FUNCTION = Text(
    "行级规则下不允许使用 {}：它可能读取不可见的行；管理员可在 ROW_RULES 文件的 open.functions "
    "中开放它。",
    "{} may not be used under row rules, because it may read rows that are hidden: "
    "open.functions in the ROW_RULES file"
    " can open it.",
)
NOT_REWRITABLE = Text(
    "无法对这条语句应用行级规则，请换一种写法。",
    "Row rules can't be applied to this statement: write it in another way.",
)
NOT_FOLLOWABLE = Text(
    "数据库隐藏了部分系统目录，无法执行 ROW_RULES。",
    "The server hides parts of its catalogue: ROW_RULES can't be enforced.",
)

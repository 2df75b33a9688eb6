"""Tell users that a statement names something which it may not use; `{}` stands for that
name.
"""

from common.errors import ForbiddenObject
from common.text import Text

# Tables, views and columns that the operator does not open.
DENIED_TABLE = Text("管理员未开放表 {}。", "The operator does not allow reading {}.")
NO_FILE_TABLE = Text(
    "您的文件中没有表 {}：它的文件可能已被删除或替换。"
    "请重新上传，或查看现有的文件（GET /api/v0/files）。",
    "None of your files has a table {}: its file may have been deleted or replaced. Upload it "
    "again, or look at the files there are (GET /api/v0/files).",
)
DENIED_COLUMN = Text("管理员未开放列 {}。", "The operator does not allow reading the column {}.")
CLOSED_VIEW = Text(
    "视图 {} 读取了管理员未开放的内容；管理员可在 ALLOWED_OBJECTS 中写明它的全名来开放。",
    "The view {} reads what the operator does not allow; ALLOWED_OBJECTS can open it by its full "
    "name.",
)
CLOSED_PARTS = Text(
    "表 {} 的部分分区或子表未开放，不能整体查询；可用 FROM ONLY 只查询它自身的行。",
    "Some partitions or child tables of {} may not be read: FROM ONLY reads nothing but its own "
    "rows.",
)
WHOLE_ROW = Text(
    "表 {} 有未开放的列，请逐一列出需要的列，不要使用 * 、整行、NATURAL JOIN 或列改名。",
    "Some columns of {} may not be read: name those you need instead of *, whole rows, "
    "NATURAL JOIN or renamed columns.",
)
ROW_TYPE = Text(
    "不能使用表 {} 的行类型：其中有未开放的列。",
    "The row type of {} may not be used: not all of it may be read.",
)
OTHER_READING = Text(
    "数据库的编码不是UTF-8，可能把 {} 读作另一个表；请改用较短的ASCII名称，例如CTE的名称。",
    "The database's encoding is not UTF-8, so it may read {} as another table: use a short ASCII "
    "name, say for a CTE.",
)
# PostgreSQL's own tables, types and values.
SYSTEM_RELATION = Text(
    "不允许查询系统表或系统视图：{}。请查询业务表。",
    "System tables and views may not be queried: {}. Query your own tables.",
)
SPECIAL_VALUE = Text(
    "不允许使用 {}：它读取会话或账号信息。",
    "{} may not be used: it reveals the session or its role.",
)
CATALOG_TYPE = Text(
    "不允许使用类型 {}：它读取系统目录。",
    "The type {} may not be used: it reads the system catalogue.",
)
HOLDS_CATALOG_TYPE = Text(
    "不允许使用类型 {}：它含有读取系统目录的类型。",
    "The type {} may not be used: it holds a type that reads the system catalogue.",
)
MIXED_VALUE = Text(
    "{0} 只能显示、排序或分组，其他用法请写成 {0}::text。",
    "{0} may only be shown, sorted or grouped by as it is; write {0}::text for anything else.",
)
SAMPLING_METHOD = Text(
    "不允许使用抽样方法 {}，可用 BERNOULLI 或 SYSTEM。",
    "The sampling method {} may not be used; use BERNOULLI or SYSTEM.",
)
# What may call functions with side effects.
RISKY_FUNCTION = Text(
    "不允许使用自定义函数 {}：请管理员将其加入 ALLOWED_FUNCTIONS。",
    "The user-defined function {} may not be used unless the operator lists it in "
    "ALLOWED_FUNCTIONS.",
)
RISKY_CAST = Text(
    "不允许使用类型 {}：转换为它会调用可能有副作用的自定义函数。",
    "The type {} may not be used: a cast to it calls a function that may have side effects.",
)
RISKY_TYPE = Text(
    "不允许使用类型 {}：它的值会运行可能有副作用的自定义函数。",
    "The type {} may not be used: its values run a user-defined function that may have side "
    "effects.",
)
RISKY_RESULT = Text(
    "不允许使用 {}：它的结果属于会运行自定义函数的类型。",
    "{} may not be used: its result may be of a type whose values run a user-defined function.",
)
RISKY_RELATION = Text(
    "不允许读取 {}：读取它会运行可能有副作用的自定义函数；管理员可在 ALLOWED_FUNCTIONS 中允许，"
    "函数名见服务日志。",
    "{} may not be read: that runs a user-defined function that may have side effects; the "
    "operator can allow it in ALLOWED_FUNCTIONS, its name is in the service's log.",
)
RISKY_COLUMN = Text(
    "不允许读取列 {}：它的类型会运行可能有副作用的自定义函数。",
    "The column {} may not be read: its type runs a user-defined function that may have side "
    "effects.",
)
RISKY_ROW = Text(
    "表 {} 的部分列会运行自定义函数，请逐一列出其他列，不要使用 * 、整行、NATURAL JOIN 或列改名。",
    "Some columns of {} run a user-defined function: name the others instead of *, whole rows, "
    "NATURAL JOIN or renamed columns.",
)
RISKY_OPERATOR = Text(
    "不允许使用自定义运算符 {}：它调用可能有副作用的函数。",
    "The operator {} may not be used: its function may have side effects.",
)
RISKY_OPERATOR_HERE = Text(
    "不允许在此使用运算符 {}：它可能调用有副作用的自定义函数。",
    "The operator {} may not be used here: it may call a user-defined function with side effects.",
)
RISKY_CALL_HERE = Text(
    "不允许在此使用函数 {}：它可能调用有副作用的同名自定义函数。",
    "The function {} may not be used here: a user-defined one of its name, with side effects, "
    "may be meant.",
)
RISKY_VALUE = Text(
    "不能这样使用 {}：它的类型会被转换或比较，可能调用有副作用的自定义函数或读取系统目录。"
    "请只显示它。",
    "{} may not be used like this: its type would be converted or compared, which may call a "
    "user-defined function"
    " with side effects or read the system catalogue. Only show it.",
)
# What nothing could stop.
ENDLESS_PATH = Text(
    "{} 的路径必须是由简单步骤组成的常量，最多含一个 // ，条件中不能再有路径："
    "其他路径的计算可能无法停止。",
    "The path of {} must be a constant of plain steps, with at most one // and no paths in "
    "conditions: nothing stops"
    " the evaluation of others.",
)
TOO_LONG = Text(
    "{} 会生成过长的值或过长时间的计算，且无法中途停止。请使用更小的常量，例如 least(n, 1000)。",
    "{} would build too much, or work on it for too long, and nothing could stop it: use smaller "
    "constants,"
    " least(n, 1000) for example.",
)

# What PostgreSQL was told to refuse while the statement runs.
AMOUNT_TOO_LARGE = Text(
    "repeat、lpad、rpad 或 array_fill 的数量超过 32767，或 factorial 的参数超过 1023。"
    "请限制它，例如 least(n, 1000)。",
    "an amount of repeat, lpad, rpad or array_fill is above 32,767, or one of factorial above "
    "1,023: limit it, with least(n, 1000) for example",
)
GATHERED_TOO_MUCH = Text(
    "查询已停止：由多行聚合成的单个值（如 string_agg、array_agg、json_agg）过大，会占用过多内存。"
    "请增加筛选条件，或先分组、计数，再聚合。",
    "The query was stopped: a value that it gathers from many rows (string_agg, array_agg, "
    "json_agg …) is too large for memory. Add conditions, or count and group instead.",
)


def refusal_of_object(name: str, text: Text) -> ForbiddenObject:
    """Return the refusal that `text` gives for the object called `name`."""
    return ForbiddenObject(name, Text(text.zh.format(name), text.en.format(name)))

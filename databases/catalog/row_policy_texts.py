"""What the operator is told about policies of row-level security that don't hold: what it is, and
what to do.
"""

from common.text import Text

UNREADABLE = Text(
    "数据库隐藏了部分系统目录，无法确认行级安全策略（ROW_CONTEXT）。",
    "The server hides parts of its catalogue: it can't be told what has row-level security "
    "(ROW_CONTEXT).",
)
NONE = Text(
    "数据库中没有表启用行级安全，ROW_CONTEXT 不起作用："
    "请执行 ALTER TABLE … ENABLE ROW LEVEL SECURITY 并创建策略",
    "no table has row-level security, so that ROW_CONTEXT changes nothing: ALTER TABLE … ENABLE "
    "ROW LEVEL SECURITY, and create policies",
)
SUPERUSER = Text(
    "数据库账号 {role} 是超级用户，任何策略对它都不生效：请改用普通账号连接",
    "the role {role} is a superuser, for whom no policy holds: connect as a role that is none",
)
BYPASSES = Text(
    "数据库账号 {role} 有 BYPASSRLS 属性，任何策略对它都不生效：请执行 ALTER ROLE … NOBYPASSRLS，"
    "或改用其他账号连接",
    "the role {role} has BYPASSRLS, so that no policy holds for it: ALTER ROLE … NOBYPASSRLS, or "
    "connect as another",
)
OWNED = Text(
    "数据库账号是 {name} 的所有者，其策略对它不生效："
    "请执行 ALTER TABLE … FORCE ROW LEVEL SECURITY，或改用其他账号连接",
    "the role owns {name}, whose policies therefore don't hold for it: ALTER TABLE … FORCE ROW "
    "LEVEL SECURITY, or connect as another role",
)
CHILD = Text(
    "{name} 是 {other} 的分区或子表，自身没有启用行级安全，直接读取时不受策略限制：请也为它启用，"
    "或收回其 SELECT 权限",
    "{name} is a partition or child of {other} without row-level security of its own, so that "
    "reading it directly shows all rows: enable it there too, or revoke SELECT on it",
)
PARENT = Text(
    "读取 {name} 会同时读取 {other}，但不执行后者的策略：请也为 {name} 启用行级安全",
    "reading {name} reads {other} as well, without the policies of {other}: enable row-level "
    "security on {name} too",
)
VIEW = Text(
    "视图 {name} 绕过策略读取 {other}，因为策略对它（或它所读取的视图）的所有者 {owner} 不生效："
    "请执行 ALTER VIEW … SET (security_invoker = true)，或用 DENIED_OBJECTS 禁止读取",
    "the view {name} reads {other} past the policies, which don't hold for the owner of it "
    "({owner}) or of a view that it reads: ALTER VIEW … SET (security_invoker = true), or close "
    "it by DENIED_OBJECTS",
)
OLD_VIEW = Text(
    "视图 {name} 绕过策略读取 {other}，因为策略对它（或它所读取的视图）的所有者 {owner} 不生效："
    "PostgreSQL 15 以下没有 security_invoker，请把视图交给受策略限制的所有者，"
    "或用 DENIED_OBJECTS 禁止读取",
    "the view {name} reads {other} past the policies, which don't hold for the owner of it "
    "({owner}) or of a view that it reads: before PostgreSQL 15 there is no security_invoker, so "
    "give it to an owner for whom they hold, or close it by DENIED_OBJECTS",
)
VIEW_OF_RELATIVE = Text(
    "视图 {name} 读取 {other}，后者自身没有启用行级安全，而它的父表或子表启用了："
    "请也为它启用，或用 DENIED_OBJECTS 禁止读取该视图",
    "the view {name} reads {other}, which has no row-level security of its own although its "
    "parent or a child has it: enable it there too, or close the view by DENIED_OBJECTS",
)
STORED = Text(
    "物化视图 {name} 保存了 {other} 的行，任何人都能看到全部：请收回其 SELECT 权限，"
    "或用 DENIED_OBJECTS 禁止读取",
    "the materialised view {name} holds rows of {other} and shows them to everybody: revoke "
    "SELECT on it, or close it by DENIED_OBJECTS",
)
DEFINER = Text(
    "ALLOWED_FUNCTIONS 允许的函数 {name} 以其所有者 {owner} 的权限运行（SECURITY DEFINER），"
    "可能绕过策略："
    "请确认它不返回受限的行，否则从 ALLOWED_FUNCTIONS 中移除",
    "the function {name} of ALLOWED_FUNCTIONS runs with the rights of its owner {owner} "
    "(SECURITY DEFINER), and may read past policies: take it out of ALLOWED_FUNCTIONS unless it "
    "gives nothing that they hide",
)

"""What the user reads when the store fails; the reason is in the log, without hosts, names or passwords."""

from common.text import Text

UNREACHABLE = Text(
    "会话存储暂时无法访问，请稍后重试。", "The store of conversations and runs can't be reached. Try again later."
)
SLOW = Text(
    "会话存储没有及时响应，请稍后重试。", "The store of conversations and runs doesn't answer in time. Try again later."
)

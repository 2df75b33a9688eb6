"""Words that tie a question to the one before it; as in `vocabulary`, nothing here belongs to anybody's domain.

They are only read this way in a conversation. All of them are of the kind `noise`, so that the readers of dates, values
and groups look past them; the argument says what they ask of the earlier question:

    lead          the question goes on from what was said, when it begins with them
    end           the same, when it ends with them
    these         speaks of the earlier question's things
    their         the same, when it begins with them
    replace add   instead of, or beside, what the earlier question had
    only          restricts it further
    all all:dates takes restrictions away, or those of time
    reverse       turns its order round
    shift:…       moves its period by one unit
"""

import re

from rules.words.vocabulary import INTENTS, phrases_of

_ENGLISH: dict[tuple[str, str], str] = {
    ("noise", "lead"): (
        "what about|how about|and what about|and how about|same for|the same for|same thing for|do the same for|"
        "and the same for|now for|same but|the same but|same question for"
    ),
    ("noise", "these"): (
        "those|these|them|of them|of these|of those|of which|among them|among these|among those|the ones|ones|"
        "those ones|these ones"
    ),
    ("noise", "their"): "their|its",
    ("noise", "replace"): (
        "instead|instead of that|rather|switch to|change to|change it to|change that to|change this to|"
        "switch it to|switch that to|make it|make that|rather than that"
    ),
    ("noise", "add"): (
        "also|too|as well|additionally|in addition|further|furthermore|on top of that|"
        "and additionally|then by"
    ),
    ("noise", "only"): (
        "just|only|limit to|limit it to|limit that to|limit them to|restrict to|restrict it to|restrict that to|"
        "narrow it down to|narrow down to|filter by|filter to|keep|keep only|keep just"
    ),
    ("noise", "all"): (
        "all of them|all of those|all of these|all|everything|every one|any|no limit|without limit|without a limit|"
        "unlimited|the whole list|the full list|not limited|don't limit|remove the limit|regardless of|all the"
    ),
    ("noise", "all:dates"): (
        "all time|any time|any date|all dates|all periods|any period|of all time|over all time|regardless of date|"
        "regardless of the date|whatever the date"
    ),
    ("noise", "reverse"): (
        "reverse|reversed|in reverse|reverse order|in reverse order|reverse the order|reverse it|flip it|flip|"
        "flip the order|the other way around|the other way round|other way around|other way round|"
        "the opposite order|in the opposite order|upside down|in reversed order|reverse the sort|reverse that"
    ),
    ("noise", "shift:year:-1"): (
        "same period last year|the same period last year|same time last year|the same time last year|"
        "the year before|the year before that|a year earlier|one year earlier|a year before|the preceding year|"
        "same period of last year|the same period of last year|same period a year earlier"
    ),
    ("noise", "shift:year:1"): (
        "the year after|the year after that|a year later|the following year|one year later"
    ),
    ("noise", "shift:quarter:-1"): "the quarter before|the quarter before that|a quarter earlier",
    ("noise", "shift:quarter:1"): (
        "the quarter after|the quarter after that|a quarter later|the following quarter"
    ),
    ("noise", "shift:month:-1"): (
        "the month before|the month before that|a month earlier|the preceding month"
    ),
    ("noise", "shift:month:1"): (
        "the month after|the month after that|a month later|the following month"
    ),
    ("noise", "shift:week:-1"): (
        "the week before|the week before that|a week earlier|the preceding week"
    ),
    ("noise", "shift:week:1"): "the week after|the week after that|a week later|the following week",
    ("noise", "shift:day:-1"): "the day before|the day before that|a day earlier|the preceding day",
    ("noise", "shift:day:1"): "the day after|the day after that|a day later|the following day",
    ("noise", "shift:period:-1"): (
        "the period before|the preceding period|the previous period|previous period"
    ),
    ("noise", "shift:period:1"): (
        "the period after|the following period|the next period|next period"
    ),
    ("noise", ""): (
        "same|the same|question|part|out|down|up|more|again|whole|thing|things|result set|view|"
        "so"
    ),
    ("rank", ""): (
        "order them by|order it by|order that by|order these by|order those by|sort them by|sort it by|sort that by|"
        "sort those by|rank them by|rank it by|order by|reorder by|sort them|order them|sort it|order it|rank them"
    ),
    ("sum", ""): "in total|overall|altogether|all in all",
    ("by", ""): (
        "split it by|split that by|split this by|split them by|break it down by|break that down by|"
        "break them down by|break this down by|group it by|group them by|group that by|divided by|separately by|"
        "split up by|split out by|break it out by|drill down by|slice by|slice it by|grouped by|then by"
    ),
}  # fmt: skip
_CHINESE: dict[tuple[str, str], str] = {
    ("noise", "lead"): "那|那么|那就|那如果是|那要是|如果是|要是|同样看|同样的|而",
    ("noise", "end"): "呢|呢?",
    ("noise", "these"): (
        "其中|它们|他们|她们|这些|那些|这里面|这其中|那其中|这里边|它们的|他们的|这些的|那些的|以上这些|"
        "上面这些|上述|上面的|刚才的|"
        "这几个|这几家|那几个|那几家|里面"
    ),
    ("noise", "their"): "它的|他的|她的|其",
    ("compare", ""): "比|比一下|比较一下|比比看|相比呢",
    ("noise", "replace"): (
        "换成|换为|换做|换到|改成|改为|改按|改看|改用|改查|变成|换|换一下|改|切换到|切换成|转为|而不是"
    ),
    ("noise", "add"): "再|也|另外|再加|还要|同时|顺便|进一步|继续|还|一并|并再",
    ("noise", "only"): (
        "只|只看|只要|仅|仅看|只显示|只保留|只统计|只查|单看|单独看|只列|只列出|只想看|只需要|限定|限于|"
        "限制在|只限|就看|仅限|保留|仅保留|仅显示"
    ),
    ("noise", "all"): (
        "全部|全部的|所有|所有的|不限|不限制|不限于|不要限制|全都|全部列出|都列出来|都要|取消限制|"
        "去掉限制"
    ),
    ("noise", "all:dates"): (
        "不限时间|所有时间|全部时间|不限日期|所有日期|不限时间段|不分时间|全部日期|全部历史|不限时间范围"
    ),
    ("noise", "reverse"): (
        "倒过来|反过来|倒着|反向|颠倒|颠倒过来|反着|掉过来|倒一下|反一下|顺序反过来|顺序倒过来|顺序颠倒"
    ),
    ("noise", "shift:year:-1"): "去年同期|上年同期|上一年同期|前一年同期|同期|去年同一时期",
    ("noise", "shift:year:1"): "次年|第二年|下一年同期",
    ("noise", "shift:month:1"): "次月|后一个月|再下个月",
    ("noise", "shift:day:1"): "次日|后一天",
    ("noise", "shift:period:-1"): "上期|上一期|前一期|上个周期|上一个周期|前一个周期|前一个时期|再往前",
    ("noise", "shift:period:1"): "下期|下一期|后一期|下个周期|下一个周期",
    ("noise", ""): (
        "排一下|排个序吧|结果|也一样|一样|同样|来|看看|看下|的话|吧|来一遍|条件|时间范围|部分|的部分|"
        "那部分|重新|再来|显示|下|就行|就好|就可以|就够了|即可|可以了|行了|够了|"
        "就可以了|就行了|就好了"
    ),
    ("by_end", ""): "拆分|拆开|细分|展开|分开|分开看|拆一下|拆|细化|拆分一下|分拆|来拆|来分|分组看|拆分看",
    ("not", ""): "去掉|不看|别算|不要|扣除|刨除|刨去|忽略|不计|不考虑",
}  # fmt: skip

FOLLOW_UP_INTENTS = {**INTENTS, **phrases_of(_ENGLISH, _CHINESE)}
"""`INTENTS` as a follow-up means them."""

THANKS = re.compile(
    r"^\W*(?:(?:thanks?(?: you)?(?: very much| so much| a lot)?|thx|great|ok(?:ay)?|good|cool|perfect|nice|alright|"
    r"谢谢(?:你|您)?|感谢|多谢|好的|好|嗯|不错|很好|明白了?|知道了|行|可以)(?:[\s,，.。!！;；、]+|$))+",
    re.IGNORECASE,
)
"""What people say before they go on; it asks for nothing."""

REWORDED = re.compile(
    r"^\W*(?:那|请|就|再|那就|请再)*(?:改成|改为|换成|改按)|"
    r"^\W*(?:please |now |and |then )*(?:change|switch) (?:it|that|this)? ?(?:to|by)\b|"
    r"^\W*(?:please |now |and |then )*(?:remove|drop) the limit\b|^\W*(?:请|再|那)*(?:去掉|取消)限制",
    re.IGNORECASE,
)
"""Looks like an order to change data, but names nothing that would be changed: the question before is."""

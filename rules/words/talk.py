"""Forms of conversation: what people say around a request, and how they talk when they don't ask a database.

A sentence may hold nothing but words of the database and still be talk ("I used to work in a warehouse"): what tells
them apart is who speaks of what — oneself, somebody's opinion, advice, causes, definitions — not the words named.
"""

import re

from common.text import language_of

_GREETING = (
    r"hi|hello|hey|yo|howdy|good (?:morning|afternoon|evening|day)|greetings|thanks?(?: you)?(?: (?:very|so) much|"
    r" a lot)?|thx|sorry to bother you|excuse me"
)
_GREETING_HAN = (
    r"你好|您好|大家好|嗨|哈喽|哈啰|早上好|上午好|中午好|下午好|晚上好|早安|在吗|谢谢(?:你|您|啦|了)?|感谢|多谢|"
    r"辛苦(?:了|啦|你了|您了)?|不好意思|打扰(?:了|一下)?|劳驾|请问(?:一下)?"
)
_ASIDE = r"cheers|ok(?:ay)?|great|sorry|早|好的|好"  # the beginning of a sentence as well: only before a comma
_ADDRESSED = r"(?:[\s,，]*(?:there|citu|all|everyone|again|team|小助手|助手|机器人)(?![a-z]))?"
_SIGN = r"[,，.。!！~～;；、:：]"
_STOP = r"[\s,，.。!！~～;；、:：?？呀啊吧呢哦]"
_COURTESY = re.compile(
    rf"^\W*(?:(?:{_GREETING})(?![a-z]){_ADDRESSED}(?:{_STOP}+|(?=[\u4e00-\u9fff]))|"
    rf"(?:{_GREETING_HAN}){_ADDRESSED}{_STOP}*|(?:{_ASIDE}){_ADDRESSED}\s*{_SIGN}{_STOP}*)+(?:and |also )?",
    re.I,
)
_CLOSING = re.compile(
    r"[\s,，.。!！;；]+(?:thanks?(?: you)?(?: (?:very|so) much| a lot| in advance)?|thx|please|cheers|谢谢(?:你|您|"
    r"啦|了)?|感谢|多谢|辛苦了|拜托了)"
    r"[\s!！.。~～]*$",
    re.I,
)

# Requests speak of "me" and "you" as well; without these frames only talk does.
_FRAMES = re.compile(
    r"\b(?:i|we)(?: just| also| really)?(?:'d| would|'ll| will)? (?:want|need|wish|like|love)(?: to)? "
    r"(?:see|know|get|have|find(?: out)?|view|list|check|look (?:at|up|for)|count|compare|understand) |"
    r"\b(?:i|we) (?:want|need|'d like|would like) (?=a list|the |all |each|every|total|average|number|count|\w+ by )|"
    r"\b(?:i'd|we'd) (?:like|love)(?: to (?:see|know|get|have|find out|view|look at|check))? |"
    r"\b(?:show|give|tell|get|find|list|send|bring|fetch|let|help) (?:me|us)\b(?! (?:a (?:joke|story|poem)|about|"
    r"advice|an? idea))|"
    r"\b(?:can|could|may|might) (?:i|we) (?:see|get|have|know|view|look at) |"
    r"\b(?:can|could|would|will) you (?:please )?(?=show|list|give|tell|get|find|count|check|look|calculate|display|"
    r"pull)|"
    r"\b(?:how \w+ \w+ )?(?:do|did|have) we\b|\bof (?:my|our)\b|"
    r"(?:请|麻烦|烦请|帮|帮忙|替|给|告诉|跟|和|为)(?:你|您)?(?:帮|给|替)?(?:一下)?(?:我们|咱们|我|咱)|"
    r"(?:我们|我|咱们|咱)(?:也|还|现在|今天)?(?:很|就)?(?:想|要|想要|需要|希望|打算|准备|能|可以|能不能|可不可以|可否)?"
    r"(?:先|再|来)?(?:知道|了解|看看|看一下|看下|看到|看|查看|查询|查一下|查下|查|问一下|问下|问问|请问|统计|找出|"
    r"找|列出|获取|得到|确认)|"
    r"我(?:们)?(?:要|需要|想要)(?=[^，,。]*(?:各|每|总|平均|数量|多少|名单|列表|清单|排行|金额|的))|"
    r"(?:你|您)(?:能|可以|能不能|可不可以|可否)?(?:帮|给|告诉|替|查|列|看看|统计|说一下)(?:我|一下)?|"
    r"(?:能不能|能否|可不可以|可以|可否)(?=告诉|帮|查|看|列|统计|给|显示)",
    re.I,
)
_OURS = re.compile(r"我们|咱们|我司|我公司|\b(?:our|we)\b", re.I)
_ONESELF = re.compile(r"我|俺|咱|本人|\b(?:i|i'm|i've|i'll|i'd|im|my|mine|myself|me)\b", re.I)
_YOURSELF = re.compile(r"你|您|\b(?:you|your|yours|you're|u)\b", re.I)

_ADVICE = re.compile(
    r"\bhow (?:do|can|could|should|would|to|might|did|are|is|was) |\bhow (?:long|far|hard|old|soon) (?:do|does|can|"
    r"is it|should|will|would)\b|"
    r"\bhow does\b|\bhow come\b|\b(?:should|ought)\b|\b(?:tips?|advice|advise|recommend(?:ation)?s?|suggest\w*|"
    r"ideas?)\b|"
    r"\bbest (?:way|time|place)|\bworth (?:it|\w+ing)\b|\b(?:teach|help) me (?:to|with)\b|"
    r"怎么(?!样[?？。！!]*$)|怎样(?![?？。！!]*$)|如何(?![?？。！!]*$)|咋|怎么办|应该|该不该|该(?:怎|如何|挂|选|买|"
    r"去|用)|要不要|好不好|值得|值不值|"
    r"适合|一般|通常|往往|要花|注意|建议|推荐|可以[^，,。]{1,12}吗|能[^，,。]{1,8}吗|好吗|可靠吗|靠谱|技巧|诀窍|"
    r"秘诀|有条件|需要什么|攻略|经验",
    re.I,
)
_CAUSES = re.compile(r"\bwhy\b|\bhow come\b|为什么|为何|为啥|凭什么|什么原因", re.I)
_DEFINITIONS = re.compile(
    r"\bwhat(?:'s| is| are| was) (?:an? )(?!\w*\b(?:average|total|number|count)\b)|\bwhat does .*\b(?:mean|do|"
    r"stand for)\b|\bwhat makes\b|"
    r"\b(?:meaning|definition|difference|purpose|benefits?|advantages?|drawbacks?|side effects?|history|importance|"
    r"pros and cons|origin) (?:of|between|with)\b|"
    r"\bbenefits?\b|\b(?:what's|what is|what are) [a-z]+[?.! ]*$|\b(?:explain|define|describe|elaborate)\b|"
    r"\bwhat (?:should|would|could|do you)\b|"
    r"什么是|什么叫|叫做什么|有(?:什么|啥|何)(?:用(?!户)|不同|联系|讲究|影响)|是什么(?!时候|原因)|是做什么|是干什么|什么意思|意味着|区别|差别|不同之处|好处|坏处|"
    r"优点|缺点|优势|劣势|"
    r"副作用|作用|功效|疗效|意义|原理|原则|方法|步骤|流程|含义|概念|定义|起源|历史|条件|用途|权益|权利",
    re.I,
)
_OPINIONS = re.compile(
    r"\b(?:favou?rite|greatest .* of all time|best(?! (?:sell|rated|paid))|love|loves|loved|hate|hates|enjoy|prefer|"
    r"awesome|amazing|lovely|nice|boring|beautiful|lazy|unhappy|"
    r"happy|good|bad|better|worse|safe|dangerous|fun|hard|easy|harder|easier|bigger|smarter|happier|sadder|always|"
    r"never mind|too much|these days|nowadays|"
    r"in general|in the world|of all time)\b|"
    r"觉得|喜欢|认为|认识|看法|评价一下|好看|好吃|好玩|好用|好听|好笑|讨厌|开心|难过|生气|伤心|累|辛苦|不错|满意|"
    r"有趣|无聊|靠谱|哪个(?:更)?(?:好|重要|合适|划算)|"
    r"最好(?!卖)|更(?:好|重要|适合|难|划算)|值得|有意思|重要|流行|有名|谁(?:说|知道)",
    re.I,
)
_CREATIONS = re.compile(
    r"\b(?:write|compose|draft|sing|draw|translate|imagine|pretend)\b|\bjokes?\b|\bpoems?\b|\b(?:bed ?time )?story\b|"
    r"写(?:一|首|篇|个|封|段)|作诗|唱|翻译|讲(?:个|一|讲)|笑话|故事|诗|画(?:一|个|幅)|聊",
    re.I,
)
_OTHERS = re.compile(
    r"^\W*(?:he|she|they|my|his|her|somebody|someone|everybody|everyone|people|nobody) |"
    r"^\W*(?:他|她|他们|她们|有人|大家|人们|老板|领导|同事|朋友|孩子|妈妈|爸爸|爸妈|女儿|儿子|老婆|老公|邻居|现在的人)",
    re.I,
)
_FINITE = (
    r"(?:is|are|was|were|am|has|have|had|will|would|can|could|should|must|does|do|did|"
    r"isn't|aren't|wasn't|don't|doesn't|can't)"
)
_STATEMENT = re.compile(
    rf"^(?!\W*(?:which|what|who|whom|whose|where|when|how|why|show|list|give|tell|find|get|count|display|is|are|was|"
    rf"were|do|does|did|can|could|"
    rf"would|will|should|has|have|please|any|in which|for which)\b)(?:(?!\b(?:who|that|which|whose|where|with|"
    rf"without|not|no|when|if)\b)[^?])*?\b{_FINITE}\b",
    re.I,
)
_WHETHER = re.compile(
    r"^\W*(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have)(?:n't)? (?!there\b|any\b|we\b|you\b|"
    r"i\b|all\b)\w+",
    re.I,
)
_NARRATION = re.compile(
    r"(?:昨天|今天|刚才|刚刚|上周末|以前|从小|小时候)我|了[,，].*(?:很|太|真|还|都)|\bused to\b|"
    r"\byesterday\b.*\b\w+ed\b",
    re.I,
)
_CONDITION = re.compile(r"^\W*(?:if|when|once|after|before) (?:i|you|we|a|an|the|my)\b|怎么办|的话.*(?:会|能|怎)", re.I)

_SIGNS = (_ADVICE, _CAUSES, _DEFINITIONS, _OPINIONS, _CREATIONS, _OTHERS, _NARRATION, _CONDITION)


def without_courtesy(question: str) -> str:
    """The question without the greeting before it and the thanks behind; empty when it is nothing else."""
    rest = _COURTESY.sub("", question.strip(), count=1)
    return _CLOSING.sub("", rest).strip()


def signs_of_talk(question: str) -> int:
    """How many forms of conversation a question has; 0 when it may be asked of a database."""
    text = without_courtesy(question)
    bare = _OURS.sub(" ", _FRAMES.sub(" ", text))
    signs = sum(bool(form.search(text)) for form in _SIGNS)
    signs += bool(_ONESELF.search(bare)) + bool(_YOURSELF.search(bare))
    if language_of(text) == "en":
        signs += bool(_STATEMENT.search(_FRAMES.sub("show ", text))) + bool(_WHETHER.search(text))
    return signs

"""Words of the two languages that say what to do with the data, as tables: no word here belongs to anybody's domain.

Each key is (kind, argument) of an `Intent`; each text lists phrases separated by `|`. Kinds:

    noise   says nothing that changes the answer      of      ties a noun to the one it belongs to
    list    wants rows                                 which   wants the things themselves
    count sum avg max min share distinct               aggregates
    each by bucket trend                               groups
    super rank top                                     order and limit
    cmp between not null like and or range with        conditions
    unit    measure word after a number                compare  wants two things side by side
    why …   what rules can't answer (`unsupported`, the argument names it)
"""

from dataclasses import dataclass

from agent.skills.offline.atoms import key_of


@dataclass(frozen=True)
class Intent:
    """What a word asks for; see the module's table of kinds."""

    kind: str
    arg: str = ""


_ENGLISH: dict[tuple[str, str], str] = {
    ("noise", ""): (
        "worth|costing|priced at|a|an|the|is|are|was|were|be|been|being|am|do|does|did|done|there|please|can|could|would|will|shall|"
        "should|may|might|must|i|me|my|we|our|us|you|your|he|she|his|her|it|its|they|them|their|this|these|those|"
        "that|as|so|just|also|only|now|then|here|too|very|really|currently|existing|exist|exists|available|"
        "overall|altogether|want|need|like to|would like|tell|know|see|look|let|to|in|on|at|for|all|any|some|"
        "into|within|across|among|amongst|during|about|regarding|together|using|use|used|get|got|"
        "both of|such|following|given|based|based on|data|information|info|details|detail|record|records|"
        "rows|row|entries|entry|table|database|db|result|results|list of|names of all|please show|hi|hello|hey|"
        "ok|okay|thanks|thank you|how about|what about|if|located|situated|belong|belongs|belonging|belong to|"
        "belongs to|assigned|assigned to|associated with|related to|placed|made|make|work|works|working|"
        "worked|live|lives|living|lived|come|comes|coming|contained in|go|goes|went|take|takes|took|taken|happen|"
        "happened|occur|occurred|generated|generate|produced|received|receive|performed|perform|ever|yet|still|"
        "already|been made|it has|whats|stored|recorded|registered in|different from each other|total of all|"
        "sum of all|customer's own|there any|kind of|kinds of|system|figures|figure|statistics|stats|"
        "summary|breakdown|overview|in total|in all|each of|who are|who is|person who|people who|actually|"
        "exactly|approximately|i'm|i'd|let's|we're|they're"
    ),
    ("verb", ""): (
        "bring|brings|brought|generates|gets|makes|handled|handle|handles|supplied|supply|supplies|sold|sell|sells|place|places|processed|process|processes|manage|"
        "manages|managed|supervised|supervise|supervises|lead|leads|led|serve|serves|served|teach|teaches|taught|write|"
        "writes|wrote|written|buy|buys|bought|purchase|purchased|purchases|spend|spends|spent|earn|earns|earned|"
        "support|supports|supported|treat|treats|treated|attend|attends|attended|visit|visits|visited|borrow|borrowed|"
        "borrows|rent|rented|direct|directed|play|plays|played|compose|composed|host|hosts|hosted|run|runs|"
        "run by|offer|offers|offered|sing|sung|appear|appears|appeared|star|starred|"
        "enroll|enrolled|study|studies|studied|join|joined|participate|participated|prescribe|prescribed|seen|saw|"
        "stay|stayed|stays|book|booked|fly|flew|drive|driven|carry|carried|carries|stock|stocked|stocks|cover|covers|"
        "submit|submitted|write a|leave|left|post|posted|issue|issued|issues|charge|charged|charges|"
        "held|hold|holds|keep|kept|keeps|bring|brought|employ|employs|employed|hire|hires|rate|rated|review|reviewed"
    ),
    ("of", ""): "of|of the|of all|of all the|'s",
    ("list", ""): (
        "list|show|display|give|find|fetch|retrieve|return|print|enumerate|view|select|show me|give me|get me|"
        "list all|show all|list out|search|search for|look up|provide"
    ),
    ("which", ""): "which|what|what's|what are|what is|which ones|identify|name the|name all",
    ("which", "person"): "who|whom",
    ("which", "when"): "when",
    ("count", ""): (
        "how many|number of|the number of|count of|count|counts|total number of|total count of|"
        "number of different|the total number of|no of|total count|how many times"
    ),
    ("sum", ""): (
        "total|sum|sum of|total of|combined|aggregate|grand total|how much|"
        "sum total|the sum of|totals"
    ),
    ("avg", ""): "average|mean|avg|on average|average of|the average|averaged|typical|averages",
    ("max", ""): "maximum|max|maximum of|greatest value|highest value|peak",
    ("min", ""): "minimum|min|lowest value|smallest value",
    ("distinct", ""): "distinct|different|unique|various|unique values of|distinct values of|types of|type of",
    ("share", ""): "percentage|share|proportion|percentage of|share of|proportion of|percent of|as a percentage|fraction of",
    ("each", ""): "each|every|per|for each|for every|in each|of each|by each|within each|at each|from each|for all|per each",
    ("by", ""): (
        "by|group by|grouped by|grouping by|broken down by|break down by|split by|according to|aggregated by|"
        "breakdown by|categorized by|summarized by|separated by|distribution by|distributed by|across different|"
        "distribution of|distributed across|distribution across"
    ),
    ("bucket", "day"): "daily|per day|by day|each day|every day|day by day|for each day|on each day",
    ("bucket", "week"): "weekly|per week|by week|each week|every week|week by week|for each week",
    ("bucket", "month"): "monthly|per month|by month|each month|every month|month by month|for each month|in each month",
    ("bucket", "quarter"): "quarterly|per quarter|by quarter|each quarter|every quarter|for each quarter",
    ("bucket", "year"): (
        "yearly|annual|annually|per year|by year|each year|every year|year by year|for each year|per annum|"
        "in each year|by years"
    ),
    ("date_which", "day"): "which day|what day|on which day|on what day|which days|which date|what date|on which date",
    ("date_which", "week"): "which week|what week|in which week",
    ("date_which", "month"): "which month|what month|in which month|in what month|which months",
    ("date_which", "quarter"): "which quarter|what quarter|in which quarter",
    ("date_which", "year"): "which year|what year|in which year|in what year|which years",
    ("date_part", "day"): "day|days",
    ("date_part", "week"): "week|weeks",
    ("date_part", "month"): "month|months",
    ("date_part", "quarter"): "quarter|quarters",
    ("date_part", "year"): "year|years",
    ("trend", ""): (
        "trend|trends|over time|evolution|development over time|trend of|change over time|changed over time|"
        "history of"
    ),
    ("super", "+"): (
        "highest|most|largest|biggest|greatest|maximal|best|the most|top most|highest number of|most number of|"
        "largest number of|greatest number of|the highest number of|the largest number of"
    ),
    ("super", "-"): (
        "lowest|least|smallest|fewest|worst|minimal|the least|the fewest|lowest number of|smallest number of|"
        "least number of|fewest number of"
    ),
    ("super", "+price"): "most expensive|priciest|costliest|dearest|most costly",
    ("super", "-price"): "cheapest|least expensive|most affordable",
    ("super", "+date"): "latest|newest|most recent|last|most recently|recent|recently",
    ("super", "-date"): "earliest|oldest|first ever",
    ("super", "+length"): "longest",
    ("super", "-length"): "shortest",
    ("super", "+weight"): "heaviest",
    ("super", "-weight"): "lightest",
    ("super", "+height"): "tallest",
    ("super", "-age"): "youngest",
    ("super", "+rating"): "best rated|highest rated|top rated",
    ("super", "-rating"): "worst rated|lowest rated",
    ("super", "+salary"): "highest paid|best paid|top paid|highest earning",
    ("super", "-salary"): "lowest paid|worst paid|lowest earning",
    ("super", "+quantity"): "best selling|bestselling|top selling|best seller|best sellers|most sold",
    ("super", "-quantity"): "worst selling|least sold",
    ("super", "+population"): "most populous|most populated",
    ("rank", ""): (
        "rank|ranked|ranking|rankings|sort|sorted|order by|ordered by|sorted by|sort by|ordered|leaderboard|"
        "rank by|ranked by|in order of"
    ),
    ("rank", "desc"): (
        "descending|desc|from highest to lowest|high to low|highest to lowest|in descending order|highest first|"
        "in descending order of|largest first|most recent first|newest first|from high to low|descending order"
    ),
    ("rank", "asc"): (
        "ascending|asc|from lowest to highest|low to high|lowest to highest|in ascending order|lowest first|"
        "in ascending order of|alphabetically|in alphabetical order|alphabetical order|smallest first|"
        "oldest first|ascending order"
    ),
    ("top", ""): "top|first|leading|the top|the first",
    ("top", "-"): "bottom|the bottom|last few",
    ("cmp", ">"): (
        "more than|greater than|over|above|exceed|exceeds|exceeding|higher than|larger than|bigger than|>|"
        "is greater than|in excess of|exceeded|longer than|heavier than|taller than|upwards of"
    ),
    ("cmp", ">="): (
        "at least|no less than|not less than|no fewer than|minimum of|greater than or equal to|>=|or more|"
        "or above|or higher|and above|not below|a minimum of|more than or equal to|and up|or greater|or over|"
        "not lower than"
    ),
    ("cmp", "<"): "less than|fewer than|under|below|lower than|smaller than|<|shorter than|lighter than",
    ("cmp", "<="): (
        "at most|no more than|not more than|up to|less than or equal to|<=|or less|or fewer|or below|or lower|"
        "not exceeding|not above|a maximum of|not over|or under|and below|not higher than"
    ),
    ("cmp", "="): "equal to|equals|equal|=|==|exactly equal to|is exactly",
    ("cmp", "!="): "not equal to|!=|<>|different from|does not equal|not equal|isn't equal to|unequal to",
    ("cmp", ">price"): "more expensive than|costlier than|pricier than",
    ("cmp", "<price"): "cheaper than|less expensive than",
    ("cmp", ">age"): "older than",
    ("cmp", "<age"): "younger than",
    ("between", ""): "between|ranging from|in the range|in the range of|range from",
    ("not", ""): (
        "not|no|never|none|without|don't|doesn't|didn't|isn't|aren't|wasn't|weren't|haven't|hasn't|hadn't|cannot|"
        "except|except for|excluding|exclude|other than|without any|lacking|lack|lacks|with no|have no|has no|"
        "had no|nor|not any|do not have|does not have|do not have any|does not have any|don't have|doesn't have|"
        "don't have any|doesn't have any|have not|has not|have never|has never|did not|do not|does not|not in|"
        "is not|are not|was not|were not|that have no|who have no|apart from|besides|not been|non|having no|"
        "no longer"
    ),
    ("null", ""): (
        "null|is null|are null|empty|is empty|blank|is blank|missing|is missing|are missing|unknown|not set|"
        "not recorded|unspecified|not specified|not filled in|not filled|is unknown|is not set|not known|"
        "undefined|not provided|not available|is not known|unset|not yet set|isn't set"
    ),
    ("notnull", ""): (
        "not null|is not null|not empty|non empty|is not empty|known|specified|filled in|not missing|is set|"
        "is known|present|isn't null|is not missing|recorded value"
    ),
    ("like", "contains"): (
        "contains|containing|contain|including the word|includes|including|with the word|contains the word|"
        "containing the word|that contain|that contains|whose name contains|matching|like|having the word|include"
    ),
    ("like", "prefix"): (
        "starting with|starts with|start with|begins with|beginning with|begin with|starts with the letter|"
        "starting with the letter|beginning with the letter|begins with the letter|begin with the letter|"
        "start with the letter|prefixed with"
    ),
    ("like", "suffix"): "ending with|ends with|end with|ending in|ends in|end in",
    ("named", ""): "named|called|titled|by the name of|with the name|whose name is|entitled|with name",
    ("and", ""): "and|as well as|along with|together with|plus|and also|and the|and their|&|and its",
    ("or", ""): "or|either|or else",
    ("with", ""): (
        "with|have|has|had|having|where|that have|that has|who have|who has|which have|which has|that are|"
        "that is|which are|that were|who were|whose|by having|with a|with an|that had|who had|has had|have had"
    ),
    ("from", ""): "from|starting from|beginning",
    ("to", ""): "through|till|-|~|–|—|thru",
    ("range", "since"): (
        "since|starting|starting in|from the beginning of|onwards|onward|on or after|not before|or later|"
        "and later|and after|as of"
    ),
    ("range", "after"): "after|later than|following the",
    ("range", "before"): "before|earlier than|prior to|older than the date",
    ("range", "until"): "until|by the end of|up until|on or before|up to and including|through the end of|or earlier|not after",
    ("unit", ""): (
        "dollars|dollar|usd|euros|euro|eur|pounds|gbp|yuan|rmb|cny|yen|$|€|¥|£|times|items|pieces|people in|kg|kilograms|grams|"
        "km|kilometers|miles|meters|cm|years old|year old|years of age"
    ),
    ("compare", ""): (
        "respectively|compare|comparison|comparison of|comparison between|versus|vs|compared to|compared with|comparing|"
        "compared"
    ),
    ("deleted", "with"): (
        "including deleted|including deleted ones|deleted or not|with deleted|deleted included|include deleted|"
        "even deleted ones|including the deleted"
    ),
    ("per_entity", ""): (
        "on average per|average number of|the average number of|mean number of|average count of|avg number of|"
        "average total|average number"
    ),
    ("unsupported", "why"): "why|reason|reasons|cause|causes|explain|because",
    ("unsupported", "forecast"): (
        "forecast|predict|prediction|will be|projected|projection|estimate|anomaly|anomalies|outlier|outliers|"
        "what if|going to"
    ),
    ("unsupported", "statistics"): (
        "correlation|correlate|correlated|regression|median|percentile|quartile|standard deviation|stddev|"
        "variance|mode|histogram|moving average|rolling average|running total|cumulative total|cumulative sum|"
        "cumulative|distribution"
    ),
    ("unsupported", "growth"): (
        "growth|growth rate|year over year|yoy|month over month|mom|increase rate|increased|decrease|decreased|"
        "growing|grew|declined|rate of change|percent change|percentage change|compared to last year|"
        "compared to last month|difference|difference between|ratio|ratio of|same period last year|increase|"
        "decline|change in|changes in|grow"
    ),
    ("unsupported", "set"): (
        "both|neither|simultaneously|at the same time|consecutive|consecutively|in a row|same|as many|half of|"
        "half|twice|times more|double|exclusively|nth|second highest|third highest|second most|second largest|"
        "third largest|second lowest|second|third|fourth|fifth|every other|least one of each|self|themselves|own|"
        "alternately|overlapping|respective highest|more often|tied|almost|nearly"
    ),
    ("above_average", ""): (
        "above average|above the average|more than the average|higher than the average|greater than the average|"
        "over the average|larger than the average|higher than average|more than average|exceeds the average|"
        "exceeding the average|longer than the average|longer than average|more expensive than the average|"
        "more expensive than average|heavier than the average"
    ),
    ("below_average", ""): (
        "below average|below the average|less than the average|lower than the average|under the average|"
        "fewer than the average|smaller than the average|lower than average|less than average|"
        "cheaper than the average|cheaper than average|shorter than the average|shorter than average"
    ),
}  # fmt: skip

_CHINESE: dict[tuple[str, str], str] = {
    ("noise", ""): (
        "占|占总|所占|请|请问|帮我|帮忙|麻烦|我想|我要|想|想要|知道|了解|一下|下|看看|看一下|看下|了|吗|呢|啊|吧|呀|在|中|里|"
        "里面|内|中的|里的|内的|上|上的|对|对于|关于|其|其中|它|它们|他们|她们|所有|所有的|全部|全部的|全|都|"
        "都是|情况|数据|信息|记录|结果|这个|那个|这些|那些|我们|你|我|能|能否|可以|可否|给我|给|"
        "告诉我|告诉|位于|属于|来自|进行|一共|总共有|共有|共|一共有|现在|目前|当前|现有|已有|产生|发生|管理|经营|"
        "运营|做过|做了|下过|下了|买过|买了|购买了|购买过|提交|提交了|参加|参与|使用|使用了|到底|究竟|大概|大约|"
        "具体|具体的|相关|相关的|对应|对应的|下面|如下|下属|旗下|名下|下辖|辖内|里边|范围|期间|当中|之中|的话|"
        "而且|同时显示|显示出来|出来|数据库|系统|表里|表中|报表|统计数据|统计结果|整体|整个|总体|合并|用|通过|由|"
        "被|把|将|让|要|会|应该|需要|属于哪|呈现|做|一|这|那|该|有什么|什么|怎样|如何|怎么样|的情况|多大|多长|"
        "是什么|是啥|啥|多高|多重|方面|以及它们|及其|每一|一览|谢谢|你好|您好|您|已|已经|过|曾|曾经|分布在|"
        "分布于|开设|开设了|设有|一起|发出|完成|完成了|实现|实现了|取得|收到|达成|贡献|贡献了|创造|哪里|哈|呗|"
        "有着|类|类的|式|"
    ),
    ("verb", ""): (
        "销售|出售|售出|卖出|卖了|卖|买|购买|采购|负责|处理|接待|服务|供应|提供|生产|借|借了|借过|看过|选|选了|选修|教|教授|讲授|担任|"
        "签订|签署|订|订购|下单|消费|花费|花|花了|带来|产出|参演|演唱|出演|主演|执导|撰写|写|写了|编写|接诊|就诊|诊治|入住|乘坐|租|租赁|租用|"
        "发布|发表|上架|供货|办理|缴纳|领取|组织|主持|承担|持有|开具|开了|出具|开出|收取|接到|接收|报名|选课|上课|学习"
    ),
    ("of", ""): "的|之",
    ("list", ""): (
        "查询|列出|显示|查看|找出|给出|展示|检索|列举|返回|查找|罗列|查|列|看|找|统计|汇总|计算|算一下|求|"
        "统计一下|查一下|筛选|筛选出|搜索|清单|名单|列表|明细|详情|有哪些|都有哪些|有哪几个|包括哪些|分别是哪些|"
        "输出|列出来"
    ),
    ("which", ""): (
        "哪个|哪些|哪家|哪位|哪几个|哪一个|哪种|哪几家|哪类|哪一家|哪一种|哪条|哪座|哪|是哪个|是哪些|是哪家|哪款|"
        "哪部|哪本|哪首|哪张|哪所|哪间|哪几种|哪名|属于哪个|在哪个|是哪|哪几位|哪几名|哪个是|哪一位"
    ),
    ("which", "person"): "谁|是谁|哪些人|哪个人",
    ("which", "when"): "什么时候|何时|几时|什么时间",
    ("date_which", "day"): "哪一天|哪天|哪几天|哪一日|哪些天|哪日",
    ("date_which", "week"): "哪一周|哪周|哪个星期",
    ("date_which", "month"): "哪个月|哪一个月|哪几个月|哪月|哪些月|哪些月份|哪个月份|哪月份",
    ("date_which", "quarter"): "哪个季度|哪一季度|哪季度",
    ("date_which", "year"): "哪一年|哪年|哪几年|哪个年份",
    ("count", ""): (
        "量|多少|多少个|多少家|多少条|多少人|多少名|多少位|多少种|多少次|多少笔|多少件|多少本|多少张|多少部|多少首|"
        "多少辆|几个|几家|几条|几名|几位|几种|几次|几笔|几人|几本|几张|几部|几首|几间|多少间|数量|个数|总数|"
        "总数量|有多少|有多少个|有多少家|有几个|有几家|数|数目|总个数|总数目|人数|总人数|次数|人次|总次数|件数|家数|"
        "数是|共有多少|一共有多少|总共有多少|共有多少个|一共有多少个|总共有多少个|有多少种|有几种|有多少条|"
        "有多少人|有多少名|有多少位|有多少次|有多少笔|几所|多少所|多少座|几座|多少款|几款|多少台|几台|一共有几个|"
        "总共有几个|记录数|总记录数|条数|笔数|有多少本|有多少部|有几本|有几位|有几名|有多少件|多少门|几门|"
        "场数|多少项|几项"
    ),
    ("sum", ""): (
        "总|总共|总计|合计|总和|总额|累计|总的|之和|求和|汇总值|合计值|加起来|总量|一共是|总共是|"
        "总计是|合计是"
    ),
    ("avg", ""): "平均|均值|平均值|平均数|平均是|的平均|平均每条",
    ("avg_per", "day"): "日均|每日平均|平均每天|平均每日|每天平均",
    ("avg_per", "week"): "周均|每周平均|平均每周",
    ("avg_per", "month"): "月均|每月平均|平均每月|平均每个月|每个月平均",
    ("avg_per", "year"): "年均|每年平均|平均每年",
    ("max", ""): "最大值|最高值|峰值|最大的值",
    ("min", ""): "最小值|最低值",
    ("distinct", ""): "不同|不同的|不重复|不重复的|去重|去重后的|唯一|各不相同的|种类数",
    ("share", ""): "占比|占多少|所占百分比|的占比|比例|份额|百分比|比重|所占比例|所占比重|占总数的比例|占多少比例|占多大比例",
    ("each", ""): (
        "各|每|每个|各个|每家|每位|每名|每一个|每条|每种|各种|各家|每一家|每所|每座|每间|每件|每部|"
        "每本|每首|每张|每笔|每款|每一种|每辆|各位|各所|每一位|每门|每项|每台"
    ),
    ("by", ""): "按|按照|根据|依据|依|分|以每个|按各|按每个|按不同|不同种类的|按所属|按所在|以",
    ("by_end", ""): "分组|分类统计|分别统计|划分|分组统计|来统计|来看|归类|维度|为维度|分类汇总|分布|的分布|分组汇总|分布情况",
    ("bucket", "day"): "每天|每日|按天|按日|各日|逐日|日度|每一天|各天|按日期|分日|每天的|按日统计|每日的",
    ("bucket", "week"): "每周|按周|各周|逐周|每星期|周度|每个星期|分周",
    ("bucket", "month"): "每月|按月|各月|逐月|每个月|月度|按月份|各月份|各个月|每月份|分月|每个月份|各个月份",
    ("bucket", "quarter"): "每季度|按季度|各季度|每个季度|逐季|季度的|各个季度|分季度|按季",
    ("bucket", "year"): "每年|按年|各年|年度|逐年|按年度|各年度|按年份|每一年|各年份|历年|分年|每个年份|各个年份",
    ("date_part", "month"): "月份|个月|月",
    ("date_part", "week"): "周|个星期|星期",
    ("date_part", "quarter"): "季度|个季度",
    ("date_part", "year"): "年份|年",
    ("date_part", "day"): "天",
    ("trend", ""): "趋势|走势|变化趋势|变化情况|变化|走向|随时间的变化|随时间变化|变动趋势|变动情况",
    ("super", "+"): (
        "最高|最多|最大|最好|最高的|最多的|最大的|最好的|最强|最强的|数最多|数量最多|数最多的|数量最多的|"
        "最为多的|最佳"
    ),
    ("super", "-"): "最低|最少|最小|最差|最低的|最少的|最小的|最差的|数最少|数量最少|数最少的|数量最少的|垫底|垫底的",
    ("super", "+price"): "最贵|最贵的|最昂贵|最昂贵的",
    ("super", "-price"): "最便宜|最便宜的|最实惠的",
    ("super", "+date"): "最新|最新的|最晚|最晚的|最近|最近的|最近一次|最后|最后一次|最后的|最迟",
    ("super", "-date"): "最早|最早的|最老的|最先|最初|最初的|首次|第一次|最旧的",
    ("super", "+length"): "最长|最长的",
    ("super", "-length"): "最短|最短的",
    ("super", "+weight"): "最重|最重的",
    ("super", "-weight"): "最轻|最轻的",
    ("super", "-age"): "最年轻|最年轻的",
    ("super", "+age"): "最年长|最年长的|年纪最大的|年纪最大",
    ("super", "+quantity"): "最畅销|最畅销的|卖得最好的|卖得最好|卖得最多的|卖得最多|销量最好的|最热销的|热销",
    ("super", "+rating"): "评价最高的|口碑最好的",
    ("rank", ""): "排行|排名|排序|排行榜|排列|榜单|排|排名情况|名次|排行情况",
    ("rank", "desc"): (
        "由高到低|从高到低|降序|从大到小|由大到小|从多到少|由多到少|倒序|降序排列|从高到低排列|从高到低排序|"
        "从大到小排序|倒序排列|从多到少排序|由高到低排序|由高到低排列|从新到旧"
    ),
    ("rank", "asc"): (
        "由低到高|从低到高|升序|从小到大|由小到大|从少到多|由少到多|升序排列|正序|从低到高排序|从小到大排序|"
        "从低到高排列|从旧到新"
    ),
    ("top", ""): "前|排名前|排在前|头|第一|排名第一|居首|位列前|top|排第一|排前|第一的|排名前列",
    ("top", "-"): "后|倒数|倒数第|末|排名后|最后的几个|排名最后|倒数第一|排后|排名倒数",
    ("cmp", ">"): "超过|大于|高于|多于|超出|>|超|比这更高|长于|重于",
    ("cmp", ">="): (
        "不低于|不少于|至少|大于等于|大于或等于|不小于|>=|以上|及以上|以上的|或以上|达到|最少有|不短于|或更多|"
        "不低于的"
    ),
    ("cmp", "<"): "低于|小于|少于|不足|不到|<|未达到|未达|不满|短于|轻于|没有达到|没超过",
    ("cmp", "<="): (
        "不超过|不高于|至多|小于等于|小于或等于|不大于|<=|以下|及以下|以内|以下的|或以下|不多于|最多有|未超过|"
        "没有超过"
    ),
    ("cmp", "="): "等于|是|为|=|正好是|恰好|刚好|正好|恰好是|正好有|恰好有",
    ("cmp", "!="): "不等于|!=|<>|不同于",
    ("cmp", ">price"): "贵于",
    ("cmp", "<price"): "便宜于",
    ("between", ""): "介于|处于",
    ("between_end", ""): "之间|之间的|范围内|这个范围|范围内的|区间",
    ("not", ""): (
        "不|没有|未|非|无|不是|不在|不属于|除了|除|除去|排除|不包括|不含|不包含|没|没有任何|从未|从没有|从来没有|"
        "从没|还没有|尚未|并未|未曾|并非|不为|未有|剔除|不来自|不位于|没有过|并没有|未被|"
        "没有被|不算|无任何|从来没"
    ),
    ("except_end", ""): "以外|之外|以外的|之外的|外的",
    ("null", ""): (
        "为空|空|是空|是空的|未填写|未填|没填|没填写|没有填|没有留|没留|未留|没有填写|缺失|为null|是null|null|未统计|未上报|未知|不详|"
        "空缺|没有统计|没有上报|缺少|未设置|未登记|没有登记|没有设置|空值|为空值|为空的|未指定|没有记录|未记录|"
        "无记录|没上报|没登记|还没填|还没填写|空白|未录入|没有录入|未填报|缺"
    ),
    ("notnull", ""): "不为空|非空|已填写|不是空|不为null|已登记|有填写|不为空的|不空|填写了|登记了|已上报|有值|不是空的|已统计",
    ("like", "contains"): "包含|含有|含|带有|带|包括|中有|里有|中包含|里包含|中含有|里含有|带着|出现|包含有",
    ("like", "prefix"): "开头|打头|开始于|起头|开头的",
    ("like", "suffix"): "结尾|结束于|收尾|结尾的",
    ("named", ""): "名为|叫|名叫|叫做|名称为|名称是|名字是|名字叫|姓名为|姓名是|称为",
    ("and", ""): "和|与|及|以及|、|跟|同|还有|加上|并且|且|,|;|并",
    ("or", ""): "或|或者|或是|还是",
    ("with", ""): "有|具有|拥有|存在|有过|且有",
    ("from", ""): "从|自从|自",
    ("to", ""): "到|至|~|-|—|直到|–",
    ("range", "since"): "以来|起|开始|至今|起至今|开始的|之日起|以来的|到现在|到今天|到目前",
    ("range", "after"): "之后|以后|之后的|以后的|晚于",
    ("range", "before"): "之前|以前|之前的|以前的|早于",
    ("range", "until"): "截至|截止|为止|截止到|截至到|及之前|及以前",
    ("compare", ""): "分别|分别是|各自|对比|比较|相比|对照|比对",
    ("deleted", "with"): "包括已删除|包括已删除的|含已删除|含已删除的|包含已删除的|包含已删除|连同已删除的|不管是否删除",
    ("unit", ""): (
        "个|家|条|名|位|笔|件|本|部|首|张|间|所|座|辆|台|款|种|次|元|块|块钱|万元|元钱|平米|平方米|平方|岁|人|"
        "公里|千米|公斤|千克|克|分钟|小时|辆次|美元|个以|项|门|层|吨|米|厘米|套|份|杯|盒|股|页|折|两|号|大"
    ),
    ("per_entity", ""): "平均每个|平均每家|平均每位|平均每名|平均每|平均每人|每个平均|平均一个",
    ("unsupported", "why"): "为什么|为何|原因|怎么会|为啥|缘故|什么原因",
    ("unsupported", "forecast"): "预测|预计|预估|将会|未来|异常|异动|假如|如果|估计|会不会",
    ("unsupported", "statistics"): "相关性|关联性|相关系数|回归|中位数|分位数|标准差|方差|众数|直方图|移动平均|累计值|累积|滚动|相关关系",
    ("unsupported", "growth"): (
        "同比|环比|增长|增长率|增长了|增速|增幅|下降|降低|涨幅|跌幅|减少了|增加了|上升|提高|变化率|差额|差值|"
        "相差|差|差距|去年同期|同期|比值|之比|多多少|少多少|比率|倍|翻倍|下滑|涨|跌"
    ),
    ("unsupported", "set"): (
        "同时|连续|既|又|都没有|都有|两者|各自最高|第二|第三|第四|第五|第二高|第三高|一半|半数|同样|相同|一样|"
        "相同的|一样的|只有|仅|仅有|只|唯有|大多数|多数|少数|恰巧|轮流|相邻|重复|重名|只在|超半数|均|互相|自己|"
        "交集|并集|差集|最频繁|经常"
    ),
    ("above_average", ""): (
        "高于平均|超过平均|大于平均|高于平均值|超过平均值|大于平均值|高于平均水平|超过平均水平|高于均值|大于均值|"
        "超过均值"
    ),
    ("below_average", ""): "低于平均|小于平均|低于平均值|小于平均值|低于平均水平|少于平均|低于均值|小于均值|不足平均",
}  # fmt: skip


# Kinds whose English phrases may have an article before them.
_ARTICLED = ("super", "sum", "avg", "max", "min", "count", "share", "top")


def _phrases() -> dict[str, Intent]:
    phrases: dict[str, Intent] = {}
    for table in (_ENGLISH, _CHINESE):
        for (kind, arg), text in table.items():
            for phrase in text.split("|"):
                if kind in _ARTICLED and phrase.isascii():
                    phrases.setdefault(f"the {phrase}", Intent(kind, arg))
                phrases.setdefault(key_of(phrase) if phrase.isalnum() or " " in phrase else phrase, Intent(kind, arg))
    return phrases


INTENTS = _phrases()
"""Intent by comparison key (exact form); later tables do not override earlier ones."""

"""English words that say what to do with the data; `vocabulary` explains the kinds."""

ENGLISH: dict[tuple[str, str], str] = {
    ("noise", ""): (
        "worth|costing|priced at|a|an|the|is|are|was|were|be|been|being|am|do|does|did|done|there|please|can|"
        "could|would|will|shall|"
        "should|may|might|must|i|me|my|we|our|us|you|your|he|she|his|her|it|its|they|them|their|this|these|those|"
        "that|as|so|just|also|only|now|then|here|too|very|really|currently|existing|exist|exists|available|"
        "overall|altogether|want|need|like to|would like|tell|know|see|look|let|to|in|on|at|for|all|any|some|"
        "into|along|within|across|among|amongst|during|about|regarding|together|using|use|used|get|got|"
        "both of|such|following|given|based|based on|data|information|info|details|detail|"
        "table|database|db|result|results|list of|names of all|please show|hi|hello|hey|"
        "ok|okay|thanks|thank you|how about|what about|if|located|situated|belong|belongs|belonging|belong to|"
        "belongs to|assigned|assigned to|associated with|related to|work|works|working|"
        "worked|live|lives|living|lived|come|comes|coming|contained in|go|goes|went|happen|"
        "happened|occur|occurred|ever|yet|still|"
        "already|been made|it has|whats|stored|recorded|registered in|different from each other|total of all|"
        "sum of all|customer's own|there any|kind of|kinds of|system|figures|figure|statistics|stats|"
        "summary|breakdown|overview|in total|in all|each of|who are|who is|person who|people who|actually|"
        "exactly|approximately|i'm|i'd|let's|we're|they're"
    ),
    ("noise", "rows"): "record|records|row|rows|entry|entries",
    ("verb", ""): (
        "logged|log|logs|pass|passes|passed|passing|pass through|passed through|came|come in|came in|"
        "coming in|enter|enters|entered|operate|operates|operated|bring in|brings in|brought in|took in|take in|"
        "collect|collects|collected|pay|pays|paid|paid by|paid in|paid with|"
        "new|placed|made|make|makes|performed|perform|received|receive|generated|generate|produced|take|takes|took|taken|bring|brings|brought|generates|gets|makes|handled|handle|handles|supplied|supply|supplies|sold|sell|sells|place|places|processed|process|processes|manage|"
        "manages|managed|supervised|supervise|supervises|lead|leads|led|serve|serves|served|teach|teaches|taught|write|"
        "writes|wrote|written|buy|buys|bought|purchase|purchased|purchases|spend|spends|spent|earn|earns|earned|"
        "support|supports|supported|treat|treats|treated|attend|attends|attended|visit|visits|visited|borrow|borrowed|"
        "borrows|rent|rented|direct|directed|play|plays|played|compose|composed|host|hosts|hosted|run|runs|"
        "run by|offer|offers|offered|sing|sung|appear|appears|appeared|star|starred|"
        "enroll|enrolled|study|studies|studied|join|joined|participate|participated|prescribe|prescribed|seen|saw|"
        "stay|stayed|stays|book|booked|fly|flew|drive|driven|carry|carried|carries|stock|stocked|stocks|cover|covers|"
        "submit|submitted|write a|leave|left|post|posted|issue|issued|issues|charge|charged|charges|"
        "held|hold|holds|keep|kept|keeps|bring|brought|employ|employs|employed|hire|hires|rated|review|reviewed"
    ),
    ("of", ""): "of|of the|of all|of all the|'s",
    ("list", ""): (
        "list|show|display|give|find|fetch|retrieve|return|print|enumerate|view|select|show me|give me|get me|"
        "list all|show all|list out|search|search for|look up|provide"
    ),
    ("which", ""): "which|what|what's|what are|what is|which ones|identify|name the|name all",
    ("which", "kind"): (
        "which kind of|what kind of|which kinds of|what kinds of|"
        "which type of|what type of|which types of|what types of"
    ),
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
    ("share", ""): (
        "percentage|share|proportion|percentage of|share of|proportion of|percent of|as a percentage|fraction of"
    ),
    ("each", ""): (
        "each|every|per|for each|for every|in each|of each|by each|within each|at each|from each|for all|per each"
    ),
    ("each", "kind"): (
        "each kind of|every kind of|per kind of|for each kind of|for every kind of|"
        "each type of|every type of|per type of|for each type of|for every type of"
    ),
    ("by", "kind"): "by kind of|by type of|by kinds of|by types of|grouped by kind of|grouped by type of",
    ("by", ""): (
        "by|group by|grouped by|grouping by|broken down by|break down by|split by|according to|aggregated by|"
        "breakdown by|categorized by|summarized by|separated by|distribution by|distributed by|across different|"
        "distribution of|distributed across|distribution across"
    ),
    ("bucket", "day"): (
        "daily|per day|by day|by date|per date|each date|each day|every day|day by day|for each day|on each day"
    ),
    ("bucket", "week"): "weekly|per week|by week|each week|every week|week by week|for each week",
    ("bucket", "month"): (
        "monthly|per month|by month|each month|every month|month by month|for each month|in each month"
    ),
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
    ("date_part", "day"): "day|days|single day|one day|a day|any day|any one day",
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
    ("super", "+traffic"): "busiest|most popular|most visited|most crowded",
    ("super", "-traffic"): "quietest|least busy|least visited|least popular|least crowded",
    ("super", "+price"): "most expensive|priciest|costliest|dearest|most costly",
    ("super", "-price"): "cheapest|least expensive|most affordable",
    ("super", "+date"): "latest|newest|most recent|last|most recently",
    ("super", "+recent"): "recent|recently",
    ("super", "-date"): "earliest|first ever",
    ("super", "+length"): "longest",
    ("super", "-length"): "shortest",
    ("super", "+weight"): "heaviest",
    ("super", "-weight"): "lightest",
    ("super", "+height"): "tallest",
    ("super", "-age"): "youngest",
    ("super", "+age"): "oldest",
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
        "is greater than|in excess of|exceeded|longer than|upwards of"
    ),
    ("cmp", ">="): (
        "at least|no less than|not less than|no fewer than|minimum of|greater than or equal to|>=|or more|"
        "or above|or higher|and above|not below|a minimum of|more than or equal to|and up|or greater|or over|"
        "not lower than"
    ),
    ("cmp", "<"): "less than|fewer than|under|below|lower than|smaller than|<|shorter than",
    ("cmp", "<="): (
        "at most|no more than|not more than|up to|less than or equal to|<=|or less|or fewer|or below|or lower|"
        "not exceeding|not above|a maximum of|not over|or under|and below|not higher than"
    ),
    ("cmp", "="): "equal to|equals|equal|=|==|exactly equal to|is exactly",
    ("cmp", "!="): "not equal to|!=|<>|different from|does not equal|not equal|isn't equal to|unequal to",
    ("cmp", ">price"): "more expensive than|costlier than|pricier than",
    ("cmp", "<price"): "cheaper than|less expensive than",
    ("cmp", ">weight"): "heavier than",
    ("cmp", "<weight"): "lighter than",
    ("cmp", ">height"): "taller than",
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
    ("and", ""): "but|and|as well as|along with|together with|plus|and also|and the|and their|&|and its",
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
    ("range", "now"): "so far|to date|until now|up to now|as of now|as of today|to this day",
    ("range", "after"): "after|later than|following the",
    ("range", "before"): "before|earlier than|prior to|older than the date",
    ("range", "until"): (
        "until|by the end of|up until|on or before|up to and including|through the end of|or earlier|not after"
    ),
    ("unit", ""): (
        "dollars|dollar|usd|euros|euro|eur|pounds|gbp|yuan|rmb|cny|yen|$|€|¥|£|times|items|pieces|people in|kg|"
        "kilograms|grams|"
        "km|"
        "square metres|square meters|square metre|square meter|sq m|sqm|m2|"
        "kilometers|miles|meters|cm|years old|year old|years of age"
    ),
    ("compare", ""): (
        "respectively|compare|comparison|comparison of|comparison between|versus|vs|compared to|compared with|"
        "comparing|"
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
        "compared to last month|difference|difference between|ratio|ratio of|rate|rates|same period last year|increase|"
        "decline|change in|changes in|grow"
    ),
    ("unsupported", "calendar"): (
        "monday|tuesday|wednesday|thursday|friday|saturday|sunday|mondays|tuesdays|wednesdays|thursdays|fridays|"
        "saturdays|sundays|"
        "day of week|day of the week|days of the week|weekday|weekdays|weekend|weekends|hour of day|"
        "hour of the day|by hour|per hour|each hour|hourly|time of day|month of year"
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
    ("inclusion", "lead"): "including|include|includes|inclusive of|counting|even|even counting|even including",
    ("inclusion", "absent"): (
        "without|without any|with no|with none|no|never|nothing|none|have no|has no|had no|having no|"
        "that have no|who have no|have not|has not|haven't|hasn't|have never|has never|did not|didn't|do not|don't|"
        "do not have|don't have|do not have any|don't have any|does not have|doesn't have|not|not any|lacking"
    ),
    ("inclusion", "all"): "all|every",
    ("inclusion", "across"): "across|over|among|averaged over|averaged across",
    ("inclusion", "filler"): "those|ones|the ones|who|which|that|anything|something|at all|one|any",
    ("inclusion", "trail"): (
        "too|as well|included|counted|are included|are counted|counted too|count too|count as zero|count as 0|"
        "counted as zero|counted as 0|as zero|as 0|as zeros|should count|should be counted|should be included"
    ),
    ("inclusion", "zero"): (
        "including zero|including zeros|including zeroes|including 0|counting zeros|zeros included|zeroes included|"
        "with zeros|including empty ones|including empty groups|zero included"
    ),
}  # fmt: skip

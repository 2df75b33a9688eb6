"""Which columns hold what belongs to persons or opens doors, so that their values must not be sent to a model.

A column is judged by its name, by what its comment calls it, and by the look of its values. In doubt it is private: a
model that does not see the values of a harmless column still writes the query. The words are tables; everything here
can be extended without touching the functions. `privacy_of` is the only place that decides.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache

from agent.skills.relevance import terms
from common.values import Column, Table

# ------------------------------------------------------------------------------------------------------- words, as data

# Latin words of identifiers and English comments; several together are a phrase. Pinyin and its initials are among them.
_PRIVATE_WORDS = """
phone | telephone | tel | mobile | cellphone | cell phone | cell no | cell number | handphone | fax | msisdn | whatsapp
wechat | weixin | telegram | qq | skype | openid | unionid | contact no | contact number | contact info | contact detail
email | e mail | mail | mailbox
address | addr | street | residence | domicile | hometown
birthday | birthdate | birth | dob | born
ssn | social security | national id | id card | idcard | identity | id no | id number | idno | passport | certificate no
cert no | cert id | driver license | driving license | license no | license number | licence no | licence number
medical record | mrn | health insurance | tax id | nin | nric | cpf | aadhaar | pan no
iban | bank account | bank card | bankcard | account no | account number | acct no | card no | card number | credit card
debit card | cvv | cvc | swift
plate | license plate | vin
password | passwd | pwd | passphrase | secret | token | api key | apikey | access key | private key | salt | otp
ip | mac | imei | imsi | device id | latitude | longitude | geolocation | fingerprint
religion | ethnicity | political
shouji | shoujihao | sjh | sjhm | dianhua | dh | lxdh | lxfs | youxiang | yx | dzyj | weixinhao | wx | wxh
dizhi | dz | lxdz | jtzz | zhuzhi | shengri | csrq | shenfenzheng | sfz | sfzh | sfzhm | zjh | zjhm | huzhao
yinhangka | yhk | yhkh | yhzh | kahao | chepai | chepaihao | cph | mima
"""

_GLUED = "phone|email|address|birthday|birthdate|password|passport|idcard|wechat|mobile(?=no|num|phone)"  # `custphone`

# What these words are about is a kind or an amount, not a person's: phone brand, e-mail status.
_HARMLESS_ENDS = """
type | kind | status | state | brand | model | make | category | class | level | count | cnt | total | flag | verified
valid | source | channel | provider | carrier | operator | manufacturer | company | department | format | template | subject
count | sent | opened | sale | price | amount | policy | reason | result | version | size | color | colour | os | system
"""

# Chinese words, found anywhere in a name or in what a comment calls the column.
_PRIVATE_HAN = """
手机 电话 座机 传真 联系方式 联络方式 通讯方式 联系号码 来电号码 主叫 被叫 邮箱 电邮 电子邮件 邮件地址 微信 QQ号 住址 地址
家庭住 居住地 户籍 籍贯 街道门牌 门牌 收货地 生日 出生 身份证 身份号 证件号 证件编号 证号 护照 社保号 社会保障 医保号 病历号
病案号 住院号 银行卡 卡号 银行账 银行帐 收款账 收款帐 开户账 账号 帐号 车牌 车架号 驾照 驾驶证 密码 口令 密钥 令牌 指纹 经纬度
民族 宗教 政治面貌 紧急联系
"""
_HARMLESS_HAN_ENDS = """
类型 类别 种类 状态 品牌 型号 数 数量 个数 人数 次数 级别 等级 来源 渠道 运营商 归属 标志 标识 金额 价格 销量 系统 版本 颜色
"""

# Words for persons, and for their names.
_PERSON_WORDS = """
user usr customer cust client buyer shopper member employee emp staff worker personnel person people patient student stu
std pupil teacher tutor instructor professor lecturer doctor physician nurse driver courier rider passenger guest contact
manager mgr owner agent salesperson salesman seller representative applicant candidate author reader borrower tenant
resident citizen voter subscriber account recipient receiver consignee sender payee payer cardholder insured guardian
parent father mother spouse child coach player participant attendee respondent supervisor assignee operator creator
approver reviewer cashier technician engineer volunteer donor lead colleague beneficiary holder mentor
consultant adviser advisor broker lawyer attorney judge witness victim suspect defendant plaintiff pilot captain chef host
speaker trainer trainee intern investor debtor creditor winner director officer chairman ceo president secretary reporter rep policyholder borrower
"""
_NAME_WORDS = "name nm firstname lastname fullname mc xm xingming"
_ALWAYS_NAMES = """
first name | last name | full name | firstname | lastname | fullname | fname | lname | surname | forename | given name
family name | middle name | maiden name | real name | realname | true name | display name | nick | nickname | username
created by | updated by | modified by | approved by | assigned to | handled by | reported by | sold by | signed by
user name | login | login name | loginname | ename | xm | xingming | lxr | shr | person name | legal name
"""
_PERSON_HAN = """
用户 客户 顾客 会员 员工 职工 雇员 人员 患者 病人 学生 学员 老师 教师 讲师 导师 教练 医生 医师 护士 司机 骑手 乘客 旅客 客人
住客 房东 领导 组长 队长 班长 校长 院长 厂长 科长 处长 局长 董事长 总监 助理 顾问 导演 演员 作家 歌手 选手 租客
 业主 居民 村民 读者 作者 店长 经理 主管 主任 销售员 业务员 导购 收银员 技师 工程师 志愿者 家长 监护人 父亲 母亲
配偶 子女 联系人 负责人 收货人 收件人 寄件人 发件人 申请人 经办人 审批人 审核人 操作人 操作员 创建人 录入人 持卡人 投保人
被保险人 受益人 法人 法定代表人 代理人 借款人 报名人 下单人 付款人 收款人 签收人 维修人 报修人 投诉人 接待人 管理员 候选人 嘉宾
"""
_NAME_HAN = "姓名 名字 昵称 真名 曾用名 用户名 登录名 网名"
_NAME_HAN_ENDS = "名称 名"
_PERSON_HAN_ENDS = "人员师者"  # 经办人, 质检员, 设计师
# Words around the thing a table is about.
_TABLE_WORDS = (
    "tbl tb t dim fact ods dwd dws ads info information detail master main base profile list table data record"
)
_TABLE_HAN = "表 信息 资料 档案 基本 基础 主 明细 记录 数据 维度 列表 库"
_OF = ["of", "for", "in", "to", "at", "on", "from", "with", "by", "which", "that", "where", "when", "if", "as", "used"]
_ARTICLES = ["the", "a", "an", "s", "this", "its", "his", "her", "their"]

# ------------------------------------------------------------------------------------------------------- looks of values

_STREETS = "street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|way|place|square|highway|hwy|terrace"
_SHAPES = (
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.\w",  # e-mail
    r"(?<![\d.])(?:\+?86[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?!\d)",  # mobile phone in China
    r"(?<![\w.])\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d(?:[ .-]?\d){5,12}(?!\d)",  # phone with its country
    r"(?<!\d)\(?0\d{2,3}\)?[ -]\d{7,8}(?!\d)",  # land line in China
    r"(?<![\w-])(?:\d{3}[-. ]|\(\d{3}\) ?)\d{3}[-. ]\d{4}(?![\w-])",  # phone in North America
    r"(?<![0-9A-Za-z])\d{17}[0-9Xx](?![0-9A-Za-z])",  # identity card
    r"(?<![0-9A-Za-z])[1-9]\d{5}\d{2}(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])\d{3}(?![0-9A-Za-z])",  # identity card, 15 digits
    r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])",  # social security number
    r"(?<![0-9A-Za-z])(?:\d{4}[ -]?){3,4}\d{1,7}(?![0-9A-Za-z])",  # bank card
    r"(?<![0-9A-Za-z])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?(?![0-9A-Za-z])",  # IBAN
    r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-HJ-NP-Z][ ·]?[A-HJ-NP-Z0-9]{5,6}",  # number plate
    r"(?:路|街|大道|巷|弄|胡同|小区|新村|花园|镇|村)[^,，;；]{0,12}\d+\s*(?:号|弄|栋|幢|单元|室|楼)",  # address
    rf"(?<!\w)\d{{1,6}}\s+(?:[^\W\d][\w.'-]*\s+){{1,4}}(?i:{_STREETS})\b",
    r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])",  # IP address
)
_PRIVATE_LOOK = re.compile("|".join(f"(?:{shape})" for shape in _SHAPES))
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜"
    "范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文庞樊兰殷施陶洪翟安颜倪严牛温芦季俞章鲁葛伍"
)
_HAN_NAME = re.compile(rf"(?:[{_SURNAMES}]|欧阳|司马|上官|诸葛|东方|皇甫|尉迟|公孙|慕容|令狐)[\u4e00-\u9fff]{{1,2}}")
_ORGANISATION = re.compile(
    r"(?:公司|集团|中心|医院|学校|大学|学院|银行|酒店|商店|超市|店|厂|部|局|院|所|站)$"
    r"|\b(?i:inc|llc|ltd|corp|co|company|gmbh|group|plc|bank|university|college|school|hospital|store|shop|hotel)\b\.?$"
)
_LOOKED_AT = 60  # values of a column
_LONGEST_LOOKED_AT = 200  # characters of a value; the catalogue keeps none that are longer
_PRIVATE_SHARE = 0.2  # of the values that look private; the column is, then
_NAMES_SHARE = 0.8  # of the values that look like persons' names
_LEAST_NAMES = 4  # distinct values; fewer look like names by chance


class Privacy(Enum):
    """What of a column's values a model may be sent."""

    OPEN = "open"  # whatever helps
    NAMES = "names"  # persons' names: only one that the question itself names
    PRIVATE = "private"  # none


def privacy_of(table: Table, column: Column) -> Privacy:
    """What of the values of `table`'s `column` a model may be sent.

    Everything that shows stored values to a model asks here; what an operator declares about a column would be looked
    up first.
    """
    calls = (column.name, _called(column.comment))
    if any(map(_is_private, calls)) or looks_private(column.values):
        return Privacy.PRIVATE
    if (any(map(_is_name, calls)) or _names_owner(table, column)) and not _are_organisations(column.values):
        return Privacy.NAMES
    return Privacy.NAMES if _look_like_names(column.values) else Privacy.OPEN


def looks_private(values: Iterable[str]) -> bool:
    """Whether many of `values` look like phone numbers, addresses and the like."""
    looked_at = _some(tuple(values))
    return sum(map(is_private_value, looked_at)) > _PRIVATE_SHARE * len(looked_at)


def is_private_value(value: str) -> bool:
    """Whether there is something in this text that looks like a phone number, an e-mail address and the like."""
    return _PRIVATE_LOOK.search(value[:_LONGEST_LOOKED_AT]) is not None


def _some(values: Sequence[str]) -> Sequence[str]:
    """Evenly many of all of them: sorted, those of one shape stand together."""
    return values[:: max(1, len(values) // _LOOKED_AT)]


def _listed(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for line in words.strip().splitlines() for word in line.split("|") if word.strip())


def _phrases(words: str) -> re.Pattern[str]:
    """Finds any of the phrases among space-separated terms."""
    known = {" ".join(terms(phrase)) for phrase in _listed(words)}
    return re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, sorted(known)))})(?!\S)")


def _any_of(words: str, end: str = "") -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(map(re.escape, words.split()))}){end}")


_PRIVATE = _phrases(_PRIVATE_WORDS)
_PRIVATE_PART = re.compile(rf"(?:{_GLUED})(?:no|num|number)?\d*(?!\S)|(?<!\S)(?:{_GLUED})")
_NAMES = _phrases(_ALWAYS_NAMES)
_HARMLESS = frozenset(word for phrase in _listed(_HARMLESS_ENDS) for word in terms(phrase))
_HAN_PRIVATE = _any_of(_PRIVATE_HAN)
_HAN_HARMLESS = _any_of(_HARMLESS_HAN_ENDS, "$")
_PERSONS = frozenset(word for one in _PERSON_WORDS.split() for word in terms(one))
_NAME_NOUNS = frozenset(_NAME_WORDS.split())
_HAN_NAMES = _any_of(_NAME_HAN)
_HAN_NAME_END = re.compile(
    rf"(?:{'|'.join(_PERSON_HAN.split())}|[{_PERSON_HAN_ENDS}])(?:{'|'.join(_NAME_HAN_ENDS.split())})?(?:[\d一二三])?$"
)
_HAN_PERSON_END = re.compile(rf"(?:{'|'.join(_PERSON_HAN.split())}|[{_PERSON_HAN_ENDS}])$")
_HAN_TABLE_END = re.compile(rf"(?:{'|'.join(_TABLE_HAN.split())})+$")
_TABLE_NOISE = frozenset(_TABLE_WORDS.split())
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_NUMBERED = re.compile(r"(?:\s\d+)+$")


def _called(comment: str | None) -> str:
    """What a comment calls the column: its words before any punctuation."""
    return re.split(r"[,，:：;；.。(（\[【\n]", (comment or "").strip(), maxsplit=1)[0][:60]


@lru_cache(maxsize=20_000)
def _words(text: str) -> str:
    """The Latin words of a name or a phrase, up to what it says of them ("status" of "status of the e-mail")."""
    words = [word for word in terms(text) if not _HAN.match(word)]
    end = next((number for number, word in enumerate(words) if word in _OF and number), len(words))
    return _NUMBERED.sub("", " ".join(word for word in words[:end] if word not in _ARTICLES))


def _is_private(text: str) -> bool:
    words = _words(text)
    if (_PRIVATE.search(words) or _PRIVATE_PART.search(words)) and words.rpartition(" ")[2] not in _HARMLESS:
        return True
    return _HAN_PRIVATE.search(text) is not None and not _HAN_HARMLESS.search(text)


def _is_name(text: str) -> bool:
    """Whether a column of this name or comment holds persons' names: `customer_name`, `driver`, 收货人姓名."""
    words = _words(text)
    *before, last = words.split() or [""]
    if (_NAMES.search(words) or _NAMES.search(" ".join(terms(text)))) and last not in _HARMLESS:
        return True
    if last in _PERSONS or (last in _NAME_NOUNS and before and before[-1] in _PERSONS):
        return True
    return bool(_HAN_NAMES.search(text) or _HAN_NAME_END.search(text)) and not _HAN_HARMLESS.search(text)


def _names_owner(table: Table, column: Column) -> bool:
    """Whether it is the `name` of the persons that the table is about."""
    own = _words(column.name).split()
    is_bare = bool(own) and all(word in _NAME_NOUNS for word in own)
    return (is_bare or column.name == "名称" or _called(column.comment) == "名称") and _is_about_persons(table)


@lru_cache(maxsize=4_000)
def _about_persons(name: str, comment: str) -> bool:
    words = [word for word in _words(name).split() if word not in _TABLE_NOISE and not word.isdigit()]
    spoken = [word for word in _words(comment).split() if word not in _TABLE_NOISE]
    if (words and words[-1] in _PERSONS) or (spoken and spoken[-1] in _PERSONS):
        return True
    return any(_HAN_PERSON_END.search(_HAN_TABLE_END.sub("", text)) for text in (name, comment))


def _is_about_persons(table: Table) -> bool:
    return _about_persons(table.name, _called(table.comment))


def _are_organisations(values: Sequence[str]) -> bool:
    looked_at = _some(values)
    return 2 * sum(_ORGANISATION.search(value) is not None for value in looked_at) > len(looked_at)


def _look_like_names(values: Sequence[str]) -> bool:
    looked_at = _some(values)
    if len(looked_at) < _LEAST_NAMES:
        return False
    return sum(_HAN_NAME.fullmatch(value) is not None for value in looked_at) >= _NAMES_SHARE * len(looked_at)

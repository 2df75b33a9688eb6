"""Which columns hold names of people or identify things, where another spelling means another person or thing.

Judged by the names and comments of the column and its table, and by what the stored values look like.
"""

import re
from collections.abc import Callable

from common.values import Column, Table
from knowledge.atoms import listed
from knowledge.spelling import COMPANIES, KINDS, PLACES

_PEOPLE = frozenset(
    listed(
        """
    person people employee staff worker customer client user member student pupil teacher instructor professor lecturer
    author writer actor actress artist driver rider doctor physician nurse patient guest passenger reader borrower
    manager supervisor agent player contact candidate applicant owner tenant subscriber friend buyer seller host singer
    director trainer coach lawyer attendee participant volunteer donor resident citizen tutor advisor salesperson rep
    assignee operator inspector technician engineer analyst reviewer approver creator editor parent child spouse
    """
    )
)
_PEOPLE_HAN = re.compile(
    "|".join(
        listed(
            """
    员工 雇员 职员 职工 人员 客户 顾客 用户 会员 学生 学员 教师 老师 讲师 导师 作者 演员 歌手 艺人
    医生 医师 护士 患者 病人 读者 司机 驾驶员 乘客 旅客 住客 业主 租客 租户 经理 主管 店长 站长
    校长 主任 负责人 联系人 经办人 责任人 申请人 审批人 审核人 创建人 更新人 操作员 操作人 收件人
    收货人 发货人 签收人 持有人 法人 代表 监护人 家长 销售员 业务员 客服 骑手 快递员 教练 律师 志愿者
    """
        )
    )
)
_NAMES = frozenset(listed("name fullname realname displayname nickname username login"))
_OWN_NAMES = frozenset(listed("nickname surname forename fullname realname firstname lastname fname lname username"))
_OWN_PAIRS = frozenset((word, "name") for word in listed("first last given family full real nick user middle"))
_NAMES_HAN = re.compile("名$|名称|名字|姓名")
_OWN_NAMES_HAN = re.compile("姓名|昵称|真名|曾用名|花名|用户名")
_OF_THINGS = frozenset(
    listed("company org organization organisation brand shop store team project product department dept firm")
)
_IDENTIFYING = frozenset(
    listed(
        """
    id uuid guid code no nr nbr number sku isbn issn barcode ean vin plate serial sn ssn imei mac ip phone mobile tel
    telephone fax email mail zip zipcode postcode account iban passport license licence symbol slug hash token key url
    """
    )
)
_IDENTIFYING_HAN = re.compile(
    "编号|编码|代码|号码|单号|账号|帐号|学号|工号|卡号|车牌|条码|序列号|电话|手机|传真|邮箱|邮编|身份证|护照|证件|号$"
)
_SURNAMES = frozenset(
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏窦章苏潘葛奚范彭郎鲁韦马苗"
    "方俞任袁柳鲍史唐费廉岑薛雷贺倪汤滕殷罗毕郝邬安常乐于时傅皮卞齐康伍余元顾孟黄穆萧尹姚邵汪祁毛狄米贝明"
    "臧计伏成戴宋茅庞熊纪舒屈项祝董梁杜阮蓝闵席季麻强贾路娄江童颜郭梅盛林钟徐邱骆高夏蔡田樊胡凌霍虞万支柯"
    "管卢莫丁邓龚程邢裴陆荣翁荀甄曲家封靳段焦侯宓全班仰秋仲伊宫宁仇甘祖武符刘景詹束龙叶幸司韶黎薄印白怀蒲"
    "卓蔺屠蒙池乔阴胥苍闻莘党翟谭劳姬申冉宰雍桑桂牛寿通边尚农温庄晏柴瞿阎连习容向古易廖居衡步耿满匡国文寇"
    "广东欧沃利师巩聂关荆游权盖益桓公俟上官阳诸人赫皇甫尉迟羊澹台冶宗政濮淳单太叔轩辕令狐离宇长慕鲜闾丘徒"
    "空端木覃辛区岳占佟肖涂代仝但隋"
)
_HAN_NAME = re.compile(r"[\u4e00-\u9fff·]{2,4}")
GIVEN_NAMES = frozenset(
    listed(
        """
    james mary robert patricia john jennifer michael linda david elizabeth william barbara richard susan
    joseph jessica thomas sarah charles karen christopher lisa daniel nancy matthew betty anthony sandra
    mark ashley donald emily steven kimberly andrew margaret paul donna joshua michelle kenneth carol kevin
    amanda brian melissa george deborah timothy stephanie ronald rebecca edward laura jason helen jeffrey
    sharon ryan cynthia jacob kathleen gary amy nicholas shirley eric angela jonathan anna ann anne larry
    ruth scott brenda frank pamela benjamin nicole gregory katherine samuel raymond patrick alexander jack
    dennis jerry tyler aaron jose henry adam nathan peter kyle emma olivia sophia isabella mia charlotte
    alice grace julia jane kate lucy sara eva ella leo max tom bob jim joe ben sam tim dan bill carl eve
    carlos maria juan luis marco luca hans klaus anders erik lars ivan olga wei li ming hui fang jing lei
    yan rose diana
    """
    )
)
_CODE = re.compile(
    r"[A-Za-z]{0,6}[-_#/]?\d[A-Za-z0-9_#/.+-]*|[\w.+-]+@[\w-]+(\.[\w-]+)+|[\u4e00-\u9fff][A-Z][·-]?[A-Z0-9]{4,6}"
)
_HEAD = 20  # characters of a comment that say what a thing is
_LOOKS_SO = 0.8  # share of the values that must look like it
_LEAST_VALUES = 4
_FEW = 0.2


def names_people(table: Table, column: Column) -> bool:
    """Whether the column's values are names of people."""
    words, said = _words(column.name), (column.comment or "")[:_HEAD]
    if _look(column, _is_organisation, _FEW):
        return False
    if _is_always_a_persons(words, column.name, said):
        return True
    if not _is_text(column) or _OF_THINGS & {*words} or identifies(table, column):
        return False
    return _look(column, _is_person, _LOOKS_SO) or _is_called_so(table, column, words, said)


def _is_always_a_persons(words: tuple[str, ...], name: str, said: str) -> bool:
    """Whether the column is called something that only people have: a surname, 姓名."""
    paired = _OWN_PAIRS & set(zip(words, words[1:], strict=False))
    return bool(_OWN_NAMES & {*words, "".join(words)} or paired or _OWN_NAMES_HAN.search(f"{name} {said}"))


def _is_called_so(table: Table, column: Column, words: tuple[str, ...], said: str) -> bool:
    """Whether it is called a name and its table or itself speaks of people, or is called after a person."""
    about_people = _says_people(words, column.name, said)
    is_name = _NAMES & {*words} or _NAMES_HAN.search(column.name) or _NAMES_HAN.search(said)
    owned = _says_people(_words(table.name), table.name, table.comment or "")
    return bool(is_name and (owned or about_people)) or (about_people and _last_is_person(words, column.name, said))


def identifies(table: Table, column: Column) -> bool:
    """Whether the column's values are numbers, codes or addresses that stand for one thing each."""
    words = _words(column.name)
    named = bool(words) and words[-1] in _IDENTIFYING
    said = _IDENTIFYING_HAN.search(column.name) or _IDENTIFYING_HAN.search((column.comment or "")[:_HEAD])
    keys = {*table.primary_key, *(name for key in table.foreign_keys for name in key.columns)}
    is_key = column.name in keys and not any(" " in value for value in column.values)
    return named or bool(said) or is_key or _look(column, lambda value: bool(_CODE.fullmatch(value)), _LOOKS_SO)


def _is_text(column: Column) -> bool:
    return bool(re.match(r"(?i)(text|char|varchar|character|citext|name|bpchar)", column.type.split(".")[-1]))


def _says_people(words: tuple[str, ...], name: str, comment: str) -> bool:
    stems = {word for each in words for word in (each, each.removesuffix("s"), each.removesuffix("es"))}
    return bool(_PEOPLE & stems) or bool(_PEOPLE_HAN.search(name) or _PEOPLE_HAN.search(comment[:_HEAD]))


def _last_is_person(words: tuple[str, ...], name: str, comment: str) -> bool:
    """Whether the column is called after a person (`manager`, `负责人`), not after something of theirs."""
    ends = [match.end() for match in _PEOPLE_HAN.finditer(name)]
    said = re.split(r"[\s,，:：;；(（。]", comment, maxsplit=1)[0]
    said_ends = [match.end() for match in _PEOPLE_HAN.finditer(said)]
    return bool(words and words[-1] in _PEOPLE) or len(name) in ends or len(said) in said_ends


def _words(name: str) -> tuple[str, ...]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(word.lower() for word in re.findall(r"[A-Za-z]+", spaced))


def _look(column: Column, is_one: Callable[[str], bool], part: float) -> bool:
    values = column.values
    return len(values) >= _LEAST_VALUES and sum(map(is_one, values)) >= part * len(values)


def _is_organisation(value: str) -> bool:
    last = re.findall(r"\w+", value.lower())[-1:]
    return value.endswith(tuple(unit for unit in COMPANIES if not unit.isascii())) or (
        bool(last) and last[0] in COMPANIES and " " in value
    )


def _is_person(value: str) -> bool:
    if _HAN_NAME.fullmatch(value):
        return value[0] in _SURNAMES and not value.endswith(
            tuple(unit for unit in (*PLACES, *KINDS) if not unit.isascii())
        )
    words = value.split()
    return 2 <= len(words) <= 3 and words[0].lower() in GIVEN_NAMES and all(word[:1].isupper() for word in words)

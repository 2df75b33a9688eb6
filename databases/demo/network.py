"""The demo's companies, service areas and shops: the same on every machine and every day.

The companies are invented; roads and provinces are real. Names and places are written down here;
sizes, rents and brands, which only need to look plausible, come from a seeded random generator.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

SEED = "citu-demo"

OPEN, RENOVATING, CLOSED = "营业中", "装修中", "已关闭"
FUEL, STORE, FOOD, SNACK, REPAIR = "加油站", "便利店", "餐饮", "小吃", "汽车维修"

CLOSED_ON = date(2025, 6, 30)  # areas that are closed have figures up to this day
RENOVATING_SINCE = date(2025, 9, 1)


@dataclass(frozen=True)
class Company:
    """A row of `company`."""

    company_id: int
    company_name: str
    region: str | None
    founded_on: date | None
    is_deleted: bool = False


@dataclass(frozen=True)
class ServiceArea:
    """A row of `service_area`, and `size`: its traffic relative to an average area."""

    service_area_id: int
    service_area_name: str
    company_id: int
    road_name: str
    province: str
    status: str
    parking_spaces: int | None
    opened_on: date | None
    is_deleted: bool
    size: float

    def works_on(self, day: date) -> bool:
        """Tell whether its shops sell on that day.

        An area marked as deleted was entered by mistake: it has no figures, so totals are the same
        with and without it.
        """
        ends = {OPEN: date.max, RENOVATING: RENOVATING_SINCE - timedelta(days=1), CLOSED: CLOSED_ON}
        return not self.is_deleted and day <= ends[self.status]


@dataclass(frozen=True)
class Shop:
    """A row of `shop`, and `appeal`: its sales relative to an average shop of its category."""

    shop_id: int
    shop_name: str
    service_area_id: int
    category: str
    brand: str | None
    floor_area: float | None
    monthly_rent: float | None
    is_deleted: bool
    appeal: float


COMPANIES = (
    Company(1, "赣江高速服务有限公司", "华东", date(2009, 3, 18)),
    Company(2, "钱塘交通服务有限公司", "华东", date(2006, 11, 2)),
    Company(3, "湘楚高速经营管理有限公司", "华中", date(2011, 5, 26)),
    Company(4, "岭南高速服务有限公司", "华南", date(2004, 8, 9)),
    Company(5, "巴蜀驿站管理有限公司", "西南", None),
    Company(6, "燕赵高速服务有限公司", None, date(2013, 1, 15)),
    # Its only areas are closed or deleted.
    Company(7, "关中服务区管理有限公司", "西北", date(2015, 9, 30)),
    Company(8, "海峡驿道服务有限公司", None, date(2018, 4, 11), is_deleted=True),
)

# company, province, road, areas along it; `装` is being renovated, `关` closed, `删` deleted.
_ROADS = (
    (1, "江西省", "G70福银高速", "庐山 共青城"),
    (1, "江西省", "G56杭瑞高速", "庐山西海 婺源"),
    (1, "江西省", "G60沪昆高速", "三清山 南昌西 宜春"),
    (1, "江西省", "G45大广高速", "井冈山 赣州南装"),
    (2, "浙江省", "G60沪昆高速", "嘉兴 长安 诸暨 龙游"),
    (2, "浙江省", "G15沈海高速", "宁波 台州"),
    (2, "浙江省", "G25长深高速", "安吉"),
    (3, "湖南省", "G4京港澳高速", "岳阳 昭山 耒阳"),
    (3, "湖北省", "G4京港澳高速", "孝感 咸宁"),
    (3, "湖北省", "G42沪蓉高速", "麻城 潜江删"),
    (4, "广东省", "G4京港澳高速", "清远"),
    (4, "广东省", "G15沈海高速", "梁金山 阳江 顺德"),
    (4, "广西壮族自治区", "G72泉南高速", "桂林 柳州 南宁东"),
    (5, "四川省", "G42沪蓉高速", "遂宁 淮口"),
    (5, "四川省", "G5京昆高速", "雅安 绵阳"),
    (5, "重庆市", "G50沪渝高速", "冷水 大路"),
    (6, "河北省", "G4京港澳高速", "涿州 保定 石家庄"),
    (6, "河北省", "G2京沪高速", "沧州"),
    (6, "河北省", "G45大广高速", "衡水湖"),
    (7, "陕西省", "G30连霍高速", "华山关 渭南删"),
)
_STATUS_MARKS = {"装": RENOVATING, "关": CLOSED, "删": CLOSED}

# category: brands (None: run by the area itself), floor area in m², monthly rent in yuan per m²,
# how many per area.
_CATEGORIES = {
    FUEL: (("中国石化", "中国石油", "壳牌"), (600, 1500), 40, (1, 1)),
    STORE: (("易捷", "昆仑好客", "美宜佳", None), (60, 220), 150, (1, 2)),
    FOOD: (("肯德基", "麦当劳", "老乡鸡", "真功夫", None, None), (120, 480), 120, (1, 3)),
    SNACK: (("周黑鸡", "绝味鸭脖", "正新鸡排", "五芳斋", None, None), (15, 50), 260, (1, 3)),
    REPAIR: (("途虎养车", None), (80, 260), 60, (0, 1)),
}


def service_areas() -> tuple[ServiceArea, ...]:
    """Return all service areas, deleted ones included."""
    named = [
        (company, province, road, name)
        for company, province, road, names in _ROADS
        for name in names.split()
    ]
    return tuple(_area(number, *where) for number, where in enumerate(named, start=101))


def _area(number: int, company_id: int, province: str, road: str, marked: str) -> ServiceArea:
    draw = random.Random(f"{SEED}:area:{number}")  # noqa: S311 - plausible, not secret
    name = marked.rstrip("装关删")
    return ServiceArea(
        service_area_id=number,
        service_area_name=f"{name}服务区",
        company_id=company_id,
        road_name=road,
        province=province,
        status=_STATUS_MARKS.get(marked[-1], OPEN),
        parking_spaces=None if draw.random() < 0.1 else draw.randrange(80, 640),
        opened_on=None
        if draw.random() < 0.05
        else date(2005, 1, 1) + timedelta(days=draw.randrange(18 * 365)),
        is_deleted=marked.endswith("删"),
        size=draw.lognormvariate(0.0, 0.45),
    )


def shops(areas: tuple[ServiceArea, ...]) -> tuple[Shop, ...]:
    """Return all shops of the areas, deleted ones included."""
    described: list[tuple[ServiceArea, str, str | None, str]] = []
    for area in areas:
        described += [(area, *shop) for shop in _shops_of(area)]

    return tuple(_shop(number, *shop) for number, shop in enumerate(described, start=1001))


def _shops_of(area: ServiceArea) -> Iterator[tuple[str, str | None, str]]:
    """Return category, brand and name of each shop; names are unique within the area."""
    draw = random.Random(f"{SEED}:shops:{area.service_area_id}")  # noqa: S311
    taken: set[str] = set()
    for category, (brands, _, _, (fewest, most)) in _CATEGORIES.items():
        for brand in draw.sample(brands, draw.randint(fewest, most)):
            label = f"{brand or '自营'}{category}"
            name = f"{area.service_area_name}{label}{'二店' if label in taken else ''}"
            taken.add(label)
            yield category, brand, name


def _shop(number: int, area: ServiceArea, category: str, brand: str | None, name: str) -> Shop:
    draw = random.Random(f"{SEED}:shop:{number}")  # noqa: S311
    _, (smallest, largest), rent_per_m2, _ = _CATEGORIES[category]
    floor_area = round(draw.uniform(smallest, largest), 2)
    rent = round(floor_area * rent_per_m2 * area.size * draw.uniform(0.8, 1.2), 2)
    return Shop(
        shop_id=number,
        shop_name=name,
        service_area_id=area.service_area_id,
        category=category,
        brand=brand,
        floor_area=None if draw.random() < 0.06 else floor_area,
        monthly_rent=None if draw.random() < 0.08 else rent,
        is_deleted=area.is_deleted or draw.random() < 0.03,
        appeal=draw.lognormvariate(0.0, 0.3),
    )

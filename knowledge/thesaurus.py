"""Words of general business language that mean the same, in English and Chinese, as data.

One line is one concept: the English words, a bar, the Chinese words. A catalogue that says `revenue` is found by a
question that says 营收 and the other way round. Only general language belongs here, nothing about one customer's
domain.
"""

from knowledge.atoms import key_of, words_of

_CONCEPTS = """
revenue sales income turnover earning proceeds taking | 营业收入 营收 收入 销售额 销售收入 营业额 销售金额 流水 进账
amount sum money value total | 金额 数额 款额
total | 总额 总计 合计 总数
price cost unit_price list_price | 价格 单价 售价 价钱 定价
cost expense spending expenditure | 成本 费用 花费 支出
profit margin | 利润 盈利 毛利
salary wage pay compensation earning | 工资 薪水 薪资 薪酬 月薪 薪金
bonus | 奖金
budget | 预算
discount rebate | 折扣 优惠
tax | 税额 税费 税
fee charge | 费用 手续费
balance | 余额 结余
quantity qty unit volume sales_quantity units_sold quantity_sold sold_quantity | 数量 件数 个数 销量 销售数量 销售量
stock inventory in_stock units_in_stock | 库存 库存量 存货
order purchase | 订单 单子 订购
order_line order_item line_item order_detail | 订单明细 订单项
invoice bill | 发票 账单
payment | 付款 支付 缴费
customer client buyer shopper patron | 客户 顾客 买家 消费者
user account member | 用户 会员 账户 账号
product item good merchandise article | 产品 商品 货品 物品
category genre class type kind | 类别 分类 品类 种类 类型
brand make manufacturer | 品牌 牌子
supplier vendor provider | 供应商 供货商 厂商
shop store outlet branch | 店铺 门店 商铺 商店 店 店面
warehouse depot | 仓库
employee worker staff personnel staff_member | 员工 雇员 职员 职工 人员
department dept division unit | 部门 科室
manager boss supervisor head reports_to report_to reporting_to | 经理 主管 负责人 上级
company firm enterprise corporation business organization | 公司 企业 单位 机构
job position title role job_title | 职位 岗位 职务
person people | 人 人员
student pupil | 学生 学员
teacher instructor professor lecturer | 老师 教师 讲师
course subject class | 课程 科目
grade score mark point | 成绩 分数 得分
rating score star rated | 评分 评级 星级
review comment feedback | 评论 评价
school college university | 学校 院校
book title | 图书 书籍 书
author writer | 作者
publisher press | 出版社
borrow loan lending checkout borrowing | 借阅 借书 借出
return | 归还 退货 退还
reader borrower member | 读者 借阅者
library | 图书馆
doctor physician | 医生 医师 大夫
patient | 患者 病人
hospital clinic | 医院 诊所
appointment visit booking reservation | 预约 就诊 预订
diagnosis | 诊断
drug medicine medication | 药品 药物
room | 房间 客房
hotel | 酒店 宾馆
guest | 客人 住客
film movie | 电影 影片
actor performer | 演员
album record | 专辑
track song | 歌曲 曲目
artist musician singer band | 艺术家 歌手 艺人
playlist | 歌单 播放列表
city town | 城市 市
country nation | 国家
province | 省份 省
state | 州 省
region area zone district | 地区 区域 片区 大区
address | 地址 住址
location site | 位置 地点 所在地
postcode zip postal_code zip_code | 邮编 邮政编码
phone telephone mobile phone_number | 电话 手机 电话号码 手机号 联系电话
email mail e_mail email_address | 邮箱 电子邮件 邮件
name | 名称 名字 姓名
title | 标题 题目
description remark note comment | 描述 说明 备注
status state condition | 状态
date day time | 日期 时间
year | 年份 年度
month | 月份
age | 年龄 岁数
gender sex | 性别
birth birthday birth_date date_of_birth dob | 出生日期 生日 出生
hire join hired employed | 入职 聘用 雇用
leave resign | 离职
weight | 重量 体重
height | 高度 身高
length duration runtime running_time milliseconds seconds minutes | 长度 时长 持续时间
size area | 面积 大小
population | 人口
distance mileage | 距离 里程
speed | 速度
color colour | 颜色
car vehicle | 车辆 汽车
rent rental | 租金 房租
contract agreement | 合同
project | 项目
task | 任务
team group | 团队 小组 组
event activity | 活动 事件
ticket | 票 工单
flight | 航班
airport | 机场
traffic | 流量 车流量 客流量
shipment delivery shipping | 发货 配送 物流
ship shipped deliver delivered | 发货 送达
create created add added register registered signup sign_up | 创建 注册 新增
update updated modify modified | 更新 修改
open opened | 开业 开放 营业
close closed | 关闭 停业
found founded established | 成立 创立
start begin | 开始 起始
end finish | 结束 截止
publish published release released | 发布 出版 上市
payment_method payment_type pay_type | 支付方式 付款方式
credit_card card | 信用卡 银行卡
credit | 学分 信用
currency | 币种 货币
tenant | 租户
subscription | 订阅
alert alarm | 告警 警报 报警
plan package | 套餐
bank | 银行
code number no | 编码 代码 编号 号码
seat capacity | 座位 容量 座位数
enrollment registration enrolment | 选课 报名 注册
inspection | 检查 巡检
equipment device machine | 设备 机器
complaint | 投诉
""".strip()

# Shortened words seen in identifiers, spelled out.
ABBREVIATIONS = {
    "qty": "quantity", "amt": "amount", "cnt": "count", "num": "number", "addr": "address", "dept": "department",
    "emp": "employee", "cust": "customer", "prod": "product", "desc": "description", "tel": "phone", "cat": "category",
    "mgr": "manager", "inv": "invoice", "acct": "account", "org": "organization", "dt": "date", "ts": "timestamp",
    "yr": "year", "mth": "month", "pct": "percent", "sal": "salary", "loc": "location", "curr": "currency",
    "fname": "first name", "lname": "last name", "firstname": "first name", "lastname": "last name",
    "fullname": "full name", "username": "user name", "zipcode": "zip code", "pwd": "password", "msg": "message",
    "img": "image", "nbr": "number", "trans": "transaction", "txn": "transaction", "avg": "average", "bal": "balance",
    "comm": "commission", "ord": "order", "pos": "position", "supp": "supplier", "std": "student", "stu": "student",
    "crs": "course", "inst": "instructor", "cmp": "company",
}  # fmt: skip


def _groups() -> tuple[dict[str, tuple[str, ...]], ...]:
    """(English stem phrase → English alternatives, English → Chinese, Chinese → Chinese, Chinese → English)."""
    tables: tuple[dict[str, list[str]], ...] = ({}, {}, {}, {})
    for line in _CONCEPTS.splitlines():
        left, right = line.split("|")
        english = [" ".join(words_of(word)) for word in left.split()]
        chinese = right.split()
        for word in english:
            stemmed = key_of(word, stems=True)
            tables[0].setdefault(stemmed, []).extend(other for other in english if other != word)
            tables[1].setdefault(stemmed, []).extend(chinese)
        for word in chinese:
            tables[2].setdefault(word, []).extend(other for other in chinese if other != word)
            tables[3].setdefault(word, []).extend(english)
    return tuple({key: tuple(dict.fromkeys(words)) for key, words in table.items()} for table in tables)


EN_TO_EN, EN_TO_ZH, ZH_TO_ZH, ZH_TO_EN = _groups()


# Verbs that speak of an event, and what a table of such events may be called.
_EVENTS = """
buy purchase order sell spend 买 购买 下单 订购 卖 销售 消费 | order purchase sale invoice transaction 订单 销售 交易
review rate comment 评价 评论 | review rating comment 评论 评价
borrow lend checkout 借 借阅 借过 借了 | loan borrow checkout lending 借阅 借书
rent 租 租赁 租用 | rental rent lease 租赁
enroll take study attend register 选修 选课 学习 报名 选 | enrollment registration attendance 选课 成绩 报名
visit treat see prescribe 就诊 接诊 诊治 看 | visit appointment treatment 就诊 预约 挂号
book stay reserve 入住 预订 订 | booking reservation stay 预订 入住 订单
pay 支付 缴纳 付款 | payment 支付 付款
play star appear act perform 参演 出演 主演 | cast role performance 演员
teach lecture 教 教授 讲授 | section teaching course_offering 授课 开课
ship deliver 发货 配送 | shipment delivery 发货
""".strip()


def _events() -> dict[str, tuple[str, ...]]:
    events: dict[str, tuple[str, ...]] = {}
    for line in _EVENTS.splitlines():
        verbs, tables = line.split("|")
        for verb in verbs.split():
            events[key_of(verb, stems=True)] = tuple(tables.split())
    return events


EVENTS_OF_VERBS = _events()

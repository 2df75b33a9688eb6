"""The words by which columns of persons' data are known: tables for `personal_data`.

Latin words are those of identifiers and English comments, singular; several together are a phrase, `|` separates them.
Pinyin and its initials are among them. Chinese words are found in names and in what comments call a column.
"""

# What belongs to a person or opens doors.
PRIVATE_WORDS = """
phone | telephone | tel | mobile | cellphone | cell phone | cell no | cell number | handphone | fax | msisdn
whatsapp | wechat | weixin | telegram | qq | skype | openid | unionid | contact no | contact number
contact info | contact detail | email | e mail | mail | mailbox | address | addr | street | residence | domicile
hometown | birthday | birthdate | birth | dob | born | ssn | social security | national id | id card | idcard
identity | id no | id number | idno | passport | certificate no | cert no | cert id | driver license
driving license | license no | license number | licence no | licence number | medical record | mrn
health insurance | tax id | nin | nric | cpf | aadhaar | pan no | iban | bank account | bank card | bankcard
account no | account number | acct no | card no | card number | credit card | debit card | cvv | cvc | swift
plate | license plate | vin | password | passwd | pwd | passphrase | secret | token | api key | apikey
access key | private key | salt | otp | ip | mac | imei | imsi | device id | latitude | longitude | geolocation
fingerprint | religion | ethnicity | political | shouji | shoujihao | sjh | sjhm | dianhua | dh | lxdh | lxfs
youxiang | yx | dzyj | weixinhao | wx | wxh | dizhi | dz | lxdz | jtzz | zhuzhi | shengri | csrq | shenfenzheng
sfz | sfzh | sfzhm | zjh | zjhm | huzhao | yinhangka | yhk | yhkh | yhzh | kahao | chepai | chepaihao | cph
mima
"""
# Found at the beginning or the end of words written together: `custphone`.
GLUED = "phone|email|address|birthday|birthdate|password|passport|idcard|wechat|mobile(?=no|num|phone)"
# What these words are about is a kind or an amount: phone brand, e-mail status.
HARMLESS_ENDS = """
type | kind | status | state | brand | model | make | category | class | level | count | cnt | total | flag
verified | valid | source | channel | provider | carrier | operator | manufacturer | company | department
format | template | subject | sent | opened | sale | price | amount | policy | reason | result | version | size
color | colour | os | system
"""
# The same in Chinese, found anywhere.
PRIVATE_HAN = """
手机 电话 座机 传真 联系方式 联络方式 通讯方式 联系号码 来电号码 主叫 被叫 邮箱 电邮 电子邮件 邮件地址 微信 QQ号
住址 地址 家庭住 居住地 户籍 籍贯 街道门牌 门牌 收货地 生日 出生 身份证 身份号 证件号 证件编号 证号 护照 社保号
社会保障 医保号 病历号 病案号 住院号 银行卡 卡号 银行账 银行帐 收款账 收款帐 开户账 账号 帐号 车牌 车架号 驾照
驾驶证 密码 口令 密钥 令牌 指纹 经纬度 民族 宗教 政治面貌 紧急联系
"""
# What ends a harmless name in Chinese.
HARMLESS_HAN_ENDS = """
类型 类别 种类 状态 品牌 型号 数 数量 个数 人数 次数 级别 等级 来源 渠道 运营商 归属 标志 标识 金额 价格 销量
系统 版本 颜色
"""

# Persons.
PERSON_WORDS = """
user usr customer cust client buyer shopper member employee emp staff worker personnel person people patient
student stu std pupil teacher tutor instructor professor lecturer doctor physician nurse driver courier rider
passenger guest contact manager mgr owner agent salesperson salesman seller representative applicant candidate
author reader borrower tenant resident citizen voter subscriber account recipient receiver consignee sender
payee payer cardholder insured guardian parent father mother spouse child coach player participant attendee
respondent supervisor assignee operator creator approver reviewer cashier technician engineer volunteer donor
lead colleague beneficiary holder mentor consultant adviser advisor broker lawyer attorney judge witness victim
suspect defendant plaintiff pilot captain chef host speaker trainer trainee intern investor debtor creditor
winner director officer chairman ceo president secretary reporter rep policyholder
"""
# Names, where a person stands before.
NAME_WORDS = "name nm firstname lastname fullname mc xm xingming"
# Persons' names by themselves.
ALWAYS_NAMES = """
first name | last name | full name | firstname | lastname | fullname | fname | lname | surname | forename
given name | family name | middle name | maiden name | real name | realname | true name | display name | nick
nickname | username | created by | updated by | modified by | approved by | assigned to | handled by
reported by | sold by | signed by | user name | login | login name | loginname | ename | fnm | lnm | fn | ln
xm | xingming | lxr | shr | person name | legal name
"""
# Persons in Chinese.
PERSON_HAN = """
用户 客户 顾客 会员 员工 职工 雇员 人员 患者 病人 学生 学员 老师 教师 讲师 导师 教练 医生 医师 护士 司机 骑手
乘客 旅客 客人 住客 房东 领导 组长 队长 班长 校长 院长 厂长 科长 处长 局长 董事长 总监 助理 顾问 导演 演员 作家
歌手 选手 租客 业主 居民 村民 读者 作者 店长 经理 主管 主任 销售员 业务员 导购 收银员 技师 工程师 志愿者 家长
监护人 父亲 母亲 配偶 子女 联系人 负责人 收货人 收件人 寄件人 发件人 申请人 经办人 审批人 审核人 操作人 操作员
创建人 录入人 持卡人 投保人 被保险人 受益人 法人 法定代表人 代理人 借款人 报名人 下单人 付款人 收款人 签收人
维修人 报修人 投诉人 接待人 管理员 候选人 嘉宾
"""
# Ends of Chinese words for persons: 经办人, 质检员, 设计师.
PERSON_HAN_ENDS = "人员师者"
NAME_HAN = "姓名 名字 昵称 真名 曾用名 用户名 登录名 网名"
NAME_HAN_ENDS = "名称 名"

# Words around the thing a table is about.
TABLE_WORDS = "tbl tb t dim fact ods dwd dws ads info information detail master main base profile list table data"
TABLE_HAN = "表 信息 资料 档案 基本 基础 主 明细 记录 数据 维度 列表 库"
# What follows these words says something of the thing: "status of the e-mail".
OF = "of for in to at on from with by which that where when if as used"
ARTICLES = "the a an s this its his her their"

STREETS = "street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|way|place|square|highway|hwy|terrace"
STREET_ENDS = r"stra(?:ß|ss)e|str\.|gasse|weg|platz|allee"
STREET_BEGINNINGS = "rue|via|calle|avenida|rua|ulica"
PLATES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
# The commonest Chinese surnames of one character.
SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎"
    "余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
    "庞樊兰殷施陶洪翟安颜倪严牛温芦季俞章鲁葛伍"
)
LONG_SURNAMES = "欧阳|司马|上官|诸葛|东方|皇甫|尉迟|公孙|慕容|令狐"
ORGANISATION_ENDS = "公司|集团|中心|医院|学校|大学|学院|银行|酒店|商店|超市|店|厂|部|局|院|所|站"
ORGANISATION_WORDS = (
    "inc|llc|ltd|corp|co|company|gmbh|group|plc|bank|university|college|school|hospital|store|shop|hotel"
)

-- 我们管理着几个小区？
SELECT count(*) FROM wy_community
-- 南岸区有哪些小区
SELECT community_name FROM wy_community WHERE district = '南岸区'
-- 每个区的小区数量
SELECT district, count(*) FROM wy_community GROUP BY 1
-- 绿化率最高的小区是哪个
SELECT community_name FROM wy_community ORDER BY green_rate DESC LIMIT 1
-- 2010年以后建成的小区
SELECT community_name FROM wy_community WHERE built_year > 2010
-- 翠湖花园有多少栋楼
SELECT count(*) FROM wy_building JOIN wy_community USING (community_id) WHERE community_name = '翠湖花园'
-- 各小区楼栋数
SELECT community_name, count(*) FROM wy_building JOIN wy_community USING (community_id) GROUP BY 1
-- 哪些楼没有电梯
SELECT building_no FROM wy_building WHERE NOT has_elevator
-- 楼层最高的是哪一栋
SELECT building_no FROM wy_building ORDER BY floors DESC LIMIT 1
-- 一共有多少套房子
SELECT count(*) FROM wy_house
-- 目前空置的房屋有几套？
SELECT count(*) FROM wy_house WHERE occupancy = 0
-- 出租和自住的房屋各多少
SELECT occupancy, count(*) FROM wy_house WHERE occupancy IN (1, 2) GROUP BY 1
-- 不同户型的平均面积
SELECT house_type, avg(area_sqm) FROM wy_house GROUP BY 1
-- 面积超过120平米的房子
SELECT room_no FROM wy_house WHERE area_sqm > 120
-- 最大的房子有多少平方米
SELECT max(area_sqm) FROM wy_house
-- 金色家园的总建筑面积
SELECT sum(area_sqm) FROM wy_house JOIN wy_building USING (building_id) JOIN wy_community USING (community_id) WHERE community_name = '金色家园'
-- 女业主有多少人
SELECT count(*) FROM wy_owner WHERE gender = '女'
-- 郑晓梅的手机号是多少
SELECT mobile FROM wy_owner WHERE owner_name = '郑晓梅'
-- 名下有两套及以上房产的业主
SELECT owner_name FROM wy_house JOIN wy_owner USING (owner_id) GROUP BY owner_id, owner_name HAVING count(*) >= 2
-- 还没有房子的业主有哪些
SELECT owner_name FROM wy_owner WHERE owner_id NOT IN (SELECT owner_id FROM wy_house WHERE owner_id IS NOT NULL)
-- 孟凡住的是什么户型
SELECT house_type FROM wy_house JOIN wy_owner USING (owner_id) WHERE owner_name = '孟凡'
-- 平均每个业主有几套房，没房的也算
SELECT avg(n) FROM (SELECT count(house_id) AS n FROM wy_owner LEFT JOIN wy_house USING (owner_id) GROUP BY owner_id) AS each
-- 2024年应缴总金额
SELECT sum(amount) FROM wy_bill WHERE bill_date >= '2024-01-01' AND bill_date < '2025-01-01'
-- 各类费用的账单金额合计
SELECT fee_type, sum(amount) FROM wy_bill GROUP BY 1
-- 还有多少笔账单没缴
SELECT count(*) FROM wy_bill WHERE paid_time IS NULL
-- 未缴的物业费一共是多少钱
SELECT sum(amount) FROM wy_bill WHERE paid_time IS NULL AND fee_type = '物业费'
-- 用微信缴费的有多少笔，金额多少
SELECT count(*), sum(amount) FROM wy_bill WHERE pay_channel = '微信'
-- 2024年每个月的水费
SELECT date_trunc('month', bill_date)::date, sum(amount) FROM wy_bill WHERE fee_type = '水费' AND bill_date >= '2024-01-01' AND bill_date < '2025-01-01' GROUP BY 1
-- 2025年第一季度的电费账单有几张
SELECT count(*) FROM wy_bill WHERE fee_type = '电费' AND bill_date >= '2025-01-01' AND bill_date < '2025-04-01'
-- 哪种缴费渠道用得最多
SELECT pay_channel FROM wy_bill WHERE pay_channel IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1
-- 金额最高的五笔账单
SELECT amount FROM wy_bill ORDER BY amount DESC LIMIT 5
-- 各小区欠费金额，从高到低
SELECT community_name, sum(amount) FROM wy_bill JOIN wy_house USING (house_id) JOIN wy_building USING (building_id) JOIN wy_community USING (community_id) WHERE paid_time IS NULL GROUP BY 1 ORDER BY 2 DESC
-- 欠费最多的业主是谁
SELECT owner_name FROM wy_bill JOIN wy_house USING (house_id) JOIN wy_owner USING (owner_id) WHERE paid_time IS NULL GROUP BY owner_id, owner_name ORDER BY sum(amount) DESC LIMIT 1
-- 停车费平均每笔多少
SELECT avg(amount) FROM wy_bill WHERE fee_type = '停车费'
-- 500元以上的电费账单
SELECT bill_id FROM wy_bill WHERE fee_type = '电费' AND amount > 500
-- 一共有多少报修
SELECT count(*) FROM wy_repair
-- 待处理的报修单有几个
SELECT count(*) FROM wy_repair WHERE status = 0
-- 按类别统计报修数量
SELECT category, count(*) FROM wy_repair GROUP BY 1
-- 最近30天有多少报修
SELECT count(*) FROM wy_repair WHERE submit_time >= current_date - 29 AND submit_time < current_date + 1
-- 哪个维修师傅完成的单子最多
SELECT worker_name FROM wy_repair JOIN wy_worker USING (worker_id) WHERE status = 2 GROUP BY worker_id, worker_name ORDER BY count(*) DESC LIMIT 1
-- 每位维修人员的平均满意度
SELECT worker_name, avg(score) FROM wy_repair JOIN wy_worker USING (worker_id) WHERE score IS NOT NULL GROUP BY worker_id, worker_name
-- 评分低于3分的报修单
SELECT repair_id FROM wy_repair WHERE score < 3
-- 没派人的报修
SELECT repair_id FROM wy_repair WHERE worker_id IS NULL
-- 从来没接过报修的员工
SELECT worker_name FROM wy_worker WHERE worker_id NOT IN (SELECT worker_id FROM wy_repair WHERE worker_id IS NOT NULL)
-- 潘安处理了多少个电路报修
SELECT count(*) FROM wy_repair JOIN wy_worker USING (worker_id) WHERE worker_name = '潘安' AND category = '电路'
-- 滨江一号的电梯报修次数
SELECT count(*) FROM wy_repair JOIN wy_house USING (house_id) JOIN wy_building USING (building_id) JOIN wy_community USING (community_id) WHERE community_name = '滨江一号' AND category = '电梯'
-- 水工有哪些人
SELECT worker_name FROM wy_worker WHERE job_title = '水工'
-- 各岗位平均工资，由高到低排
SELECT job_title, avg(monthly_pay) FROM wy_worker GROUP BY 1 ORDER BY 2 DESC
-- 工资最高的员工叫什么
SELECT worker_name FROM wy_worker ORDER BY monthly_pay DESC LIMIT 1
-- 2020年之前入职的员工
SELECT worker_name FROM wy_worker WHERE hire_date < '2020-01-01'
-- 地下车位和地上车位分别有多少个
SELECT space_type, count(*) FROM wy_parking GROUP BY 1
-- 没租出去的车位
SELECT space_no FROM wy_parking WHERE house_id IS NULL
-- 车位月租金的最低和最高是多少
SELECT min(monthly_rent), max(monthly_rent) FROM wy_parking
-- 每个小区的车位数，没有车位的小区也要列出来
SELECT community_name, count(parking_id) FROM wy_community LEFT JOIN wy_parking USING (community_id) GROUP BY community_id, community_name
-- 房屋空置率是多少，百分比
SELECT 100.0 * count(*) FILTER (WHERE occupancy = 0) / count(*) FROM wy_house
-- how many owners are there
SELECT count(*) FROM wy_owner
-- number of buildings with an elevator
SELECT count(*) FROM wy_building WHERE has_elevator
-- average area of the houses
SELECT avg(area_sqm) FROM wy_house
-- total bill amount by fee type
SELECT fee_type, sum(amount) FROM wy_bill GROUP BY 1
-- how many unpaid bills do we have?
SELECT count(*) FROM wy_bill WHERE paid_time IS NULL
-- list workers hired after 2019
SELECT worker_name FROM wy_worker WHERE hire_date >= '2020-01-01'
-- which community has the most buildings?
SELECT community_name FROM wy_building JOIN wy_community USING (community_id) GROUP BY 1 ORDER BY count(*) DESC LIMIT 1
-- count repairs by category
SELECT category, count(*) FROM wy_repair GROUP BY 1
-- highest paid worker
SELECT worker_name FROM wy_worker ORDER BY monthly_pay DESC LIMIT 1
-- what is the average repair score
SELECT avg(score) FROM wy_repair
-- buildings taller than 20 floors
SELECT building_no FROM wy_building WHERE floors > 20
-- communities built before 2010
SELECT community_name FROM wy_community WHERE built_year < 2010
-- 小区里养了多少条狗
REFUSE
-- 保安的排班表
REFUSE
-- 业主的身份证号
REFUSE
-- 明年物业费会涨多少
REFUSE
-- the purchase price of each house
REFUSE
-- 你好呀
CHAT
-- 谢谢你，帮大忙了
CHAT
-- 你能帮我做什么？
CHAT
-- 水管漏水了应该先关哪里
CHAT
-- 邻居太吵怎么办
CHAT
-- 我昨天去交了物业费，排队好久
CHAT
-- good evening
CHAT
-- how do I choose a good apartment?
CHAT
-- 讲个笑话吧
CHAT

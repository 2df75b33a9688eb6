-- 现在院里一共住着多少位老人?
SELECT count(*) FROM 老人 WHERE 退住日期 IS NULL;

-- 在住老人里男的女的各有多少?
SELECT 性别, count(*) FROM 老人 WHERE 退住日期 IS NULL GROUP BY 性别;

-- 各护理等级的在住人数
SELECT 护理等级, count(*) FROM 老人 WHERE 退住日期 IS NULL GROUP BY 护理等级;

-- 帮我列一下没有留紧急联系电话的在住老人姓名
SELECT 姓名 FROM 老人 WHERE 退住日期 IS NULL AND 紧急联系电话 IS NULL;

-- 年纪最大的在住老人是谁?
SELECT 姓名 FROM 老人 WHERE 退住日期 IS NULL ORDER BY 出生日期 LIMIT 1;

-- 既做过艾灸又做过推拿按摩的老人有哪些?
SELECT l.姓名 FROM 老人 l WHERE EXISTS (SELECT 1 FROM 护理记录 r JOIN 护理项目 p USING (项目编号) WHERE r.老人编号 = l.老人编号 AND p.项目名称 = '艾灸') AND EXISTS (SELECT 1 FROM 护理记录 r JOIN 护理项目 p USING (项目编号) WHERE r.老人编号 = l.老人编号 AND p.项目名称 = '推拿按摩');

-- 每年入住的老人数,按年份先后排
SELECT extract(year FROM 入住日期)::int AS 年份, count(*) FROM 老人 GROUP BY 1 ORDER BY 1;

-- 有多少老人没有医保?
SELECT count(*) FROM 老人 WHERE NOT 有医保;

-- 老人们的平均血压是多少?
REFUSE

-- 1935年以前出生的老人有哪些?
SELECT 姓名 FROM 老人 WHERE 出生日期 < '1935-01-01';

-- 老人都来自哪些地方?去重列出来
SELECT DISTINCT 籍贯 FROM 老人;

-- 来自杭州的老人占全部老人的百分之几?
SELECT 100.0 * count(*) FILTER (WHERE 籍贯 = '杭州') / count(*) FROM 老人;

-- 一共有多少张床位?
SELECT sum(床位数) FROM 房间;

-- 每种房型有几间房,平均月租金多少?
SELECT 房型, count(*), avg(月租金) FROM 房间 GROUP BY 房型;

-- 最贵的三间房是哪几间,月租金多少?
SELECT 房间号, 月租金 FROM 房间 ORDER BY 月租金 DESC LIMIT 3;

-- 住哪间房最舒服?
REFUSE

-- 目前哪些房间没有人住?
SELECT r.房间号 FROM 房间 r WHERE NOT EXISTS (SELECT 1 FROM 老人 l WHERE l.房间号 = r.房间号 AND l.退住日期 IS NULL);

-- A栋现在住了多少老人?
SELECT count(*) FROM 老人 l JOIN 房间 r USING (房间号) WHERE r.楼栋 = 'A栋' AND l.退住日期 IS NULL;

-- 哪位员工表现最差?
REFUSE

-- 各岗位在职员工的平均月薪是多少,从高到低
SELECT 岗位, avg(月薪) FROM 员工 WHERE 离职日期 IS NULL GROUP BY 岗位 ORDER BY 2 DESC;

-- 已经离职的员工有谁,什么时候走的?
SELECT 姓名, 离职日期 FROM 员工 WHERE 离职日期 IS NOT NULL;

-- 要上夜班的在职员工有几个?
SELECT count(*) FROM 员工 WHERE 上夜班 AND 离职日期 IS NULL;

-- 方丽娟手下有哪些人?
SELECT e.姓名 FROM 员工 e JOIN 员工 s ON s.员工编号 = e.上级编号 WHERE s.姓名 = '方丽娟';

-- 哪些员工工资比自己的上级还高?
SELECT e.姓名 FROM 员工 e JOIN 员工 s ON s.员工编号 = e.上级编号 WHERE e.月薪 > s.月薪;

-- 每个岗位在职员工里月薪最高的人是谁?
SELECT DISTINCT ON (岗位) 岗位, 姓名 FROM 员工 WHERE 离职日期 IS NULL ORDER BY 岗位, 月薪 DESC;

-- 在职员工里月薪高于平均水平的有多少人?
SELECT count(*) FROM 员工 WHERE 离职日期 IS NULL AND 月薪 > (SELECT avg(月薪) FROM 员工 WHERE 离职日期 IS NULL);

-- 员工今年一共请了多少天假?
REFUSE

-- 入职最早的护理员叫什么?
SELECT 姓名 FROM 员工 WHERE 岗位 = '护理员' ORDER BY 入职日期 LIMIT 1;

-- 食堂每个月买菜要花多少钱?
REFUSE

-- 单价在50元到100元之间的护理项目有哪些?
SELECT 项目名称 FROM 护理项目 WHERE 单价 BETWEEN 50 AND 100;

-- 医疗护理或康复理疗类的项目都有什么,各多少钱?
SELECT 项目名称, 单价 FROM 护理项目 WHERE 类别 IN ('医疗护理','康复理疗');

-- 哪些护理项目从来没做过?
SELECT p.项目名称 FROM 护理项目 p WHERE NOT EXISTS (SELECT 1 FROM 护理记录 r WHERE r.项目编号 = p.项目编号);

-- 做得最多的5个护理项目是什么,各做了多少次?
SELECT p.项目名称, count(*) FROM 护理记录 r JOIN 护理项目 p USING (项目编号) GROUP BY p.项目编号, p.项目名称 ORDER BY 2 DESC LIMIT 5;

-- 2025年上半年每个月的护理次数
SELECT to_char(执行时间,'YYYY-MM') AS 月份, count(*) FROM 护理记录 WHERE 执行时间 >= '2025-01-01' AND 执行时间 < '2025-07-01' GROUP BY 1;

-- 麻烦看看哪位员工做的护理次数最多
SELECT e.姓名 FROM 护理记录 r JOIN 员工 e USING (员工编号) GROUP BY e.员工编号, e.姓名 ORDER BY count(*) DESC LIMIT 1;

-- 护理满意度平均几分?
SELECT avg(满意度) FROM 护理记录;

-- 有多少次护理的实际时长超过了标准时长?
SELECT count(*) FROM 护理记录 r JOIN 护理项目 p USING (项目编号) WHERE r.实际时长 > p.标准时长;

-- 没打满意度分的护理记录占比多少(百分比)?
SELECT 100.0 * count(*) FILTER (WHERE 满意度 IS NULL) / count(*) FROM 护理记录;

-- 各类别护理项目的平均满意度
SELECT p.类别, avg(r.满意度) FROM 护理记录 r JOIN 护理项目 p USING (项目编号) GROUP BY p.类别;

-- 协助洗澡的实际时长中位数是多少分钟?
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY r.实际时长) FROM 护理记录 r JOIN 护理项目 p USING (项目编号) WHERE p.项目名称 = '协助洗澡';

-- 老人平时都吃什么药?
REFUSE

-- 2024年全年应缴和实缴各是多少钱?按账期算
SELECT sum(应缴金额), sum(实缴金额) FROM 缴费单 WHERE 账期 >= '2024-01-01' AND 账期 < '2025-01-01';

-- 还有多少张账单一分钱没交?
SELECT count(*) FROM 缴费单 WHERE 状态 = '未缴';

-- 欠费最多的5位老人是谁,各欠多少?
SELECT l.姓名, sum(j.应缴金额 - j.实缴金额) FROM 缴费单 j JOIN 老人 l USING (老人编号) GROUP BY l.老人编号, l.姓名 ORDER BY 2 DESC LIMIT 5;

-- 各支付方式收了多少钱?不含没付款的
SELECT 支付方式, sum(实缴金额) FROM 缴费单 WHERE 支付方式 IS NOT NULL GROUP BY 支付方式;

-- 2024年每个季度的护理费合计
SELECT extract(quarter FROM 账期)::int AS 季度, sum(护理费) FROM 缴费单 WHERE 账期 >= '2024-01-01' AND 账期 < '2025-01-01' GROUP BY 1;

-- 2025年1到6月的实缴总额跟2024年同期相比变化了百分之几?按账期
SELECT 100.0 * (sum(实缴金额) FILTER (WHERE 账期 >= '2025-01-01' AND 账期 < '2025-07-01') / sum(实缴金额) FILTER (WHERE 账期 >= '2024-01-01' AND 账期 < '2024-07-01') - 1) FROM 缴费单;

-- 最近情况怎么样?
REFUSE

-- 2025年8月有多少人次来探访?
SELECT count(*) FROM 探访记录 WHERE 到访时间 >= '2025-08-01' AND 到访时间 < '2025-09-01' AND NOT 已删除;

-- 从来没人来探访过的在住老人有哪些?
SELECT l.姓名 FROM 老人 l WHERE l.退住日期 IS NULL AND NOT EXISTS (SELECT 1 FROM 探访记录 t WHERE t.老人编号 = l.老人编号 AND NOT t.已删除);

-- 儿子来得多还是女儿来得多?各来了多少次
SELECT 与老人关系, count(*) FROM 探访记录 WHERE 与老人关系 IN ('儿子','女儿') AND NOT 已删除 GROUP BY 与老人关系;

-- 周末来探访的有多少次?
SELECT count(*) FROM 探访记录 WHERE extract(isodow FROM 到访时间) IN (6,7) AND NOT 已删除;

-- 每位家属来探访路上要花多长时间?
REFUSE

-- 哪些活动超预算了?
SELECT 活动名称 FROM 活动 WHERE 实际花费 > 预算;

-- 报名人数超过名额的活动有哪些,报了多少人?
SELECT a.活动名称, count(*) FROM 活动 a JOIN 活动报名 b USING (活动编号) GROUP BY a.活动编号, a.活动名称, a.名额 HAVING count(*) > a.名额;

-- How many activities were held in 2024?
SELECT count(*) FROM 活动 WHERE 举办日期 >= '2024-01-01' AND 举办日期 < '2025-01-01';

-- What is the average rating for each type of activity?
SELECT a.活动类型, avg(b.评分) FROM 活动报名 b JOIN 活动 a USING (活动编号) GROUP BY a.活动类型;

-- Which resident signed up for the most activities?
SELECT l.姓名 FROM 活动报名 b JOIN 老人 l USING (老人编号) GROUP BY l.老人编号, l.姓名 ORDER BY count(*) DESC LIMIT 1;

-- What percentage of sign-ups actually turned up?
SELECT 100.0 * count(*) FILTER (WHERE 是否到场) / count(*) FROM 活动报名;

-- How many complaints did families file in 2025?
REFUSE

-- 现在一共有多少学员？
SELECT count(*) FROM t_student WHERE del_flag = 0;
-- 帮我看看在职的教练有几个
SELECT count(*) FROM t_coach WHERE status = 1;
-- 各校区分别有多少学员？
SELECT c.campus_name, count(s.stu_id) FROM t_campus c LEFT JOIN t_student s ON s.campus_id = c.campus_id AND s.del_flag = 0 GROUP BY c.campus_id, c.campus_name;
-- 停业的校区有哪些
SELECT campus_name FROM t_campus WHERE status = 0;
-- 已经拿证的学员有多少人？
SELECT count(*) FROM t_student WHERE stage = 5 AND del_flag = 0;
-- 2024年收了多少学费？
SELECT sum(amount) FROM t_payment WHERE pay_type = 1 AND pay_time >= '2024-01-01' AND pay_time < '2025-01-01';
-- 哪个教练带的学员最多？
SELECT c.coach_name FROM t_coach c JOIN t_student s USING (coach_id) WHERE s.del_flag = 0 GROUP BY c.coach_id, c.coach_name ORDER BY count(*) DESC LIMIT 1;
-- 列出在售的VIP班及标价
SELECT class_name, price FROM t_class_type WHERE is_vip = 1 AND on_sale = 1;
-- 按来源渠道统计报名人数
SELECT channel, count(*) FROM t_student WHERE del_flag = 0 GROUP BY channel;
-- 科目二的考试合格率是多少？缺考的也算考过一次
SELECT 100.0 * count(*) FILTER (WHERE result = 1) / count(*) FROM t_exam WHERE subject = 2;
-- 我想知道2024年每个月新报名了多少学员
SELECT date_trunc('month', reg_date) AS month, count(*) FROM t_student WHERE reg_date >= '2024-01-01' AND reg_date < '2025-01-01' AND del_flag = 0 GROUP BY 1 ORDER BY 1;
-- 教练的平均底薪是多少
SELECT avg(base_salary) FROM t_coach;
-- 正在维修的车有哪些？给我车牌号就行
SELECT plate_no FROM t_car WHERE status = 2;
-- 还没有分配教练的学员有多少个？
SELECT count(*) FROM t_student WHERE coach_id IS NULL AND del_flag = 0;
-- 场地面积最大的三个校区是哪几个？
SELECT campus_name FROM t_campus ORDER BY area_mu DESC LIMIT 3;
-- 朋友推荐来的学员里，有多少已经退学了？
SELECT count(*) FROM t_student WHERE channel = 2 AND stage = 9 AND del_flag = 0;
-- 用现金缴费的总金额
SELECT sum(amount) FROM t_payment WHERE pay_method = 3;
-- 学员对食堂的意见多不多？
REFUSE
-- 哪些班型从来没有人报过名？
SELECT class_name FROM t_class_type t WHERE NOT EXISTS (SELECT 1 FROM t_student s WHERE s.class_id = t.class_id AND s.del_flag = 0);
-- 爽约的预约有多少条？
SELECT count(*) FROM t_appoint WHERE status = 4;
-- 金牌教练都有谁？
SELECT coach_name FROM t_coach WHERE coach_level = 4;
-- 麻烦统计一下每种准驾车型的学员人数
SELECT t.license_type, count(*) FROM t_student s JOIN t_class_type t USING (class_id) WHERE s.del_flag = 0 GROUP BY t.license_type;
-- 男学员和女学员各有多少？
SELECT gender, count(*) FROM t_student WHERE del_flag = 0 GROUP BY gender;
-- 2023年和2024年的报名人数分别是多少？
SELECT count(*) FILTER (WHERE reg_date >= '2023-01-01' AND reg_date < '2024-01-01') AS y2023, count(*) FILTER (WHERE reg_date >= '2024-01-01' AND reg_date < '2025-01-01') AS y2024 FROM t_student WHERE del_flag = 0;
-- 里程超过20万公里的教练车有几辆？
SELECT count(*) FROM t_car WHERE mileage_km > 200000;
-- 每个考场的考试人次
SELECT exam_site, count(*) FROM t_exam GROUP BY exam_site;
-- 标价高于平均标价的班型有哪些？
SELECT class_name FROM t_class_type WHERE price > (SELECT avg(price) FROM t_class_type);
-- 每辆车每个月的油费是多少？
REFUSE
-- 科目一考过满分的学员有多少人？
SELECT count(DISTINCT stu_id) FROM t_exam WHERE subject = 1 AND score = 100;
-- 哪些教练没有绑定任何车辆？
SELECT coach_name FROM t_coach c WHERE NOT EXISTS (SELECT 1 FROM t_coach_car b WHERE b.coach_id = c.coach_id);
-- 已完成的练车预约总共训练了多少小时？
SELECT sum(train_hours) FROM t_appoint WHERE status = 1;
-- 月租金在2万元以上的校区，列出名称和月租金
SELECT campus_name, monthly_rent FROM t_campus WHERE monthly_rent > 20000;
-- 微信支付的笔数占全部缴费笔数的比例
SELECT 1.0 * count(*) FILTER (WHERE pay_method = 1) / count(*) FROM t_payment;
-- 底薪最高的教练叫什么名字，底薪多少？
SELECT coach_name, base_salary FROM t_coach ORDER BY base_salary DESC LIMIT 1;
-- 哪个教练最好？
REFUSE
-- 2025年上半年科目三不合格的有多少人次？
SELECT count(*) FROM t_exam WHERE subject = 3 AND result = 0 AND exam_date >= '2025-01-01' AND exam_date < '2025-07-01';
-- 学员给孙丽华教练打的平均分是多少？
SELECT avg(a.stu_score) FROM t_appoint a JOIN t_coach c USING (coach_id) WHERE c.coach_name = '孙丽华';
-- 有哪些学员科目二考了三次或三次以上？要姓名和学员编号
SELECT s.stu_name, s.stu_no FROM t_student s WHERE s.del_flag = 0 AND (SELECT count(*) FROM t_exam e WHERE e.stu_id = s.stu_id AND e.subject = 2) >= 3;
-- 直营校区和加盟校区的平均面积各是多少
SELECT campus_type, avg(area_mu) FROM t_campus GROUP BY campus_type;
-- 没填职业的学员有几个
SELECT count(*) FROM t_student WHERE occupation IS NULL AND del_flag = 0;
-- 2024年各季度的缴费总额
SELECT date_trunc('quarter', pay_time) AS quarter, sum(amount) FROM t_payment WHERE pay_time >= '2024-01-01' AND pay_time < '2025-01-01' GROUP BY 1 ORDER BY 1;
-- 既交过补考费又交过加练费的学员有多少人？
SELECT count(*) FROM t_student s WHERE s.del_flag = 0 AND EXISTS (SELECT 1 FROM t_payment p WHERE p.stu_id = s.stu_id AND p.pay_type = 2) AND EXISTS (SELECT 1 FROM t_payment p WHERE p.stu_id = s.stu_id AND p.pay_type = 3);
-- 本地户籍的大学生有多少名？
SELECT count(*) FROM t_student WHERE is_local AND occupation = '大学生' AND del_flag = 0;
-- 每个科目考试的最高分和最低分
SELECT subject, max(score), min(score) FROM t_exam GROUP BY subject;
-- 学员的家庭住址在哪里最集中？
REFUSE
-- 品牌是大众或者丰田的自动挡车有多少辆
SELECT count(*) FROM t_car WHERE brand IN ('大众', '丰田') AND gear_type = 2;
-- 每个校区里里程最高的车是哪辆？给出校区名称、车牌号和里程
SELECT DISTINCT ON (c.campus_id) c.campus_name, k.plate_no, k.mileage_km FROM t_campus c JOIN t_car k USING (campus_id) ORDER BY c.campus_id, k.mileage_km DESC;
-- 最早入职的教练是谁？
SELECT coach_name FROM t_coach ORDER BY hire_date LIMIT 1;
-- 最近怎么样？
REFUSE
-- 备注里写了“活动价”的缴费一共多少钱
SELECT sum(amount) FROM t_payment WHERE remark LIKE '%活动价%';
-- 教练取消的预约比学员取消的少多少条？
SELECT count(*) FILTER (WHERE status = 2) - count(*) FILTER (WHERE status = 3) FROM t_appoint;
-- 我们驾校去年的净利润是多少？
REFUSE
-- How many training cars are scrapped?
SELECT count(*) FROM t_car WHERE status = 3;
-- Which campuses are in 吴中区?
SELECT campus_name FROM t_campus WHERE district = '吴中区';
-- Could you show me the top 5 class types by number of students, with the counts?
SELECT t.class_name, count(*) FROM t_class_type t JOIN t_student s USING (class_id) WHERE s.del_flag = 0 GROUP BY t.class_id, t.class_name ORDER BY 2 DESC LIMIT 5;
-- average purchase price of cars per brand
SELECT brand, avg(buy_price) FROM t_car GROUP BY brand;
-- How many female coaches do we employ at 胥口校区? Don't count the ones who left.
SELECT count(*) FROM t_coach t JOIN t_campus c USING (campus_id) WHERE c.campus_name = '胥口校区' AND t.gender = 2 AND t.status <> 3;
-- Which students registered in September 2024? Names only
SELECT stu_name FROM t_student WHERE reg_date >= '2024-09-01' AND reg_date < '2024-10-01' AND del_flag = 0;
-- How many traffic accidents did our cars have in 2024?
REFUSE
-- How much commission do the campus agents get per student?
REFUSE

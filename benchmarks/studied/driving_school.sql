-- 驾校管理系统
CREATE FUNCTION _h(a int, b int, n int) RETURNS int LANGUAGE sql IMMUTABLE AS
$$ SELECT (('x' || substr(md5(a::text || '#' || b::text), 1, 7))::bit(28)::int) % n $$;

CREATE TABLE t_campus (
  campus_id    int PRIMARY KEY,
  campus_name  varchar(40) NOT NULL,
  district     varchar(20) NOT NULL,
  campus_type  smallint NOT NULL,
  area_mu      numeric(6,1) NOT NULL,
  monthly_rent numeric(10,2),
  open_date    date NOT NULL,
  status       smallint NOT NULL DEFAULT 1
);
COMMENT ON TABLE t_campus IS '校区（训练场）表';
COMMENT ON COLUMN t_campus.campus_id IS '校区ID';
COMMENT ON COLUMN t_campus.campus_name IS '校区名称';
COMMENT ON COLUMN t_campus.district IS '所在区';
COMMENT ON COLUMN t_campus.campus_type IS '校区类型：1直营 2加盟';
COMMENT ON COLUMN t_campus.area_mu IS '场地面积（亩）';
COMMENT ON COLUMN t_campus.monthly_rent IS '月租金（元），自有场地为空';
COMMENT ON COLUMN t_campus.open_date IS '开业日期';
COMMENT ON COLUMN t_campus.status IS '营业状态：0停业 1营业';

CREATE TABLE t_class_type (
  class_id     int PRIMARY KEY,
  class_name   varchar(40) NOT NULL,
  license_type varchar(4) NOT NULL,
  price        numeric(10,2) NOT NULL,
  total_hours  int NOT NULL,
  is_vip       smallint NOT NULL,
  on_sale      smallint NOT NULL
);
COMMENT ON TABLE t_class_type IS '班型表';
COMMENT ON COLUMN t_class_type.class_id IS '班型ID';
COMMENT ON COLUMN t_class_type.class_name IS '班型名称';
COMMENT ON COLUMN t_class_type.license_type IS '准驾车型：C1、C2、B2、A1、A2、D、E';
COMMENT ON COLUMN t_class_type.price IS '标价（元）';
COMMENT ON COLUMN t_class_type.total_hours IS '总学时';
COMMENT ON COLUMN t_class_type.is_vip IS '是否VIP班：0否 1是';
COMMENT ON COLUMN t_class_type.on_sale IS '销售状态：0停售 1在售';

CREATE TABLE t_coach (
  coach_id    int PRIMARY KEY,
  coach_name  varchar(20) NOT NULL,
  gender      smallint NOT NULL,
  campus_id   int NOT NULL REFERENCES t_campus,
  coach_level smallint NOT NULL,
  hire_date   date NOT NULL,
  leave_date  date,
  base_salary numeric(10,2) NOT NULL,
  mobile      varchar(11),
  status      smallint NOT NULL
);
COMMENT ON TABLE t_coach IS '教练表';
COMMENT ON COLUMN t_coach.coach_id IS '教练ID';
COMMENT ON COLUMN t_coach.coach_name IS '教练姓名';
COMMENT ON COLUMN t_coach.gender IS '性别：1男 2女';
COMMENT ON COLUMN t_coach.campus_id IS '所属校区ID';
COMMENT ON COLUMN t_coach.coach_level IS '教练等级：1初级 2中级 3高级 4金牌';
COMMENT ON COLUMN t_coach.hire_date IS '入职日期';
COMMENT ON COLUMN t_coach.leave_date IS '离职日期';
COMMENT ON COLUMN t_coach.base_salary IS '底薪（元/月）';
COMMENT ON COLUMN t_coach.mobile IS '手机号';
COMMENT ON COLUMN t_coach.status IS '状态：1在职 2休假 3离职';

CREATE TABLE t_car (
  car_id       int PRIMARY KEY,
  plate_no     varchar(10) NOT NULL UNIQUE,
  brand        varchar(20) NOT NULL,
  gear_type    smallint NOT NULL,
  campus_id    int NOT NULL REFERENCES t_campus,
  buy_date     date NOT NULL,
  buy_price    numeric(10,2) NOT NULL,
  mileage_km   int NOT NULL,
  insure_end   date,
  status       smallint NOT NULL
);
COMMENT ON TABLE t_car IS '教练车表';
COMMENT ON COLUMN t_car.car_id IS '车辆ID';
COMMENT ON COLUMN t_car.plate_no IS '车牌号';
COMMENT ON COLUMN t_car.brand IS '品牌';
COMMENT ON COLUMN t_car.gear_type IS '变速箱：1手动挡 2自动挡';
COMMENT ON COLUMN t_car.campus_id IS '所属校区ID';
COMMENT ON COLUMN t_car.buy_date IS '购置日期';
COMMENT ON COLUMN t_car.buy_price IS '购置价格（元）';
COMMENT ON COLUMN t_car.mileage_km IS '行驶里程（公里）';
COMMENT ON COLUMN t_car.insure_end IS '保险到期日';
COMMENT ON COLUMN t_car.status IS '车辆状态：1正常 2维修中 3已报废';

CREATE TABLE t_coach_car (
  coach_id  int NOT NULL REFERENCES t_coach,
  car_id    int NOT NULL REFERENCES t_car,
  bind_date date NOT NULL,
  is_main   smallint NOT NULL,
  PRIMARY KEY (coach_id, car_id)
);
COMMENT ON TABLE t_coach_car IS '教练与车辆绑定表';
COMMENT ON COLUMN t_coach_car.coach_id IS '教练ID';
COMMENT ON COLUMN t_coach_car.car_id IS '车辆ID';
COMMENT ON COLUMN t_coach_car.bind_date IS '绑定日期';
COMMENT ON COLUMN t_coach_car.is_main IS '是否主用车：0否 1是';

CREATE TABLE t_student (
  stu_id     int PRIMARY KEY,
  stu_no     varchar(12) NOT NULL UNIQUE,
  stu_name   varchar(20) NOT NULL,
  gender     smallint NOT NULL,
  birthday   date,
  campus_id  int NOT NULL REFERENCES t_campus,
  class_id   int NOT NULL REFERENCES t_class_type,
  coach_id   int REFERENCES t_coach,
  reg_date   date NOT NULL,
  channel    smallint NOT NULL,
  stage      smallint NOT NULL,
  occupation varchar(20),
  is_local   boolean NOT NULL,
  del_flag   smallint NOT NULL DEFAULT 0
);
COMMENT ON TABLE t_student IS '学员表';
COMMENT ON COLUMN t_student.stu_id IS '学员ID';
COMMENT ON COLUMN t_student.stu_no IS '学员编号';
COMMENT ON COLUMN t_student.stu_name IS '学员姓名';
COMMENT ON COLUMN t_student.gender IS '性别：1男 2女';
COMMENT ON COLUMN t_student.birthday IS '出生日期';
COMMENT ON COLUMN t_student.campus_id IS '报名校区ID';
COMMENT ON COLUMN t_student.class_id IS '班型ID';
COMMENT ON COLUMN t_student.coach_id IS '分配教练ID，未分配为空';
COMMENT ON COLUMN t_student.reg_date IS '报名日期';
COMMENT ON COLUMN t_student.channel IS '来源渠道：1自然到店 2朋友推荐 3抖音 4美团 5校园代理';
COMMENT ON COLUMN t_student.stage IS '学习进度：0未开始 1科目一 2科目二 3科目三 4科目四 5已拿证 9已退学';
COMMENT ON COLUMN t_student.occupation IS '职业';
COMMENT ON COLUMN t_student.is_local IS '是否本地户籍';
COMMENT ON COLUMN t_student.del_flag IS '删除标志：0正常 1已删除';

CREATE TABLE t_appoint (
  appoint_id  int PRIMARY KEY,
  stu_id      int NOT NULL REFERENCES t_student,
  coach_id    int NOT NULL REFERENCES t_coach,
  car_id      int NOT NULL REFERENCES t_car,
  subject     smallint NOT NULL,
  start_time  timestamp NOT NULL,
  train_hours numeric(3,1) NOT NULL,
  status      smallint NOT NULL,
  stu_score   smallint
);
COMMENT ON TABLE t_appoint IS '练车预约表';
COMMENT ON COLUMN t_appoint.appoint_id IS '预约ID';
COMMENT ON COLUMN t_appoint.stu_id IS '学员ID';
COMMENT ON COLUMN t_appoint.coach_id IS '教练ID';
COMMENT ON COLUMN t_appoint.car_id IS '车辆ID';
COMMENT ON COLUMN t_appoint.subject IS '训练科目：2科目二 3科目三';
COMMENT ON COLUMN t_appoint.start_time IS '开始时间';
COMMENT ON COLUMN t_appoint.train_hours IS '训练时长（小时）';
COMMENT ON COLUMN t_appoint.status IS '预约状态：0待练车 1已完成 2学员取消 3教练取消 4爽约';
COMMENT ON COLUMN t_appoint.stu_score IS '学员评分1-5，未评价为空';

CREATE TABLE t_exam (
  exam_id    int PRIMARY KEY,
  stu_id     int NOT NULL REFERENCES t_student,
  subject    smallint NOT NULL,
  exam_date  date NOT NULL,
  exam_site  varchar(20) NOT NULL,
  attempt_no smallint NOT NULL,
  score      int,
  result     smallint NOT NULL
);
COMMENT ON TABLE t_exam IS '考试记录表';
COMMENT ON COLUMN t_exam.exam_id IS '考试ID';
COMMENT ON COLUMN t_exam.stu_id IS '学员ID';
COMMENT ON COLUMN t_exam.subject IS '考试科目：1科目一 2科目二 3科目三 4科目四';
COMMENT ON COLUMN t_exam.exam_date IS '考试日期';
COMMENT ON COLUMN t_exam.exam_site IS '考场';
COMMENT ON COLUMN t_exam.attempt_no IS '第几次考试';
COMMENT ON COLUMN t_exam.score IS '成绩，缺考为空';
COMMENT ON COLUMN t_exam.result IS '结果：0不合格 1合格 2缺考';

CREATE TABLE t_payment (
  pay_id     int PRIMARY KEY,
  stu_id     int NOT NULL REFERENCES t_student,
  pay_type   smallint NOT NULL,
  pay_method smallint NOT NULL,
  amount     numeric(10,2) NOT NULL,
  pay_time   timestamp NOT NULL,
  need_invoice boolean NOT NULL,
  remark     varchar(100)
);
COMMENT ON TABLE t_payment IS '缴费记录表';
COMMENT ON COLUMN t_payment.pay_id IS '缴费ID';
COMMENT ON COLUMN t_payment.stu_id IS '学员ID';
COMMENT ON COLUMN t_payment.pay_type IS '费用类型：1学费 2补考费 3加练费';
COMMENT ON COLUMN t_payment.pay_method IS '支付方式：1微信 2支付宝 3现金 4银行卡';
COMMENT ON COLUMN t_payment.amount IS '金额（元）';
COMMENT ON COLUMN t_payment.pay_time IS '缴费时间';
COMMENT ON COLUMN t_payment.need_invoice IS '是否开票';
COMMENT ON COLUMN t_payment.remark IS '备注';

INSERT INTO t_campus
SELECT g, n || '校区', (ARRAY['姑苏区','吴中区','吴中区','虎丘区','吴江区','工业园区','工业园区','相城区','吴中区','相城区','虎丘区','吴江区','工业园区','虎丘区','相城区','吴江区','吴中区','相城区','吴中区','工业园区'])[g],
 CASE WHEN _h(g,3,3)=0 OR g%4=3 THEN 2 ELSE 1 END, 6+_h(g,4,420)/10.0, CASE WHEN _h(g,5,5)=0 THEN NULL ELSE 8000+_h(g,6,220)*100 END,
 date '2008-03-18'+_h(g,7,5400), CASE WHEN g IN (11,19) THEN 0 ELSE 1 END
FROM unnest(ARRAY['平江','胥口','木渎','浒关','盛泽','唯亭','娄葑','黄埭','甪直','渭塘','枫桥','同里','斜塘','横塘','望亭','震泽','越溪','阳澄湖','光福','胜浦']) WITH ORDINALITY u(n,g0)
CROSS JOIN LATERAL (SELECT g0::int g) x;

INSERT INTO t_class_type VALUES
(1,'C1普通班','C1',3280,62,0,1),(2,'C1周末班','C1',3680,62,0,1),(3,'C1计时班','C1',3980,62,0,1),(4,'C1学生班','C1',2880,62,0,1),
(5,'C1VIP一对一','C1',6880,62,1,1),(6,'C2普通班','C2',3580,60,0,1),(7,'C2周末班','C2',3960,60,0,1),(8,'C2学生班','C2',3080,60,0,1),
(9,'C2VIP一对一','C2',7280,60,1,1),(10,'C2夜训班','C2',4180,60,0,1),(11,'C1夜训班','C1',3860,62,0,0),(12,'B2货车班','B2',9800,118,0,1),
(13,'A1大客车班','A1',12800,82,0,1),(14,'A2牵引车班','A2',13600,88,0,1),(15,'D三轮摩托班','D',980,38,0,0),(16,'E二轮摩托班','E',880,36,0,1),
(17,'C1速成班','C1',4580,62,0,0),(18,'C2速成班','C2',4880,60,0,0),(19,'C1尊享VIP','C1',8880,62,1,1),(20,'C2女子班','C2',3760,60,0,1),(21,'C1退役军人班','C1',2680,62,0,1),(22,'C2亲子班','C2',6980,60,0,0);

INSERT INTO t_coach
SELECT g, (ARRAY['赵','钱','孙','李','周','吴','郑','王','冯','陈','沈','韩','杨','朱','秦','许'])[1+g%16] || (ARRAY['建国','志强','海燕','大伟','永康','丽华','卫东','国庆','晓明','金龙','春梅','学军','德胜'])[1+g%13],
 CASE WHEN g%13 IN (2,5,10) THEN 2 ELSE 1 END, 1+least(_h(g,1,20),_h(g,2,26)), 1+least(_h(g,3,4),_h(g,4,5)),
 date '2011-02-21'+_h(g,5,4900), CASE WHEN g%11=0 THEN date '2025-02-01'+_h(g,6,240) END,
 3200+_h(g,7,38)*60+g*5, CASE WHEN _h(g,8,12)=0 THEN NULL ELSE '138'||lpad(_h(g,9,99999999)::text,8,'0') END,
 CASE WHEN g%11=0 THEN 3 WHEN g%15=0 THEN 2 ELSE 1 END
FROM generate_series(1,48) g;

INSERT INTO t_car
SELECT g, '苏E'||lpad((1000+_h(g,1,140)*60+g)::text,4,'0')||'学', (ARRAY['大众','丰田','比亚迪','吉利','雪铁龙'])[1+least(_h(g,2,5),_h(g,3,6))],
 CASE WHEN _h(g,4,5)<3 THEN 1 ELSE 2 END, 1+least(_h(g,5,20),_h(g,6,26)), date '2015-05-11'+_h(g,7,3650), 68000+_h(g,8,560)*100,
 9000+_h(g,9,268000), CASE WHEN _h(g,10,14)=0 THEN NULL ELSE date '2025-06-01'+_h(g,11,500) END,
 CASE WHEN _h(g,12,16)<2 THEN 3 WHEN _h(g,12,16)<4 THEN 2 ELSE 1 END
FROM generate_series(1,64) g;

INSERT INTO t_coach_car
SELECT c.coach_id, 1+(c.coach_id*5+k*23)%60, c.hire_date+30+_h(c.coach_id,20+k,90), CASE WHEN k=0 THEN 1 ELSE 0 END
FROM t_coach c CROSS JOIN LATERAL generate_series(0,_h(c.coach_id,19,3)-CASE WHEN c.coach_id%9=4 THEN 3 ELSE 0 END) k;

INSERT INTO t_student
WITH b AS (SELECT g, date '2023-02-06'+(g*1.92)::int reg FROM generate_series(1,520) g),
d AS (SELECT b.*, CASE WHEN _h(g,1,25)=0 THEN 9 WHEN reg<'2024-06-01' THEN (CASE WHEN _h(g,2,12)=0 THEN 3 WHEN _h(g,2,12)=1 THEN 2 ELSE 5 END)
   WHEN reg<'2025-03-01' THEN (ARRAY[5,5,5,4,3,3,2,2,1])[1+_h(g,2,9)] ELSE (ARRAY[0,0,1,1,2,2,3,1,4])[1+_h(g,2,9)] END st FROM b)
SELECT g, 'XY'||to_char(reg,'YYMM')||lpad(g::text,4,'0'),
 (ARRAY['王','李','张','刘','陈','杨','黄','吴','徐','孙','马','朱','胡','林','何','郭','高','罗','顾','陆'])[1+_h(g,3,20)]||(ARRAY['子','雨','思','佳','浩','梦','俊','文','晨','嘉','欣','宇'])[1+_h(g,4,12)]||(ARRAY['轩','涵','怡','杰','琪','然','豪','婷','阳','宁','瑶','博'])[1+_h(g,5,12)],
 1+_h(g,6,2), CASE WHEN _h(g,7,40)=0 THEN NULL ELSE reg-6600-least(_h(g,8,9500),_h(g,9,9500)) END,
 1+least(_h(g,10,18),_h(g,11,22)), 1+least(_h(g,12,20),_h(g,13,22),_h(g,14,30)),
 CASE WHEN st=0 OR _h(g,15,18)=0 THEN NULL ELSE 1+least(_h(g,161,46),_h(g,17,60)) END, reg,
 (ARRAY[1,1,2,2,2,3,3,4,5])[1+_h(g,18,9)], st,
 CASE WHEN _h(g,19,7)=0 THEN NULL ELSE (ARRAY['大学生','上班族','个体户','自由职业','教师','退休人员'])[1+least(_h(g,20,6),_h(g,21,7))] END,
 _h(g,22,5)<3, CASE WHEN g%47=0 THEN 1 ELSE 0 END
FROM d;

INSERT INTO t_appoint
SELECT row_number() OVER (ORDER BY ts, stu_id), stu_id, coach_id, car, sub, ts, hrs, st, CASE WHEN st=1 AND _h(z,37,4)<>0 THEN (ARRAY[5,5,5,4,4,4,3,2,1])[1+least(_h(z,38,9),_h(z,39,12))] END
FROM (SELECT s.stu_id, s.coach_id, 1+(s.coach_id*5+(_h(z,30,3))*23)%60 car, CASE WHEN k<=_h(s.stu_id,31,4)+1 OR s.stage<=2 THEN 2 ELSE 3 END sub, z,
   s.reg_date + 25 + k*9 + _h(z,32,8) + interval '8 hours' + _h(z,33,10)*interval '1 hour' ts,
   (ARRAY[1,1.5,2,2,3])[1+_h(z,34,5)] hrs,
   CASE WHEN s.reg_date+25+k*9>date '2025-11-10' THEN 0 ELSE (CASE WHEN _h(z,35,20)<15 THEN 1 WHEN _h(z,35,20)<18 THEN 2 WHEN _h(z,35,20)=18 THEN 3 ELSE 4 END) END st
  FROM t_student s CROSS JOIN LATERAL generate_series(1,CASE s.stage WHEN 2 THEN 2 WHEN 3 THEN 4 ELSE 5 END + _h(s.stu_id,29,3)-2) k
  CROSS JOIN LATERAL (SELECT s.stu_id*100+k z) q
  WHERE s.del_flag=0 AND s.coach_id IS NOT NULL AND s.stage IN (2,3,4,5)) x;

INSERT INTO t_exam
SELECT row_number() OVER (ORDER BY dt, stu_id, sub, att), stu_id, sub, dt, (ARRAY['吴中考场','相城考场','车管所考场','吴江考场'])[1+least(_h(z,45,4),_h(z,46,5))], att,
  CASE res WHEN 2 THEN NULL WHEN 1 THEN (CASE WHEN sub=2 THEN 80 ELSE 90 END)+_h(z,47,CASE WHEN sub=2 THEN 21 ELSE 11 END) ELSE (CASE WHEN sub=2 THEN 35 ELSE 50 END)+_h(z,47,40) END, res
FROM (SELECT s.stu_id, sub, att, z, s.reg_date + sub*32 + att*13 + _h(z,44,9) dt,
   CASE WHEN sub<s.stage AND att=f.n+1 THEN 1 WHEN _h(z,42,12)=0 THEN 2 ELSE 0 END res
  FROM t_student s CROSS JOIN LATERAL generate_series(1,least(s.stage,4)) sub
  CROSS JOIN LATERAL (SELECT (ARRAY[0,0,1,0,0,2,1,0,0,1])[1+_h(s.stu_id,50+sub,10)]*(CASE WHEN sub IN (1,4) AND _h(s.stu_id,60+sub,2)=0 THEN 0 ELSE 1 END)
       + CASE WHEN sub=2 AND _h(s.stu_id,70,6)=0 THEN 1 ELSE 0 END n) f
  CROSS JOIN LATERAL generate_series(1,f.n + CASE WHEN sub<s.stage THEN 1 ELSE 0 END) att
  CROSS JOIN LATERAL (SELECT s.stu_id*100+sub*10+att z) q
  WHERE s.del_flag=0 AND s.stage BETWEEN 1 AND 5) x
WHERE dt <= date '2025-12-31';

INSERT INTO t_payment
SELECT row_number() OVER (ORDER BY ts, stu_id, typ), stu_id, typ, (ARRAY[1,1,1,2,2,3,4])[1+_h(z,80,7)], amt, ts, _h(z,81,4)=0,
  CASE WHEN typ=1 AND _h(z,82,6)=0 THEN '老学员介绍优惠' WHEN typ=1 AND _h(z,82,6)=1 THEN '活动价' END
FROM (
 SELECT s.stu_id, 1 typ, s.stu_id*7 z, c.price-_h(s.stu_id,83,8)*50 amt, s.reg_date+interval '9 hours'+_h(s.stu_id,84,560)*interval '1 minute' ts
 FROM t_student s JOIN t_class_type c USING (class_id) WHERE s.del_flag=0 AND _h(s.stu_id,85,30)<>0
 UNION ALL
 SELECT stu_id, 2, exam_id*7+3, (ARRAY[40,150,190,40])[subject], exam_date-4+interval '10 hours'+_h(exam_id,86,400)*interval '1 minute' FROM t_exam WHERE attempt_no>1
 UNION ALL
 SELECT stu_id, 3, stu_id*7+5, 120+_h(stu_id,87,12)*60, reg_date+95+interval '14 hours'+_h(stu_id,88,200)*interval '1 minute' FROM t_student WHERE del_flag=0 AND stage IN (3,4,5) AND _h(stu_id,89,5)=0) p;

DROP FUNCTION _h(int,int,int);

-- 养老院管理
CREATE TYPE 护理等级类型 AS ENUM ('自理','半护理','全护理','特护');

CREATE TABLE 房间 (
  房间号 text PRIMARY KEY,
  楼栋 text NOT NULL,
  楼层 int NOT NULL,
  房型 text NOT NULL CHECK (房型 IN ('单人间','双人间','四人间','套间')),
  床位数 int NOT NULL,
  月租金 numeric(8,2) NOT NULL,
  带阳台 boolean NOT NULL
);
COMMENT ON COLUMN 房间.月租金 IS '每张床位每月的租金,单位元';

CREATE TABLE 老人 (
  老人编号 int PRIMARY KEY,
  姓名 text NOT NULL,
  性别 text NOT NULL CHECK (性别 IN ('男','女')),
  出生日期 date NOT NULL,
  籍贯 text NOT NULL,
  护理等级 护理等级类型 NOT NULL,
  房间号 text NOT NULL REFERENCES 房间,
  入住日期 date NOT NULL,
  退住日期 date,
  紧急联系电话 text,
  有医保 boolean NOT NULL
);
COMMENT ON COLUMN 老人.退住日期 IS '为空表示仍在住';

CREATE TABLE 员工 (
  员工编号 int PRIMARY KEY,
  姓名 text NOT NULL,
  岗位 text NOT NULL CHECK (岗位 IN ('院长','护理员','护士','医生','厨师','保洁','行政')),
  上级编号 int REFERENCES 员工,
  入职日期 date NOT NULL,
  离职日期 date,
  月薪 numeric(9,2) NOT NULL,
  上夜班 boolean NOT NULL
);

CREATE TABLE 护理项目 (
  项目编号 int PRIMARY KEY,
  项目名称 text NOT NULL,
  类别 text NOT NULL,
  单价 numeric(7,2) NOT NULL,
  标准时长 int NOT NULL,
  已停用 boolean NOT NULL
);
COMMENT ON COLUMN 护理项目.标准时长 IS '分钟';

CREATE TABLE 护理记录 (
  记录编号 int PRIMARY KEY,
  老人编号 int NOT NULL REFERENCES 老人,
  项目编号 int NOT NULL REFERENCES 护理项目,
  员工编号 int NOT NULL,
  执行时间 timestamp NOT NULL,
  实际时长 int NOT NULL,
  满意度 int CHECK (满意度 BETWEEN 1 AND 5),
  备注 text
);
COMMENT ON COLUMN 护理记录.实际时长 IS '分钟';

CREATE TABLE 缴费单 (
  账单编号 int PRIMARY KEY,
  老人编号 int NOT NULL REFERENCES 老人,
  账期 date NOT NULL,
  床位费 numeric(9,2) NOT NULL,
  护理费 numeric(9,2) NOT NULL,
  餐费 numeric(9,2) NOT NULL,
  优惠比例 numeric(4,3),
  应缴金额 numeric(10,2) NOT NULL,
  实缴金额 numeric(10,2) NOT NULL,
  缴费日期 date,
  支付方式 text CHECK (支付方式 IN ('微信','支付宝','银行转账','现金')),
  状态 text NOT NULL CHECK (状态 IN ('已缴清','部分缴纳','未缴'))
);
COMMENT ON COLUMN 缴费单.账期 IS '账单所属月份的第一天';

CREATE TABLE 探访记录 (
  探访编号 int PRIMARY KEY,
  老人编号 int NOT NULL REFERENCES 老人,
  访客姓名 text NOT NULL,
  与老人关系 text NOT NULL,
  到访时间 timestamp NOT NULL,
  离开时间 timestamp,
  陪同用餐 boolean NOT NULL,
  已删除 boolean NOT NULL DEFAULT false
);

CREATE TABLE 活动 (
  活动编号 int PRIMARY KEY,
  活动名称 text NOT NULL,
  活动类型 text NOT NULL,
  举办日期 date NOT NULL,
  地点 text NOT NULL,
  名额 int NOT NULL,
  预算 numeric(9,2) NOT NULL,
  实际花费 numeric(9,2),
  负责人编号 int
);
COMMENT ON COLUMN 活动.负责人编号 IS '负责活动的员工';

CREATE TABLE 活动报名 (
  活动编号 int NOT NULL REFERENCES 活动,
  老人编号 int NOT NULL REFERENCES 老人,
  报名日期 date NOT NULL,
  是否到场 boolean NOT NULL,
  评分 int CHECK (评分 BETWEEN 1 AND 10),
  PRIMARY KEY (活动编号, 老人编号)
);

CREATE FUNCTION h(text) RETURNS float8 LANGUAGE sql IMMUTABLE AS
 'SELECT ((''x''||substr(md5($1),1,7))::bit(28)::int)/268435456.0::float8';

INSERT INTO 房间
SELECT l||'-'||f||lpad(n::text,2,'0'), l||'栋', f, t,
 CASE t WHEN '单人间' THEN 1 WHEN '双人间' THEN 2 WHEN '四人间' THEN 4 ELSE 2 END,
 (CASE t WHEN '单人间' THEN 3200 WHEN '双人间' THEN 2100 WHEN '四人间' THEN 1300 ELSE 4500 END) + f*60 + (CASE l WHEN 'A' THEN 200 WHEN 'B' THEN 0 ELSE -120 END) + CASE WHEN y THEN 150 ELSE 0 END, y
FROM (SELECT l,f,n, h('yt'||l||f||n) < 0.4 y,
  (ARRAY['单人间','双人间','双人间','四人间','套间'])[1+((n+f+ascii(l)) % 5)] t
 FROM unnest(ARRAY['A','B','C']) l, generate_series(1,3) f, generate_series(1,5) n) q;

INSERT INTO 老人
SELECT i, (ARRAY['王','李','张','刘','陈','杨','赵','黄','周','吴','徐','孙','胡','朱','高','林','何','郭','马','罗','梁','宋','郑','谢','韩','唐','冯','于','董','萧'])[1+((i*7) % 30)]
  || CASE WHEN g='女' THEN (ARRAY['秀英','桂兰','淑珍','玉梅','凤英','桂香','素芬','玉兰','秀兰','翠花','月娥','惠芳','春梅','爱莲','美华','静娴','宝珠'])[1+((i*5) % 17)]
   ELSE (ARRAY['建国','德福','志强','国华','福生','永昌','振华','文彬','世杰','明远','长贵','树林','金山','宝田','少卿','学礼','广才'])[1+((i*5) % 17)] END,
 g, date '1931-03-01' + floor(h('cs'||i)*9800)::int,
 (ARRAY['杭州','杭州','杭州','杭州','宁波','宁波','绍兴','绍兴','嘉兴','湖州','温州','上海','苏州','合肥'])[1+floor(h('jg'||i)*14)::int],
 (ARRAY['自理','自理','自理','半护理','半护理','半护理','全护理','全护理','特护'])[1+floor(h('hd'||i)*9)::int]::护理等级类型,
 'A-101', d, CASE WHEN h('tz'||i) < 0.42 AND d < date '2025-01-01' THEN d + 120 + floor(h('tz2'||i)*((date '2025-08-20' - d) - 120))::int END,
 CASE WHEN h('dh'||i) < 0.9 THEN '138'||lpad(floor(h('dh2'||i)*100000000)::bigint::text,8,'0') END,
 h('yb'||i) < 0.83
FROM (SELECT i, CASE WHEN h('xb'||i) < 0.6 THEN '女' ELSE '男' END g, date '2020-03-01' + floor(h('rz'||i)*1960)::int d FROM generate_series(1,140) i) q;
UPDATE 老人 o SET 房间号 = s.房间号 FROM
 (SELECT 房间号, row_number() OVER (ORDER BY md5(房间号 || 'k'), b) rn FROM 房间, LATERAL generate_series(1,床位数) b) s,
 (SELECT 老人编号, row_number() OVER (ORDER BY (退住日期 IS NOT NULL), 老人编号) rn FROM 老人) r
WHERE o.老人编号 = r.老人编号 AND s.rn = 1 + ((r.rn-1) % (SELECT sum(床位数) FROM 房间));

INSERT INTO 员工
SELECT i, n, CASE WHEN i=1 THEN '院长' WHEN i<=26 THEN '护理员' WHEN i<=33 THEN '护士' WHEN i<=36 THEN '医生' WHEN i<=40 THEN '厨师' WHEN i<=44 THEN '保洁' ELSE '行政' END,
 CASE WHEN i=1 THEN NULL WHEN i IN (2,3,4,27,34,37,41,45) THEN 1 WHEN i<=26 THEN 2 + floor(h('sj'||i)*3)::int WHEN i<=33 THEN 27 WHEN i<=36 THEN 34 WHEN i<=40 THEN 37 WHEN i<=44 THEN 41 ELSE 45 END,
 date '2016-05-03' + floor(h('rzr'||i)*3300)::int, NULL,
 round(((CASE WHEN i=1 THEN 16000 WHEN i<=26 THEN 4600 WHEN i<=33 THEN 6000 WHEN i<=36 THEN 9500 WHEN i<=40 THEN 5000 WHEN i<=44 THEN 3300 ELSE 5200 END) * (1+0.35*h('yx'||i)))::numeric,-1),
 (i BETWEEN 2 AND 33 AND h('yb2'||i) < 0.55)
FROM unnest(ARRAY['沈国平','方丽娟','姚秋萍','钱小红','邵美玲','葛艳','章金花','余春燕','潘玉婷','蒋芳','俞雪梅','金菊','盛敏','陶桂芝','毛晓霞','范雅琴','汪海燕','石磊','丁巧云','施燕飞','樊小琴','戴月','贺兰','褚琳','卢伟','康建军','顾婉清','叶青','贾思琪','尹露','薛梅','严冬','白洁','崔明','龚志远','史可','鲁大海','万福','武平','柳根生','乔阿妹','熊翠','孟桂花','秦二妹','江涛','夏雨','侯静','龙小波']) WITH ORDINALITY t(n,i);
UPDATE 员工 SET 月薪 = 月薪 + 1300 WHERE 员工编号 IN (2,3,4,27,34,37,41,45);
UPDATE 员工 SET 离职日期 = date '2024-02-15' + (员工编号*23) % 500 WHERE 员工编号 IN (9,14,23,32,40,47);

INSERT INTO 护理项目 VALUES
(1,'协助洗澡','生活照料',45,40,false),(2,'喂餐','生活照料',20,30,false),(3,'翻身拍背','生活照料',15,15,false),(4,'更换床单','生活照料',18,15,false),
(5,'理发','生活照料',30,25,false),(6,'修剪指甲','生活照料',10,12,false),(7,'口腔护理','生活照料',16,15,false),(8,'助行散步','生活照料',25,35,false),
(9,'测血压','医疗护理',8,6,false),(10,'测血糖','医疗护理',12,8,false),(11,'伤口换药','医疗护理',55,25,false),(12,'胰岛素注射','医疗护理',22,10,false),
(13,'雾化吸入','医疗护理',40,20,false),(14,'导尿护理','医疗护理',80,30,false),(15,'压疮护理','医疗护理',95,35,false),(16,'肢体康复训练','康复理疗',120,45,false),
(17,'中药足浴','康复理疗',60,40,false),(18,'艾灸','康复理疗',75,30,false),(19,'推拿按摩','康复理疗',88,45,false),(20,'认知训练','心理关怀',66,40,false),
(21,'心理疏导','心理关怀',100,50,false),(22,'陪聊','心理关怀',28,30,false),(23,'红外线照射','康复理疗',50,20,true),(24,'音乐疗法','心理关怀',70,45,true);

INSERT INTO 护理记录
SELECT row_number() OVER (ORDER BY t, i), o, p,
 CASE WHEN p IN (9,10,11,12,13,14,15) THEN 27+floor(7*power(h('hy'||i),1.3))::int ELSE 2+floor(25*power(h('hy'||i),1.2))::int END,
 t, greatest(4, round((SELECT 标准时长 FROM 护理项目 WHERE 项目编号=p) * (0.7+0.65*h('sc'||i))))::int,
 CASE WHEN h('my'||i) < 0.72 THEN (ARRAY[1,2,3,3,4,4,4,4,5,5,5,5])[1+floor(12*h('my2'||i))::int] END,
 CASE WHEN h('bz'||i) < 0.06 THEN (ARRAY['老人情绪不稳','家属在场','需要两人协助','老人拒绝,改期完成'])[1+floor(4*h('bz2'||i))::int] END
FROM (SELECT i, 1+floor(136*power(h('ho'||i),1.2))::int o, (ARRAY[1,1,2,2,2,3,3,4,5,6,7,8,8,9,9,9,9,10,10,11,12,13,15,16,16,17,18,19,20,22,22,1,2,9])[1+floor(34*h('hp'||i))::int] p,
  date_trunc('minute', timestamp '2023-01-01 07:00' + interval '1 day' * floor(960*power(h('ht'||i),0.85)) + interval '1 hour' * 13.5 * h('hh'||i)) t FROM generate_series(1,3000) i) q
WHERE EXISTS (SELECT 1 FROM 老人 l WHERE l.老人编号=q.o AND l.入住日期 <= q.t::date AND (l.退住日期 IS NULL OR l.退住日期 >= q.t::date));

INSERT INTO 缴费单
SELECT row_number() OVER (ORDER BY m, 老人编号), 老人编号, m, 月租金, hl, cf, yh, yj,
 CASE zt WHEN '已缴清' THEN yj WHEN '部分缴纳' THEN round(yj*0.5,2) ELSE 0 END,
 CASE WHEN zt <> '未缴' THEN m + 2 + floor(24*h('jf'||老人编号||m))::int END,
 CASE WHEN zt <> '未缴' THEN (ARRAY['微信','微信','微信','支付宝','支付宝','银行转账','银行转账','银行转账','银行转账','现金'])[1+floor(10*h('zf'||老人编号||m))::int] END, zt
FROM (SELECT *, round((月租金+hl+cf)*(1-coalesce(yh,0)),2) yj,
  CASE WHEN h('zt'||老人编号||m) < 0.88 - CASE WHEN m >= date '2025-05-01' THEN 0.2 ELSE 0 END THEN '已缴清' WHEN h('zt'||老人编号||m) < 0.93 THEN '部分缴纳' ELSE '未缴' END zt
 FROM (SELECT l.老人编号, m::date m, r.月租金,
   (CASE l.护理等级 WHEN '自理' THEN 600 WHEN '半护理' THEN 1500 WHEN '全护理' THEN 2600 ELSE 3900 END)::numeric hl,
   round((820+160*h('cf'||l.老人编号||m::date))::numeric,1) cf, CASE WHEN h('yh'||l.老人编号) < 0.2 THEN (ARRAY[0.05,0.08,0.1])[1+floor(3*h('yh2'||l.老人编号))::int]::numeric END yh
  FROM 老人 l JOIN 房间 r USING (房间号), generate_series(timestamp '2024-01-01', timestamp '2025-08-01', interval '1 month') m
  WHERE l.入住日期 <= m::date AND (l.退住日期 IS NULL OR l.退住日期 > m::date)) a) b;

INSERT INTO 探访记录
SELECT row_number() OVER (ORDER BY t, i), o, left((SELECT 姓名 FROM 老人 WHERE 老人编号=o),1) || (ARRAY['军','敏','丽','涛','静','磊','芳','强','婷','超','洋','慧'])[1+((o*5+floor(3*h('fk'||i))::int) % 12)],
 (ARRAY['儿子','女儿','女儿','儿子','孙子','孙女','配偶','朋友','侄子'])[1+floor(9*h('gx'||i))::int],
 t, CASE WHEN h('lk'||i) < 0.94 THEN t + interval '1 minute' * (20+floor(150*h('lk2'||i))) END, h('pc'||i) < 0.3, i % 29 = 3
FROM (SELECT i, 1+floor(130*power(h('to'||i),1.5))::int o,
  date_trunc('minute', timestamp '2023-01-01 08:30' + interval '1 day' * floor(968*power(h('tt'||i),0.8)) + interval '1 hour' * 9 * h('th'||i)) t FROM generate_series(1,1500) i) q
WHERE EXISTS (SELECT 1 FROM 老人 l WHERE l.老人编号=q.o AND l.入住日期 <= q.t::date AND (l.退住日期 IS NULL OR l.退住日期 >= q.t::date))
 AND (extract(isodow FROM t) >= 6 OR h('zm'||i) < 0.5);

INSERT INTO 活动
SELECT i, (ARRAY['书法班','太极晨练','合唱排练','象棋比赛','包饺子','生日会','电影放映','健康讲座','手工剪纸','西湖一日游','联欢会','防诈骗讲座'])[c] || to_char(d,'YYYYMM'),
 (ARRAY['文艺','体育','文艺','竞赛','节庆','节庆','文艺','讲座','文艺','外出','节庆','讲座'])[c], d,
 (ARRAY['多功能厅','花园','多功能厅','棋牌室','餐厅','餐厅','多功能厅','会议室','手工室','院外','多功能厅','会议室'])[c],
 12+floor(28*h('me'||i))::int, round((200+2600*h('ys'||i)*h('ys2'||i))::numeric,-1), NULL,
 CASE WHEN i % 13 <> 6 THEN (ARRAY[45,45,46,48,2,3,4,27,46,45])[1+floor(10*h('fz'||i))::int] END
FROM (SELECT i, 1+((i*5) % 12) c, date '2023-01-12' + i*15 + floor(8*h('hr'||i))::int d FROM generate_series(1,64) i) q;
UPDATE 活动 SET 实际花费 = round((预算*(0.65+0.6*h('hf'||活动编号)))::numeric,1) WHERE 活动编号 <= 60;

INSERT INTO 活动报名
SELECT a.活动编号, l.老人编号, a.举办日期 - 1 - floor(9*h('bm'||a.活动编号||'-'||l.老人编号))::int, dc,
 CASE WHEN dc AND h('pf'||a.活动编号||'-'||l.老人编号) < 0.6 THEN 4+floor(7*h('pf2'||a.活动编号||'-'||l.老人编号))::int END
FROM 活动 a JOIN 老人 l ON l.入住日期 <= a.举办日期 - 10 AND (l.退住日期 IS NULL OR l.退住日期 > a.举办日期),
 LATERAL (SELECT h('dc'||a.活动编号||'-'||l.老人编号) < 0.84 dc) z
WHERE a.活动编号 <= 61 AND a.活动编号 <> 37 AND l.老人编号 % 11 <> 5
 AND h('cy'||a.活动编号||'-'||l.老人编号) < 0.34*h('hb'||l.老人编号)+0.15*h('ha'||a.活动编号);
DROP FUNCTION h(text);

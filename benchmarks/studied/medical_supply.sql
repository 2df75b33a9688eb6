-- 医疗器械经销商数据库
CREATE FUNCTION pg_temp.r(k text, n int) RETURNS int LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x'||substr(md5(k),1,7))::bit(28)::int % n $$;

CREATE TABLE gongyingshang (
  id int PRIMARY KEY, mingcheng text NOT NULL, shengfen text, laiyuan text NOT NULL, hezuo_riqi date NOT NULL, youxiao_shouquan boolean NOT NULL
);
COMMENT ON TABLE gongyingshang IS '供应商（器械生产厂家）';
COMMENT ON COLUMN gongyingshang.id IS '供应商编号';
COMMENT ON COLUMN gongyingshang.mingcheng IS '供应商名称';
COMMENT ON COLUMN gongyingshang.shengfen IS '所在省份，进口厂家为空';
COMMENT ON COLUMN gongyingshang.laiyuan IS '来源：国产/进口';
COMMENT ON COLUMN gongyingshang.hezuo_riqi IS '开始合作日期';
COMMENT ON COLUMN gongyingshang.youxiao_shouquan IS '授权书是否在有效期内';

CREATE TABLE chanpin (
  id int PRIMARY KEY, bianma text NOT NULL UNIQUE, mingcheng text NOT NULL, leibie text NOT NULL, guanli_leibie smallint NOT NULL CHECK (guanli_leibie IN (1,2,3)),
  gongyingshang_id int NOT NULL REFERENCES gongyingshang, biaozhun_jia numeric(12,2) NOT NULL, kucun int NOT NULL, shifou_wujun boolean NOT NULL, zhuce_daoqi date
);
COMMENT ON TABLE chanpin IS '产品（医疗器械）';
COMMENT ON COLUMN chanpin.id IS '产品编号';
COMMENT ON COLUMN chanpin.bianma IS '产品编码';
COMMENT ON COLUMN chanpin.mingcheng IS '产品名称';
COMMENT ON COLUMN chanpin.leibie IS '产品类别：影像设备、监护设备、手术器械、检验设备、耗材、康复器械';
COMMENT ON COLUMN chanpin.guanli_leibie IS '管理类别：1=一类，2=二类，3=三类';
COMMENT ON COLUMN chanpin.gongyingshang_id IS '供应商编号';
COMMENT ON COLUMN chanpin.biaozhun_jia IS '标准价（元）';
COMMENT ON COLUMN chanpin.kucun IS '库存数量';
COMMENT ON COLUMN chanpin.shifou_wujun IS '是否无菌产品';
COMMENT ON COLUMN chanpin.zhuce_daoqi IS '注册证到期日期，一类备案产品为空';

CREATE TABLE yiyuan (
  id int PRIMARY KEY, mingcheng text NOT NULL, chengshi text NOT NULL, dengji text NOT NULL, chuangwei int, kaihu_riqi date NOT NULL, zhangqi_tian int NOT NULL
);
COMMENT ON TABLE yiyuan IS '医院客户';
COMMENT ON COLUMN yiyuan.id IS '医院编号';
COMMENT ON COLUMN yiyuan.mingcheng IS '医院名称';
COMMENT ON COLUMN yiyuan.chengshi IS '所在城市';
COMMENT ON COLUMN yiyuan.dengji IS '医院等级：三甲、三乙、二甲、社区';
COMMENT ON COLUMN yiyuan.chuangwei IS '床位数';
COMMENT ON COLUMN yiyuan.kaihu_riqi IS '开户日期';
COMMENT ON COLUMN yiyuan.zhangqi_tian IS '账期（天）';

CREATE TABLE yewuyuan (
  id int PRIMARY KEY, xingming text NOT NULL, daqu text NOT NULL, shouji text, ruzhi_riqi date NOT NULL, lizhi_riqi date, tichengdian numeric(4,2) NOT NULL
);
COMMENT ON TABLE yewuyuan IS '业务员';
COMMENT ON COLUMN yewuyuan.id IS '业务员编号';
COMMENT ON COLUMN yewuyuan.xingming IS '姓名';
COMMENT ON COLUMN yewuyuan.daqu IS '负责大区';
COMMENT ON COLUMN yewuyuan.shouji IS '手机号';
COMMENT ON COLUMN yewuyuan.ruzhi_riqi IS '入职日期';
COMMENT ON COLUMN yewuyuan.lizhi_riqi IS '离职日期，在职为空';
COMMENT ON COLUMN yewuyuan.tichengdian IS '提成点（%）';

CREATE TABLE dingdan (
  id int PRIMARY KEY, yiyuan_id int NOT NULL REFERENCES yiyuan, yewuyuan_id int NOT NULL REFERENCES yewuyuan, xiadan_riqi date NOT NULL,
  zhuangtai smallint NOT NULL, jine numeric(14,2) NOT NULL DEFAULT 0, shifou_jiaji boolean NOT NULL, beizhu text
);
COMMENT ON TABLE dingdan IS '销售订单';
COMMENT ON COLUMN dingdan.id IS '订单编号';
COMMENT ON COLUMN dingdan.yiyuan_id IS '医院编号';
COMMENT ON COLUMN dingdan.yewuyuan_id IS '业务员编号';
COMMENT ON COLUMN dingdan.xiadan_riqi IS '下单日期';
COMMENT ON COLUMN dingdan.zhuangtai IS '订单状态：1=待审核，2=待发货，3=已发货，4=已签收，9=已取消';
COMMENT ON COLUMN dingdan.jine IS '订单金额（元）';
COMMENT ON COLUMN dingdan.shifou_jiaji IS '是否加急';
COMMENT ON COLUMN dingdan.beizhu IS '备注';

CREATE TABLE dingdan_mingxi (
  id int PRIMARY KEY, dingdan_id int NOT NULL REFERENCES dingdan, chanpin_id int NOT NULL REFERENCES chanpin, shuliang int NOT NULL, danjia numeric(12,2) NOT NULL
);
COMMENT ON TABLE dingdan_mingxi IS '订单明细';
COMMENT ON COLUMN dingdan_mingxi.id IS '明细编号';
COMMENT ON COLUMN dingdan_mingxi.dingdan_id IS '订单编号';
COMMENT ON COLUMN dingdan_mingxi.chanpin_id IS '产品编号';
COMMENT ON COLUMN dingdan_mingxi.shuliang IS '数量';
COMMENT ON COLUMN dingdan_mingxi.danjia IS '成交单价（元）';

CREATE TABLE huikuan (
  id int PRIMARY KEY, dingdan_id int NOT NULL REFERENCES dingdan, huikuan_riqi date NOT NULL, jine numeric(14,2) NOT NULL, fangshi char(2) NOT NULL
);
COMMENT ON TABLE huikuan IS '回款记录';
COMMENT ON COLUMN huikuan.id IS '回款编号';
COMMENT ON COLUMN huikuan.dingdan_id IS '订单编号';
COMMENT ON COLUMN huikuan.huikuan_riqi IS '回款日期';
COMMENT ON COLUMN huikuan.jine IS '回款金额（元）';
COMMENT ON COLUMN huikuan.fangshi IS '回款方式：ZZ=银行转账，CD=承兑汇票，ZP=支票';

CREATE TABLE baoxiu (
  id int PRIMARY KEY, yiyuan_id int NOT NULL REFERENCES yiyuan, chanpin_id int NOT NULL REFERENCES chanpin, baoxiu_shijian timestamp NOT NULL, wancheng_shijian timestamp,
  guzhang text NOT NULL, zhuangtai smallint NOT NULL, weixiu_fei numeric(10,2), shifou_baonei boolean NOT NULL, pingfen smallint
);
COMMENT ON TABLE baoxiu IS '售后报修单';
COMMENT ON COLUMN baoxiu.id IS '报修单号';
COMMENT ON COLUMN baoxiu.yiyuan_id IS '医院编号';
COMMENT ON COLUMN baoxiu.chanpin_id IS '产品编号';
COMMENT ON COLUMN baoxiu.baoxiu_shijian IS '报修时间';
COMMENT ON COLUMN baoxiu.wancheng_shijian IS '完成时间，未完成为空';
COMMENT ON COLUMN baoxiu.guzhang IS '故障类型';
COMMENT ON COLUMN baoxiu.zhuangtai IS '报修状态：0=待派工，1=维修中，2=已完成';
COMMENT ON COLUMN baoxiu.weixiu_fei IS '维修费（元），未完成为空';
COMMENT ON COLUMN baoxiu.shifou_baonei IS '是否在保修期内';
COMMENT ON COLUMN baoxiu.pingfen IS '客户评分，1到5分，未评价为空';

INSERT INTO gongyingshang VALUES
(1,'迈瑞生物','广东','国产','2016-03-01',true),(2,'联影医疗','上海','国产','2018-05-12',true),(3,'鱼跃医疗','江苏','国产','2015-09-20',true),
(4,'威高集团','山东','国产','2014-06-08',true),(5,'新华医疗','山东','国产','2017-11-15',false),(6,'理邦仪器','广东','国产','2019-02-28',true),
(7,'开立医疗','广东','国产','2020-07-01',true),(8,'万东医疗','北京','国产','2018-10-10',true),(9,'安图生物','河南','国产','2021-04-06',true),
(10,'伟思医疗','江苏','国产','2022-01-18',true),(11,'康德莱','上海','国产','2016-12-05',true),(12,'驼人集团','河南','国产','2019-08-23',false),
(13,'西门子医疗',NULL,'进口','2015-01-10',true),(14,'飞利浦医疗',NULL,'进口','2015-06-30',true),(15,'GE医疗',NULL,'进口','2016-02-14',true),
(16,'奥林巴斯',NULL,'进口','2017-07-07',false),(17,'罗氏诊断',NULL,'进口','2020-03-16',true),(18,'强生医疗',NULL,'进口','2018-09-09',true),
(19,'翔宇医疗','河南','国产','2023-05-25',true),(20,'华大智造','广东','国产','2024-02-20',true);

INSERT INTO chanpin VALUES
(1,'JH001','多参数监护仪','监护设备',2,1,18500,36,false,'2026-05-01'),(2,'JH002','中央监护系统','监护设备',2,1,96000,4,false,'2026-05-01'),
(3,'JH003','胎儿监护仪','监护设备',2,6,22800,12,false,'2025-11-30'),(4,'JH004','心电图机','监护设备',2,6,9800,25,false,'2027-03-15'),
(5,'JH005','转运监护仪','监护设备',3,14,42000,7,false,'2026-08-20'),(6,'YX001','便携式彩超','影像设备',2,7,138000,5,false,'2027-01-10'),
(7,'YX002','全身CT','影像设备',3,2,3650000,1,false,'2028-04-01'),(8,'YX003','移动DR','影像设备',2,8,415000,3,false,'2026-02-28'),
(9,'YX004','核磁共振系统','影像设备',3,13,7800000,0,false,'2027-09-09'),(10,'YX005','台式彩超','影像设备',2,15,560000,2,false,'2026-12-12'),
(11,'YX006','C形臂X光机','影像设备',2,8,298000,2,false,'2025-10-18'),(12,'SS001','电子内窥镜','手术器械',2,16,365000,3,false,'2025-12-31'),
(13,'SS002','腔镜切割吻合器','手术器械',3,18,2650,140,true,'2027-06-06'),(14,'SS003','手术无影灯','手术器械',1,5,38600,6,false,NULL),
(15,'SS004','高频电刀','手术器械',3,4,45800,8,false,'2026-07-22'),(16,'SS005','手术剪','手术器械',1,5,128,420,false,NULL),
(17,'SS006','超声刀头','手术器械',3,18,3980,95,true,'2028-01-01'),(18,'JY001','化学发光仪','检验设备',2,9,520000,2,false,'2027-10-01'),
(19,'JY002','血球分析仪','检验设备',2,1,168000,5,false,'2026-09-15'),(20,'JY003','生化分析仪','检验设备',2,17,890000,1,false,'2027-02-02'),
(21,'JY004','基因测序仪','检验设备',3,20,1980000,0,false,'2028-08-08'),(22,'JY005','血糖仪','检验设备',2,3,320,610,false,'2026-03-03'),
(23,'HC001','一次性注射器','耗材',3,11,1.20,86000,true,'2027-05-05'),(24,'HC002','留置针','耗材',3,4,9.60,23500,true,'2027-12-01'),
(25,'HC003','输液器','耗材',3,4,3.80,41000,true,'2026-11-11'),(26,'HC004','医用口罩','耗材',2,12,0.85,120000,true,'2026-06-30'),
(27,'HC005','导尿包','耗材',2,12,21.50,3600,true,'2025-09-30'),(28,'HC006','医用纱布','耗材',2,4,5.20,0,true,'2027-04-18'),
(29,'HC007','检查手套','耗材',1,11,0.60,54000,false,NULL),(30,'KF001','低频治疗仪','康复器械',2,10,16800,9,false,'2026-10-10'),
(31,'KF002','盆底康复仪','康复器械',2,10,68500,4,false,'2027-07-17'),(32,'KF003','电动起立床','康复器械',1,19,23900,5,false,NULL),
(33,'KF004','制氧机','康复器械',2,3,3280,48,false,'2026-04-24'),(34,'KF005','轮椅','康复器械',1,3,860,75,false,NULL),
(35,'KF006','上下肢训练器','康复器械',2,19,31500,3,false,'2027-11-20');

INSERT INTO yiyuan
SELECT i, c||nm, c, CASE WHEN nm IN ('市第一人民医院','市中心医院') THEN '三甲' WHEN nm IN ('市中医院','市妇幼保健院') THEN '三乙' WHEN nm IN ('骨科医院','市第三人民医院') THEN '二甲' ELSE '社区' END,
 CASE WHEN nm LIKE '%社区%' AND i%3<>0 THEN NULL WHEN nm LIKE '%社区%' THEN 20+pg_temp.r('cw'||i,40) WHEN nm IN ('市第一人民医院','市中心医院') THEN 1000+pg_temp.r('cw'||i,1600) WHEN nm IN ('市中医院','市妇幼保健院') THEN 500+pg_temp.r('cw'||i,500) ELSE 200+pg_temp.r('cw'||i,300) END,
 date '2016-02-01'+pg_temp.r('kh'||i,2450), (ARRAY[30,60,90,90,120,180])[1+pg_temp.r('zq'||i,6)]
FROM (SELECT row_number() OVER (ORDER BY b,a) i, c, nm FROM unnest(ARRAY['杭州','宁波','温州','嘉兴','绍兴','南京','苏州','合肥']) WITH ORDINALITY x(c,a),
 unnest(ARRAY['市第一人民医院','市中心医院','市中医院','市妇幼保健院','骨科医院','市第三人民医院','城东社区卫生服务中心','城南社区卫生服务中心']) WITH ORDINALITY y(nm,b)) s
WHERE i NOT IN (17,29,38,45,50,61);
UPDATE yiyuan SET chuangwei=2860 WHERE id=3;

INSERT INTO yewuyuan
SELECT i,(ARRAY['陈伟','王芳','李强','张敏','刘洋','赵磊','孙丽','周杰','吴娟','郑浩','钱勇','沈佳','徐静','何平','朱琳','马超','林峰','郭婷','罗军','梁艳','宋凯','唐颖','许波','韩雪'])[i],
 (ARRAY['浙北','浙南','苏南','安徽','浙北','浙南','苏南'])[1+(i%7)], CASE WHEN i%8=3 THEN NULL ELSE '138'||lpad(pg_temp.r('sj'||i,100000000)::text,8,'0') END,
 date '2017-03-01'+pg_temp.r('rz'||i,2100), CASE WHEN i IN (5,14,20) THEN date '2024-11-30'+i*8 END, 1.5+pg_temp.r('tc'||i,9)*0.25
FROM generate_series(1,24) i;
UPDATE yewuyuan SET ruzhi_riqi='2024-03-18' WHERE id=23; UPDATE yewuyuan SET ruzhi_riqi='2025-02-10' WHERE id=24;

INSERT INTO dingdan
SELECT i, y, CASE WHEN pg_temp.r('yw'||i,5)=0 THEN 1+pg_temp.r('yx'||i,22) ELSE 1+least(pg_temp.r('yy'||i,22),pg_temp.r('yz'||i,22)) END,
 date '2023-01-05'+(i*1.72)::int,
 CASE WHEN i>560 THEN 1+pg_temp.r('zt'||i,3) WHEN pg_temp.r('zt'||i,15)=0 THEN 9 WHEN pg_temp.r('zt'||i,60)=7 THEN 3 ELSE 4 END, 0,
 pg_temp.r('jj'||i,7)=0, CASE WHEN pg_temp.r('bz'||i,5)=0 THEN (ARRAY['需送货上楼','发票随货','请提前电话联系','周末不收货'])[1+pg_temp.r('bt'||i,4)] END
FROM (SELECT i,(SELECT id FROM yiyuan WHERE id NOT IN (9,33,58,64) ORDER BY md5('dd'||g.i||'-'||id) LIMIT 1) y FROM generate_series(1,600) g(i)) s;

INSERT INTO dingdan_mingxi
SELECT row_number() OVER (ORDER BY d.id,p.id), d.id, p.id,
 CASE WHEN p.biaozhun_jia<30 THEN 200+pg_temp.r('sl'||d.id||'.'||p.id,60)*50 WHEN p.biaozhun_jia<5000 THEN 2+pg_temp.r('sl'||d.id||'.'||p.id,30) WHEN p.biaozhun_jia<100000 THEN 1+pg_temp.r('sl'||d.id||'.'||p.id,4) ELSE 1 END,
 round(p.biaozhun_jia*(0.85+pg_temp.r('dj'||d.id||'.'||p.id,14)*0.01),2)
FROM dingdan d JOIN yiyuan y ON y.id=d.yiyuan_id JOIN LATERAL (SELECT DISTINCT CASE WHEN y.dengji='社区' AND q.pid IN (7,8,10,12,18,19,20) THEN 22 ELSE q.pid END pid FROM (SELECT (ARRAY[1,1,1,2,3,4,4,5,6,8,10,12,13,13,14,15,16,17,18,19,20,22,22,23,23,23,24,24,25,25,26,26,27,28,29,29,30,31,33,33,34,34,35,7])[1+pg_temp.r('cp'||d.id||'.'||k,44)] pid FROM generate_series(1,2) k WHERE k=1 OR pg_temp.r('ck'||d.id,3)<2) q) x ON true
JOIN chanpin p ON p.id=x.pid;
UPDATE dingdan d SET jine=s.j FROM (SELECT dingdan_id,sum(shuliang*danjia) j FROM dingdan_mingxi GROUP BY 1) s WHERE s.dingdan_id=d.id;

INSERT INTO huikuan
SELECT row_number() OVER (ORDER BY d.id), d.id, d.xiadan_riqi+20+pg_temp.r('hk'||d.id,120), round(d.jine*(CASE WHEN pg_temp.r('hj'||d.id,3)=0 THEN 0.6 ELSE 1 END),2), (ARRAY['ZZ','ZZ','ZZ','CD','ZP','ZZ'])[1+pg_temp.r('hf'||d.id,6)]
FROM dingdan d WHERE zhuangtai=4 AND pg_temp.r('hx'||d.id,8)<6;

INSERT INTO baoxiu
SELECT i, y, p, t, CASE WHEN zt=2 THEN t+(4+pg_temp.r('bw'||i,150))*interval '1 hour' END,
 (ARRAY['无法开机','显示异常','配件损坏','报警误报','软件故障','精度偏差'])[1+least(pg_temp.r('gz'||i,6),pg_temp.r('gy'||i,7))], zt,
 CASE WHEN zt=2 THEN CASE WHEN bn THEN 0 ELSE 200+pg_temp.r('wf'||i,160)*50 END END, bn,
 CASE WHEN zt=2 AND pg_temp.r('pf'||i,4)>0 THEN (ARRAY[2,3,4,4,5,5,5,1])[1+pg_temp.r('pg'||i,8)] END
FROM (SELECT i,(SELECT id FROM yiyuan ORDER BY md5('bx'||g.i||'-'||id) LIMIT 1) y,
 (ARRAY[1,1,2,3,4,5,6,6,8,10,12,12,14,15,18,19,19,20,30,31,33,35,7])[1+pg_temp.r('bp'||i,23)] p,
 timestamp '2023-01-09 08:30'+(i*3.9)::int*interval '1 day'+pg_temp.r('bs'||i,34)*interval '15 minutes' t,
 CASE WHEN i>235 THEN pg_temp.r('bz'||i,3) WHEN pg_temp.r('bz'||i,30)=0 THEN 1 ELSE 2 END zt, pg_temp.r('bn'||i,9)<5 bn FROM generate_series(1,260) g(i)) s;
UPDATE baoxiu SET weixiu_fei=12600 WHERE id=(SELECT min(id) FROM baoxiu WHERE id>100 AND zhuangtai=2 AND NOT shifou_baonei);

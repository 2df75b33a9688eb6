-- 水务公司
CREATE TABLE pianqu (
  pq_id integer PRIMARY KEY,
  pq_mc varchar(40) NOT NULL UNIQUE,
  xzq varchar(20) NOT NULL,
  fw_rk integer NOT NULL,
  gw_cd numeric(8,2) NOT NULL,
  sf_ecgs boolean NOT NULL,
  ty_rq date NOT NULL
);
COMMENT ON TABLE pianqu IS '供水片区';
COMMENT ON COLUMN pianqu.pq_id IS '片区编号';
COMMENT ON COLUMN pianqu.pq_mc IS '片区名称';
COMMENT ON COLUMN pianqu.xzq IS '所属行政区';
COMMENT ON COLUMN pianqu.fw_rk IS '服务人口(人)';
COMMENT ON COLUMN pianqu.gw_cd IS '管网长度(公里)';
COMMENT ON COLUMN pianqu.sf_ecgs IS '是否二次供水';
COMMENT ON COLUMN pianqu.ty_rq IS '投用日期';

CREATE TABLE yuangong (
  yg_id integer PRIMARY KEY,
  xm varchar(20) NOT NULL,
  xb char(1) NOT NULL,
  gw varchar(20) NOT NULL,
  pq_id integer REFERENCES pianqu(pq_id),
  rz_rq date NOT NULL,
  yx numeric(10,2) NOT NULL,
  zt smallint NOT NULL
);
COMMENT ON TABLE yuangong IS '员工';
COMMENT ON COLUMN yuangong.yg_id IS '员工编号';
COMMENT ON COLUMN yuangong.xm IS '姓名';
COMMENT ON COLUMN yuangong.xb IS '性别：M男，F女';
COMMENT ON COLUMN yuangong.gw IS '岗位';
COMMENT ON COLUMN yuangong.pq_id IS '负责片区，公司本部员工为空';
COMMENT ON COLUMN yuangong.rz_rq IS '入职日期';
COMMENT ON COLUMN yuangong.yx IS '月薪(元)';
COMMENT ON COLUMN yuangong.zt IS '在职状态：1在职 2休假 3离职';

CREATE TABLE yonghu (
  yh_id integer PRIMARY KEY,
  hh varchar(12) NOT NULL UNIQUE,
  hm varchar(40) NOT NULL,
  yh_lx varchar(10) NOT NULL,
  pq_id integer NOT NULL REFERENCES pianqu(pq_id),
  lxdh varchar(20),
  kh_rq date NOT NULL,
  sf_dkf boolean NOT NULL,
  zt smallint NOT NULL
);
COMMENT ON TABLE yonghu IS '用水户';
COMMENT ON COLUMN yonghu.yh_id IS '用户编号';
COMMENT ON COLUMN yonghu.hh IS '户号';
COMMENT ON COLUMN yonghu.hm IS '户名';
COMMENT ON COLUMN yonghu.yh_lx IS '用水性质：居民、商业、工业、行政事业';
COMMENT ON COLUMN yonghu.pq_id IS '所属片区';
COMMENT ON COLUMN yonghu.lxdh IS '联系电话';
COMMENT ON COLUMN yonghu.kh_rq IS '开户日期';
COMMENT ON COLUMN yonghu.sf_dkf IS '是否签约代扣水费';
COMMENT ON COLUMN yonghu.zt IS '用户状态：0正常 1报停 2销户';

CREATE TABLE shuibiao (
  sb_id integer PRIMARY KEY,
  bh varchar(16) NOT NULL UNIQUE,
  yh_id integer NOT NULL REFERENCES yonghu(yh_id),
  sb_lx varchar(20) NOT NULL,
  kj integer NOT NULL,
  cj varchar(30) NOT NULL,
  az_rq date NOT NULL,
  jd_rq date
);
COMMENT ON TABLE shuibiao IS '水表';
COMMENT ON COLUMN shuibiao.sb_id IS '水表编号';
COMMENT ON COLUMN shuibiao.bh IS '表号';
COMMENT ON COLUMN shuibiao.yh_id IS '用户编号';
COMMENT ON COLUMN shuibiao.sb_lx IS '水表类型：机械表、远传表、IC卡表';
COMMENT ON COLUMN shuibiao.kj IS '口径(毫米)';
COMMENT ON COLUMN shuibiao.cj IS '生产厂家';
COMMENT ON COLUMN shuibiao.az_rq IS '安装日期';
COMMENT ON COLUMN shuibiao.jd_rq IS '最近检定日期，未检定为空';

CREATE TABLE chaobiao (
  cb_id integer PRIMARY KEY,
  sb_id integer NOT NULL REFERENCES shuibiao(sb_id),
  cb_rq date NOT NULL,
  sc_ds integer NOT NULL,
  bc_ds integer NOT NULL,
  cby_id integer NOT NULL REFERENCES yuangong(yg_id),
  sf_gc boolean NOT NULL,
  bz varchar(50)
);
COMMENT ON TABLE chaobiao IS '抄表记录';
COMMENT ON COLUMN chaobiao.cb_id IS '抄表编号';
COMMENT ON COLUMN chaobiao.sb_id IS '水表编号';
COMMENT ON COLUMN chaobiao.cb_rq IS '抄表日期';
COMMENT ON COLUMN chaobiao.sc_ds IS '上次读数(吨)';
COMMENT ON COLUMN chaobiao.bc_ds IS '本次读数(吨)';
COMMENT ON COLUMN chaobiao.cby_id IS '抄表员';
COMMENT ON COLUMN chaobiao.sf_gc IS '是否估抄';
COMMENT ON COLUMN chaobiao.bz IS '备注';

CREATE TABLE zhangdan (
  zd_id integer PRIMARY KEY,
  yh_id integer NOT NULL REFERENCES yonghu(yh_id),
  zq date NOT NULL,
  sl integer NOT NULL,
  sf numeric(10,2) NOT NULL,
  wsf numeric(10,2) NOT NULL,
  znj numeric(10,2) NOT NULL DEFAULT 0,
  jf_zt smallint NOT NULL,
  jf_sj timestamp,
  jf_fs varchar(10)
);
COMMENT ON TABLE zhangdan IS '水费账单';
COMMENT ON COLUMN zhangdan.zd_id IS '账单编号';
COMMENT ON COLUMN zhangdan.yh_id IS '用户编号';
COMMENT ON COLUMN zhangdan.zq IS '账期(每月1日)';
COMMENT ON COLUMN zhangdan.sl IS '用水量(吨)';
COMMENT ON COLUMN zhangdan.sf IS '水费(元)';
COMMENT ON COLUMN zhangdan.wsf IS '污水处理费(元)';
COMMENT ON COLUMN zhangdan.znj IS '滞纳金(元)';
COMMENT ON COLUMN zhangdan.jf_zt IS '缴费状态：0未缴 1已缴 2减免';
COMMENT ON COLUMN zhangdan.jf_sj IS '缴费时间';
COMMENT ON COLUMN zhangdan.jf_fs IS '缴费方式：微信、支付宝、银行代扣、营业厅';

CREATE TABLE gongdan (
  gd_id integer PRIMARY KEY,
  gd_bh varchar(20) NOT NULL UNIQUE,
  pq_id integer NOT NULL REFERENCES pianqu(pq_id),
  yh_id integer REFERENCES yonghu(yh_id),
  gd_lx varchar(20) NOT NULL,
  jj_cd smallint NOT NULL,
  bx_sj timestamp NOT NULL,
  wg_sj timestamp,
  zt smallint NOT NULL,
  wx_fy numeric(10,2),
  myd smallint,
  is_deleted boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE gongdan IS '维修工单';
COMMENT ON COLUMN gongdan.gd_id IS '工单ID';
COMMENT ON COLUMN gongdan.gd_bh IS '工单编号';
COMMENT ON COLUMN gongdan.pq_id IS '所在片区';
COMMENT ON COLUMN gongdan.yh_id IS '报修用户，公共管网报修为空';
COMMENT ON COLUMN gongdan.gd_lx IS '工单类型：爆管、漏水、换表、水质投诉、水压不足';
COMMENT ON COLUMN gongdan.jj_cd IS '紧急程度：1一般 2紧急 3特急';
COMMENT ON COLUMN gongdan.bx_sj IS '报修时间';
COMMENT ON COLUMN gongdan.wg_sj IS '完工时间';
COMMENT ON COLUMN gongdan.zt IS '工单状态：1待派单 2处理中 3已完工 4已取消';
COMMENT ON COLUMN gongdan.wx_fy IS '维修费用(元)';
COMMENT ON COLUMN gongdan.myd IS '满意度评分(1-5)，未回访为空';
COMMENT ON COLUMN gongdan.is_deleted IS '逻辑删除标志';

CREATE TABLE gongdan_yuangong (
  gd_id integer NOT NULL REFERENCES gongdan(gd_id),
  yg_id integer NOT NULL REFERENCES yuangong(yg_id),
  js varchar(10) NOT NULL,
  gs numeric(5,1) NOT NULL,
  PRIMARY KEY (gd_id, yg_id)
);
COMMENT ON TABLE gongdan_yuangong IS '工单参与人员';
COMMENT ON COLUMN gongdan_yuangong.gd_id IS '工单ID';
COMMENT ON COLUMN gongdan_yuangong.yg_id IS '员工编号';
COMMENT ON COLUMN gongdan_yuangong.js IS '角色：主修、协助';
COMMENT ON COLUMN gongdan_yuangong.gs IS '工时(小时)';

CREATE FUNCTION seed_r(s text) RETURNS numeric LANGUAGE sql IMMUTABLE AS
$$ SELECT (('x'||substr(md5(s),1,8))::bit(32)::bigint)::numeric/4294967296 $$;

INSERT INTO pianqu
SELECT i, (array['翠湖','东风','南塘','滨江','高新','柳林','石桥','玉泉','城西','新港','白云','红旗','金沙','清河','文昌','凤凰','长岭','桃园','临港','梅溪','龙泉'])[i]||'片区',
 (array['东湖区','东湖区','南山区','江北区','高新区','东湖区','南山区','江北区','南山区','高新区','江北区'])[1+(i-1)%11],
 3200+floor(seed_r('rk'||i)*46000)::int, round(12+seed_r('gw'||i)*88,2), seed_r('ec'||i)<0.4,
 date '2023-01-10'+floor(seed_r('ty'||i)*300)::int
FROM generate_series(1,21) i;

INSERT INTO yuangong
SELECT i,
 (array['王','李','张','刘','陈','杨','赵','黄','周','吴','徐','孙'])[1+(i-1)%12]||(array['建国','丽华','志强','晓燕','海涛','敏','国庆','春梅','浩然','雪','永刚','佳怡','文斌'])[1+(i-1)%13],
 CASE WHEN (i-1)%13 IN (1,3,5,7,9,11) THEN 'F' ELSE 'M' END,
 CASE WHEN i<=14 THEN '抄表员' WHEN i<=36 THEN '维修工' WHEN i<=41 THEN '客服' WHEN i<=44 THEN '水质化验员' ELSE '管理人员' END,
 CASE WHEN i<=36 THEN 1+(i*4)%21 END,
 date '2023-01-15'+floor(seed_r('rz'||i)*820)::int,
 CASE WHEN i<=14 THEN 4200 WHEN i<=36 THEN 5200 WHEN i<=41 THEN 4500 WHEN i<=44 THEN 6500 ELSE 9000 END+floor(seed_r('yx'||i)*180)*10,
 CASE WHEN seed_r('yz'||i)<0.74 THEN 1 WHEN seed_r('yz'||i)<0.86 THEN 2 ELSE 3 END
FROM generate_series(1,48) i;

INSERT INTO yonghu
SELECT i, 'H'||lpad((100300+i*7)::text,7,'0'),
 CASE lx WHEN '居民' THEN (array['王','李','张','刘','陈','杨','赵','黄','周','吴','徐','孙','马','朱','胡','郭','何','林'])[1+i%18]||(array['秀英','伟','芳','娜','秀兰','静','强','磊','军','洋','勇','艳','杰','娟','涛','明','超','霞','平','刚','桂英'])[1+(i/18*2+i%18)%21]
   WHEN '商业' THEN (array['旺角','鸿运','福满楼','喜来','聚香','悦客'])[1+rn%6]||(array['酒店','超市','火锅店','洗车行','美容院'])[1+rn%5]
   WHEN '工业' THEN (array['恒力','鑫源','华泰','永盛','远大'])[1+rn%5]||(array['化工厂','食品厂','纺织厂','机械厂','印染厂','电子厂'])[1+rn%6]
   ELSE (array['第一','第二','第三','实验','中心'])[1+rn%5]||(array['小学','医院','中学','幼儿园','社区服务站','派出所'])[1+rn%6] END,
 lx, 1+floor(power(seed_r('yp'||i),1.25)*20)::int,
 CASE WHEN seed_r('yd'||i)<0.83 THEN '1'||(3000000000+floor(seed_r('yd2'||i)*6999999999)::bigint)::text END,
 date '2023-01-05'+floor(seed_r('yk'||i)*500)::int,
 seed_r('dk'||i)<0.38,
 CASE WHEN seed_r('yzt'||i)<0.85 THEN 0 WHEN seed_r('yzt'||i)<0.93 THEN 1 ELSE 2 END
FROM (SELECT i, lx, row_number() OVER (PARTITION BY lx ORDER BY i)::int rn FROM (SELECT i, CASE WHEN seed_r('lx'||i)<0.64 THEN '居民' WHEN seed_r('lx'||i)<0.83 THEN '商业' WHEN seed_r('lx'||i)<0.92 THEN '工业' ELSE '行政事业' END lx FROM generate_series(1,180) i) a0) a;

INSERT INTO shuibiao
SELECT row_number() OVER (ORDER BY yh_id,k), 'SB'||(24000+yh_id*11+k), yh_id,
 CASE WHEN seed_r('sl'||yh_id||'-'||k)<0.42 THEN '机械表' WHEN seed_r('sl'||yh_id||'-'||k)<0.8 THEN '远传表' ELSE 'IC卡表' END,
 CASE WHEN yh_lx='居民' THEN (array[15,15,15,20])[1+floor(seed_r('sk'||yh_id||k)*4)::int] ELSE (array[25,40,50,80,100])[1+floor(seed_r('sk'||yh_id||k)*5)::int] END,
 (array['宁波水表','三川智慧','新天科技','宁波水表','汇中仪表'])[1+floor(seed_r('sc'||yh_id||k)*5)::int],
 kh_rq+2+floor(seed_r('sa'||yh_id||k)*20)::int+(k-1)*45,
 CASE WHEN seed_r('sj'||yh_id||k)<0.55 THEN date '2024-07-01'+floor(seed_r('sj2'||yh_id||k)*420)::int END
FROM yonghu CROSS JOIN generate_series(1,3) k
WHERE (k=1 AND yh_id%23<>0) OR (yh_lx<>'居民' AND yh_id%23<>0 AND seed_r('sn'||yh_id||k)<0.3);

INSERT INTO chaobiao
SELECT row_number() OVER (ORDER BY cb_rq,sb_id), sb_id, cb_rq, ds0+coalesce(sum(yl) OVER (PARTITION BY sb_id ORDER BY cb_rq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),0),
 ds0+sum(yl) OVER (PARTITION BY sb_id ORDER BY cb_rq), cby, seed_r('cg'||sb_id||cb_rq)<0.11,
 CASE WHEN seed_r('cz'||sb_id||cb_rq)<0.09 THEN (array['表井积水','表盘模糊','门锁未抄见','用水量突增'])[1+floor(seed_r('cz2'||sb_id||cb_rq)*4)::int] END
FROM (SELECT s.sb_id, (m::date+2+floor(seed_r('cr'||s.sb_id||m)*24)::int) cb_rq, floor(seed_r('d0'||s.sb_id)*300)::int ds0,
   1+floor(seed_r('cy'||s.sb_id)*13)::int cby,
   CASE y.yh_lx WHEN '居民' THEN 6+floor(seed_r('cl'||s.sb_id||m)*52) WHEN '商业' THEN 40+floor(seed_r('cl'||s.sb_id||m)*420) WHEN '工业' THEN 300+floor(seed_r('cl'||s.sb_id||m)*2600) ELSE 90+floor(seed_r('cl'||s.sb_id||m)*700) END::int yl
  FROM shuibiao s JOIN yonghu y USING (yh_id) CROSS JOIN generate_series(timestamp '2024-09-01', timestamp '2025-05-01', interval '2 months') m
  WHERE y.zt<>2 AND s.az_rq<m::date AND seed_r('cx'||s.sb_id||m)<0.93 AND s.sb_id%31<>0) a;

INSERT INTO zhangdan
SELECT row_number() OVER (ORDER BY zq,yh_id), yh_id, zq, sl, round(sl*dj,2), round(sl*wdj,2),
 CASE WHEN late THEN round(sl*dj*(0.01+seed_r('zn'||yh_id||zq)*0.07),2) ELSE 0 END,
 zt, CASE WHEN zt=1 THEN zq+interval '1 month'+(CASE WHEN late THEN 25+floor(seed_r('zj'||yh_id||zq)*40) ELSE 2+floor(seed_r('zj'||yh_id||zq)*21) END)*interval '1 day'+interval '8 hours'+floor(seed_r('zjm'||yh_id||zq)*700)*interval '1 minute' END,
 CASE WHEN zt=1 THEN CASE WHEN sf_dkf THEN '银行代扣' ELSE (array['微信','微信','微信','支付宝','支付宝','营业厅'])[1+floor(seed_r('zf'||yh_id||zq)*6)::int] END END
FROM (
 SELECT yh_id, zq, sf_dkf, late, sl, dj, wdj, CASE WHEN seed_r('zz'||yh_id||zq)<0.03 THEN 2 WHEN seed_r('zz'||yh_id||zq)<0.13 THEN 0 ELSE 1 END zt FROM (
 SELECT y.yh_id, m::date zq, y.sf_dkf, seed_r('zl'||y.yh_id||m)<0.14 late,
  CASE y.yh_lx WHEN '居民' THEN 3+floor(seed_r('zs'||y.yh_id||m)*28) WHEN '商业' THEN 20+floor(seed_r('zs'||y.yh_id||m)*230) WHEN '工业' THEN 150+floor(seed_r('zs'||y.yh_id||m)*1400) ELSE 50+floor(seed_r('zs'||y.yh_id||m)*380) END::int sl,
  CASE y.yh_lx WHEN '居民' THEN 2.85 WHEN '商业' THEN 4.30 WHEN '工业' THEN 4.10 ELSE 3.60 END dj,
  CASE y.yh_lx WHEN '居民' THEN 0.95 ELSE 1.40 END wdj
 FROM yonghu y CROSS JOIN generate_series(timestamp '2023-06-01', timestamp '2025-06-01', interval '1 month') m
 WHERE y.kh_rq<m::date AND y.yh_id%19<>0 AND seed_r('zx'||y.yh_id||m)<CASE WHEN y.zt=2 THEN 0.06 ELSE 0.27 END) a) b;

INSERT INTO gongdan
SELECT i, 'GD'||to_char(bx,'YYYYMM')||lpad(i::text,4,'0'), pq, yh, lx, jj, bx,
 CASE WHEN zt=3 THEN bx+interval '40 minutes'+floor(power(seed_r('gw'||i),2)*CASE jj WHEN 3 THEN 1400 WHEN 2 THEN 4000 ELSE 9000 END)*interval '1 minute' END,
 zt, CASE WHEN zt=3 AND seed_r('gf'||i)<0.93 THEN round(CASE lx WHEN '爆管' THEN 1800+seed_r('gfy'||i)*9000 WHEN '漏水' THEN 150+seed_r('gfy'||i)*1900 WHEN '换表' THEN 120+seed_r('gfy'||i)*600 ELSE 60+seed_r('gfy'||i)*700 END,2) END,
 CASE WHEN zt=3 AND seed_r('gm'||i)<0.68 THEN (array[5,5,5,4,4,4,3,3,2,1])[1+floor(seed_r('gm2'||i)*10)::int] END,
 seed_r('gdel'||i)<0.06
FROM (
 SELECT i, bx, lx, yh, coalesce((SELECT pq_id FROM yonghu WHERE yh_id=a.yh), 1+floor(power(seed_r('gp'||i),1.3)*20)::int) pq,
  CASE WHEN lx='爆管' THEN 2+(seed_r('gj'||i)<0.7)::int ELSE (array[1,1,1,2,2,3])[1+floor(seed_r('gj'||i)*6)::int] END jj,
  CASE WHEN seed_r('gz'||i)<0.06 THEN 4 WHEN i>385 THEN (array[1,1,2,2,2,3])[1+floor(seed_r('gz2'||i)*6)::int] WHEN seed_r('gz'||i)<0.09 THEN 2 ELSE 3 END zt
 FROM (SELECT i, timestamp '2023-08-02'+(power((i-1)/420.0,0.88)*690)::int*interval '1 day'+floor(360+seed_r('gb'||i)*960)*interval '1 minute' bx,
   CASE WHEN seed_r('gl'||i)<0.12 THEN '爆管' WHEN seed_r('gl'||i)<0.47 THEN '漏水' WHEN seed_r('gl'||i)<0.68 THEN '换表' WHEN seed_r('gl'||i)<0.82 THEN '水质投诉' ELSE '水压不足' END lx,
   CASE WHEN seed_r('gl'||i)>=0.12 AND seed_r('gy'||i)<0.8 THEN 1+floor(power(seed_r('gyy'||i),1.4)*176)::int END yh
  FROM generate_series(1,420) i) a) b;

INSERT INTO gongdan_yuangong
SELECT g.gd_id, w.yg_id, CASE w.rn WHEN 1 THEN '主修' ELSE '协助' END, round(0.5+seed_r('gs'||g.gd_id||'-'||w.yg_id)*7,1)
FROM gongdan g CROSS JOIN LATERAL (
 SELECT yg_id, row_number() OVER (ORDER BY seed_r('gr'||g.gd_id||'-'||yg_id)*(0.35+seed_r('gq'||yg_id)) ) rn FROM yuangong WHERE gw='维修工' AND yg_id NOT IN (19,33)) w
WHERE g.zt IN (2,3) AND w.rn <= CASE WHEN g.gd_lx='爆管' THEN 3 WHEN seed_r('gn'||g.gd_id)<0.45 THEN 2 ELSE 1 END;

DROP FUNCTION seed_r(text);

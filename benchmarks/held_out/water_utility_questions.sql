-- 我们一共有多少个用水户？
SELECT count(*) FROM yonghu
-- 本次读数比上次读数多出1000吨以上的抄表记录有几条？
SELECT count(*) FROM chaobiao WHERE bc_ds-sc_ds>1000
-- 各类用水性质的用户数分别是多少
SELECT yh_lx, count(*) FROM yonghu GROUP BY yh_lx
-- 目前在职的员工有几名？
SELECT count(*) FROM yuangong WHERE zt=1
-- 列出高新区所有片区的名称
SELECT pq_mc FROM pianqu WHERE xzq='高新区'
-- 维修工的平均月薪是多少？
SELECT avg(yx) FROM yuangong WHERE gw='维修工'
-- 管网最长的片区叫什么？
SELECT pq_mc FROM pianqu ORDER BY gw_cd DESC LIMIT 1
-- 每个行政区的服务人口合计是多少？
SELECT xzq, sum(fw_rk) FROM pianqu GROUP BY xzq
-- 远传表有多少块？
SELECT count(*) FROM shuibiao WHERE sb_lx='远传表'
-- 麻烦查一下各生产厂家的水表数量
SELECT cj, count(*) FROM shuibiao GROUP BY cj
-- 还没有检定过的水表有几块？
SELECT count(*) FROM shuibiao WHERE jd_rq IS NULL
-- 未缴的账单有多少张？
SELECT count(*) FROM zhangdan WHERE jf_zt=0
-- 2024年水费总额是多少（按账期）？
SELECT sum(sf) FROM zhangdan WHERE zq>='2024-01-01' AND zq<'2025-01-01'
-- 按缴费方式统计账单数量，未缴费的不用算
SELECT jf_fs, count(*) FROM zhangdan WHERE jf_fs IS NOT NULL GROUP BY jf_fs
-- 单张账单的最高用水量是多少吨？
SELECT max(sl) FROM zhangdan
-- 已完工的维修工单有多少张？
SELECT count(*) FROM gongdan WHERE zt=3 AND NOT is_deleted
-- 各工单类型分别有多少工单？
SELECT gd_lx, count(*) FROM gongdan WHERE NOT is_deleted GROUP BY gd_lx
-- 爆管工单的平均维修费用
SELECT avg(wx_fy) FROM gongdan WHERE gd_lx='爆管' AND NOT is_deleted
-- 特急工单有几张？
SELECT count(*) FROM gongdan WHERE jj_cd=3 AND NOT is_deleted
-- 没有留联系电话的用户有多少？
SELECT count(*) FROM yonghu WHERE lxdh IS NULL
-- 哪些员工正在休假？给我姓名
SELECT xm FROM yuangong WHERE zt=2
-- 2025年3月一共抄了多少次表？
SELECT count(*) FROM chaobiao WHERE cb_rq>='2025-03-01' AND cb_rq<'2025-04-01'
-- 2024年每个季度的水费合计（按账期）
SELECT date_trunc('quarter',zq)::date, sum(sf) FROM zhangdan WHERE zq>='2024-01-01' AND zq<'2025-01-01' GROUP BY 1
-- 女员工占员工总数的百分比是多少？
SELECT 100.0*count(*) FILTER (WHERE xb='F')/count(*) FROM yuangong
-- 已经销户的用户户名有哪些？
SELECT hm FROM yonghu WHERE zt=2
-- 翠湖片区有多少用户？
SELECT count(*) FROM yonghu y JOIN pianqu p USING (pq_id) WHERE p.pq_mc='翠湖片区'
-- 帮我看看服务人口超过4万的片区有哪几个
SELECT pq_mc FROM pianqu WHERE fw_rk>40000
-- 滞纳金一共收取了多少元（只看已缴账单）？
SELECT sum(znj) FROM zhangdan WHERE jf_zt=1
-- 各岗位的员工人数
SELECT gw, count(*) FROM yuangong GROUP BY gw
-- 商业和工业用户加起来有多少户？
SELECT count(*) FROM yonghu WHERE yh_lx IN ('商业','工业')
-- 签约了代扣水费而且状态正常的用户有多少？
SELECT count(*) FROM yonghu WHERE sf_dkf AND zt=0
-- 月薪最高的5名员工是谁？按月薪从高到低列出姓名和月薪
SELECT xm, yx FROM yuangong ORDER BY yx DESC LIMIT 5
-- 2024年各月账单的用水量合计，按月份先后排列
SELECT date_trunc('month',zq)::date, sum(sl) FROM zhangdan WHERE zq>='2024-01-01' AND zq<'2025-01-01' GROUP BY 1 ORDER BY 1
-- 已缴账单占全部账单的百分比是多少？
SELECT 100.0*count(*) FILTER (WHERE jf_zt=1)/count(*) FROM zhangdan
-- 哪个片区的维修工单最多？
SELECT p.pq_mc FROM gongdan g JOIN pianqu p USING (pq_id) WHERE NOT g.is_deleted GROUP BY p.pq_id, p.pq_mc ORDER BY count(*) DESC LIMIT 1
-- 哪些用户名下没有水表？列出户名
SELECT hm FROM yonghu y WHERE NOT EXISTS (SELECT 1 FROM shuibiao s WHERE s.yh_id=y.yh_id)
-- 从来没有参与过工单的维修工是谁
SELECT xm FROM yuangong y WHERE gw='维修工' AND NOT EXISTS (SELECT 1 FROM gongdan_yuangong gy JOIN gongdan g USING (gd_id) WHERE gy.yg_id=y.yg_id AND NOT g.is_deleted)
-- 水费总额排前三的用户及其水费总额
SELECT y.hm, sum(z.sf) FROM zhangdan z JOIN yonghu y USING (yh_id) GROUP BY y.yh_id, y.hm ORDER BY sum(z.sf) DESC LIMIT 3
-- 账单水费的中位数是多少？
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY sf) FROM zhangdan
-- 账期在2024年上半年和2023年下半年的账单各有多少张？
SELECT count(*) FILTER (WHERE zq>='2024-01-01' AND zq<'2024-07-01'), count(*) FILTER (WHERE zq>='2023-07-01' AND zq<'2024-01-01') FROM zhangdan
-- 缴费最多的是星期几？按缴费笔数算
SELECT extract(isodow FROM jf_sj) FROM zhangdan WHERE jf_sj IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1
-- 月薪高于全体员工平均月薪的员工有几人？
SELECT count(*) FROM yuangong WHERE yx>(SELECT avg(yx) FROM yuangong)
-- 参与过25张以上（不含25张）工单的员工姓名
SELECT y.xm FROM gongdan_yuangong gy JOIN gongdan g USING (gd_id) JOIN yuangong y USING (yg_id) WHERE NOT g.is_deleted GROUP BY y.yg_id, y.xm HAVING count(*)>25
-- 已完工工单从报修到完工平均要多少小时？
SELECT avg(extract(epoch FROM wg_sj-bx_sj)/3600) FROM gongdan WHERE zt=3 AND NOT is_deleted
-- 拥有两块及以上水表的用户有多少户？
SELECT count(*) FROM (SELECT yh_id FROM shuibiao GROUP BY yh_id HAVING count(*)>=2) t
-- 按账期算，2024年的水费比2023年增长了百分之几？
SELECT 100.0*(sum(sf) FILTER (WHERE zq>='2024-01-01' AND zq<'2025-01-01')-sum(sf) FILTER (WHERE zq>='2023-01-01' AND zq<'2024-01-01'))/sum(sf) FILTER (WHERE zq>='2023-01-01' AND zq<'2024-01-01') FROM zhangdan
-- 每个抄表员抄了多少条记录？要姓名
SELECT y.xm, count(*) FROM chaobiao c JOIN yuangong y ON y.yg_id=c.cby_id GROUP BY y.yg_id, y.xm
-- 满意度低于3分的漏水工单的工单编号
SELECT gd_bh FROM gongdan WHERE gd_lx='漏水' AND myd<3 AND NOT is_deleted
-- How many work orders are still in progress?
SELECT count(*) FROM gongdan WHERE zt=2 AND NOT is_deleted
-- What is the average satisfaction score of the completed work orders?
SELECT avg(myd) FROM gongdan WHERE zt=3 AND NOT is_deleted
-- How many customers opened their account in 2024?
SELECT count(*) FROM yonghu WHERE kh_rq>='2024-01-01' AND kh_rq<'2025-01-01'
-- 各行政区二次供水片区的数量
SELECT xzq, count(*) FROM pianqu WHERE sf_ecgs GROUP BY xzq
-- 公司有多少辆抢修车？
REFUSE
-- 各片区出厂水的余氯含量是多少？
REFUSE
-- 员工的学历构成是怎样的？
REFUSE
-- 最近情况怎么样？
REFUSE
-- 把有问题的那些列出来
REFUSE
-- 去年采购水处理药剂花了多少钱？
REFUSE
-- 用户家里平均有几口人？
REFUSE
-- Which reservoirs had the highest water level in 2024?
REFUSE

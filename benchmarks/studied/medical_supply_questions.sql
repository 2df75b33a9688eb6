-- 我们一共有多少家医院客户？
SELECT count(*) FROM yiyuan;
-- 2024年一共下了多少张订单？
SELECT count(*) FROM dingdan WHERE xiadan_riqi >= '2024-01-01' AND xiadan_riqi < '2025-01-01';
-- 已签收订单的总金额是多少
SELECT sum(jine) FROM dingdan WHERE zhuangtai = 4;
-- 列出所有进口供应商的名称
SELECT mingcheng FROM gongyingshang WHERE laiyuan = '进口';
-- 每个产品类别有几种产品？
SELECT leibie, count(*) FROM chanpin GROUP BY leibie;
-- 麻烦查一下哪些产品没有库存了
SELECT mingcheng FROM chanpin WHERE kucun = 0;
-- 现在还在职的业务员有几个
SELECT count(*) FROM yewuyuan WHERE lizhi_riqi IS NULL;
-- 各城市的医院数量
SELECT chengshi, count(*) FROM yiyuan GROUP BY chengshi;
-- 2024年仓库租金花了多少钱？
REFUSE
-- 订单金额最高的5家医院是哪些？取消的不算
SELECT y.mingcheng FROM dingdan d JOIN yiyuan y ON y.id = d.yiyuan_id WHERE d.zhuangtai <> 9 GROUP BY y.id, y.mingcheng ORDER BY sum(d.jine) DESC LIMIT 5;
-- 2024年每个月的订单数
SELECT date_trunc('month', xiadan_riqi)::date, count(*) FROM dingdan WHERE xiadan_riqi >= '2024-01-01' AND xiadan_riqi < '2025-01-01' GROUP BY 1;
-- 有多少订单是加急的？
SELECT count(*) FROM dingdan WHERE shifou_jiaji;
-- 被取消的订单占全部订单的百分之几
SELECT 100.0 * count(*) FILTER (WHERE zhuangtai = 9) / count(*) FROM dingdan;
-- 哪些医院从来没有下过订单？
SELECT mingcheng FROM yiyuan y WHERE NOT EXISTS (SELECT 1 FROM dingdan d WHERE d.yiyuan_id = y.id);
-- 按回款方式统计回款金额
SELECT fangshi, sum(jine) FROM huikuan GROUP BY fangshi;
-- 哪个业务员签的订单最多？
SELECT w.xingming FROM dingdan d JOIN yewuyuan w ON w.id = d.yewuyuan_id GROUP BY w.id, w.xingming ORDER BY count(*) DESC LIMIT 1;
-- 哪个厂家最好？
REFUSE
-- 标准价超过10万元的产品有哪些，把价格也列出来
SELECT mingcheng, biaozhun_jia FROM chanpin WHERE biaozhun_jia > 100000;
-- 三类器械一共有多少种
SELECT count(*) FROM chanpin WHERE guanli_leibie = 3;
-- 床位最多的医院叫什么？有多少张床
SELECT mingcheng, chuangwei FROM yiyuan WHERE chuangwei IS NOT NULL ORDER BY chuangwei DESC LIMIT 1;
-- 三甲医院平均有多少床位？
SELECT avg(chuangwei) FROM yiyuan WHERE dengji = '三甲';
-- 还没登记床位数的医院有哪些
SELECT mingcheng FROM yiyuan WHERE chuangwei IS NULL;
-- 业务员每个月报销了多少差旅费？
REFUSE
-- 各种故障类型的报修单各有多少张
SELECT guzhang, count(*) FROM baoxiu GROUP BY guzhang;
-- 目前还在维修中的报修单有多少？
SELECT count(*) FROM baoxiu WHERE zhuangtai = 1;
-- 客户给售后维修的平均评分是几分
SELECT avg(pingfen) FROM baoxiu;
-- 报修次数最多的产品是哪个
SELECT p.mingcheng FROM baoxiu b JOIN chanpin p ON p.id = b.chanpin_id GROUP BY p.id, p.mingcheng ORDER BY count(*) DESC LIMIT 1;
-- 每年的回款总额是多少？
SELECT date_trunc('year', huikuan_riqi)::date, sum(jine) FROM huikuan GROUP BY 1;
-- 哪些产品的注册证在2025年到期？
SELECT mingcheng FROM chanpin WHERE zhuce_daoqi >= '2025-01-01' AND zhuce_daoqi < '2026-01-01';
-- 授权书已经失效的供应商有哪几家
SELECT mingcheng FROM gongyingshang WHERE NOT youxiao_shouquan;
-- 竞争对手的同类产品卖多少钱
REFUSE
-- 对比一下保内和保外报修单的数量
SELECT shifou_baonei, count(*) FROM baoxiu GROUP BY shifou_baonei;
-- 卖出数量最多的3种产品是什么？
SELECT p.mingcheng FROM dingdan_mingxi m JOIN chanpin p ON p.id = m.chanpin_id GROUP BY p.id, p.mingcheng ORDER BY sum(m.shuliang) DESC LIMIT 3;
-- 哪些产品的标准价高于平均标准价？
SELECT mingcheng FROM chanpin WHERE biaozhun_jia > (SELECT avg(biaozhun_jia) FROM chanpin);
-- 杭州和宁波的医院各下了多少订单？
SELECT y.chengshi, count(*) FROM dingdan d JOIN yiyuan y ON y.id = d.yiyuan_id WHERE y.chengshi IN ('杭州', '宁波') GROUP BY y.chengshi;
-- 从没卖出去过的产品有哪些？
SELECT mingcheng FROM chanpin p WHERE NOT EXISTS (SELECT 1 FROM dingdan_mingxi m WHERE m.chanpin_id = p.id);
-- 今天送货的车到哪儿了？
REFUSE
-- 浙北大区的业务员名单，连同入职日期
SELECT xingming, ruzhi_riqi FROM yewuyuan WHERE daqu = '浙北';
-- 订单数超过15张的医院有哪些，各有多少张？
SELECT y.mingcheng, count(*) FROM dingdan d JOIN yiyuan y ON y.id = d.yiyuan_id GROUP BY y.id, y.mingcheng HAVING count(*) > 15;
-- 已签收但一笔回款都没有的订单有多少张？
SELECT count(*) FROM dingdan d WHERE d.zhuangtai = 4 AND NOT EXISTS (SELECT 1 FROM huikuan h WHERE h.dingdan_id = d.id);
-- 各大区的已签收订单金额，从高到低排
SELECT w.daqu, sum(d.jine) FROM dingdan d JOIN yewuyuan w ON w.id = d.yewuyuan_id WHERE d.zhuangtai = 4 GROUP BY w.daqu ORDER BY sum(d.jine) DESC;
-- 单次维修费最高是多少
SELECT max(weixiu_fei) FROM baoxiu;
-- 帮我看看那个情况怎么样
REFUSE
-- 账期90天以上（含90天）的社区医院有几家？
SELECT count(*) FROM yiyuan WHERE zhangqi_tian >= 90 AND dengji = '社区';
-- 医院院长的联系电话给我一份
REFUSE

-- Cinema chain
CREATE FUNCTION pg_temp.r(k text, n int) RETURNS int LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x'||substr(md5(k),1,7))::bit(28)::int % n $$;

CREATE TABLE cinemas (
  cinema_id int PRIMARY KEY, name text NOT NULL, city text NOT NULL, opened_on date NOT NULL, is_franchise boolean NOT NULL, manager text
);
CREATE TABLE halls (
  hall_id int PRIMARY KEY, cinema_id int NOT NULL REFERENCES cinemas, hall_no int NOT NULL, hall_type text NOT NULL, seats int NOT NULL, UNIQUE (cinema_id, hall_no)
);
CREATE TABLE films (
  film_id int PRIMARY KEY, title text NOT NULL, genre text NOT NULL, country text NOT NULL, duration_min int NOT NULL, released_on date NOT NULL, distributor text
);
CREATE TABLE screenings (
  screening_id int PRIMARY KEY, film_id int NOT NULL REFERENCES films, hall_id int NOT NULL REFERENCES halls, starts_at timestamp NOT NULL,
  ticket_price numeric(6,2) NOT NULL, language text NOT NULL, is_3d boolean NOT NULL, status text NOT NULL
);
CREATE TABLE members (
  member_id int PRIMARY KEY, name text NOT NULL, level text NOT NULL, city text NOT NULL, joined_on date NOT NULL, birth_date date, points int NOT NULL, phone text
);
CREATE TABLE ticket_orders (
  order_id int PRIMARY KEY, screening_id int NOT NULL REFERENCES screenings, member_id int REFERENCES members, channel text NOT NULL,
  tickets int NOT NULL, amount numeric(9,2) NOT NULL, ordered_at timestamp NOT NULL, refunded boolean NOT NULL DEFAULT false
);
CREATE TABLE snack_sales (
  sale_id int PRIMARY KEY, cinema_id int NOT NULL REFERENCES cinemas, member_id int REFERENCES members, item text NOT NULL, quantity int NOT NULL, amount numeric(8,2) NOT NULL, sold_at timestamp NOT NULL
);

INSERT INTO cinemas VALUES
(1,'星光影城南山店','深圳','2012-06-16',false,'陈国栋'),(2,'星光影城福田店','深圳','2015-01-24',false,'黄丽娟'),(3,'星光影城宝安店','深圳','2019-09-28',true,NULL),
(4,'星光影城天河店','广州','2011-12-31',false,'何志强'),(5,'星光影城番禺店','广州','2017-05-20',true,'梁晓雯'),(6,'星光影城白云店','广州','2020-08-08',true,'冯伟明'),
(7,'星光影城徐汇店','上海','2013-10-01',false,'沈嘉怡'),(8,'星光影城浦东店','上海','2016-04-30',false,'顾文博'),(9,'星光影城闵行店','上海','2021-07-17',true,'陆敏'),
(10,'星光影城朝阳店','北京','2010-09-18',false,'李建国'),(11,'星光影城海淀店','北京','2014-02-14',false,'王海燕'),(12,'星光影城通州店','北京','2022-01-29',true,NULL),
(13,'星光影城武侯店','成都','2015-11-11',false,'刘思远'),(14,'星光影城高新店','成都','2018-12-22',true,'蒋雨桐'),(15,'星光影城江汉店','武汉','2016-08-27',false,'周鹏飞'),
(16,'星光影城光谷店','武汉','2023-04-29',true,'余静'),(17,'星光影城西湖店','杭州','2017-09-30',false,'方晓东'),(18,'星光影城滨江店','杭州','2023-12-30',true,'章颖'),
(19,'星光影城雁塔店','西安','2019-01-19',false,'薛明'),(20,'星光影城未央店','西安','2024-06-08',true,NULL);

INSERT INTO halls
SELECT row_number() OVER (ORDER BY c.cinema_id,k), c.cinema_id, k,
 CASE WHEN k=1 AND c.cinema_id IN (1,4,7,8,10,13,15,17) THEN 'IMAX' WHEN k=2 AND c.cinema_id%3=1 THEN 'VIP厅' WHEN k=3 AND c.cinema_id%4=0 THEN '儿童厅' ELSE '普通厅' END,
 CASE WHEN k=1 AND c.cinema_id IN (1,4,7,8,10,13,15,17) THEN 300+pg_temp.r('is'||c.cinema_id,130) WHEN k=2 AND c.cinema_id%3=1 THEN 24+pg_temp.r('vs'||c.cinema_id,30) ELSE 80+pg_temp.r('ns'||c.cinema_id||'.'||k,110) END
FROM cinemas c CROSS JOIN generate_series(1,7) k WHERE k<=3+(c.cinema_id*5+2)%5;
UPDATE halls SET seats=452 WHERE hall_id=(SELECT hall_id FROM halls WHERE cinema_id=10 AND hall_no=1);

INSERT INTO films VALUES
(1,'长河落日','剧情','中国',128,'2023-01-22','华影发行'),(2,'星际归途','科幻','美国',149,'2023-02-10','环球引进'),(3,'疯狂的小镇','喜剧','中国',112,'2023-03-08','华影发行'),
(4,'深海谜踪','悬疑','中国',121,'2023-04-28','蓝鲸影业'),(5,'小熊历险记','动画','日本',94,'2023-06-01','樱花文化'),(6,'雷霆战警','动作','美国',136,'2023-06-22','环球引进'),
(7,'夏日晴空','爱情','中国',108,'2023-08-22','蓝鲸影业'),(8,'末班地铁','惊悚','韩国',117,'2023-09-15',NULL),(9,'巅峰之路','剧情','中国',139,'2023-09-29','华影发行'),
(10,'龙宫传说','动画','中国',102,'2023-10-01','光年动画'),(11,'时间裂缝','科幻','美国',132,'2023-11-17','环球引进'),(12,'笑傲厨房','喜剧','中国',105,'2023-12-30','蓝鲸影业'),
(13,'年年有余','喜剧','中国',118,'2024-02-10','华影发行'),(14,'铁血孤城','动作','中国',141,'2024-02-10','蓝鲸影业'),(15,'熊猫特工','动画','中国',96,'2024-02-10','光年动画'),
(16,'巴黎的信','爱情','法国',114,'2024-03-14',NULL),(17,'沙海迷城','科幻','美国',166,'2024-03-08','环球引进'),(18,'无声证词','悬疑','中国',124,'2024-04-04','华影发行'),
(19,'夜行者','惊悚','韩国',109,'2024-05-17',NULL),(20,'云端之上','剧情','中国',130,'2024-06-08','蓝鲸影业'),(21,'海底大冒险','动画','美国',100,'2024-06-21','环球引进'),
(22,'逆行人生路','剧情','中国',126,'2024-08-09','华影发行'),(23,'极速追击','动作','美国',134,'2024-08-23','环球引进'),(24,'猫咪咖啡馆','动画','日本',89,'2024-09-14','樱花文化'),
(25,'志在远方','剧情','中国',145,'2024-09-30','华影发行'),(26,'双面人','悬疑','中国',119,'2024-11-01','蓝鲸影业'),(27,'恋恋北城','爱情','中国',106,'2024-12-24','蓝鲸影业'),
(28,'神话再起','动画','中国',144,'2025-01-29','光年动画'),(29,'唐人奇案','喜剧','中国',138,'2025-01-29','华影发行'),(30,'红海行动队','动作','中国',140,'2025-01-29','蓝鲸影业'),
(31,'机械之心','科幻','美国',127,'2025-03-07','环球引进'),(32,'东京雨夜','爱情','日本',111,'2025-04-11','樱花文化'),(33,'老街坊','喜剧','中国',104,'2025-05-01','华影发行'),
(34,'侏罗纪新章','科幻','美国',133,'2025-07-02','环球引进'),(35,'守城记','剧情','中国',152,'2025-07-25','蓝鲸影业'),(36,'山那边的歌','纪录片','中国',88,'2024-10-25',NULL);

INSERT INTO screenings
SELECT i, f.film_id, h.hall_id,
 (f.released_on + pg_temp.r('sd'||s.i,34))::timestamp + (ARRAY[10.5,13,14.5,16,19,19.5,20,21.5])[1+pg_temp.r('st'||s.i,8)]*interval '1 hour',
 CASE h.hall_type WHEN 'IMAX' THEN 79.9 WHEN 'VIP厅' THEN 99 ELSE (ARRAY[35,39.9,42,45,49.9])[1+pg_temp.r('sp'||s.i,5)] END,
 CASE WHEN f.country='中国' THEN '国语' WHEN pg_temp.r('sl'||s.i,3)=0 THEN '国语' ELSE '原声' END,
 f.genre IN ('科幻','动作','动画') AND pg_temp.r('s3'||s.i,5)<3,
 CASE WHEN pg_temp.r('sc'||s.i,18)=0 THEN '已取消' WHEN pg_temp.r('sc'||s.i,40)=11 THEN '技术故障' ELSE '已放映' END
FROM (SELECT i, 1+pg_temp.r('sf'||i,35) fid, 1+least(pg_temp.r('sh'||i,94),pg_temp.r('sg'||i,140)) hid FROM generate_series(1,650) i) s
JOIN films f ON f.film_id=s.fid JOIN halls h ON h.hall_id=1+s.hid%(SELECT count(*) FROM halls)
JOIN cinemas c ON c.cinema_id=h.cinema_id AND c.opened_on<f.released_on;

INSERT INTO members
SELECT i, substr('赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦许何吕张',1+i%22,1)||(ARRAY['子涵','雨萱','浩然','思琪','俊杰','梓轩','佳怡','一诺','天宇','欣妍','建华','美玲','志远'])[1+i%13],
 (ARRAY['普通','普通','普通','银卡','银卡','金卡'])[1+pg_temp.r('ml'||i,6)], (ARRAY['深圳','深圳','广州','上海','上海','北京','北京','成都','武汉','杭州','西安'])[1+pg_temp.r('mc'||i,11)],
 date '2021-03-01'+pg_temp.r('mj'||i,1600), CASE WHEN pg_temp.r('mb'||i,6)=0 THEN NULL ELSE date '1960-01-01'+pg_temp.r('mbd'||i,17500) END,
 pg_temp.r('mp'||i,9000), CASE WHEN i%11=6 THEN NULL ELSE '139'||lpad(pg_temp.r('mt'||i,100000000)::text,8,'0') END
FROM generate_series(1,220) i;

INSERT INTO ticket_orders
SELECT row_number() OVER (ORDER BY s.t,s.i), s.sid, CASE WHEN pg_temp.r('om'||s.i,3)=0 THEN NULL ELSE 1+pg_temp.r('on'||s.i,190) END, s.ch, s.n, round(s.n*s.ticket_price*s.d,2), s.t, s.ref
FROM (SELECT g.i, sc.screening_id sid, sc.ticket_price, (ARRAY['猫眼','猫眼','淘票票','淘票票','小程序','柜台','小程序','猫眼'])[1+pg_temp.r('oc'||g.i,8)] ch,
  1+least(pg_temp.r('ot'||g.i,5),pg_temp.r('ou'||g.i,6)) n, 1-pg_temp.r('od'||g.i,4)*0.05 d,
  sc.starts_at-(20+pg_temp.r('oh'||g.i,4000))*interval '1 minute' t, sc.status<>'已放映' OR pg_temp.r('or'||g.i,25)=0 ref
 FROM generate_series(1,980) g(i) JOIN LATERAL (SELECT * FROM screenings WHERE screening_id>=1+pg_temp.r('os'||g.i,640) ORDER BY screening_id LIMIT 1) sc ON true) s;
UPDATE ticket_orders SET tickets=30, amount=1497.00, channel='柜台', refunded=false WHERE order_id=(SELECT min(order_id) FROM ticket_orders WHERE order_id>=512 AND NOT refunded);

INSERT INTO snack_sales
SELECT i, c, CASE WHEN pg_temp.r('nm'||i,2)=0 THEN NULL ELSE 1+pg_temp.r('nn'||i,220) END, it, q,
 q*(CASE it WHEN '爆米花' THEN 28 WHEN '可乐' THEN 14 WHEN '矿泉水' THEN 6 WHEN '烤肠' THEN 10 WHEN '冰淇淋' THEN 18 ELSE 45 END),
 timestamp '2023-01-20 10:00'+(i*2.21)::int*interval '1 day'+pg_temp.r('nt'||i,720)*interval '1 minute'
FROM (SELECT i, (ARRAY[1,1,1,2,2,4,4,5,6,7,7,8,9,10,10,10,11,13,14,15,17,19,12])[1+pg_temp.r('nc'||i,23)] c,
 (ARRAY['爆米花','爆米花','爆米花','可乐','可乐','矿泉水','烤肠','冰淇淋','双人套餐'])[1+pg_temp.r('ni'||i,9)] it, 1+pg_temp.r('nq'||i,3) q FROM generate_series(1,420) i) s;

CREATE TABLE wy_community (community_id int PRIMARY KEY, community_name varchar(40) NOT NULL, district varchar(20), built_year int, green_rate numeric(4,1));
COMMENT ON TABLE wy_community IS '小区'; COMMENT ON COLUMN wy_community.community_id IS '小区ID'; COMMENT ON COLUMN wy_community.community_name IS '小区名称'; COMMENT ON COLUMN wy_community.district IS '所在区'; COMMENT ON COLUMN wy_community.built_year IS '建成年份'; COMMENT ON COLUMN wy_community.green_rate IS '绿化率（%）';
CREATE TABLE wy_building (building_id int PRIMARY KEY, community_id int NOT NULL REFERENCES wy_community, building_no varchar(10), floors int, has_elevator boolean);
COMMENT ON TABLE wy_building IS '楼栋'; COMMENT ON COLUMN wy_building.building_id IS '楼栋ID'; COMMENT ON COLUMN wy_building.community_id IS '所属小区'; COMMENT ON COLUMN wy_building.building_no IS '楼栋号'; COMMENT ON COLUMN wy_building.floors IS '楼层数'; COMMENT ON COLUMN wy_building.has_elevator IS '是否有电梯';
CREATE TABLE wy_owner (owner_id int PRIMARY KEY, owner_name varchar(20) NOT NULL, gender varchar(2), mobile varchar(20), move_in_date date);
COMMENT ON TABLE wy_owner IS '业主'; COMMENT ON COLUMN wy_owner.owner_id IS '业主ID'; COMMENT ON COLUMN wy_owner.owner_name IS '业主姓名'; COMMENT ON COLUMN wy_owner.gender IS '性别'; COMMENT ON COLUMN wy_owner.mobile IS '手机号'; COMMENT ON COLUMN wy_owner.move_in_date IS '入住日期';
CREATE TABLE wy_house (house_id int PRIMARY KEY, building_id int NOT NULL REFERENCES wy_building, room_no varchar(10), area_sqm numeric(6,1), house_type varchar(20), owner_id int REFERENCES wy_owner, occupancy smallint);
COMMENT ON TABLE wy_house IS '房屋'; COMMENT ON COLUMN wy_house.house_id IS '房屋ID'; COMMENT ON COLUMN wy_house.building_id IS '所属楼栋'; COMMENT ON COLUMN wy_house.room_no IS '房号'; COMMENT ON COLUMN wy_house.area_sqm IS '建筑面积（平方米）'; COMMENT ON COLUMN wy_house.house_type IS '户型'; COMMENT ON COLUMN wy_house.owner_id IS '业主ID'; COMMENT ON COLUMN wy_house.occupancy IS '入住状态：0-空置 1-自住 2-出租';
CREATE TABLE wy_bill (bill_id int PRIMARY KEY, house_id int NOT NULL REFERENCES wy_house, fee_type varchar(10), bill_date date, amount numeric(10,2), paid_time timestamp, pay_channel varchar(10));
COMMENT ON TABLE wy_bill IS '账单'; COMMENT ON COLUMN wy_bill.bill_id IS '账单ID'; COMMENT ON COLUMN wy_bill.house_id IS '房屋ID'; COMMENT ON COLUMN wy_bill.fee_type IS '费用类型'; COMMENT ON COLUMN wy_bill.bill_date IS '账单日期'; COMMENT ON COLUMN wy_bill.amount IS '应缴金额（元）'; COMMENT ON COLUMN wy_bill.paid_time IS '缴费时间，未缴为空'; COMMENT ON COLUMN wy_bill.pay_channel IS '缴费渠道';
CREATE TABLE wy_worker (worker_id int PRIMARY KEY, worker_name varchar(20) NOT NULL, job_title varchar(10), hire_date date, monthly_pay numeric(10,2));
COMMENT ON TABLE wy_worker IS '物业员工'; COMMENT ON COLUMN wy_worker.worker_id IS '员工ID'; COMMENT ON COLUMN wy_worker.worker_name IS '员工姓名'; COMMENT ON COLUMN wy_worker.job_title IS '岗位'; COMMENT ON COLUMN wy_worker.hire_date IS '入职日期'; COMMENT ON COLUMN wy_worker.monthly_pay IS '月工资';
CREATE TABLE wy_repair (repair_id int PRIMARY KEY, house_id int NOT NULL REFERENCES wy_house, worker_id int REFERENCES wy_worker, category varchar(10), submit_time timestamp NOT NULL, finish_time timestamp, score int, status smallint);
COMMENT ON TABLE wy_repair IS '报修单'; COMMENT ON COLUMN wy_repair.repair_id IS '报修单号'; COMMENT ON COLUMN wy_repair.house_id IS '房屋ID'; COMMENT ON COLUMN wy_repair.worker_id IS '维修人员'; COMMENT ON COLUMN wy_repair.category IS '报修类别'; COMMENT ON COLUMN wy_repair.submit_time IS '报修时间'; COMMENT ON COLUMN wy_repair.finish_time IS '完成时间'; COMMENT ON COLUMN wy_repair.score IS '满意度评分'; COMMENT ON COLUMN wy_repair.status IS '状态：0-待处理 1-处理中 2-已完成';
CREATE TABLE wy_parking (parking_id int PRIMARY KEY, community_id int REFERENCES wy_community, space_no varchar(10), space_type varchar(10), monthly_rent numeric(8,2), house_id int REFERENCES wy_house);
COMMENT ON TABLE wy_parking IS '车位'; COMMENT ON COLUMN wy_parking.parking_id IS '车位ID'; COMMENT ON COLUMN wy_parking.community_id IS '所属小区'; COMMENT ON COLUMN wy_parking.space_no IS '车位号'; COMMENT ON COLUMN wy_parking.space_type IS '车位类型'; COMMENT ON COLUMN wy_parking.monthly_rent IS '月租金'; COMMENT ON COLUMN wy_parking.house_id IS '租用房屋，空表示未出租';
INSERT INTO wy_community VALUES (1,'翠湖花园','江北区',2008,38.5),(2,'金色家园','江北区',2015,30.0),(3,'阳光里','渝中区',1999,22.5),(4,'滨江一号','南岸区',2019,41.0),(5,'梧桐苑','南岸区',2012,35.2);
INSERT INTO wy_building
SELECT i, (ARRAY[1,1,1,2,2,3,4,4,4,4])[i], i || '栋', (ARRAY[18,11,6,32,33,7,28,30,26,9])[i], (ARRAY[18,11,6,32,33,7,28,30,26,9])[i] > 7 FROM generate_series(1, 10) i;
INSERT INTO wy_owner
SELECT i, (ARRAY['沈立群','郑晓梅','罗永强','韩雪','曾国栋','魏敏','蒋志远','唐婉','邹建平','熊丽华','孟凡','秦玉兰','江涛','史可','顾一鸣','龙海燕','万里','段青','贺兰','钱多多','汤显','尹小天'])[i],
       CASE WHEN i % 5 IN (0, 2) THEN '女' ELSE '男' END, '139' || lpad((i * 7654321 % 100000000)::text, 8, '0'),
       date '2009-05-01' + (i * 331) % 5200
FROM generate_series(1, 22) i;
INSERT INTO wy_house
SELECT i, 1 + (i * 7 + i / 9) % 10, (1 + i % 6) || '0' || (1 + i % 4), round((48 + (i * 29 % 61) * 1.9)::numeric, 1),
       (ARRAY['一室一厅','两室一厅','三室两厅','两室一厅','四室两厅'])[1 + (i * 3 + i / 5) % 5],
       CASE WHEN i % 8 = 0 THEN NULL ELSE 1 + (i * 7 + i / 11) % 19 END,
       CASE WHEN i % 8 = 0 THEN 0 WHEN i % 3 = 0 THEN 2 ELSE 1 END
FROM generate_series(1, 36) i;
INSERT INTO wy_bill
SELECT i, 1 + (i * 11) % 33, (ARRAY['物业费','水费','电费','停车费','物业费'])[1 + (i * 3 + i / 11) % 5], date '2024-01-05' + i * 5,
       round((40 + (i * 67 % 149) * 4.3)::numeric, 2),
       CASE WHEN i * i % 7 = 2 THEN NULL ELSE timestamp '2024-01-05 09:30' + i * interval '5 days' + (i * 5 % 23) * interval '1 day' END,
       CASE WHEN i * i % 7 = 2 THEN NULL ELSE (ARRAY['微信','支付宝','微信','现金'])[1 + (i * 7 + i / 4) % 4] END
FROM generate_series(1, 140) i;
INSERT INTO wy_worker VALUES
 (1,'向东','水工','2015-03-01',5600),(2,'彭大海','电工','2016-07-15',6100),(3,'苏小琴','保洁','2018-04-09',3900),(4,'雷军锋','保安','2019-10-21',4300),
 (5,'马超群','水工','2020-06-18',5200),(6,'叶秋','客服','2021-02-28',4700),(7,'潘安','电工','2022-11-11',5500),(8,'童欣','保洁','2023-05-05',3700),(9,'鲁冰','木工','2023-08-20',5900);
INSERT INTO wy_repair
SELECT i, 1 + (i * 17) % 35, CASE WHEN i % 12 = 0 THEN NULL ELSE (ARRAY[1,2,5,7,9,1,2,1])[1 + (i * 3) % 8] END,
       (ARRAY['水管','电路','门窗','电梯','墙面','水管','电路'])[1 + (i * 5 + i / 9) % 7],
       current_date - (i * 9) + interval '10 hours',
       CASE WHEN i % 4 = 1 OR i % 12 = 0 THEN NULL ELSE current_date - (i * 9) + interval '14 hours' + (i % 7) * interval '1 day' END,
       CASE WHEN i % 4 = 1 OR i % 12 = 0 THEN NULL ELSE 1 + (i * 7 + i / 5) % 5 END,
       CASE WHEN i % 12 = 0 THEN 0 WHEN i % 4 = 1 THEN 1 ELSE 2 END
FROM generate_series(1, 80) i;
INSERT INTO wy_parking
SELECT i, (ARRAY[1,1,2,4,4,2,5])[1 + i % 7], 'P' || (100 + i), CASE WHEN i % 3 = 0 THEN '地上' ELSE '地下' END,
       150 + (i * 23 % 17) * 20, CASE WHEN i % 4 = 0 THEN NULL ELSE 1 + (i * 3) % 36 END
FROM generate_series(1, 30) i;

-- How many service areas are open right now?
SELECT count(*) FROM service_area WHERE status='营业中' AND NOT is_deleted
-- list the service areas under renovation
SELECT service_area_name FROM service_area WHERE status='装修中' AND NOT is_deleted
-- What was our turnover in October {this_year}?
SELECT sum(amount) FROM daily_revenue WHERE revenue_date>='{this_year}-10-01' AND revenue_date<'{this_year}-11-01'
-- revenue by payment method this year
SELECT payment_type,sum(amount) FROM daily_revenue WHERE revenue_date>=date_trunc('year',CURRENT_DATE) GROUP BY 1
-- How much did customers pay with WeChat last month?
SELECT sum(amount) FROM daily_revenue WHERE payment_type='微信' AND date_trunc('month',revenue_date)=date_trunc('month',CURRENT_DATE)-interval '1 month'
-- what share of revenue was paid by Alipay?
SELECT round(100.0*sum(amount) FILTER (WHERE payment_type='支付宝')/sum(amount),2) FROM daily_revenue
-- Top 5 restaurants by revenue last month
SELECT shop_name,sum(amount) FROM daily_revenue JOIN shop USING(shop_id) WHERE NOT is_deleted AND category='餐饮' AND date_trunc('month',revenue_date)=date_trunc('month',CURRENT_DATE)-interval '1 month' GROUP BY shop_id,1 ORDER BY 2 DESC LIMIT 5
-- How many restaurants are there in Zhejiang?
SELECT count(*) FROM shop s JOIN service_area sa USING(service_area_id) WHERE category='餐饮' AND province='浙江省' AND NOT s.is_deleted AND NOT sa.is_deleted
-- how many gas stations does each company run
SELECT company_name,count(*) FROM shop s JOIN service_area sa USING(service_area_id) JOIN company c USING(company_id) WHERE category='加油站' AND NOT s.is_deleted AND NOT sa.is_deleted AND NOT c.is_deleted GROUP BY company_id,1
-- Which service areas have no gas station?
SELECT service_area_name FROM service_area sa WHERE NOT is_deleted AND NOT EXISTS(SELECT 1 FROM shop s WHERE s.service_area_id=sa.service_area_id AND category='加油站' AND NOT s.is_deleted)
-- number of trucks per service area last week
SELECT service_area_name,sum(vehicle_count) FROM daily_traffic JOIN service_area USING(service_area_id) WHERE NOT is_deleted AND vehicle_class='货车' AND traffic_date>=date_trunc('week',CURRENT_DATE)-interval '7 days' AND traffic_date<date_trunc('week',CURRENT_DATE) GROUP BY service_area_id,1
-- the 5 busiest service areas last month
SELECT service_area_name,sum(vehicle_count) FROM daily_traffic JOIN service_area USING(service_area_id) WHERE NOT is_deleted AND date_trunc('month',traffic_date)=date_trunc('month',CURRENT_DATE)-interval '1 month' GROUP BY service_area_id,1 ORDER BY 2 DESC LIMIT 5
-- Which 3 service areas were the least busy last week?
SELECT service_area_name,sum(vehicle_count) FROM daily_traffic JOIN service_area USING(service_area_id) WHERE NOT is_deleted AND traffic_date>=date_trunc('week',CURRENT_DATE)-interval '7 days' AND traffic_date<date_trunc('week',CURRENT_DATE) GROUP BY service_area_id,1 ORDER BY 2 LIMIT 3
-- average order value by shop category
SELECT category,sum(amount)/nullif(sum(order_count),0) FROM daily_revenue JOIN shop s USING(shop_id) WHERE NOT s.is_deleted GROUP BY 1
-- What is the average order value this year?
SELECT sum(amount)/nullif(sum(order_count),0) FROM daily_revenue WHERE revenue_date>=date_trunc('year',CURRENT_DATE)
-- orders per month this year
SELECT date_trunc('month',revenue_date)::date,sum(order_count) FROM daily_revenue WHERE revenue_date>=date_trunc('year',CURRENT_DATE) GROUP BY 1
-- daily revenue of restaurants over the last 7 days
SELECT revenue_date,sum(amount) FROM daily_revenue JOIN shop s USING(shop_id) WHERE NOT s.is_deleted AND category='餐饮' AND revenue_date>=CURRENT_DATE-7 GROUP BY 1
-- List all KFC outlets
SELECT shop_name FROM shop WHERE brand='肯德基' AND NOT is_deleted
-- how many electric cars came in yesterday
SELECT sum(vehicle_count) FROM daily_traffic WHERE vehicle_class='新能源车' AND traffic_date=CURRENT_DATE-1
-- Compare cash and card payments last month
SELECT payment_type,sum(amount) FROM daily_revenue WHERE payment_type IN ('现金','银行卡') AND date_trunc('month',revenue_date)=date_trunc('month',CURRENT_DATE)-interval '1 month' GROUP BY 1
-- revenue per company last quarter
SELECT company_name,sum(amount) FROM daily_revenue JOIN shop s USING (shop_id) JOIN service_area sa USING (service_area_id) JOIN company c USING (company_id) WHERE NOT s.is_deleted AND NOT sa.is_deleted AND NOT c.is_deleted AND date_trunc('quarter',revenue_date)=date_trunc('quarter',CURRENT_DATE)-interval '3 months' GROUP BY company_id,1
-- Which company earned the most last year?
SELECT company_name FROM daily_revenue JOIN shop s USING (shop_id) JOIN service_area sa USING (service_area_id) JOIN company c USING (company_id) WHERE NOT s.is_deleted AND NOT sa.is_deleted AND NOT c.is_deleted AND date_trunc('year',revenue_date)=date_trunc('year',CURRENT_DATE)-interval '1 year' GROUP BY company_id,1 ORDER BY sum(amount) DESC LIMIT 1
-- Which provinces have more than 3 service areas?
SELECT province FROM service_area WHERE NOT is_deleted GROUP BY 1 HAVING count(*)>3
-- what are the five largest shops?
SELECT shop_name,floor_area FROM shop WHERE NOT is_deleted ORDER BY 2 DESC NULLS LAST LIMIT 5
-- When did the Jiaxing service area open?
SELECT opened_on FROM service_area WHERE service_area_name='嘉兴服务区' AND NOT is_deleted
-- revenue of car repair shops by province
SELECT province,sum(amount) FROM daily_revenue JOIN shop s USING(shop_id) JOIN service_area sa USING(service_area_id) WHERE category='汽车维修' AND NOT s.is_deleted AND NOT sa.is_deleted GROUP BY 1
-- total revenue of the service areas on the G60
SELECT sum(amount) FROM daily_revenue JOIN shop s USING(shop_id) JOIN service_area sa USING(service_area_id) WHERE road_name='G60沪昆高速' AND NOT s.is_deleted AND NOT sa.is_deleted
-- How many hazardous goods vehicles entered in the last 30 days?
SELECT sum(vehicle_count) FROM daily_traffic WHERE vehicle_class='危化品车' AND traffic_date>=CURRENT_DATE-30
-- passenger cars vs trucks by month in {this_year}
SELECT vehicle_class,date_trunc('month',traffic_date)::date,sum(vehicle_count) FROM daily_traffic WHERE vehicle_class IN ('客车','货车') AND traffic_date>='{this_year}-01-01' AND traffic_date<'{next_year}-01-01' GROUP BY 1,2
-- sales of the Zhaoshan service area in September {this_year}
SELECT sum(amount) FROM daily_revenue JOIN shop s USING(shop_id) JOIN service_area sa USING(service_area_id) WHERE service_area_name='昭山服务区' AND revenue_date>='{this_year}-09-01' AND revenue_date<'{this_year}-10-01' AND NOT s.is_deleted AND NOT sa.is_deleted
-- Show the traffic trend for the last 30 days
SELECT traffic_date,sum(vehicle_count) FROM daily_traffic WHERE traffic_date>=CURRENT_DATE-30 GROUP BY 1
-- fuel sales by province this year
SELECT province,sum(amount) FROM daily_revenue JOIN shop s USING(shop_id) JOIN service_area sa USING(service_area_id) WHERE category='加油站' AND revenue_date>=date_trunc('year',CURRENT_DATE) AND NOT s.is_deleted AND NOT sa.is_deleted GROUP BY 1
-- Who runs the Huashan service area?
SELECT company_name FROM service_area sa JOIN company c USING(company_id) WHERE service_area_name='华山服务区' AND NOT sa.is_deleted AND NOT c.is_deleted
-- How many stores are there in each service area?
SELECT service_area_name,count(*) FROM shop s JOIN service_area sa USING(service_area_id) WHERE NOT s.is_deleted AND NOT sa.is_deleted GROUP BY service_area_id,1
-- number of stores per brand
SELECT brand,count(*) FROM shop WHERE NOT is_deleted GROUP BY 1
-- Takings at the gas stations in Guangdong last month
SELECT sum(amount) FROM daily_revenue JOIN shop s USING(shop_id) JOIN service_area sa USING(service_area_id) WHERE category='加油站' AND province='广东省' AND date_trunc('month',revenue_date)=date_trunc('month',CURRENT_DATE)-interval '1 month' AND NOT s.is_deleted AND NOT sa.is_deleted
-- how much rent do all the shops pay together
SELECT sum(monthly_rent) FROM shop WHERE NOT is_deleted
-- turnover per service area in Jiangxi, highest first
SELECT service_area_name,sum(amount) FROM daily_revenue JOIN shop s USING(shop_id) JOIN service_area sa USING(service_area_id) WHERE province='江西省' AND NOT s.is_deleted AND NOT sa.is_deleted GROUP BY service_area_id,1 ORDER BY 2 DESC
-- share of trucks in total traffic
SELECT round(100.0*sum(vehicle_count) FILTER (WHERE vehicle_class='货车')/sum(vehicle_count),2) FROM daily_traffic
-- Which highway has the most traffic?
SELECT road_name FROM daily_traffic JOIN service_area USING(service_area_id) WHERE NOT is_deleted GROUP BY 1 ORDER BY sum(vehicle_count) DESC LIMIT 1

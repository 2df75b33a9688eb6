-- How many cinemas do we have in each city?
SELECT city, count(*) FROM cinemas GROUP BY city;
-- 总共有多少个会员？
SELECT count(*) FROM members;
-- Which films run longer than 140 minutes?
SELECT title FROM films WHERE duration_min > 140;
-- 上海有哪些影院？
SELECT name FROM cinemas WHERE city = '上海';
-- What's the total amount of ticket orders that weren't refunded?
SELECT sum(amount) FROM ticket_orders WHERE NOT refunded;
-- How many screenings got cancelled (已取消)?
SELECT count(*) FROM screenings WHERE status = '已取消';
-- 金卡会员有几个
SELECT count(*) FROM members WHERE level = '金卡';
-- Average film length by genre, please
SELECT genre, avg(duration_min) FROM films GROUP BY genre;
-- Which film won the most awards?
REFUSE
-- 各个购票渠道分别订了多少张票？
SELECT channel, sum(tickets) FROM ticket_orders GROUP BY channel;
-- How many tickets were ordered each month in 2024?
SELECT date_trunc('month', ordered_at)::date, sum(tickets) FROM ticket_orders WHERE ordered_at >= '2024-01-01' AND ordered_at < '2025-01-01' GROUP BY 1;
-- Top 5 films by number of tickets ordered
SELECT f.title FROM ticket_orders o JOIN screenings s USING (screening_id) JOIN films f USING (film_id) GROUP BY f.film_id, f.title ORDER BY sum(o.tickets) DESC LIMIT 5;
-- 哪些电影从来没有排过片？
SELECT title FROM films f WHERE NOT EXISTS (SELECT 1 FROM screenings s WHERE s.film_id = f.film_id);
-- Which cinemas are franchises?
SELECT name FROM cinemas WHERE is_franchise;
-- Name the biggest hall we have: cinema, hall number and seats.
SELECT c.name, h.hall_no, h.seats FROM halls h JOIN cinemas c USING (cinema_id) ORDER BY h.seats DESC LIMIT 1;
-- 最近生意怎么样？
REFUSE
-- What percentage of ticket orders was refunded?
SELECT 100.0 * count(*) FILTER (WHERE refunded) / count(*) FROM ticket_orders;
-- 卖得最多的小食是哪一种（按数量）
SELECT item FROM snack_sales GROUP BY item ORDER BY sum(quantity) DESC LIMIT 1;
-- How many seats does each cinema have in total?
SELECT c.name, sum(h.seats) FROM halls h JOIN cinemas c USING (cinema_id) GROUP BY c.cinema_id, c.name;
-- Which cinemas have an IMAX hall?
SELECT DISTINCT c.name FROM cinemas c JOIN halls h USING (cinema_id) WHERE h.hall_type = 'IMAX';
-- 没有留手机号的会员名单给我一下
SELECT name FROM members WHERE phone IS NULL;
-- How much did the cleaning company charge us in 2024?
REFUSE
-- Which members have more than 8000 points, and how many do they have?
SELECT name, points FROM members WHERE points > 8000;
-- 2025年上映的电影有哪些？
SELECT title FROM films WHERE released_on >= '2025-01-01' AND released_on < '2026-01-01';
-- Compare the number of screenings in 3D with those that are not.
SELECT is_3d, count(*) FROM screenings GROUP BY is_3d;
-- Which members have never bought a ticket?
SELECT name FROM members m WHERE NOT EXISTS (SELECT 1 FROM ticket_orders o WHERE o.member_id = m.member_id);
-- 每个国家各有几部电影，从多到少
SELECT country, count(*) FROM films GROUP BY country ORDER BY count(*) DESC;
-- I'd like the snack takings for each cinema
SELECT c.name, sum(n.amount) FROM snack_sales n JOIN cinemas c USING (cinema_id) GROUP BY c.cinema_id, c.name;
-- 观众对每部电影的评分是多少？
REFUSE
-- How many ticket orders came from people who aren't members?
SELECT count(*) FROM ticket_orders WHERE member_id IS NULL;
-- Average ticket price per hall type
SELECT h.hall_type, avg(s.ticket_price) FROM screenings s JOIN halls h USING (hall_id) GROUP BY h.hall_type;
-- 平均每个订单买几张票
SELECT avg(tickets) FROM ticket_orders;
-- How many different distributors do we work with?
SELECT count(DISTINCT distributor) FROM films;
-- 没有店长的影院是哪几家？
SELECT name FROM cinemas WHERE manager IS NULL;
-- Which projectors need replacing?
REFUSE
-- Biggest single ticket order: how many tickets was it and through which channel?
SELECT tickets, channel FROM ticket_orders ORDER BY tickets DESC LIMIT 1;
-- 北京和广州的会员分别有多少人？
SELECT city, count(*) FROM members WHERE city IN ('北京', '广州') GROUP BY city;
-- Which films are longer than the average film?
SELECT title FROM films WHERE duration_min > (SELECT avg(duration_min) FROM films);
-- 帮我找一下排片超过20场的电影，连场次数一起
SELECT f.title, count(*) FROM screenings s JOIN films f USING (film_id) GROUP BY f.film_id, f.title HAVING count(*) > 20;
-- 每年新加入的会员人数
SELECT date_trunc('year', joined_on)::date, count(*) FROM members GROUP BY 1;
-- 2024年12月有哪些员工加过班？
REFUSE
-- How many American sci-fi films (美国, 科幻) are there?
SELECT count(*) FROM films WHERE country = '美国' AND genre = '科幻';
-- 退票的订单一共多少钱？
SELECT sum(amount) FROM ticket_orders WHERE refunded;
-- 哪家影院停车最方便？
REFUSE
-- 积分最高的3位会员是谁
SELECT name FROM members ORDER BY points DESC LIMIT 3;

-- How many garages do we run?
SELECT count(*) FROM garages;
-- How many repair jobs were booked in 2024?
SELECT count(*) FROM repair_orders WHERE booked_at >= '2024-01-01' AND booked_at < '2025-01-01';
-- What's the average star rating we get in reviews?
SELECT avg(rating) FROM reviews;
-- Which garages have a tow truck?
SELECT name FROM garages WHERE has_tow_truck;
-- How many mechanics are still working for us?
SELECT count(*) FROM mechanics WHERE left_on IS NULL;
-- What did we spend on rent for each garage in 2024?
REFUSE
-- Could you show me how many repair orders there are in each status?
SELECT status, count(*) FROM repair_orders GROUP BY status;
-- Which parts are out of stock right now?
SELECT name FROM parts WHERE stock_qty = 0;
-- Total labour cost of completed orders for each garage, please.
SELECT g.name, sum(o.labour_cost) FROM repair_orders o JOIN garages g USING (garage_id) WHERE o.status = 'completed' GROUP BY g.garage_id, g.name;
-- Give me the 3 garages with the most repair orders.
SELECT g.name FROM repair_orders o JOIN garages g USING (garage_id) GROUP BY g.garage_id, g.name ORDER BY count(*) DESC LIMIT 3;
-- How many of our customers are businesses?
SELECT count(*) FROM customers WHERE customer_type = 'business' AND deleted_at IS NULL;
-- Names of the customers we have no email address for
SELECT full_name FROM customers WHERE email IS NULL AND deleted_at IS NULL;
-- What percentage of repair orders are under warranty?
SELECT 100.0 * count(*) FILTER (WHERE under_warranty) / count(*) FROM repair_orders;
-- Average hourly rate by grade of mechanic
SELECT grade, avg(hourly_rate) FROM mechanics GROUP BY grade;
-- How many orders were booked in each month of 2024?
SELECT date_trunc('month', booked_at)::date, count(*) FROM repair_orders WHERE booked_at >= '2024-01-01' AND booked_at < '2025-01-01' GROUP BY 1;
-- Who is our best paid mechanic by the hour?
SELECT full_name FROM mechanics ORDER BY hourly_rate DESC LIMIT 1;
-- Which insurance company pays for the most accident repairs?
REFUSE
-- How many vehicles do we have on file per fuel type?
SELECT fuel, count(*) FROM vehicles GROUP BY fuel;
-- Which make of car comes in for repair most often?
SELECT v.make FROM repair_orders o JOIN vehicles v USING (vehicle_id) GROUP BY v.make ORDER BY count(*) DESC LIMIT 1;
-- Which parts have never been used on any repair order?
SELECT name FROM parts p WHERE NOT EXISTS (SELECT 1 FROM order_parts op WHERE op.part_id = p.part_id);
-- How many cars are electric or hybrid?
SELECT count(*) FROM vehicles WHERE fuel IN ('electric', 'hybrid');
-- List the mechanics hired since the beginning of 2023, with the date they were hired.
SELECT full_name, hired_on FROM mechanics WHERE hired_on >= '2023-01-01';
-- Which garages are doing well?
REFUSE
-- How many bad reviews did we get, I mean one or two stars?
SELECT count(*) FROM reviews WHERE rating <= 2;
-- Which garages have an average rating below 3.5?
SELECT g.name FROM reviews r JOIN repair_orders o USING (order_id) JOIN garages g USING (garage_id) GROUP BY g.garage_id, g.name HAVING avg(r.rating) < 3.5;
-- Compare the average labour hours for brakes and tyres jobs.
SELECT job_type, avg(labour_hours) FROM repair_orders WHERE job_type IN ('brakes', 'tyres') GROUP BY job_type;
-- How many orders are waiting for parts at the Leeds garages?
SELECT count(*) FROM repair_orders o JOIN garages g USING (garage_id) WHERE o.status = 'waiting_parts' AND g.city = 'Leeds';
-- Which parts cost more than the average part?
SELECT name FROM parts WHERE unit_price > (SELECT avg(unit_price) FROM parts);
-- What was the highest labour cost on a single order?
SELECT max(labour_cost) FROM repair_orders;
-- How many sick days did the mechanics take in 2024?
REFUSE
-- How many different car makes are on our books?
SELECT count(DISTINCT make) FROM vehicles;
-- I need the names and emails of customers in York who want the newsletter.
SELECT full_name, email FROM customers WHERE city = 'York' AND wants_newsletter AND deleted_at IS NULL;
-- How many units of parts went into repairs, by part category?
SELECT p.category, sum(op.quantity) FROM order_parts op JOIN parts p USING (part_id) GROUP BY p.category;
-- Are there mechanics who have never been assigned a repair order? Who are they?
SELECT full_name FROM mechanics m WHERE NOT EXISTS (SELECT 1 FROM repair_orders o WHERE o.mechanic_id = m.mechanic_id);
-- What share of orders was cancelled at each garage, in percent?
SELECT g.name, 100.0 * count(*) FILTER (WHERE o.status = 'cancelled') / count(*) FROM repair_orders o JOIN garages g USING (garage_id) GROUP BY g.garage_id, g.name;
-- Which courtesy car is lent out most often?
REFUSE
-- Which customers have more than two vehicles registered?
SELECT c.full_name FROM customers c JOIN vehicles v USING (customer_id) WHERE c.deleted_at IS NULL GROUP BY c.customer_id, c.full_name HAVING count(*) > 2;
-- Plate, make and model of the oldest car we have on file
SELECT plate, make, model FROM vehicles ORDER BY model_year LIMIT 1;
-- How much labour cost did completed jobs bring in per year?
SELECT date_trunc('year', booked_at)::date, sum(labour_cost) FROM repair_orders WHERE status = 'completed' GROUP BY 1;
-- Which garages opened before 2010 and have more than 6 bays?
SELECT name FROM garages WHERE opened_on < '2010-01-01' AND bays > 6;
-- Which discontinued parts do we still have in stock, and how many of each?
SELECT name, stock_qty FROM parts WHERE discontinued AND stock_qty > 0;
-- For how many vehicles is the mileage missing?
SELECT count(*) FROM vehicles WHERE odometer_km IS NULL;
-- Show me the important ones.
REFUSE
-- Number of customers per city, biggest first
SELECT city, count(*) FROM customers WHERE deleted_at IS NULL GROUP BY city ORDER BY count(*) DESC;
-- How many appointments were made through the mobile app?
REFUSE

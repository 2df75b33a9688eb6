-- How many shipments do we have in total?
SELECT count(*) FROM shipments WHERE deleted_at IS NULL;
-- How many containers do we lease?
SELECT count(*) FROM containers WHERE is_leased;
-- Which shipments are stuck in customs right now? Just the reference numbers please.
SELECT reference_no FROM shipments WHERE status = 'customs_hold' AND deleted_at IS NULL;
-- Could you pull up a list of our preferred carriers?
SELECT carrier_name FROM carriers WHERE is_preferred;
-- number of shipments by status
SELECT status, count(*) FROM shipments WHERE deleted_at IS NULL GROUP BY status;
-- What was the total freight charge on shipments booked in 2024?
SELECT sum(freight_charge) FROM shipments WHERE booked_at >= '2024-01-01' AND booked_at < '2025-01-01' AND deleted_at IS NULL;
-- Who are our four biggest clients by number of shipments?
SELECT c.company_name FROM clients c JOIN shipments s USING (client_id) WHERE s.deleted_at IS NULL GROUP BY c.client_id, c.company_name ORDER BY count(*) DESC LIMIT 4;
-- average gross weight of hazardous shipments
SELECT avg(gross_weight_kg) FROM shipments WHERE is_hazardous AND deleted_at IS NULL;
-- How many invoices are overdue?
SELECT count(*) FROM invoices WHERE status = 3;
-- What's the total amount of disputed invoices?
SELECT sum(amount) FROM invoices WHERE status = 4;
-- Show me the monthly number of bookings in 2024
SELECT date_trunc('month', booked_at) AS month, count(*) FROM shipments WHERE booked_at >= '2024-01-01' AND booked_at < '2025-01-01' AND deleted_at IS NULL GROUP BY 1 ORDER BY 1;
-- Which clients have never shipped anything with us?
SELECT company_name FROM clients c WHERE NOT EXISTS (SELECT 1 FROM shipments s WHERE s.client_id = c.client_id AND s.deleted_at IS NULL);
-- Which carrier got the most bookings in 2025?
SELECT c.carrier_name FROM carriers c JOIN shipments s USING (carrier_id) WHERE s.booked_at >= '2025-01-01' AND s.booked_at < '2026-01-01' AND s.deleted_at IS NULL GROUP BY c.carrier_id, c.carrier_name ORDER BY count(*) DESC LIMIT 1;
-- How many reefer containers are damaged?
SELECT count(*) FROM containers WHERE type_code = 4 AND condition = 'damaged';
-- How many agents are there in each office city?
SELECT office_city, count(*) FROM agents GROUP BY office_city;
-- What percentage of shipments were cancelled?
SELECT 100.0 * count(*) FILTER (WHERE status = 'cancelled') / count(*) FROM shipments WHERE deleted_at IS NULL;
-- Hi, I need the names of all seaports in China, thanks
SELECT port_name FROM ports WHERE port_type = 'seaport' AND country = 'China';
-- What does the warehouse storage cost us per month?
REFUSE
-- How many delivered shipments arrived later than their ETA?
SELECT count(*) FROM shipments WHERE status = 'delivered' AND arrived_on > eta AND deleted_at IS NULL;
-- average credit limit per industry
SELECT industry, avg(credit_limit) FROM clients GROUP BY industry;
-- List the clients that have no contact email
SELECT company_name FROM clients WHERE contact_email IS NULL;
-- what is the highest claim ever filed, in money terms?
SELECT max(claimed_amount) FROM claims;
-- How much did we pay out in settlements for damage claims?
SELECT sum(settled_amount) FROM claims WHERE claim_type = 'damage';
-- Which carriers haven't been rated yet?
SELECT carrier_name FROM carriers WHERE rating IS NULL;
-- Did we book more shipments in 2024 than in 2023? Give me both numbers.
SELECT count(*) FILTER (WHERE booked_at >= '2023-01-01' AND booked_at < '2024-01-01') AS y2023, count(*) FILTER (WHERE booked_at >= '2024-01-01' AND booked_at < '2025-01-01') AS y2024 FROM shipments WHERE deleted_at IS NULL;
-- Name the agents who earn more than the average salary
SELECT full_name FROM agents WHERE monthly_salary > (SELECT avg(monthly_salary) FROM agents);
-- Which destination port received the most cargo by weight from delivered shipments?
SELECT p.port_name FROM ports p JOIN shipments s ON s.destination_port_id = p.port_id WHERE s.status = 'delivered' AND s.deleted_at IS NULL GROUP BY p.port_id, p.port_name ORDER BY sum(s.gross_weight_kg) DESC LIMIT 1;
-- How satisfied are our customers with Nordhav Line?
REFUSE
-- I'd like to know how many shipments went out with air carriers last year
SELECT count(*) FROM shipments s JOIN carriers c USING (carrier_id) WHERE c.transport_mode = 'air' AND s.departed_on >= date_trunc('year', current_date) - interval '1 year' AND s.departed_on < date_trunc('year', current_date) AND s.deleted_at IS NULL;
-- Total invoiced amount per quarter of 2025
SELECT date_trunc('quarter', issued_on) AS quarter, sum(amount) FROM invoices WHERE issued_on >= '2025-01-01' AND issued_on < '2026-01-01' GROUP BY 1 ORDER BY 1;
-- Which clients have both an open claim and an overdue invoice?
SELECT c.company_name FROM clients c WHERE EXISTS (SELECT 1 FROM shipments s JOIN claims k USING (shipment_id) WHERE s.client_id = c.client_id AND s.deleted_at IS NULL AND k.status = 'open') AND EXISTS (SELECT 1 FROM shipments s JOIN invoices i USING (shipment_id) WHERE s.client_id = c.client_id AND s.deleted_at IS NULL AND i.status = 3);
-- How many shipments were under DDP or DAP terms?
SELECT count(*) FROM shipments WHERE incoterm IN ('DDP', 'DAP') AND deleted_at IS NULL;
-- average transit time in days per transport mode for delivered shipments
SELECT c.transport_mode, avg(s.arrived_on - s.departed_on) FROM shipments s JOIN carriers c USING (carrier_id) WHERE s.status = 'delivered' AND s.deleted_at IS NULL GROUP BY c.transport_mode;
-- Which good clients should we focus on?
REFUSE
-- Top 3 agents by freight charge of the shipments they handled, with the total
SELECT a.full_name, sum(s.freight_charge) FROM agents a JOIN shipments s USING (agent_id) WHERE s.deleted_at IS NULL GROUP BY a.agent_id, a.full_name ORDER BY 2 DESC LIMIT 3;
-- What are the invoice numbers of drafts?
SELECT invoice_no FROM invoices WHERE status = 0;
-- How many invoices were paid after the due date?
SELECT count(*) FROM invoices WHERE paid_on > due_on;
-- Which containers have never been used on a shipment? I need the container numbers
SELECT container_no FROM containers c WHERE NOT EXISTS (SELECT 1 FROM shipment_containers sc WHERE sc.container_id = c.container_id);
-- How much CO2 did our ocean shipments produce in 2024?
REFUSE
-- When was the last shipment for Elmsford Trading booked?
SELECT max(s.booked_at) FROM shipments s JOIN clients c USING (client_id) WHERE c.company_name = 'Elmsford Trading' AND s.deleted_at IS NULL;
-- Whats the median freight charge?
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY freight_charge) FROM shipments WHERE deleted_at IS NULL;
-- On which weekday do we get the most bookings?
SELECT trim(to_char(booked_at, 'Day')) FROM shipments WHERE deleted_at IS NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1;
-- Heaviest shipment of each transport mode: give me the mode, reference number and weight
SELECT DISTINCT ON (c.transport_mode) c.transport_mode, s.reference_no, s.gross_weight_kg FROM shipments s JOIN carriers c USING (carrier_id) WHERE s.deleted_at IS NULL ORDER BY c.transport_mode, s.gross_weight_kg DESC;
-- How many different clients filed a claim?
SELECT count(DISTINCT s.client_id) FROM claims k JOIN shipments s USING (shipment_id) WHERE s.deleted_at IS NULL;
-- Show carriers with more than 35 shipments and how many each had
SELECT c.carrier_name, count(*) FROM carriers c JOIN shipments s USING (carrier_id) WHERE s.deleted_at IS NULL GROUP BY c.carrier_id, c.carrier_name HAVING count(*) > 35;
-- Which drivers delivered the road shipments in October 2024?
REFUSE
-- What share of our claims got rejected?
SELECT 1.0 * count(*) FILTER (WHERE status = 'rejected') / count(*) FROM claims;
-- Who does Jonas Keller report to?
SELECT b.full_name FROM agents a JOIN agents b ON b.agent_id = a.supervisor_id WHERE a.full_name = 'Jonas Keller';
-- How many uninsured shipments had a declared value above 200,000?
SELECT count(*) FROM shipments WHERE NOT is_insured AND declared_value > 200000 AND deleted_at IS NULL;
-- What is the profit margin on each shipment?
REFUSE
-- 一共有多少家德国的客户?
SELECT count(*) FROM clients WHERE country = 'Germany';
-- 帮我看看 Blue Meridian Shipping 总共承运了多少票货
SELECT count(*) FROM shipments s JOIN carriers c USING (carrier_id) WHERE c.carrier_name = 'Blue Meridian Shipping' AND s.deleted_at IS NULL;
-- 列出所有冷藏集装箱的箱号
SELECT container_no FROM containers WHERE type_code = 4;
-- 每个行业的客户各有多少家?
SELECT industry, count(*) FROM clients GROUP BY industry;
-- 2024年从 Rotterdam 港发出的货物总毛重是多少?
SELECT sum(s.gross_weight_kg) FROM shipments s JOIN ports p ON p.port_id = s.origin_port_id WHERE p.port_name = 'Rotterdam' AND s.departed_on >= '2024-01-01' AND s.departed_on < '2025-01-01' AND s.deleted_at IS NULL;
-- 哪个业务员经手的货最多?
SELECT a.full_name FROM agents a JOIN shipments s USING (agent_id) WHERE s.deleted_at IS NULL GROUP BY a.agent_id, a.full_name ORDER BY count(*) DESC LIMIT 1;
-- 已离职的员工有哪些?
SELECT full_name FROM agents WHERE left_on IS NOT NULL;
-- 索赔类型为 delay 的平均索赔金额是多少?
SELECT avg(claimed_amount) FROM claims WHERE claim_type = 'delay';
-- 我们每个办公室的房租是多少?
REFUSE
-- 下个月大概会有多少票货?
REFUSE

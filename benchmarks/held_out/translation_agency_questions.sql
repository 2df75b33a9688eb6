-- From how many different countries do our clients come?
SELECT count(DISTINCT country) FROM clients
-- How many of our translators are currently active?
SELECT count(*) FROM translators WHERE status='active'
-- What's the average rate per word of the sworn translators?
SELECT avg(rate_per_word) FROM translators WHERE is_sworn
-- List the names of all clients based in Germany.
SELECT name FROM clients WHERE country='Germany'
-- Number of projects by status, please.
SELECT status, count(*) FROM projects GROUP BY status
-- Which languages are written from right to left?
SELECT name FROM languages WHERE right_to_left
-- What was the total amount of the invoices issued in 2024?
SELECT sum(amount) FROM invoices WHERE issued_on>='2024-01-01' AND issued_on<'2025-01-01'
-- How many rush projects were received in 2024?
SELECT count(*) FROM projects WHERE is_rush AND received_at>='2024-01-01' AND received_at<'2025-01-01'
-- Who is our best-paid employee?
SELECT full_name FROM employees ORDER BY monthly_salary DESC LIMIT 1
-- Which translator has the highest total of fees?
SELECT t.full_name FROM assignments a JOIN translators t USING (translator_id) GROUP BY t.translator_id, t.full_name ORDER BY sum(a.fee) DESC LIMIT 1
-- Break the clients down by industry: how many in each?
SELECT industry, count(*) FROM clients GROUP BY industry
-- Could you give me the names of the five translators with the highest rating, best first?
SELECT full_name FROM translators WHERE rating IS NOT NULL ORDER BY rating DESC LIMIT 5
-- What is the mean word count of medical projects?
SELECT avg(word_count) FROM projects WHERE subject_area='medical'
-- How many invoices haven't been paid yet?
SELECT count(*) FROM invoices WHERE paid_on IS NULL
-- Who works at the Madrid office? Names only.
SELECT full_name FROM employees WHERE office='Madrid'
-- How many assignments are there for each kind of task?
SELECT task, count(*) FROM assignments GROUP BY task
-- What's the word count of our biggest project?
SELECT max(word_count) FROM projects
-- How many projects came in per quarter of 2024?
SELECT date_trunc('quarter',received_at)::date, count(*) FROM projects WHERE received_at>='2024-01-01' AND received_at<'2025-01-01' GROUP BY 1
-- Which clients have no credit limit set?
SELECT name FROM clients WHERE credit_limit IS NULL
-- How many projects went from English into German?
SELECT count(*) FROM projects p JOIN languages s ON s.language_code=p.source_language JOIN languages t ON t.language_code=p.target_language WHERE s.name='English' AND t.name='German'
-- How many translation assignments of more than 10,000 words got a quality score below 75?
SELECT count(*) FROM assignments WHERE task='translation' AND words>10000 AND quality_score<75
-- Average monthly salary for each job title
SELECT job_title, avg(monthly_salary) FROM employees GROUP BY job_title
-- translator_languages 里 level 为 native 的记录有几条？
SELECT count(*) FROM translator_languages WHERE level='native'
-- What is the combined price of the cancelled projects?
SELECT sum(price) FROM projects WHERE status='cancelled'
-- Which remote employees were hired before 2024? Just the names, thanks.
SELECT full_name FROM employees WHERE works_remotely AND hired_on<'2024-01-01'
-- What are the lowest and the highest rate per word among our translators?
SELECT min(rate_per_word), max(rate_per_word) FROM translators
-- Hi, could you tell me how many invoices were paid by card?
SELECT count(*) FROM invoices WHERE payment_method='card'
-- How many legal or financial projects have been delivered?
SELECT count(*) FROM projects WHERE subject_area IN ('legal','financial') AND status='delivered'
-- Who reports to Petra Lindqvist?
SELECT e.full_name FROM employees e JOIN employees m ON m.employee_id=e.manager_id WHERE m.full_name='Petra Lindqvist'
-- Show me the invoice numbers of invoices over 4500.
SELECT invoice_number FROM invoices WHERE amount>4500
-- Which translators have never been given an assignment?
SELECT full_name FROM translators t WHERE NOT EXISTS (SELECT 1 FROM assignments a WHERE a.translator_id=t.translator_id)
-- Which client has the highest total project price?
SELECT c.name FROM clients c JOIN projects p USING (client_id) GROUP BY c.client_id, c.name ORDER BY sum(p.price) DESC LIMIT 1
-- Top 3 coordinators by number of projects, with the number of projects.
SELECT e.full_name, count(*) FROM projects p JOIN employees e ON e.employee_id=p.coordinator_id GROUP BY e.employee_id, e.full_name ORDER BY count(*) DESC LIMIT 3
-- What percentage of all projects are rush jobs?
SELECT 100.0*count(*) FILTER (WHERE is_rush)/count(*) FROM projects
-- What share of the delivered projects was delivered after the due date, in percent?
SELECT 100.0*count(*) FILTER (WHERE delivered_at::date>due_on)/count(*) FROM projects WHERE status='delivered'
-- What's the median price of a project?
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price) FROM projects
-- Invoiced amount per month in 2024, in chronological order
SELECT date_trunc('month',issued_on)::date, sum(amount) FROM invoices WHERE issued_on>='2024-01-01' AND issued_on<'2025-01-01' GROUP BY 1 ORDER BY 1
-- On which day of the week do we receive how many projects?
SELECT extract(isodow FROM received_at), count(*) FROM projects GROUP BY 1
-- Which clients have given us more than 15 projects?
SELECT c.name FROM clients c JOIN projects p USING (client_id) GROUP BY c.client_id, c.name HAVING count(*)>15
-- How many translators charge more per word than the average translator?
SELECT count(*) FROM translators WHERE rate_per_word>(SELECT avg(rate_per_word) FROM translators)
-- Which managers have more than five direct reports, and how many do they have?
SELECT m.full_name, count(*) FROM employees e JOIN employees m ON m.employee_id=e.manager_id GROUP BY m.employee_id, m.full_name HAVING count(*)>5
-- By what percentage did the invoiced amount grow from 2023 to 2024?
SELECT 100.0*(sum(amount) FILTER (WHERE extract(year FROM issued_on)=2024)-sum(amount) FILTER (WHERE extract(year FROM issued_on)=2023))/sum(amount) FILTER (WHERE extract(year FROM issued_on)=2023) FROM invoices
-- How many days does it take on average from issuing an invoice to its payment?
SELECT avg(paid_on-issued_on) FROM invoices WHERE paid_on IS NOT NULL
-- How many invoices were paid after their due date?
SELECT count(*) FROM invoices WHERE paid_on>due_on
-- Compare the average project price of VIP clients with that of the other clients.
SELECT c.is_vip, avg(p.price) FROM projects p JOIN clients c USING (client_id) GROUP BY c.is_vip
-- Are there any languages none of our translators knows? Which ones?
SELECT name FROM languages l WHERE NOT EXISTS (SELECT 1 FROM translator_languages tl WHERE tl.language_code=l.language_code)
-- Names of the translators who know at least five languages
SELECT t.full_name FROM translators t JOIN translator_languages tl USING (translator_id) GROUP BY t.translator_id, t.full_name HAVING count(*)>=5
-- What quality score do we get on average for each task?
SELECT task, avg(quality_score) FROM assignments GROUP BY task
-- Which clients sent us projects in 2023 but not a single one in 2025?
SELECT c.name FROM clients c WHERE EXISTS (SELECT 1 FROM projects p WHERE p.client_id=c.client_id AND p.received_at>='2023-01-01' AND p.received_at<'2024-01-01') AND NOT EXISTS (SELECT 1 FROM projects p WHERE p.client_id=c.client_id AND p.received_at>='2025-01-01' AND p.received_at<'2026-01-01')
-- status 为 on_hold 的项目有多少个？
SELECT count(*) FROM projects WHERE status='on_hold'
-- job_title 是 account manager 的员工有几位？
SELECT count(*) FROM employees WHERE job_title='account manager'
-- 请按 payment_method 统计已付发票（invoices）的金额合计
SELECT payment_method, sum(amount) FROM invoices WHERE paid_on IS NOT NULL GROUP BY payment_method
-- Which CAT tool do most of our translators use?
REFUSE
-- What do we pay in rent for the Berlin office?
REFUSE
-- So, how are things going?
REFUSE
-- How many complaints did clients file in 2024?
REFUSE
-- Give me the interesting ones.
REFUSE
-- What was the average travel expense of an interpreter per trip?
REFUSE
-- translators 的平均年龄是多少？
REFUSE
-- 2024 年公司的广告费花了多少？
REFUSE

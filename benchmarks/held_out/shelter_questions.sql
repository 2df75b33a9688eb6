-- How many animals do we have in total?
SELECT count(*) FROM animal
-- which animals are available right now
SELECT animal_name FROM animal WHERE status = 'available'
-- How many dogs are in the shelter's records?
SELECT count(*) FROM animal JOIN species USING (species_id) WHERE species_name = 'Dog'
-- list all female cats
SELECT animal_name FROM animal JOIN species USING (species_id) WHERE species_name = 'Cat' AND sex = 'female'
-- number of animals by species
SELECT species_name, count(*) FROM animal JOIN species USING (species_id) GROUP BY 1
-- What's the average weight of our dogs?
SELECT avg(weight_kg) FROM animal JOIN species USING (species_id) WHERE species_name = 'Dog'
-- heaviest animal
SELECT animal_name FROM animal ORDER BY weight_kg DESC LIMIT 1
-- Who is the lightest rabbit?
SELECT animal_name FROM animal JOIN species USING (species_id) WHERE species_name = 'Rabbit' ORDER BY weight_kg LIMIT 1
-- animals that came in during 2024
SELECT animal_name FROM animal WHERE intake_date >= '2024-01-01' AND intake_date < '2025-01-01'
-- How many animals arrived each year?
SELECT extract(year FROM intake_date)::int, count(*) FROM animal GROUP BY 1
-- which animals aren't neutered yet
SELECT animal_name FROM animal WHERE NOT is_neutered
-- show me the animals without a kennel
SELECT animal_name FROM animal WHERE kennel_id IS NULL
-- For how many animals is the birth date unknown?
SELECT count(*) FROM animal WHERE birth_date IS NULL
-- black or white cats
SELECT animal_name FROM animal JOIN species USING (species_id) WHERE species_name = 'Cat' AND color IN ('black', 'white')
-- Which building has the largest total capacity?
SELECT building FROM kennel GROUP BY 1 ORDER BY sum(capacity) DESC LIMIT 1
-- total kennel capacity
SELECT sum(capacity) FROM kennel
-- capacity per building
SELECT building, sum(capacity) FROM kennel GROUP BY 1
-- what's the status of Ziggy?
SELECT status FROM animal WHERE animal_name = 'Ziggy'
-- When did Luna arrive?
SELECT intake_date FROM animal WHERE animal_name = 'Luna'
-- who adopted Pepper
SELECT full_name FROM adoption JOIN adopter USING (adopter_id) JOIN animal USING (animal_id) WHERE animal_name = 'Pepper'
-- Which animals did Greta Lindholm adopt?
SELECT animal_name FROM adoption JOIN adopter USING (adopter_id) JOIN animal USING (animal_id) WHERE full_name = 'Greta Lindholm'
-- How many adoptions were there in 2024?
SELECT count(*) FROM adoption WHERE adopted_on >= '2024-01-01' AND adopted_on < '2025-01-01'
-- adoptions per month in 2024
SELECT date_trunc('month', adopted_on)::date, count(*) FROM adoption WHERE adopted_on >= '2024-01-01' AND adopted_on < '2025-01-01' GROUP BY 1
-- How much did we earn from adoption fees?
SELECT sum(fee) FROM adoption
-- average adoption fee by species
SELECT species_name, avg(fee) FROM adoption JOIN animal USING (animal_id) JOIN species USING (species_id) GROUP BY 1
-- Which adopters live in Ashford?
SELECT full_name FROM adopter WHERE town = 'Ashford'
-- how many adopters have a garden
SELECT count(*) FROM adopter WHERE has_garden
-- adopters who never adopted anything
SELECT full_name FROM adopter WHERE NOT EXISTS (SELECT FROM adoption WHERE adoption.adopter_id = adopter.adopter_id)
-- Who has adopted more than one animal?
SELECT full_name FROM adoption JOIN adopter USING (adopter_id) GROUP BY adopter_id, full_name HAVING count(*) > 1
-- which adopted animals were brought back
SELECT animal_name FROM adoption JOIN animal USING (animal_id) WHERE returned_on IS NOT NULL
-- What was the highest adoption fee ever paid?
SELECT max(fee) FROM adoption
-- top 5 donations
SELECT amount FROM donation ORDER BY amount DESC LIMIT 5
-- total donations by payment method
SELECT method, sum(amount) FROM donation GROUP BY 1
-- How much money was donated in cash in 2023?
SELECT sum(amount) FROM donation WHERE method = 'cash' AND donated_on >= '2023-01-01' AND donated_on < '2024-01-01'
-- anonymous donations, i.e. those with no adopter: how many are there?
SELECT count(*) FROM donation WHERE adopter_id IS NULL
-- Who gave the most money overall?
SELECT full_name FROM donation JOIN adopter USING (adopter_id) GROUP BY adopter_id, full_name ORDER BY sum(amount) DESC LIMIT 1
-- donations over 200
SELECT amount FROM donation WHERE amount > 200
-- what did we spend on vet treatments in total
SELECT sum(cost) FROM treatment
-- cost of treatments by type, most expensive first
SELECT treatment_type, sum(cost) FROM treatment GROUP BY 1 ORDER BY 2 DESC
-- How many surgeries did Dr. Elena Fox carry out?
SELECT count(*) FROM treatment WHERE treatment_type = 'surgery' AND vet_name = 'Dr. Elena Fox'
-- which animal has cost us the most in treatments?
SELECT animal_name FROM treatment JOIN animal USING (animal_id) GROUP BY animal_id, animal_name ORDER BY sum(cost) DESC LIMIT 1
-- animals that have never been treated
SELECT animal_name FROM animal WHERE animal_id NOT IN (SELECT animal_id FROM treatment)
-- When was Otto last treated?
SELECT max(treated_on) FROM treatment JOIN animal USING (animal_id) WHERE animal_name = 'Otto'
-- Which vets do we work with?
SELECT DISTINCT vet_name FROM treatment
-- volunteers in the walking team
SELECT full_name FROM volunteer WHERE team = 'Walking'
-- total weekly volunteer hours per team
SELECT team, sum(hours_per_week) FROM volunteer GROUP BY 1
-- Who supervises Lucy Tran?
SELECT s.full_name FROM volunteer v JOIN volunteer s ON s.volunteer_id = v.supervisor_id WHERE v.full_name = 'Lucy Tran'
-- volunteers who joined before 2021
SELECT full_name FROM volunteer WHERE joined_on < '2021-01-01'
-- the three volunteers with the most hours, with their hours
SELECT full_name, hours_per_week FROM volunteer WHERE hours_per_week IS NOT NULL ORDER BY 2 DESC LIMIT 3
-- average number of adoptions per adopter, counting those who adopted nothing too
SELECT avg(n) FROM (SELECT count(adoption_id) AS n FROM adopter LEFT JOIN adoption USING (adopter_id) GROUP BY adopter_id) AS each
-- share of animals that are neutered, in percent
SELECT 100.0 * count(*) FILTER (WHERE is_neutered) / count(*) FROM animal
-- animals weighing between 10 and 20 kg
SELECT animal_name FROM animal WHERE weight_kg BETWEEN 10 AND 20
-- are there more male or female animals?
SELECT sex, count(*) FROM animal GROUP BY 1
-- which species do we have no animals of
SELECT species_name FROM species WHERE species_id NOT IN (SELECT species_id FROM animal)
-- oldest dog we have
SELECT animal_name FROM animal JOIN species USING (species_id) WHERE species_name = 'Dog' AND birth_date IS NOT NULL ORDER BY birth_date LIMIT 1
-- 一共有多少只动物
SELECT count(*) FROM animal
-- 每个物种各有多少只动物？
SELECT species_name, count(*) FROM animal JOIN species USING (species_id) GROUP BY 1
-- 体重最重的三只动物是哪些
SELECT animal_name FROM animal ORDER BY weight_kg DESC LIMIT 3
-- 2024年的捐款总额是多少
SELECT sum(amount) FROM donation WHERE donated_on >= '2024-01-01' AND donated_on < '2025-01-01'
-- 领养人住在哪些城镇
SELECT DISTINCT town FROM adopter
-- 哪些志愿者每周工作超过8小时
SELECT full_name FROM volunteer WHERE hours_per_week > 8
-- 按治疗类型统计平均费用
SELECT treatment_type, avg(cost) FROM treatment GROUP BY 1
-- 每月的捐款金额
SELECT date_trunc('month', donated_on)::date, sum(amount) FROM donation GROUP BY 1
-- 有花园的领养人有几位
SELECT count(*) FROM adopter WHERE has_garden
-- 没有领养过动物的领养人
SELECT full_name FROM adopter WHERE adopter_id NOT IN (SELECT adopter_id FROM adoption)
-- 用银行转账的捐款有多少笔
SELECT count(*) FROM donation WHERE method = 'bank transfer'
-- What do the dogs eat per day?
REFUSE
-- how many visitors came to the shelter last Sunday
REFUSE
-- the salary of our veterinarians
REFUSE
-- microchip number of Luna
REFUSE
-- 动物的疫苗有效期是什么时候
REFUSE
-- hello!
CHAT
-- thanks, that was very helpful
CHAT
-- What can you do?
CHAT
-- How do I get my puppy to stop chewing shoes?
CHAT
-- I've always wanted to adopt a rabbit
CHAT
-- Why do cats purr?
CHAT
-- 你是谁
CHAT
-- 养兔子需要注意什么
CHAT
-- 今天心情不太好
CHAT

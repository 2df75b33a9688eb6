-- How many aircraft do we have?
SELECT count(*) FROM "Aircraft";

-- How many of our planes are leased?
SELECT count(*) FROM "Aircraft" WHERE "isLeased";

-- List the tail numbers of all planes that are stored or retired.
SELECT "tailNumber" FROM "Aircraft" WHERE "status" IN ('stored','retired');

-- number of aircraft per status
SELECT "status", count(*) FROM "Aircraft" GROUP BY "status";

-- What's the average number of total flight hours across the fleet?
SELECT avg("totalFlightHours") FROM "Aircraft";

-- Which aircraft has flown the most hours?
SELECT "tailNumber" FROM "Aircraft" ORDER BY "totalFlightHours" DESC LIMIT 1;

-- Give me the five aircraft with the most cycles, and how many cycles each has
SELECT "tailNumber", "totalCycles" FROM "Aircraft" ORDER BY "totalCycles" DESC LIMIT 5;

-- How many passengers did we carry in 2024?
REFUSE

-- For every manufacturer, how many planes do we have?
SELECT t."manufacturer", count(*) FROM "Aircraft" a JOIN "AircraftType" t USING ("typeId") GROUP BY t."manufacturer";

-- Which stations don't have a hangar?
SELECT "stationName" FROM "Station" WHERE NOT "hasHangar";

-- Could you tell me how many work orders were opened in 2024?
SELECT count(*) FROM "WorkOrder" WHERE "openedAt" >= '2024-01-01' AND "openedAt" < '2025-01-01';

-- work orders by check type
SELECT "checkType", count(*) FROM "WorkOrder" GROUP BY "checkType";

-- Show the number of work orders opened in each month of 2024, in chronological order.
SELECT to_char("openedAt",'YYYY-MM') AS month, count(*) FROM "WorkOrder" WHERE "openedAt" >= '2024-01-01' AND "openedAt" < '2025-01-01' GROUP BY 1 ORDER BY 1;

-- How many work orders are in progress?
SELECT count(*) FROM "WorkOrder" WHERE "status" = 'in_progress';

-- On average, how many actual hours does a C check take?
SELECT avg("actualHours") FROM "WorkOrder" WHERE "checkType" = 'C';

-- Which pilot reports the most defects?
REFUSE

-- How many work orders ended up taking more hours than estimated?
SELECT count(*) FROM "WorkOrder" WHERE "actualHours" > "estimatedHours";

-- What percentage of all work orders were cancelled?
SELECT 100.0 * count(*) FILTER (WHERE "status" = 'cancelled') / count(*) FROM "WorkOrder";

-- Are there any aircraft that never had a work order? Please list their tail numbers.
SELECT a."tailNumber" FROM "Aircraft" a WHERE NOT EXISTS (SELECT 1 FROM "WorkOrder" w WHERE w."aircraftId" = a."aircraftId");

-- names of mechanics who have never led a work order
SELECT m."fullName" FROM "Mechanic" m WHERE NOT EXISTS (SELECT 1 FROM "WorkOrder" w WHERE w."leadMechanicId" = m."mechanicId");

-- Which mechanic has led the most work orders, and how many?
SELECT m."fullName", count(*) FROM "WorkOrder" w JOIN "Mechanic" m ON m."mechanicId" = w."leadMechanicId" GROUP BY m."mechanicId", m."fullName" ORDER BY count(*) DESC LIMIT 1;

-- How many work orders have no lead mechanic assigned?
SELECT count(*) FROM "WorkOrder" WHERE "leadMechanicId" IS NULL;

-- Which parts have stock below their reorder level?
SELECT "partName" FROM "Part" WHERE "stockQty" < "reorderLevel";

-- How much fuel does each aircraft type burn per hour?
REFUSE

-- What is the total value of the parts we have in stock?
SELECT sum("stockQty" * "unitPrice") FROM "Part";

-- What's our priciest part?
SELECT "partName" FROM "Part" ORDER BY "unitPrice" DESC LIMIT 1;

-- Top 3 parts by quantity used on work orders, with the quantity
SELECT p."partName", sum(x."quantity") FROM "WorkOrderPart" x JOIN "Part" p USING ("partId") GROUP BY p."partId", p."partName" ORDER BY 2 DESC LIMIT 3;

-- Which parts have never been used on a work order?
SELECT p."partName" FROM "Part" p WHERE NOT EXISTS (SELECT 1 FROM "WorkOrderPart" x WHERE x."partId" = p."partId");

-- How much money went into parts on work orders opened in 2024?
SELECT sum(x."quantity" * x."priceEach") FROM "WorkOrderPart" x JOIN "WorkOrder" w USING ("workOrderId") WHERE w."openedAt" >= '2024-01-01' AND w."openedAt" < '2025-01-01';

-- Who are our suppliers? No duplicates please.
SELECT DISTINCT "supplierName" FROM "Part";

-- average unit price of parts by supplier, most expensive supplier first
SELECT "supplierName", avg("unitPrice") FROM "Part" GROUP BY "supplierName" ORDER BY 2 DESC;

-- How do leased aircraft compare with owned ones in average flight hours?
SELECT "isLeased", avg("totalFlightHours") FROM "Aircraft" GROUP BY "isLeased";

-- How many critical defects were reported in 2025?
SELECT count(*) FROM "Defect" WHERE "severity" = 'critical' AND "reportedAt" >= '2025-01-01' AND "reportedAt" < '2026-01-01' AND "deletedAt" IS NULL;

-- Defect count by severity
SELECT "severity", count(*) FROM "Defect" WHERE "deletedAt" IS NULL GROUP BY "severity";

-- Which tail number had the most defects in 2024?
SELECT a."tailNumber" FROM "Defect" d JOIN "Aircraft" a USING ("aircraftId") WHERE d."deletedAt" IS NULL AND d."reportedAt" >= '2024-01-01' AND d."reportedAt" < '2025-01-01' GROUP BY a."aircraftId", a."tailNumber" ORDER BY count(*) DESC LIMIT 1;

-- How many defects haven't been resolved yet?
SELECT count(*) FROM "Defect" WHERE "resolvedAt" IS NULL AND "deletedAt" IS NULL;

-- Who is our best mechanic?
REFUSE

-- How many deferred defects were reported by pilots?
SELECT count(*) FROM "Defect" WHERE "isDeferred" AND "reportedBy" = 'pilot' AND "deletedAt" IS NULL;

-- What share of defects comes from the cabin crew (in %)?
SELECT 100.0 * count(*) FILTER (WHERE "reportedBy" = 'cabin_crew') / count(*) FROM "Defect" WHERE "deletedAt" IS NULL;

-- Compare the number of defects reported in the first half of 2024 with the first half of 2025.
SELECT count(*) FILTER (WHERE "reportedAt" >= '2024-01-01' AND "reportedAt" < '2024-07-01') AS h1_2024, count(*) FILTER (WHERE "reportedAt" >= '2025-01-01' AND "reportedAt" < '2025-07-01') AS h1_2025 FROM "Defect" WHERE "deletedAt" IS NULL;

-- On which day of the week are the most defects reported?
SELECT to_char("reportedAt",'FMDay') FROM "Defect" WHERE "deletedAt" IS NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1;

-- median estimated hours for A checks
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY "estimatedHours") FROM "WorkOrder" WHERE "checkType" = 'A';

-- Which mechanics earn more per hour than the average mechanic?
SELECT "fullName" FROM "Mechanic" WHERE "hourlyWage" > (SELECT avg("hourlyWage") FROM "Mechanic");

-- For each station, who is the highest paid mechanic?
SELECT DISTINCT ON (s."stationId") s."stationName", m."fullName" FROM "Station" s JOIN "Mechanic" m USING ("stationId") ORDER BY s."stationId", m."hourlyWage" DESC;

-- Who supervises the most people?
SELECT b."fullName" FROM "Mechanic" m JOIN "Mechanic" b ON b."mechanicId" = m."supervisorId" GROUP BY b."mechanicId", b."fullName" ORDER BY count(*) DESC LIMIT 1;

-- Is anyone paid more than their own supervisor? Give me the names.
SELECT m."fullName" FROM "Mechanic" m JOIN "Mechanic" b ON b."mechanicId" = m."supervisorId" WHERE m."hourlyWage" > b."hourlyWage";

-- I need the names of the mechanics hired between 2019 and 2021, earliest first
SELECT "fullName" FROM "Mechanic" WHERE "hiredOn" >= '2019-01-01' AND "hiredOn" < '2022-01-01' ORDER BY "hiredOn";

-- How old are our mechanics on average?
REFUSE

-- Which mechanics are certified on both the A320-200 and the 737-800?
SELECT m."fullName" FROM "Mechanic" m WHERE EXISTS (SELECT 1 FROM "TypeCertification" c JOIN "AircraftType" t USING ("typeId") WHERE c."mechanicId" = m."mechanicId" AND t."modelName" = 'A320-200') AND EXISTS (SELECT 1 FROM "TypeCertification" c JOIN "AircraftType" t USING ("typeId") WHERE c."mechanicId" = m."mechanicId" AND t."modelName" = '737-800');

-- Show me the important work orders
REFUSE

-- Which aircraft models is nobody certified on?
SELECT t."modelName" FROM "AircraftType" t WHERE NOT EXISTS (SELECT 1 FROM "TypeCertification" c WHERE c."typeId" = t."typeId");

-- By how many percent did the number of work orders opened grow from 2023 to 2024?
SELECT 100.0 * (count(*) FILTER (WHERE extract(year FROM "openedAt") = 2024) - count(*) FILTER (WHERE extract(year FROM "openedAt") = 2023)) / count(*) FILTER (WHERE extract(year FROM "openedAt") = 2023) FROM "WorkOrder";

-- Leased aircraft whose lease runs out before 2030: tail number and lease end, soonest first
SELECT "tailNumber", "leaseEndsOn" FROM "Aircraft" WHERE "isLeased" AND "leaseEndsOn" < '2030-01-01' ORDER BY "leaseEndsOn";

-- What did we spend on shipping parts last year?
REFUSE

-- Which stations have handled more than 30 work orders?
SELECT s."stationName" FROM "WorkOrder" w JOIN "Station" s USING ("stationId") GROUP BY s."stationId", s."stationName" HAVING count(*) > 30;

-- 2024年每个季度分别报告了多少个缺陷?
SELECT extract(quarter FROM "reportedAt") AS quarter, count(*) FROM "Defect" WHERE "deletedAt" IS NULL AND "reportedAt" >= '2024-01-01' AND "reportedAt" < '2025-01-01' GROUP BY 1;

-- 总循环数最少的飞机是哪一架?
SELECT "tailNumber" FROM "Aircraft" ORDER BY "totalCycles" LIMIT 1;

-- 除LIS以外,每个国家的维修站平均工时费是多少?
SELECT "country", avg("labourRate") FROM "Station" WHERE "iataCode" <> 'LIS' GROUP BY "country";

-- 目前在职的机械师有多少人?
SELECT count(*) FROM "Mechanic" WHERE "isActive";

-- 各维修站机库的面积是多少?
REFUSE

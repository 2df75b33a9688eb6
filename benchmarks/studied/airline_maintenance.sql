-- Maintenance organisation of a regional airline
CREATE TYPE "checkKind" AS ENUM ('line','A','B','C','unscheduled');
CREATE TYPE "defectSeverity" AS ENUM ('minor','major','critical');

CREATE TABLE "Station" (
  "stationId" int PRIMARY KEY,
  "iataCode" char(3) NOT NULL UNIQUE,
  "stationName" text NOT NULL,
  "country" text NOT NULL,
  "hasHangar" boolean NOT NULL,
  "openedOn" date NOT NULL,
  "labourRate" numeric(8,2) NOT NULL
);
COMMENT ON COLUMN "Station"."labourRate" IS 'what the station charges per labour hour, EUR';

CREATE TABLE "AircraftType" (
  "typeId" int PRIMARY KEY,
  "manufacturer" text NOT NULL,
  "modelName" text NOT NULL UNIQUE,
  "seatCount" int NOT NULL,
  "maxTakeoffWeightKg" int NOT NULL
);

CREATE TABLE "Aircraft" (
  "aircraftId" int PRIMARY KEY,
  "tailNumber" text NOT NULL UNIQUE,
  "typeId" int NOT NULL REFERENCES "AircraftType",
  "homeStationId" int NOT NULL REFERENCES "Station",
  "deliveredOn" date NOT NULL,
  "totalFlightHours" numeric(10,1) NOT NULL,
  "totalCycles" int NOT NULL,
  "isLeased" boolean NOT NULL,
  "leaseEndsOn" date,
  "status" text NOT NULL CHECK ("status" IN ('active','in_maintenance','stored','retired'))
);

CREATE TABLE "Mechanic" (
  "mechanicId" int PRIMARY KEY,
  "fullName" text NOT NULL,
  "email" text,
  "stationId" int NOT NULL REFERENCES "Station",
  "supervisorId" int REFERENCES "Mechanic",
  "hiredOn" date NOT NULL,
  "licenceExpiresOn" date NOT NULL,
  "hourlyWage" numeric(6,2) NOT NULL,
  "isActive" boolean NOT NULL
);

CREATE TABLE "TypeCertification" (
  "mechanicId" int NOT NULL REFERENCES "Mechanic",
  "typeId" int NOT NULL REFERENCES "AircraftType",
  "certLevel" text NOT NULL CHECK ("certLevel" IN ('B1','B2','C')),
  "grantedOn" date NOT NULL,
  PRIMARY KEY ("mechanicId","typeId")
);

CREATE TABLE "Part" (
  "partId" int PRIMARY KEY,
  "partNumber" text NOT NULL UNIQUE,
  "partName" text NOT NULL,
  "supplierName" text NOT NULL,
  "unitPrice" numeric(10,2) NOT NULL,
  "stockQty" int NOT NULL,
  "reorderLevel" int NOT NULL,
  "leadTimeDays" int,
  "isRotable" boolean NOT NULL
);
COMMENT ON COLUMN "Part"."isRotable" IS 'true: repaired and reused, false: consumed';

CREATE TABLE "WorkOrder" (
  "workOrderId" int PRIMARY KEY,
  "orderNumber" text NOT NULL UNIQUE,
  "aircraftId" int NOT NULL REFERENCES "Aircraft",
  "stationId" int NOT NULL REFERENCES "Station",
  "leadMechanicId" int,
  "checkType" "checkKind" NOT NULL,
  "status" text NOT NULL CHECK ("status" IN ('open','in_progress','closed','cancelled')),
  "openedAt" timestamp NOT NULL,
  "closedAt" timestamp,
  "estimatedHours" numeric(7,1) NOT NULL,
  "actualHours" numeric(7,1)
);

CREATE TABLE "WorkOrderPart" (
  "workOrderId" int NOT NULL REFERENCES "WorkOrder",
  "partId" int NOT NULL REFERENCES "Part",
  "quantity" int NOT NULL CHECK ("quantity" > 0),
  "priceEach" numeric(10,2) NOT NULL,
  PRIMARY KEY ("workOrderId","partId")
);

CREATE TABLE "Defect" (
  "defectId" int PRIMARY KEY,
  "aircraftId" int NOT NULL REFERENCES "Aircraft",
  "workOrderId" int,
  "reportedAt" timestamp NOT NULL,
  "reportedBy" text NOT NULL CHECK ("reportedBy" IN ('pilot','cabin_crew','mechanic')),
  "severity" "defectSeverity" NOT NULL,
  "ataChapter" int NOT NULL,
  "description" text NOT NULL,
  "isDeferred" boolean NOT NULL,
  "resolvedAt" timestamp,
  "deletedAt" timestamp
);
COMMENT ON COLUMN "Defect"."deletedAt" IS 'set when the entry was removed (duplicate or entered by mistake)';

CREATE FUNCTION h(text) RETURNS float8 LANGUAGE sql IMMUTABLE AS
 'SELECT ((''x''||substr(md5($1),1,7))::bit(28)::int)/268435456.0::float8';

INSERT INTO "Station" VALUES
(1,'LIS','Lisbon Main Base','Portugal',true,'1998-04-01',92.50),
(2,'OPO','Porto','Portugal',true,'2003-06-15',84.00),
(3,'FAO','Faro','Portugal',false,'2009-03-20',71.00),
(4,'FNC','Madeira','Portugal',false,'2005-05-10',73.50),
(5,'MAD','Madrid','Spain',true,'2001-09-01',95.00),
(6,'BCN','Barcelona','Spain',true,'2006-02-01',93.25),
(7,'SVQ','Seville','Spain',false,'2014-04-12',68.00),
(8,'BIO','Bilbao','Spain',false,'2016-10-03',70.25),
(9,'TLS','Toulouse','France',true,'2008-11-17',101.00),
(10,'LYS','Lyon','France',false,'2012-01-09',88.75),
(11,'NTE','Nantes','France',false,'2018-05-28',82.00),
(12,'BGY','Bergamo','Italy',true,'2011-07-04',86.50),
(13,'NAP','Naples','Italy',false,'2015-03-30',74.25),
(14,'PMO','Palermo','Italy',false,'2019-06-01',66.75),
(15,'CGN','Cologne','Germany',true,'2010-08-23',108.00),
(16,'HAM','Hamburg','Germany',true,'2013-02-18',112.50),
(17,'GVA','Geneva','Switzerland',false,'2017-09-11',128.00),
(18,'CMN','Casablanca','Morocco',true,'2016-01-25',48.00),
(19,'RAK','Marrakesh','Morocco',false,'2020-02-03',44.50),
(20,'DSS','Dakar','Senegal',false,'2022-11-07',39.00);

INSERT INTO "AircraftType" VALUES
(1,'Airbus','A319-100',144,75500),(2,'Airbus','A320-200',174,78000),(3,'Airbus','A320neo',180,79000),
(4,'Airbus','A321neo',220,97000),(5,'Airbus','A330-200',268,242000),(6,'Airbus','A220-300',145,70900),
(7,'Boeing','737-700',149,70080),(8,'Boeing','737-800',189,79010),(9,'Boeing','737 MAX 8',186,82190),
(10,'Boeing','757-200',200,115680),(11,'Embraer','E170',76,38600),(12,'Embraer','E190',106,51800),
(13,'Embraer','E195-E2',132,61500),(14,'ATR','ATR 42-600',48,18600),(15,'ATR','ATR 72-600',72,23000),
(16,'De Havilland','Dash 8-400',78,29574),(17,'Bombardier','CRJ900',90,38330),(18,'Bombardier','CRJ1000',100,41640),
(19,'Saab','Saab 340B',34,13155),(20,'Boeing','787-8',242,227930);

INSERT INTO "Aircraft"
SELECT i, 'CS-T'||chr(65+(i-1)/12)||chr(65+((i*7) % 26)),
 (ARRAY[1,2,2,2,3,3,4,8,8,9,12,12,13,15,15,15,6,5,16,8])[1+((i*11) % 20)],
 (ARRAY[1,1,1,1,2,2,2,5,5,6,6,9,12,15,16,18,7,4])[1+floor(h('hs'||i)*18)::int],
 date '2004-02-01' + floor(h('dl'||i)*7500)::int, 0, 0,
 h('ls'||i) < 0.45, NULL,
 CASE WHEN i IN (5,19,33) THEN 'retired' WHEN i IN (8,22,40,44) THEN 'stored' WHEN i IN (3,11,17,29,37) THEN 'in_maintenance' ELSE 'active' END
FROM generate_series(1,48) i;
UPDATE "Aircraft" SET "totalFlightHours" = round(((date '2025-09-30' - "deliveredOn") * (5.5 + 3*h('fh'||"aircraftId")))::numeric,1);
UPDATE "Aircraft" SET "totalCycles" = floor("totalFlightHours" / (1.1 + 1.2*h('cy'||"aircraftId")))::int;
UPDATE "Aircraft" SET "leaseEndsOn" = date '2025-12-01' + floor(h('le'||"aircraftId")*2600)::int WHERE "isLeased";

INSERT INTO "Mechanic"
SELECT i, n, CASE WHEN h('em'||i) < 0.82 THEN lower(replace(n,' ','.'))||'@skyline-mx.example' END,
 CASE WHEN i<=20 THEN i ELSE (ARRAY[1,1,1,1,1,2,2,2,5,5,5,6,6,9,9,12,15,16,18,18])[1+floor(h('ms'||i)*20)::int] END,
 NULL, date '2006-01-10' + floor(h('hi'||i)*6900)::int, date '2025-06-01' + floor(h('lx'||i)*1500)::int,
 round((19 + 23*h('wg'||i))::numeric,2), h('ac'||i) < 0.9
FROM unnest(ARRAY['Rui Almeida','Marta Figueiredo','Tiago Ramalho','Helena Sardinha','Javier Ortega','Nuria Casals','Pablo Merino','Ane Etxeberria','Luc Fontaine','Claire Dumas',
'Yann Le Goff','Davide Rinaldi','Carmela Esposito','Salvo Mancuso','Jens Krüger','Birgit Lohmann','Matthias Favre','Youssef Benali','Fatima Zahraoui','Moussa Diop',
'Ana Bastos','Nuno Teixeira','Ines Carvalho','Paulo Nogueira','Sofia Vidal','Duarte Leal','Carla Moura','Hugo Antunes','Beatriz Rosa','Vasco Pinto',
'Sergio Lozano','Irene Pardo','Mateo Salas','Lucia Bravo','Oscar Gil','Marc Puig','Laia Ferrer','Antoine Mercier','Elise Garnier','Hugo Blanchet',
'Luca Moretti','Giulia Conti','Stefan Vogt','Katrin Seidel','Uwe Brandt','Karim Idrissi','Salma Tazi','Omar Fassi','Aminata Ndiaye','Joao Serra',
'Filipa Reis','Andre Cordeiro','Teresa Quintela','Raul Dominguez','Elena Cano','Victor Soler','Monica Prats','Bruno Faria','Diana Lobo','Samuel Pires']) WITH ORDINALITY t(n,i);
UPDATE "Mechanic" m SET "supervisorId" = CASE
 WHEN m."mechanicId" IN (1,5,15) THEN NULL
 WHEN m."mechanicId" <= 20 THEN CASE WHEN m."stationId" IN (2,3,4,18,19,20) THEN 1 WHEN m."stationId" IN (6,7,8,9,10,11) THEN 5 ELSE 15 END
 ELSE m."stationId" END;
UPDATE "Mechanic" SET "hourlyWage" = "hourlyWage" + 5.5 WHERE "mechanicId" <= 20;
UPDATE "Mechanic" SET "hourlyWage" = "hourlyWage" + 9 WHERE "mechanicId" IN (1,5,15,2,9,12);

INSERT INTO "TypeCertification"
SELECT m, t, (ARRAY['B1','B1','B2','B2','C'])[1+floor(h('cl'||m||'-'||t)*5)::int],
 (SELECT "hiredOn" FROM "Mechanic" WHERE "mechanicId"=m) + 200 + floor(h('cg'||m||'-'||t)*260)::int
FROM generate_series(1,60) m, generate_series(1,18) t
WHERE m NOT IN (14,27,33,46,58) AND t NOT IN (7,10,17)
 AND h('ct'||m||'-'||t) < CASE WHEN t IN (2,8,15) THEN 0.42 WHEN t IN (3,12,9) THEN 0.22 ELSE 0.07 END;

INSERT INTO "Part"
SELECT i, 'PN-'||lpad(((i*7919) % 100000)::text,5,'0'), n,
 (ARRAY['Safran Services','Liebherr Aero','Collins Components','Iberavia Supply','Honeywell Spares','Tarmac Consumables','Parker Fluidics'])[1+floor(h('sp'||i)*7)::int],
 p, floor(40*h('sq'||i)*h('sr'||i)*CASE WHEN p<300 THEN 6 ELSE 1 END)::int,
 (CASE WHEN p < 300 THEN 25 WHEN p < 5000 THEN 5 ELSE 2 END) + (i % 3),
 CASE WHEN i % 9 = 4 THEN NULL ELSE 3 + floor(h('lt'||i)*85)::int END, p > 2500
FROM (SELECT n, p::numeric(10,2), row_number() OVER () i FROM (VALUES
('Main wheel assembly',8450),('Nose wheel tyre',1180),('Carbon brake unit',23900),('Hydraulic pump',14750),('Fuel filter element',186.5),('Engine oil filter',94.2),
('Cabin air filter',142.8),('Cockpit oxygen mask',2210),('Pitot probe',6380),('Angle of attack sensor',9125),('Landing light bulb',58.9),('Navigation light LED',412),
('Wing tip strobe',1365),('APU starter',18200),('APU igniter plug',735),('Igniter lead',1490),('Bleed air valve',12680),('Pack flow control valve',10940),
('Cargo door seal',388),('Passenger door seal',672),('Windshield panel',31500),('Wiper blade',119.4),('Seat belt',64.75),('Life vest',47.3),
('Tray table latch',22.15),('Overhead bin hinge',83.6),('Lavatory flush valve',1240),('Water heater',895),('Coffee maker',3475),('Smoke detector',1670),
('Fire extinguisher bottle',4120),('VHF radio unit',15960),('Weather radar antenna',28400),('Static discharger',36.4),('Flap actuator',19870),('Slat track roller',546),
('O-ring kit',12.9),('Hydraulic fluid can',33.8),('Engine oil can',27.45),('Fan blade',42300),('Propeller blade',37250),('Battery main',5280)) v(n,p)) q;

INSERT INTO "WorkOrder"
SELECT i, 'WO-'||to_char(o,'YYYY')||'-'||lpad(i::text,4,'0'),
 a, CASE WHEN h('wh'||i) < 0.55 THEN (SELECT "homeStationId" FROM "Aircraft" WHERE "aircraftId"=a) ELSE 1+floor(19*h('ws'||i)*sqrt(h('wq'||i)))::int END,
 NULL, k::"checkKind",
 CASE WHEN h('st'||i) < 0.06 THEN 'cancelled' WHEN o > timestamp '2025-08-20' AND h('s2'||i) < 0.5 THEN 'open' WHEN o > timestamp '2025-07-20' AND h('s3'||i) < 0.6 THEN 'in_progress' ELSE 'closed' END,
 o, NULL,
 round(((CASE k WHEN 'line' THEN 6 WHEN 'A' THEN 55 WHEN 'B' THEN 160 WHEN 'C' THEN 900 ELSE 18 END) * (0.6+0.8*h('eh'||i)))::numeric,1), NULL
FROM (SELECT i, 1+floor(44*power(h('wa'||i),1.25))::int a,
  date_trunc('minute', timestamp '2023-01-02 06:00' + (965 * interval '1 day') * (i+6*h('wo'||i)+9*(1+sin(i/24.0)))/650.0) o,
  CASE WHEN h('wk'||i)<0.40 THEN 'line' WHEN h('wk'||i)<0.65 THEN 'A' WHEN h('wk'||i)<0.73 THEN 'B' WHEN h('wk'||i)<0.80 THEN 'C' ELSE 'unscheduled' END k
 FROM generate_series(1,650) i WHERE NOT (i BETWEEN 1 AND 220 AND i % 4 = 0)) q;
UPDATE "WorkOrder" w SET "actualHours" = round(("estimatedHours" * (0.72 + 0.62*h('ah'||"workOrderId")))::numeric,1),
 "closedAt" = date_trunc('minute', "openedAt" + interval '1 hour' * ("estimatedHours"::float8 * (0.3+0.5*h('ch'||"workOrderId")) + 2))
WHERE "status"='closed';
UPDATE "WorkOrder" w SET "leadMechanicId" = (SELECT m."mechanicId" FROM "Mechanic" m WHERE m."stationId"=w."stationId" AND m."mechanicId" NOT IN (25,31,52,60)
  ORDER BY md5('lead'||(w."workOrderId" % 37)||'-'||m."mechanicId") LIMIT 1)
WHERE h('lm'||"workOrderId") < 0.93;

INSERT INTO "WorkOrderPart"
SELECT w, p, 1+floor(q*h('qt'||w||'-'||p))::int, round((pr*(0.92+0.12*h('pe'||w||'-'||p)))::numeric,2)
FROM (SELECT DISTINCT ON (w."workOrderId", pp) w."workOrderId" w, pp p
  FROM "WorkOrder" w, generate_series(1,4) s, LATERAL (SELECT 1+floor(42*h('wp'||w."workOrderId"||'-'||s))::int pp) x
  WHERE w."status" <> 'cancelled' AND h('wn'||w."workOrderId"||'-'||s) < CASE WHEN w."checkType" IN ('B','C') THEN 0.9 WHEN w."checkType"='line' THEN 0.3 ELSE 0.5 END
   AND pp NOT IN (29,33,41)) a
JOIN LATERAL (SELECT "unitPrice" pr, CASE WHEN "unitPrice" < 100 THEN 12 WHEN "unitPrice" < 1000 THEN 5 ELSE 2 END q FROM "Part" WHERE "partId"=a.p) z ON true;

INSERT INTO "Defect"
SELECT i, a, NULL, r,
 (ARRAY['pilot','pilot','pilot','pilot','mechanic','mechanic','mechanic','cabin_crew','cabin_crew'])[1+floor(h('rb'||i)*9)::int],
 (CASE WHEN h('sv'||i) < 0.68 THEN 'minor' WHEN h('sv'||i) < 0.92 THEN 'major' ELSE 'critical' END)::"defectSeverity",
 (ARRAY[21,24,25,27,29,32,33,34,38,49,52,72])[c],
 (ARRAY['Cabin temperature uneven','Generator trip','Seat recline broken','Flap asymmetry warning','Hydraulic leak','Brake wear near limit','Reading light inoperative','Weather radar intermittent','Lavatory blocked','APU slow start','Door seal whistling','Engine vibration high'])[c]
  || (ARRAY[', left side',', right side',', rear',', forward',''])[1+floor(h('ds'||i)*5)::int],
 h('df'||i) < 0.22,
 CASE WHEN h('rs'||i) < 0.93 - CASE WHEN r > timestamp '2025-08-01' THEN 0.45 ELSE 0 END THEN date_trunc('minute', r + interval '1 hour' * (2 + 260*power(h('rt'||i),3))) END,
 CASE WHEN i % 31 = 7 THEN date_trunc('minute', r + interval '1 day' * (1+3*h('dd'||i))) END
FROM (SELECT i, 1+floor(43*power(h('dx'||i),1.6))::int a, 1+floor(12*power(h('dc'||i),1.3))::int c,
  date_trunc('minute', timestamp '2023-01-01 04:10' + interval '1 day' * (1002*power((i-0.5)/940.0,0.92)) + interval '1 hour'*17*h('dh'||i)) r
  FROM generate_series(1,940) i) q;
UPDATE "Defect" d SET "workOrderId" = (SELECT w."workOrderId" FROM "WorkOrder" w WHERE w."aircraftId"=d."aircraftId" AND w."openedAt" >= d."reportedAt" AND w."openedAt" < d."reportedAt" + interval '12 days' ORDER BY w."openedAt" LIMIT 1);
DROP FUNCTION h(text);

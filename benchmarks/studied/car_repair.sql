-- Car repair chain
CREATE FUNCTION pg_temp.r(k text, n int) RETURNS int LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x'||substr(md5(k),1,7))::bit(28)::int % n $$;

CREATE TABLE garages (
  garage_id int PRIMARY KEY,
  name text NOT NULL,
  city text NOT NULL,
  opened_on date NOT NULL,
  bays int NOT NULL,
  has_tow_truck boolean NOT NULL,
  phone text
);
CREATE TABLE mechanics (
  mechanic_id int PRIMARY KEY,
  garage_id int NOT NULL REFERENCES garages,
  full_name text NOT NULL,
  grade text NOT NULL CHECK (grade IN ('apprentice','technician','master')),
  hourly_rate numeric(6,2) NOT NULL,
  hired_on date NOT NULL,
  left_on date
);
COMMENT ON COLUMN mechanics.left_on IS 'last working day; null while still employed';
CREATE TABLE customers (
  customer_id int PRIMARY KEY,
  full_name text NOT NULL,
  customer_type text NOT NULL CHECK (customer_type IN ('private','business')),
  email text,
  city text NOT NULL,
  joined_on date NOT NULL,
  wants_newsletter boolean NOT NULL,
  deleted_at timestamp
);
COMMENT ON COLUMN customers.deleted_at IS 'soft delete: set when the record was removed';
CREATE TABLE vehicles (
  vehicle_id int PRIMARY KEY,
  customer_id int NOT NULL REFERENCES customers,
  plate text NOT NULL UNIQUE,
  make text NOT NULL,
  model text NOT NULL,
  model_year int NOT NULL,
  fuel text NOT NULL CHECK (fuel IN ('petrol','diesel','hybrid','electric')),
  odometer_km int
);
CREATE TABLE parts (
  part_id int PRIMARY KEY,
  sku text NOT NULL UNIQUE,
  name text NOT NULL,
  category text NOT NULL,
  unit_price numeric(8,2) NOT NULL,
  stock_qty int NOT NULL,
  discontinued boolean NOT NULL DEFAULT false
);
CREATE TABLE repair_orders (
  order_id int PRIMARY KEY,
  vehicle_id int NOT NULL REFERENCES vehicles,
  garage_id int NOT NULL REFERENCES garages,
  mechanic_id int REFERENCES mechanics,
  job_type text NOT NULL,
  status text NOT NULL CHECK (status IN ('booked','in_progress','waiting_parts','completed','cancelled')),
  booked_at timestamp NOT NULL,
  finished_at timestamp,
  labour_hours numeric(5,2),
  labour_cost numeric(9,2),
  under_warranty boolean NOT NULL
);
CREATE TABLE order_parts (
  order_part_id int PRIMARY KEY,
  order_id int NOT NULL REFERENCES repair_orders,
  part_id int NOT NULL REFERENCES parts,
  quantity int NOT NULL,
  unit_price numeric(8,2) NOT NULL
);
CREATE TABLE reviews (
  review_id int PRIMARY KEY,
  order_id int NOT NULL UNIQUE REFERENCES repair_orders,
  rating int NOT NULL CHECK (rating BETWEEN 1 AND 5),
  comment text,
  created_at timestamp NOT NULL
);

INSERT INTO garages VALUES
(1,'Kirkgate Motors','Leeds','1998-04-14',8,true,'0113 496 0101'),
(2,'Harehills Auto Centre','Leeds','2006-09-01',5,false,'0113 496 0102'),
(3,'Headingley Service','Leeds','2015-03-20',4,false,NULL),
(4,'Micklegate Garage','York','2001-06-11',6,true,'01904 496 103'),
(5,'Clifton Moor Autos','York','2012-10-05',7,false,'01904 496 104'),
(6,'Neepsend Workshop','Sheffield','2003-02-17',10,true,'0114 496 0105'),
(7,'Meadowhall Motors','Sheffield','2009-11-23',9,true,'0114 496 0106'),
(8,'Hillsborough Autos','Sheffield','2018-07-02',4,false,NULL),
(9,'Manningham Garage','Bradford','2004-05-19',7,false,'01274 496 107'),
(10,'Shipley Car Care','Bradford','2016-01-25',5,false,'01274 496 108'),
(11,'Holderness Road Motors','Hull','2000-08-08',8,true,'01482 496 109'),
(12,'Hessle Auto Centre','Hull','2014-04-30',4,false,'01482 496 110'),
(13,'Balby Service','Doncaster','2008-03-12',6,false,'01302 496 111'),
(14,'Wheatley Workshop','Doncaster','2019-09-16',5,true,NULL),
(15,'Aspley Garage','Huddersfield','2007-12-03',6,false,'01484 496 112'),
(16,'Lockwood Autos','Huddersfield','2021-05-10',3,false,'01484 496 113'),
(17,'Ripon Road Motors','Harrogate','2011-06-27',5,false,'01423 496 114'),
(18,'Starbeck Car Care','Harrogate','2022-02-14',4,false,NULL),
(19,'Westgate Service','Wakefield','2002-10-21',7,true,'01924 496 115'),
(20,'Ossett Auto Centre','Wakefield','2023-03-06',4,false,'01924 496 116');

INSERT INTO mechanics
SELECT i, 1+((i*7) % 20),
 (ARRAY['Adam','Becky','Callum','Deepak','Emma','Farah','Gareth','Hannah','Imran','Jodie','Kev','Lorna'])[1+(i%12)]||' '||
 (ARRAY['Ackroyd','Birtles','Clough','Dhillon','Earnshaw','Firth','Gill'])[1+(i%7)],
 g, CASE g WHEN 'apprentice' THEN 11+pg_temp.r('mr'||i,4) WHEN 'technician' THEN 17+pg_temp.r('mr'||i,8) ELSE 27+pg_temp.r('mr'||i,9) END + (i%10)*0.15,
 date '2009-01-05'+ pg_temp.r('mh'||i,5700),
 CASE WHEN i%9=4 THEN date '2024-08-30'+pg_temp.r('ml'||i,400) END
FROM (SELECT i, CASE WHEN pg_temp.r('mg'||i,10)<3 THEN 'apprentice' WHEN pg_temp.r('mg'||i,10)<8 THEN 'technician' ELSE 'master' END g FROM generate_series(1,64) i) s;
UPDATE mechanics SET hourly_rate=38.50 WHERE mechanic_id=(SELECT mechanic_id FROM mechanics WHERE grade='master' ORDER BY mechanic_id LIMIT 1);

INSERT INTO customers
SELECT i,
 CASE WHEN t='business' THEN (ARRAY['Northern','Pennine','Ridings','Aire Valley','Humber','Calder','Dales','White Rose','Wharfe','Minster'])[1+((i/5)%10)]||' '||(ARRAY['Couriers','Taxis','Catering','Plumbing','Electrical'])[1+((i/50)%5)]||' Ltd'
 ELSE (ARRAY['Olivia','Jack','Sophie','Mohammed','Grace','Thomas','Aisha','Daniel','Ellie','Ben','Niamh','Oscar','Priya'])[1+(i%13)]||' '||(ARRAY['Hartley','Booth','Khan','Sugden','Walsh','Patel','Moorhouse','Crowther','Naylor','Barraclough','Rhodes','Sykes','Whitaker','Lister','Nowak','Ibbotson','Dyson'])[1+(i%17)] END,
 t, CASE WHEN pg_temp.r('ce'||i,9)<2 THEN NULL ELSE 'cust'||i||'@example.org' END,
 (ARRAY['Leeds','Leeds','Sheffield','York','Bradford','Hull','Doncaster','Huddersfield','Harrogate','Wakefield','Sheffield'])[1+pg_temp.r('cc'||i,11)],
 date '2019-01-03'+pg_temp.r('cj'||i,2500), pg_temp.r('cn'||i,10)<4,
 CASE WHEN pg_temp.r('cd'||i,12)=0 THEN timestamp '2025-01-10 09:00'+pg_temp.r('cdd'||i,250)*interval '1 day' END
FROM (SELECT i, CASE WHEN i%5=0 THEN 'business' ELSE 'private' END t FROM generate_series(1,210) i) s;

INSERT INTO vehicles
SELECT i, CASE WHEN i<=185 THEN i ELSE 1+pg_temp.r('vc'||i,200) END,
 chr(65+i%26)||chr(65+(i*3)%26)||lpad((11+pg_temp.r('vp'||i,63))::text,2,'0')||' '||chr(65+(i*5)%26)||chr(65+(i*11)%26)||chr(65+(i/26)%26),
 mk, CASE mk WHEN 'Ford' THEN (ARRAY['Fiesta','Focus','Transit'])[1+i%3] WHEN 'Vauxhall' THEN (ARRAY['Corsa','Astra','Vivaro'])[1+i%3]
  WHEN 'Volkswagen' THEN (ARRAY['Golf','Polo','ID.3'])[1+i%3] WHEN 'Toyota' THEN (ARRAY['Yaris','Corolla'])[1+i%2] WHEN 'Nissan' THEN (ARRAY['Qashqai','Leaf'])[1+i%2]
  WHEN 'BMW' THEN (ARRAY['320d','X1'])[1+i%2] WHEN 'Kia' THEN (ARRAY['Sportage','Niro'])[1+i%2] ELSE (ARRAY['Octavia','Fabia'])[1+i%2] END,
 2006+pg_temp.r('vy'||i,19),
 (ARRAY['petrol','petrol','petrol','petrol','diesel','diesel','diesel','hybrid','electric'])[1+pg_temp.r('vf'||i,9)],
 CASE WHEN pg_temp.r('vo'||i,8)=0 THEN NULL ELSE 4000+pg_temp.r('vk'||i,190000) END
FROM (SELECT i,(ARRAY['Ford','Ford','Ford','Vauxhall','Vauxhall','Volkswagen','Toyota','Nissan','BMW','Kia','Skoda'])[1+pg_temp.r('vm'||i,11)] mk FROM generate_series(1,280) i) s;
UPDATE vehicles SET model_year=2003 WHERE vehicle_id=117;

INSERT INTO parts VALUES
(1,'BRK-001','Front brake pads','brakes',42.50,38,false),(2,'BRK-002','Rear brake pads','brakes',36.90,24,false),
(3,'BRK-003','Brake disc','brakes',58.00,17,false),(4,'BRK-004','Brake fluid 1L','brakes',9.80,60,false),
(5,'BRK-005','Drum brake shoes','brakes',31.00,3,true),(6,'ENG-001','Oil filter','engine',8.20,120,false),
(7,'ENG-002','Air filter','engine',14.60,75,false),(8,'ENG-003','Spark plug','engine',7.40,210,false),
(9,'ENG-004','Timing belt kit','engine',128.00,9,false),(10,'ENG-005','Glow plug','engine',16.30,0,false),
(11,'ENG-006','Water pump','engine',74.90,6,false),(12,'ENG-007','Carburettor kit','engine',95.00,2,true),
(13,'ELE-001','Battery 60Ah','electrics',89.00,22,false),(14,'ELE-002','Battery 75Ah','electrics',112.00,14,false),
(15,'ELE-003','Alternator','electrics',210.00,5,false),(16,'ELE-004','Starter motor','electrics',184.50,0,false),
(17,'ELE-005','Headlamp bulb','electrics',6.70,140,false),(18,'ELE-006','Xenon ballast','electrics',145.00,0,true),
(19,'TYR-001','Tyre 195/65 R15','tyres',67.00,48,false),(20,'TYR-002','Tyre 205/55 R16','tyres',79.50,52,false),
(21,'TYR-003','Tyre 225/45 R17','tyres',104.00,31,false),(22,'TYR-004','Valve stem','tyres',1.90,400,false),
(23,'TYR-005','Winter tyre 195/65 R15','tyres',82.00,0,false),(24,'SUS-001','Shock absorber','suspension',66.40,19,false),
(25,'SUS-002','Coil spring','suspension',49.20,12,false),(26,'SUS-003','Ball joint','suspension',27.80,26,false),
(27,'SUS-004','Anti-roll bar link','suspension',18.90,33,false),(28,'EXH-001','Rear silencer','exhaust',93.00,8,false),
(29,'EXH-002','Catalytic converter','exhaust',325.00,4,false),(30,'EXH-003','Lambda sensor','exhaust',61.50,11,false),
(31,'FLU-001','Engine oil 5W-30 5L','fluids',34.00,95,false),(32,'FLU-002','Coolant 2L','fluids',12.40,58,false),
(33,'FLU-003','Screenwash 5L','fluids',6.20,80,false),(34,'BOD-001','Wing mirror glass','body',22.00,15,false),
(35,'BOD-002','Wiper blade pair','body',19.50,66,false),(36,'BOD-003','Front bumper','body',165.00,0,false);

INSERT INTO repair_orders
SELECT i, v, g,
 CASE WHEN st='booked' THEN NULL ELSE (SELECT mechanic_id FROM mechanics m WHERE m.garage_id=g AND m.mechanic_id<=56 ORDER BY md5('om'||i||'-'||mechanic_id) LIMIT 1) END,
 jt, st, b,
 CASE WHEN st='completed' THEN b + (3+pg_temp.r('of'||i,90))*interval '1 hour' END,
 CASE WHEN st='completed' THEN h END,
 CASE WHEN st='completed' THEN round(h*(52+pg_temp.r('oc'||i,30)),2) END,
 pg_temp.r('ow'||i,8)=0
FROM (SELECT i, 1+pg_temp.r('ov'||i,265) v,
  1+least(pg_temp.r('og'||i,20),pg_temp.r('oh'||i,26)) g,
  (ARRAY['oil change','oil change','oil change','brakes','brakes','tyres','tyres','MOT test','MOT test','engine diagnosis','exhaust','bodywork','air conditioning'])[1+pg_temp.r('oj'||i,13)] jt,
  CASE WHEN i>640 THEN (ARRAY['booked','booked','in_progress','waiting_parts','in_progress'])[1+pg_temp.r('os'||i,5)]
       WHEN pg_temp.r('os'||i,14)=0 THEN 'cancelled' WHEN pg_temp.r('os'||i,40)=5 THEN 'waiting_parts' ELSE 'completed' END st,
  timestamp '2023-01-04 08:00'+ (i*1.48)::int*interval '1 day' + pg_temp.r('ot'||i,36)*interval '15 minutes' b,
  0.5+pg_temp.r('ol'||i,30)*0.25 h FROM generate_series(1,700) i) s;
UPDATE repair_orders SET labour_hours=14.25, labour_cost=926.25 WHERE order_id=(SELECT min(order_id) FROM repair_orders WHERE order_id>=233 AND status='completed' AND job_type='bodywork');

INSERT INTO order_parts
SELECT row_number() OVER (ORDER BY o.order_id,k), o.order_id, p.part_id, 1+pg_temp.r('pq'||o.order_id||'.'||k,4), p.unit_price
FROM repair_orders o CROSS JOIN generate_series(1,2) k
JOIN parts p ON p.part_id = (ARRAY[1,2,3,4,6,7,8,9,10,11,13,14,15,16,17,19,20,21,22,24,25,26,27,28,29,30,31,32,33,34,35,6,31,8])[1+pg_temp.r('pp'||o.order_id||'.'||k,34)]
WHERE o.status IN ('completed','in_progress') AND (k=1 OR pg_temp.r('pk'||o.order_id,2)=0) AND o.job_type<>'MOT test';

INSERT INTO reviews
SELECT row_number() OVER (ORDER BY order_id), order_id, (ARRAY[1,2,3,3,4,4,4,5,5,5])[1+pg_temp.r('rr'||order_id,10)],
 CASE WHEN pg_temp.r('rc'||order_id,3)=0 THEN NULL ELSE (ARRAY['Quick and friendly','Had to wait too long','Fair price','Explained everything well','Came back with a scratch'])[1+pg_temp.r('rt'||order_id,5)] END,
 finished_at + (1+pg_temp.r('rd'||order_id,12))*interval '1 day'
FROM repair_orders WHERE status='completed' AND pg_temp.r('rx'||order_id,5)<2;
UPDATE customers SET city='Sheffield' WHERE customer_id=(SELECT min(customer_id) FROM customers WHERE city='Wakefield' AND deleted_at IS NULL);
UPDATE vehicles SET plate='YK03 NNE' WHERE vehicle_id=117;

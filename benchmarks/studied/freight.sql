-- Freight forwarder: shipments by sea, air and road, containers, invoices, claims.
CREATE FUNCTION _h(a int, b int, n int) RETURNS int LANGUAGE sql IMMUTABLE AS
$$ SELECT (('x' || substr(md5(a::text || '/' || b::text), 1, 7))::bit(28)::int) % n $$;

CREATE TABLE carriers (
  carrier_id      int PRIMARY KEY,
  carrier_name    text NOT NULL,
  transport_mode  text NOT NULL,
  home_country    text NOT NULL,
  founded_year    int,
  rating          numeric(3,1),
  is_preferred    boolean NOT NULL DEFAULT false
);
COMMENT ON COLUMN carriers.transport_mode IS 'ocean, air or road';
COMMENT ON COLUMN carriers.rating IS 'internal service rating 1.0 - 5.0, null if not rated yet';

CREATE TABLE ports (
  port_id     int PRIMARY KEY,
  port_code   char(5) NOT NULL UNIQUE,
  port_name   text NOT NULL,
  country     text NOT NULL,
  port_type   text NOT NULL,
  max_vessel_length_m  int
);
COMMENT ON COLUMN ports.port_type IS 'seaport, airport or inland';

CREATE TABLE agents (
  agent_id       int PRIMARY KEY,
  full_name      text NOT NULL,
  office_city    text NOT NULL,
  job_title      text NOT NULL,
  hired_on       date NOT NULL,
  left_on        date,
  monthly_salary numeric(10,2) NOT NULL,
  supervisor_id  int REFERENCES agents
);

CREATE TABLE clients (
  client_id          int PRIMARY KEY,
  company_name       text NOT NULL,
  industry           text NOT NULL,
  country            text NOT NULL,
  contact_email      text,
  credit_limit       numeric(12,2) NOT NULL,
  payment_terms_days int NOT NULL,
  is_active          boolean NOT NULL,
  signed_up_on       date NOT NULL,
  account_manager_id int REFERENCES agents
);

CREATE TABLE shipments (
  shipment_id         int PRIMARY KEY,
  reference_no        text NOT NULL UNIQUE,
  client_id           int NOT NULL REFERENCES clients,
  carrier_id          int NOT NULL REFERENCES carriers,
  agent_id            int NOT NULL REFERENCES agents,
  origin_port_id      int NOT NULL REFERENCES ports,
  destination_port_id int NOT NULL REFERENCES ports,
  status              text NOT NULL,
  incoterm            char(3) NOT NULL,
  booked_at           timestamp NOT NULL,
  departed_on         date,
  eta                 date NOT NULL,
  arrived_on          date,
  gross_weight_kg     numeric(10,1) NOT NULL,
  volume_cbm          numeric(8,2) NOT NULL,
  declared_value      numeric(12,2),
  freight_charge      numeric(12,2) NOT NULL,
  is_hazardous        boolean NOT NULL,
  is_insured          boolean NOT NULL,
  deleted_at          timestamp
);
COMMENT ON COLUMN shipments.status IS 'booked, in_transit, customs_hold, delivered, cancelled';
COMMENT ON COLUMN shipments.eta IS 'estimated date of arrival given at booking';
COMMENT ON COLUMN shipments.deleted_at IS 'soft delete: set when the record was entered by mistake';

CREATE TABLE containers (
  container_id    int PRIMARY KEY,
  container_no    char(11) NOT NULL UNIQUE,
  type_code       smallint NOT NULL,
  condition       text NOT NULL,
  purchased_on    date NOT NULL,
  tare_weight_kg  int NOT NULL,
  max_payload_kg  int NOT NULL,
  is_leased       boolean NOT NULL
);
COMMENT ON COLUMN containers.type_code IS '1 = 20ft dry, 2 = 40ft dry, 3 = 40ft high cube, 4 = reefer';
COMMENT ON COLUMN containers.condition IS 'good, worn, damaged';

CREATE TABLE shipment_containers (
  shipment_id      int NOT NULL REFERENCES shipments,
  container_id     int NOT NULL REFERENCES containers,
  seal_no          text,
  loaded_weight_kg numeric(9,1) NOT NULL,
  PRIMARY KEY (shipment_id, container_id)
);

CREATE TABLE invoices (
  invoice_id   int PRIMARY KEY,
  invoice_no   text NOT NULL UNIQUE,
  shipment_id  int NOT NULL REFERENCES shipments,
  issued_on    date NOT NULL,
  due_on       date NOT NULL,
  amount       numeric(12,2) NOT NULL,
  tax_amount   numeric(12,2) NOT NULL,
  status       smallint NOT NULL,
  paid_on      date
);
COMMENT ON COLUMN invoices.status IS '0 = draft, 1 = sent, 2 = paid, 3 = overdue, 4 = disputed';
COMMENT ON COLUMN invoices.amount IS 'net amount in USD, without tax';

CREATE TABLE claims (
  claim_id        int PRIMARY KEY,
  shipment_id     int NOT NULL REFERENCES shipments,
  filed_on        date NOT NULL,
  claim_type      text NOT NULL,
  claimed_amount  numeric(12,2) NOT NULL,
  settled_amount  numeric(12,2),
  status          text NOT NULL,
  closed_on       date
);
COMMENT ON COLUMN claims.claim_type IS 'damage, loss, delay, shortage';
COMMENT ON COLUMN claims.status IS 'open, approved, rejected, withdrawn';

INSERT INTO carriers VALUES
(1,'Nordhav Line','ocean','Denmark',1928,4.6,true),
(2,'Blue Meridian Shipping','ocean','Switzerland',1970,4.2,true),
(3,'Orient Pacific Lines','ocean','Taiwan',1968,3.9,false),
(4,'Harbour & Sons','ocean','United Kingdom',1891,3.4,false),
(5,'Celtic Sea Carriers','ocean','Ireland',1984,4.0,false),
(6,'Sunda Ocean Freight','ocean','Singapore',1977,4.4,true),
(7,'Atlantico Navegação','ocean','Portugal',1956,3.1,false),
(8,'Hanse Container','ocean','Germany',1949,4.5,true),
(9,'Golden Wake Lines','ocean','Greece',1963,2.8,false),
(10,'SkyBridge Cargo','air','Luxembourg',1994,4.7,true),
(11,'Falcon Air Freight','air','United Arab Emirates',2001,4.3,true),
(12,'Polar Wings','air','Iceland',1999,3.7,false),
(13,'TransEurasia Cargo','air','Turkey',2006,3.8,false),
(14,'Lotus Cargo Airways','air','Vietnam',2011,NULL,false),
(15,'Rhine Trucking','road','Germany',1982,4.1,true),
(16,'Iberia Road Logistics','road','Spain',1990,3.6,false),
(17,'Van Dijk Transport','road','Netherlands',1975,4.8,true),
(18,'Carpathia Express','road','Romania',2008,3.3,false),
(19,'Alpen Cargo','road','Austria',1996,3.5,false),
(20,'Baltic Haulage','road','Poland',2013,NULL,false),
(21,'Sahara Lines','ocean','Morocco',2016,NULL,false),
(22,'Andes Air Cargo','air','Chile',2003,3.2,false);

INSERT INTO ports VALUES
(1,'CNSHA','Shanghai','China','seaport',400),(2,'SGSIN','Singapore','Singapore','seaport',400),
(3,'NLRTM','Rotterdam','Netherlands','seaport',399),(4,'DEHAM','Hamburg','Germany','seaport',398),
(5,'BEANR','Antwerp','Belgium','seaport',395),(6,'USLAX','Los Angeles','United States','seaport',366),
(7,'USNYC','New York','United States','seaport',366),(8,'KRPUS','Busan','South Korea','seaport',400),
(9,'AEJEA','Jebel Ali','United Arab Emirates','seaport',390),(10,'GBFXT','Felixstowe','United Kingdom','seaport',400),
(11,'ESVLC','Valencia','Spain','seaport',380),(12,'GRPIR','Piraeus','Greece','seaport',370),
(13,'BRSSZ','Santos','Brazil','seaport',340),(14,'INNSA','Nhava Sheva','India','seaport',350),
(15,'VNSGN','Ho Chi Minh City','Vietnam','seaport',300),(16,'CNNGB','Ningbo','China','seaport',400),
(17,'MATNG','Tangier','Morocco','seaport',390),(18,'ZADUR','Durban','South Africa','seaport',330),
(19,'FRA01','Frankfurt Airport','Germany','airport',NULL),(20,'LUX01','Luxembourg Findel','Luxembourg','airport',NULL),
(21,'DXB01','Dubai International','United Arab Emirates','airport',NULL),(22,'HKG01','Hong Kong International','China','airport',NULL),
(23,'ORD01','Chicago O''Hare','United States','airport',NULL),(24,'IST01','Istanbul Airport','Turkey','airport',NULL),
(25,'LHR01','London Heathrow','United Kingdom','airport',NULL),(26,'DEDUI','Duisburg Terminal','Germany','inland',NULL),
(27,'ESZAZ','Zaragoza Terminal','Spain','inland',NULL),(28,'PLPOZ','Poznan Terminal','Poland','inland',NULL),
(29,'ATVIE','Vienna Freight Hub','Austria','inland',NULL),(30,'ROCLJ','Cluj Freight Hub','Romania','inland',NULL),
(31,'NLVEN','Venlo Terminal','Netherlands','inland',NULL),(32,'KEMBA','Mombasa','Kenya','seaport',290);

INSERT INTO agents VALUES
(1,'Margaret Olsen','Rotterdam','Branch Director','2009-03-02',NULL,9800,NULL),
(2,'Tomasz Wrona','Hamburg','Branch Director','2011-06-15',NULL,9450,NULL),
(3,'Priya Raman','Singapore','Branch Director','2012-01-09',NULL,9600,NULL),
(4,'Daniel Okafor','London','Branch Director','2010-09-20',NULL,9900,NULL),
(5,'Eva de Groot','Rotterdam','Senior Agent','2014-04-01',NULL,6200,1),
(6,'Lukas Brandt','Hamburg','Senior Agent','2015-08-17',NULL,6050,2),
(7,'Chen Wei','Singapore','Senior Agent','2016-02-29',NULL,5900,3),
(8,'Hannah Price','London','Senior Agent','2013-11-04',NULL,6350,4),
(9,'Mateo Ruiz','Valencia','Senior Agent','2017-05-22',NULL,5400,1),
(10,'Ingrid Solheim','Rotterdam','Agent','2018-10-01',NULL,4300,5),
(11,'Jonas Keller','Hamburg','Agent','2019-03-11',NULL,4250,6),
(12,'Aisha Khan','London','Agent','2019-07-29',NULL,4400,8),
(13,'Nguyen Thi Lan','Singapore','Agent','2020-01-13',NULL,3950,7),
(14,'Carlos Mendes','Valencia','Agent','2020-09-07',NULL,3800,9),
(15,'Sophie Laurent','Rotterdam','Agent','2021-02-15',NULL,4100,5),
(16,'Piotr Zielinski','Hamburg','Agent','2021-06-28','2024-12-31',4050,6),
(17,'Rajesh Iyer','Singapore','Agent','2021-11-08',NULL,3900,7),
(18,'Emily Carter','London','Agent','2022-03-21',NULL,4200,8),
(19,'Lucia Navarro','Valencia','Agent','2022-08-01',NULL,3700,9),
(20,'Bram Visser','Rotterdam','Customs Specialist','2018-05-14',NULL,4850,5),
(21,'Katrin Vogel','Hamburg','Customs Specialist','2020-04-20',NULL,4700,6),
(22,'Oliver Grant','London','Trainee','2024-09-02',NULL,2600,12),
(23,'Mei Tan','Singapore','Trainee','2025-01-20',NULL,2450,13),
(24,'Femke Bakker','Rotterdam','Agent','2017-01-16','2023-10-31',4150,5);

INSERT INTO clients
SELECT g,
  (ARRAY['Arden','Bellweather','Corvo','Dunmore','Elmsford','Farrow','Granite','Helix','Ivory','Juniper','Kestrel','Lumen','Marlow','Northgate','Opal','Pinnacle','Quarry','Redwood'])[1+(g-1)%18]
  || ' ' || (ARRAY['Trading','Foods','Industries','Textiles','Electronics'])[1+(g-1)/18],
  CASE (g-1)/18 WHEN 0 THEN (ARRAY['automotive','chemicals','furniture'])[1+_h(g,1,3)] WHEN 1 THEN 'food' WHEN 2 THEN (ARRAY['chemicals','machinery','automotive'])[1+_h(g,1,3)] WHEN 3 THEN 'textiles' ELSE 'electronics' END,
  (ARRAY['Germany','Netherlands','United Kingdom','China','United States','Spain','Vietnam','India','Belgium','Poland'])[1+least(_h(g,2,10),_h(g,3,12))],
  CASE WHEN _h(g,4,9)=0 THEN NULL ELSE 'logistics@' || lower((ARRAY['Arden','Bellweather','Corvo','Dunmore','Elmsford','Farrow','Granite','Helix','Ivory','Juniper','Kestrel','Lumen','Marlow','Northgate','Opal','Pinnacle','Quarry','Redwood'])[1+(g-1)%18]) || (ARRAY['trading','foods','industries','textiles','electronics'])[1+(g-1)/18] || '.com' END,
  10000 + 2500*_h(g,5,60) + g*10,
  (ARRAY[14,30,30,45,60])[1+_h(g,6,5)],
  _h(g,7,8)<>0,
  date '2017-01-10' + _h(g,8,2900),
  CASE WHEN _h(g,9,15)=0 THEN NULL ELSE (ARRAY[5,6,7,8,9,10,11,12])[1+_h(g,10,8)] END
FROM generate_series(1,90) g;

INSERT INTO shipments
WITH a AS (
  SELECT g, 1+least(_h(g,2,22),_h(g,3,26)) AS carrier_id,
    1+least(_h(g,1,84),_h(g,4,100)) AS client_id
  FROM generate_series(1,640) g),
b AS (SELECT a.*, c.transport_mode m,
    d.d + (CASE extract(isodow FROM d.d) WHEN 6 THEN 2 WHEN 7 THEN 1 ELSE 0 END)*interval '1 day' + (interval '7 hours' + _h(g,5,660)*interval '1 minute') AS booked
  FROM a JOIN carriers c USING (carrier_id)
    CROSS JOIN LATERAL (SELECT (timestamp '2023-01-03 08:00' + g*interval '1 day'*1.64)::date AS d) d),
c AS (SELECT b.*,
   CASE m WHEN 'ocean' THEN 1+_h(g,6,17) WHEN 'air' THEN 19+_h(g,6,7) ELSE 26+_h(g,6,6) END o,
   CASE m WHEN 'ocean' THEN 1+(_h(g,6,17)+1+_h(g,71,16))%17 WHEN 'air' THEN 19+(_h(g,6,7)+1+_h(g,7,6))%7 ELSE 26+(_h(g,6,6)+1+_h(g,7,5))%6 END d,
   booked::date + 2+_h(g,8,12) AS dep,
   CASE m WHEN 'ocean' THEN 14+_h(g,9,32) WHEN 'air' THEN 1+_h(g,9,5) ELSE 2+_h(g,9,8) END AS tr,
   CASE m WHEN 'ocean' THEN 6000+_h(g,10,520000)/10.0 WHEN 'air' THEN 90+_h(g,10,34000)/10.0 ELSE 700+_h(g,10,210000)/10.0 END AS kg
  FROM b),
e AS (SELECT c.*, dep+tr AS eta2, dep+tr+ (CASE WHEN _h(g,11,3)=0 THEN _h(g,12,3)-2 WHEN _h(g,11,3)=1 THEN 0 ELSE 1+_h(g,12,9) END)*(CASE WHEN m='ocean' OR _h(g,11,3)<>0 THEN 1 ELSE 0 END) AS arr FROM c),
f AS (SELECT e.*, CASE WHEN _h(g,13,100)<6 THEN 'cancelled' WHEN arr<=date '2025-11-12' THEN 'delivered'
   WHEN dep<=date '2025-11-12' THEN CASE WHEN _h(g,14,3)=0 THEN 'customs_hold' ELSE 'in_transit' END ELSE 'booked' END st FROM e)
SELECT g, 'FR' || to_char(booked,'YYMM') || '-' || lpad(g::text,4,'0'), client_id, carrier_id,
  CASE WHEN booked < '2023-10-01' AND _h(g,15,9)=0 THEN 24 WHEN booked<'2024-12-01' AND _h(g,15,11)=1 THEN 16
       ELSE (ARRAY[5,6,7,8,9,10,11,12,13,14,15,17,18,19])[1+least(_h(g,16,14),_h(g,17,18))] END,
  o, d, st, (ARRAY['FOB','CIF','EXW','DDP','DAP'])[1+least(_h(g,18,5),_h(g,19,6))],
  booked, CASE WHEN st IN ('cancelled','booked') THEN NULL ELSE dep END, eta2,
  CASE WHEN st='delivered' THEN arr END, kg, round(kg/(160+_h(g,20,240))::numeric,2)+0.05,
  CASE WHEN _h(g,21,10)=0 THEN NULL ELSE round((kg*(1.5+_h(g,22,90)/10.0))::numeric,2) END,
  round((CASE m WHEN 'ocean' THEN 900+kg*(0.09+_h(g,23,90)/1000.0) WHEN 'air' THEN 180+kg*(2.6+_h(g,23,300)/100.0) ELSE 150+kg*(0.10+_h(g,23,120)/1000.0) END)::numeric,2),
  _h(g,24,9)=0, _h(g,25,5)<2,
  CASE WHEN g%53=0 THEN booked + interval '2 days 3 hours' END
FROM f;

INSERT INTO containers
SELECT g, (ARRAY['MSKU','HLXU','TCLU','CMAU'])[1+_h(g,1,4)] || lpad((1000000+_h(g,2,8999999))::text,7,'0'),
  t, (ARRAY['good','good','good','worn','worn','damaged'])[1+_h(g,4,6)],
  date '2012-02-01'+_h(g,5,4400),
  (ARRAY[2300,3750,3900,4600])[t]+_h(g,6,150), (ARRAY[28200,26700,26500,27400])[t]+_h(g,7,300), _h(g,8,3)=0
FROM (SELECT g, 1+least(_h(g,3,4),_h(g,9,6)) t FROM generate_series(1,220) g) x;

INSERT INTO shipment_containers
SELECT s.shipment_id, 1+(_h(s.shipment_id,31,205)+k*37)%205,
  CASE WHEN _h(s.shipment_id,32+k,8)=0 THEN NULL ELSE 'SL'||lpad(_h(s.shipment_id,40+k,999999)::text,6,'0') END,
  round(s.gross_weight_kg/n.n*(1+ (CASE WHEN n.n=1 THEN 0 ELSE (k-(n.n+1)/2.0)*0.04 END)),1)
FROM shipments s JOIN carriers c USING (carrier_id)
CROSS JOIN LATERAL (SELECT greatest(1,ceil(s.gross_weight_kg/24000))::int n) n
CROSS JOIN LATERAL generate_series(1,n.n) k
WHERE s.deleted_at IS NULL AND s.status<>'cancelled' AND (c.transport_mode='ocean' OR (c.transport_mode='road' AND _h(s.shipment_id,33,2)=0));

INSERT INTO invoices
SELECT row_number() OVER (ORDER BY i.issued, i.shipment_id), 'INV-'||to_char(i.issued,'YYYY')||'-'||lpad((row_number() OVER (ORDER BY i.issued, i.shipment_id))::text,5,'0'),
  shipment_id, issued, issued+terms, amt, round(amt*0.19,2),
  st, CASE WHEN st=2 THEN issued + _h(shipment_id,54,terms+12)+1 END
FROM (
 SELECT s.shipment_id, s.departed_on+1+_h(s.shipment_id,51,6) AS issued, cl.payment_terms_days terms,
  round(s.freight_charge*(1.04+_h(s.shipment_id,52,24)/100.0),2) amt,
  CASE WHEN s.departed_on > '2025-11-01' THEN (CASE WHEN _h(s.shipment_id,53,3)=0 THEN 0 ELSE 1 END)
       WHEN s.departed_on > '2025-09-15' THEN (ARRAY[1,1,2,2,3,4])[1+_h(s.shipment_id,53,6)]
       ELSE (CASE WHEN _h(s.shipment_id,53,25)=0 THEN 4 WHEN _h(s.shipment_id,53,25)<3 THEN 3 ELSE 2 END) END st
 FROM shipments s JOIN clients cl USING (client_id)
 WHERE s.deleted_at IS NULL AND s.departed_on IS NOT NULL AND _h(s.shipment_id,50,13)<>0) i;

INSERT INTO claims
SELECT row_number() OVER (ORDER BY filed, shipment_id), shipment_id, filed, typ, amt,
  CASE WHEN st='approved' THEN round(amt*(0.35+_h(shipment_id,64,60)/100.0),2) END, st,
  CASE WHEN st<>'open' THEN filed+12+_h(shipment_id,65,70) END
FROM (
 SELECT s.shipment_id, s.arrived_on+2+_h(s.shipment_id,61,25) filed,
  CASE WHEN s.arrived_on>s.eta+4 THEN 'delay' ELSE (ARRAY['damage','damage','shortage','loss','damage','shortage'])[1+_h(s.shipment_id,62,6)] END typ,
  round(300+s.freight_charge*(_h(s.shipment_id,63,140)+10)/100.0,2) amt,
  CASE WHEN s.arrived_on>'2025-09-10' THEN 'open' ELSE (ARRAY['approved','approved','rejected','approved','withdrawn','rejected','approved'])[1+_h(s.shipment_id,66,7)] END st
 FROM shipments s WHERE s.deleted_at IS NULL AND s.status='delivered' AND _h(s.shipment_id,60,7)=0) c;

DROP FUNCTION _h(int,int,int);

-- Translation agency
CREATE TABLE employees (
  employee_id integer PRIMARY KEY,
  full_name text NOT NULL,
  job_title text NOT NULL,
  office text NOT NULL,
  hired_on date NOT NULL,
  monthly_salary numeric(10,2) NOT NULL,
  works_remotely boolean NOT NULL,
  phone text,
  manager_id integer REFERENCES employees(employee_id)
);
CREATE TABLE languages (
  language_code char(2) PRIMARY KEY,
  name text NOT NULL UNIQUE,
  family text NOT NULL,
  right_to_left boolean NOT NULL
);
CREATE TABLE clients (
  client_id integer PRIMARY KEY,
  name text NOT NULL UNIQUE,
  industry text NOT NULL,
  country text NOT NULL,
  signed_on date NOT NULL,
  is_vip boolean NOT NULL,
  credit_limit numeric(10,2),
  contact_email text,
  account_manager_id integer REFERENCES employees(employee_id)
);
CREATE TABLE translators (
  translator_id integer PRIMARY KEY,
  full_name text NOT NULL UNIQUE,
  native_language char(2) NOT NULL REFERENCES languages(language_code),
  country text NOT NULL,
  rate_per_word numeric(6,4) NOT NULL,
  rating numeric(3,2),
  is_sworn boolean NOT NULL,
  joined_on date NOT NULL,
  status text NOT NULL CHECK (status IN ('active','paused','left'))
);
CREATE TABLE translator_languages (
  translator_id integer NOT NULL REFERENCES translators(translator_id),
  language_code char(2) NOT NULL REFERENCES languages(language_code),
  level text NOT NULL CHECK (level IN ('native','fluent','working')),
  certified_on date,
  PRIMARY KEY (translator_id, language_code)
);
CREATE TABLE projects (
  project_id integer PRIMARY KEY,
  client_id integer NOT NULL REFERENCES clients(client_id),
  source_language char(2) NOT NULL REFERENCES languages(language_code),
  target_language char(2) NOT NULL REFERENCES languages(language_code),
  subject_area text NOT NULL,
  status text NOT NULL CHECK (status IN ('quoted','in_progress','on_hold','delivered','cancelled')),
  word_count integer NOT NULL,
  price numeric(10,2) NOT NULL,
  is_rush boolean NOT NULL,
  received_at timestamp NOT NULL,
  due_on date NOT NULL,
  delivered_at timestamp,
  coordinator_id integer NOT NULL REFERENCES employees(employee_id)
);
CREATE TABLE assignments (
  assignment_id integer PRIMARY KEY,
  project_id integer NOT NULL REFERENCES projects(project_id),
  translator_id integer NOT NULL REFERENCES translators(translator_id),
  task text NOT NULL CHECK (task IN ('translation','proofreading','editing')),
  words integer NOT NULL,
  fee numeric(10,2) NOT NULL,
  assigned_on date NOT NULL,
  finished_on date,
  quality_score integer
);
COMMENT ON COLUMN assignments.quality_score IS 'Score given by the reviewer, 1 to 100; empty if not reviewed';
CREATE TABLE invoices (
  invoice_id integer PRIMARY KEY,
  invoice_number text NOT NULL UNIQUE,
  project_id integer NOT NULL REFERENCES projects(project_id),
  issued_on date NOT NULL,
  due_on date NOT NULL,
  amount numeric(10,2) NOT NULL,
  paid_on date,
  payment_method text
);

CREATE FUNCTION seed_r(s text) RETURNS numeric LANGUAGE sql IMMUTABLE AS
$$ SELECT (('x'||substr(md5(s),1,8))::bit(32)::bigint)::numeric/4294967296 $$;

INSERT INTO languages VALUES
('en','English','Germanic',false),('de','German','Germanic',false),('nl','Dutch','Germanic',false),
('sv','Swedish','Germanic',false),('da','Danish','Germanic',false),('fr','French','Romance',false),
('es','Spanish','Romance',false),('it','Italian','Romance',false),('pt','Portuguese','Romance',false),
('ro','Romanian','Romance',false),('pl','Polish','Slavic',false),('cs','Czech','Slavic',false),
('ru','Russian','Slavic',false),('uk','Ukrainian','Slavic',false),('ar','Arabic','Semitic',true),
('he','Hebrew','Semitic',true),('fa','Persian','Iranian',true),('ja','Japanese','Japonic',false),
('zh','Chinese','Sinitic',false),('ko','Korean','Koreanic',false),('fi','Finnish','Uralic',false),
('is','Icelandic','Germanic',false);

INSERT INTO employees
SELECT i,
 (array['Helen Marsh','Victor Osei','Petra Lindqvist','Marco Bellini','Aisha Rahman','Tom Ferris','Claire Dubois','Ivan Petrenko',
  'Nora Eklund','Samuel Boateng','Lucia Ferrer','Gareth Pugh','Mei Tanaka','Oliver Stone','Katarina Novak','Daniel Weiss',
  'Priya Nair','Hugo Martin','Ewa Zielinska','Ben Carter','Fatima Zahra','Liam Doyle','Sofia Rossi','Jonas Berg','Ruth Adler','Carlos Vega'])[i],
 CASE WHEN i=1 THEN 'managing director' WHEN i IN (2,3,4) THEN 'department head' WHEN i<=14 THEN 'project coordinator'
      WHEN i<=21 THEN 'account manager' WHEN i<=24 THEN 'quality reviewer' ELSE 'accountant' END,
 (array['London','Berlin','Madrid','London','Berlin'])[1+i%5],
 CASE WHEN i<=4 THEN date '2023-01-09'+i*7 ELSE date '2023-02-01' + (seed_r('eh'||i)*830)::int END,
 round(CASE WHEN i=1 THEN 9400 WHEN i<=4 THEN 6200+i*155 ELSE 2700+seed_r('es'||i)*1900 END,0),
 seed_r('er'||i)<0.4,
 CASE WHEN seed_r('ep'||i)<0.7 THEN '+44 20 7946 0'||(100+i*7) END,
 CASE WHEN i=1 THEN NULL WHEN i<=4 THEN 1 WHEN i<=14 THEN 2 WHEN i<=21 THEN 3 WHEN i<=24 THEN 4 ELSE 1 END
FROM generate_series(1,26) i;

INSERT INTO clients
SELECT i,
 (array['Northwind Pharma','Bluepeak Energy','Castello Wines','Hartmann Legal','Orbis Insurance','Lumen Publishing','Vega Motors','Sterling Bank',
 'Alpine Tourism Board','MediCore Devices','Kestrel Aviation','Silva Cosmetics','Granite Law Partners','Polaris Games','Tidewater Shipping','Rosen Fashion',
 'Helix Biotech','Quantum Software','Baltic Timber','Fjord Seafood','Maple Foods','Prisma Media','Delta Logistics','Ivory Press','Summit Capital',
 'Nova Clinics','Cobalt Mining','Arcadia Hotels','Zephyr Wind','Juniper Books','Titan Robotics','Opal Jewellery','Ember Studios','Falcon Security',
 'Greenway Farms','Horizon Travel','Indigo Airlines','Jade Ceramics','Krona Finance','Lotus Wellness','Mistral Yachts','Nexus Telecom','Olive Grove Oils',
 'Pioneer Tools','Quill Academic','Redwood Furniture','Sable Records','Terra Seeds','Umbra Optics','Vista Realty','Willow Care','Xenon Lighting',
 'Yarrow Herbs','Zenith Watches','Amber Notaries','Birch Consulting','Crest Dental','Dune Expeditions'])[i],
 (array['healthcare','energy','food','legal','finance','publishing','manufacturing','finance','tourism','healthcare','transport','retail','legal','entertainment','transport','retail',
 'healthcare','technology','manufacturing','food','food','publishing','transport','publishing','finance','healthcare','energy','tourism','energy','publishing','manufacturing','retail','entertainment','technology',
 'food','tourism','transport','retail','finance','healthcare','manufacturing','technology','food','manufacturing','publishing','retail','entertainment','food','technology','finance','healthcare','manufacturing',
 'food','retail','legal','legal','healthcare','tourism'])[i],
 (array['United Kingdom','Germany','Germany','France','Spain','United Kingdom','Sweden','Italy','Netherlands','Poland','United Kingdom','Germany'])[1+floor(seed_r('cc'||i)*12)::int],
 date '2023-01-03' + (seed_r('cs'||i)*540)::int,
 seed_r('cv'||i)<0.25,
 CASE WHEN seed_r('cl'||i)<0.8 THEN 2000+500*floor(seed_r('cl2'||i)*50) END,
 CASE WHEN seed_r('ce'||i)<0.85 THEN 'office'||i||'@client-mail.example' END,
 CASE WHEN seed_r('cm'||i)<0.9 THEN 15+floor(seed_r('cm2'||i)*7)::int END
FROM generate_series(1,58) i;

INSERT INTO translators
SELECT i,
 (array['Anna','Pavel','Ingrid','Rafael','Yuki','Leila','Mateo','Chiara','Dmitri','Hana','Erik','Noor','Bruno','Elena','Wei','Jin','Freya','Omar','Lotte','Tariq'])[1+(i-1)%20]||' '||
 (array['Kovacs','Moreau','Schmidt','Haddad','Nakamura','Silva','Janssen','Popescu','Lund','Farahani','Conti','Kim','Dvorak','Ivanova','Wagner','Ortega','Laine','Cohen','Zhang'])[1+((i-1)%20*7+(i-1)/20*5)%19],
 (array['en','de','fr','es','it','pt','nl','sv','pl','cs','ru','uk','ar','he','ja','zh','ko','ro','da','fa','fi','en','de','fr','es'])[1+(i-1)%25],
 (array['Germany','France','Spain','United Kingdom','Italy','Poland','Portugal','Japan','Canada','Sweden','Israel','Czechia'])[1+floor(seed_r('tc'||i)*12)::int],
 round(0.05+seed_r('tr'||i)*0.13,4),
 CASE WHEN seed_r('tg'||i)<0.85 THEN round(2.6+seed_r('tg2'||i)*2.4,2) END,
 seed_r('tw'||i)<0.3,
 date '2023-01-05' + (seed_r('tj'||i)*800)::int,
 CASE WHEN seed_r('ts'||i)<0.72 THEN 'active' WHEN seed_r('ts'||i)<0.88 THEN 'paused' ELSE 'left' END
FROM generate_series(1,80) i;

INSERT INTO translator_languages
SELECT translator_id, native_language, 'native',
 CASE WHEN seed_r('lc'||translator_id)<0.35 THEN date '2023-02-01'+(seed_r('lc2'||translator_id)*800)::int END
FROM translators;
INSERT INTO translator_languages
SELECT t.translator_id, l.language_code,
 CASE WHEN seed_r('lv'||t.translator_id||l.language_code)<0.55 THEN 'fluent' ELSE 'working' END,
 CASE WHEN seed_r('lz'||t.translator_id||l.language_code)<0.4 THEN date '2023-02-01'+(seed_r('ly'||t.translator_id||l.language_code)*800)::int END
FROM translators t JOIN languages l ON l.language_code<>t.native_language AND l.language_code<>'is'
WHERE seed_r('lx'||t.translator_id||l.language_code) < CASE WHEN l.language_code='en' THEN 0.75 WHEN l.language_code IN ('de','fr','es') THEN 0.22 ELSE 0.06 END;

INSERT INTO projects
SELECT i, c, src, CASE WHEN tgt=src THEN CASE WHEN src='en' THEN 'de' ELSE 'en' END ELSE tgt END, area, st, wc,
 round(wc*(0.11+seed_r('pp'||i)*0.1)*(CASE WHEN rush THEN 1.3 ELSE 1 END),2), rush, rec, due,
 CASE WHEN st='delivered' THEN due + time '08:00' - interval '5 days' + (floor(seed_r('pd'||i)*6.6*24*60)::int)*interval '1 minute' END,
 5+floor(power(seed_r('pk'||i),1.3)*10)::int
FROM (
 SELECT i, rec, rush, wc, c, area,
  (array['en','en','en','de','fr','es','en','it','ja','nl'])[1+floor(seed_r('psl'||i)*10)::int] src,
  (array['de','fr','es','en','it','pl','zh','ja','ar','pt','en','de','sv','ru','ko','cs','fr','he','nl','uk'])[1+floor(seed_r('ptl'||i)*20)::int] tgt,
  (rec::date + 7 + floor(seed_r('pdue'||i)*24)::int) due,
  CASE WHEN seed_r('pst'||i)<0.08 THEN 'cancelled'
       WHEN rec>=timestamp '2025-03-15' THEN (array['in_progress','in_progress','in_progress','quoted','quoted','on_hold','delivered'])[1+floor(seed_r('pst2'||i)*7)::int]
       WHEN seed_r('pst'||i)<0.115 THEN 'on_hold'
       ELSE 'delivered' END st
 FROM (
  SELECT i,
   timestamp '2023-01-04 08:00' + (power((i-1)/460.0,0.85)*870)::int*interval '1 day' + floor(seed_r('prt'||i)*600)*interval '1 minute' rec,
   seed_r('prr'||i)<0.22 rush,
   (400+floor(power(seed_r('pwc'||i),2.2)*24000))::int wc,
   1+floor(power(seed_r('pcl'||i),1.6)*53)::int c,
   (array['legal','medical','marketing','technical','technical','financial','literary','marketing'])[1+floor(seed_r('par'||i)*8)::int] area
  FROM generate_series(1,460) i) a) b;
UPDATE projects p SET received_at = received_at + ((c.signed_on - p.received_at::date)+2)*interval '1 day',
  due_on = due_on + ((c.signed_on - p.received_at::date)+2),
  delivered_at = delivered_at + ((c.signed_on - p.received_at::date)+2)*interval '1 day'
FROM clients c WHERE c.client_id=p.client_id AND p.received_at::date<c.signed_on;

INSERT INTO assignments
SELECT row_number() OVER (ORDER BY project_id, k), project_id, translator_id, task, words,
 round(words*rate_per_word*CASE task WHEN 'translation' THEN 1 WHEN 'proofreading' THEN 0.35 ELSE 0.45 END,2),
 received_at::date+1+k,
 CASE WHEN status='delivered' THEN greatest(received_at::date+1+k, least(delivered_at::date, received_at::date+3+k+floor(seed_r('af'||project_id||'-'||k)*8)::int)) 
      WHEN status='in_progress' AND seed_r('af3'||project_id||'-'||k)<0.25 THEN received_at::date+4+k END,
 CASE WHEN status='delivered' AND seed_r('aq'||project_id||'-'||k)<0.6 THEN 55+floor(power(seed_r('aq2'||project_id||'-'||k),0.7)*45)::int END
FROM (
 SELECT p.*, k, (array['translation','proofreading','editing'])[k] task, x.translator_id, x.rate_per_word,
   p.word_count words
 FROM projects p CROSS JOIN generate_series(1,3) k
 CROSS JOIN LATERAL (SELECT t.translator_id, t.rate_per_word FROM translators t JOIN translator_languages tl USING (translator_id)
   WHERE tl.language_code=p.target_language AND t.translator_id NOT IN (17,38,59,66,71)
   ORDER BY (tl.level='native')::int*0.3 + seed_r('at'||p.project_id||'-'||k||'-'||t.translator_id) DESC LIMIT 1) x
 WHERE p.status<>'quoted' AND (k=1 OR (k=2 AND seed_r('ak2'||p.project_id)<0.5) OR (k=3 AND seed_r('ak3'||p.project_id)<0.2))
) z;

INSERT INTO invoices
SELECT n, 'INV-'||extract(year FROM iss)||'-'||lpad(n::text,4,'0'), project_id, iss, iss+30,
 round(price*CASE WHEN is_vip THEN 0.95 ELSE 1 END,2), pd,
 CASE WHEN pd IS NOT NULL THEN (array['bank transfer','bank transfer','bank transfer','card','card','cheque'])[1+floor(seed_r('ipm'||project_id)*6)::int] END
FROM (
 SELECT row_number() OVER (ORDER BY p.delivered_at, p.project_id) n, p.project_id, p.price, c.is_vip, p.delivered_at::date+1+floor(seed_r('ii'||p.project_id)*5)::int iss,
  CASE WHEN seed_r('ip'||p.project_id)<0.86 THEN p.delivered_at::date+8+floor(seed_r('ip2'||p.project_id)*45)::int END pd
 FROM projects p JOIN clients c USING (client_id) WHERE p.status='delivered' AND seed_r('ix'||p.project_id)<0.96) z;

DROP FUNCTION seed_r(text);

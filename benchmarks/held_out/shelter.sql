CREATE TABLE species (species_id int PRIMARY KEY, species_name varchar(30) NOT NULL);
CREATE TABLE kennel (kennel_id int PRIMARY KEY, kennel_code varchar(10) NOT NULL, building varchar(30), capacity int);
CREATE TABLE animal (animal_id int PRIMARY KEY, animal_name varchar(30) NOT NULL, species_id int NOT NULL REFERENCES species, kennel_id int REFERENCES kennel, sex varchar(10), birth_date date, intake_date date NOT NULL, weight_kg numeric(5,1), color varchar(20), is_neutered boolean NOT NULL, status varchar(20) NOT NULL);
CREATE TABLE adopter (adopter_id int PRIMARY KEY, full_name varchar(50) NOT NULL, email varchar(60), town varchar(30), household_size int, has_garden boolean, registered_on date);
CREATE TABLE adoption (adoption_id int PRIMARY KEY, animal_id int NOT NULL REFERENCES animal, adopter_id int NOT NULL REFERENCES adopter, adopted_on date NOT NULL, fee numeric(8,2), returned_on date);
CREATE TABLE volunteer (volunteer_id int PRIMARY KEY, full_name varchar(50) NOT NULL, team varchar(20), joined_on date, hours_per_week int, supervisor_id int REFERENCES volunteer);
CREATE TABLE treatment (treatment_id int PRIMARY KEY, animal_id int NOT NULL REFERENCES animal, vet_name varchar(50), treatment_type varchar(20), treated_on date NOT NULL, cost numeric(8,2));
CREATE TABLE donation (donation_id int PRIMARY KEY, adopter_id int REFERENCES adopter, amount numeric(10,2) NOT NULL, donated_on date NOT NULL, method varchar(20));
INSERT INTO species VALUES (1,'Dog'),(2,'Cat'),(3,'Rabbit'),(4,'Parrot'),(5,'Tortoise');
INSERT INTO kennel VALUES (1,'N1','North Wing',4),(2,'N2','North Wing',6),(3,'N3','North Wing',3),(4,'S1','South Wing',8),(5,'S2','South Wing',5),(6,'B1','Barn',12),(7,'B2','Barn',9);
INSERT INTO animal
SELECT i,
       (ARRAY['Biscuit','Luna','Ziggy','Maple','Otto','Pepper','Hazel','Bruno','Clover','Milo','Tilly','Rusty','Nala','Figaro','Poppy','Shadow','Daisy','Mango','Bandit','Olive','Gizmo','Ruby','Smokey','Pickle','Willow','Thor','Ginger','Moss','Juno','Scout','Waffles','Bella','Cosmo','Echo','Felix','Gus','Hugo','Ivy','Jasper','Kiki'])[i],
       (ARRAY[1,2,1,3,1,2,2,1,3,1,4,1,2,2,1,1,2,4,1,2])[1 + (i * 7) % 20],
       CASE WHEN i % 11 = 0 THEN NULL ELSE 1 + (i * 5) % 6 END,
       CASE WHEN (i * 3) % 5 < 2 THEN 'male' ELSE 'female' END,
       CASE WHEN i % 13 = 0 THEN NULL ELSE date '2016-03-10' + (i * 83) % 2900 END,
       date '2022-11-05' + i * 26,
       round((2.3 + (i * 37 % 97) * 0.41)::numeric, 1),
       (ARRAY['black','white','brown','tabby','grey','golden'])[1 + (i * 11) % 6],
       i % 3 <> 0,
       CASE WHEN i % 2 = 0 AND i < 35 THEN 'adopted' WHEN i % 9 = 0 THEN 'in treatment' WHEN i % 7 = 0 THEN 'reserved' ELSE 'available' END
FROM generate_series(1, 40) i;
INSERT INTO adopter
SELECT i,
       (ARRAY['Greta Lindholm','Marcus Oyelaran','Priya Raman','Tom Whitaker','Sofia Castellano','Dylan Pryce','Aiko Tanabe','Helen Marsh','Ibrahim Saleh','Nora Feldman','Liam Corrigan','Yusuf Demir','Clara Voss','Peter Hallam','Ines Duarte','Owen Bexley','Rosa Kimball','Stefan Brandt'])[i],
       lower((ARRAY['greta','marcus','priya','tom','sofia','dylan','aiko','helen','ibrahim','nora','liam','yusuf','clara','peter','ines','owen','rosa','stefan'])[i]) || '@post.example',
       (ARRAY['Ashford','Brindle','Ashford','Kelso','Marlow','Brindle','Ashford'])[1 + i % 7],
       1 + (i * 5) % 6, i % 4 <> 1, date '2021-06-01' + i * 53
FROM generate_series(1, 18) i;
INSERT INTO adoption
SELECT i, i * 2, (ARRAY[1,2,3,1,5,6,2,8,1,10,3,12,13,5,15,16,8])[i], date '2023-04-02' + i * 43 + (i * 17) % 29,
       60 + (i * 29 % 23) * 7.5, CASE WHEN i IN (4, 9, 13) THEN date '2023-04-02' + i * 43 + 70 END
FROM generate_series(1, 17) i;
INSERT INTO volunteer VALUES
 (1,'Martha Quill','Events','2018-02-14',10,NULL),(2,'Jonas Reed','Walking','2019-05-20',12,1),(3,'Petra Novak','Feeding','2020-01-11',8,1),
 (4,'Samir Haddad','Cleaning','2020-09-30',15,1),(5,'Lucy Tran','Walking','2021-03-08',6,2),(6,'Eduardo Paz','Walking','2021-12-19',9,2),
 (7,'Fiona Blake','Feeding','2022-04-25',7,3),(8,'Kofi Mensah','Cleaning','2022-08-02',11,4),(9,'Anja Weiss','Feeding','2023-01-16',5,3),
 (10,'Ralph Dunmore','Walking','2023-06-27',4,2),(11,'Beatriz Lima','Events','2024-02-05',3,1),(12,'Henry Osei','Events','2024-09-09',NULL,NULL);
INSERT INTO treatment
SELECT i, 1 + (i * 13) % 31, (ARRAY['Dr. Elena Fox','Dr. Paul Grimm','Dr. Wendy Sato'])[1 + (i * i + i / 5) % 3],
       (ARRAY['vaccination','deworming','surgery','dental','vaccination','vaccination'])[1 + (i * 5 + i / 6) % 6],
       date '2023-01-09' + i * 13, round((18 + ((i * i * 7 + i * 53) % 71) * 4.35)::numeric, 2)
FROM generate_series(1, 70) i;
INSERT INTO donation
SELECT i, CASE WHEN i % 5 = 0 THEN NULL ELSE 1 + (i * 7) % 14 END, 5 + (i * 41 % 67) * 3.5,
       date '2023-01-15' + i * 19, (ARRAY['card','cash','bank transfer','card'])[1 + (i * 3 + i / 7) % 4]
FROM generate_series(1, 55) i;

-- Stores of three brokers as version 1 wrote them; tests/test_broker_stores.py opens them.
-- west
BEGIN TRANSACTION;
CREATE TABLE deliveries (
    subscription TEXT NOT NULL, event TEXT NOT NULL, added INTEGER NOT NULL);
INSERT INTO "deliveries" VALUES('ben','plain',1);
CREATE TABLE events (id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
INSERT INTO "events" VALUES('lamp','{"id": "lamp", "price": 3, "sold": "2026-03-01T00:00:00+00:00", "weights": {"price": 2.0, "colour": 1.0}, "until": "1970-01-01T00:15:00+00:00"}');
CREATE TABLE facts (name TEXT PRIMARY KEY, fact TEXT NOT NULL);
INSERT INTO "facts" VALUES('version','1');
INSERT INTO "facts" VALUES('broker','"west"');
INSERT INTO "facts" VALUES('space','{"bits": 3, "dimensions": [{"attribute": "price", "low": 0, "high": 20, "axis": "value", "edges": []}]}');
INSERT INTO "facts" VALUES('neighbours','["hub"]');
INSERT INTO "facts" VALUES('schema','{"plane": false, "declared": false, "attributes": [{"name": "price", "kind": "number", "where": "subscription ''ana''"}, {"name": "sold", "kind": "timestamp", "where": "subscription ''ana''"}, {"name": "loc", "kind": "point", "where": "subscription ''near''"}, {"name": "colour", "kind": null, "where": "event ''lamp''"}]}');
INSERT INTO "facts" VALUES('time','20000000');
CREATE TABLE interests (
    source TEXT NOT NULL, name TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (source, name));
INSERT INTO "interests" VALUES('','ana','{"id": "ana", "expression": "price < 5 AND sold > TIMESTAMP ''2026-01-01T00:00:00+00:00''"}');
INSERT INTO "interests" VALUES('','ben','{"id": "ben", "expression": "price < 9", "until": "1970-01-01T00:08:20+00:00"}');
INSERT INTO "interests" VALUES('hub','east/near','{"ranges": [[0, 7]]}');
COMMIT;
-- hub
BEGIN TRANSACTION;
CREATE TABLE deliveries (
    subscription TEXT NOT NULL, event TEXT NOT NULL, added INTEGER NOT NULL);
CREATE TABLE events (id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
INSERT INTO "events" VALUES('lamp','{"id": "lamp", "price": 3, "sold": "2026-03-01T00:00:00+00:00", "weights": {"price": 2.0, "colour": 1.0}, "until": "1970-01-01T00:15:00+00:00"}');
CREATE TABLE facts (name TEXT PRIMARY KEY, fact TEXT NOT NULL);
INSERT INTO "facts" VALUES('version','1');
INSERT INTO "facts" VALUES('broker','"hub"');
INSERT INTO "facts" VALUES('space','{"bits": 3, "dimensions": [{"attribute": "price", "low": 0, "high": 20, "axis": "value", "edges": []}]}');
INSERT INTO "facts" VALUES('neighbours','["west", "east"]');
INSERT INTO "facts" VALUES('time','10000000');
INSERT INTO "facts" VALUES('schema','{"plane": false, "declared": false, "attributes": [{"name": "price", "kind": "number", "where": "subscription ''ana''"}, {"name": "sold", "kind": "timestamp", "where": "subscription ''ana''"}, {"name": "loc", "kind": "point", "where": "subscription ''near''"}, {"name": "colour", "kind": null, "where": "event ''lamp''"}]}');
CREATE TABLE interests (
    source TEXT NOT NULL, name TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (source, name));
INSERT INTO "interests" VALUES('west','west/ana','{"id": "west/ana", "expression": "price < 5 AND sold > TIMESTAMP ''2026-01-01T00:00:00+00:00''"}');
INSERT INTO "interests" VALUES('west','west/ben','{"id": "west/ben", "expression": "price < 9"}');
INSERT INTO "interests" VALUES('east','east/near','{"id": "east/near", "expression": "ST_DWithin(loc, here(), 4000)", "at": [0.01, 0.02]}');
COMMIT;
-- east
BEGIN TRANSACTION;
CREATE TABLE deliveries (
    subscription TEXT NOT NULL, event TEXT NOT NULL, added INTEGER NOT NULL);
CREATE TABLE events (id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
INSERT INTO "events" VALUES('lamp','{"id": "lamp", "price": 3, "sold": "2026-03-01T00:00:00+00:00", "weights": {"price": 2.0, "colour": 1.0}, "until": "1970-01-01T00:15:00+00:00"}');
CREATE TABLE facts (name TEXT PRIMARY KEY, fact TEXT NOT NULL);
INSERT INTO "facts" VALUES('version','1');
INSERT INTO "facts" VALUES('broker','"east"');
INSERT INTO "facts" VALUES('space','{"bits": 3, "dimensions": [{"attribute": "price", "low": 0, "high": 20, "axis": "value", "edges": []}]}');
INSERT INTO "facts" VALUES('neighbours','["hub"]');
INSERT INTO "facts" VALUES('time','10000000');
INSERT INTO "facts" VALUES('schema','{"plane": false, "declared": false, "attributes": [{"name": "price", "kind": "number", "where": "subscription ''ana''"}, {"name": "sold", "kind": "timestamp", "where": "subscription ''ana''"}, {"name": "loc", "kind": "point", "where": "subscription ''near''"}, {"name": "colour", "kind": null, "where": "event ''lamp''"}]}');
CREATE TABLE interests (
    source TEXT NOT NULL, name TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (source, name));
INSERT INTO "interests" VALUES('hub','west/ana','{"ranges": [[1, 2]]}');
INSERT INTO "interests" VALUES('hub','west/ben','{"ranges": [[1, 4]]}');
INSERT INTO "interests" VALUES('','near','{"id": "near", "expression": "ST_DWithin(loc, here(), 4000)", "at": [0.01, 0.02]}');
COMMIT;

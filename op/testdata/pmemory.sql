PRAGMA application_id = 1346455885;
PRAGMA user_version = 15;
CREATE TABLE strings (id INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER);
CREATE TABLE records (id INTEGER PRIMARY KEY, namespace_id INTEGER, kind INTEGER, scope_id INTEGER, created_at_us INTEGER, updated_at_us INTEGER, revision INTEGER, metadata_json TEXT, evidence_json TEXT, payload_json TEXT, status INTEGER);
CREATE TABLE record_tags (record_id INTEGER, tag_id INTEGER);
CREATE TABLE entities (record_id INTEGER PRIMARY KEY, name TEXT, entity_type_id INTEGER);
CREATE TABLE notes (record_id INTEGER PRIMARY KEY, namespace_id INTEGER, scope_id INTEGER, path TEXT, name TEXT);
CREATE TABLE namespace_roots (namespace_id INTEGER PRIMARY KEY, root TEXT);
CREATE TABLE predicate_rules (predicate_id INTEGER PRIMARY KEY, inverse_predicate_id INTEGER, is_symmetric INTEGER);
CREATE TABLE predicate_equivalents (namespace_id INTEGER, predicate_id INTEGER, canonical_id INTEGER);
CREATE TABLE embedding_spaces (id TEXT PRIMARY KEY, model TEXT, dimension INTEGER, text_version INTEGER, encoding TEXT);
CREATE TABLE import_runs (source_id TEXT PRIMARY KEY, source_fingerprint TEXT, report_json TEXT);
INSERT INTO strings VALUES (1,'sys:same_as'),(2,'knowledge'),(3,'harbour'),(4,'public'),(5,'work'),(6,'lamp'),(7,'person'),(8,'keeps'),(9,'kept_by'),(10,'minds'),(11,'task');
INSERT INTO meta VALUES ('revision',9),('vectorize:harbour:memory',0),('vectorize:harbour:note',1);
INSERT INTO records VALUES
 (1,3,0,4,1700000000000000,1700000001000000,1,'{"a":1.50}','[{"source":"chat","source_revision":null,"chunk_id":null,"offset":2,"limit":1,"quote":"red","metadata":{}},{"source":" "}]','{"judgment":"The lamp is red","memory_type_id":11,"reasoning":"seen","state":{"pinned":true,"strength":4,"useful_count":3,"useful_score":7.25,"last_recalled_at_us":1700000000500000,"last_decay_at_us":null}}',0),
 (2,3,0,5,1700000000000000,1700000000000000,2,'{}','[]','{"judgment":"灯塔每晚点亮","memory_type_id":2,"reasoning":""}',0),
 (3,3,0,4,1700000000000000,1700000000000000,3,'{}','[]','{"judgment":"gone","memory_type_id":2}',1),
 (4,3,1,4,1700000000000000,1700000000000000,4,'{}','[]','{"name":"Mara","entity_type":"person","aliases":["M"],"attributes":{"team":["night"]},"summary":"the keeper"}',0),
 (5,3,1,4,1700000000000001,1700000000000001,5,'{}','[]','{"name":"mara","entity_type":"person","aliases":[],"attributes":{},"summary":"another one"}',0),
 (6,3,1,4,1700000000000000,1700000000000000,6,'{}','[]','{"name":"Lamp","entity_type":"thing"}',0),
 (7,3,2,4,1700000000000000,1700000000000000,7,'{}','[]','{"subject_id":4,"object_id":6,"predicate":"keeps","confidence":0.75,"reason":"log"}',0),
 (8,3,2,4,1700000000000000,1700000000000000,7,'{}','[]','{"subject_id":4,"object_id":99,"predicate":"keeps"}',0),
 (9,3,3,4,1700000000000000,1700000000000000,8,'{}','[]','{"name":"Storm","summary":"big","participants":[4,5],"confidence":0.5,"reason":"seen"}',0),
 (10,3,4,4,1700000000000000,1700000000000000,9,'{}','[]','{"chunk_chars":220}',0),
 (11,3,5,4,1700000000000000,1700000000000000,9,'{}','[]','{"note_id":10,"ordinal":0,"offset":1,"limit":3}',0),
 (12,3,4,4,1700000000000000,1700000000000000,9,'{}','[]','{"chunk_chars":220}',0),
 (13,3,0,4,1700000000000000,1700000000000000,9,'{}','[]','not json',0),
 (14,3,9,4,1700000000000000,1700000000000000,9,'{}','[]','{}',0);
INSERT INTO record_tags VALUES (1,6),(4,7),(10,6);
INSERT INTO entities VALUES (4,'Mara',7),(5,'mara',7),(6,'Lamp',6);
INSERT INTO notes VALUES (10,3,4,'log.md','log'),(12,3,4,'../../outside.md','outside');
INSERT INTO namespace_roots VALUES (3,'{notes}');
INSERT INTO predicate_rules VALUES (1,NULL,1),(8,9,0);
INSERT INTO predicate_equivalents VALUES (3,8,8),(3,10,8);
INSERT INTO embedding_spaces VALUES ('e','m',2,1,'sq8');
INSERT INTO import_runs VALUES ('old','f','{}');

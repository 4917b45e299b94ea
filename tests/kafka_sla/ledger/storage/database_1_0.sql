BEGIN TRANSACTION;
CREATE TABLE alert_reports (
	seq INTEGER NOT NULL, 
	channel TEXT NOT NULL, 
	thread VARCHAR(64) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	sla TEXT NOT NULL, 
	alert_id VARCHAR(64) NOT NULL, 
	start_at DATETIME NOT NULL, 
	known_until DATETIME NOT NULL, 
	cause TEXT NOT NULL, 
	incident VARCHAR(64) NOT NULL, 
	open_batch BIGINT NOT NULL, 
	opened_at DATETIME, 
	inform_batch BIGINT, 
	inform_to TEXT, 
	resolve_batch BIGINT, 
	resolved_at DATETIME, 
	claimed_at DATETIME, 
	content TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	CONSTRAINT alert_reports_kind CHECK (kind IN ('miss', 'burn')), 
	UNIQUE (channel, thread)
);
CREATE TABLE configurations (
	digest VARCHAR(64) NOT NULL, 
	settings TEXT NOT NULL, 
	first_used_at DATETIME NOT NULL, 
	used_at DATETIME, 
	PRIMARY KEY (digest)
);
CREATE TABLE exclusions (
	exclusion_id TEXT NOT NULL, 
	sla TEXT NOT NULL, 
	cluster TEXT NOT NULL, 
	start_at DATETIME NOT NULL, 
	end_at DATETIME NOT NULL, 
	undoes TEXT, 
	reason TEXT NOT NULL, 
	author TEXT NOT NULL, 
	recorded_at DATETIME NOT NULL, 
	PRIMARY KEY (exclusion_id), 
	CONSTRAINT exclusions_undone_once UNIQUE (undoes)
);
CREATE TABLE fact_loads (
	cluster TEXT NOT NULL, 
	seq BIGINT NOT NULL, 
	from_at DATETIME NOT NULL, 
	to_at DATETIME NOT NULL, 
	landed BOOLEAN NOT NULL, 
	recorded_at DATETIME NOT NULL, 
	PRIMARY KEY (cluster, seq)
);
CREATE TABLE failed_intervals (
	cluster TEXT NOT NULL, 
	interval_start DATETIME NOT NULL, 
	interval_end DATETIME NOT NULL, 
	step VARCHAR(16) NOT NULL, 
	reason TEXT NOT NULL, 
	failed_at DATETIME NOT NULL, 
	PRIMARY KEY (cluster, interval_start, interval_end)
);
CREATE TABLE judged_until (
	sla TEXT NOT NULL, 
	as_of DATETIME NOT NULL, 
	PRIMARY KEY (sla)
);
CREATE TABLE kafka_sla_schema_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT kafka_sla_schema_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "kafka_sla_schema_version" VALUES('0001');
CREATE TABLE late_runs (
	cluster TEXT NOT NULL, 
	interval_end DATETIME NOT NULL, 
	reported_at DATETIME NOT NULL, 
	PRIMARY KEY (cluster, interval_end)
);
CREATE TABLE load_sums (
	table_name TEXT NOT NULL, 
	width_ms BIGINT NOT NULL, 
	start_at DATETIME NOT NULL, 
	load_id VARCHAR(64) NOT NULL, 
	sums BLOB NOT NULL, 
	PRIMARY KEY (table_name, width_ms, start_at, load_id)
);
CREATE TABLE miss_notes (
	seq INTEGER NOT NULL, 
	sla TEXT NOT NULL, 
	miss_id VARCHAR(64) NOT NULL, 
	start_at DATETIME NOT NULL, 
	known_until DATETIME NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	author TEXT NOT NULL, 
	text TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE TABLE observed_time (
	cluster TEXT NOT NULL, 
	start_at DATETIME NOT NULL, 
	end_at DATETIME NOT NULL, 
	PRIMARY KEY (cluster, start_at)
);
CREATE TABLE publications (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	cluster TEXT NOT NULL, 
	interval_start DATETIME NOT NULL, 
	interval_end DATETIME NOT NULL, 
	load_id VARCHAR(64) NOT NULL, 
	facts_seq BIGINT NOT NULL, 
	published_at DATETIME NOT NULL, 
	UNIQUE (load_id, cluster)
);
INSERT INTO "publications" VALUES(1,'prod','2026-03-02 10:00:00.000000','2026-03-02 10:05:00.000000','load-of-1.0',0,'2026-11-28 15:16:38.231375');
CREATE TABLE quarantine (
	load_id TEXT NOT NULL, 
	interval_start DATETIME NOT NULL, 
	interval_end DATETIME NOT NULL, 
	table_name TEXT NOT NULL, 
	expectation_id TEXT NOT NULL, 
	severity TEXT NOT NULL, 
	"row" TEXT NOT NULL, 
	id INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE retired_loads (
	load_id VARCHAR(64) NOT NULL, 
	cluster TEXT NOT NULL, 
	retired_at DATETIME NOT NULL, 
	interval_start DATETIME, 
	interval_end DATETIME, 
	PRIMARY KEY (load_id, cluster)
);
CREATE TABLE sent_digests (
	digest TEXT NOT NULL, 
	period_start DATETIME NOT NULL, 
	recipient TEXT NOT NULL, 
	sent_at DATETIME NOT NULL, 
	PRIMARY KEY (digest, period_start, recipient)
);
CREATE TABLE sla_burns (
	burn_id VARCHAR(64) NOT NULL, 
	sla TEXT NOT NULL, 
	severity VARCHAR(16) NOT NULL, 
	start_at DATETIME NOT NULL, 
	end_at DATETIME, 
	burn_rate DOUBLE NOT NULL, 
	burn TEXT NOT NULL, 
	PRIMARY KEY (burn_id), 
	CONSTRAINT sla_burns_severity CHECK (severity IN ('page', 'ticket'))
);
CREATE TABLE sla_misses (
	miss_id TEXT NOT NULL, 
	sla TEXT NOT NULL, 
	cluster TEXT NOT NULL, 
	state TEXT NOT NULL, 
	end_reason TEXT, 
	start_at DATETIME NOT NULL, 
	end_at DATETIME, 
	bad_until DATETIME NOT NULL, 
	settled_at DATETIME, 
	opened_at DATETIME NOT NULL, 
	bad_windows INTEGER NOT NULL, 
	is_certain BOOLEAN NOT NULL, 
	max_latency_ms BIGINT NOT NULL, 
	min_time_to_expiry_ms BIGINT, 
	for_ms BIGINT NOT NULL, 
	worst_latency_ms DOUBLE NOT NULL, 
	worst_latency_low_ms DOUBLE, 
	worst_latency_high_ms DOUBLE, 
	worst_at DATETIME NOT NULL, 
	worst_group TEXT NOT NULL, 
	worst_topic TEXT NOT NULL, 
	worst_partition INTEGER NOT NULL, 
	evidence TEXT NOT NULL, 
	exclusion TEXT, 
	PRIMARY KEY (miss_id), 
	CONSTRAINT sla_misses_end CHECK ((state = 'open') = (end_at IS NULL)), 
	CONSTRAINT sla_misses_state CHECK (state IN ('open', 'recovered', 'excluded', 'removed'))
);
CREATE TABLE sla_rollup_details (
	sla TEXT NOT NULL, 
	width_ms BIGINT NOT NULL, 
	start_at DATETIME NOT NULL, 
	histogram BLOB NOT NULL, 
	cells BLOB NOT NULL, 
	PRIMARY KEY (sla, width_ms, start_at)
);
CREATE TABLE sla_rollups (
	sla TEXT NOT NULL, 
	width_ms BIGINT NOT NULL, 
	start_at DATETIME NOT NULL, 
	good_ms BIGINT NOT NULL, 
	bad_ms BIGINT NOT NULL, 
	excluded_ms BIGINT NOT NULL, 
	unknown_ms BIGINT NOT NULL, 
	records_due BIGINT NOT NULL, 
	records_late BIGINT NOT NULL, 
	records_late_low BIGINT NOT NULL, 
	records_late_high BIGINT NOT NULL, 
	records_in_unknown_time BIGINT NOT NULL, 
	worst_latency_ms DOUBLE, 
	worst_latency_low_ms DOUBLE, 
	worst_latency_high_ms DOUBLE, 
	max_latency_ms BIGINT, 
	all_consumed BIGINT, 
	all_produced BIGINT, 
	PRIMARY KEY (sla, width_ms, start_at)
);
CREATE TABLE sla_rules (
	cluster TEXT NOT NULL, 
	sla TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	since_seq BIGINT NOT NULL, 
	PRIMARY KEY (cluster, sla)
);
CREATE TABLE sla_window_days (
	sla TEXT NOT NULL, 
	day DATETIME NOT NULL, 
	first_start DATETIME NOT NULL, 
	last_end DATETIME NOT NULL, 
	verdicts TEXT NOT NULL, 
	windows BLOB NOT NULL, 
	crc32 BIGINT NOT NULL, 
	PRIMARY KEY (sla, day)
);
CREATE TABLE sla_windows (
	sla TEXT NOT NULL, 
	cluster TEXT NOT NULL, 
	window_start DATETIME NOT NULL, 
	window_end DATETIME NOT NULL, 
	verdict TEXT NOT NULL, 
	is_certain BOOLEAN NOT NULL, 
	reason TEXT, 
	max_latency_ms BIGINT NOT NULL, 
	min_time_to_expiry_ms BIGINT, 
	worst_latency_ms DOUBLE, 
	worst_latency_low_ms DOUBLE, 
	worst_latency_high_ms DOUBLE, 
	worst_group TEXT, 
	worst_topic TEXT, 
	worst_partition INTEGER, 
	steady_partitions INTEGER NOT NULL, 
	bootstrapping_partitions INTEGER NOT NULL, 
	unknown_partitions INTEGER NOT NULL, 
	records_due BIGINT NOT NULL, 
	records_late BIGINT NOT NULL, 
	judged_verdict TEXT, 
	judged_reason TEXT, 
	records_late_low BIGINT NOT NULL, 
	records_late_high BIGINT NOT NULL, 
	records_of_unknown_state BIGINT NOT NULL, 
	PRIMARY KEY (sla, window_start), 
	CONSTRAINT sla_windows_verdict CHECK (verdict IN ('good', 'bad', 'excluded', 'unknown'))
);
CREATE TABLE steady_rules (
	cluster TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	shared TEXT, 
	PRIMARY KEY (cluster)
);
CREATE TABLE store_states (
	seq INTEGER NOT NULL, 
	store_id VARCHAR(36) NOT NULL, 
	state VARCHAR(32) NOT NULL, 
	reached_at DATETIME NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (state)
);
INSERT INTO "store_states" VALUES(1,'b2966c35-9f11-49a1-9279-4b624d7016d9','26629f5cfe7a4841a2cb4db1c0dd0985','2026-11-28 15:16:38.535250');
INSERT INTO "store_states" VALUES(2,'b2966c35-9f11-49a1-9279-4b624d7016d9','259a2a5a02774f70b9029d1d5d4d6484','2026-11-28 15:16:38.567335');
CREATE TABLE unjudged_intervals (
	sla TEXT NOT NULL, 
	interval_start DATETIME NOT NULL, 
	interval_end DATETIME NOT NULL, 
	reason TEXT NOT NULL, 
	failed_at DATETIME NOT NULL, 
	PRIMARY KEY (sla, interval_start, interval_end)
);
CREATE TABLE unjudged_partitions (
	sla TEXT NOT NULL, 
	"group" TEXT NOT NULL, 
	topic TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	partitions TEXT NOT NULL, 
	since DATETIME NOT NULL, 
	PRIMARY KEY (sla, "group", topic, reason)
);
CREATE TABLE validation_results (
	load_id TEXT NOT NULL, 
	interval_start DATETIME NOT NULL, 
	interval_end DATETIME NOT NULL, 
	table_name TEXT NOT NULL, 
	expectation_id TEXT NOT NULL, 
	expectation TEXT NOT NULL, 
	severity TEXT NOT NULL, 
	success BOOLEAN NOT NULL, 
	observed TEXT, 
	unexpected_rows BIGINT, 
	PRIMARY KEY (load_id, table_name, expectation_id)
);
CREATE INDEX alert_reports_by_alert ON alert_reports (alert_id);
CREATE INDEX alert_reports_by_incident ON alert_reports (incident);
CREATE INDEX alert_reports_by_sla ON alert_reports (sla, known_until);
CREATE INDEX exclusions_by_sla ON exclusions (sla, start_at);
CREATE INDEX ix_miss_notes_sla ON miss_notes (sla);
CREATE INDEX publications_by_time ON publications (cluster, interval_start, interval_end);
CREATE INDEX quarantine_by_interval ON quarantine (interval_start, interval_end);
CREATE INDEX quarantine_by_load ON quarantine (load_id);
CREATE INDEX sla_burns_by_sla ON sla_burns (sla, start_at);
CREATE INDEX sla_misses_by_sla ON sla_misses (sla, start_at);
CREATE INDEX validation_results_broken ON validation_results (interval_start) WHERE NOT success;
CREATE INDEX validation_results_by_interval ON validation_results (interval_start, interval_end);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('publications',1);
COMMIT;

//! The tables: the chain, the payloads beside it, and projections that are written in the transaction of
//! their entry and can be rebuilt from it.

use bailey_store::Migration;

/// The version of the tables that this program makes; the newest of its migrations.
pub const SCHEMA_VERSION: u32 = 3;

pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, sql: FIRST },
    Migration { version: 2, sql: SECOND },
    Migration { version: SCHEMA_VERSION, sql: THIRD },
];

/// Each effect that begins asks for the entries that stop, release, or make void what was said before, and
/// one that was asked about for the newest answer, however long its session is (`given.rs`).
///
/// Older programs counted what was sent in another way. The state `stale` says that all projections are to be
/// made anew; an empty journal has none.
const THIRD: &str = "
CREATE INDEX IF NOT EXISTS entry_of_home ON entry (type, seq)
    WHERE type IN ('policy_adopted', 'stopped', 'released', 'restored', 'salvaged');
CREATE INDEX entry_of_answers ON entry (session, seq) WHERE type = 'answered';
INSERT INTO state (name, value) SELECT 'stale', 'schema 3' WHERE EXISTS (SELECT 1 FROM entry);
";

/// The tree over the entries: the hash of each 256 of the level below, which are entries on the lowest. What
/// an older journal lacks of it is computed where it is needed.
///
/// What is used up is a row of an account and a unit; turns and days of before are not counted.
///
/// A question is known by its entry, when it runs out, the call that waits, what that names, and what an
/// answer can be.
///
/// A token is live or over; its uses are counted by the name of each count.
///
/// Of an entry that is in an archive the number and the hash stay, and the number of the entry that names the
/// archive.
///
/// Checkpoints are by the first key of their line; they follow from nothing, so no rebuild makes them. A
/// witness was told of a line up to a checkpoint.
const SECOND: &str = "
CREATE TABLE tile (
    level INTEGER NOT NULL,
    place INTEGER NOT NULL,
    hash  BLOB NOT NULL,
    PRIMARY KEY (level, place)
) STRICT, WITHOUT ROWID;
ALTER TABLE entry ADD COLUMN archive INTEGER;
CREATE INDEX entry_of_archives ON entry (type) WHERE type IN ('archived', 'archive_removed');
ALTER TABLE approval ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approval ADD COLUMN until TEXT;
ALTER TABLE approval ADD COLUMN call TEXT;
ALTER TABLE approval ADD COLUMN named TEXT;
ALTER TABLE approval ADD COLUMN terms TEXT;
UPDATE approval SET asked = coalesce((
    SELECT seq FROM entry
    WHERE entry.session = approval.session AND type = 'asked'
        AND json_extract(CAST(body AS TEXT), '$.approval') = approval.id
), 0);
UPDATE approval SET call = (SELECT json_extract(CAST(body AS TEXT), '$.call') FROM entry WHERE seq = asked);
CREATE INDEX approval_open ON approval (state) WHERE state IN ('open', 'yes');
ALTER TABLE session ADD COLUMN turn TEXT;
ALTER TABLE session ADD COLUMN parent TEXT;
ALTER TABLE session ADD COLUMN part INTEGER;
UPDATE session SET turn = (
    SELECT json_extract(CAST(body AS TEXT), '$.turn') FROM entry
    WHERE entry.session = session.id AND type = 'accepted' ORDER BY seq DESC LIMIT 1
);
CREATE TABLE spent (
    account TEXT NOT NULL,
    unit    TEXT NOT NULL,
    used    INTEGER NOT NULL,
    PRIMARY KEY (account, unit)
) STRICT, WITHOUT ROWID;
CREATE TABLE reserved (
    effect  TEXT NOT NULL,
    account TEXT NOT NULL,
    unit    TEXT NOT NULL,
    amount  INTEGER NOT NULL,
    PRIMARY KEY (effect, account, unit)
) STRICT, WITHOUT ROWID;
CREATE INDEX reserved_by_account ON reserved (account, unit);
INSERT INTO spent (account, unit, used)
    SELECT 'session:' || id, 'tokens', tokens_used FROM session WHERE tokens_used > 0;
INSERT INTO reserved (effect, account, unit, amount)
    SELECT id, 'session:' || session, 'tokens', reserved FROM effect WHERE outcome IS NULL AND reserved > 0;
ALTER TABLE session DROP COLUMN tokens_used;
ALTER TABLE session DROP COLUMN tokens_reserved;
ALTER TABLE effect DROP COLUMN reserved;
CREATE TABLE checkpoint (
    line      TEXT NOT NULL,
    epoch     INTEGER NOT NULL,
    entries   INTEGER NOT NULL,
    note      TEXT NOT NULL,
    signature BLOB NOT NULL,
    PRIMARY KEY (line, epoch)
) STRICT, WITHOUT ROWID;
CREATE TABLE token (
    id      TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    live    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE token_use (
    count TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    used  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE witnessed (
    witness TEXT PRIMARY KEY,
    line    TEXT NOT NULL,
    epoch   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

const FIRST: &str = "
CREATE TABLE entry (
    seq     INTEGER PRIMARY KEY,
    type    TEXT NOT NULL,
    session TEXT,
    effect  TEXT,
    body    BLOB NOT NULL,
    hash    BLOB NOT NULL
) STRICT;
CREATE INDEX entry_by_session ON entry (session, seq);

CREATE TABLE payload (
    seq   INTEGER PRIMARY KEY REFERENCES entry (seq),
    salt  BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE state (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    id              TEXT PRIMARY KEY,
    workspace       TEXT NOT NULL,
    principal       TEXT NOT NULL,
    model           TEXT NOT NULL,
    opened          TEXT NOT NULL,
    updated         TEXT NOT NULL,
    title           TEXT NOT NULL DEFAULT '',
    tokens_used     INTEGER NOT NULL DEFAULT 0,
    tokens_reserved INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE effect (
    id       TEXT PRIMARY KEY,
    session  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    target   TEXT NOT NULL,
    purpose  TEXT NOT NULL,
    call     TEXT,
    intent   INTEGER NOT NULL,
    outcome  INTEGER,
    reserved INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX effect_unfinished ON effect (session) WHERE outcome IS NULL;

CREATE TABLE approval (
    id            TEXT PRIMARY KEY,
    session       TEXT NOT NULL,
    digest        TEXT NOT NULL,
    action_digest TEXT NOT NULL,
    state         TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX approval_by_action ON approval (session, action_digest);

CREATE TABLE touched (
    session TEXT NOT NULL,
    path    TEXT NOT NULL,
    base    TEXT,
    unsure  INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (session, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE revealed (
    session TEXT NOT NULL,
    path    TEXT NOT NULL,
    PRIMARY KEY (session, path)
) STRICT, WITHOUT ROWID;
";

//! Opening a database file: its permissions, its identity, its schema version.

use crate::StoreError;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// The `application_id` in the header of every Bailey database: the letters `BAIL`.
pub const APPLICATION_ID: i32 = 0x4241_494c;

/// How long a connection waits for the lock of another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The header of a database file, and where in it stand the size of a page and the number of free ones.
const HEADER_BYTES: u64 = 100;
const PAGE_SIZE_AT: u64 = 16;
const FREE_PAGES_AT: u64 = 36;

/// Prepared statements kept per connection; more than the journal has.
const STATEMENTS_MAX: usize = 128;

/// One step of a schema, run once, in a transaction of its own. Steps only go forward.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// The schema version that the file has afterwards; from 1 on, ascending.
    pub version: u32,
    /// The statements that lead there from the version before.
    pub sql: &'static str,
}

/// The read-write connection, on a file that exists, is private, ours and up to date.
pub(crate) fn writable(path: &Path, migrations: &[Migration]) -> Result<Connection, StoreError> {
    make_private(path)
        .map_err(|source| StoreError::Access { path: path.into(), source: Arc::new(source) })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    // SQLite opens a file that it may not write without a word, and complains at the first write.
    if connection.is_readonly("main")? {
        return Err(StoreError::ReadOnly { path: path.into() });
    }
    // What is erased, or moved within a page, is overwritten: its bytes would stay in the file otherwise.
    connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
    identify(&connection)?;
    use_wal(&connection)?;
    migrate(&mut connection, migrations)?;
    Ok(connection)
}

/// A connection that cannot write, beside a writable one that is open.
pub(crate) fn read_only(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    Ok(connection)
}

/// A connection to a database that no file holds.
pub(crate) fn in_memory(migrations: &[Migration]) -> Result<Connection, StoreError> {
    let mut connection = Connection::open_in_memory()?;
    configure(&connection)?;
    migrate(&mut connection, migrations)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Calls of the C interface rather than pragmas: nothing is parsed at start-up.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A plan that depended on what is bound would be made anew for each.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A statement that changes or sorts much would else note it in a file of the system's temporary
    // directory, which keeps what it held, and which a process that has bound itself cannot make.
    connection.execute_batch("PRAGMA temp_store = MEMORY")
}

/// Creates the file for its owner only, or takes everybody else's permissions away. SQLite gives the log and
/// the shared-memory file the mode of the database.
fn make_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => sync_directory(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            restrict(path)?;
            ["-wal", "-shm"].iter().try_for_each(|suffix| match restrict(&beside(path, suffix)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            })
        }
        Err(error) => Err(error),
    }
}

fn restrict(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Without this a power loss could take the new file's name, and with it everything hardened inside.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// How much of the disk a database takes, in bytes: its file without the pages that are free, and its log.
/// The header says that (SQLite's file format, 1.3), so nothing is opened; of a file that is none the whole
/// length counts.
///
/// # Errors
/// When the file cannot be read.
pub fn used(path: &Path) -> io::Result<u64> {
    let length = fs::metadata(path)?.len();
    let log = fs::metadata(beside(path, "-wal")).map_or(0, |about| about.len());
    let (file, mut page, mut pages) = (File::open(path)?, [0; 2], [0; 4]);
    if length < HEADER_BYTES {
        return Ok(length + log);
    }
    file.read_exact_at(&mut page, PAGE_SIZE_AT)?;
    file.read_exact_at(&mut pages, FREE_PAGES_AT)?;
    let page = match u16::from_be_bytes(page) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    let free = u64::from(u32::from_be_bytes(pages)) * page;
    Ok(length.saturating_sub(free) + log)
}

/// Refuses a file that some other program made.
fn identify(connection: &Connection) -> Result<(), StoreError> {
    let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if id == APPLICATION_ID {
        return Ok(());
    }
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    // Another process may be between creating the file and signing it: both are in one transaction.
    if id == 0 && objects == 0 {
        return Ok(());
    }
    let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if id == APPLICATION_ID {
        return Ok(());
    }
    let detail = format!("its application id is {id:#010x} instead of {APPLICATION_ID:#010x}");
    Err(StoreError::NotADatabase { path: PathBuf::new(), detail })
}

/// Turns the write-ahead log on. While another process is doing the same, SQLite answers "busy" without
/// waiting, so the waiting is done here.
fn use_wal(connection: &Connection) -> Result<(), StoreError> {
    let start = Instant::now();
    loop {
        let result = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match result.map_err(StoreError::from) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let detail = format!("its file system allows no write-ahead log, only `{mode}`");
                return Err(StoreError::NotADatabase { path: PathBuf::new(), detail });
            }
            Err(StoreError::Busy { .. }) if start.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}

fn migrate(connection: &mut Connection, migrations: &[Migration]) -> Result<(), StoreError> {
    let supported = supported(migrations);
    let found = version(connection)?;
    if found > supported {
        return Err(StoreError::TooNew { path: PathBuf::new(), found, supported });
    }
    for step in migrations.iter().filter(|step| step.version > found) {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Asked again under the lock: another process may have migrated meanwhile.
        if version(&tx)? < step.version {
            tx.execute_batch(step.sql)?;
            tx.pragma_update(None, "application_id", APPLICATION_ID)?;
            tx.pragma_update(None, "user_version", step.version)?;
            tx.commit()?;
        }
    }
    Ok(())
}

/// The newest version that a program with these steps knows.
pub(crate) fn supported(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |last| last.version)
}

pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

//! What a closure sees of the database: one open transaction.

use rusqlite::{CachedStatement, Connection, Params, Row};

/// The transaction that a closure of [`Store::write`](crate::Store::write) or
/// [`Store::read`](crate::Store::read) runs in.
///
/// Statements are prepared once per connection and kept. The errors are `rusqlite`'s, so that its
/// `optional()` works; `?` turns them into a [`StoreError`](crate::StoreError). Beginning, committing or
/// rolling back is the store's work: a closure that does it by hand fails its whole group.
#[derive(Debug)]
pub struct Tx<'a> {
    connection: &'a Connection,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self { connection }
    }

    /// Runs one statement and says how many rows it changed.
    ///
    /// # Errors
    /// SQLite's, among them violated constraints.
    pub fn execute(&mut self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(params)
    }

    /// Runs several statements without parameters, separated by semicolons.
    ///
    /// # Errors
    /// That of the first statement which fails.
    pub fn execute_batch(&mut self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }

    /// The first row of a query, through `read`.
    ///
    /// # Errors
    /// `QueryReturnedNoRows` when there is none (see `OptionalExtension`), or SQLite's.
    pub fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.connection.prepare_cached(sql)?.query_row(params, read)
    }

    /// Every row of a query, through `read`. Bound it with `LIMIT`: all rows are held at once.
    ///
    /// # Errors
    /// SQLite's, or that of `read`.
    pub fn query_all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.connection.prepare_cached(sql)?.query_map(params, read)?.collect()
    }

    /// A statement to run many times or to walk row by row; it comes from the connection's cache.
    ///
    /// # Errors
    /// When the SQL is wrong.
    pub fn prepare_cached(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.connection.prepare_cached(sql)
    }

    /// The row id that the last insert of this connection made.
    #[must_use]
    pub fn last_insert_rowid(&self) -> i64 {
        self.connection.last_insert_rowid()
    }
}

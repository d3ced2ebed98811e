//! SQLite plumbing: opening, migrating, writing and reading one database file that several processes share.
//!
//! A [`Store`] is a cheap handle. One thread writes: it takes what is waiting, runs every closure in a
//! savepoint of one transaction, commits once, and only then hands the values over (group commit). So a value
//! in hand is a row on disk, in the [`Grade`] that was asked for. Reads run on connections of their own,
//! which are opened when the first read asks for one, because a one-shot command often reads nothing.
//!
//! What this crate refuses to be: a query builder, an object mapper, a place for SQL of its own. It knows no
//! table. It is also the only crate that depends on SQLite; what others need of `rusqlite` is re-exported
//! here.
//!
//! Read `writer` first, then `open`.

mod error;
mod open;
mod reader;
mod store;
mod torn;
mod turn;
mod tx;
mod writer;

pub use error::StoreError;
pub use open::{APPLICATION_ID, Migration, used};
pub use rusqlite::{
    CachedStatement, OptionalExtension, Params, Result as SqlResult, Row, ToSql, params, params_from_iter,
    types,
};
pub use store::{Database, Store, in_memory};
pub use torn::{Kind, RowAddress, Torn};
pub use tx::Tx;
pub use writer::Grade;

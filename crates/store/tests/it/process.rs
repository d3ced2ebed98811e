//! Children: this very test binary, run again for one test that does a child's work.

use std::{
    io::{BufRead, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

/// The variable that names the database to a child, and is absent in an ordinary run.
const DATABASE: &str = "BAILEY_STORE_TEST_DATABASE";
const FIRST: &str = "BAILEY_STORE_TEST_FIRST";

/// What a child was asked to work on: the database and its first number. `None` in an ordinary run.
pub(crate) fn order() -> Option<(std::path::PathBuf, i64)> {
    Some((std::env::var_os(DATABASE)?.into(), std::env::var(FIRST).ok()?.parse().ok()?))
}

/// Starts the ignored test `name` in a process of its own.
pub(crate) fn start(name: &str, database: &Path, first: i64) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DATABASE, database)
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

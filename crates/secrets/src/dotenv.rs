//! Bailey's own `.env`: one `NAME=value` a line.
//!
//! Blank lines and lines that begin with `#` are passed over; `export ` before a name is allowed. A value is
//! bare (up to ` #`, trimmed), in single quotes (as it stands) or in double quotes (with `\n`, `\r`, `\t`,
//! `\"`, `\\` and `\$`). Nothing is expanded, and a value ends on its line.

use crate::Secret;
use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use thiserror::Error;
use zeroize::Zeroizing;

/// The largest file that is read, in bytes.
pub const DOTENV_BYTES_MAX: usize = 64 << 10;

/// What is wrong with a line. It never holds a part of a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct DotenvError {
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong, and how it should be.
    pub what: String,
}

/// Why a file of secrets was not read.
#[derive(Debug, Error)]
pub enum EnvFileError {
    /// It could not be opened or read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// Somebody else may read or write it.
    #[error(
        "`{0}` holds secrets, but its mode is {mode:03o}, so that other users may reach it; run: chmod 600 '{0}'",
        path.display()
    )]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line is wrong.
    #[error("`{}`, {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which, and why.
        source: DotenvError,
    },
}

/// Reads a file of secrets that only its owner can reach; `None` when there is no such file. The mode is
/// asked of the opened file, so that it is the mode of what is read.
///
/// # Errors
/// See [`EnvFileError`].
pub fn read_env_file(path: &Path) -> Result<Option<Vec<(String, Secret)>>, EnvFileError> {
    let failed = |source| EnvFileError::Read { path: path.into(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(EnvFileError::Mode { path: path.into(), mode });
    }
    // One byte more than allowed tells that the file is too large; the room is taken at once, because a
    // growing string leaves unzeroised copies behind.
    let mut text = Zeroizing::new(String::with_capacity(DOTENV_BYTES_MAX + 1));
    file.take(DOTENV_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(failed)?;
    let pairs = parse_dotenv(&text).map_err(|source| EnvFileError::Line { path: path.into(), source })?;
    Ok(Some(pairs))
}

/// Parses the text of a `.env` file, at most [`DOTENV_BYTES_MAX`] bytes.
///
/// # Errors
/// The first line that is wrong.
pub fn parse_dotenv(text: &str) -> Result<Vec<(String, Secret)>, DotenvError> {
    let wrong = |line, what: &str| DotenvError { line, what: what.into() };
    if text.len() > DOTENV_BYTES_MAX {
        return Err(wrong(1, "the file is larger than 64 KiB; keep only secrets in it"));
    }
    let mut pairs = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = pair(line).map_err(|what| wrong(number, what))?;
        if !seen.insert(name) {
            return Err(DotenvError { line: number, what: format!("`{name}` is set twice; remove one") });
        }
        pairs.push((name.to_owned(), value));
    }
    Ok(pairs)
}

/// The text of a `.env` file in which `name` has this value: its line is replaced, or one is added at the
/// end. Everything else, comments too, stays as it is.
///
/// # Errors
/// When the text has a mistake, or the name or value cannot stand in it.
pub fn set(text: &str, name: &str, secret: &Secret) -> Result<Zeroizing<String>, DotenvError> {
    let line = Zeroizing::new(format!("{name}={}", quote(secret.expose()).as_str()));
    let lines = text.lines().count();
    let wrong = |what: &str| DotenvError { line: lines + 1, what: what.into() };
    let (read, value) = pair(&line).map_err(wrong)?;
    if read != name || value.expose() != secret.expose() || line.contains(['\n', '\r']) {
        return Err(wrong("the value cannot be written down on one line"));
    }
    change(text, name, Some(&line))
}

/// The text of a `.env` file without the line of `name`.
///
/// # Errors
/// When the text has a mistake.
pub fn unset(text: &str, name: &str) -> Result<Zeroizing<String>, DotenvError> {
    change(text, name, None)
}

fn change(text: &str, name: &str, line: Option<&str>) -> Result<Zeroizing<String>, DotenvError> {
    parse_dotenv(text)?;
    // The room is taken at once, because a growing string leaves unzeroised copies behind.
    let mut changed = Zeroizing::new(String::with_capacity(text.len() + line.map_or(0, str::len) + 2));
    let mut new = line;
    for old in text.lines() {
        let is_it =
            !old.trim_start().starts_with('#') && pair(old.trim()).is_ok_and(|(known, _)| known == name);
        match (is_it, new.take()) {
            (true, Some(new)) => changed.push_str(new),
            (true, None) => continue,
            (false, kept) => {
                new = kept;
                changed.push_str(old);
            }
        }
        changed.push('\n');
    }
    if let Some(new) = new {
        changed.push_str(new);
        changed.push('\n');
    }
    parse_dotenv(&changed)?;
    Ok(changed)
}

/// A value as a line of the file can hold it.
fn quote(value: &str) -> Zeroizing<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:+=@%,".contains(c);
    let mut quoted = Zeroizing::new(String::with_capacity(2 * value.len() + 2));
    if !value.is_empty() && value.chars().all(plain) {
        quoted.push_str(value);
        return quoted;
    }
    quoted.push('"');
    for c in value.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '"' | '\\' | '$' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn pair(line: &str) -> Result<(&str, Secret), &'static str> {
    let exported = line.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t']));
    let (name, value) = exported.unwrap_or(line).split_once('=').ok_or("expected `NAME=value`")?;
    let name = name.trim();
    let head = |c: char| c.is_ascii_alphabetic() || c == '_';
    if !name.starts_with(head) || !name.chars().all(|c| head(c) || c.is_ascii_digit()) {
        return Err("a name has only letters, digits and `_`, and does not begin with a digit");
    }
    if value.contains('\0') {
        return Err("a value cannot hold a NUL character");
    }
    Ok((name, Secret::new(unquote(value.trim_start())?)))
}

fn unquote(value: &str) -> Result<String, &'static str> {
    if let Some(rest) = value.strip_prefix('\'') {
        let (inner, after) = rest.split_once('\'').ok_or("the single quote is not closed on its line")?;
        return only_comment(after).map(|()| inner.to_owned());
    }
    if let Some(rest) = value.strip_prefix('"') {
        return double_quoted(rest);
    }
    if value.starts_with('#') {
        return Ok(String::new());
    }
    let comment = value.find(" #").into_iter().chain(value.find("\t#")).min();
    Ok(value.get(..comment.unwrap_or(value.len())).unwrap_or(value).trim_end().to_owned())
}

fn double_quoted(rest: &str) -> Result<String, &'static str> {
    let mut value = String::with_capacity(rest.len());
    let mut chars = rest.chars();
    loop {
        match chars.next().ok_or("the double quote is not closed on its line")? {
            '"' => return only_comment(chars.as_str()).map(|()| value),
            '\\' => value.push(match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(c @ ('"' | '\\' | '$')) => c,
                _ => return Err(r#"in double quotes a backslash stands only before n, r, t, ", \ or $"#),
            }),
            c => value.push(c),
        }
    }
}

fn only_comment(after: &str) -> Result<(), &'static str> {
    let after = after.trim_start();
    if after.is_empty() || after.starts_with('#') {
        Ok(())
    } else {
        Err("there is text after the closing quote")
    }
}

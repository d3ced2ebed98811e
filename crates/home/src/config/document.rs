//! One TOML file that a human wrote, with the place of each of its values. So an error message can point at a
//! mistake, and Bailey can trace a value back.

use super::{ConfigError, Origin};
use bailey_policy::file::Mistake;
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};
use toml::de::{DeTable, DeValue};

/// The largest size of a configuration file, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// A file's text, and the place of each key in it.
#[derive(Debug)]
pub struct Document {
    path: PathBuf,
    text: String,
    /// The first byte of each key, by its dotted name. Tables are keys too.
    places: BTreeMap<String, usize>,
    /// The first byte of each value of a list, by the list's dotted name. This includes tables of `[[…]]`.
    members: BTreeMap<String, Vec<usize>>,
}

impl Document {
    /// Reads a file. Returns `None` when the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read, is too long, or is not TOML.
    pub fn open(path: &Path) -> Result<Option<Self>, ConfigError> {
        let read = |source| ConfigError::Read { path: path.into(), source };
        match fs::metadata(path) {
            Ok(meta) if meta.len() > CONFIG_BYTES_MAX => {
                return Err(ConfigError::TooLong { path: path.into(), bytes: meta.len() });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            _ => {}
        }
        let text = fs::read_to_string(path).map_err(read)?;
        Ok(Some(Self::parse(path, text)?))
    }

    /// Parses a text. Error messages call it `path`.
    ///
    /// # Errors
    /// When the text is not TOML.
    pub fn parse(path: &Path, text: String) -> Result<Self, ConfigError> {
        let (mut places, mut members) = (BTreeMap::new(), BTreeMap::new());
        match DeTable::parse(&text) {
            Ok(table) => gather(table.get_ref(), "", &mut places, &mut members),
            Err(error) => return Err(mistake(path, &text, &error).into()),
        }
        Ok(Self { path: path.into(), text, places, members })
    }

    /// The file that the text comes from.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its values as `T`.
    ///
    /// # Errors
    /// At the first key that `T` does not have, or the first value that does not fit.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        toml::from_str(&self.text).map_err(|error| mistake(&self.path, &self.text, &error).into())
    }

    /// A mistake at a key.
    pub fn mistake(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.mistake_at(self.places.get(key).copied().unwrap_or_default(), message)
    }

    /// A mistake in one member of a list, counted from 0.
    pub(super) fn mistake_in(&self, list: &str, place: usize, message: impl Into<String>) -> ConfigError {
        match self.members.get(list).and_then(|members| members.get(place)) {
            Some(byte) => self.mistake_at(*byte, message),
            None => self.mistake(list, message),
        }
    }

    /// The first table below `above` that lacks this key.
    pub(super) fn table_without(&self, above: &str, key: &str) -> Option<&str> {
        let is_direct = |name: &str| {
            let rest = name.strip_prefix(above).and_then(|rest| rest.strip_prefix('.'));
            rest.is_some_and(|rest| !rest.contains('.'))
        };
        let tables = self.places.keys().map(String::as_str).filter(|name| is_direct(name));
        tables.into_iter().find(|table| !self.places.contains_key(&format!("{table}.{key}")))
    }

    /// A mistake at a byte of the text.
    pub(crate) fn mistake_at(&self, byte: usize, message: impl Into<String>) -> ConfigError {
        Mistake::at(&self.path.display().to_string(), &self.text, byte, message).into()
    }

    /// Every key that the file sets, tables too, each with its place.
    pub fn keys(&self) -> impl Iterator<Item = (&str, Origin)> {
        self.places.iter().map(|(key, byte)| {
            let before = self.text.get(..*byte).unwrap_or(&self.text);
            let line = before.matches('\n').count() + 1;
            (key.as_str(), Origin::File { path: self.path.clone(), line })
        })
    }

    /// The names that the file sets at the top level and, in tables, one level below. Messages to the user
    /// show them.
    pub fn names(&self) -> Vec<&str> {
        let keys = || self.places.keys().map(String::as_str);
        let is_table =
            |key: &str| keys().any(|other| other.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')));
        keys().filter(|key| !is_table(key)).collect()
    }
}

fn mistake(path: &Path, text: &str, error: &toml::de::Error) -> Mistake {
    let byte = error.span().map_or(0, |span| span.start);
    // The parser gives several remarks about one mistake, each on a line.
    let message = error.message().trim().replace('\n', "; ");
    let message =
        header_twice(text, byte).filter(|_| message == "duplicate key").unwrap_or(in_words(&message));
    Mistake::at(&path.display().to_string(), text, byte, message)
}

/// Advice about a table header at this byte that occurs earlier in the text, too. This happens when a user
/// appends an example from the documentation to a file that `bailey init` wrote.
fn header_twice(text: &str, byte: usize) -> Option<String> {
    let header = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    let line = text.get(..byte)?.matches('\n').count();
    let here = header(text.lines().nth(line)?);
    let first = text.lines().take(line).position(|line| header(line) == here)?;
    here.starts_with('[')
        .then(|| format!("`{here}` is in line {} already: what is beneath it here belongs there", first + 1))
}

/// A message in which plain words replace the parser's own names of number types.
fn in_words(message: &str) -> String {
    let Some((before, kind)) = message.rsplit_once("expected ") else { return message.to_owned() };
    let most = match kind {
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        "u64" | "usize" => i64::MAX.unsigned_abs(),
        _ => return message.to_owned(),
    };
    format!("{before}expected a whole number from 0 to {most}")
}

fn gather(
    table: &DeTable<'_>,
    above: &str,
    places: &mut BTreeMap<String, usize>,
    members: &mut BTreeMap<String, Vec<usize>>,
) {
    for (name, value) in table.iter() {
        let key =
            if above.is_empty() { bare(name.get_ref()) } else { format!("{above}.{}", bare(name.get_ref())) };
        match value.get_ref() {
            DeValue::Table(inner) => gather(inner, &key, places, members),
            DeValue::Array(list) => {
                members.insert(key.clone(), list.iter().map(|value| value.span().start).collect());
            }
            _ => {}
        }
        places.insert(key, name.span().start);
    }
}

/// A key as TOML spells it: in quotes where it is not bare.
pub(super) fn bare(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(plain) { name.into() } else { format!("{name:?}") }
}

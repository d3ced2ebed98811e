//! The source of each value of the configuration.

use super::{Config, Document, document::bare};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

/// The source of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Bailey's own default.
    Default,
    /// A file, at this line.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Variable(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// The source of each value that is not Bailey's own default, by its dotted key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins {
    values: BTreeMap<String, Origin>,
    /// The home that the values hold for. `None` for a configuration that is not in force anywhere.
    home: Option<PathBuf>,
}

impl Origins {
    /// Records this file as the source of each value that it sets.
    pub(super) fn note_all(&mut self, document: &Document) {
        self.values.extend(document.keys().map(|(key, origin)| (key.to_owned(), origin)));
    }

    /// Records the source of this value.
    pub(super) fn note(&mut self, key: &str, origin: Origin) {
        self.values.insert(key.into(), origin);
    }

    /// Records that the values hold for this home.
    pub(super) fn of_home(&mut self, home: &Path) {
        self.home = Some(home.to_path_buf());
    }

    /// The source of a value.
    pub(crate) fn of(&self, key: &str) -> &Origin {
        self.values.get(key).unwrap_or(&Origin::Default)
    }
}

impl Config {
    /// The home that the configuration holds for.
    pub fn home(&self) -> Option<&Path> {
        self.origins.home.as_deref()
    }

    /// Every value in force by its dotted key, in order. A value that is not set is null.
    pub fn values(&self) -> Vec<(String, Value)> {
        let mut values = Vec::new();
        // The shape of a file is strings, numbers and tables, which always serialise.
        flatten("", serde_json::to_value(self.as_file()).unwrap_or_default(), &mut values);
        values
    }
}

fn flatten(above: &str, value: Value, into: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let key = if above.is_empty() { bare(&name) } else { format!("{above}.{}", bare(&name)) };
                flatten(&key, value, into);
            }
        }
        value => into.push((above.into(), value)),
    }
}

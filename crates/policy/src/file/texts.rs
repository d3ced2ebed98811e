//! A folder's rule files as texts, before they are read: a draft can be laid over them, and what they would
//! come to is known before anything is written.

use super::{FILES_MAX, Format, Parsed, RuleFileError, Warning, parse, read_all, read_file};
use bailey_protocol::Digest;
use std::{
    collections::BTreeMap,
    fs::File,
    path::Path,
    string::{String, ToString},
    vec::Vec,
};

/// The texts of rule files, by the names of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    files: BTreeMap<String, Text>,
    ignored: Vec<String>,
}

/// One file's text, and what mistakes in it are told by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Text {
    label: String,
    text: String,
}

impl Texts {
    /// Reads all `.toml`, `.yaml` and `.yml` files of a directory. A directory that does not exist has none.
    ///
    /// # Errors
    /// When a file cannot be read, or there are too many.
    pub fn of_dir(dir: &Path) -> Result<Self, RuleFileError> {
        Self::of_checked_dir(dir, |_, _| Ok(()))
    }

    /// The same of a directory whose files pass a check once they are open.
    pub(super) fn of_checked_dir(
        dir: &Path,
        check: impl Fn(&Path, &File) -> Result<(), RuleFileError>,
    ) -> Result<Self, RuleFileError> {
        let unreadable = |source| RuleFileError::Read { file: dir.display().to_string(), source };
        let entries = match std::fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable(error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(unreadable)?.path());
        }
        paths.sort();
        let mut texts = Self::default();
        for path in paths {
            if Format::of(&path.to_string_lossy()).is_none() {
                texts.ignored.push(path.display().to_string());
            } else if texts.files.len() == FILES_MAX {
                return Err(RuleFileError::TooManyFiles(FILES_MAX + 1));
            } else {
                texts.lay_checked(&path, &check)?;
            }
        }
        Ok(texts)
    }

    /// Lays a file over them: it takes the place of one of its name, or is one more.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn lay(&mut self, path: &Path) -> Result<(), RuleFileError> {
        self.lay_checked(path, |_, _| Ok(()))
    }

    fn lay_checked(
        &mut self,
        path: &Path,
        check: impl Fn(&Path, &File) -> Result<(), RuleFileError>,
    ) -> Result<(), RuleFileError> {
        let label = path.display().to_string();
        let name = path.file_name().map_or_else(|| label.clone(), |name| name.to_string_lossy().into_owned());
        let text = read_file(path, check)?;
        self.files.insert(name, Text { label, text });
        Ok(())
    }

    /// Puts a text in the place of a file's; `label` is what mistakes in it are told by.
    pub fn put(&mut self, name: &str, label: &str, text: String) {
        self.files.insert(name.to_string(), Text { label: label.to_string(), text });
    }

    /// Takes a file away; whether it was there.
    pub fn take(&mut self, name: &str) -> bool {
        self.files.remove(name).is_some()
    }

    /// A file's text.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(|file| file.text.as_str())
    }

    /// The names of the files, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Names the texts and their names: any change of any of them changes it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let parts = self.files.iter().flat_map(|(name, file)| [name.as_bytes(), file.text.as_bytes()]);
        Digest::of_parts(&parts.collect::<Vec<_>>())
    }

    /// The rules that they hold.
    ///
    /// # Errors
    /// At the first mistake.
    pub fn parse(&self) -> Result<Parsed, RuleFileError> {
        self.parse_of(false)
    }

    pub(super) fn parse_of(&self, is_organisations: bool) -> Result<Parsed, RuleFileError> {
        let files: Vec<_> = self.files.values().map(|file| (&file.label, &file.text)).collect();
        let mut parsed = read_all(&files, is_organisations)?;
        parsed.warnings.extend(self.ignored.iter().map(|path| Warning::ignored(path)));
        Ok(parsed)
    }

    /// What is wrong with them: the first mistake of each file; where there is none, the first of all
    /// together.
    #[must_use]
    pub fn mistakes(&self) -> Vec<RuleFileError> {
        let alone = |(name, file): (&String, &Text)| match Format::of(name) {
            Some(format) => parse(&file.label, &file.text, format).err(),
            None => Some(RuleFileError::Format(file.label.clone())),
        };
        let found: Vec<_> = self.files.iter().filter_map(alone).collect();
        if found.is_empty() { self.parse().err().into_iter().collect() } else { found }
    }
}

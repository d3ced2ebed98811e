//! Extensions of the policy, as the user declares them.

use super::{ConfigError, document::Document};
use bailey_policy::Late;
use bailey_protocol::{Kind, Profile, Tier};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The key of their tables.
const KEY: &str = "policy.extension";
/// How long an extension may take to answer, in milliseconds: the default and the maximum.
const WITHIN_MS: u64 = 100;
const WITHIN_MS_MAX: u64 = 10_000;
/// The most extensions that there may be, and the most characters of a name.
const EXTENSIONS_MAX: usize = 16;
const NAME_CHARS_MAX: usize = 40;

/// The shape of `[policy]`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilePolicy {
    pub(super) extension: Vec<Declared>,
}

/// One extension, as the file declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// The name that reasons show.
    pub name: String,
    /// The program and its arguments. The program sees the files that an absolute path names here.
    pub command: Vec<String>,
    /// The kinds of action that it judges.
    pub kinds: Vec<Kind>,
    /// The verdict that counts when it does not answer in time.
    #[serde(default)]
    pub late: Late,
    /// Further files that it reads, such as modules.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// The system calls that it may make.
    #[serde(default)]
    pub profile: Calls,
    /// The tier of trust in its code, which decides how isolated it runs.
    #[serde(default = "trusted")]
    pub tier: Tier,
    /// How long it may take to answer, in milliseconds.
    #[serde(default = "within")]
    pub within_ms: u64,
}

/// The lists of system calls that an extension may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calls {
    /// The calls for computing on the given input.
    #[default]
    Strict,
    /// Also the calls that an interpreter with an event loop needs.
    Standard,
}

impl From<Calls> for Profile {
    fn from(calls: Calls) -> Self {
        match calls {
            Calls::Strict => Self::Strict,
            Calls::Standard => Self::Standard,
        }
    }
}

/// The default tier is trusted, because the owner named the extension.
fn trusted() -> Tier {
    Tier::Trusted
}

fn within() -> u64 {
    WITHIN_MS
}

/// Checks the declared extensions.
pub(super) fn check(document: &Document, declared: &[Declared]) -> Result<(), ConfigError> {
    if declared.len() > EXTENSIONS_MAX {
        let message = format!("there are {} extensions, and {EXTENSIONS_MAX} at most", declared.len());
        return Err(document.mistake(KEY, message));
    }
    for (place, one) in declared.iter().enumerate() {
        let mistake = |message: String| Err(document.mistake_in(KEY, place, message));
        let name = &one.name;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
            return mistake(format!(
                "`{name}` cannot name an extension: a name has 1 to {NAME_CHARS_MAX} characters of a-z, 0-9 \
                 and `-`"
            ));
        }
        if declared.iter().take(place).any(|other| other.name == *name) {
            return mistake(format!(
                "there are two extensions `{name}`: reasons and the journal tell them apart by name"
            ));
        }
        if one.command.first().is_none_or(String::is_empty) {
            return mistake(format!("the extension `{name}` has no program in its `command`"));
        }
        if one.kinds.is_empty() {
            return mistake(format!(
                "the extension `{name}` judges nothing: name the `kinds` of action, such as \"exec\""
            ));
        }
        if let Some(file) = one.files.iter().find(|file| !file.is_absolute()) {
            return mistake(format!("`{}`, of the extension `{name}`, is no absolute path", file.display()));
        }
        let home = document.path().parent().filter(|home| home.is_absolute());
        if let Some(file) = one.paths().find(|file| home.is_some_and(|home| file.starts_with(home))) {
            return mistake(format!(
                "`{}`, of the extension `{name}`, lies in Bailey's own home, which nothing inside the walls may see: keep it \
                 elsewhere",
                file.display()
            ));
        }
        if !(1..=WITHIN_MS_MAX).contains(&one.within_ms) {
            return mistake(format!("`within_ms` of the extension `{name}` must be 1 to {WITHIN_MS_MAX}"));
        }
    }
    Ok(())
}

impl Declared {
    /// The extension's own files that the declaration names.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let words = self.command.iter().map(PathBuf::from).filter(|word| word.is_absolute());
        words.chain(self.files.iter().cloned())
    }
}

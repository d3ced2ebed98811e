//! Rule files: TOML and YAML, one model in two spellings.
//!
//! A rule that was not understood is a hole in the wall, so nothing is skipped: the first mistake stops
//! start-up and says where it is. What is understood but can never do anything is a warning.

mod example;
mod groups;
mod mistake;
mod model;
mod organisation;
mod terms;
mod texts;
mod warning;

pub use example::{Example, Tried, word};
pub use mistake::{Mistake, RuleFileError};
pub use organisation::{ORGANISATION, load_organisation};
pub use terms::{Terms, request, usual_role};
pub use texts::Texts;
pub use warning::Warning;

use crate::{
    Policy,
    rule::{Rule, Tier},
};
use mistake::TextPosition;
use model::Placed;
use std::{
    collections::BTreeMap,
    format,
    fs::File,
    path::Path,
    string::{String, ToString},
    vec::Vec,
};

/// Largest rule file in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Most rule files in a directory.
pub const FILES_MAX: usize = 100;
/// Most rules in all files together.
pub const RULES_MAX: usize = 10_000;

/// How a rule file is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.1: `[[rule]]` tables.
    Toml,
    /// YAML 1.2: a list under `rule`.
    Yaml,
}

impl Format {
    /// The format that a file's name ends with: `.toml`, `.yaml` or `.yml`.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// The rules of one or more files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The rules, in the order of files and lines.
    pub rules: Vec<Rule>,
    /// What is understood but can never do anything.
    pub warnings: Vec<Warning>,
    /// What the rules are meant to say.
    pub examples: Vec<Example>,
    /// Whether the organisation wants a human to answer each question by itself, with a reason.
    pub compliance: bool,
}

impl Parsed {
    /// Adds the rules of other files.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        self.warnings.extend(other.warnings);
        self.examples.extend(other.examples);
        self.compliance |= other.compliance;
        self
    }

    /// Checks that the policy that was made of these rules, and others, says what the examples expect.
    ///
    /// # Errors
    /// At the first example that fails.
    pub fn check(&self, policy: &Policy) -> Result<(), Mistake> {
        self.broken(policy).next().map_or(Ok(()), Err)
    }

    /// Every example that this policy does not keep.
    pub fn broken(&self, policy: &Policy) -> impl Iterator<Item = Mistake> {
        self.examples.iter().filter_map(|example| example.attempt(policy).mistake)
    }
}

/// Reads the text of one rule file; `name` is what errors call it.
///
/// # Errors
/// At the first mistake, with its line and column.
pub fn parse(name: &str, text: &str, format: Format) -> Result<Parsed, RuleFileError> {
    let mut reader = RuleFileReader::default();
    reader.read(name, text, format)?;
    Ok(reader.parsed)
}

/// Reads the texts of several rule files, each a name and its text. Rules of the same name are a mistake.
///
/// # Errors
/// At the first mistake, or when a name does not end in `.toml`, `.yaml` or `.yml`.
pub fn load<N: AsRef<str>, T: AsRef<str>>(files: &[(N, T)]) -> Result<Parsed, RuleFileError> {
    read_all(files, false)
}

fn read_all<N: AsRef<str>, T: AsRef<str>>(
    files: &[(N, T)],
    is_organisations: bool,
) -> Result<Parsed, RuleFileError> {
    if files.len() > FILES_MAX {
        return Err(RuleFileError::TooManyFiles(files.len()));
    }
    let mut reader = RuleFileReader { is_organisations, ..RuleFileReader::default() };
    for (name, text) in files {
        let name = name.as_ref();
        let format = Format::of(name).ok_or_else(|| RuleFileError::Format(name.to_string()))?;
        reader.read(name, text.as_ref(), format)?;
    }
    Ok(reader.parsed)
}

/// Reads all `.toml`, `.yaml` and `.yml` files of a directory, by name. Anything else in it is a warning; a
/// directory that does not exist has no rules.
///
/// # Errors
/// At the first mistake, or when a file cannot be read.
pub fn load_dir(dir: &Path) -> Result<Parsed, RuleFileError> {
    Texts::of_dir(dir)?.parse()
}

/// Reads a file up to the limit, so that a wrong one (a device, a log) cannot fill the memory.
fn read_file(
    path: &Path,
    check: impl Fn(&Path, &File) -> Result<(), RuleFileError>,
) -> Result<String, RuleFileError> {
    use std::io::Read as _;
    let unreadable = |source| RuleFileError::Read { file: path.display().to_string(), source };
    let opened = File::open(path).map_err(unreadable)?;
    check(path, &opened)?;
    let mut text = String::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    opened.take(limit).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Reads rule files, one after the other.
#[derive(Default)]
struct RuleFileReader {
    parsed: Parsed,
    is_organisations: bool,
    names: BTreeMap<String, (String, TextPosition)>,
}

impl RuleFileReader {
    fn read(&mut self, file: &str, text: &str, format: Format) -> Result<(), RuleFileError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(RuleFileError::TooLarge(file.to_string()));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let read = match format {
            Format::Toml => model::toml(text),
            Format::Yaml => model::yaml(text),
        };
        let model::Read { compliance, rules } =
            read.map_err(|(at, message)| Mistake::new(file, text, at, message))?;
        if compliance && !self.is_organisations {
            let message = "`compliance` here is the organisation's: yours is `compliance = true` under `[approvals]` in config.toml";
            return Err(Mistake::new(file, text, TextPosition::of(text, 0), message.to_string()).into());
        }
        self.parsed.compliance |= compliance;
        for Placed { at, mut rule, examples } in rules {
            if self.parsed.rules.len() == RULES_MAX {
                return Err(Mistake::new(file, text, at, format!("more than {RULES_MAX} rules")).into());
            }
            if let Some((other, there)) = self.names.get(&rule.name) {
                let message = format!(
                    "a rule named `{}` is already at {other}:{}: give each rule a name of its own",
                    rule.name, there.line
                );
                return Err(Mistake::new(file, text, at, message).into());
            }
            if self.is_organisations {
                if rule.tier != Tier::User {
                    let message = "rules of the organisation have no `tier` of their own: leave it out";
                    return Err(Mistake::new(file, text, at, message.to_string()).into());
                }
                rule.tier = Tier::Organisation;
            }
            self.names.insert(rule.name.clone(), (file.to_string(), at));
            for (at, expected, written) in examples {
                let at = Mistake::new(file, text, at, String::new());
                self.parsed.examples.push(written.of(&rule, expected, at));
            }
            self.parsed.warnings.extend(warning::of(file, at, &rule));
            self.parsed.rules.push(rule);
        }
        Ok(())
    }
}

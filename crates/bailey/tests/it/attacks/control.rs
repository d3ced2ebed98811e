//! An attack shows something only where its control succeeds: the same attempt without the wall. Where it
//! does not, the machine itself must lack what the attempt needs, and that must be written down; else the
//! test fails.

use super::actor::Who;
use std::{fmt::Display, fs, path::Path};

/// Why an attempt fails on this machine outside of the walls, too.
pub(crate) enum Lack {
    /// This kernel or machine has no such thing, and answers with one of these.
    Answer(&'static [&'static str]),
    /// The machine says these words to each control.
    Words(&'static str),
    /// A user may not; root may, and the same test as root tries it.
    Root,
    /// A setting forbids it: its file, and the largest value that does not.
    Setting(&'static str, i64),
    /// A program that is not installed. The full run installs each.
    Program(&'static str),
}

/// Which attempts may go without a control, for what lack.
pub(crate) type Lacks = [(&'static [&'static str], Lack)];

/// Says that an attempt was held, as its control succeeded in this way; or, after these answers of all its
/// controls, that it could not be tried.
///
/// # Panics
/// When the control failed and nothing that is missing here explains it.
#[track_caller]
pub(crate) fn judge<H: Display>(who: Who, name: &str, control: Result<H, &[&str]>, lacks: &Lacks) {
    let answers = match control {
        Ok(how) => return println!("held: {name} (the control: {how})"),
        Err(answers) => answers,
    };
    let mut known = lacks.iter().filter(|(names, _)| names.contains(&name)).map(|(_, lack)| lack);
    let why = known.find_map(|lack| lack.explains(who, answers));
    let why = why.unwrap_or_else(|| panic!("the control of `{name}` as {who:?} failed: {answers:?}"));
    println!("could not be tried: {name}: {why}");
}

impl Lack {
    /// What is missing, where this is what lets all controls end in these answers.
    fn explains(&self, who: Who, answers: &[&str]) -> Option<String> {
        match *self {
            Self::Answer(known) => {
                let all = !answers.is_empty() && answers.iter().all(|answer| known.contains(answer));
                all.then(|| format!("this machine has no such thing: {}", answers.join(", ")))
            }
            Self::Words(words) => {
                let all = !answers.is_empty() && answers.iter().all(|answer| answer.contains(words));
                all.then(|| format!("this machine says: {words}"))
            }
            Self::Root => (who == Who::User).then(|| "only root may, and tries it".into()),
            Self::Setting(file, most) => {
                let value = fs::read_to_string(file).ok()?.trim().parse::<i64>().ok()?;
                (value > most).then(|| format!("`{file}` is {value}"))
            }
            Self::Program(name) => {
                let folders = ["/usr/local/bin", "/usr/bin", "/bin"].map(Path::new);
                let is_here = folders.iter().any(|folder| folder.join(name).exists());
                let is_full = std::env::var_os("BAILEY_TEST_ALL").is_some_and(|value| value == "1");
                (!is_here && !is_full).then(|| format!("`{name}` is not installed"))
            }
        }
    }
}

//! The version of `SOUL.md` that the owner accepted. Its digest lies in `trust/` of the home, where no agent
//! can write.

use crate::home::{Home, make_private, write_private};
use anyhow::{Context as _, Result, bail};
use bailey_kernel::Paper;
use bailey_protocol::Digest;
use serde::Serialize;
use std::{fs, io, path::PathBuf};

/// The `SOUL.md` that `bailey init` writes.
pub const DEFAULT: &str =
    "Be calm, exact and brief. Say what you know, what you guess and what you do not know.\n";
/// The largest size of a record, in bytes: a digest and the end of its line.
const RECORD_BYTES_MAX: usize = 128;

/// With the value `1`, a control accepts any `SOUL.md`.
#[cfg(feature = "controls")]
const ANY_SOUL: &str = "BAILEY_CONTROL_ANY_SOUL";

/// The state of `SOUL.md` compared with the accepted version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SoulState {
    /// There is no `SOUL.md`, and the owner accepted no version.
    None,
    /// The file is the accepted version.
    Accepted,
    /// The file exists, but the owner never accepted a version.
    Unknown,
    /// The file differs from the accepted version.
    Changed,
    /// The owner accepted a version, but the file is gone.
    Gone,
}

/// The text of `SOUL.md`. `None` if the file does not exist.
///
/// # Errors
/// When another kind of file stands in its place, or it is too long or not UTF-8.
pub fn read(home: &Home) -> Result<Option<String>> {
    let path = home.paper(Paper::Soul);
    super::utf8(&path, bailey_sandbox::read_own(&path))
}

/// The accepted digest. `None` if the owner accepted no version.
///
/// # Errors
/// When the record cannot be read: a failed check must not count as a yes.
pub(super) fn accepted(home: &Home) -> Result<Option<String>> {
    let path = record(home);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    };
    if text.len() > RECORD_BYTES_MAX || Digest::parse(text.trim()).is_none() {
        bail!("`{}` is no record of what you accepted: remove it, then `bailey soul accept`", path.display());
    }
    Ok(Some(text.trim().to_owned()))
}

/// Compares a text with the accepted version.
pub fn standing(home: &Home, text: Option<&str>) -> Result<SoulState> {
    Ok(compared(text, accepted(home)?.as_deref()))
}

fn compared(text: Option<&str>, accepted: Option<&str>) -> SoulState {
    match (text.map(|text| Digest::of(text.as_bytes()).to_string()), accepted) {
        (None, None) => SoulState::None,
        (None, Some(_)) => SoulState::Gone,
        (Some(_), None) => SoulState::Unknown,
        (Some(digest), Some(accepted)) if digest == accepted => SoulState::Accepted,
        (Some(_), Some(_)) => SoulState::Changed,
    }
}

/// Checks that a session may begin with this text.
pub(super) fn check(name: &str, text: Option<&str>, accepted: Option<&str>) -> Result<()> {
    #[cfg(feature = "controls")]
    if std::env::var(ANY_SOUL).is_ok_and(|value| value == "1") {
        return Ok(());
    }
    let what = match compared(text, accepted) {
        SoulState::None | SoulState::Accepted => return Ok(()),
        SoulState::Unknown => "was never accepted by you",
        SoulState::Changed => "is not what you accepted",
        SoulState::Gone => "is gone since you accepted it",
    };
    bail!(
        "`{name}` {what}. Every session uses it, so no session begins. Look at it with `bailey soul show`; \
         if it is what you want, accept it with `bailey soul accept`"
    )
}

/// Accepts the present text of `SOUL.md`, or that there is no `SOUL.md`.
///
/// # Errors
/// When the record cannot be written.
pub fn accept(home: &Home, text: Option<&str>) -> Result<()> {
    let path = record(home);
    let Some(text) = text else {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove `{}`", path.display()))
            }
            _ => Ok(()),
        };
    };
    make_private(&home.trust())?;
    write_private(&path, format!("{}\n", Digest::of(text.as_bytes())).as_bytes())
}

fn record(home: &Home) -> PathBuf {
    let name = home.agent.as_ref().map_or_else(String::new, |agent| format!("{agent}."));
    home.trust().join(format!("{name}SOUL.md.digest"))
}

//! The law of this home: how a rule file is changed, so that it is changed whole or not at all.
//!
//! A change is an effect of its own: decided, recorded with both texts before it begins, and performed here
//! and nowhere else. One lock makes changes come one after the other. Whoever finds it free finds no change
//! under way; so a change without an outcome was cut off, and what lies in the folder says how far it came.

use crate::home::{Home, make_private};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Fact, Holder, JournalError, Mint, Permit, Query, Seal, SessionLock};
use bailey_kernel::{BoxFuture, Executor, Io, Output, ResolveError, Route};
use bailey_policy::file::{Format, Texts};
use bailey_protocol::{Action, Amendment, Effect, Outcome, Report, SessionId, Status, Timestamp};
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The most characters of a rule file's name.
const NAME_CHARS_MAX: usize = 100;
/// How long a change waits for another one.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often is looked whether that has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The session that changes of the rules belong to: one for all of them.
pub(crate) fn session() -> SessionId {
    SessionId::new(0, [1; 10])
}

/// The home's rule files, to be changed: performs what was permitted.
pub(crate) struct Law {
    seal: Seal,
    folder: PathBuf,
}

impl Law {
    pub(crate) fn new(seal: Seal, home: &Home) -> Self {
        Self { seal, folder: home.policy() }
    }

    fn perform(&self, permit: Permit) -> Outcome {
        let begin = Instant::now();
        let done = match permit.redeem(&self.seal).map(|redeemed| redeemed.effect.action) {
            Ok(Action::Amend(amendment)) => self.amend(&amendment),
            Ok(other) => Err(anyhow::anyhow!("`{}` is no change of the rules", other.kind().name())),
            Err(error) => Err(error.into()),
        };
        let status = match done {
            Ok(()) => Status::Done,
            Err(error) => Status::Failed { reason: format!("{error:#}") },
        };
        let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Outcome { status, enforced: None, duration_ms, report: Report::Nothing }
    }

    /// Writes beside the file, and puts that in its place once it is on disk.
    fn amend(&self, amendment: &Amendment) -> Result<()> {
        let name = name_in(&self.folder, Path::new(&amendment.path.0))?;
        if Texts::of_dir(&self.folder)?.digest() != amendment.files {
            bail!(
                "the rules changed under it: look at what they are now (`bailey policy show`), and try again"
            );
        }
        let folder = File::open(&self.folder)?;
        let beside = beside(&name);
        gone(unlinkat(&folder, &beside, AtFlags::empty()).map_err(Into::into))?;
        match &amendment.new {
            Some(text) => {
                let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut file = File::from(openat(&folder, &beside, new, Mode::RUSR | Mode::WUSR)?);
                file.write_all(&text.0)?;
                file.sync_all()?;
                renameat(&folder, &beside, &folder, &name)?;
            }
            None => unlinkat(&folder, &name, AtFlags::empty())?,
        }
        Ok(folder.sync_all()?)
    }
}

impl Executor for Law {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Law]
    }

    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move {
            if let Action::Amend(amendment) = &action {
                let named = name_in(&self.folder, Path::new(&amendment.path.0));
                named.map_err(|error| ResolveError(format!("{error:#}")))?;
            }
            Ok(action)
        })
    }

    fn perform<'a>(&'a self, permit: Permit, _: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move { Output::new(Self::perform(self, permit)) })
    }
}

/// The name of a rule file directly in the folder, which is a directory and no link, as the file is a file.
///
/// # Errors
/// When it is anything else: a change follows no link, and reaches nothing but rule files.
pub fn name_in(folder: &Path, path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if path.parent() != Some(folder)
        || path.file_name() != path.components().next_back().map(|part| part.as_os_str())
    {
        bail!(
            "`{}` does not lie in `{}`: only rule files there can be changed",
            path.display(),
            folder.display()
        );
    }
    let is_plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
    let is_name = Format::of(name).is_some() && !name.starts_with('.') && name.chars().all(is_plain);
    if !is_name || name.chars().count() > NAME_CHARS_MAX {
        bail!(
            "`{name}` is no name of a rule file: letters, digits, `-` and `_`, and `.toml`, `.yaml` or `.yml` at its end \
             (--name gives another one)"
        );
    }
    for (place, kind) in [(folder, "directory"), (path, "file")] {
        let about = match fs::symlink_metadata(place) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            about => about.with_context(|| format!("cannot look at `{}`", place.display()))?,
        };
        if (kind == "file" && !about.is_file()) || (kind == "directory" && !about.is_dir()) {
            bail!(
                "`{}` is no {kind} but a link or something else: change what it leads to with an editor",
                place.display()
            );
        }
    }
    Ok(name.to_owned())
}

/// What a file that is about to take this one's place is called meanwhile. It is no rule file.
fn beside(name: &str) -> String {
    format!(".{name}.new")
}

fn gone(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Takes the lock of this home's rules. Another change is waited for.
pub(crate) async fn lock(home: &Home, holder: &Holder) -> Result<SessionLock> {
    let folder = folder(home);
    make_private(&folder)?;
    let begin = Instant::now();
    loop {
        match SessionLock::take(session(), &folder, holder) {
            Err(JournalError::Held { .. }) if begin.elapsed() < PATIENCE => tokio::time::sleep(LOOK).await,
            Err(JournalError::Held { holder, .. }) => {
                let by = holder.map_or_else(|| "another process".to_owned(), |holder| holder.to_string());
                bail!("the rules are just being changed by {by}: wait for it to end")
            }
            other => return Ok(other?),
        }
    }
}

/// The lock, where the rules were ever changed by it and nobody changes them now. Before a process binds
/// itself.
pub(crate) fn idle(home: &Home, now: Timestamp) -> Option<SessionLock> {
    let folder = folder(home);
    folder.join("lock").exists().then_some(())?;
    let holder =
        Holder { pid: std::process::id(), since: now, command: "bailey (a look at the rules)".into() };
    SessionLock::take(session(), &folder, &holder).ok()
}

fn folder(home: &Home) -> PathBuf {
    home.root.join("sessions").join(session().to_string())
}

/// Ends what was cut off: looks how far each change came, writes that as its outcome, and says so.
pub(crate) async fn recover(home: &Home, mint: &Mint, lock: &SessionLock) -> Result<Vec<String>> {
    let unfinished = mint.unfinished(lock).await?;
    let mut told = Vec::new();
    if unfinished.is_empty() {
        return Ok(told);
    }
    let entries = mint.journal().entries(Query { session: Some(lock.session()), ..Query::default() }).await?;
    for lost in unfinished {
        let intent = entries
            .iter()
            .find(|it| it.entry.effect == Some(lost.effect) && matches!(it.entry.fact, Fact::Intent { .. }));
        let effect = intent.and_then(|it| serde_json::from_slice::<Effect>(it.payload.as_deref()?).ok());
        let Some(Effect { action: Action::Amend(amendment), .. }) = effect else {
            mint.give_up(lock, &lost).await?;
            continue;
        };
        let Ok(is_done) = is_done(&home.policy(), &amendment) else {
            mint.give_up(lock, &lost).await?;
            continue;
        };
        let path = Path::new(&amendment.path.0);
        let (status, how) = match is_done {
            true => (Status::Done, "the new text is in its place"),
            false => {
                let reason = "it was cut off before the file changed".to_owned();
                (Status::Failed { reason }, "the file is as it was before")
            }
        };
        let outcome = Outcome { status, enforced: None, duration_ms: 0, report: Report::Nothing };
        mint.settle(lock, &lost, &outcome).await?;
        // It is not a rule file, and only in the way.
        if let Ok(name) = name_in(&home.policy(), path) {
            fs::remove_file(home.policy().join(beside(&name))).ok();
        }
        told.push(format!("a change of `{}` was cut off: {how}", path.display()));
    }
    Ok(told)
}

/// Whether what a change wanted is there.
///
/// # Errors
/// When it names no rule file of the home: a journal that somebody wrote in may name anything, and nothing is
/// read then.
fn is_done(folder: &Path, Amendment { path, new, .. }: &Amendment) -> Result<bool> {
    let path = Path::new(&path.0);
    name_in(folder, path)?;
    let about = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(new.is_none()),
        about => about?,
    };
    let Some(new) = new else { return Ok(false) };
    // A text of another length is another one, however long it is.
    Ok(usize::try_from(about.len()) == Ok(new.0.len()) && fs::read(path)? == new.0)
}

#[cfg(test)]
mod tests;

//! `bailey restore`: a copy takes a home's place, wholly or not at all.

use super::{
    ENV, JOURNAL, RestoreArgs,
    beneath::Beneath,
    files, hold, short_of,
    sums::{self, Compared, Sums},
};
use anyhow::{Context as _, Result, bail};
use bailey_home::{
    home::{Home, NewDirectories, make_private, swap},
    identity,
    schedules::Schedules,
};
use bailey_journal::{Clock as _, FileLocks, InUse, Journal, SystemClock};
use bailey_protocol::{SessionId, Timestamp, exit, shell_word};
use bailey_secrets::{Redactor, Vault};
use bailey_session::{client::Client, running::in_use, sign_stop};
use bailey_terminal::{Answering, Asker, confirm, print::Printer};
use serde_json::json;
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

/// Stands between the home's name and the process id in the name of a home that is being made.
const NEW: &str = "restoring-";
const UNCHANGED: &str = "nothing was changed";

/// `bailey restore`.
///
/// # Errors
/// When the home is in use, or the copy is not whole; then nothing was changed.
pub async fn run(
    home: &Home,
    begun: NewDirectories,
    RestoreArgs { from, yes }: RestoreArgs,
    printer: &Printer,
) -> Result<ExitCode> {
    let from = fs::canonicalize(&from).with_context(|| format!("cannot find `{}`", from.display()))?;
    unused(home)?;
    let name = home.root.file_name().and_then(OsStr::to_str).context("the home has no name")?;
    let beside = |what: &str| home.root.with_file_name(format!("{name}.{what}"));
    // Before the check for free room: such folders take room.
    remove_cut_off(&home.root, &beside(NEW))?;
    let compared = compare(home, &from, printer).context(UNCHANGED)?;
    if !yes && !is_empty(&home.root)? && !confirmed(home, &from).await? {
        printer.note(UNCHANGED);
        return Ok(ExitCode::from(exit::DENIED));
    }
    let new = beside(&format!("{NEW}{}", std::process::id()));
    make_private(&new)?;
    let held = hold(&new);
    let entries = match prepare(home, &from, &compared, &new, printer).await {
        Ok(prepared) => prepared,
        Err(error) => {
            fs::remove_dir_all(&new).ok();
            return Err(error.context(UNCHANGED));
        }
    };
    unused(home).inspect_err(|_| drop(fs::remove_dir_all(&new)))?;
    let moment = SystemClock.now().strftime("%Y%m%dT%H%M%SZ").to_string();
    // Another restore may have been made in this second.
    let before = (1..).map(|n| if n == 1 { moment.clone() } else { format!("{moment}-{n}") });
    let before =
        before.map(|name| beside(&format!("before-{name}"))).find(|path| path.symlink_metadata().is_err());
    let before = before.context("there is no name for what was there")?;
    if let Err(error) = swap::exchange(&home.root, &new, &before) {
        // The new folder holds the keys, too.
        fs::remove_dir_all(&new).ok();
        return Err(error.context(UNCHANGED));
    }
    // From here on, the new folder is the home itself.
    drop(held);
    begun.keep();
    swap::finish(&home.root)?;
    let left_behind = left_behind(home, &before).await;
    let stopped = stopped(home, printer).await?;
    identity::tell_stopped(home, stopped)?;
    if printer.is_json() {
        let left: Vec<_> =
            left_behind.iter().map(|(session, why)| json!({ "session": session, "why": why })).collect();
        printer.json(&json!({
            "home": home.root, "from": from, "entries": entries, "before": before, "stopped": stopped, "left_behind": left,
        }));
    } else {
        printer.line(format!("{} is what it was at entry {entries} of its journal", home.root.display()));
        printer.line(format!(
            "the home as it was before is in `{}`; remove it when you miss nothing",
            before.display()
        ));
        for (session, why) in left_behind {
            let path = |home: &Path| shell_word(&home.join("sessions").display().to_string());
            let (old, id) = (path(&before), session.to_string());
            printer.warn(&format!(
                "the backup does not have the last changes of session {id}: {why}. To look at them in the \
                 old home: mkdir -p {old} && mv {}/{id} {old}/ && bailey --home {} sessions diff {id}",
                path(&home.root),
                shell_word(&before.display().to_string()),
            ));
        }
        if let Some(since) = stopped {
            printer.note(&format!(
                "this home has been stopped since {since}, so nothing begins in it; release the stop with \
                 `bailey estop --release`"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a home holds nothing but empty directories, as a new one does.
fn is_empty(root: &Path) -> Result<bool> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() || fs::read_dir(entry.path())?.next().is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Asks whether the copy may replace the home.
async fn confirmed(home: &Home, from: &Path) -> Result<bool> {
    let root = home.root.display();
    if !Asker::new(Answering::Ask).is_here() {
        bail!(
            "`{root}` is not empty, and there is no terminal to ask on; add --yes to replace it (the home as it is now \
             is kept beside it), or name another home (--home DIR). {UNCHANGED}"
        );
    }
    let question = format!(
        "Replace the home `{root}` by the copy in `{}`? The home as it is now is kept beside it.",
        from.display()
    );
    Ok(confirm(&question).await)
}

/// Checks that no process uses the home.
///
/// # Errors
/// When one does, with its name.
pub fn unused(home: &Home) -> Result<()> {
    if Client::connect(home)?.is_some() {
        bail!("the daemon of this home runs; stop it first with `bailey stop`");
    }
    // A daemon whose socket was removed cannot be asked, so look at its lock.
    let daemon = InUse::of(&home.daemon(), &FileLocks::default())?;
    let daemon = daemon
        .map(|it| it.says.map_or_else(|| "its daemon".to_owned(), |holder| format!("its daemon, {holder}")));
    let uses: Vec<String> = daemon.into_iter().chain(in_use(&home.root)).collect();
    if !uses.is_empty() {
        bail!("this home is in use: {}", uses.join("; "));
    }
    Ok(())
}

/// Removes folders beside the home that restores left when they were killed before the exchange with the
/// home. These folders also hold the keys of `.env`.
fn remove_cut_off(root: &Path, new: &Path) -> Result<()> {
    let begin = new.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_new = |path: &Path| {
        let name = path.file_name().and_then(OsStr::to_str);
        let process = name.and_then(|name| name.strip_prefix(begin)).unwrap_or_default();
        let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        is_number && path.symlink_metadata().is_ok_and(|about| about.is_dir())
    };
    let entries = fs::read_dir(root.parent().unwrap_or(Path::new("/")))?;
    let all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| is_new(path)).collect();
    for folder in all {
        // The lock is held until the folder is removed. The mark is read after the lock is taken: a process
        // that held the lock before has written the mark by then.
        let held = hold(&folder);
        if held.is_some() && swap::is_cut_off(root, &folder)? {
            let cannot = || format!("a restore was cut off, and `{}` cannot be removed", folder.display());
            fs::remove_dir_all(&folder).with_context(cannot)?;
        }
    }
    Ok(())
}

/// The sessions that still hold something which the copy's journal does not record: changes, or an apply that
/// was cut in the middle. Empty if the old home no longer has a journal.
async fn left_behind(home: &Home, before: &Path) -> Vec<(SessionId, &'static str)> {
    let open = async |path: PathBuf| {
        let redactor = Redactor::new(&Vault::default());
        Ok::<_, anyhow::Error>(Journal::open(&path, redactor, Arc::new(SystemClock)).await?.0)
    };
    let mut found = Vec::new();
    let look = async {
        let (old, copy) = (open(before.join(JOURNAL)).await?, open(home.journal()).await?);
        let known: BTreeSet<SessionId> = copy.sessions().await?.iter().map(|session| session.id).collect();
        for session in old.sessions().await? {
            let id = session.id;
            if old.unfinished_apply(id).await?.is_some() && copy.unfinished_apply(id).await?.is_none() {
                found.push((id, "an apply of it was cut in the middle"));
            } else if !known.contains(&id) && !old.touched(id).await?.is_empty() {
                found.push((id, "it has changes that were not applied"));
            }
        }
        anyhow::Ok(())
    };
    look.await.ok();
    found
}

/// The time since when the home is stopped, if it is. A stop that came in the meantime is signed as well.
async fn stopped(home: &Home, printer: &Printer) -> Result<Option<Timestamp>> {
    let redactor = Redactor::new(&Vault::default());
    let (journal, _) = Journal::open(&home.journal(), redactor, Arc::new(SystemClock)).await?;
    let stopped = journal.stopped().await?;
    if stopped.is_some() {
        sign_stop(home, &journal, printer).await;
    }
    Ok(stopped)
}

/// Checks a copy before anything is written: it is a copy, it has nothing which no copy has, there is room
/// for it, and each file matches its digest in the list.
fn compare(home: &Home, from: &Path, printer: &Printer) -> Result<Compared> {
    let copy = Beneath::open(from)?;
    let mut list = Sums::read(&copy)?;
    if !list.paths().any(|path| path == Path::new(JOURNAL)) {
        bail!("`{}` has no journal, so it is not a backup of a home", from.display());
    }
    let left = list.leave(files::is_of_before);
    if let Some(foreign) = list.paths().find(|path| files::is_foreign(path)) {
        bail!(
            "`{}` names `{}`, which no copy has: somebody put it there. Take another copy, or find out who wrote this one, and take that \
             line out of its list",
            copy.shown(Path::new(sums::NAME)).display(),
            foreign.display()
        );
    }
    let measured = list.measure(copy)?;
    // The new home is made beside the present one.
    let beside = home.root.parent().unwrap_or(Path::new("/"));
    if let Some(short) = short_of(beside, measured.room())? {
        bail!(
            "what `{}` brings {short} in `{}`: make room there, or name a home on another disk (--home DIR)",
            from.display(),
            beside.display()
        );
    }
    let compared = measured.compare()?;
    let left: BTreeSet<&str> = left.iter().filter_map(|path| path.iter().next()?.to_str()).collect();
    if !left.is_empty() {
        let left = Vec::from_iter(left).join(", ");
        printer.note(&format!("not taken from the copy, for a home makes it anew: {left}"));
    }
    Ok(compared)
}

/// Makes the new home and verifies it. Returns the newest entry that it brings back.
async fn prepare(
    home: &Home,
    from: &Path,
    compared: &Compared,
    new: &Path,
    printer: &Printer,
) -> Result<u64> {
    compared.copy_to(new)?;
    // The keys of this machine stay in use if the copy has no keys.
    if !new.join(ENV).exists() && home.env_file().exists() {
        sums::copy(&fs::canonicalize(home.env_file())?, &new.join(ENV))?;
    }
    let of_copy = Home { root: new.to_path_buf(), ..home.clone() };
    Schedules::begin_anew(&of_copy, SystemClock.now())?;
    bailey_channels::begin_anew(&of_copy)?;
    let redactor = Redactor::new(&Vault::default());
    let (journal, _) = Journal::open(&new.join(JOURNAL), redactor, Arc::new(SystemClock)).await?;
    journal.verify_chain().await?;
    let entries = journal.newest();
    // A later reader sees that something is missing, and since when.
    let is_stopped = bailey_journal::is_stopped(&home.journal());
    journal.note_restored(format!("from {}", from.display()), is_stopped).await?;
    if is_stopped {
        // The key of this journal is new, and has signed nothing yet.
        sign_stop(&of_copy, &journal, printer).await;
    }
    Ok(entries)
}

//! Changes a copy of the journal that this run wrote, as a person with an SQLite shell would, and verifies
//! it.

use super::{
    attack::{Attempt, Tried},
    fixture::Fixture,
};
use anyhow::{Context as _, Result};
use bailey_journal::{Journal, JournalError, SCHEMA_VERSION, SystemClock, witness::WitnessRecord};
use bailey_protocol::{Action, WsPath};
use bailey_secrets::{Redactor, Vault};
use bailey_store::{Grade, Migration, Store, StoreError, Tx, params};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The change of the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tampering {
    /// One bit of an entry is flipped.
    Byte,
    /// Two entries change places.
    Order,
    /// The newest entries are cut off.
    End,
    /// It is an older copy, with the key that lay beside it. By itself it is still valid.
    Back,
}

/// The entries that are changed: one in the middle, and another one.
const ENTRIES: (u64, u64) = (4, 7);

pub(crate) async fn tried(fixture: &Fixture, tampering: Tampering) -> Result<Tried> {
    // Writes entries that can be changed.
    for _ in 0..4 {
        let path = format!("{}/plain/passwd", fixture.host.workspace().0);
        fixture.host.act(Action::Read { path: WsPath(path) }).await?;
    }
    let journal = fixture.kernel.journal();
    let signed = journal.checkpoint().await?.statement()?.entries;
    let copy = copied(&fixture.home.journal(), &fixture.folder(&format!("{tampering:?}"))?)?;
    if let Some((entry, what)) = found(&copy).await? {
        let why = format!("the journal was broken before: entry {entry}: {what}");
        return Ok(Tried { attack: Attempt::Nothing(why), control: Attempt::Nothing(String::new()) });
    }
    let last = signed.saturating_sub(1);
    if tampering == Tampering::Back {
        return put_back(fixture, &copy, signed).await;
    }
    let changed = change(&copy, tampering, last).await?;
    let wanted = match tampering {
        Tampering::Byte | Tampering::Order => ENTRIES.0,
        Tampering::End | Tampering::Back => last,
    };
    let attack = match found(&copy).await? {
        Some((entry, what)) if entry == wanted => Attempt::Refused(format!("found at entry {entry}: {what}")),
        Some((entry, what)) => {
            Attempt::Reached(format!("entry {wanted} was changed and entry {entry} named: {what}"))
        }
        None => Attempt::Reached("it verifies all the same".into()),
    };
    let control = match changed {
        0 => Attempt::Nothing("nothing was changed".into()),
        _ => Attempt::Reached("the copy verified until it was changed".into()),
    };
    Ok(Tried { attack, control })
}

/// The copy takes the place of a journal that went on and told a witness.
async fn put_back(fixture: &Fixture, copy: &Path, signed: u64) -> Result<Tried> {
    let journal = fixture.kernel.journal();
    let path = WsPath(format!("{}/plain/passwd", fixture.host.workspace().0));
    fixture.host.act(Action::Read { path }).await?;
    let newest = journal.checkpoint().await?;
    if newest.statement()?.entries <= signed {
        let why = "nothing could be written after the copy was made: nothing can run here".to_owned();
        return Ok(Tried { attack: Attempt::Nothing(why), control: Attempt::Nothing(String::new()) });
    }
    let told = WitnessRecord { checkpoints: vec![newest], unreadable: 0 };
    let (old, _mint) = Journal::open(copy, Redactor::new(&Vault::default()), Arc::new(SystemClock)).await?;
    let attack = match old.compare(told).await {
        Ok(_) => Attempt::Reached("the witness finds nothing".into()),
        Err(JournalError::Broken(broken)) => {
            Attempt::Refused(format!("found at entry {}: {}", broken.seq, broken.what))
        }
        Err(error) => return Err(error.into()),
    };
    drop(old);
    let control = match found(copy).await? {
        None => Attempt::Reached("by itself it verifies".into()),
        Some((entry, what)) => Attempt::Nothing(format!("it is broken by itself: entry {entry}: {what}")),
    };
    Ok(Tried { attack, control })
}

fn copied(journal: &Path, folder: &Path) -> Result<PathBuf> {
    let copy = folder.join("journal.db");
    for ending in ["db", "db-wal", "key"] {
        let from = journal.with_extension(ending);
        if from.exists() {
            fs::copy(&from, copy.with_extension(ending))
                .with_context(|| format!("cannot copy `{}`", from.display()))?;
        }
    }
    Ok(copy)
}

/// Where the journal says that it is broken, and why.
async fn found(path: &Path) -> Result<Option<(u64, String)>> {
    let redactor = Redactor::new(&Vault::default());
    let (journal, _mint) = Journal::open(path, redactor, Arc::new(SystemClock)).await?;
    // First the whole chain, which names the entry; then the last signed checkpoint, which names the end.
    let verified = match journal.verify().await {
        Ok(_) => journal.sound().await,
        Err(error) => Err(error),
    };
    match verified {
        Ok(()) => Ok(None),
        Err(JournalError::Broken(broken)) => Ok(Some((broken.seq, broken.what))),
        Err(error) => Err(error.into()),
    }
}

async fn change(path: &Path, tampering: Tampering, last: u64) -> Result<usize> {
    let raw = Store::open(path, &[Migration { version: SCHEMA_VERSION, sql: "" }])?;
    let work = move |tx: &mut Tx<'_>| -> Result<usize, StoreError> {
        let (one, other) = ENTRIES;
        Ok(match tampering {
            Tampering::Byte => {
                let sql = "SELECT body FROM entry WHERE seq = ?1";
                let mut body: Vec<u8> = tx.query_row(sql, params![one], |row| row.get(0))?;
                if let Some(byte) = body.iter_mut().rev().find(|byte| byte.is_ascii_digit()) {
                    *byte ^= 1;
                }
                tx.execute("UPDATE entry SET body = ?2 WHERE seq = ?1", params![one, body])?
            }
            Tampering::Order => {
                tx.execute("DELETE FROM payload WHERE seq IN (?1, ?2)", params![one, other])?;
                tx.execute("UPDATE entry SET seq = 1000000 WHERE seq = ?1", params![one])?;
                tx.execute("UPDATE entry SET seq = ?1 WHERE seq = ?2", params![one, other])?;
                tx.execute("UPDATE entry SET seq = ?1 WHERE seq = 1000000", params![other])?
            }
            Tampering::Back => 0,
            Tampering::End => {
                // Also delete everything beside the chain that refers to these entries. The key is in
                // another file.
                tx.execute("DELETE FROM checkpoint WHERE entries >= ?1", params![last])?;
                tx.execute("DELETE FROM tile", params![])?;
                tx.execute("DELETE FROM payload WHERE seq >= ?1", params![last])?;
                tx.execute("UPDATE effect SET outcome = NULL WHERE outcome >= ?1", params![last])?;
                tx.execute("DELETE FROM effect WHERE intent >= ?1", params![last])?;
                tx.execute("DELETE FROM entry WHERE seq >= ?1", params![last])?
            }
        })
    };
    Ok(raw.write(Grade::Full, work).await?)
}

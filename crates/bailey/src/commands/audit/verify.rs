//! `bailey audit verify`: what holds, of the entries and of the file that they lie in, up to when it is
//! signed, and who vouches for that.

use super::{proof, recover};
use crate::{
    compose::{self, Keys},
    config::Config,
    config::Witness,
    home::Home,
    print::{Printer, Style},
    witness,
};
use anyhow::{Result, bail};
use bailey_journal::{
    Archive, Journal, Query, Verified, Vouched,
    checkpoint::PublicKey,
    witness::{Testimony, WitnessRecord},
};
use bailey_protocol::{Seq, Timestamp};
use serde_json::json;
use std::{collections::BTreeMap, process::ExitCode};

pub(super) async fn run(
    home: &Home,
    config: &Config,
    keys: Keys,
    key: Option<&str>,
    printer: &Printer,
) -> Result<ExitCode> {
    let key = key.map(proof::key).transpose()?;
    let (journal, told) = witnessed(home, config, keys, printer).await?;
    // The whole chain first, which names the very entry; what was signed last names only the entries before
    // it.
    let verified = printer.waiting(|| "verifying the chain".into(), journal.verify()).await?;
    journal.sound().await?;
    // The walk over the chain comes by no index, and by none of the tables beside it.
    printer.waiting(|| "looking at every page".into(), journal.verify_pages()).await?;
    let beside = journal.verify_projections();
    printer.waiting(|| "comparing what is kept beside the chain".into(), beside).await?;
    if let Some(key) = key {
        follows_from(verified.signed.as_ref(), &key)?;
    }
    let (testimony, unasked) = match told {
        None => (None, None),
        Some(Ok(told)) => (Some(journal.compare(told).await?), None),
        Some(Err(error)) => (None, Some(error)),
    };
    if printer.is_json() {
        let witness = config.witness.as_ref().map(ToString::to_string);
        printer.json(&json!({
            "ok": true, "entries": verified.entries, "payloads": verified.payloads, "erased": verified.erased,
            "head": verified.head, "root": verified.root, "signed": verified.signed,
            "archives": verified.archives,
            "salvages": verified.salvages.iter().map(|(seq, loss)| recover::json(*seq, loss)).collect::<Vec<_>>(),
            "witness": witness.map(|name| json!({ "name": name, "vouches": testimony })),
        }));
    } else {
        let removals = removals(&journal, &verified.archives).await?;
        let witness = config.witness.as_ref().map(|witness| (witness, testimony.as_ref()));
        show(printer, &verified, &removals, witness);
    }
    // What holds by itself was said; what was asked for is known only in part.
    unasked.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The journal, and what the witness has to say, where there is one. To ask a server this process binds
/// itself first.
async fn witnessed(
    home: &Home,
    config: &Config,
    keys: Keys,
    printer: &Printer,
) -> Result<(Journal, Option<Result<WitnessRecord>>)> {
    let Some(witness @ Witness::Url(_)) = &config.witness else {
        let (journal, _) = compose::journal(home, &keys).await?;
        let told = match &config.witness {
            None => None,
            Some(file) => Some(witness::ask(file, None).await),
        };
        return Ok((journal, told));
    };
    let (kernel, scope, _events, _guest) = compose::owner(home, config, keys, &[]).await?;
    let asked = witness::ask(witness, Some((&kernel, &scope)));
    let told = printer.waiting(|| format!("asking {witness}"), asked).await;
    Ok((kernel.journal().clone(), Some(told)))
}

/// Whether what is signed follows from a key that was kept elsewhere.
fn follows_from(signed: Option<&Vouched>, key: &PublicKey) -> Result<()> {
    match signed {
        Some(signed) if signed.key == *key => Ok(()),
        Some(signed) => bail!(
            "what is signed here follows from the key `{}` (entry {}), not from `{key}`: this is another journal, or its key \
             was made anew",
            signed.key,
            signed.since,
        ),
        None => bail!("nothing is signed here, and `{key}` says that something was: this is another journal"),
    }
}

/// When each archive that is gone is said to have gone.
async fn removals(journal: &Journal, archives: &[Archive]) -> Result<BTreeMap<Seq, Timestamp>> {
    let mut times = BTreeMap::new();
    for seq in archives.iter().filter_map(|archive| archive.removed) {
        let query = Query { after: seq.0.saturating_sub(1), first: Some(1), ..Query::default() };
        times.extend(journal.entries(query).await?.iter().map(|it| (it.entry.seq, it.entry.time)));
    }
    Ok(times)
}

fn show(
    printer: &Printer,
    verified: &Verified,
    removals: &BTreeMap<Seq, Timestamp>,
    witness: Option<(&Witness, Option<&Testimony>)>,
) {
    let erased = match verified.erased {
        0 => String::new(),
        erased => format!(" ({erased} were erased with their sessions)"),
    };
    printer.line(format!(
        "{} {} entries and {} payloads fit together{erased}; the newest is {}",
        printer.paint(Style::Green, "verified:"),
        verified.entries,
        verified.payloads,
        verified.head.short(),
    ));
    match &verified.signed {
        None => {
            let line = "nothing is signed yet: `bailey audit key` makes the key";
            printer.line(printer.paint(Style::Dim, line));
        }
        Some(Vouched { key, newest, .. }) => {
            let rest = match verified.entries - newest.entries {
                0 => String::new(),
                rest => format!(", {rest} since then are not"),
            };
            printer.line(format!(
                "signed up to entry {} (checkpoint {}, at {}{rest}), by keys that follow from {key}",
                newest.entries, newest.epoch, newest.time,
            ));
        }
    }
    show_archives(printer, &verified.archives, removals);
    for (seq, loss) in &verified.salvages {
        let line = format!("entry {seq} says that this journal was recovered: {}", recover::told(loss));
        printer.line(printer.paint(Style::Yellow, &line));
    }
    match witness {
        None => printer.line(printer.paint(
            Style::Dim,
            "(without a witness outside this machine, nobody can tell whether the journal and its key were \
             both replaced by an old copy)",
        )),
        // The error that follows says why.
        Some((_, None)) => {}
        Some((witness, Some(Testimony { newest: None, others, .. }))) => printer.line(printer.paint(
            Style::Yellow,
            &format!("the witness {witness} has nothing of this journal, and {others} checkpoints of others"),
        )),
        Some((witness, Some(Testimony { newest: Some(newest), checkpoints, .. }))) => printer.line(format!(
            "the witness {witness} vouches up to entry {} (checkpoint {} of {checkpoints} that it has, at {})",
            newest.entries, newest.epoch, newest.time,
        )),
    }
}

fn show_archives(printer: &Printer, archives: &[Archive], removals: &BTreeMap<Seq, Timestamp>) {
    let (gone, there): (Vec<_>, Vec<_>) = archives.iter().partition(|it| it.removed.is_some());
    let entries = |archives: &[&Archive]| archives.iter().map(|it| it.file.entries).sum::<u64>();
    if !there.is_empty() {
        let (entries, count) = (entries(&there), there.len());
        printer.line(format!("{entries} of them are in {count} archives, each verified there"));
    }
    if gone.is_empty() {
        return;
    }
    let told = |line: String| printer.line(printer.paint(Style::Yellow, &line));
    let (all, count) = (entries(&gone), gone.len());
    told(format!("{all} of them were in {count} archives that went for room: only their hashes are here"));
    for Archive { file, removed, .. } in gone {
        let Some(removed) = removed else { continue };
        let time = removals.get(removed).map(ToString::to_string).unwrap_or_default();
        told(format!("  {} (entries {} to {}): entry {removed}, {time}", file.name, file.first, file.last));
    }
}

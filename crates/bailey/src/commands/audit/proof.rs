//! Proofs for somebody else: made here, checked anywhere.

use crate::{
    cli::Prove,
    exit::{self, Mistyped},
    print::{Printer, Style},
};
use anyhow::{Context as _, Result};
use bailey_journal::{
    Journal,
    archive::{self, Sealed},
    checkpoint::{PublicKey, Statement},
    proof::{PROOF_BYTES_MAX, Proof, Proven},
};
use bailey_protocol::number::Seq;
use serde_json::json;
use std::{
    fs,
    io::{BufRead, BufReader, Read as _},
    path::Path,
    process::ExitCode,
};

/// The largest file that may hold a public key, in bytes.
const KEY_BYTES_MAX: u64 = 1024;

pub(super) async fn prove(journal: &Journal, prove: Prove, printer: &Printer) -> Result<ExitCode> {
    let from = prove.from.as_deref().map(key).transpose()?;
    let proof = match (prove.entry, prove.since) {
        (Some(entry), _) => journal.prove(Seq(entry), prove.payload, from).await?,
        (None, Some(since)) => journal.prove_growth(since, from).await?,
        // The command line's parser asks for one of them.
        (None, None) => return Err(Mistyped("name an entry, or a checkpoint with --since".into()).into()),
    };
    let text = proof.to_json().context("the proof cannot be written as JSON")?;
    match prove.out {
        None => printer.verbatim(&text),
        Some(path) => {
            let cannot = || format!("cannot write `{}`", path.display());
            fs::write(&path, text + "\n").with_context(cannot)?;
            let line = journal.line().await?;
            let key = line.map(|line| line.first.to_string()).unwrap_or_default();
            printer.note(&format!(
                "written: whoever has this journal's first key checks it with: bailey audit check {} --key {}",
                path.display(),
                prove.from.as_deref().unwrap_or(&key),
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Needs no home and no journal.
pub(in crate::commands) fn check(file: &Path, named: &str, printer: &Printer) -> Result<ExitCode> {
    let key = key(named)?;
    let cannot = || format!("cannot read `{}`", file.display());
    let mut from: Box<dyn BufRead> = match file.to_str() {
        Some("-") => Box::new(std::io::stdin().lock()),
        _ => Box::new(BufReader::new(fs::File::open(file).with_context(cannot)?)),
    };
    if from.fill_buf().with_context(cannot)?.starts_with(archive::BEGINS) {
        return check_archive(file, from, &key, printer);
    }
    let mut bytes = Vec::new();
    from.take(PROOF_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).with_context(cannot)?;
    match Proof::parse(&bytes).and_then(|proof| proof.check(&key)) {
        Ok(proven) => {
            tell(&proven, printer);
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if printer.is_json() => {
            printer.json(&json!({ "proven": false, "why": error.to_string() }));
            Ok(ExitCode::from(exit::FAILED))
        }
        Err(error) => Err(error).with_context(|| format!("`{}` proves nothing", file.display())),
    }
}

fn check_archive(
    file: &Path,
    from: Box<dyn BufRead>,
    key: &PublicKey,
    printer: &Printer,
) -> Result<ExitCode> {
    match archive::check(from, key) {
        Ok(sealed) if printer.is_json() => {
            printer.json(&json!({ "proven": "archive", "archive": sealed }));
            Ok(ExitCode::SUCCESS)
        }
        Ok(sealed) => {
            let Sealed { entries, first, last, payloads, erased, signed } = &sealed;
            printer.line(format!(
                "{} these {entries} entries ({first} to {last}) were among the {} at checkpoint {}, signed at {}, with \
                 {payloads} payloads ({erased} were erased before)",
                printer.paint(Style::Green, "proven:"),
                signed.entries,
                signed.epoch,
                signed.time,
            ));
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if printer.is_json() => {
            printer.json(&json!({ "proven": false, "why": error.to_string() }));
            Ok(ExitCode::from(exit::FAILED))
        }
        Err(error) => Err(error).with_context(|| format!("the archive `{}` does not hold", file.display())),
    }
}

fn tell(proven: &Proven, printer: &Printer) {
    if printer.is_json() {
        printer.json(proven);
        return;
    }
    let signed = |says: &Statement| format!("checkpoint {}, signed at {}", says.epoch, says.time);
    let label = printer.paint(Style::Green, "proven:");
    match proven {
        Proven::Entry { number, body, payload, signed: says } => {
            let of = says.entries;
            printer.line(format!("{label} this was entry {number} of {of} at {}", signed(says)));
            // A stranger's words, though they are proven.
            printer.line(printer.paint(Style::Plain, body));
            let words = payload.iter().map(|payload| payload.lossy());
            words
                .flat_map(|words| printer.paint_lines(Style::Plain, &words))
                .for_each(|line| printer.line(line));
        }
        Proven::Growth { from, to } => {
            printer.line(format!(
                "{label} the {} entries of {} are the first of the {} of {}, each as it was",
                from.entries,
                signed(from),
                to.entries,
                signed(to),
            ));
        }
    }
}

pub(super) async fn keys(journal: &Journal, printer: &Printer) -> Result<ExitCode> {
    let newest = journal.checkpoint().await?.statement()?;
    let Some(line) = journal.line().await? else { return Ok(ExitCode::SUCCESS) };
    if printer.is_json() {
        printer.json(
            &json!({ "first": line.first, "checkpoints": line.checkpoints.len(), "next": newest.next }),
        );
        return Ok(ExitCode::SUCCESS);
    }
    printer.line(line.first);
    printer.note(&format!(
        "keep this key where nobody who takes this machine over can change it: proofs are checked against it\n\
         {} checkpoints follow from it; the next one is signed by {}, which serves for proofs of what comes",
        line.checkpoints.len(),
        newest.next,
    ));
    Ok(ExitCode::SUCCESS)
}

/// A public key, as 64 hexadecimal digits or in a file that holds nothing else.
pub(super) fn key(named: &str) -> Result<PublicKey> {
    if let Some(key) = PublicKey::parse(named) {
        return Ok(key);
    }
    let mut text = String::new();
    let read = fs::File::open(named).and_then(|file| file.take(KEY_BYTES_MAX).read_to_string(&mut text));
    let found = read.ok().and_then(|_| PublicKey::parse(text.trim()));
    let wrong = || {
        Mistyped(format!(
            "`{named}` is no public key: it is 64 hexadecimal digits, or a file that holds them; `bailey audit key` prints \
             one"
        ))
    };
    Ok(found.ok_or_else(wrong)?)
}

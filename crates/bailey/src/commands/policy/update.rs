//! `bailey policy update`: puts a rule file into the home's policy, or takes one away, once it is known what
//! that means.

use crate::{
    cli::Update,
    compose::{self, Keys},
    config::Config,
    exit,
    extensions::Extensions,
    front::Answering,
    front::{Asker, diff_lines, type_phrase, type_reason},
    home::{Home, make_private},
    policy_update,
    print::{Printer, Style},
};
use anyhow::{Context as _, Result, bail};
use bailey_policy::Policy;
use bailey_protocol::{Amendment, Blob, Digest, WsPath};
use bailey_replay::{Comparison, Draft, EffectRecord};
use serde_json::json;
use std::process::ExitCode;

/// How many recorded decisions a change is tried on.
const TRIED: u32 = 100;
/// More that is BREAKING needs a phrase.
const BREAKING_MAX: usize = 5;
/// Lines of the difference that are shown.
const DIFF_LINES_MAX: usize = 400;

/// A change of the policy, with what is known of it.
struct PolicyChange {
    draft: Draft,
    name: String,
    /// The policy in force; none where the files that lie there cannot be read.
    old: Option<Policy>,
    new: Policy,
    warnings: Vec<String>,
}

/// What a human says before a change is made.
struct Needed {
    phrase: Option<String>,
    /// Whether it is typed, with a reason.
    is_compliance: bool,
}

pub(super) async fn run(home: &Home, asked: Update, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    let extensions = Extensions::read(&config);
    let Some(change) = PolicyChange::of(home, &asked, &extensions, printer)? else {
        return Ok(ExitCode::from(exit::WRONG));
    };
    if change.draft.is_same() {
        printer.note(&format!("`{}` has this text already, so nothing changes", change.name));
        return Ok(ExitCode::SUCCESS);
    }
    let keys = Keys::load(home, &config, printer)?;
    let (journal, _mint) = compose::journal(home, &keys).await?;
    journal.sound().await?;
    let record = EffectRecord::read(&journal, None, TRIED).await?;
    let comparison = match &change.old {
        Some(old) => Some(record.compare(home, old, &change.new)?),
        None => None,
    };
    change.show(printer);
    if let Some(comparison) = &comparison {
        comparison.print(&record.lost, printer);
    }
    let is_compliance = compose::is_compliance(&config)?;
    let needed = Needed { phrase: change.phrase(comparison.as_ref(), is_compliance), is_compliance };
    if asked.dry_run {
        needed.tell(printer);
        return Ok(ExitCode::SUCCESS);
    }
    let Some(why) = needed.why(&asked, printer).await else {
        printer.note("nothing was changed");
        return Ok(ExitCode::from(exit::DENIED));
    };
    drop(journal);
    let amended = compose::amend(home, &config, keys, &extensions, change.amendment(home), why).await?;
    amended.remarks.iter().for_each(|remark| printer.warn(remark));
    if let Some(reasons) = amended.refused {
        bail!(bailey_kernel::Refused::Denied(reasons));
    }
    if let Some(reason) = amended.failed {
        bail!("nothing was changed: {reason}");
    }
    if printer.is_json() {
        printer.json(&json!({ "ok": true, "file": change.name, "entry": amended.entry, "policy": change.new.digest() }));
    } else {
        let digest = change.new.digest();
        printer.line(format!(
            "in force: policy {}, by entry {} of the journal",
            digest.short(),
            amended.entry
        ));
    }
    Ok(ExitCode::SUCCESS)
}

impl PolicyChange {
    /// Reads what is asked for with all other files of the home; none when that has mistakes, which are
    /// printed.
    fn of(home: &Home, asked: &Update, extensions: &Extensions, printer: &Printer) -> Result<Option<Self>> {
        make_private(&home.policy())?;
        let mut draft = Draft::of(home)?;
        let name = match (&asked.remove, &asked.file) {
            (Some(name), _) => {
                draft.without(name)?;
                name.clone()
            }
            (None, file) => {
                let file = file.as_deref().context("name a rule file")?;
                draft.lay_as(file, asked.name.as_deref())?
            }
        };
        policy_update::name_in(&home.policy(), &home.policy().join(&name))?;
        let (new, parsed) = draft.read(printer)?;
        let broken: Vec<_> = parsed.broken(&new).collect();
        for mistake in &broken {
            printer.error(&mistake.clone().into());
        }
        if !broken.is_empty() {
            return Ok(None);
        }
        let old = match compose::policy(home, extensions) {
            Ok((policy, _)) => Some(policy),
            Err(error) => {
                printer.warn(&format!(
                    "the rules of the home have a mistake, so there is nothing to compare with: {error:#}"
                ));
                None
            }
        };
        let warnings = parsed.warnings.iter().map(ToString::to_string).collect();
        Ok(Some(Self { draft, name, old, new: extensions.join(new), warnings }))
    }

    /// The difference, and what is odd about the rules.
    fn show(&self, printer: &Printer) {
        let [old, new] = [self.draft.old.get(&self.name), self.draft.new.get(&self.name)];
        let diff = bailey_tools::difference(&self.name, old, new, DIFF_LINES_MAX, &printer.redactor());
        if printer.is_json() {
            printer.json(&json!({ "file": self.name, "diff": diff, "warnings": self.warnings }));
        } else {
            diff_lines(printer, &diff, printer.cells()).iter().for_each(|line| printer.line(line));
            for warning in &self.warnings {
                printer.line(printer.paint(Style::Yellow, &format!("warning: {warning}")));
            }
        }
        self.draft.remark(printer);
    }

    /// What must be typed before this is done: it says what it means, and fits no other change. None where
    /// nothing must.
    fn phrase(&self, comparison: Option<&Comparison>, is_compliance: bool) -> Option<String> {
        let of = |policy: &Policy| policy.digest();
        let old = self.old.as_ref().map_or(Digest([0; 32]), of);
        let (breaking, opening) = comparison.map_or((0, 0), |it| (it.breaking(), it.opening()));
        let words = match comparison {
            None => "replace unreadable rules".to_owned(),
            Some(_) if breaking > BREAKING_MAX && opening > 0 => {
                format!("break {breaking} and open {opening}")
            }
            Some(_) if opening > 0 => format!("open {opening}"),
            Some(_) if breaking > BREAKING_MAX => format!("break {breaking}"),
            // Nothing says what it would open.
            Some(it) if it.judged == 0 => "change what was never tried".to_owned(),
            Some(_) if is_compliance => "change the rules".to_owned(),
            Some(_) => return None,
        };
        let digests = [old, of(&self.new), self.draft.old.digest(), self.draft.new.digest()];
        let parts: Vec<&[u8]> =
            digests.iter().map(|digest| digest.0.as_slice()).chain([words.as_bytes()]).collect();
        let bound: String = Digest::of_parts(&parts).to_string().chars().take(8).collect();
        Some(format!("{words} {bound}"))
    }

    fn amendment(&self, home: &Home) -> Amendment {
        let text = |text: Option<&str>| text.map(|text| Blob(text.as_bytes().to_vec()));
        Amendment {
            path: WsPath(home.policy().join(&self.name).display().to_string()),
            old: text(self.draft.old.get(&self.name)),
            new: text(self.draft.new.get(&self.name)),
            files: self.draft.old.digest(),
            from: self.old.as_ref().map(Policy::digest),
            to: self.new.digest(),
        }
    }
}

impl Needed {
    fn tell(&self, printer: &Printer) {
        let Self { phrase, is_compliance } = self;
        // Under compliance none can be given.
        let confirm = phrase.as_ref().filter(|_| !is_compliance);
        if printer.is_json() {
            return printer
                .json(&json!({ "dry_run": true, "confirm": confirm, "compliance": is_compliance }));
        }
        printer.line(match confirm {
            Some(phrase) => format!(
                "to make this change, run the command without --dry-run and with --confirm \"{phrase}\""
            ),
            None if *is_compliance => {
                "to make this change, run the command without --dry-run on a terminal, where you type a \
                 phrase and a reason"
                    .into()
            }
            None => "to make this change, run the command without --dry-run".into(),
        });
    }

    /// Why it is done, once the phrase was given, or is typed now; none where it is not to be done.
    async fn why(&self, asked: &Update, printer: &Printer) -> Option<String> {
        let Some(phrase) = &self.phrase else { return Some("this change needs no phrase".into()) };
        let refuse = |why: &str| {
            printer.warn(why);
            None
        };
        let why = format!("confirmed with `{phrase}`");
        let is_here = Asker::new(Answering::Ask).is_here();
        match &asked.confirm {
            Some(_) if self.is_compliance => refuse(
                "`--confirm` answers in the place of a person, which compliance forbids; leave it out, and \
                 type the phrase and the reason on a terminal",
            ),
            Some(given) if given == phrase => Some(why),
            Some(given) => refuse(&format!(
                "`{given}` is not the phrase of this change, which `--dry-run` prints; it changes with the rules \
                 and with the recorded decisions"
            )),
            None if !is_here && self.is_compliance => refuse(
                "under compliance a person types a phrase and a reason on a terminal, and there is no \
                 terminal here; run the command on a terminal",
            ),
            None if !is_here => refuse(
                "this needs a phrase, and there is no terminal to type it on: --dry-run shows what would change and prints \
                 the phrase for --confirm",
            ),
            None if !type_phrase(phrase).await => None,
            None if self.is_compliance => Some(format!("{} ({why})", type_reason().await?)),
            None => Some(why),
        }
    }
}

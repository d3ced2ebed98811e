//! `bailey audit export --otlp` and `--folded`: what was done, for other programs.

use crate::{
    cli::Export,
    config::Config,
    print::Printer,
    telemetry::{Folded, Request, Resource, Span, Trace},
};
use anyhow::Result;
use bailey_journal::{Fact, FileLocks, InUse, Journal};
use bailey_kernel::Standpoint;
use bailey_protocol::{SessionId, WsPath};
use std::{collections::BTreeSet, process::ExitCode};

/// Entries that are read at once, and spans in one request.
const PAGE: u32 = 500;
const SPANS_MAX: usize = 500;

pub(super) async fn run(
    config: &Config,
    journal: &Journal,
    asked: &Export,
    printer: &Printer,
) -> Result<ExitCode> {
    let session = match &asked.session {
        Some(name) => Some(journal.conversation(name).await?.id),
        None => None,
    };
    let mut trace = Trace::new(config.toolbox(&WsPath("/".into()), &Standpoint::default()));
    let mut family = Family { root: session, all: session.into_iter().collect() };
    let mut spans: Vec<Span> = Vec::new();
    let (mut folded, mut resource) = (Folded::default(), Resource::of(""));
    let (mut after, mut is_more, mut left) = (0, true, None::<BTreeSet<SessionId>>);
    while is_more {
        let entries = journal.outline(after, PAGE).await?;
        let is_end = entries.len() < PAGE as usize;
        is_more = !is_end || left.is_none();
        let mut ended = Vec::new();
        for recorded in &entries {
            after = recorded.entry.seq.0;
            match &recorded.entry.fact {
                Fact::Genesis { nonce, .. } => resource = Resource::of(nonce),
                Fact::Delegated { parent, .. } => family.meet(recorded.entry.session, parent.session),
                _ => {}
            }
            trace.take(recorded, &mut ended);
        }
        match &left {
            // Who ended just now wrote how before it went, and that is read before anything counts as cut
            // off.
            None if is_end => left = Some(trace.sessions().filter(|it| !is_held(config, *it)).collect()),
            Some(left) if is_end => {
                trace.rest(&mut ended);
                trace.cut_off(|session| !left.contains(&session) || is_held(config, session), &mut ended);
            }
            _ => {}
        }
        spans.extend(ended.into_iter().map(|(_, span)| span).filter(|span| family.has(span.session)));
        if asked.folded {
            spans.drain(..).for_each(|span| folded.add(&span));
        }
        while spans.len() >= SPANS_MAX || !(is_more || spans.is_empty()) {
            let some: Vec<Span> = spans.drain(..SPANS_MAX.min(spans.len())).collect();
            printer.verbatim(&serde_json::to_string(&Request::new(&resource, &some))?);
        }
    }
    folded.lines().iter().for_each(|line| printer.verbatim(line));
    Ok(ExitCode::SUCCESS)
}

/// Whether a process works in a session. One without a folder is the owner's own, and its processes are
/// guests of the home; where nobody can say, one does.
fn is_held(config: &Config, session: SessionId) -> bool {
    let Some(home) = config.home() else { return true };
    let folder = home.join("sessions").join(session.to_string());
    let folder = if folder.is_dir() { folder } else { home.to_path_buf() };
    !matches!(InUse::of(&folder, &FileLocks::now().unwrap_or_default()), Ok(None))
}

/// A session and the conversations of its sub-agents; or all of them.
struct Family {
    root: Option<SessionId>,
    all: BTreeSet<SessionId>,
}

impl Family {
    fn meet(&mut self, child: Option<SessionId>, parent: SessionId) {
        if self.all.contains(&parent) {
            self.all.extend(child);
        }
    }

    fn has(&self, session: SessionId) -> bool {
        self.root.is_none() || self.all.contains(&session)
    }
}

//! `bailey audit export --otlp` and `--folded`: what was done, for other programs.

use crate::{
    cli::Export,
    compose,
    config::Config,
    print::Printer,
    telemetry::{Folded, Request, Resource, Span, Trace},
};
use anyhow::Result;
use bailey_journal::{Fact, Journal};
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
    let mut trace = Trace::new(compose::toolbox(config, &WsPath("/".into())));
    let mut family = Family { root: session, all: session.into_iter().collect() };
    let mut spans: Vec<Span> = Vec::new();
    let (mut folded, mut resource) = (Folded::default(), Resource::of(""));
    let (mut after, mut is_more) = (0, true);
    while is_more {
        let entries = journal.outline(after, PAGE).await?;
        is_more = entries.len() == PAGE as usize;
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
        if !is_more {
            trace.rest(&mut ended);
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

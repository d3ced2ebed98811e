//! `bailey approvals servers` and `revoke`: whose pages every session may fetch, and the way back.

use super::Desk;
use crate::{
    front::{one_line, short, short_question},
    person::person,
    print::Style,
};
use anyhow::{Result, bail};
use bailey_journal::{Answerer, ServerYes};
use serde_json::json;
use std::process::ExitCode;

impl Desk<'_> {
    pub(super) async fn servers(&self) -> Result<ExitCode> {
        let found = self.journal.servers().await?;
        if found.is_empty() && !self.printer.is_json() {
            self.printer.note("no server's pages are approved for all sessions");
        }
        for yes in &found {
            if self.printer.is_json() {
                self.printer.json(yes);
                continue;
            }
            let who = yes.person.as_ref().map_or(yes.by.as_str(), |person| person.name.as_str());
            let (session, question) = (short(&yes.session), short_question(yes.question));
            let how = format!("since {}, by {who}, in session {session} (question {question})", yes.since);
            self.printer.line(format!(
                "{}  {}",
                self.printer.paint(Style::Bold, &one_line(&yes.server)),
                self.printer.paint(Style::Dim, &one_line(&how)),
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) async fn revoke(&self, name: &str, why: &str) -> Result<ExitCode> {
        let mut found = self.journal.servers().await?;
        found.retain(|yes| is_named(yes, name));
        if found.is_empty() {
            bail!(
                "the pages of `{name}` are not approved; `bailey approvals servers` lists the approved \
                 servers"
            );
        }
        for ServerYes { server, question, session, .. } in found {
            self.mint.revoke(session, question, Answerer::owner(Some(person())), why).await?;
            if self.printer.is_json() {
                self.printer.json(&json!({ "server": server, "question": question, "session": session }));
                continue;
            }
            let server = self.printer.paint(Style::Plain, &one_line(&server));
            self.printer.line(format!("taken back: {server}"));
        }
        self.printer.note("every session asks again before it fetches a page there");
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether a person means it: as it is listed, or by its name alone.
fn is_named(yes: &ServerYes, name: &str) -> bool {
    let place = yes.server.split_once("://").map_or(yes.server.as_str(), |(_, place)| place);
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    [yes.server.as_str(), place, host].contains(&name.trim_end_matches('/').to_lowercase().as_str())
}

//! Which earlier session a conversation continues: the newest of the project, one that the person picks, or
//! one that follows from the session before.

use super::{
    Args, export,
    handoff::{Handoff, Onward},
};
use crate::{
    clock,
    front::{pick_without_signals, short},
    home::Home,
    place::origin,
    print::Printer,
    project,
};
use anyhow::{Result, bail};
use bailey_journal::{OWNER, SessionInfo};

/// The most sessions in the list.
const LISTED_MAX: usize = 200;

/// Resolves `--continue`, `--resume` without a name, and a wish of the process before.
///
/// # Errors
/// When there is nothing to continue, or no terminal to pick on.
pub(super) async fn choose(
    home: &Home,
    chat: &mut Args,
    handoff: &mut Handoff,
    printer: &Printer,
) -> Result<()> {
    if let Some((onward, session)) = handoff.onward.take() {
        let done = match onward {
            Onward::Fork => fork(home, &session.to_string(), printer).await,
            Onward::Export => export::write(home, session, printer).await.map(|()| session.to_string()),
        };
        let next = done.unwrap_or_else(|error| {
            printer.warn(&format!("{error:#}"));
            session.to_string()
        });
        // The options of the first session were for that one.
        chat.options.forget_session();
        (chat.resume, chat.continued, chat.directory) = (Some(next), false, None);
        handoff.is_first = true;
        return Ok(());
    }
    let picks = chat.resume.as_deref() == Some("");
    if !picks && !chat.continued {
        return Ok(());
    }
    chat.resume = None;
    let is_continued = std::mem::take(&mut chat.continued);
    if !handoff.is_first {
        return Ok(());
    }
    let journal = crate::journal(home, printer).await?;
    let mut sessions = journal.sessions().await?;
    sessions.retain(|session| session.principal == OWNER && !session.title.is_empty());
    for session in &mut sessions {
        if let Some(project) = origin(home, session.id) {
            session.workspace = project;
        }
    }
    let here = project::find(chat.directory.as_deref(), home).map(|(_, workspace)| workspace).ok();
    let of_here = |session: &&SessionInfo| here.as_ref().is_none_or(|here| session.workspace == *here);
    let mut found: Vec<&SessionInfo> = sessions.iter().filter(of_here).take(LISTED_MAX).collect();
    if is_continued {
        match found.first() {
            Some(newest) => chat.resume = Some(newest.id.to_string()),
            None => printer.note("there is no earlier conversation in this project; a new one begins"),
        }
        return Ok(());
    }
    let is_elsewhere = found.is_empty();
    if is_elsewhere {
        found = sessions.iter().take(LISTED_MAX).collect();
    }
    if found.is_empty() {
        bail!("there is no earlier conversation yet: `bailey chat` begins one");
    }
    let row = |session: &&SessionInfo| {
        let updated = clock::local(session.updated);
        let place = if is_elsewhere { format!("  ({})", session.workspace) } else { String::new() };
        format!("{}  {updated}  {}{place}", short(&session.id), session.title)
    };
    let rows: Vec<String> = found.iter().map(row).collect();
    let Some(picked) = pick_without_signals(printer, "Which conversation goes on?", &rows).await else {
        bail!("nothing was picked");
    };
    chat.resume = found.get(picked).map(|session| session.id.to_string());
    Ok(())
}

async fn fork(home: &Home, name: &str, printer: &Printer) -> Result<String> {
    let journal = crate::journal(home, printer).await?;
    let forked = crate::fork::fork(home, &journal, &journal.session(name).await?, None).await?;
    let (new, old) = (short(&forked.id), short(&forked.from));
    printer.note(&format!("this is session {new}, a copy of {old}"));
    if forked.left > 0 {
        printer.note(&format!("the changes of {old} that were not applied stay in {old}"));
    }
    Ok(forked.id.to_string())
}

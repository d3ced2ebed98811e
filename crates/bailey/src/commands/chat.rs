//! `bailey chat`: a conversation, turn after turn.

use crate::{
    cli::{self, Approve, TurnOptions},
    compose::{self, Keys, Open, Session},
    config::Config,
    exit,
    front::{Asker, Chat, Front, Leave},
    home::Home,
    print::Printer,
    project,
};
use anyhow::Result;
use bailey_agent::TurnEnd;
use bailey_protocol::{SessionId, WsPath};
use bailey_runtime::{HostError, Opening};
use std::{path::PathBuf, process::ExitCode};
use tokio::sync::mpsc;

/// Ops that may wait for the host.
const OPS_WAITING_MAX: usize = 64;

pub(super) async fn run(home: &Home, chat: cli::Chat, printer: &Printer) -> Result<ExitCode> {
    let (root, workspace, opening) = place(home, &chat, printer).await?;
    let mut options = chat.options;
    let asker = Asker::new(options.approve == Approve::Never);
    let yard = Yard { home, root, workspace, unattended: asker.is_nobody() };
    let mut open = yard.open(opening, &options, printer).await?;
    let mut front: Option<Front<'_>> = None;
    loop {
        let Open { mut host, kernel, events, .. } = open;
        super::run::reveal(&kernel, &host, &options, &yard.workspace).await?;
        let (ops, mut inbox) = mpsc::channel(OPS_WAITING_MAX);
        let front = match &mut front {
            Some(front) => {
                front.connect(events, ops);
                front
            }
            None => {
                let mut new = Front::new(printer, events, ops, asker, options.verbose)?;
                new.converse(Chat::new(printer, home.history(), yard.models()?)?)?;
                front.insert(new)
            }
        };
        let last = front.during(host.serve(&mut inbox)).await;
        let session = host.session();
        // Its lock goes with it: the next one may be the same session.
        drop((host, kernel));
        let left = front.left();
        (open, options) = match next(&yard, left, session, &options, printer).await {
            Next::Open(open, options) => (*open, options),
            Next::Again(error) => {
                front.say_own(&format!("  {error:#}"));
                (yard.open(Opening::Resume(session), &options, printer).await?, options)
            }
            Next::End => return end(front, last),
        };
    }
}

/// What follows a session.
enum Next {
    Open(Box<Open>, TurnOptions),
    /// The same once more, because of this.
    Again(anyhow::Error),
    End,
}

async fn next(
    yard: &Yard<'_>,
    left: Leave,
    session: SessionId,
    options: &TurnOptions,
    printer: &Printer,
) -> Next {
    let mut options = options.clone();
    let opening = match left {
        Leave::Quit => return Next::End,
        Leave::Clear => compose::new_session().map(Opening::New),
        Leave::Model(name) => {
            options.model = Some(name);
            Ok(Opening::Resume(session))
        }
    };
    let opened = match opening {
        Ok(opening) => yard.open(opening, &options, printer).await,
        Err(error) => Err(error),
    };
    match opened {
        Ok(open) => Next::Open(Box::new(open), options),
        Err(error) => Next::Again(error),
    }
}

fn end(front: &Front<'_>, last: Result<Option<TurnEnd>, HostError>) -> Result<ExitCode> {
    crate::front::restore();
    front.tell_story();
    if let Some(code) = front.ending() {
        return Ok(ExitCode::from(code));
    }
    last?;
    Ok(ExitCode::from(exit::DONE))
}

/// Where the conversation takes place.
struct Yard<'a> {
    home: &'a Home,
    root: PathBuf,
    workspace: WsPath,
    unattended: bool,
}

impl Yard<'_> {
    async fn open(&self, opening: Opening, options: &TurnOptions, printer: &Printer) -> Result<Open> {
        let mut config = Config::load(self.home)?;
        config.narrow(self.home, &self.root, printer)?;
        let keys = Keys::load(self.home, &config, printer)?;
        let revealed = match opening {
            Opening::New(_) => Vec::new(),
            Opening::Resume(id) | Opening::Visit(id) => {
                compose::journal(self.home, &keys).await?.0.revealed(id).await?
            }
        };
        compose::open(Session {
            home: self.home,
            config: &config,
            keys,
            workspace: self.workspace.clone(),
            opening,
            options: Some(options),
            unattended: self.unattended,
            revealed,
            is_scratch: false,
            // Who is bound can open no other session, and a conversation may go on in one.
            is_bound: false,
        })
        .await
    }

    /// What a person may name after `/model`: the configured one, and each provider for its models.
    fn models(&self) -> Result<Vec<String>> {
        let config = Config::load(self.home)?;
        let providers = config.providers.keys().map(|name| format!("{name}/"));
        Ok(config.model.iter().cloned().chain(providers).collect())
    }
}

/// The project, and a new session or the one that goes on.
async fn place(home: &Home, chat: &cli::Chat, printer: &Printer) -> Result<(PathBuf, WsPath, Opening)> {
    if let Some(name) = &chat.resume {
        let info = super::journal(home, printer).await?.session(name).await?;
        project::still_there(&info.workspace)?;
        let root = PathBuf::from(&info.workspace.0);
        return Ok((root, info.workspace, Opening::Resume(info.id)));
    }
    let (root, workspace) = project::find(chat.directory.as_deref(), home)?;
    project::remarks(&root).iter().for_each(|remark| printer.warn(remark));
    Ok((root, workspace, Opening::New(compose::new_session()?)))
}

//! `bailey chat`: a conversation, turn after turn. Each session of it has a process of its own
//! (`parent.rs`), which binds itself like the process of `bailey run`.

mod earlier;
mod export;
mod handoff;
pub(super) mod parent;
pub(super) mod remote;
pub mod server;
mod welcome;

pub use parent::keep;

use crate::{
    HostError, Opening, TurnOptions,
    compose::{self, Keys, OpenSession, Session},
    config::{Config, Provider},
    exit,
    front::{Asker, Chat, Front, History},
    home::Home,
    place::{origin, standpoint},
    print::Printer,
    project,
    schedules::Schedules,
};
use anyhow::Result;
use bailey_agent::TurnEnd;
use bailey_kernel::{Confined, Standpoint};
use bailey_protocol::WsPath;
use handoff::Handoff;
use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    process::ExitCode,
};
use tokio::sync::mpsc;

/// The arguments of `bailey chat`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Continue this session, given by its name or its last digits; without a name, pick one from a list
    #[arg(
        long, value_name = "SESSION", conflicts_with = "directory", num_args = 0..=1,
        default_missing_value = "", require_equals = false
    )]
    pub(crate) resume: Option<String>,
    /// Continue the newest conversation in this project
    #[arg(long = "continue", visible_alias = "last", conflicts_with_all = ["resume", "warm", "no_sandbox"])]
    pub(crate) continued: bool,
    /// Work in this directory's repository
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Use no walls: commands and changes happen directly on this machine, and each one asks first
    #[arg(long, conflicts_with = "resume")]
    pub(crate) no_sandbox: bool,
    /// Begin in a workspace that `bailey prewarm add` prepared
    #[arg(long, conflicts_with_all = ["resume", "no_sandbox"])]
    pub(crate) warm: bool,
    /// Skip the questions of the first conversation in a home
    #[arg(long)]
    pub(crate) no_onboarding: bool,
    /// Run in this terminal alone, even when the daemon runs
    #[arg(long)]
    pub(crate) alone: bool,
    /// Private: the schedule whose time this session is, and which sets the rights of its agent
    #[arg(long, hide = true, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) schedule: Option<String>,
    /// Private: the page or a channel begins the session
    #[arg(long, hide = true)]
    pub(crate) unattended: bool,
    #[command(flatten)]
    pub(crate) options: TurnOptions,
}

impl Args {
    /// Whether the conversation has a model of its own: the one that was named, or that of a session.
    pub fn has_model(&self) -> bool {
        self.options.model.is_some() || self.resume.is_some() || self.continued
    }

    /// Why no conversation can begin in this place, if so.
    pub fn not_here(&self, home: &Home) -> Option<anyhow::Error> {
        if self.resume.is_some() {
            return None;
        }
        project::find(self.directory.as_deref(), home).err()
    }
}

/// Ops that may wait for the host.
const OPS_WAITING_MAX: usize = 64;
/// The note that a new session does not use the values of `--reveal` and `--pin`: they were for the session
/// before.
const ANEW: &str = "--reveal and --pin were for the session before; they do not apply to this new session";

/// Serves one session of a conversation.
pub async fn run(home: &Home, mut chat: Args, handoff: &str, printer: &Printer) -> Result<ExitCode> {
    // When the parent ends for any reason, this process gets SIGTERM. It must not stay behind and use a
    // terminal that belongs to another program by then.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    let mut handoff = Handoff::take(handoff)?;
    earlier::choose(home, &mut chat, &mut handoff, printer).await?;
    let is_somebody_there = io::stdin().is_terminal() && io::stdout().is_terminal() && !printer.is_json();
    if handoff.is_first && is_somebody_there && !chat.no_onboarding && chat.resume.is_none() {
        welcome::welcome(home, printer)?;
    }
    let daemon = match handoff.lost {
        // When input is a pipe, it is not known how much of it the lost process has read.
        Some(session) if !io::stdin().is_terminal() => {
            return Err(remote::lost(home, session).await);
        }
        Some(session) => Some(remote::back(home, session, printer).await?),
        None => remote::daemon(home, &chat)?,
    };
    if let Some(daemon) = daemon {
        return remote::run(home, chat, handoff, daemon, printer).await;
    }
    let NextSession { home, root, workspace, standpoint, opening, confined } =
        place(home, &chat, handoff.is_first, printer).await?;
    let home = &home;
    let (Opening::New(id) | Opening::Resume(id) | Opening::Visit(id)) = opening;
    handoff.serves(id)?;
    let mut options = chat.options;
    options.model = handoff.model.clone().or(options.model);
    if !handoff.is_first && options.is_of_one_session() {
        options.forget_session();
        printer.note(ANEW);
    }
    let mut config = Config::load(home)?;
    printer.notes(config.narrow(home, &root)?);
    config.spend(options.tokens);
    let asker = Asker::compliant(options.approve, compose::is_compliance(&config)?)?;
    let keys = Keys::load(home, &config, printer)?;
    let revealed = match opening {
        Opening::New(_) => Vec::new(),
        Opening::Resume(id) | Opening::Visit(id) => {
            compose::journal(home, &keys).await?.0.revealed(id).await?
        }
    };
    let is_terminal = io::stdin().is_terminal();
    let history = if is_terminal { History::open(&home.history()) } else { History::default() };
    let session = Session {
        options: Some(&options),
        unattended: asker.is_nobody(),
        revealed,
        standpoint,
        any_model: true,
        is_direct: chat.no_sandbox,
        confined,
        ..Session::new(home, &config, keys.clone(), workspace.clone(), opening)
    };
    let OpenSession { mut host, kernel, events, remarks, unenforced, witness, reveals, .. } =
        compose::open(session).await?;
    remarks.iter().for_each(|remark| printer.warn(remark));
    super::run::tell_unwalled(printer, chat.no_sandbox);
    if handoff.is_first {
        super::run::tell_unenforced(printer, &unenforced);
    }
    super::run::reveal(&kernel, &host, reveals).await?;
    super::run::pin(&mut host, &options).await?;
    let (ops, mut inbox) = mpsc::channel(OPS_WAITING_MAX);
    let mut front = Front::new(printer, events, ops, asker, options.verbose)?;
    if chat.no_sandbox {
        front.has_no_layer();
    }
    front.converse(Chat::new(printer, history, models(home, &config, &keys))?)?;
    let work = async {
        host.recall().await?;
        host.serve(&mut inbox).await
    };
    let last = front.during(work).await;
    host.quiet().await;
    compose::sign(kernel.journal(), witness.as_ref(), Some((&kernel, &host.owner())), printer).await;
    end(&mut front, last, handoff)
}

fn end(
    front: &mut Front<'_>,
    last: Result<Option<TurnEnd>, HostError>,
    handoff: Handoff,
) -> Result<ExitCode> {
    crate::front::restore();
    let leave = front.left();
    if front.has_story(&leave) {
        front.tell_story();
    }
    if let Some(code) = front.ending() {
        return Ok(ExitCode::from(code));
    }
    let model = front.turned().map(str::to_owned).or_else(|| handoff.model.clone());
    if let Some(code) = handoff.go_on(&leave, model.as_deref())? {
        return Ok(code);
    }
    last?;
    Ok(ExitCode::from(exit::DONE))
}

/// The names that a person can give after `/model`: the configured model, and of each provider that has its
/// key or needs none, its name and the models that the catalogue knows. A catalogue with a mistake offers no
/// models here; the session tells the mistake.
fn models(home: &Home, config: &Config, keys: &Keys) -> Vec<String> {
    let catalogue = compose::catalogue(home).ok();
    let mut all: Vec<String> = config.model.iter().cloned().collect();
    let is_usable = |provider: &Provider| provider.key_env.as_deref().is_none_or(|key| keys.has(key));
    for (name, provider) in config.providers.iter().filter(|(_, provider)| is_usable(provider)) {
        all.push(format!("{name}/"));
        let known = catalogue.iter().flat_map(|catalogue| catalogue.names(&provider.base_url));
        all.extend(
            known.map(|model| format!("{name}/{model}")).filter(|it| Some(it) != config.model.as_ref()),
        );
    }
    all
}

/// Where a conversation's next session is, and whose it is.
struct NextSession {
    /// The home as the session's agent has it.
    home: Home,
    root: PathBuf,
    workspace: WsPath,
    /// See [`Session::standpoint`].
    standpoint: Option<Standpoint>,
    opening: Opening,
    /// The rights of the agent in a new session that belongs to a schedule.
    confined: Option<Confined>,
}

/// Finds the project, and the session: a new one or the one that goes on.
async fn place(home: &Home, chat: &Args, is_first: bool, printer: &Printer) -> Result<NextSession> {
    if let Some(name) = &chat.resume {
        let journal = super::journal(home, printer).await?;
        let mut info = journal.session(name).await?;
        let home = super::home_of(home, &journal, info.id).await?;
        info.workspace = origin(&home, info.id).unwrap_or(info.workspace);
        project::still_there(&info.workspace)?;
        let root = PathBuf::from(&info.workspace.0);
        let opening = if is_first { Opening::Resume(info.id) } else { Opening::New(compose::new_session()?) };
        // The next session has the standpoint of the named session.
        let standpoint = if is_first { None } else { Some(standpoint(&home, info.id)?) };
        return Ok(NextSession {
            home,
            root,
            workspace: info.workspace,
            standpoint,
            opening,
            confined: None,
        });
    }
    let (root, workspace) = project::find(chat.directory.as_deref(), home)?;
    if is_first {
        project::remarks(&root).iter().for_each(|remark| printer.warn(remark));
    }
    let opening = match chat.warm && is_first {
        true => Opening::Resume(super::prewarm::take(home, &root, printer)?),
        false => Opening::New(compose::new_session()?),
    };
    let confined = match &chat.schedule {
        // Takes exactly this schedule: another one with the same name may give other rights than this task
        // was given.
        Some(of) => {
            let (name, id) = of.split_once('@').unwrap_or((of, ""));
            Schedules::of(home)?.still(name, id)?.confined(name)
        }
        None => None,
    };
    let standpoint = Some(project::standpoint(chat.directory.as_deref(), &workspace)?);
    Ok(NextSession { home: home.clone(), root, workspace, standpoint, opening, confined })
}

//! The owner's own actions, without an agent: asking a provider, keeping an uplink to a server, changing a
//! rule. Each has its permit and its entry, like an agent's action.

use super::{
    EVENTS_WAITING_MAX, Keys, command_line, door, journal, kernel_config, models, policy, rules::with_binding,
};
use crate::{
    config::Config,
    confinement,
    exit::Mistyped,
    extensions::Extensions,
    home::Home,
    person::person,
    policy_update::{self, Law},
    print::Printer,
    program,
};
use anyhow::{Result, bail};
use bailey_egress::UplinkEnd;
use bailey_journal::{
    Answerer, BeginError, Clock as _, GuestLock, Holder, Journal, JournalFile, NewSession, OWNER, SystemClock,
};
use bailey_kernel::{Acted, Kernel, Scope};
use bailey_policy::file;
use bailey_protocol::{Action, Amendment, Answer, Digest, Event, SessionId, Status, Uplink as Way, WsPath};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::mpsc;

/// The session of the owner's own questions to providers: one for all of them.
pub(crate) fn owner_session() -> SessionId {
    SessionId::new(0, [0; 10])
}

/// Whether a session belongs to Bailey and not to an agent: the owner's session, the rules' session, or the
/// session of a channel's or the collector's uplink. The time in their names is 0.
pub fn is_of_bailey(session: SessionId) -> bool {
    session < SessionId::new(1, [0; 10])
}

/// The owner's own authority, with the door to these endpoints and nothing else: no walls, no tools. From
/// here on this process is bound. While the lock is held, an emergency stop finds this process.
pub async fn owner(
    home: &Home,
    config: &Config,
    keys: Keys,
    endpoints: &[bailey_llm::Endpoint],
) -> Result<(Kernel, Scope, mpsc::Receiver<Event>, GuestLock)> {
    let programs = program::kept(config)?;
    let file = JournalFile::open(&home.journal())?;
    let guest = GuestLock::take(&home.root)?;
    let extensions = Extensions::read(config);
    confinement::bind_client(home, config, &file)?;
    let (journal, mint) = Journal::start(file, keys.redactor.clone(), Arc::new(SystemClock)).await?;
    let (rules, _) = policy(home, &extensions)?;
    let door = door(config, &keys, &journal, endpoints)?;
    let (kernel, registrar) = Kernel::new(mint, rules, kernel_config(home, config, programs)).await?;
    registrar.register(vec![Arc::new(door)]);
    let workspace = WsPath(home.root.display().to_string());
    let session = owner_session();
    open_owners(&journal, session, &workspace).await?;
    let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
    let connection = registrar.connect(session, workspace, sender);
    Ok((kernel, registrar.owner(&connection), events, guest))
}

/// A way to the servers of one action, which is open as long as the action runs.
pub struct OpenUplink {
    kernel: Kernel,
    owner: Scope,
    way: Action,
    pub uplink: UplinkEnd,
    /// Keeps the channel open; the events of the uplink are not shown.
    _events: mpsc::Receiver<Event>,
    /// An emergency stop finds this process by this lock.
    _guest: GuestLock,
}

impl OpenUplink {
    /// The journal that holds the entry of the way.
    pub fn journal(&self) -> &Journal {
        self.kernel.journal()
    }

    /// Keeps the way open while `serve` runs; `what` names the way for people.
    ///
    /// # Errors
    /// When the rules do not allow the way, or it ends; or the errors of `serve`.
    pub async fn during<T>(self, what: &str, serve: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            acted = self.kernel.act(&self.owner, self.way, &[]) => match acted? {
                Acted::Done(output) => bail!("the {what}'s connection ended: {:?}", output.outcome().status),
                Acted::Denied(reasons) => {
                    Err(Mistyped(format!("the rules do not let this {what} be opened: {}", reasons.join("; "))).into())
                }
                Acted::Waiting(_) => Err(Mistyped(format!(
                    "the rules ask a human before this {what} is opened, and nobody sits here: allow it in a rule"
                ))
                .into()),
            },
            served = serve => served,
        }
    }
}

/// The owner's own authority, with an uplink to these servers and nothing else: no walls, tools or models.
/// From here on this process is bound. Besides the journal it writes `notes`, which lie in `folder`.
///
/// # Errors
/// When everything is stopped, or the rules or the journal cannot be read.
pub async fn uplink(
    home: &Home,
    config: &Config,
    keys: Keys,
    way: Way,
    folder: &Path,
    notes: [PathBuf; 2],
    answer_bytes_max: usize,
) -> Result<OpenUplink> {
    let programs = program::kept(config)?;
    let file = JournalFile::open(&home.journal())?;
    let guest = GuestLock::take(&home.root)?;
    let extensions = Extensions::read(config);
    confinement::bind_uplink(home, &file, &way, &notes)?;
    let (journal, mint) = Journal::start(file, keys.redactor.clone(), Arc::new(SystemClock)).await?;
    if let Some(since) = journal.stopped().await? {
        return Err(BeginError::Stopped { since: since.to_string() }.into());
    }
    let (rules, _) = policy(home, &extensions)?;
    let (executor, uplink) = models::uplink(config, &way, &keys, &journal, answer_bytes_max)?;
    let (kernel, registrar) = Kernel::new(mint, rules, kernel_config(home, config, programs)).await?;
    registrar.register(vec![executor]);
    let workspace = WsPath(folder.display().to_string());
    let mut of_name = [0; 10];
    of_name.iter_mut().zip(Digest::of(way.channel.as_bytes()).0).for_each(|(to, from)| *to = from);
    let session = SessionId::new(0, of_name);
    open_owners(&journal, session, &workspace).await?;
    let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
    let connection = registrar.connect(session, workspace, sender);
    let owner = registrar.owner(&connection);
    Ok(OpenUplink { kernel, owner, way: Action::Uplink(way), uplink, _events: events, _guest: guest })
}

/// The result of a change of the rules.
#[derive(Debug, Default)]
pub struct Amended {
    /// The entry of the policy that is in force now.
    pub entry: u64,
    /// Why the gate refused.
    pub refused: Option<Vec<String>>,
    /// Why the change failed.
    pub failed: Option<String>,
    /// Remarks about findings during the change.
    pub remarks: Vec<String>,
}

/// Changes a rule file as the owner, who has seen the meaning of the change and confirmed it (`why`). Then
/// puts the rules of the home into force.
pub async fn amend(
    home: &Home,
    config: &Config,
    keys: Keys,
    extensions: &Extensions,
    amendment: Amendment,
    why: String,
) -> Result<Amended> {
    let programs = program::kept(config)?;
    let lock = policy_update::lock(home, &holder(&keys)).await?;
    let (journal, mint) = journal(home, &keys).await?;
    let mut amended =
        Amended { remarks: policy_update::recover(home, &mint, &lock).await?, ..Amended::default() };
    // When the files in the home are not valid rules, only the rules that no file can lift decide.
    let rules = match policy(home, extensions) {
        Ok((rules, _)) => rules,
        Err(_) => with_binding(file::Parsed::default())?.0,
    };
    let law = Law::new(journal.seal(), home);
    let (kernel, registrar) = Kernel::new(mint, rules, kernel_config(home, config, programs)).await?;
    registrar.register(vec![Arc::new(law)]);
    let (session, workspace) = (policy_update::session(), WsPath(home.policy().display().to_string()));
    open_owners(&journal, session, &workspace).await?;
    // Events are dropped: the result is told at the end.
    let (sender, _) = mpsc::channel(1);
    let connection = registrar.connect(session, workspace, sender);
    let scope = registrar.owner(&connection);
    let mut acted = kernel.act(&scope, Action::Amend(amendment), &[]).await?;
    if let Acted::Waiting(question) = acted {
        let owner = Answerer::owner(Some(person()));
        kernel.answer(&connection, question, Answer::Yes, owner, &why).await?;
        acted = kernel.act_approved(&scope, question).await?;
    }
    match acted {
        Acted::Done(output) => match &output.outcome().status {
            Status::Done => {}
            Status::Failed { reason } => amended.failed = Some(reason.clone()),
            Status::Cancelled | Status::Unknown => amended.failed = Some("its end was not seen".into()),
        },
        Acted::Denied(reasons) => amended.refused = Some(reasons),
        Acted::Waiting(_) => amended.failed = Some("the rules ask for somebody else's yes".into()),
    }
    // Runs also when nothing was done: the rules in the files are the ones in force.
    registrar.adopt(policy(home, extensions)?.0).await?;
    amended.entry = journal.newest();
    Ok(amended)
}

/// Ends a change of the rules that was killed, and tells how far it came.
pub async fn recover_law(home: &Home, printer: &Printer) -> Result<()> {
    let Some(lock) = policy_update::idle(home, SystemClock.now()) else { return Ok(()) };
    let keys = Keys::load(home, &Config::load(home)?, printer)?;
    let (_, mint) = journal(home, &keys).await?;
    policy_update::recover(home, &mint, &lock).await?.iter().for_each(|told| printer.warn(told));
    Ok(())
}

fn holder(keys: &Keys) -> Holder {
    let command = keys.redactor.redact(&command_line()).text.into_owned();
    Holder { pid: std::process::id(), since: SystemClock.now(), command }
}

/// Opens a session of the owner, which may exist already.
async fn open_owners(journal: &Journal, session: SessionId, workspace: &WsPath) -> Result<()> {
    let new = NewSession {
        agent: None,
        confined: None,
        workspace: workspace.clone(),
        principal: OWNER.into(),
        model: String::new(),
    };
    Ok(journal.share_session(session, new).await?)
}

//! The composition root: chooses the concrete parts and puts them together.

mod gate;
mod keys;
mod models;
mod owner;
mod rules;

pub use gate::{Gate, gate};
pub use keys::{Keys, Named};
use models::{Models, forward, models};
pub use models::{by_role, catalogue, door, endpoint};
pub use owner::{amend, is_of_bailey, owner, recover_law, uplink};
pub use rules::{is_compliance, organisation, policy, rules, rules_of};

use crate::{
    Choose, Host, Opening, Parts, TurnOptions,
    agent_file::{AgentFile, Unread},
    clock,
    config::{Config, McpServer, Step, Witness},
    confinement,
    extensions::{Extensions, Programs},
    front::Answering,
    git::Git,
    home::{Home, write_private},
    identity::{self, Answers, Papers},
    mcp::Install,
    messenger::Messenger,
    notifier::Notifier,
    person::person,
    place::Place,
    policy_update,
    print::Printer,
    program, retention, reveal,
    web::Web,
    witness::Post,
};
use anyhow::{Context as _, Result};
use bailey_agent::{Loop, Patience, Retry};
use bailey_egress::{Authority, BoundKey, ForwardProxy};
use bailey_journal::{
    BeginError, Clock as _, Confined, Fact, FileLocks, InUse, Journal, JournalFile, Query, SystemClock,
};
use bailey_kernel::{
    Config as KernelConfig, Escalation, Executor, Instruction, Kernel, Scope, Standpoint, Tell,
};
use bailey_llm::{Cassette, Recording};
use bailey_peers::Peers;
use bailey_policy::Policy;
use bailey_protocol::{Event, SessionId, WsPath};
use bailey_sandbox::{Coming, Native, Shape, Walls};
use bailey_tools::MESSAGE_PEER;
use std::{collections::BTreeMap, fs, io, path::Path, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// How long a cancelled effect may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// How many events may wait for a slow front end.
const EVENTS_WAITING_MAX: usize = 1024;

/// The most of this process's own command line that others are told, in words and characters.
const COMMAND_WORDS_MAX: usize = 32;
const COMMAND_CHARS_MAX: usize = 160;
/// The file in a session's folder that holds the most tokens that the session may use up.
const BOUND: &str = "tokens";
/// The beginning of the private option of a conversation's processes.
pub const HANDOFF: &str = "--handoff=";

/// The standing instruction, with a text about the walls.
macro_rules! standing {
    ($walls:literal) => {
        concat!(
            "You are Bailey, an agent that works in a person's repository with the tools you are given.\n",
            $walls,
            "
Look before you change: read the files, run the tests. Make the smallest change that solves the task, then check it by
running what proves it. When a tool is denied, do not look for a way round: say what you needed and why.
When you are done, say in a few sentences what you changed and how you know that it works.
"
        )
    };
}

const INSTRUCTION: &str = standing!(
    "Everything you run is inside walls: commands see the project at its usual path, have no network but what they ask for
and the person allows, and cannot reach the person's home, keys or other files. What you change stays in a private layer until the person applies it."
);
const UNWALLED: &str = standing!(
    "There are no walls around what you run: commands and changes happen on the person's own machine at once, and cannot be taken back. A
person says yes to each command and each change of a file: make few of them, say why, and stay in the project."
);

const OF_COPY: &str = "the workspace is a private copy of the project; there is no network and no socket at all, $TMPDIR stands for /tmp, \
                       and secret-looking files are left out";

/// Opens only the journal, for commands that read it.
pub async fn journal(home: &Home, keys: &Keys) -> Result<(Journal, bailey_journal::Mint)> {
    Ok(Journal::open(&home.journal(), keys.redactor.clone(), Arc::new(SystemClock)).await?)
}

/// Ends a session's extensions and peers, signs the session's entries, and tells the witness. A failure is
/// reported, and undoes nothing.
pub async fn sign(
    journal: &Journal,
    witness: Option<&Post>,
    owner: Option<(&Kernel, &Scope)>,
    printer: &Printer,
) {
    // Telling a witness is an effect, which an extension may have to judge.
    if witness.is_none() {
        end_programs(owner, printer).await;
    }
    if let Err(error) = journal.checkpoint().await {
        printer.warn(&format!("the journal is not signed up to its end: {error}"));
    }
    if let Some(witness) = witness
        && let Err(error) = witness.deliver(journal, owner).await
    {
        printer.warn(&format!("{error:#}; it is told with the next session"));
    }
    if witness.is_some() {
        // The entries about the witness and about the end of the programs are signed with the next
        // session.
        end_programs(owner, printer).await;
    }
}

async fn end_programs(owner: Option<(&Kernel, &Scope)>, printer: &Printer) {
    if let Some((kernel, scope)) = owner
        && let Err(error) = kernel.end_programs(scope).await
    {
        printer.warn(&format!("the end of extensions and peers is not written: {error}"));
    }
}

/// The inputs for opening one session.
pub struct Session<'a> {
    /// Its home, with the agent that works.
    pub home: &'a Home,
    /// The configuration that is in force.
    pub config: &'a Config,
    /// The secrets and keys that were read.
    pub keys: Keys,
    /// The project.
    pub workspace: WsPath,
    /// Whether it begins, or is one of before.
    pub opening: Opening,
    /// Where the session's person stands; `None` for the standpoint of the last opening.
    pub standpoint: Option<Standpoint>,
    /// `None` when no turn will run.
    pub options: Option<&'a TurnOptions>,
    /// The MCP servers that are looked at, in a session that runs no turn.
    pub servers: BTreeMap<String, McpServer>,
    /// An installation of a server's program, in a session that runs no turn.
    pub install: Option<Install>,
    /// Whether a user can answer.
    pub unattended: bool,
    /// Whether a person may come hours later to answer, because no terminal began the session.
    pub is_patient: bool,
    /// Masked files that were revealed to the session before.
    pub revealed: Vec<WsPath>,
    /// Whether nothing of the session is kept.
    pub is_scratch: bool,
    /// Whether the person may turn to another model: the network door then leads to every provider whose key
    /// is there.
    pub any_model: bool,
    /// Whether there are no walls: commands run on this machine itself.
    pub is_direct: bool,
    /// Whether this process binds itself; a bound process cannot open a second session.
    pub is_bound: bool,
    /// The rights of the agent in a new session, when it acts by a token.
    pub confined: Option<Confined>,
}

impl<'a> Session<'a> {
    /// A session that runs no turn, asks no human and reveals nothing. Its process binds itself.
    pub fn new(home: &'a Home, config: &'a Config, keys: Keys, workspace: WsPath, opening: Opening) -> Self {
        Self {
            home,
            config,
            keys,
            workspace,
            opening,
            standpoint: None,
            options: None,
            servers: BTreeMap::new(),
            install: None,
            unattended: true,
            is_patient: false,
            revealed: Vec::new(),
            is_scratch: false,
            any_model: false,
            is_direct: false,
            is_bound: true,
            confined: None,
        }
    }
}

/// An open session, and its parts that commands need besides.
pub struct OpenSession {
    /// The session.
    pub host: Host,
    /// Its kernel.
    pub kernel: Kernel,
    /// Its events.
    pub events: mpsc::Receiver<Event>,
    /// Remarks for a person, about the place of the session's changes and about this machine's clock.
    pub remarks: Vec<String>,
    /// The limits that this process could not set for itself, because the kernel is too old.
    pub unenforced: Vec<&'static str>,
    /// The witness, when there is one and a way to it.
    pub witness: Option<Post>,
    /// Its peers.
    pub peers: Arc<Peers>,
    /// The installation that it is for.
    pub installed: Option<Install>,
    /// The files that the human reveals by flags.
    pub reveals: Vec<WsPath>,
    /// The door of the session's commands, when it runs commands.
    pub door: Option<Arc<ForwardProxy>>,
}

/// Puts the parts together and opens the session.
pub async fn open(mut session: Session<'_>) -> Result<OpenSession> {
    let programs = program::kept(session.config)?;
    let (Opening::New(id) | Opening::Resume(id) | Opening::Visit(id)) = session.opening;
    // The warden's start takes milliseconds, in which this process does other things.
    let coming = Coming::execute(Path::new("/proc/self/exe"))?;
    // Before anything else: when nothing can be written in the home, this call says so.
    let file = JournalFile::open(&session.home.journal())?;
    let place = Place::of(&session, id)?;
    session.workspace = place.workspace.clone();
    if matches!(session.opening, Opening::Resume(_)) {
        session.home.spend(id)?;
    }
    // Must run before this process binds itself: a bound process writes nothing there.
    let (config, of_bound) = bounded(&session, &place.folder)?;
    let session = Session { config: &config, ..session };
    // Must run before this process binds itself: it starts another process.
    let kept = if session.is_scratch { Vec::new() } else { retention::begin(session.home, session.config) };
    let extensions = Extensions::read(session.config);
    // Peers have tools, which only turns use.
    let (peers, mut servers) = match session.options {
        Some(options) => {
            let (peers, mut servers) = session.config.own_peers();
            servers.retain(|name, _| options.uses(name));
            (peers, servers)
        }
        None => (BTreeMap::new(), session.servers.clone()),
    };
    servers.retain(|_, server| server.is_for(&place.project));
    let mut settled = Programs::settle(
        session.home,
        &extensions,
        (&peers, &servers),
        (id, &place.project),
        session.config,
    )?;
    let installed = session.install.clone();
    if let Some(install) = &installed {
        settled.install(session.home, install)?;
    }
    let has_programs = !settled.is_empty();
    let of_programs = std::mem::take(&mut settled.remarks);
    // A visit runs no commands.
    let runs = !matches!(session.opening, Opening::Visit(_));
    let authority = runs.then(Authority::new).transpose()?;
    let trusted = authority.as_ref().map(|authority| authority.pem().to_owned());
    let reveals = reveal::named(&session, &place)?;
    let git = Git::of(&session.home.user, &place.project, place.standpoint.spelled.as_ref());
    let told = confinement::of_warden(
        &session,
        id,
        (&place, &git),
        &reveals,
        (std::mem::take(&mut settled.leases), std::mem::take(&mut settled.installed)),
        trusted,
    )?;
    coming.tell(&told)?;
    let idle = policy_update::idle(session.home, SystemClock.now());
    let record = session.options.and_then(|options| options.record.as_deref());
    let recording = record.map(recording).transpose()?;
    let witness = session.config.witness.as_ref().map(Post::to);
    // Reads the bytes now, because a bound process cannot reach them. It does not parse them before it is
    // bound, because an agent wrote them.
    let unread = Unread::of(session.home);
    let (papers, of_papers) = papers(&session, id, place.shape, &file)?;
    let person = person();
    let escalation = escalation(&session.config.approvals.escalation)?;
    let native = Arc::new(Native::new(coming.ready(&told)?));
    if runs {
        native.prepare(id)?;
    }
    // INVARIANT: the code after this point is bound when that is wanted. Before this point, no part of this
    // session has received anything from outside.
    let Place { folder, remark, shape, project, standpoint, .. } = place;
    let unenforced = confinement::bind(&session, &folder, &file, &settled, runs)?;
    let (own, left_out) = unread.own();
    let own = own.beside(papers.told()?);
    let Session {
        home,
        config,
        keys,
        workspace,
        opening,
        options,
        unattended,
        is_patient,
        any_model,
        is_direct,
        confined,
        ..
    } = session;
    let is_later = options.is_some_and(|options| options.approve == Answering::Later);
    let question_lasts = Duration::from_secs(match is_patient || is_later {
        true => config.approvals.unattended_seconds,
        false => config.approvals.answer_seconds,
    });
    let (journal, mint) = Journal::start(file, keys.redactor.clone(), Arc::new(SystemClock)).await?;
    #[cfg(feature = "controls")]
    let mint = crate::controls::breach(mint).await?;
    if let Some(since) = journal.stopped().await? {
        return Err(BeginError::Stopped { since: since.to_string() }.into());
    }
    // Checks the journal while the rest is put together; the first write waits for the check.
    let checked = journal.clone();
    tokio::spawn(async move { checked.sound().await });
    let cut_off = match &idle {
        Some(lock) => policy_update::recover(home, &mint, lock).await?,
        None => Vec::new(),
    };
    drop(idle);
    let missing = config.shown(home).1;
    let missing = missing
        .iter()
        .map(|path| format!("`{path}`, which config.toml has shown ([sandbox] read), is not there"));
    let of_own = left_out.iter().map(|why| format!("{why}; it is left out"));
    let remarks = remark
        .into_iter()
        .chain(of_own)
        .chain(missing)
        .chain(of_bound)
        .chain(of_papers)
        .chain(of_programs)
        .chain(kept)
        .chain(clock::remark(&journal).await)
        .chain(cut_off)
        .collect();
    let profile = config.calls.profile();
    // Rules that are read again get the same additions.
    let around = move |rules: Policy| {
        let rules = rules.with_profile(profile);
        if is_direct { rules.without_walls() } else { rules }
    };
    let rules = around(policy(home, &extensions)?.0);
    let path = std::env::var("PATH").unwrap_or_default();
    let adapts = AgentFile::new(journal.seal(), native.clone(), own.clone(), left_out.is_some());
    let of_web = native.clone();
    let walls = Walls::new(native, journal.seal(), home.user.display().to_string(), path);
    let (walls, gateway) = with_door(walls, authority, config, &keys, &journal)?;
    let of_commands = gateway.clone();
    let web = gateway.clone().map(|door| Web::new(door, of_web, journal.seal()));
    if let Opening::New(id) = opening {
        walls.begin(id);
    }
    let walls = Arc::new(walls);
    let runner = settled.run(&walls, journal.seal());
    let peers = Arc::new(Peers::new(journal.seal(), runner.clone()));
    peers.add(MESSAGE_PEER.into(), Arc::new(Messenger::new(journal.clone(), id)));
    let copied = (shape == Shape::Copied).then(|| project.display().to_string());
    let (kernel, registrar) = Kernel::new(
        mint,
        rules,
        KernelConfig { escalation, project: copied, question_lasts, ..kernel_config(home, config, programs) },
    )
    .await?;
    let of_home = home.clone();
    registrar.programs(runner);
    registrar.reread_rules(Box::new(move || {
        policy(&of_home, &extensions).map(|(policy, _)| around(policy)).map_err(|error| format!("{error:#}"))
    }));
    let choose = options.filter(|_| any_model).map(|options| choice(home, config, &keys, options));
    let (models, network, retry) = match options {
        Some(options) => {
            // A conversation with one provider does not go on with another unless the user asks for that.
            let before = match opening {
                Opening::Resume(id) => Some(journal.session(&id.to_string()).await?.model),
                Opening::New(_) | Opening::Visit(_) => None,
            };
            let chosen = (options, before.as_deref());
            let Models { by_role, door, retry } =
                models(home, config, &keys, chosen, recording, any_model, &workspace, &journal)?;
            (Some(by_role), Some(door), retry)
        }
        None => (None, to_witness(config, &keys, &journal)?, Retry::default()),
    };
    let mut executors: Vec<Arc<dyn Executor>> = vec![walls, peers.clone()];
    if options.is_some() {
        executors.push(Arc::new(adapts));
    }
    executors.extend(network);
    executors.extend(gateway.map(|door| door as Arc<dyn Executor>));
    executors.extend(web.map(|web| Arc::new(web) as Arc<dyn Executor>));
    registrar.register(executors);
    let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
    let host = Host::open(
        Parts {
            kernel: kernel.clone(),
            registrar,
            tools: config.tools(&workspace, &standpoint, vec![peers.clone()]),
            models,
            choose,
            brain: Arc::new(Loop { calls_max: config.tool_calls }),
            retry,
            instruction: instruction(config, &workspace, &standpoint, shape),
            own: options.map(|_| own),
            events: sender,
            workspace,
            standpoint,
            folder,
            agent: home.agent.clone(),
            confined,
            backend: (shape != Shape::Walled).then(|| shape.backend().to_owned()),
            command: command_line(),
            unattended,
            person: Some(person),
            commits_differ: git.differs(),
            patience: patience(config, options, is_patient),
        },
        opening,
    )
    .await?;
    if has_programs && options.is_some() {
        let (kernel, owner, peers) = (kernel.clone(), host.owner(), peers.clone());
        // The first question to an extension, and the first call of a peer, find a failure again and report
        // it.
        tokio::spawn(async move {
            kernel.start_programs(&owner).await.ok();
            peers.settle();
        });
    }
    Ok(OpenSession {
        host,
        kernel,
        events,
        remarks,
        unenforced,
        witness,
        peers,
        installed,
        reveals,
        door: of_commands,
    })
}

/// The configuration as it holds for a session, and a remark for a person about its limit. The session may
/// use up no more tokens than the `--tokens` at its beginning, or the latest `--tokens` since. The limit
/// binds each opening, by the page, by a chat, or by a daemon after a kill.
fn bounded(session: &Session<'_>, folder: &Path) -> Result<(Config, Option<String>)> {
    let mut config = session.config.clone();
    let Some(options) = session.options else { return Ok((config, None)) };
    let path = folder.join(BOUND);
    if let Some(tokens) = options.tokens {
        config.spend(Some(tokens));
        // The file of a session that another process works in is not changed: this opening fails.
        if let Ok(None) = InUse::of(folder, &FileLocks::now().unwrap_or_default()) {
            write_private(&path, tokens.to_string().as_bytes())?;
        }
        return Ok((config, None));
    }
    let kept = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((config, None)),
        kept => kept.with_context(|| format!("cannot read `{}`", path.display()))?,
    };
    let tokens = kept.trim().parse().with_context(|| format!("`{}` is damaged", path.display()))?;
    let before = config.budgets.session.tokens;
    config.spend(Some(tokens));
    let remark = format!(
        "the session may use up {tokens} tokens at most, as `--tokens` said: `bailey sessions resume` with another `--tokens` replaces that"
    );
    let is_lower = config.budgets.session.tokens != before;
    Ok((config, is_lower.then_some(remark)))
}

/// The papers of the home, with the facts of this session, and a remark for a person about them. The papers
/// are empty when no turn will run.
fn papers(
    session: &Session<'_>,
    id: SessionId,
    shape: Shape,
    file: &JournalFile,
) -> Result<(Papers, Option<String>)> {
    let Some(options) = session.options else { return Ok((Papers::default(), None)) };
    let (stopped, sessions) = file.standing(id)?;
    // The same choice as that of the session's models.
    let before = match session.opening {
        Opening::Resume(id) => file.model_of(id)?.filter(|model| session.config.find(model).is_ok()),
        Opening::New(_) | Opening::Visit(_) => None,
    };
    let by_key = || session.config.default_model(|key| session.keys.has(key)).ok();
    let model = options.model.clone().or(before).or_else(by_key);
    let tools = session.config.toolbox(&session.workspace, &Standpoint::default()).specs();
    let text = identity::text(&identity::State {
        config: session.config,
        agent: session.home.agent.as_deref(),
        shape,
        model: model.as_deref(),
        tools: tools.iter().map(|tool| bailey_protocol::ToolSpec::wire_name(&tool.name)).collect(),
        sessions,
        stopped,
        answers: match (session.unattended, options.approve) {
            (true, _) | (false, Answering::Never) => Answers::Unattended,
            (false, approve) if session.is_patient || approve == Answering::Later => {
                Answers::Later(session.config.approvals.unattended_seconds)
            }
            (false, _) => Answers::AtOnce,
        },
        today: clock::today(),
    });
    let text = session.keys.redactor.redact(&text).text.into_owned();
    // The session needs the text, but not the file on disk.
    let remark = identity::renew(session.home, &text).err().map(|error| format!("{error:#}"));
    Ok((Papers::of(session.home, text), remark))
}

/// Finds another model by the name that the person gives.
fn choice(home: &Home, config: &Config, keys: &Keys, options: &TurnOptions) -> Choose {
    let is_played = options.model.as_deref().and_then(Cassette::file).is_some();
    let is_recorded = is_played || options.record.is_some();
    let (home, config, keys) = (home.clone(), config.clone(), keys.clone());
    Box::new(move |name| {
        if is_recorded {
            return Err(format!(
                "a recording holds one conversation with one model: begin another one with `--model {name}`"
            ));
        }
        by_role(&home, &config, &keys, name).map_err(|error| format!("{error:#}"))
    })
}

/// Adds the commands' door to the walls, and returns the executor of the door's requests. Without an
/// authority no command runs, and the walls stay as they are.
fn with_door(
    walls: Walls,
    authority: Option<Authority>,
    config: &Config,
    keys: &Keys,
    journal: &Journal,
) -> Result<(Walls, Option<Arc<ForwardProxy>>)> {
    let Some(authority) = authority else { return Ok((walls, None)) };
    let door = forward(config, authority, keys, journal)?;
    Ok((walls.with_gateway(door.clone()), Some(door)))
}

/// The door of a session without models: it leads to the witness, when that is a server.
fn to_witness(config: &Config, keys: &Keys, journal: &Journal) -> Result<Option<Arc<dyn Executor>>> {
    let is_server = matches!(config.witness, Some(Witness::Url(_)));
    let door = is_server.then(|| door(config, keys, journal, &[])).transpose()?;
    Ok(door.map(|door| Arc::new(door) as Arc<dyn Executor>))
}

/// The command line of this process, cut to fit a message.
fn command_line() -> String {
    let mut words: Vec<String> = std::env::args().take(COMMAND_WORDS_MAX).collect();
    // The handoff option is private to the processes of a conversation.
    words.retain(|word| !word.starts_with(HANDOFF));
    let line: String = words.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.chars().take(COMMAND_CHARS_MAX).collect()
}

fn recording(file: &Path) -> Result<Recording> {
    Recording::open(file)
        .with_context(|| format!("cannot write `{}`: choose another file to record to", file.display()))
}

/// The escalation steps of an unanswered question, and the process that reports them.
fn escalation(steps: &[Step]) -> Result<Escalation> {
    let after = steps.iter().map(|step| Duration::from_secs(step.after_seconds)).collect();
    let notifier = Notifier::start(steps)?;
    let tell =
        notifier.map(|notifier| -> Tell { Arc::new(move |step, id, kind| notifier.tell(step, id, kind)) });
    Ok(Escalation { after, tell })
}

/// The configuration of a kernel for this home.
pub fn kernel_config(home: &Home, config: &Config, programs: Vec<String>) -> KernelConfig {
    KernelConfig {
        user_home: home.user.display().to_string(),
        bailey_home: home.root.display().to_string(),
        programs,
        question_lasts: Duration::from_secs(config.approvals.answer_seconds),
        room_waits: Duration::from_secs(config.approvals.patience_seconds),
        budgets: config.budgets.clone(),
        grace: GRACE,
        draw: bailey_tools::card,
        escalation: Escalation::default(),
        narrowing: config.approvals.narrowing(),
        calls: config.calls.digest(),
        project: None,
    }
}

/// How long a turn waits for a human. An unattended turn ends without the answers that are open, and
/// goes on when they are there.
fn patience(config: &Config, options: Option<&TurnOptions>, is_patient: bool) -> Patience {
    match options.map(|options| options.approve) {
        Some(Answering::Later) => Patience { call: Duration::ZERO, at_end: false },
        _ => Patience { call: Duration::from_secs(config.approvals.patience_seconds), at_end: !is_patient },
    }
}

/// The isolation between a session's effects and the host at the last opening.
///
/// # Errors
/// When the journal cannot be read.
pub async fn last_shape(journal: &Journal, session: SessionId) -> Result<Shape> {
    let entries = journal.entries(Query { session: Some(session), ..Query::default() }).await?;
    let mut opened = entries.iter().rev().map(|it| &it.entry.fact);
    Ok(shape_of(
        opened
            .find_map(|fact| match fact {
                Fact::Walls { backend } => Some(Some(backend.as_str())),
                Fact::SessionOpened { .. } | Fact::SessionResumed { .. } => Some(None),
                _ => None,
            })
            .flatten(),
    ))
}

/// The isolation between a session's effects and the host, by the entry that names it, if there is one.
pub fn shape_of(backend: Option<&str>) -> Shape {
    let less = [Shape::Copied, Shape::Direct].into_iter().find(|shape| Some(shape.backend()) == backend);
    less.unwrap_or(Shape::Walled)
}

/// The standing instruction.
pub fn instruction(
    config: &Config,
    workspace: &WsPath,
    standpoint: &Standpoint,
    shape: Shape,
) -> Instruction {
    let text = if shape == Shape::Direct { UNWALLED } else { INSTRUCTION };
    let mut instruction = standpoint.told(Instruction::fixed(text), workspace);
    if shape == Shape::Copied {
        instruction = instruction.with_fact("Inside", OF_COPY);
    }
    let shown = |key: &BoundKey| format!("${} at {}", key.variable, key.at);
    let keys: Vec<String> = config.network.keys.iter().map(shown).collect();
    if keys.is_empty() {
        return instruction;
    }
    let told = "a command with `network` shows such a variable where the key belongs, and the network door puts the key in";
    instruction.with_fact("Stand-ins for keys", &format!("{} ({told})", keys.join(", ")))
}

/// The codec of a configured model, `PROVIDER/MODEL`: it shows the request that would be sent, but cannot
/// send it.
pub fn codec(home: &Home, config: &Config, name: &str) -> Result<Arc<bailey_llm::Codec>> {
    Ok(bailey_llm::provider(endpoint(config, &catalogue(home)?, name)?))
}

/// Makes the name of a new session.
pub fn new_session() -> Result<SessionId> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(SessionId::new(u64::try_from(now.as_millis())?, random))
}

//! Runs a session once more from its journal: the true turn loop, kernel, tools, screen and rules, over a
//! throwaway journal. The executor and the models answer from the recording. No model is asked, nothing is
//! performed, no process starts.

mod again;
pub mod command;
mod compare;
mod draft;
mod replayer;
mod tape;

pub(crate) use replayer::Divergence;

pub use again::{Comparison, EffectRecord};
pub use draft::Draft;

use anyhow::{Context as _, Result, bail};
use bailey_agent::{Loop, Models, Own, Patience, Retry, Route};
use bailey_home::{
    config::Config,
    home::{Home, make_private},
    program,
};
use bailey_journal::{Answerer, Bound, Clock, Fact, Journal, JournalError, Mint, Query, SystemClock};
use bailey_kernel::{Kernel, Provider};
use bailey_llm::{Endpoint, Wire};
use bailey_policy::Policy;
use bailey_protocol::{Answer, ApprovalId, Event, Happening, Op, WsPath};
use bailey_sandbox::Shape;
use bailey_session::{
    Host, HostError, Opening, Parts,
    compose::{self, Keys},
    place,
};
use replayer::{Recording, Replayed, Replayer};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tape::{PaperContents, Step, Tape};
use tokio::sync::mpsc;

/// How often a journal is copied if its chain does not hold, because another process may be writing to it.
const COPIES_MAX: u32 = 3;
/// How many events may wait.
const EVENTS_WAITING_MAX: usize = 1024;
/// Longer than any session took.
const LONG: Duration = Duration::from_secs(3_000_000);
/// How long nothing may happen: playing a recording takes no time.
const STANDSTILL: Duration = Duration::from_secs(60);
/// How long a call waits for a person if some answers came at once and others late.
const BOTH: Duration = Duration::from_secs(3);

/// The result of a replay.
pub(crate) struct Replay {
    /// Entries that were compared.
    pub(crate) entries: usize,
    /// Effects whose recorded result was returned.
    pub(crate) effects: usize,
    /// Where the replay parted from the recording.
    pub(crate) divergence: Option<Divergence>,
    /// The entry from which on the session could not be run again, and why.
    pub(crate) end: Option<(u64, &'static str)>,
}

/// Runs a session again.
///
/// # Errors
/// When there is no such session, it cannot be run again at all, or it stands still.
pub(crate) async fn replay(
    home: &Home,
    config: &Config,
    keys: &Keys,
    journal: &Journal,
    folder: &PrivateFolder,
    rules: impl Fn() -> Result<Policy>,
    session: &str,
) -> Result<Replay> {
    let tape = Tape::read(journal, session).await?;
    let recording = Recording::of(&tape);
    let (inlet, ops) = mpsc::channel(EVENTS_WAITING_MAX);
    let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
    let person = Person { recording: recording.clone(), ops: inlet.clone() };
    let stage =
        Stage { home, config, keys, tape: &tape, recording: &recording, folder, rules, inlet, sender };
    let played = tokio::select! {
        played = stage.play(ops) => played,
        () = person.listen(events) => bail!("it stands still: nothing has happened for {} s", STANDSTILL.as_secs()),
    };
    let (again, _) = stage.journal().await?;
    let now = again.entries(Query { session: Some(tape.info.id), ..Query::default() }).await?;
    let parted = compare::first(&tape.entries, &now, &recording);
    let divergence = [parted, recording.divergence()].into_iter().flatten().min_by_key(|it| it.seq);
    if recording.divergence().is_none() {
        played.context("it could not be run again")?;
    }
    Ok(Replay { entries: tape.entries.len(), effects: recording.played(), divergence, end: tape.end })
}

/// The stage on which the session is run again.
struct Stage<'a, R> {
    home: &'a Home,
    config: &'a Config,
    keys: &'a Keys,
    tape: &'a Tape,
    recording: &'a Recording,
    folder: &'a PrivateFolder,
    /// Makes the rules: each process that opened the session read them.
    rules: R,
    inlet: mpsc::Sender<Op>,
    sender: mpsc::Sender<Event>,
}

impl<R: Fn() -> Result<Policy>> Stage<'_, R> {
    /// Does the recorded steps, up to the end or to the first divergence.
    async fn play(&self, mut ops: mpsc::Receiver<Op>) -> Result<()> {
        let mut host: Option<Host> = None;
        for step in self.tape.steps() {
            if self.recording.divergence().is_some() {
                break;
            }
            let done = match (step, &mut host) {
                (Step::Open { model, resumed, own, papers, shape }, host) => {
                    // The process before must let go of the session first.
                    drop(host.take());
                    *host = Some(self.open(&model, resumed, (own, papers), shape).await?);
                    continue;
                }
                (Step::Answer(id), _) => {
                    self.answer(id).await?;
                    continue;
                }
                (Step::Pin(text), Some(host)) => {
                    host.pin(&text).await?;
                    continue;
                }
                (Step::Say(inbound, turn), Some(host)) => {
                    self.recording.begin(turn);
                    host.say(inbound, &mut ops).await
                }
                (Step::GoOn(turn), Some(host)) => {
                    self.recording.begin(turn);
                    host.go_on(&mut ops).await
                }
                (_, None) => bail!("the session was never opened"),
            };
            match done {
                // The recorded run may have been refused as well: the comparison tells.
                Ok(_) | Err(HostError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn journal(&self) -> Result<(Journal, Mint)> {
        let clock: Arc<dyn Clock> = Arc::new(self.recording.clone());
        Ok(Journal::open(&self.folder.0.join("journal.db"), self.keys.redactor.clone(), clock).await?)
    }

    /// Gives a person's recorded answer, wherever it came from.
    async fn answer(&self, recorded: ApprovalId) -> Result<()> {
        let Some((id, answer, why)) = self.recording.answer(recorded) else { return Ok(()) };
        let (_, mint) = self.journal().await?;
        match mint.answer(self.tape.info.id, id, answer, Answerer::owner(None), &why).await {
            // The question ran out, or was taken back: the comparison tells.
            Ok(()) | Err(JournalError::Settled(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a host over the throwaway journal and the recording.
    async fn open(
        &self,
        model: &str,
        resumed: bool,
        (own, papers): (Option<String>, PaperContents),
        shape: Shape,
    ) -> Result<Host> {
        let Self { home, config, tape, recording, .. } = self;
        let programs = program::kept(config)?;
        let (journal, mint) = self.journal().await?;
        let mut settings = compose::kernel_config(home, config, programs);
        settings.question_lasts = LONG;
        settings.project = place::origin(home, tape.info.id).map(|project| project.0);
        // The usage of other sessions on that day is not recorded with this one.
        settings.budgets.day = Bound::default();
        settings.budgets.call.tokens.get_or_insert(u64::MAX / 8);
        let rules = (self.rules)()?;
        let rules = if shape == Shape::Direct { rules.without_walls() } else { rules };
        let (kernel, registrar) = Kernel::new(mint, rules, settings).await?;
        let (id, workspace) = (tape.info.id, tape.info.workspace.clone());
        let standpoint = place::standpoint(home, id)?;
        let own = Own::new(WsPath(home.agent_file().display().to_string()), own).beside(papers);
        registrar.register(vec![Arc::new(Replayer {
            own: own.clone(),
            recording: (*recording).clone(),
            seal: journal.seal(),
            workspace: workspace.0.clone(),
            user_home: home.user.display().to_string(),
            ops: self.inlet.clone(),
            journal: journal.clone(),
        })]);
        let host = Host::open(
            Parts {
                kernel,
                registrar,
                tools: config.tools(&workspace, &standpoint, vec![Arc::new((*recording).clone())]),
                models: Some(models(home, config, tape, recording, model)?),
                choose: None,
                brain: Arc::new(Loop { calls_max: config.tool_calls }),
                retry: Retry { attempts: u32::MAX, first_pause: Duration::ZERO, ..Retry::default() },
                instruction: compose::instruction(config, &workspace, &standpoint, shape),
                own: Some(own),
                events: self.sender.clone(),
                workspace,
                standpoint,
                folder: self.folder.0.clone(),
                backend: None,
                agent: home.agent.clone(),
                confined: None,
                command: "bailey replay".into(),
                person: None,
                commits_differ: None,
                unattended: false,
                patience: patience(tape),
            },
            if resumed { Opening::Resume(id) } else { Opening::New(id) },
        )
        .await?;
        if !resumed {
            for path in tape.revealed() {
                journal.reveal(id, path).await?;
            }
        }
        Ok(host)
    }
}

/// How long a call waits. In the recording, each call waited either for its answer or not at all.
fn patience(tape: &Tape) -> Patience {
    let waits = tape.questions.iter().any(|asked| asked.waits);
    let call = match (waits, tape.questions.iter().all(|asked| asked.waits)) {
        (false, _) => LONG,
        (true, true) => Duration::ZERO,
        (true, false) => BOTH,
    };
    let is_open = |end: &Fact| matches!(end, Fact::TurnEnded { reason, .. } if reason == "waiting");
    Patience { call, at_end: !tape.entries.iter().any(|it| is_open(&it.entry.fact)) }
}

/// The models that were asked in the recording, with their own codecs. The model that this process began with
/// is first.
fn models(home: &Home, config: &Config, tape: &Tape, recording: &Recording, first: &str) -> Result<Models> {
    let catalogue = compose::catalogue(home)?;
    let mut providers: Vec<Arc<dyn Provider>> = Vec::new();
    let mut asked = tape.models(recording.played());
    asked.sort_by_key(|(provider, model, _)| format!("{provider}/{model}") != first);
    for (provider, model, url) in asked {
        let known = compose::endpoint(config, &catalogue, &format!("{provider}/{model}")).ok();
        let endpoint = known.and_then(|endpoint| moved(endpoint, &url));
        let endpoint = endpoint.or_else(|| played(config, &provider, &model, &url)).with_context(|| {
            format!("the provider `{provider}` is not configured any more as it was: it was asked at `{url}`")
        })?;
        providers
            .push(Arc::new(Replayed { codec: bailey_llm::provider(endpoint), recording: recording.clone() }));
    }
    let mut providers = providers.into_iter();
    let Some(main) = providers.next() else {
        // No recorded request is left. If a model is asked all the same, that request was never recorded.
        let endpoint = compose::endpoint(config, &catalogue, first).ok();
        let endpoint = endpoint.or_else(|| nobody(config)).context("no model is configured")?;
        let codec = bailey_llm::provider(endpoint);
        return Ok(Models::only(Arc::new(Replayed { codec, recording: recording.clone() })));
    };
    Ok(Models::new(Route::new(main, providers)))
}

/// A configured model at its recorded address.
fn moved(endpoint: Endpoint, url: &str) -> Option<Endpoint> {
    let now = endpoint.url();
    let root = endpoint.base_url.trim_end_matches('/');
    let base_url = match now.strip_prefix(root) {
        Some(rest) => url.strip_suffix(rest)?.to_owned(),
        None => endpoint.base_url.clone(),
    };
    Some(Endpoint { base_url, ..endpoint }).filter(|endpoint| endpoint.url() == url)
}

fn nobody(config: &Config) -> Option<Endpoint> {
    Wire::ALL.into_iter().next().map(|wire| recorded(config, "-", "-", wire))
}

/// The model of a recording (`--model replay:FILE`), which no configuration names: its address tells its
/// wire.
fn played(config: &Config, provider: &str, model: &str, url: &str) -> Option<Endpoint> {
    let mut all = Wire::ALL.into_iter().map(|wire| recorded(config, provider, model, wire));
    all.find(|endpoint| endpoint.url() == url)
}

fn recorded(config: &Config, provider: &str, model: &str, wire: Wire) -> Endpoint {
    Endpoint {
        provider: provider.into(),
        wire,
        base_url: "http://recorded.invalid".into(),
        model: model.into(),
        key: None,
        max_tokens: config.reply_tokens,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: false,
        parameters: std::collections::BTreeMap::new(),
    }
}

/// Stands in for the person of the recorded session.
struct Person {
    recording: Recording,
    ops: mpsc::Sender<Op>,
}

impl Person {
    /// Gives the recorded answers to questions. Returns when nothing happens any more.
    async fn listen(&self, mut events: mpsc::Receiver<Event>) {
        while let Ok(Some(event)) = tokio::time::timeout(STANDSTILL, events.recv()).await {
            let Happening::Ask { id, call, .. } = event.happening else { continue };
            if self.recording.is_known(id) {
                continue;
            }
            let Some(asked) = self.recording.question(id, call.as_ref()) else {
                // The recording has no such question: the comparison tells.
                let why = "this was never asked".to_owned();
                self.ops.send(Op::Answer { id, answer: Answer::No, why, by: None }).await.ok();
                continue;
            };
            if let (false, Some((_, answer, why))) = (asked.waits, asked.answer) {
                self.ops.send(Op::Answer { id, answer, why, by: None }).await.ok();
            }
        }
    }
}

/// A folder that no other user can look into, and that is removed at the end.
pub(crate) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// A copy of the home's journal whose chain was verified. A copy is used because opening the journal
    /// itself may move the content of its log into it.
    ///
    /// # Errors
    /// When the journal cannot be copied, or the chain does not hold.
    pub(crate) async fn recorded(&self, home: &Home, keys: &Keys) -> Result<Journal> {
        let copies = self.0.join("recorded");
        make_private(&copies)?;
        let mut copied = 0;
        loop {
            copied += 1;
            let taken = copies.join(copied.to_string());
            make_private(&taken)?;
            for name in ["journal.db", "journal.db-wal"] {
                match fs::copy(home.root.join(name), taken.join(name)) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    done => drop(done.with_context(|| format!("cannot copy `{name}`"))?),
                }
            }
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let (journal, _) = Journal::open(&taken.join("journal.db"), keys.redactor.clone(), clock).await?;
            // Only the chain: archives lie beside the journal, and not beside its copy.
            match journal.verify_chain().await {
                // Another process may have written meanwhile.
                Err(_) if copied < COPIES_MAX => fs::remove_dir_all(&taken)?,
                found => {
                    found?;
                    return Ok(journal);
                }
            }
        }
    }

    /// Makes the folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn make() -> Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
        let name = format!("bailey-replay-{:016x}", u64::from_ne_bytes(random));
        let path = std::env::temp_dir().join(name);
        if Path::new(&path).exists() {
            bail!("`{}` is there already", path.display());
        }
        make_private(&path)?;
        Ok(Self(path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

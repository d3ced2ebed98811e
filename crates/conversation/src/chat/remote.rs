//! A conversation whose session runs beneath the daemon. This process is only its terminal; when the user
//! leaves, the turn goes on.

use super::{Args, handoff::Handoff, models};
use crate::{
    TurnOptions,
    client::Client,
    compose::{self, Keys},
    config::Config,
    confinement,
    exit::{self, Failure},
    front::Answering,
    front::{Asker, Chat, Front, History, short},
    home::Home,
    print::Printer,
    project, standing,
    wire::{self, Ask, DaemonAnswer, DaemonStatus, EVENT_BYTES_MAX, SOCKET, State, Wanted},
};
use anyhow::{Context as _, Result, anyhow, bail};
use bailey_protocol::{Event, Op, SessionId};
use rustix::net::RecvFlags;
use std::{
    env,
    io::{self, IsTerminal as _},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};
use tokio::{
    io::BufReader,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
};

/// Events and ops that may wait here.
const EVENTS_WAITING_MAX: usize = 1024;
const OPS_WAITING_MAX: usize = 64;
/// How long a conversation that was cut off waits for its session: `BACK` for a daemon, and `ABSENT` for a
/// running daemon to begin the session again.
const BACK: Duration = Duration::from_secs(30);
const ABSENT: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);

/// The daemon that runs this conversation's sessions; `None` when no daemon runs, and for a conversation
/// that works on this machine itself.
///
/// # Errors
/// When a daemon may run and cannot be reached.
pub(super) fn daemon(home: &Home, chat: &Args) -> Result<Option<Client>> {
    if chat.no_sandbox || chat.alone { Ok(None) } else { Client::connect(home) }
}

/// Waits for a daemon that runs the session from which this conversation was cut off. It is the same daemon
/// or the next one, which begins the last one's sessions again. A daemon that ended in order has removed its
/// socket.
///
/// # Errors
/// When there is no such daemon.
pub(crate) async fn back(home: &Home, session: SessionId, printer: &Printer) -> Result<Client> {
    printer.note("the connection to the session was lost; waiting until it is back (Ctrl-C leaves)");
    let begun = Instant::now();
    let mut absent = Instant::now();
    while begun.elapsed() < BACK && absent.elapsed() < ABSENT {
        if !home.daemon().join(SOCKET).exists() {
            break;
        }
        match status(home).await {
            Some((_, status)) if status.stopping => break,
            Some((daemon, status)) if status.sessions.iter().any(|it| it.session == session) => {
                return Ok(daemon);
            }
            Some(_) => {}
            None => absent = Instant::now(),
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(gone(home, session))
}

async fn status(home: &Home) -> Option<(Client, DaemonStatus)> {
    let mut daemon = Client::connect(home).ok()??;
    match daemon.ask(Ask::Status).await.ok()? {
        DaemonAnswer::Status(status) => Some((daemon, *status)),
        _ => None,
    }
}

/// The reason why a conversation cannot come back to its session. The journal may record an emergency stop a
/// moment after the stopped processes have ended.
pub(super) async fn lost(home: &Home, session: SessionId) -> anyhow::Error {
    let begun = Instant::now();
    while begun.elapsed() < ABSENT && !matches!(standing(home), Ok(Some(_))) {
        tokio::time::sleep(LOOK).await;
    }
    gone(home, session)
}

fn gone(home: &Home, session: SessionId) -> anyhow::Error {
    if let Ok(Some(since)) = standing(home) {
        let error = format!(
            "everything was stopped ({since}), also this session; nothing begins until you run \
             `bailey estop --release`, and then `bailey chat --resume {}` continues the session",
            short(&session)
        );
        return Failure { error, code: exit::DENIED }.into();
    }
    anyhow!(
        "the session's process has ended, and its work is kept: `bailey status` shows whether the daemon \
         runs, `bailey chat --resume {}` continues the session",
        short(&session)
    )
}

/// Serves one session of a conversation.
pub(crate) async fn run(
    home: &Home,
    chat: Args,
    mut handoff: Handoff,
    mut daemon: Client,
    printer: &Printer,
) -> Result<ExitCode> {
    let config = Config::load(home)?;
    // This process loads the keys only to keep them out of its output and its history, and to know which
    // models can be used.
    let keys = Keys::load(home, &config, printer)?;
    let asker = match Asker::compliant(chat.options.approve, compose::is_compliance(&config)?)? {
        // Other terminals can answer: the session does not belong to this one.
        Asker::Nobody => Asker::Later,
        asker => asker,
    };
    let mut chat = chat;
    // A session that this process comes back to knows its options already. The options of the first session
    // do not hold for another one.
    let is_told = handoff.is_first && handoff.lost.is_none();
    if !is_told && chat.options.is_of_one_session() {
        chat.options.forget_session();
        if handoff.lost.is_none() {
            printer.note(super::ANEW);
        }
    }
    let wanted = wanted(home, &chat, &handoff, printer).await?;
    if let Some(session) = wanted.session.filter(|_| handoff.lost.is_none() && says_something(&chat.options))
    {
        begun_anew(&mut daemon, session).await?;
    }
    let (session, stream) = opened(home, &mut daemon, &wanted, printer).await?;
    drop(daemon);
    handoff.serves(session)?;
    stream.set_nonblocking(true)?;
    let history = if io::stdin().is_terminal() { History::open(&home.history()) } else { History::default() };
    // INVARIANT: from here on this process reads the model's output.
    let unenforced = confinement::bind_front()?;
    if handoff.is_first {
        crate::run::tell_unenforced(printer, &unenforced);
    }
    let (read, write) = UnixStream::from_std(stream)?.into_split();
    let (events, happened) = mpsc::channel(EVENTS_WAITING_MAX);
    let (ops, asked) = mpsc::channel(OPS_WAITING_MAX);
    let mut front = Front::new(printer, happened, ops, asker, chat.options.verbose)?;
    front.is_guest();
    front.converse(Chat::new(printer, history, models(home, &config, &keys))?)?;
    let talk = async {
        tokio::select! {
            heard = hear(read, events) => heard.map(|()| false),
            said = say(write, asked) => said.map(|()| true),
        }
    };
    let talked = front.during(talk).await;
    end(&mut front, session, handoff, talked)
}

/// Opens the session and connects to it. When the session was just ending, this opens it once more.
async fn opened(
    home: &Home,
    daemon: &mut Client,
    wanted: &Wanted,
    printer: &Printer,
) -> Result<(SessionId, std::os::unix::net::UnixStream)> {
    let mut is_last = wanted.session.is_none();
    loop {
        let DaemonAnswer::Opened { session, remarks } = daemon.ask(Ask::Open(wanted.clone())).await? else {
            bail!("the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`");
        };
        remarks.iter().for_each(|remark| printer.note(remark));
        let came = wire::connect(&home.daemon(), &session.to_string()).and_then(|stream| {
            // Checks only whether data comes, and leaves it unread.
            let (length, _) = rustix::net::recv(&stream, &mut [0; 1], RecvFlags::PEEK)?;
            if length > 0 { Ok(stream) } else { Err(io::ErrorKind::ConnectionReset.into()) }
        });
        match came {
            Err(_) if !is_last => is_last = true,
            came => {
                return Ok((session, came.with_context(|| format!("session {session} cannot be reached"))?));
            }
        }
    }
}

/// Passes on the session's events until the session ends.
async fn hear(read: OwnedReadHalf, events: mpsc::Sender<Event>) -> Result<()> {
    let mut read = BufReader::new(read);
    while let Some(line) = wire::line(&mut read, EVENT_BYTES_MAX).await? {
        let event = serde_json::from_slice(&line).context("the session sent a line that is not an event")?;
        events.send(event).await.ok();
    }
    Ok(())
}

/// Passes requests to the session until the person leaves.
pub(crate) async fn say(mut write: OwnedWriteHalf, mut asked: mpsc::Receiver<Op>) -> Result<()> {
    while let Some(op) = asked.recv().await {
        wire::say(&mut write, &op).await.context("the session has ended")?;
    }
    Ok(())
}

fn end(
    front: &mut Front<'_>,
    session: SessionId,
    handoff: Handoff,
    talked: Result<bool>,
) -> Result<ExitCode> {
    crate::front::restore();
    let leave = front.left();
    let next = front.turned().map(str::to_owned).or_else(|| handoff.model.clone());
    if matches!(talked, Ok(false)) && front.ending().is_none() {
        handoff.leave(next.as_deref(), None)?;
        return Ok(ExitCode::from(exit::AGAIN));
    }
    let name = short(&session);
    if front.is_turn() {
        front.printer.note(&format!(
            "the turn goes on in the daemon; come back to it with `bailey chat --resume {name}`"
        ));
    } else if front.has_story(&leave) {
        front.tell_story();
    }
    if let Some(code) = front.ending() {
        return Ok(ExitCode::from(code));
    }
    talked.with_context(|| format!("come back to this session with `bailey chat --resume {name}`"))?;
    Ok(handoff.go_on(&leave, next.as_deref())?.unwrap_or(ExitCode::from(exit::DONE)))
}

/// Describes the wanted session in the daemon's words. After the first, each session is a new one. The words
/// give the full name of a session, which no other session has.
async fn wanted(home: &Home, chat: &Args, handoff: &Handoff, printer: &Printer) -> Result<Wanted> {
    let directory = env::current_dir().context("the current directory does not exist any more")?;
    let options = &chat.options;
    let mut again = lasting(home, handoff.model.as_ref().or(options.model.as_ref()), options);
    let mut words = again.clone();
    let mut session = None;
    let resumed = handoff.lost.map(|lost| lost.to_string()).or_else(|| chat.resume.clone());
    match &resumed {
        Some(name) => {
            let journal = crate::journal(home, printer).await?;
            let info = journal.session(name).await?;
            let home = crate::home_of(home, &journal, info.id).await?;
            let agent = home.agent.map(|agent| format!("--agent={agent}"));
            let agent = agent.filter(|flag| !words.contains(flag));
            again.extend(agent.clone());
            words.extend(agent);
            if handoff.is_first || handoff.lost.is_some() {
                session = Some(info.id);
                words.extend(["--resume".to_owned(), info.id.to_string()]);
            } else {
                words.extend(["-C".to_owned(), info.workspace.0]);
            }
        }
        None => words.extend(["-C".to_owned(), place(home, chat.directory.as_deref())?]),
    }
    if chat.warm && handoff.is_first {
        words.push("--warm".to_owned());
    }
    words.extend(chat.schedule.iter().map(|name| format!("--schedule={name}")));
    words.extend(once(options)?);
    Ok(Wanted { directory, words, again, session, comes_back: handoff.lost.is_some(), tells_owner: false })
}

/// Describes the new session for a task, in the daemon's words.
///
/// # Errors
/// When the current directory does not exist, or a path is not UTF-8.
pub(crate) fn for_task(home: &Home, run: &crate::run::Args) -> Result<Wanted> {
    let directory = env::current_dir().context("the current directory does not exist any more")?;
    let tells_owner = run.options.approve == Answering::Later;
    let mut again = lasting(home, run.options.model.as_ref(), &run.options);
    again.extend(tells_owner.then(|| "--unattended".to_owned()));
    let mut words = again.clone();
    words.extend(["-C".to_owned(), place(home, run.directory.as_deref())?]);
    words.extend(run.warm.then(|| "--warm".to_owned()));
    words.extend(once(&run.options)?);
    Ok(Wanted { directory, words, again, session: None, comes_back: false, tells_owner })
}

/// The directory where a person stands, as they write it. It must be in a project.
fn place(home: &Home, directory: Option<&Path>) -> Result<String> {
    project::find(directory, home)?;
    let spelled = project::spelled(directory)?;
    Ok(spelled.to_str().with_context(|| format!("`{}` is not UTF-8", spelled.display()))?.to_owned())
}

/// Whether there are options that the session's process must get when it begins.
fn says_something(options: &TurnOptions) -> bool {
    let TurnOptions { model, tokens, record, approve, .. } = options;
    let is_heard = model.is_some() || tokens.is_some() || record.is_some() || *approve == Answering::Later;
    is_heard || options.is_of_one_session()
}

/// Ends the process of a session at rest, so that the next process gets the new options.
async fn begun_anew(daemon: &mut Client, session: SessionId) -> Result<()> {
    let DaemonAnswer::Status(status) = daemon.ask(Ask::Status).await? else {
        bail!("the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`");
    };
    let Some(running) = status.sessions.iter().find(|it| it.session == session) else { return Ok(()) };
    let State { working, clients, processes, .. } = running.state;
    if working || clients + processes > 0 {
        bail!(
            "session {session} is running or open in another terminal, and takes --model, --tokens, \
             --reveal, --pin, --record and --approve later only when it begins: leave these options out, or \
             come back when it rests"
        );
    }
    daemon.ask(Ask::Close { session }).await.map(drop)
}

/// The options that hold each time the session begins.
fn lasting(home: &Home, model: Option<&String>, options: &TurnOptions) -> Vec<String> {
    let model = model.map(|model| format!("--model={model}"));
    let agent = home.agent.as_ref().map(|agent| format!("--agent={agent}"));
    let tokens = options.tokens.map(|tokens| format!("--tokens={tokens}"));
    [model, agent, tokens].into_iter().flatten().collect()
}

/// The options that hold only once.
fn once(options: &TurnOptions) -> Result<Vec<String>> {
    let reveal = options.reveal.iter().map(|path| ("--reveal", path.as_path()));
    let record = options.record.iter().map(|path| ("--record", path.as_path()));
    let files = reveal.chain(record).map(|(flag, path)| Ok(format!("{flag}={}", text(path)?)));
    let mut words: Vec<String> = files.collect::<Result<_>>()?;
    words.extend(options.pin.iter().map(|pin| format!("--pin={pin}")));
    if options.approve == Answering::Later {
        words.extend(["--approve", "later"].map(str::to_owned));
    }
    Ok(words)
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("`{}` is not UTF-8", path.display()))
}

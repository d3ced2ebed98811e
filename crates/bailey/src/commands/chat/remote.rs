//! A conversation whose session runs beneath the daemon: this process is its terminal, and nothing else.
//! Leaving it ends no turn.

use super::{models, seat::Seat};
use crate::{
    bounds,
    cli::{self, TurnOptions},
    commands::daemon::standing,
    compose::{self, Keys},
    config::Config,
    daemon::{
        SOCKET,
        client::Client,
        wire::{self, Ask, EVENT_BYTES_MAX, State, Status, Told, Wanted},
    },
    exit::{self, Failure},
    front::Answering,
    front::{Asker, Chat, Front, History, Leave, short},
    home::Home,
    print::Printer,
    project,
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
/// How long a conversation waits for its session after it was cut off: for a daemon, and for a daemon that is
/// there to begin it again.
const BACK: Duration = Duration::from_secs(30);
const ABSENT: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);

/// The daemon that this conversation's sessions run beneath; none where none runs, and for one that works on
/// this machine itself.
///
/// # Errors
/// When one may run and cannot be reached.
pub(super) fn daemon(home: &Home, chat: &cli::Chat) -> Result<Option<Client>> {
    if chat.no_sandbox || chat.alone { Ok(None) } else { Client::connect(home) }
}

/// A daemon that runs the session which this conversation was cut off from: the same, or the next one, which
/// begins again what the last one ran. One that ended in order took its socket along.
///
/// # Errors
/// When there is none.
pub(in crate::commands) async fn back(home: &Home, session: SessionId, printer: &Printer) -> Result<Client> {
    printer.note("cut off from the session; waiting until it is there again (Ctrl-C leaves)");
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

async fn status(home: &Home) -> Option<(Client, Status)> {
    let mut daemon = Client::connect(home).ok()??;
    match daemon.ask(Ask::Status).await.ok()? {
        Told::Status(status) => Some((daemon, *status)),
        _ => None,
    }
}

/// Why nobody comes back to a session that a conversation was cut off from. A stop may be written a moment
/// after what it ends has ended.
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
            "everything was stopped ({since}), and this session with it; nothing begins until `bailey estop --release`, then `bailey chat --resume {}` goes on",
            short(&session)
        );
        return Failure { error, code: exit::DENIED }.into();
    }
    anyhow!(
        "the session's process has ended; what it did is kept: `bailey status` shows whether the daemon runs, \
         `bailey chat --resume {}` goes on",
        short(&session)
    )
}

/// Serves one session of a conversation.
pub(super) async fn run(
    home: &Home,
    chat: cli::Chat,
    mut seat: Seat,
    mut daemon: Client,
    printer: &Printer,
) -> Result<ExitCode> {
    let config = Config::load(home)?;
    // It knows them only to keep them out of what it prints and remembers.
    Keys::load(home, &config, printer)?;
    let asker = match Asker::compliant(chat.options.approve, compose::is_compliance(&config)?)? {
        // Others can answer: the session is not this terminal's.
        Asker::Nobody => Asker::Later,
        asker => asker,
    };
    let mut chat = chat;
    // Whoever comes back to a session was heard by it, and what was said of the first one is not said of
    // another.
    let is_told = seat.is_first && seat.lost.is_none();
    if !is_told && chat.options.is_of_one_session() {
        chat.options.forget_session();
        if seat.lost.is_none() {
            printer.note(super::ANEW);
        }
    }
    let wanted = wanted(home, &chat, &seat, printer).await?;
    if let Some(session) = wanted.session.filter(|_| seat.lost.is_none() && says_something(&chat.options)) {
        begun_anew(&mut daemon, session).await?;
    }
    let (session, stream) = opened(home, &mut daemon, &wanted, printer).await?;
    drop(daemon);
    seat.serves(session)?;
    stream.set_nonblocking(true)?;
    let history = if io::stdin().is_terminal() { History::open(&home.history()) } else { History::default() };
    // INVARIANT: from here on this process hears what a model said.
    let unenforced = bounds::bind_front()?;
    if seat.is_first {
        crate::commands::run::tell_unenforced(printer, &unenforced);
    }
    let (read, write) = UnixStream::from_std(stream)?.into_split();
    let (events, happened) = mpsc::channel(EVENTS_WAITING_MAX);
    let (ops, asked) = mpsc::channel(OPS_WAITING_MAX);
    let mut front = Front::new(printer, happened, ops, asker, chat.options.verbose)?;
    front.is_guest();
    front.converse(Chat::new(printer, history, models(&config))?)?;
    let talk = async {
        tokio::select! {
            heard = hear(read, events) => heard.map(|()| false),
            said = say(write, asked) => said.map(|()| true),
        }
    };
    let talked = front.during(talk).await;
    end(&mut front, session, seat, talked)
}

/// Opens the session and comes to it. One that was at its end is opened once more.
async fn opened(
    home: &Home,
    daemon: &mut Client,
    wanted: &Wanted,
    printer: &Printer,
) -> Result<(SessionId, std::os::unix::net::UnixStream)> {
    let mut is_last = wanted.session.is_none();
    loop {
        let Told::Opened { session, remarks } = daemon.ask(Ask::Open(wanted.clone())).await? else {
            bail!("the daemon answered something else than was asked");
        };
        remarks.iter().for_each(|remark| printer.note(remark));
        let came = wire::connect(&home.daemon(), &session.to_string()).and_then(|stream| {
            // Only whether anything comes, and not what.
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

/// What the session says; until it says no more.
async fn hear(read: OwnedReadHalf, events: mpsc::Sender<Event>) -> Result<()> {
    let mut read = BufReader::new(read);
    while let Some(line) = wire::line(&mut read, EVENT_BYTES_MAX).await? {
        let event = serde_json::from_slice(&line).context("the session said what is no event")?;
        events.send(event).await.ok();
    }
    Ok(())
}

/// What the session is asked for; until the person leaves.
pub(in crate::commands) async fn say(mut write: OwnedWriteHalf, mut asked: mpsc::Receiver<Op>) -> Result<()> {
    while let Some(op) = asked.recv().await {
        wire::say(&mut write, &op).await.context("the session has ended")?;
    }
    Ok(())
}

fn end(front: &mut Front<'_>, session: SessionId, seat: Seat, talked: Result<bool>) -> Result<ExitCode> {
    crate::front::restore();
    let leave = front.left();
    let next = front.turned().map(str::to_owned).or_else(|| seat.model.clone());
    if matches!(talked, Ok(false)) && front.ending().is_none() {
        seat.leave(next.as_deref())?;
        return Ok(ExitCode::from(exit::AGAIN));
    }
    let name = short(&session);
    if front.is_turn() {
        front
            .printer
            .note(&format!("the turn goes on without you; to come back: bailey chat --resume {name}"));
    } else if front.has_story(&leave) {
        front.tell_story();
    }
    if let Some(code) = front.ending() {
        return Ok(ExitCode::from(code));
    }
    talked.with_context(|| format!("to come back: bailey chat --resume {name}"))?;
    if leave == Leave::Clear {
        seat.leave(next.as_deref())?;
        return Ok(ExitCode::from(exit::NEXT));
    }
    Ok(ExitCode::from(exit::DONE))
}

/// The session that is wanted, in the daemon's words: a new one after the first, and of a name that only it
/// has.
async fn wanted(home: &Home, chat: &cli::Chat, seat: &Seat, printer: &Printer) -> Result<Wanted> {
    let directory = env::current_dir().context("the directory that you are in is not there")?;
    let options = &chat.options;
    let mut again = lasting(home, seat.model.as_ref().or(options.model.as_ref()), options);
    let mut words = again.clone();
    let mut session = None;
    let resumed = seat.lost.map(|lost| lost.to_string()).or_else(|| chat.resume.clone());
    match &resumed {
        Some(name) => {
            let journal = crate::commands::journal(home, printer).await?;
            let info = journal.session(name).await?;
            let home = crate::commands::home_of(home, &journal, info.id).await?;
            let agent = home.agent.map(|agent| format!("--agent={agent}"));
            let agent = agent.filter(|flag| !words.contains(flag));
            again.extend(agent.clone());
            words.extend(agent);
            if seat.is_first || seat.lost.is_some() {
                session = Some(info.id);
                words.extend(["--resume".to_owned(), info.id.to_string()]);
            } else {
                words.extend(["-C".to_owned(), info.workspace.0]);
            }
        }
        None => words.extend(["-C".to_owned(), place(home, chat.directory.as_deref())?]),
    }
    if chat.warm && seat.is_first {
        words.push("--warm".to_owned());
    }
    words.extend(chat.schedule.iter().map(|name| format!("--schedule={name}")));
    words.extend(once(options)?);
    Ok(Wanted { directory, words, again, session, comes_back: seat.lost.is_some() })
}

/// What a new session is wanted for a task, in the daemon's words.
///
/// # Errors
/// When there is no directory to be in, or a path is no text.
pub(in crate::commands) fn for_task(home: &Home, run: &cli::Run) -> Result<Wanted> {
    let directory = env::current_dir().context("the directory that you are in is not there")?;
    let again = lasting(home, run.options.model.as_ref(), &run.options);
    let mut words = again.clone();
    words.extend(["-C".to_owned(), place(home, run.directory.as_deref())?]);
    words.extend(run.warm.then(|| "--warm".to_owned()));
    words.extend(once(&run.options)?);
    Ok(Wanted { directory, words, again, session: None, comes_back: false })
}

/// Where a person stands, as they write it, when that is in a project.
fn place(home: &Home, directory: Option<&Path>) -> Result<String> {
    project::find(directory, home)?;
    let spelled = project::spelled(directory)?;
    Ok(spelled.to_str().with_context(|| format!("`{}` is not UTF-8", spelled.display()))?.to_owned())
}

/// Whether anything is said of a session that its process must hear when it begins.
fn says_something(options: &TurnOptions) -> bool {
    let TurnOptions { model, tokens, record, approve, .. } = options;
    let is_heard = model.is_some() || tokens.is_some() || record.is_some() || *approve == Answering::Later;
    is_heard || options.is_of_one_session()
}

/// Has the process of a session that rests end, so that the next one hears what is said of it.
async fn begun_anew(daemon: &mut Client, session: SessionId) -> Result<()> {
    let Told::Status(status) = daemon.ask(Ask::Status).await? else {
        bail!("the daemon answered something else than was asked");
    };
    let Some(running) = status.sessions.iter().find(|it| it.session == session) else { return Ok(()) };
    let State { working, clients, processes, .. } = running.state;
    if working || clients + processes > 0 {
        bail!(
            "session {session} is at work or looked at, and hears what is said of it (--model, --tokens, --reveal, --pin, --record, \
             --approve later) only when it begins: come without, or when it rests"
        );
    }
    daemon.ask(Ask::Close { session }).await.map(drop)
}

/// What holds for a session whenever it is begun again.
fn lasting(home: &Home, model: Option<&String>, options: &TurnOptions) -> Vec<String> {
    let model = model.map(|model| format!("--model={model}"));
    let agent = home.agent.as_ref().map(|agent| format!("--agent={agent}"));
    let tokens = options.tokens.map(|tokens| format!("--tokens={tokens}"));
    [model, agent, tokens].into_iter().flatten().collect()
}

/// What is said of it once.
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

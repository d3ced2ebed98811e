//! A task beneath the daemon. The process that reads the turn's output is bound and can open no session, so
//! there are two processes. `run` opens the session, waits, and afterwards compares and applies the
//! changes, as `bailey sessions apply` does. [`listen`] is the turn's terminal; when the user leaves, the
//! turn goes on.

use super::{Args, conclude, finish, task::Task, tell_ending, tell_unenforced};
use crate::{
    Opening,
    chat::{
        parent::Ear,
        remote::{back, for_task, say},
    },
    client::Client,
    compose::{self, HANDOFF, Keys, OpenSession, Session},
    config::Config,
    confinement, exit,
    front::{Asker, Front, short},
    home::Home,
    print::Printer,
    program, project,
    wire::{self, Ask, DaemonAnswer, EVENT_BYTES_MAX},
};
use anyhow::{Context as _, Result, bail};
use bailey_agent::TurnEnd;
use bailey_protocol::{Event, Fault, Happening, Op, SessionId};
use rustix::fs::MemfdFlags;
use std::{
    env,
    fs::File,
    io::{ErrorKind, Read as _, Seek as _, Write as _},
    os::fd::AsRawFd as _,
    process::{Child, ExitCode, Stdio},
};
use tokio::{
    io::BufReader,
    net::{UnixStream, unix::OwnedReadHalf},
    sync::mpsc,
};

/// Events and ops that may wait here.
const EVENTS_WAITING_MAX: usize = 1024;
const OPS_WAITING_MAX: usize = 64;

/// The longest turn that is taken from the process that drew it, in bytes.
const TOLD_BYTES_MAX: u64 = 8 << 20;

/// Runs a task beneath the daemon.
pub(super) async fn run(
    home: &Home,
    run: &Args,
    task: Task,
    mut daemon: Client,
    printer: &Printer,
) -> Result<ExitCode> {
    let (root, workspace) = project::find(run.directory.as_deref(), home)?;
    let mut config = Config::load(home)?;
    printer.notes(config.narrow(home, &root)?);
    project::remarks(&root).iter().for_each(|remark| printer.warn(remark));
    let DaemonAnswer::Opened { session, remarks } = daemon.ask(Ask::Open(for_task(home, run)?)).await? else {
        bail!("the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`");
    };
    remarks.iter().for_each(|remark| printer.note(remark));
    drop(daemon);

    // The message's key: when the same message is sent again under it, no second turn begins.
    let key = compose::new_session()?;
    let mut ear = Ear::listen()?;
    let input = task.input(&run.task);
    let told = memory("bailey-turn", MemfdFlags::empty())?;
    let code = loop {
        let code = ear.wait(&start(session, key, &told, input.as_deref())?).await?;
        if code != exit::AGAIN {
            break code;
        }
        back(home, session, printer).await?;
    };
    let ended = match code {
        exit::DONE => TurnEnd::Answered,
        exit::PAUSED => TurnEnd::Limit,
        exit::CANCELLED => TurnEnd::Cancelled,
        exit::REFUSED => TurnEnd::Refused,
        code => {
            // Its process has said why.
            let (_, events) = mpsc::channel(1);
            let (ops, _) = mpsc::channel(1);
            let mut front = Front::new(printer, events, ops, Asker::Never, false)?;
            front.is_of(session);
            front.take_turn(&read(told)?);
            front.conclude(code, None);
            return Ok(ExitCode::from(code));
        }
    };
    let keys = Keys::load(home, &config, printer)?;
    let journal = compose::journal(home, &keys).await?.0;
    for process in journal.in_background().await?.iter().filter(|process| process.session == session) {
        tell_ending(printer, process.number, &process.command);
    }
    if let Some(mut daemon) = Client::connect(home)?
        && let Err(why) = daemon.ask(Ask::Close { session }).await
    {
        printer.note(&format!("{why:#}; `bailey sessions diff {}` shows what it changed", short(&session)));
        return Ok(ExitCode::from(code));
    }

    let asker = Asker::compliant(run.options.approve, compose::is_compliance(&config)?)?;
    let revealed = journal.revealed(session).await?;
    drop(journal);
    let opening = Opening::Visit(session);
    let unattended = asker.is_nobody();
    let visit = Session { unattended, revealed, ..Session::new(home, &config, keys, workspace, opening) };
    let OpenSession { host, kernel, events, remarks, witness, .. } = compose::open(visit).await?;
    remarks.iter().for_each(|remark| printer.warn(remark));
    let (ops, mut inbox) = mpsc::channel(OPS_WAITING_MAX);
    let mut front = Front::new(printer, events, ops, asker, run.options.verbose)?;
    front.take_turn(&read(told)?);
    front.is_of(session);
    let wanted = (&run.options, &config);
    let code = finish(&mut front, &host, wanted, Ok(ended), &mut inbox).await;
    compose::sign(kernel.journal(), witness.as_ref(), Some((&kernel, &host.owner())), printer).await;
    conclude(&mut front, code)
}

/// A file in memory.
fn memory(name: &str, flags: MemfdFlags) -> Result<File> {
    Ok(File::from(rustix::fs::memfd_create(name, flags).context("no file in memory")?))
}

/// The turn that the process of the terminal told, from the beginning of its file.
fn read(mut told: File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    told.rewind()?;
    told.take(TOLD_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Starts the turn's terminal with the same arguments. That process reads standard input once more, and tells
/// the turn to `told`.
fn start(session: SessionId, key: SessionId, told: &File, input: Option<&[u8]>) -> Result<Child> {
    let mut words: Vec<_> = env::args_os().skip(1).collect();
    let mut stdin = Stdio::inherit();
    if let Some(bytes) = input {
        let mut memory = memory("bailey-task", MemfdFlags::CLOEXEC)?;
        memory.write_all(bytes)?;
        memory.rewind()?;
        stdin = memory.into();
    }
    words.insert(0, format!("{HANDOFF}{session},{key},{}", told.as_raw_fd()).into());
    let mut child = program::again();
    child.args(words).stdin(stdin).spawn().context("cannot start the process of a terminal")
}

/// How a turn ended.
enum TurnOutcome {
    So(String, Option<(String, Fault)>),
    /// The user left before that.
    Left,
    /// The session's process ended before that.
    CutOff,
}

/// Sends the task to its session, and shows the events until its turn is over.
pub async fn listen(home: &Home, run: &Args, handoff: &str, printer: &Printer) -> Result<ExitCode> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    let private = "`--handoff` is private; to do a task: bailey run";
    let (session, rest) = handoff.split_once(',').context(private)?;
    let (key, told) = rest.split_once(',').context(private)?;
    let session = SessionId::parse(session).context(private)?;
    let told: u32 = told.parse().context(private)?;
    let mut told = File::options().write(true).open(format!("/proc/self/fd/{told}")).context(private)?;
    let task = run.begin(printer)?;
    let config = Config::load(home)?;
    // This process loads the keys only to keep them out of its output.
    Keys::load(home, &config, printer)?;
    let asker = Asker::compliant(run.options.approve, compose::is_compliance(&config)?)?;
    let Ok(stream) = wire::connect(&home.daemon(), &session.to_string()) else {
        return Ok(ExitCode::from(exit::AGAIN));
    };
    stream.set_nonblocking(true)?;
    // INVARIANT: from here on this process reads the model's output.
    tell_unenforced(printer, &confinement::bind_front()?);
    let (read, write) = UnixStream::from_std(stream)?.into_split();
    let (events, happened) = mpsc::channel(EVENTS_WAITING_MAX);
    let (ops, asked) = mpsc::channel(OPS_WAITING_MAX);
    let lines = task.asked();
    ops.try_send(Op::Say(task.inbound(Some(key.into()))))?;
    let mut front = Front::new(printer, happened, ops, asker, run.options.verbose)?;
    front.is_guest();
    lines.iter().for_each(|line| front.asked(line));
    let turn = async {
        tokio::select! {
            ended = hear(read, events, key) => ended,
            // When a request cannot be sent any more, the session's process has ended.
            said = say(write, asked) => Ok(if said.is_ok() { TurnOutcome::Left } else { TurnOutcome::CutOff }),
        }
    };
    let ended = front.during(turn).await;
    told.set_len(0)?;
    told.write_all(&front.turn_told())?;
    let name = short(&session);
    match ended? {
        TurnOutcome::Left => {
            printer.note(&format!(
                "the turn goes on in the daemon; come back to it with `bailey chat --resume {name}`"
            ));
            Ok(ExitCode::from(front.ending().unwrap_or(exit::FAILED)))
        }
        TurnOutcome::CutOff => Ok(ExitCode::from(exit::AGAIN)),
        TurnOutcome::So(_, Some((error, fault))) => {
            front.tell_story();
            Err(exit::Failure { error, code: exit::of_fault(fault) }.into())
        }
        TurnOutcome::So(reason, None) => {
            // The process that compares the changes tells the whole story.
            Ok(ExitCode::from(match reason.as_str() {
                "answered" => exit::DONE,
                "refused" | "unanswered" => exit::REFUSED,
                "cancelled" => exit::CANCELLED,
                _ => exit::PAUSED,
            }))
        }
    }
}

/// Passes on the session's events until the turn of this message is over.
async fn hear(read: OwnedReadHalf, events: mpsc::Sender<Event>, key: &str) -> Result<TurnOutcome> {
    let mut read = BufReader::new(read);
    loop {
        let line = match wire::line(&mut read, EVENT_BYTES_MAX).await {
            Ok(Some(line)) => line,
            // A killed process leaves data unread, which resets the connection.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(TurnOutcome::CutOff),
            Ok(None) => return Ok(TurnOutcome::CutOff),
            Err(error) => return Err(error.into()),
        };
        let event: Event =
            serde_json::from_slice(&line).context("the session sent a line that is not an event")?;
        let ended = match &event.happening {
            Happening::End { reason, error, fault, .. } => {
                let failure = error.clone().map(|error| (error, fault.unwrap_or(Fault::Other)));
                Some(TurnOutcome::So(reason.clone(), failure))
            }
            Happening::Repeated { key: of, ended: Some(reason), .. } if of == key => {
                Some(TurnOutcome::So(reason.clone(), None))
            }
            Happening::Failed { op, error } if op == "say" => {
                Some(TurnOutcome::So("failed".into(), Some((error.clone(), Fault::Other))))
            }
            _ => None,
        };
        events.send(event).await.ok();
        if let Some(ended) = ended {
            return Ok(ended);
        }
    }
}

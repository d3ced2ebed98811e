//! `bailey start`, `stop`, `status`, `reload` and `logs`: the daemon of a home.

use crate::{LOG, alone, first, log::as_now};
use anyhow::{Context as _, Result, bail};
use bailey_home::{
    clock,
    home::{Home, make_private, reserve},
    program,
};
use bailey_protocol::{SessionId, Timestamp};
use bailey_session::{
    client::Client,
    exit::{self, Failure},
    wire::{Ask, ChannelState, DaemonAnswer, DaemonStatus, MemoryState, PageState, RestingState, Running},
};
use bailey_terminal::{
    one_line,
    print::{Printer, Style},
    short,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
    process::{ExitCode, Stdio},
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};

/// What a daemon that is on its way says to people.
const STDERR: &str = "stderr";
/// How long it may take to listen, and how often is looked.
const START_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);
/// How often a log that is followed is looked at.
const FOLLOW: Duration = Duration::from_millis(250);
/// The most of a log that is read for its last lines, in bytes.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// How long a daemon may take to say anything at all.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// What is waited for is named after this time.
const SILENCE: Duration = Duration::from_secs(1);

/// Starts the daemon, or is it.
pub async fn start(
    home: &Home,
    foreground: bool,
    detached: bool,
    held: bool,
    printer: &Printer,
) -> Result<ExitCode> {
    if foreground {
        if first::is_first() {
            return first::keep().await;
        }
        if detached {
            rustix::process::setsid().context("cannot leave the terminal")?;
        }
        crate::run(home, held, |says| printer.note(says)).await?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(status) = running(home, printer).await? {
        tell_up(&status, "runs already", printer);
        return Ok(ExitCode::SUCCESS);
    }
    make_private(&home.daemon())?;
    let told = home.daemon().join(STDERR);
    let stderr = File::create(&told).with_context(|| format!("cannot write `{}`", told.display()))?;
    let mut child = program::again()
        .arg("--home")
        .arg(&home.root)
        .args(["start", "--foreground", "--detached"])
        // What a home needs may not lie in a place that is unmounted one day.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .context("the daemon cannot be started")?;
    let begin = Instant::now();
    while begin.elapsed() < START_MAX {
        if let Some(status) = asked(home).await? {
            let is_ours = status.pid == child.id();
            if !is_ours {
                // Another start was faster, and this one's must not wait for the end of that one.
                child.kill().ok();
                child.wait()?;
            }
            tell_up(&status, if is_ours { "is up" } else { "runs already" }, printer);
            // It is up, and of no use: whoever started it is told, and not only who asks for something first.
            if let Err(why) = bailey_session::standing(home) {
                printer.warn(&nothing_begins(&why.to_string()));
            }
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(ended) = child.try_wait()? {
            let why = fs::read_to_string(&told).unwrap_or_default();
            let why = why.trim().strip_prefix("error: ").unwrap_or(why.trim());
            // Where there is no room for what it said, there is none for anything else.
            let unwritten = fs::write(&told, "?").err().filter(|_| why.is_empty());
            let nothing = unwritten.map_or_else(
                || "it said nothing".to_owned(),
                |error| format!("`{}` cannot be written: {error}", told.display()),
            );
            let error = format!("the daemon did not start: {}", if why.is_empty() { &nothing } else { why });
            let code = ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED);
            return Err(Failure { error, code }.into());
        }
        sleep(LOOK).await;
    }
    child.kill().ok();
    bail!("the daemon did not answer within {} s; its output is in `{}`", START_MAX.as_secs(), told.display())
}

/// How the daemon is; none where none runs.
async fn asked(home: &Home) -> Result<Option<DaemonStatus>> {
    let Some(mut client) = Client::connect(home)? else { return Ok(None) };
    match at_once(home, &mut client, Ask::Status).await? {
        DaemonAnswer::Status(status) => Ok(Some(*status)),
        _ => {
            bail!("the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`")
        }
    }
}

/// How the daemon is; one that is ending is waited for, and is none.
async fn running(home: &Home, printer: &Printer) -> Result<Option<DaemonStatus>> {
    let mut is_told = false;
    loop {
        let Some(mut client) = Client::connect(home)? else { return Ok(None) };
        match at_once(home, &mut client, Ask::Status).await {
            Ok(DaemonAnswer::Status(status)) if !status.stopping => return Ok(Some(*status)),
            Ok(DaemonAnswer::Status(status)) if !is_told => {
                printer.note(&format!(
                    "the old daemon (process {}) is ending; waiting for its end, and \
                     `bailey stop --patience 0` ends it sooner",
                    status.pid
                ));
                is_told = true;
            }
            // It may end before it answers.
            Ok(_) | Err(_) if is_told => {}
            Ok(_) => bail!(
                "the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`"
            ),
            Err(error) => return Err(error),
        }
        // Its end closes the connection, and so does its patience with who says nothing.
        while let Ok(Some(_)) = client.told().await {}
    }
}

fn tell_up(status: &DaemonStatus, how: &str, printer: &Printer) {
    if printer.is_json() {
        return printer.json(status);
    }
    printer.note(&format!(
        "the daemon {how} (process {}); `bailey chat` connects to it, `bailey stop` ends it",
        status.pid
    ));
}

/// Asks what is answered at once, by a daemon that hears anything.
async fn at_once(home: &Home, client: &mut Client, ask: Ask) -> Result<DaemonAnswer> {
    if let Ok(told) = timeout(ANSWER_MAX, client.ask(ask)).await {
        return told;
    }
    let (who, kill) = named(alone::holder(home)?.flatten(), "kill -KILL");
    bail!("the daemon of this home ({who}) has not answered for {} s; {kill}", ANSWER_MAX.as_secs())
}

/// A process as people are told of it, and of how it ends.
fn named(pid: Option<u32>, by: &str) -> (String, String) {
    match pid {
        Some(pid) => (format!("process {pid}"), format!("to end it: {by} {pid}")),
        None => ("another process".into(), "end it by its process".into()),
    }
}

/// That no daemon runs which cannot be asked, as one whose socket was removed.
async fn deaf(home: &Home) -> Result<()> {
    let Some(pid) = alone::deaf(home).await? else { return Ok(()) };
    let (who, kill) = named(pid, "kill");
    let socket = home.daemon().join(bailey_session::wire::SOCKET);
    bail!(
        "the daemon of this home runs ({who}) but cannot be reached, because it does not listen at `{}`; \
         {kill}",
        socket.display()
    )
}

async fn client(home: &Home) -> Result<Client> {
    let client = Client::connect(home)?;
    if client.is_none() {
        deaf(home).await?;
    }
    client.context("no daemon of this home runs; start it with `bailey start`")
}

/// Ends the daemon, and waits until it has ended.
pub async fn stop(home: &Home, patience_seconds: u64, printer: &Printer) -> Result<ExitCode> {
    let Some(mut client) = Client::connect(home)? else {
        deaf(home).await?;
        printer.note("no daemon of this home runs");
        return Ok(ExitCode::SUCCESS);
    };
    let begin = Instant::now();
    let mut told = Some(at_once(home, &mut client, Ask::Stop { patience_seconds }).await?);
    let mut named = None;
    while let Some(DaemonAnswer::Stopping { working }) = told {
        if working > 0 && named != Some(working) && begin.elapsed() < Duration::from_secs(patience_seconds) {
            let turns = if working == 1 {
                "the end of a turn".into()
            } else {
                format!("the ends of {working} turns")
            };
            printer.note(&format!(
                "waiting at most {patience_seconds} s for {turns}; Ctrl-C stops waiting, and the daemon \
                 still ends"
            ));
            named = Some(working);
        }
        told = client.told().await.unwrap_or(None);
    }
    if !alone::gone(home).await? {
        bail!("the daemon does not answer any more, and its process has not ended; `bailey logs` shows why");
    }
    if begin.elapsed() > SILENCE || !printer.is_json() {
        printer.note("the daemon has ended");
    }
    Ok(ExitCode::SUCCESS)
}

/// The status of the daemon and of its home, for scripts.
#[derive(Serialize)]
struct StatusReport<'a> {
    #[serde(flatten)]
    status: &'a DaemonStatus,
    /// Since when everything is stopped; RFC 3339, UTC.
    stopped: Option<Timestamp>,
    /// Why nothing begins besides: the journal cannot be opened.
    unreadable: Option<&'a str>,
}

/// `bailey status`.
pub async fn status(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let stands = bailey_session::standing(home);
    let unreadable = stands.as_ref().err().map(ToString::to_string);
    let stopped = stands.unwrap_or_default();
    if let Some(why) = unreadable.as_ref().filter(|_| !printer.is_json()) {
        printer.warn(&nothing_begins(why));
    }
    if let Some(since) = stopped.filter(|_| !printer.is_json()) {
        let says = "everything is stopped, and nothing begins until you run `bailey estop --release`";
        printer.line(format!("{} (since {})", printer.paint(Style::Red, says), at(&since.to_string())));
    }
    if let Some(lack) = reserve::lack(&home.root).filter(|_| !printer.is_json()) {
        printer.warn(&lack);
    }
    let Some(status) = asked(home).await? else {
        deaf(home).await?;
        if printer.is_json() {
            printer.json(&json!({ "pid": null, "stopped": stopped, "unreadable": unreadable }));
        }
        printer.note("no daemon of this home runs; start it with `bailey start`");
        return Ok(ExitCode::from(exit::FAILED));
    };
    if printer.is_json() {
        printer.json(&StatusReport { status: &status, stopped, unreadable: unreadable.as_deref() });
        return Ok(ExitCode::SUCCESS);
    }
    let since = at(&status.since);
    let state = if status.stopping { (Style::Yellow, "ending") } else { (Style::Green, "up") };
    printer.line(format!(
        "{} since {since}, process {}, version {}",
        printer.paint(state.0, state.1),
        status.pid,
        status.version
    ));
    status.memory.iter().for_each(|memory| tell_memory(memory, printer));
    for ChannelState { name, up, connecting, note } in &status.channels {
        if *connecting {
            let it = printer.paint(Style::Bold, &format!("channel {name}"));
            printer.line(format!("{it}  {}", printer.paint(Style::Yellow, "connecting")));
            continue;
        }
        tell_part(&format!("channel {name}"), *up, note, printer);
    }
    if let Some(PageState { url, up, note }) = &status.page {
        tell_part("page", *up, if *up { url } else { note }, printer);
    }
    if let Some(ChannelState { up, note, .. }) = &status.telemetry {
        tell_part("collector", *up, note, printer);
    }
    // Without titles the sessions are told all the same.
    let titles =
        if status.sessions.is_empty() { Vec::new() } else { titles(home, printer).await.unwrap_or_default() };
    for session in &status.sessions {
        let title = titles.iter().find(|(id, _)| *id == session.session).map_or("", |(_, title)| title);
        tell_session(session, title, printer);
    }
    for RestingState { session, questions } in &status.resting {
        let many = if *questions == 1 { "1 question waits" } else { &format!("{questions} questions wait") };
        printer.line(format!(
            "  {} {}  {}",
            printer.paint(Style::Bold, &format!("{:<16}", short(session))),
            printer.paint(Style::Yellow, many),
            printer.paint(Style::Dim, "bailey approvals list")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The same where there is no home.
pub fn status_of_none(root: &Path, printer: &Printer) -> ExitCode {
    if printer.is_json() {
        printer.json(&json!({ "pid": null, "stopped": null }));
    }
    printer.note(&format!(
        "no daemon runs, because there is no home at `{}`; name another home (--home DIR or BAILEY_HOME), \
         or create this one and start its daemon with `bailey start`",
        root.display()
    ));
    ExitCode::from(exit::FAILED)
}

fn nothing_begins(why: &str) -> String {
    format!("nothing can begin, because the journal cannot be opened: {why}")
}

/// A process that the daemon keeps, and the last that it said before it ended.
fn tell_part(name: &str, up: bool, about: &str, printer: &Printer) {
    let (style, state) = if up { (Style::Green, "up") } else { (Style::Yellow, "down") };
    printer.line(format!(
        "  {} {} {}",
        printer.paint(Style::Bold, &format!("{name:<16}")),
        printer.paint(style, &format!("{state:<5}")),
        printer.paint(Style::Plain, &one_line(about)),
    ));
}

/// Free memory is nothing to be told of.
fn tell_memory(memory: &MemoryState, printer: &Printer) {
    let (style, what) = match memory.state.as_str() {
        "free" => return,
        "held" => (Style::Yellow, "nothing new begins"),
        _ => (Style::Red, "nothing new begins, and sessions make room"),
    };
    let of = if memory.group { "its control group" } else { "the machine" };
    let says = format!("memory is short: {} % of the memory of {of} is taken; {what}", memory.percent);
    printer.line(printer.paint(style, &says));
}

/// The titles of the sessions of this home.
async fn titles(home: &Home, printer: &Printer) -> Result<Vec<(SessionId, String)>> {
    let sessions = bailey_session::journal(home, printer).await?.sessions().await?;
    Ok(sessions.into_iter().map(|session| (session.id, session.title)).collect())
}

fn tell_session(running: &Running, title: &str, printer: &Printer) {
    let Running { session, workspace, since, state, .. } = running;
    let doing = match (state.working, state.questions) {
        (_, 1..) => (Style::Yellow, "waits for you"),
        (true, _) => (Style::Green, "works"),
        (false, _) => (Style::Dim, "rests"),
    };
    let clients =
        if state.clients == 1 { "1 terminal".to_owned() } else { format!("{} terminals", state.clients) };
    printer.line(format!(
        "  {} {} {} {} {}  {}",
        printer.paint(Style::Bold, &short(session)),
        printer.paint(doing.0, &format!("{:<13}", doing.1)),
        printer.paint(Style::Dim, &at(since)),
        printer.paint(Style::Plain, &format!("{clients:<12}")),
        printer.paint(Style::Plain, &one_line(title)),
        printer.paint(Style::Dim, &one_line(&workspace.0)),
    ));
}

/// A time for people, to the second.
fn at(time: &str) -> String {
    time.parse().map_or_else(|_| time.to_owned(), clock::local_second)
}

/// `bailey reload`.
pub async fn reload(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let DaemonAnswer::Reloaded { older } = client(home).await?.ask(Ask::Reload).await? else {
        bail!("the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`");
    };
    let faults = bailey_channels::kinds::load(home).map(|config| bailey_channels::kinds::faults(&config));
    let faults = faults.unwrap_or_default();
    if printer.is_json() {
        printer.json(&json!({ "older": older, "warnings": faults }));
        return Ok(ExitCode::SUCCESS);
    }
    faults.iter().for_each(|fault| printer.warn(fault));
    printer.note(
        "the daemon has read the configuration and the rules; everything that begins from now on uses them",
    );
    if older > 0 {
        let sessions = if older == 1 { "1 session keeps".into() } else { format!("{older} sessions keep") };
        printer.note(&format!(
            "{sessions} the old configuration while a turn runs, a terminal is connected or a background \
             process runs (see `bailey status` and `bailey ps --stop SESSION/NUMBER`); their commands no \
             longer get keys that were changed or removed"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// `bailey logs`.
pub async fn logs(home: &Home, follow: bool, lines: usize, printer: &Printer) -> Result<ExitCode> {
    let path = home.daemon().join(LOG);
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!(
                "there is no log, because the daemon of this home has never run; start it with \
                 `bailey start`"
            )
        }
        file => file.with_context(|| format!("cannot read `{}`", path.display()))?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)))?;
    let mut rest = String::new();
    let shown = added(&mut file, &mut rest)?;
    shown.iter().skip(shown.len().saturating_sub(lines)).for_each(|line| show(line, printer));
    while follow && printer.closed().is_none() {
        sleep(FOLLOW).await;
        added(&mut file, &mut rest)?.iter().for_each(|line| show(line, printer));
        // A full log is moved aside, and a new one begins.
        if has_moved(&path, &file) {
            (file, rest) = (File::open(&path)?, String::new());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The lines that were added; the piece of one that is being written stays in `rest`.
fn added(file: &mut File, rest: &mut String) -> Result<Vec<String>> {
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    rest.push_str(&String::from_utf8_lossy(&bytes));
    let whole = rest.rfind('\n').map_or(0, |end| end + 1);
    Ok(rest.drain(..whole).collect::<String>().lines().map(str::to_owned).collect())
}

fn has_moved(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let here = file.metadata().map(|about| about.ino());
    matches!((fs::metadata(path).map(|about| about.ino()), here), (Ok(there), Ok(here)) if there != here)
}

/// A line of the log; what is none is shown as it is.
fn show(line: &str, printer: &Printer) {
    let fields = serde_json::from_str(line);
    let Ok(mut fields) = fields.map(as_now) else {
        return if printer.is_json() {
            // Such as what a power cut left: a reader of lines of JSON reads on.
            printer.json(&json!({ "level": "warn", "what": "unreadable", "message": line }))
        } else {
            printer.line(printer.paint(Style::Plain, line))
        };
    };
    if printer.is_json() {
        return printer.verbatim(&Value::Object(fields).to_string());
    }
    let mut word = |name: &str| match fields.remove(name) {
        Some(Value::String(text)) => text,
        other => other.map(|value| value.to_string()).unwrap_or_default(),
    };
    let (time, level, what) = (word("time"), word("level"), word("what"));
    fields.remove("message");
    let style = match level.as_str() {
        "error" => Style::Red,
        "warn" => Style::Yellow,
        _ => Style::Bold,
    };
    let about: Vec<String> = fields
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) if name == "text" => one_line(text),
            Value::String(text) => format!("{name} {}", one_line(text)),
            other => format!("{name} {other}"),
        })
        .collect();
    printer.line(format!(
        "{} {} {}",
        printer.paint(Style::Dim, &at(&time)),
        printer.paint(style, &what.replace('_', " ")),
        printer.paint(Style::Plain, &about.join(", "))
    ));
}

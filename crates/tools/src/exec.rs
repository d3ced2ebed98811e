//! Commands: what no command may be, and what the model is told when one has ended. The text holds no
//! duration, process id or other thing that differs from run to run: recorded conversations depend on it.

use crate::{change, limit, missing, typed::unexpected, unreached::Unreached};
use bailey_kernel::{Conclusion, Plan};
use bailey_protocol::{Action, Command, ExecReport, Outcome, Outside, Report, Status, Stream};

/// What git says where nobody told it whose a commit is.
const NO_IDENTITY: &str = "Author identity unknown";
/// How many refused requests the summary names.
const HOSTS_MAX: usize = 3;
/// Most bytes of one argument or variable, its NUL included (Linux MAX_ARG_STRLEN).
const WORD_BYTES_MAX: usize = 128 << 10;
/// Most bytes of all arguments and variables together (a quarter of the usual 8 MiB stack).
const WORDS_BYTES_MAX: usize = 2 << 20;

/// The action of a command that can be run at all.
///
/// # Errors
/// When `execve` could not take it.
pub(crate) fn plan(command: Command) -> Result<Plan, String> {
    match command.argv.first() {
        None => return Err("the list of arguments is empty; its first item is the program".into()),
        Some(program) if program.is_empty() => return Err("the program's name is empty".into()),
        Some(_) => {}
    }
    for name in command.env.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!(
                "`env` holds the name {name:?}; a name is not empty and holds no `=` or NUL"
            ));
        }
    }
    if let Some(mark) = mark(&command) {
        return Err(format!(
            "refused to run a command that holds `{mark}`: that text is a mark which stands for a secret that you are not shown. \
             The command would get the mark and not the secret, and could write it over the secret. Leave the mark out: \
             change other lines with fs.edit, or have the command read the secret from the file that holds it"
        ));
    }
    let pairs = command.env.iter().map(|(name, value)| (value, name.len() + value.len() + 2));
    let words = command.argv.iter().map(|word| (word, word.len() + 1)).chain(pairs);
    let mut total = 0_usize;
    for (word, len) in words {
        if word.contains('\0') {
            return Err(
                "an argument or variable holds a NUL byte; pass such data with `stdin` or a file".into()
            );
        }
        if len > WORD_BYTES_MAX {
            return Err(format!(
                "an argument or variable has {len} bytes, and Linux takes at most {WORD_BYTES_MAX}; \
                 pass it with `stdin` or a file"
            ));
        }
        total += len;
    }
    if total > WORDS_BYTES_MAX {
        return Err(format!(
            "arguments and variables have {total} bytes together; at most {WORDS_BYTES_MAX} fit"
        ));
    }
    Ok(Plan::Act(Action::Exec(command)))
}

/// The first redaction mark in a command's arguments, variables or input.
fn mark(command: &Command) -> Option<String> {
    let words = command.argv.iter().chain(command.env.values()).map(String::as_bytes);
    let input = command.stdin.iter().map(|stdin| stdin.0.as_slice());
    words.chain(input).find_map(|text| change::foreign_mark(&[], text))
}

/// What the model is told of a command. `wall_ms_max` is what it may ask for, in milliseconds.
pub(crate) fn conclude(action: Option<&Action>, outcome: &Outcome, wall_ms_max: u64) -> Conclusion {
    let (command, report) = match (action, &outcome.report) {
        (Some(Action::Exec(command)), Report::Exec(report)) => (command, report),
        _ => return unexpected(),
    };
    let cancelled = outcome.status == Status::Cancelled;
    let mut end =
        if cancelled { "cancelled before it ended".into() } else { ending(command, report, wall_ms_max) };
    if let Some(limit) = report.limit.as_ref().filter(|_| !cancelled) {
        end.push_str(limit::burst(limit, outcome.enforced.as_ref()));
    }
    let mut lines = vec![format!("$ {}", command.line()), end.clone()];
    for (name, stream) in [("stdout", &report.stdout), ("stderr", &report.stderr)] {
        if stream.total > 0 {
            lines.push(format!("--- {name} ---"));
            lines.push(shown(stream));
        }
    }
    if !report.refused.is_empty() {
        lines.push(format!(
            "(the network door refused {}; ask the human to allow that host and method where no rule does, or go on without)",
            named(&report.refused, report.refused_more)
        ));
    }
    if !report.not_passed.is_empty() {
        lines.push(format!(
            "(the network door could not pass on {})",
            named(&report.not_passed, report.not_passed_more)
        ));
    }
    let ok = !cancelled && report.exit == Some(0) && report.limit.is_none();
    // More time the model asks for itself.
    let is_late = report.limit.as_deref() == Some("time limit");
    let raise = if cancelled || is_late { None } else { limit::raise(report, &command.limits) };
    lines.extend(raise.map(|raise| format!("({raise})")));
    let mut summary = end.split(';').next().unwrap_or_default().to_owned();
    if !report.refused.is_empty() {
        let some = report.refused.get(..report.refused.len().min(HOSTS_MAX)).unwrap_or_default();
        let more = report.refused.len() - some.len();
        let more = report.refused_more.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        summary.push_str(&format!("; the network door refused {}", named(some, more)));
    } else if let Some(first) = report.not_passed.first() {
        summary.push_str(&format!("; the network door could not pass on {first}"));
    }
    let fetch = if ok || cancelled { None } else { missing::fetch(&printed(report)) };
    if let Some(fetch) = fetch {
        let way = if command.network { "" } else { "call again with `network`, or " };
        lines.push(format!(
            "(something that the project depends on is not here: {way}ask the human to run `{fetch}` in the project, outside)"
        ));
        summary.push_str(&format!("; open a way to what is missing, or fetch it with `{fetch}`"));
    } else if let Some(unreached) = Unreached::of(command, outcome, report) {
        let why = match unreached {
            Unreached::NoInterfaces => {
                "(which network interfaces there are is not told here; there is 127.0.0.1 alone. Bind to that address by name, \
                 or ask the human for `profile = \"standard-net\"` under [sandbox] in config.toml)"
            }
            Unreached::NoUnixSockets => {
                "(the call `socket` was refused: this session's walls allow no Unix sockets, and behind Landlock alone no sockets at all; \
                 use pipes or threads)"
            }
            Unreached::NoWay => {
                "(the sandbox has no network but what `network` asks for; a connection was refused)"
            }
            Unreached::NotTheDoor => {
                "(the network is reached through the door alone, which finds the names, too: a program has to use the proxy that \
                 `HTTPS_PROXY` names)"
            }
        };
        lines.push(why.into());
    }
    if !ok && printed(report).contains(NO_IDENTITY) {
        lines.push(
            "(the human's git has no name and e-mail, neither for this project nor at all; ask the human: `git config --global \
             user.name NAME && git config --global user.email MAIL`, outside, then a new session)"
                .into(),
        );
    }
    lines.extend(outside(report));
    Conclusion { ok, summary, text: lines.join("\n") }
}

/// Requests by name, and how many more there were.
fn named(first: &[String], more: u32) -> String {
    let more = (more > 0).then(|| format!("; and {more} more"));
    first.join("; ") + &more.unwrap_or_default()
}

/// What changed beneath a command that shares its view with a process in the background.
fn outside(report: &ExecReport) -> Option<String> {
    let Outside { paths, more } = &report.outside;
    if paths.is_empty() {
        return None;
    }
    let paths: Vec<&str> = paths.iter().map(|path| path.0.as_str()).collect();
    let more = if *more { " and more" } else { "" };
    Some(format!(
        "(changed in the project from outside while a process runs in the background, and maybe seen here as before until none \
         does; of a directory something came or went away: {}{more})",
        paths.join(", ")
    ))
}

fn ending(command: &Command, report: &ExecReport, wall_ms_max: u64) -> String {
    if let Some(limit) = &report.limit {
        let (wall_s, most_s) = (command.limits.wall_ms / 1000, wall_ms_max / 1000);
        return match limit.as_str() {
            "time limit" if wall_s < most_s => format!(
                "ended by the time limit of {wall_s} s; if it needs more, call again with a larger `timeout_s` \
                 (at most {most_s})"
            ),
            "time limit" => format!("ended by the time limit of {wall_s} s; there is no more than that"),
            _ => format!("ended by the {}", limit::limit(limit, &command.limits)),
        };
    }
    how(report)
}

/// How a command ended by itself.
pub(crate) fn how(report: &ExecReport) -> String {
    match (report.exit, report.signal) {
        (Some(code), _) => format!("exit code: {code}"),
        (None, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        },
        (None, None) => "ended; nobody saw how".into(),
    }
}

/// All that was kept of both streams.
pub(crate) fn printed(report: &ExecReport) -> String {
    [&report.stdout, &report.stderr].map(shown).join("\n")
}

/// What was kept of a stream, without the newline at its end.
pub(crate) fn shown(stream: &Stream) -> String {
    let kept = (stream.head.0.len() + stream.tail.0.len()) as u64;
    let end = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
    match stream.total.saturating_sub(kept) {
        0 => end(&String::from_utf8_lossy(&[stream.head.0.as_slice(), &stream.tail.0].concat())),
        left_out => {
            let (head, tail) = (end(&stream.head.lossy()), end(&stream.tail.lossy()));
            format!("{head}\n… {left_out} bytes left out …\n{tail}")
        }
    }
}

/// The names of Linux' standard signals (signal(7)), the same on x86-64 and aarch64.
fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    NAMES.get(usize::try_from(signal).ok()?.checked_sub(1)?).copied()
}

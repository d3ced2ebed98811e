//! `bailey init`: a commented configuration, the default rules, and a personality that is accepted. It looks
//! for keys and programs, overwrites nothing, and names the next step. On a terminal it asks for a model;
//! elsewhere it asks nothing.

mod ask;

use crate::{
    cli::Init,
    config::{Config, TEMPLATE},
    exit,
    front::or_quit,
    home::{Home, make_private},
    identity,
    print::{Printer, Style},
    project,
    stores::Stores,
};
use anyhow::{Context as _, Result};
use ask::Outcome;
use bailey_conversation::chat;
use bailey_kernel::Paper;
use serde_json::json;
use std::{
    fs::OpenOptions,
    io::{self, ErrorKind, IsTerminal as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

const ENV: &str =
    "# Keys, one NAME=value a line; `bailey secrets set NAME` writes them here. Read by Bailey alone: never given to a
# command, a log or a model.
# ANTHROPIC_API_KEY=
# OPENAI_API_KEY=
# GEMINI_API_KEY=
";

/// What is on this machine already.
struct Machine {
    /// Providers whose key is there, each with the key's name.
    keys: Vec<(String, String)>,
    model: Option<String>,
    git: Option<PathBuf>,
    /// The repository that we stand in.
    repository: Option<PathBuf>,
}

/// Writes the files of a new home, and asks on a terminal.
pub(super) async fn run(home: &Home, asked: Init, printer: &Printer) -> Result<ExitCode> {
    if let Some(providers) = &asked.look {
        ask::look(home, providers, asked.url.zip(Some(asked.key_env)), printer).await?;
        return Ok(ExitCode::SUCCESS);
    }
    make(home, printer)?;
    let asks = !asked.no_questions && !printer.is_json() && is_terminal();
    if asks && or_quit(ask::ask(home, printer)).await? == Outcome::Left {
        return Ok(ExitCode::from(exit::CANCELLED));
    }
    tell_next(home, printer)
}

/// Sets up a home in which no conversation could begin, before the first one. Gives the exit code where none
/// begins.
pub(super) async fn first(home: &Home, chat: &chat::Args, printer: &Printer) -> Result<Option<ExitCode>> {
    if chat.has_model() || !ask::is_needed(home)? {
        return Ok(None);
    }
    let not_here = chat.not_here(home);
    make(home, printer)?;
    if or_quit(ask::ask(home, printer)).await? == Outcome::Left {
        return Ok(Some(ExitCode::from(exit::CANCELLED)));
    }
    if ask::is_needed(home)? {
        Config::load(home)?.default_model(|_| false)?;
    }
    Ok(not_here.map(|why| {
        printer.note(&format!("{why:#}"));
        printer.note("Bailey is set up; go to a project's directory, and type `bailey`");
        ExitCode::SUCCESS
    }))
}

/// Whether a person is there to answer.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Makes the files that are missing.
fn make(home: &Home, printer: &Printer) -> Result<()> {
    make_private(&home.policy())?;
    let files = [
        (home.config(), TEMPLATE),
        (home.policy().join("default.toml"), bailey_policy::DEFAULT_RULES),
        (home.env_file(), ENV),
        (home.paper(Paper::Soul), identity::DEFAULT),
    ];
    for (path, content) in files {
        let made = write_new(&path, content)?;
        if made && path == home.paper(Paper::Soul) {
            identity::accept(home, Some(content))?;
        }
        if printer.is_json() {
            printer.json(&json!({ "file": path, "made": made }));
        } else {
            let what = if made { "made " } else { "kept " };
            printer.line(format!("{what}  {}", printer.paint(Style::Plain, &path.display().to_string())));
        }
    }
    Ok(())
}

/// Tells the present state and the next step.
fn tell_next(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let found = look(home)?;
    let next = next(&found);
    if printer.is_json() {
        let keys: Vec<&String> = found.keys.iter().map(|(_, key)| key).collect();
        let next: Vec<&str> = next.iter().map(|(command, _)| *command).collect();
        printer
            .json(&json!({ "keys": keys, "git": found.git, "repository": found.repository, "next": next }));
        return Ok(ExitCode::SUCCESS);
    }
    tell(&found, printer);
    printer.line("\nNext:");
    for (command, why) in next {
        let command = printer.paint(Style::Bold, &format!("{command:<36}"));
        printer.line(format!("  {command}  {}", printer.paint(Style::Dim, why)));
    }
    Ok(ExitCode::SUCCESS)
}

fn look(home: &Home) -> Result<Machine> {
    let config = Config::load(home)?;
    let stored = Stores::new(home, &config).names()?;
    let is_there = |name: &String| {
        std::env::var_os(name).is_some_and(|value| !value.is_empty())
            || stored.iter().any(|(known, _)| known == name)
    };
    let keys = config.providers.iter().filter_map(|(provider, settings)| {
        let key = settings.key_env.clone().filter(is_there)?;
        Some((provider.clone(), key))
    });
    let repository = project::find(None, home).ok().map(|(root, _)| root);
    Ok(Machine {
        keys: keys.collect(),
        model: config.model.clone(),
        git: on_path("git"),
        repository: repository.filter(|root| root.join(".git").exists()),
    })
}

fn tell(found: &Machine, printer: &Printer) {
    let line = |style, word: &str, text: &str| {
        printer.line(format!("{}  {}", printer.paint(style, word), printer.paint(Style::Plain, text)));
    };
    for (provider, key) in &found.keys {
        line(Style::Green, "found", &format!("{key}, the key of {provider}"));
    }
    if let Some(model) = &found.model {
        line(Style::Green, "found", &format!("the model {model}"));
    } else if found.keys.is_empty() {
        line(Style::Yellow, "none ", "no key of a model provider, neither in the environment nor in .env");
    }
    match &found.git {
        Some(git) => line(Style::Green, "found", &format!("{}", git.display())),
        None => line(
            Style::Yellow,
            "none ",
            "git is not on PATH: install it, so that agents can read a project's history",
        ),
    }
    if let Some(repository) = &found.repository {
        line(Style::Green, "found", &format!("the repository {}", repository.display()));
    }
}

/// The commands that come next, the first first, each with what is to be known of it.
fn next(found: &Machine) -> Vec<(&'static str, &'static str)> {
    let mut next = Vec::new();
    if found.keys.is_empty() && found.model.is_none() {
        next.push(("bailey secrets set ANTHROPIC_API_KEY", "or OPENAI_API_KEY, GEMINI_API_KEY"));
        next.push(("bailey config set model ollama/NAME", "or a local model, which needs no key"));
    }
    next.push(("bailey doctor", "checks everything that Bailey needs"));
    if found.repository.is_none() {
        next.push(("cd your/repository", ""));
    }
    next.push(("bailey run \"make the tests pass\"", "does one task"));
    next.push(("bailey", "begins a conversation"));
    next
}

/// Where a program lies; it is not started.
pub(super) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let is_program = |file: &PathBuf| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(is_program)
}

/// Writes a file of mode 600 unless it is there.
fn write_new(path: &Path, content: &str) -> Result<bool> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let written = file.write_all(content.as_bytes());
            if written.is_err() {
                // What is empty or cut would be taken for what somebody wrote.
                std::fs::remove_file(path).ok();
            }
            written.with_context(|| format!("cannot write `{}`", path.display()))?;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot make `{}`", path.display())),
    }
}

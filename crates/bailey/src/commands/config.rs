//! `bailey config`: what is in force and why, and a way to change it that leaves no broken file behind.

use crate::{
    agent_file, cli,
    client::Client,
    compose,
    config::{Config, Document, Origin, TEMPLATE, change, is_private, known_variables, unknown_variables},
    exit,
    home::{Home, write_private},
    print::{Printer, Style},
    project,
    stores::{Stores, is_in_environment},
};
use anyhow::{Context as _, Result, bail};
use bailey_channels::kinds;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

pub(super) fn run(home: &Home, command: cli::Config, printer: &Printer) -> Result<ExitCode> {
    match command {
        cli::Config::Show { origin, directory } => show(home, directory.as_deref(), origin, printer),
        cli::Config::Set { key, value } => {
            set(home, &[(&key, &change::spelled(&value))])
                // A number may be meant as a text.
                .or_else(|error| set(home, &[(&key, &change::text(&value))]).map_err(|_| error))?;
            tell_set(home, &key, printer)?;
            Ok(ExitCode::SUCCESS)
        }
        cli::Config::Edit => edit(home, printer),
        cli::Config::Check { file } => check(home, file, printer),
    }
}

fn show(home: &Home, directory: Option<&Path>, origin: bool, printer: &Printer) -> Result<ExitCode> {
    let mut config = Config::load(home)?;
    // Where no project can be, as in a home directory, there is nothing that could narrow.
    let root = match directory {
        Some(_) => Some(project::find(directory, home)?.0),
        None => project::find(None, home).ok().map(|(root, _)| root),
    };
    if let Some(root) = root {
        printer.notes(config.narrow(home, &root)?);
    }
    let values = config.values();
    let width =
        values.iter().map(|(key, value)| key.len() + shown(value).len() + 3).max().unwrap_or_default();
    for (key, value) in &values {
        let from = config.origin(key);
        if printer.is_json() {
            printer.json(&json!({ "key": key, "value": value, "origin": from.to_string() }));
            continue;
        }
        let is_own = *from != Origin::Default;
        let style = if is_own { Style::Plain } else { Style::Dim };
        let text = format!("{key} = {}", shown(value));
        let origin = if origin { format!("  # {from}") } else { String::new() };
        let pad = if origin.is_empty() { 0 } else { width.min(60).saturating_sub(text.len()) };
        printer.line(format!(
            "{}{:pad$}{}",
            printer.paint(style, &text),
            "",
            printer.paint(Style::Dim, &origin)
        ));
    }
    show_agent_file(home, printer);
    Ok(ExitCode::SUCCESS)
}

/// What the agent is told of itself, beneath the settings, of which it is none.
fn show_agent_file(home: &Home, printer: &Printer) {
    let path = home.agent_file();
    let (text, problem) = match agent_file::read(home) {
        Ok(None) => return,
        Ok(Some(text)) => (Some(text), None),
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    if printer.is_json() {
        printer.json(&json!({ "agent_file": path, "text": text, "problem": problem }));
        return;
    }
    if let Some(problem) = problem {
        printer.warn(&format!("{problem}; it is left out"));
    }
    if let Some(text) = text {
        printer.line("");
        printer.line(
            printer.paint(Style::Dim, &format!("# {}: what your agent is told; no settings", path.display())),
        );
        // An earlier session may have written it: what hides or turns the text is spelled out.
        let lines = printer.paint_lines(Style::Plain, text.trim_end());
        lines.into_iter().for_each(|line| printer.line(line));
    }
}

/// A value as TOML spells it, which JSON's spelling of these is; what is not set is said in words.
fn shown(value: &Value) -> String {
    if value.is_null() { "(not set)".into() } else { value.to_string() }
}

fn check(home: &Home, file: Option<PathBuf>, printer: &Printer) -> Result<ExitCode> {
    let path = file.clone().unwrap_or_else(|| home.config());
    let document = Document::open(&path)?;
    if document.is_none() && file.is_some() {
        bail!("there is no `{}`", path.display());
    }
    let config = match (&document, file) {
        (Some(document), Some(_)) => Config::of(home, document)?,
        // As every command reads it: with the environment.
        _ => Config::load(home)?,
    };
    if let Some(model) = &config.model {
        let from = config.origin("model");
        config.find(model).map_err(|error| exit::Mistyped(format!("`model`, from {from}: {error:#}")))?;
    }
    if let Some(document) = &document {
        kinds::check(&config, document)?;
    }
    config.check_agents(home)?;
    config.approvals.check(compose::is_compliance(&config)? && !config.approvals.is_compliance())?;
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut warnings: Vec<String> = unknown_variables(variables)
        .into_iter()
        .map(|name| {
            format!("{name} is not a variable of Bailey; the variables are {}", known_variables().join(", "))
        })
        .collect();
    let named = |key, urls: &'_ [String]| urls.iter().map(move |url| (key, url.clone())).collect::<Vec<_>>();
    let places =
        [named("private", &config.network.private), named("tunnels", &config.network.tunnels)].concat();
    let of_clouds = places.iter().filter(|(_, url)| bailey_egress::is_of_a_cloud(url));
    warnings.extend(of_clouds.map(|(key, url)| {
        format!(
            "`network.{key}` names `{url}`, where a cloud gives a machine its own secrets: no request goes \
             there, whatever the configuration says"
        )
    }));
    let in_the_clear =
        config.providers.iter().filter(|(_, it)| it.key_env.is_some() && !is_private(&it.base_url));
    warnings.extend(in_the_clear.map(|(name, provider)| {
        format!(
            "`providers.{name}`: `{}` is not encrypted and on another machine: anybody on the way can read \
             its key and every message",
            provider.base_url
        )
    }));
    warnings.extend(kinds::faults(&config));
    warnings.extend(without_secret(home, &config));
    if printer.is_json() {
        printer
            .json(&json!({ "ok": true, "file": path, "exists": document.is_some(), "warnings": warnings }));
        return Ok(ExitCode::SUCCESS);
    }
    for warning in &warnings {
        printer.line(printer.paint(Style::Yellow, &format!("warning: {warning}")));
    }
    let path = printer.paint(Style::Plain, &path.display().to_string());
    match document {
        Some(_) => printer.line(format!("{} {path}", printer.paint(Style::Green, "no mistake in"))),
        None => printer.line(format!(
            "there is no {path}, so every setting has its default; `bailey init` writes the file"
        )),
    }
    Ok(ExitCode::SUCCESS)
}

/// Keys of commands and of channels whose secret is nowhere.
fn without_secret(home: &Home, config: &Config) -> Vec<String> {
    if config.network.keys.is_empty() && config.channels.is_empty() {
        return Vec::new();
    }
    let stored = match Stores::new(home, config).names() {
        Ok(stored) => stored,
        Err(error) => return vec![format!("{error:#}")],
    };
    let is_there = |name: &str| is_in_environment(name) || stored.iter().any(|(known, _)| known == name);
    let of_commands = config
        .network
        .keys
        .iter()
        .map(|key| (&key.secret, format!("which a [[network.key]] puts in at {}", key.at)));
    let of_channels = config.channels.iter().map(|(name, channel)| {
        (&channel.key_env, format!("by which channel `{name}` is known at its platform"))
    });
    let missing = of_commands.chain(of_channels).filter(|(secret, _)| !is_there(secret));
    missing
        .map(|(secret, what)| {
            format!("there is no secret `{secret}`, {what}; store it with `bailey secrets set {secret}`")
        })
        .collect()
}

fn edit(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let path = home.config();
    let old = match Document::open(&path) {
        Ok(Some(_)) | Err(_) if path.exists() => read(&path)?,
        _ => TEMPLATE.to_owned(),
    };
    let editor = editor(&path)?;
    let draft = Draft::open(home, &old, printer)?;
    open_editor(&editor, &draft.path)?;
    let text = read(&draft.path)?;
    if text == old && path.exists() {
        draft.remove();
        printer.note("nothing was changed");
        return Ok(ExitCode::SUCCESS);
    }
    let stays =
        || format!("`{}` was not changed; your text is kept in `{}`", path.display(), draft.path.display());
    let checked = Document::parse(&draft.path, text.clone())
        .and_then(|document| kinds::check(&Config::of(home, &document)?, &document));
    if let Err(error) = checked {
        let error = anyhow::Error::new(error);
        return Err(error.context(format!("{}, and `bailey config edit` continues with it", stays())));
    }
    if path.exists() && read(&path)? != old {
        bail!("{}: somebody else changed the file meanwhile", stays());
    }
    write_private(&path, text.as_bytes())?;
    draft.remove();
    printer.line(format!("{} {}", printer.paint(Style::Green, "written:"), path.display()));
    if Client::is_there(home) {
        printer.note("the daemon uses the old configuration until you run `bailey reload`");
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets values, which are TOML, at keys of config.toml: all of them, or none where the file would have a
/// mistake.
pub(super) fn set(home: &Home, values: &[(&str, &str)]) -> Result<()> {
    rewrite(home, |file| with(file, values))
}

/// Changes the text of config.toml, which has no mistake then.
///
/// # Errors
/// When the new text has a mistake, or cannot be written. Nothing is changed then.
pub(super) fn rewrite(home: &Home, change: impl FnOnce(&str) -> Result<String, String>) -> Result<()> {
    let path = home.config();
    let (old, text) = checked(home, change)?;
    if path.exists() && read(&path)? != old {
        bail!("somebody else changed `{}` meanwhile; nothing was changed", path.display());
    }
    write_private(&path, text.as_bytes())
}

fn with(file: &str, values: &[(&str, &str)]) -> Result<String, String> {
    values.iter().try_fold(file.to_owned(), |text, (key, value)| change::set(&text, key, value))
}

/// The text of config.toml, and the text that [`set`] would make of it.
///
/// # Errors
/// At a value that would be a mistake.
pub(super) fn changed(home: &Home, values: &[(&str, &str)]) -> Result<(String, String)> {
    checked(home, |file| with(file, values))
}

fn checked(home: &Home, change: impl FnOnce(&str) -> Result<String, String>) -> Result<(String, String)> {
    let path = home.config();
    let old = if path.exists() { read(&path)? } else { TEMPLATE.to_owned() };
    let text = change(&old).map_err(exit::Mistyped)?;
    let document = Document::parse(&path, text.clone())?;
    let config = Config::of(home, &document)?;
    kinds::check(&config, &document)?;
    if let Some(model) = &config.model {
        config.find(model).map_err(|error| exit::Mistyped(format!("`model`: {error:#}")))?;
    }
    Ok((old, text))
}

/// Tells the value that is in force now.
fn tell_set(home: &Home, key: &str, printer: &Printer) -> Result<()> {
    let config = Config::load(home)?;
    let values = config.values();
    let value = values.iter().find(|(known, _)| known == key).map(|(_, value)| value);
    let origin = config.origin(key).to_string();
    if printer.is_json() {
        printer.json(&json!({ "key": key, "value": value, "origin": origin }));
    } else {
        let value = value.map_or_else(String::new, |value| format!(" = {}", shown(value)));
        printer.line(format!(
            "{} {}{}",
            printer.paint(Style::Green, "set:"),
            printer.paint(Style::Plain, &format!("{key}{value}")),
            printer.paint(Style::Dim, &format!("  # {origin}")),
        ));
    }
    if Client::is_there(home) {
        printer.note("the daemon uses the old configuration until you run `bailey reload`");
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// A text that wants to become config.toml.
struct Draft {
    path: PathBuf,
    /// What config.toml held when the draft was begun.
    base: PathBuf,
}

impl Draft {
    /// A new draft of `old`, or the one that waits. One that waits for a file that is another meanwhile is
    /// put aside: written, it would take back what was changed since.
    fn open(home: &Home, old: &str, printer: &Printer) -> Result<Self> {
        let draft = Self {
            path: home.root.join("config.toml.draft"),
            base: home.root.join("config.toml.draft.base"),
        };
        let waits = draft.path.exists();
        if waits && read(&draft.base).is_ok_and(|base| base == old) {
            printer.warn(&format!("this is the unsaved draft, `{}`", draft.path.display()));
            return Ok(draft);
        }
        if waits {
            let free =
                (1..).map(|n| home.root.join(format!("config.toml.draft.{n}"))).find(|path| !path.exists());
            let aside = free.context("there are too many drafts")?;
            fs::rename(&draft.path, &aside)
                .with_context(|| format!("cannot move `{}`", draft.path.display()))?;
            printer.warn(&format!(
                "config.toml has changed since the unsaved draft, which is kept as `{}`; this is \
                 config.toml as it is now",
                aside.display()
            ));
        }
        write_private(&draft.base, old.as_bytes())?;
        write_private(&draft.path, old.as_bytes())?;
        Ok(draft)
    }

    fn remove(&self) {
        fs::remove_file(&self.path).ok();
        fs::remove_file(&self.base).ok();
    }
}

/// The command of the human's editor, or the first that is here.
fn editor(config: &Path) -> Result<String> {
    let named = |name: &str| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let here = || ["editor", "nano", "vi"].into_iter().find(|name| super::init::on_path(name).is_some());
    named("VISUAL").or_else(|| named("EDITOR")).or_else(|| here().map(Into::into)).with_context(|| {
        format!(
            "no editor was found; set EDITOR, or change `{}` with any program and then run \
             `bailey config check`",
            config.display()
        )
    })
}

/// The human's own editor: the one program that Bailey starts outside of all walls, because the human asked
/// for it by name and types into it.
fn open_editor(editor: &str, path: &Path) -> Result<()> {
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(path)
        .status()
        .with_context(|| {
            format!("the editor `{editor}` cannot be started; set EDITOR to a program that is installed")
        })?;
    if !status.success() {
        bail!("the editor `{editor}` ended with {status}: nothing was changed; set EDITOR to one that works");
    }
    Ok(())
}

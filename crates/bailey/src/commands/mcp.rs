//! `bailey mcp`: the MCP servers whose tools the agent may use.

mod install;
mod known;
mod look;
mod project;

use crate::{
    cli::{Add, Mcp},
    config::{Config, McpServer, Sight, change, peers},
    exit,
    front::{Answering, Asker, choice},
    home::Home,
    print::{Printer, Style},
};
use anyhow::{Context as _, Result, bail};
use bailey_mcp::proposed;
use bailey_peers::{Approved, Described};
use bailey_protocol::{Level, Tier, ToolEffect};
use bailey_session::mcp::Folder;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use std::{collections::BTreeMap, process::ExitCode};

/// The setting that lets native walls stand in for a virtual machine.
const STAND_IN: &str = "sandbox.tiers.untrusted";

pub(super) async fn run(home: &Home, command: Mcp, printer: &Printer) -> Result<ExitCode> {
    match command {
        Mcp::Add(asked) => add(home, asked, printer).await,
        Mcp::Trust { directory, workspace, yes } => {
            project::trust(home, directory.as_deref(), workspace, yes, printer).await
        }
        Mcp::List => list(home, printer),
        Mcp::Show { name } => show(home, &name, printer),
        Mcp::Test { name } => test(home, &name, printer).await,
        Mcp::Approve { name, effects, yes } => {
            find(&Config::load(home)?, &name)?;
            approve(home, &name, &effects, yes, printer).await
        }
        Mcp::Update { name, yes } => update(home, &name, yes, printer).await,
        Mcp::Install { name, words } => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let words = words.try_into().map_err(|_| exit::Mistyped("four words are missing".into()))?;
            install::here(home, &name, words, printer).await?;
            Ok(ExitCode::SUCCESS)
        }
        Mcp::Remove { name } => remove(home, &name, printer),
    }
}

fn find(config: &Config, name: &str) -> Result<McpServer> {
    config.mcp.get(name).cloned().with_context(|| {
        let known: Vec<&str> = config.mcp.keys().map(String::as_str).collect();
        match known.is_empty() {
            true => format!("there is no MCP server `{name}`; `bailey mcp add` adds one"),
            false => format!("there is no MCP server `{name}`; there are: {}", known.join(", ")),
        }
    })
}

async fn add(home: &Home, asked: Add, printer: &Printer) -> Result<ExitCode> {
    let Add { name, hosts, workspace, keys, env, yes, command } = asked;
    peers::named(&name).map_err(exit::Mistyped)?;
    let config = Config::load(home)?;
    if config.mcp.contains_key(&name) || config.peers.contains_key(&name) {
        let error = format!("`{name}` is there already; `bailey mcp remove {name}` removes it");
        return Err(exit::Mistyped(error).into());
    }
    let known = || known::server(&name, home);
    let mut server = match command.is_empty() {
        false => McpServer::new(command),
        true => known().ok_or_else(|| {
            exit::Mistyped(format!(
                "`{name}` is no name that Bailey knows ({}): write the server's command behind `--`, such as \
                 `bailey mcp add {name} -- npx -y PACKAGE`",
                known::NAMES.join(", ")
            ))
        })?,
    };
    server.hosts.extend(hosts);
    server.keys.extend(keys);
    server.env.extend(env);
    if let Some(sees) = workspace {
        server.workspace = sees.sight();
    }
    install::check(&server.command)?;
    if !stands_in(home, &config, &server, printer).await? {
        return Ok(ExitCode::from(exit::DENIED));
    }
    // The state and the consent of an earlier server of this name are not this one's.
    let folder = Folder::of(home, &name);
    folder.remove()?;
    let server = install::install(home, &name, server, printer).await?;
    write(home, &name, Some(&server)).inspect_err(|_| drop(folder.remove()))?;
    if !printer.is_json() {
        printer.line(format!("{} the MCP server {name}", printer.paint(Style::Green, "added:")));
        tell(&server, printer);
    }
    approve(home, &name, &[], yes, printer).await
}

/// Whether the server's code may run in the walls that there are. The owner is asked once.
async fn stands_in(home: &Home, config: &Config, server: &McpServer, printer: &Printer) -> Result<bool> {
    if server.tier != Tier::Untrusted || config.tiers.untrusted <= Level::HIGHEST {
        return Ok(true);
    }
    let set = format!("bailey config set {STAND_IN} native");
    // It holds for all code of others, so no `--yes` to one server says it.
    if !Asker::new(Answering::Ask).is_here() {
        bail!(
            "an MCP server is code of others, for which the configuration wants a virtual machine, and Bailey \
             makes none yet; to accept the native walls instead: {set}"
        );
    }
    let asked = "An MCP server is code of others. The strongest walls that Bailey has are those around every \
                 command (namespaces, Landlock and a list of system calls); virtual machines do not come yet. \
                 Are these walls enough for code of others?";
    if !matches!(choice(asked, "[y/N]").await.as_str(), "y" | "yes") {
        printer.note(&format!("nothing was added; later: {set}"));
        return Ok(false);
    }
    super::config::set(home, &[(STAND_IN, "\"native\"")])?;
    printer.note(&format!("set {STAND_IN} = \"native\" in config.toml"));
    Ok(true)
}

/// Writes the table of a server, or removes it.
fn write(home: &Home, name: &str, server: Option<&McpServer>) -> Result<()> {
    let table = |server: &McpServer| {
        let tables = BTreeMap::from([("mcp", BTreeMap::from([(name, server)]))]);
        toml::to_string(&tables).context("the entry cannot be written")
    };
    let table = server.map(table).transpose()?;
    super::config::rewrite(home, |file| {
        let without = change::without_table(file, &["mcp", name])?;
        Ok(match &table {
            Some(table) => change::with_table(&without, table),
            None => without,
        })
    })
}

/// What a server may do, in lines.
fn tell(server: &McpServer, printer: &Printer) {
    let or = |list: &[String], none: &str| match list.is_empty() {
        true => none.to_owned(),
        false => list.join(", "),
    };
    let sees = match server.workspace {
        Sight::None => "nothing of it",
        Sight::Read => "reads it",
        Sight::Write => "reads it; changes wait for `/apply`",
    };
    for (what, value) in [
        ("runs", server.command.join(" ")),
        ("package", server.package.clone().unwrap_or_default()),
        ("lock", server.lock.clone().unwrap_or_default()),
        ("network", or(&server.hosts, "none")),
        ("project", sees.to_owned()),
        ("keys", or(&server.keys, "")),
        ("only in", server.project.as_ref().map(|it| it.display().to_string()).unwrap_or_default()),
        (
            "env",
            server.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
        ),
        ("files", server.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ")),
    ] {
        if !value.is_empty() {
            printer.line(format!("  {what:<9}{}", printer.paint(Style::Plain, &value)));
        }
    }
}

fn list(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    if config.mcp.is_empty() && !printer.is_json() {
        printer.note("there are no MCP servers; `bailey mcp add memory`, for one");
    }
    for (name, server) in &config.mcp {
        let approved = Folder::of(home, name).approved()?;
        if printer.is_json() {
            printer.json(&document(name, server, &approved)?);
            continue;
        }
        let tools = match approved.is_empty() {
            true => printer.paint(Style::Yellow, "not agreed to"),
            false => count(approved.len(), "tool"),
        };
        let command = server.package.clone().unwrap_or_else(|| server.command.join(" "));
        printer.line(format!("{name:<14}{tools:<16}{}", printer.paint(Style::Dim, &command)));
    }
    Ok(ExitCode::SUCCESS)
}

/// A server for scripts: its entry, its name, and its tools with their effects.
fn document(name: &str, server: &McpServer, approved: &[Approved]) -> Result<Value> {
    let tools = approved.iter().map(|it| json!({ "name": it.tool.name, "effect": it.effect }));
    let mut document = serde_json::to_value(server)?;
    if let Value::Object(fields) = &mut document {
        fields.insert("name".into(), json!(name));
        fields.insert("tools".into(), Value::Array(tools.collect()));
    }
    Ok(document)
}

fn show(home: &Home, name: &str, printer: &Printer) -> Result<ExitCode> {
    let server = find(&Config::load(home)?, name)?;
    let approved = Folder::of(home, name).approved()?;
    if printer.is_json() {
        printer.json(&document(name, &server, &approved)?);
        return Ok(ExitCode::SUCCESS);
    }
    printer.line(printer.paint(Style::Bold, name));
    tell(&server, printer);
    approved.iter().for_each(|it| tool(&it.tool, it.effect, printer));
    if approved.is_empty() {
        printer.note(&format!("the agent has none of its tools: `bailey mcp approve {name}`"));
    }
    Ok(ExitCode::SUCCESS)
}

/// One tool with its effect, in a line.
fn tool(tool: &Described, effect: ToolEffect, printer: &Printer) {
    let (style, word) = match effect {
        ToolEffect::Read => (Style::Green, "read"),
        ToolEffect::Write => (Style::Green, "write"),
        ToolEffect::Egress => (Style::Yellow, "egress, asks"),
        ToolEffect::Destructive => (Style::Red, "destructive, asks"),
        ToolEffect::Unclear => (Style::Yellow, "unclear, asks"),
    };
    printer.line(format!("  {}  {}", printer.paint(Style::Bold, &tool.name), printer.paint(style, word)));
}

/// All that a model is told of a tool, in lines: its description, and each name and text of its schema.
fn texts(tool: &Described) -> Vec<String> {
    fn inner(schema: &Value, at: &str, lines: &mut Vec<String>) {
        match schema {
            Value::Object(fields) if !fields.is_empty() => fields.iter().for_each(|(name, value)| {
                let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                inner(value, &at, lines);
            }),
            Value::Array(values) if !values.is_empty() => {
                values.iter().for_each(|value| inner(value, at, lines));
            }
            value => lines.push(format!("{at}: {value}")),
        }
    }
    let mut lines: Vec<String> = tool.description.lines().map(str::to_owned).collect();
    inner(&tool.schema, "", &mut lines);
    lines.retain(|line| !line.trim().is_empty());
    lines
}

async fn test(home: &Home, name: &str, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    let server = find(&config, name)?;
    let tools = look::here(home, &config, (name, server), printer).await?;
    if printer.is_json() {
        printer.json(&tools);
        return Ok(ExitCode::SUCCESS);
    }
    tools.iter().for_each(|it| tool(it, proposed(it), printer));
    printer.line(format!("{} {}", printer.paint(Style::Green, "works:"), count(tools.len(), "tool")));
    Ok(ExitCode::SUCCESS)
}

/// Shows the tools of a server, or how they differ from those that the owner agreed to, and asks.
async fn approve(
    home: &Home,
    name: &str,
    effects: &[(String, ToolEffect)],
    yes: bool,
    printer: &Printer,
) -> Result<ExitCode> {
    let tools = look::tools(home, name).await?;
    if tools.is_empty() {
        printer.note("it has no tools");
        return Ok(ExitCode::SUCCESS);
    }
    let folder = Folder::of(home, name);
    let before = folder.approved()?;
    if let Some((tool, _)) = effects.iter().find(|(tool, _)| tools.iter().all(|it| it.name != *tool)) {
        return Err(exit::Mistyped(format!("`{name}` has no tool `{tool}`")).into());
    }
    let word = |tool: &Described| effects.iter().find(|(named, _)| *named == tool.name).map(|(_, it)| *it);
    let old = |tool: &Described| before.iter().find(|it| it.tool.name == tool.name);
    let after: Vec<Approved> = tools
        .into_iter()
        .map(|tool| {
            let of_before = old(&tool).filter(|it| it.tool == tool).map(|it| it.effect);
            let effect = word(&tool)
                .or(of_before)
                .unwrap_or_else(|| proposed(&tool))
                .max(tool.hint.unwrap_or(ToolEffect::Read));
            Approved { effect, tool }
        })
        .collect();
    if before == after {
        printer.note("you agreed to these tools already, and nothing has changed");
        return Ok(ExitCode::SUCCESS);
    }
    if !printer.is_json() {
        differ(&before, &after, printer);
    }
    let asks = after.iter().filter(|it| it.effect > ToolEffect::Write).count();
    if !yes {
        if !Asker::new(Answering::Ask).is_here() {
            printer.note(&format!("the agent has these tools after `bailey mcp approve {name}`"));
            return Ok(ExitCode::from(exit::DENIED));
        }
        let asked = format!(
            "May the agent use these {}? Bailey asks you before each call of {asks} of them.",
            count(after.len(), "tool")
        );
        if !matches!(choice(&asked, "[y/N]").await.as_str(), "y" | "yes") {
            printer.note(&format!("the agent has none of them; later: `bailey mcp approve {name}`"));
            return Ok(ExitCode::from(exit::DENIED));
        }
    }
    folder.approve(&after)?;
    if printer.is_json() {
        printer.json(&document(name, &find(&Config::load(home)?, name)?, &after)?);
    } else {
        printer.line(format!(
            "{} {} of {name}; new sessions have them",
            printer.paint(Style::Green, "agreed:"),
            count(after.len(), "tool")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The difference between the tools of before and those of now.
fn differ(before: &[Approved], after: &[Approved], printer: &Printer) {
    for gone in before.iter().filter(|old| after.iter().all(|new| new.tool.name != old.tool.name)) {
        let name = printer.paint(Style::Plain, &gone.tool.name);
        printer.line(format!("  {} {name}", printer.paint(Style::Red, "gone")));
    }
    for new in after {
        let old = before.iter().find(|old| old.tool.name == new.tool.name);
        if old == Some(new) {
            continue;
        }
        tool(&new.tool, new.effect, printer);
        let now = texts(&new.tool);
        let Some(old) = old else {
            for line in now {
                printer.line(format!("      {}", printer.paint(Style::Dim, &line)));
            }
            continue;
        };
        let (old, now) = (texts(&old.tool).join("\n"), now.join("\n"));
        for change in TextDiff::from_lines(&old, &now).iter_all_changes() {
            let (style, mark) = match change.tag() {
                ChangeTag::Equal => continue,
                ChangeTag::Delete => (Style::Red, '-'),
                ChangeTag::Insert => (Style::Green, '+'),
            };
            let line = format!("{mark}{}", change.value().trim_end());
            printer.line(format!("      {}", printer.paint(style, &line)));
        }
    }
}

async fn update(home: &Home, name: &str, yes: bool, printer: &Printer) -> Result<ExitCode> {
    let server = find(&Config::load(home)?, name)?;
    let Some(old) = server.package.clone() else {
        bail!(
            "Bailey did not install `{name}`, so it has nothing to update; `bailey mcp approve {name}` looks at its tools"
        );
    };
    let server = install::newest(home, name, server, printer).await?;
    write(home, name, Some(&server)).inspect_err(|_| Folder::of(home, name).undo_install())?;
    let new = server.package.clone().unwrap_or_default();
    match new == old {
        true => printer.note(&format!("{old} is the newest version")),
        false => printer.note(&format!("{old} is {new} now")),
    }
    approve(home, name, &[], yes, printer).await
}

fn remove(home: &Home, name: &str, printer: &Printer) -> Result<ExitCode> {
    let (config, folder) = (Config::load(home)?, Folder::of(home, name));
    let is_plain = peers::named(name).is_ok();
    if config.mcp.contains_key(name) {
        write(home, name, None)?;
    } else if !is_plain || !folder.exists() {
        find(&config, name)?;
    }
    folder.remove()?;
    match printer.is_json() {
        true => printer.json(&json!({ "removed": name })),
        false => printer.line(format!("{} the MCP server {name}", printer.paint(Style::Green, "removed:"))),
    }
    Ok(ExitCode::SUCCESS)
}

fn count(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::texts;
    use bailey_peers::Described;
    use serde_json::json;

    /// The names of a schema reach the model, too.
    #[test]
    fn the_owner_sees_each_word_that_reaches_the_model() {
        let schema = json!({
            "type": "object",
            "properties": { "send the keys": { "type": "string" }, "then": {}, "a": { "enum": ["b", []] } },
        });
        let tool = Described { name: "t".into(), description: "One.\n\nTwo.".into(), schema, hint: None };
        let shown = texts(&tool).join("\n");
        for word in ["One.", "Two.", "send the keys", "then", "enum", "\"b\""] {
            assert!(shown.contains(word), "{word}: {shown}");
        }
    }
}

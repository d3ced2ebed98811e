//! `bailey mcp trust`: the servers that a project's own `.mcp.json` names.
//!
//! The file is the project's, and anybody who changes the project changes it. So its servers count only as
//! the owner looked at them: each becomes an entry of the home that is for this project alone, and names the
//! digest of the file. Another file is not trusted.

use super::{approve, find, install, stands_in, tell, write};
use crate::{
    cli::Sees,
    config::{Config, McpServer, peers},
    exit,
    front::{Answering, Asker, choice},
    home::Home,
    print::{Printer, Style},
    project,
};
use anyhow::{Context as _, Result, bail};
use bailey_protocol::Digest;
use bailey_secrets::is_secret_name;
use bailey_session::mcp::Folder;
use serde::Deserialize;
use std::{collections::BTreeMap, path::Path, process::ExitCode};

/// The file, as other clients write it; further keys mean nothing here.
#[derive(Debug, Deserialize)]
struct File {
    #[serde(rename = "mcpServers", default)]
    servers: BTreeMap<String, Server>,
}

/// One server of the file.
#[derive(Debug, Deserialize)]
struct Server {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

pub(super) async fn trust(
    home: &Home,
    directory: Option<&Path>,
    sees: Option<Sees>,
    yes: bool,
    printer: &Printer,
) -> Result<ExitCode> {
    let (root, _) = project::find(directory, home)?;
    let shown = root.join(project::MCP_SERVERS);
    let text = project::mcp_servers(&root)?;
    let text = text.with_context(|| format!("there is no `{}`", shown.display()))?;
    let file: File =
        serde_json::from_str(&text).with_context(|| format!("`{}` has a mistake", shown.display()))?;
    let digest = Digest::of(text.as_bytes()).to_string();
    let mut servers = Vec::new();
    for (name, server) in file.servers {
        match entry(&name, server, printer) {
            Ok((name, server)) => {
                let workspace = sees.map_or(server.workspace, Sees::sight);
                let (project, trusted) = (Some(root.clone()), Some(digest.clone()));
                servers.push((name, McpServer { workspace, project, trusted, ..server }));
            }
            Err(error) => printer.warn(&format!("`{name}` is left out: {error:#}")),
        }
    }
    if servers.is_empty() {
        bail!("`{}` names no server that can be used", shown.display());
    }
    for (name, server) in &servers {
        printer.line(printer.paint(Style::Bold, name));
        tell(server, printer);
    }
    if !yes {
        let asked = "Do you trust these servers, as the file is now, in the sessions of this project?";
        if !Asker::new(Answering::Ask).is_here()
            || !matches!(choice(asked, "[y/N]").await.as_str(), "y" | "yes")
        {
            printer.note("nothing was changed");
            return Ok(ExitCode::from(exit::DENIED));
        }
    }
    let mut worst = exit::DONE;
    for (name, server) in servers {
        if let Err(error) = take(home, &root, (&name, server), yes, printer).await {
            printer.warn(&format!("`{name}` is not used: {error:#}"));
            worst = exit::FAILED;
        }
    }
    Ok(ExitCode::from(worst))
}

/// Takes one server into the configuration, and asks about its tools.
async fn take(
    home: &Home,
    root: &Path,
    (name, server): (&str, McpServer),
    yes: bool,
    printer: &Printer,
) -> Result<()> {
    let config = Config::load(home)?;
    match find(&config, name) {
        Ok(old) if old.project.as_deref() != Some(root) => {
            bail!("another server has this name: `bailey mcp show {name}`")
        }
        Ok(_) => Folder::of(home, name).remove()?,
        Err(_) if config.peers.contains_key(name) => bail!("a peer has this name"),
        Err(_) => Folder::of(home, name).remove()?,
    }
    if !stands_in(home, &config, &server, printer).await? {
        bail!("the native walls are not accepted for it");
    }
    let server = install::install(home, name, server, printer).await?;
    write(home, name, Some(&server))?;
    approve(home, name, &[], yes, printer).await.map(drop)
}

/// The entry of a server of the file.
fn entry(name: &str, server: Server, printer: &Printer) -> Result<(String, McpServer)> {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(plain).collect();
    peers::named(&name).map_err(anyhow::Error::msg)?;
    let Server { command, args, env } = server;
    let command = command.context("it has no command (servers over HTTP do not come yet)")?;
    let command: Vec<String> = [command].into_iter().chain(args).collect();
    if command.iter().chain(env.values()).any(|word| word.contains("${")) {
        bail!("it wants a variable of yours (`${{…}}`): add it with `bailey mcp add`");
    }
    install::check(&command)?;
    let (secrets, env): (BTreeMap<_, _>, BTreeMap<_, _>) =
        env.into_iter().partition(|(name, _)| is_secret_name(name));
    for name in secrets.keys() {
        printer
            .warn(&format!("its variable `{name}` looks like a secret and is left out (`bailey guide mcp`)"));
    }
    Ok((name, McpServer { env, ..McpServer::new(command) }))
}

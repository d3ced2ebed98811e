//! Starts a server inside the walls, and reads its tools.
//!
//! A server's words are foreign, so a process of its own reads them, which binds itself. The process that
//! asks the owner and writes the home's files gets them from there, as a list of the closed form
//! [`Described`].

use crate::{
    compose::{self, Keys, OpenSession, Session},
    config::{Config, McpServer, Sight},
    home::Home,
    print::Printer,
    program, project,
};
use anyhow::{Context as _, Result, bail};
use bailey_peers::Described;
use bailey_protocol::WsPath;
use bailey_session::{Opening, mcp::Folder};
use std::process::Stdio;

/// Has a process of its own list the tools of a server.
///
/// # Errors
/// When the server does not start.
pub(super) async fn tools(home: &Home, name: &str) -> Result<Vec<Described>> {
    let listed = child(home, &["mcp", "test", name]).await?;
    serde_json::from_str(&listed).context("the list of its tools has a mistake")
}

/// An empty project, for a server that sees none.
///
/// # Errors
/// When it cannot be made.
pub(super) fn nowhere(home: &Home, name: &str) -> Result<WsPath> {
    let nowhere = Folder::of(home, name).nowhere()?;
    Ok(WsPath(nowhere.display().to_string()))
}

/// The tools of a server, by a session whose changes are not kept; the server's own state is. This process is
/// bound afterwards.
///
/// # Errors
/// When the server does not start.
pub(super) async fn here(
    home: &Home,
    config: &Config,
    (name, server): (&str, McpServer),
    printer: &Printer,
) -> Result<Vec<Described>> {
    // The owner looks at it, in any project.
    let server = McpServer { project: None, trusted: None, ..server };
    let workspace = match server.workspace {
        Sight::None => nowhere(home, name)?,
        Sight::Read | Sight::Write => project::find(None, home)?.1,
    };
    let keys = Keys::load(home, config, printer)?;
    let session = Session {
        is_scratch: true,
        servers: [(name.to_owned(), server)].into(),
        ..Session::new(home, config, keys, workspace, Opening::New(compose::new_session()?))
    };
    let OpenSession { host, kernel, peers, witness, remarks, .. } = compose::open(session).await?;
    let is_about = |remark: &&String| remark.contains(&format!("the MCP server `{name}` is not used"));
    if !peers.has(name) {
        bail!("{}", remarks.iter().find(is_about).map_or("it cannot be started", String::as_str));
    }
    let started = kernel.start_peer(&host.owner(), name).await;
    let tools = peers.seen(name);
    kernel.rest_programs().await;
    let (_ops, mut inbox) = tokio::sync::mpsc::channel(1);
    let discarded = host.discard(&mut inbox).await.map(drop);
    compose::sign(kernel.journal(), witness.as_ref(), Some((&kernel, &host.owner())), printer).await;
    started.map_err(|why| anyhow::anyhow!("the MCP server `{name}` did not start: {why}"))?;
    discarded.context("what the server changed could not be discarded")?;
    Ok(tools)
}

/// The standard output of a process of this program, which binds itself.
///
/// # Errors
/// Why it failed, by its own words.
pub(super) async fn child(home: &Home, words: &[&str]) -> Result<String> {
    #[derive(serde::Deserialize)]
    struct Failed {
        error: String,
    }
    let mut command = program::again();
    command.arg("--home").arg(&home.root).arg("--json").args(words).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let last = said.lines().last().and_then(|line| serde_json::from_str::<Failed>(line).ok());
    let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    bail!("{}", last.map_or(told, |failed| failed.error))
}

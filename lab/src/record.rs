//! Makes the demo's recording: the model's words come from `demo/words.json` over a real socket, everything
//! that the requests hold happens.

use anyhow::{Context as _, Result};
use bailey_testkit::{Call, Message, ModelServer, Reply};
use serde::Deserialize;
use std::{fs, path::Path, process::Stdio};
use xtask::{
    check,
    demo::{Project, TASK, cassette, command},
    root,
};

#[derive(Deserialize)]
struct Words {
    text: String,
    calls: Vec<CallWords>,
}

#[derive(Deserialize)]
struct CallWords {
    id: String,
    name: String,
    arguments: serde_json::Value,
}

impl Words {
    fn reply(self) -> Reply {
        let call = |call: CallWords| Call { id: call.id, name: call.name, arguments: call.arguments };
        let calls = self.calls.into_iter().map(call).collect();
        Reply::Message(Message { text: self.text, calls, usage: (1200, 80), stop: None })
    }
}

/// Records with this program.
pub(crate) fn run(bailey: &Path) -> Result<()> {
    let project = &Project::make(false)?;
    let file = root().join("demo").join("words.json");
    let words = fs::read(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let words: Vec<Words> = serde_json::from_slice(&words)?;
    let server = ModelServer::start(words.into_iter().map(Words::reply));
    fs::create_dir_all(project.home())?;
    let config = format!("[providers.demo]\nwire = \"anthropic\"\nbase_url = \"{}\"\n", server.base_url());
    fs::write(project.home().join("config.toml"), config)?;
    let mut run = command(bailey, project);
    run.args(["run", "--approve", "never", "--model", "demo/recorded", "-C"]).arg(project.crate_dir());
    run.arg("--record").arg(cassette()).arg(TASK);
    check(run.stdin(Stdio::null()))?;
    println!("\nrecorded to {}", cassette().display());
    Ok(())
}

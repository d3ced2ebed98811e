//! One small turn of the real binary: a home, a project, and a model that can go on from any point.
//!
//! The model edits `notes`, runs a command that adds a line to `marks`, runs a second one, and answers. Each
//! call has a name of its own, and a command's line is its call's name: so `marks` says what was done, and
//! how often, whatever the journal says. What the model is told may have happened it does again under another
//! name, as a model would.

use super::calls::Call;
use super::trace::{self, Role, Traced, When};
use anyhow::{Context as _, Result, bail, ensure};
use bailey_testkit::{ModelServer, Reply, Request};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};
use tempfile::TempDir;

pub(super) const TASK: &str = "count to two";
pub(super) const BEFORE: &str = "one\n";
pub(super) const AFTER: &str = "two\n";
/// What the model does, in this order.
const STEPS: [&str; 3] = ["edit", "first", "second"];
/// How often the model tries one step in one turn.
const ATTEMPTS_MAX: usize = 3;

/// The files and the model of one run.
pub(super) struct Stage {
    folder: Arc<TempDir>,
    program: PathBuf,
    /// The project's folder, and the provider's name.
    name: String,
    /// Whether the home has no other project, so that each session in it is of this one.
    is_alone: bool,
    server: ModelServer,
    environment: Vec<(&'static str, &'static str)>,
}

impl Stage {
    /// A new home and project for this program.
    pub(super) fn new(program: &Path) -> Result<Self> {
        Self::several(program, 1)?.pop().context("no project was made")
    }

    /// A new home, and so many projects, each with a model of its own.
    pub(super) fn several(program: &Path, count: usize) -> Result<Vec<Self>> {
        // Canonical, as Bailey names a workspace.
        let base = fs::canonicalize(std::env::temp_dir())?;
        let folder = Arc::new(tempfile::Builder::new().prefix("bailey-kill-").tempdir_in(base)?);
        for name in ["home", "user"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let (mut stages, mut config) = (Vec::new(), String::new());
        for number in 1..=count {
            let name = if number == 1 { "project".to_owned() } else { format!("project-{number}") };
            let stage = Self {
                folder: folder.clone(),
                program: program.into(),
                name,
                is_alone: count == 1,
                server: ModelServer::by(reply),
                environment: Vec::new(),
            };
            fs::create_dir(stage.project())?;
            fs::write(stage.project().join("notes"), BEFORE)?;
            let url = stage.server.base_url();
            config += &format!("[providers.{}]\nwire = \"anthropic\"\nbase_url = \"{url}\"\n", stage.name);
            stages.push(stage);
        }
        fs::write(folder.path().join("home/config.toml"), config)?;
        Ok(stages)
    }

    /// The same, with a variable for the program.
    pub(super) fn with(mut self, variable: (&'static str, &'static str)) -> Self {
        self.environment.push(variable);
        self
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder().join(&self.name)
    }

    /// The bytes of a file of the project; none when it is not there.
    pub(super) fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.project().join(name)).ok()
    }

    /// The commands' lines as they lie in the session's layer.
    pub(super) fn layer_marks(&self) -> String {
        let sessions = fs::read_dir(self.folder().join("home/sessions")).into_iter().flatten().flatten();
        let own = if self.is_alone { None } else { self.session().ok().flatten() };
        let is_own = |name: &str| self.is_alone || own.as_deref() == Some(name);
        let sessions = sessions.filter(|session| is_own(&session.file_name().to_string_lossy()));
        let marks =
            sessions.filter_map(|session| fs::read_to_string(session.path().join("upper/marks")).ok());
        marks.collect()
    }

    /// Runs the task under the driver.
    pub(super) fn traced(
        &self,
        role: Role,
        when: When,
        aim: &mut dyn FnMut(usize, &Call) -> bool,
    ) -> Result<Traced> {
        trace::run(&self.task(), self.folder(), role, when, aim)
    }

    /// What the traced run printed.
    pub(super) fn printed(&self) -> String {
        fs::read_to_string(self.folder().join("stdout")).unwrap_or_default()
    }

    /// The task, from its beginning.
    pub(super) fn task(&self) -> Command {
        let project = self.project().display().to_string();
        let mut command = self.bailey(&["--json", "run", "-C", &project]);
        self.turn(&mut command).arg(TASK);
        command
    }

    /// Goes on after a kill.
    pub(super) fn resume(&self) -> Result<String> {
        self.output(&mut self.going_on()?)
    }

    /// What a person would do after a kill: the task again where it was never accepted, a word where the turn
    /// had ended, and else nothing.
    pub(super) fn going_on(&self) -> Result<Command> {
        let Some(session) = self.session()? else { return Ok(self.task()) };
        let trail = self.trail()?;
        let accepted = trail.iter().any(|entry| entry["type"] == "accepted");
        let ended = trail.iter().any(|entry| entry["type"] == "turn_ended");
        let mut command = self.bailey(&["--json", "sessions", "resume", &session]);
        self.turn(&mut command);
        match (accepted, ended) {
            (false, _) => drop(command.arg(TASK)),
            (true, true) => drop(command.arg("go on")),
            (true, false) => {}
        }
        Ok(command)
    }

    fn turn<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.args(["--apply", "--approve", "never", "--model"]).arg(format!("{}/model", self.name))
    }

    /// The one session in this project; none when it was never opened.
    pub(super) fn session(&self) -> Result<Option<String>> {
        let project = self.project().display().to_string();
        let mut sessions = self.lines(&["--json", "sessions", "list"])?;
        sessions.retain(|session| session["workspace"] == *project);
        ensure!(sessions.len() <= 1, "there are {} sessions in {project}", sessions.len());
        Ok(sessions.first().and_then(|session| session["id"].as_str()).map(Into::into))
    }

    /// The session's entries.
    pub(super) fn trail(&self) -> Result<Vec<Value>> {
        let session = self.session()?;
        let mut entries = self.lines(&["--json", "audit", "log", "-n", "100000"])?;
        entries.retain(|entry| entry["session"].as_str() == session.as_deref());
        Ok(entries)
    }

    /// The one session's entries with their payloads.
    pub(super) fn transcript(&self) -> Result<Vec<Value>> {
        let session = self.session()?.context("there is no session")?;
        self.lines(&["--json", "sessions", "show", &session])
    }

    pub(super) fn verify(&self) -> Result<()> {
        self.output(&mut self.bailey(&["audit", "verify"])).map(drop)
    }

    /// What the model was told last.
    pub(super) fn told(&self) -> Result<Told> {
        let request = self.server.requests().pop().context("the model was never asked")?;
        Ok(Told::read(&request.json()))
    }

    /// The program over this home.
    pub(super) fn bailey(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--home").arg(self.folder().join("home")).args(arguments);
        command.env("HOME", self.folder().join("user")).stdin(Stdio::null()).current_dir(self.folder());
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "BAILEY_HOME", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().copied());
        command
    }

    fn lines(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let text = self.output(&mut self.bailey(arguments))?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    fn output(&self, command: &mut Command) -> Result<String> {
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        let arguments: Vec<_> = command.get_args().skip(2).collect();
        bail!(
            "{arguments:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )
    }
}

/// What a request tells the model.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// What people said.
    pub(super) said: Vec<String>,
    /// The result of each call: its name, whether it went well, the text. None for a call without a result.
    pub(super) results: Vec<(String, Option<(bool, String)>)>,
    /// How many results there were when somebody last said something.
    before: usize,
}

impl Told {
    fn read(request: &Value) -> Self {
        let mut told = Self::default();
        for message in request["messages"].as_array().into_iter().flatten() {
            let from_person = message["role"] == "user";
            for block in message["content"].as_array().into_iter().flatten() {
                told.take(block, from_person);
            }
        }
        told
    }

    fn take(&mut self, block: &Value, from_person: bool) {
        let name = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("tool_use") => self.results.push((name("id"), None)),
            Some("tool_result") => {
                let text = match &block["content"] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let (id, ok) = (name("tool_use_id"), block["is_error"] != true);
                if let Some((_, result)) = self.results.iter_mut().find(|(known, _)| *known == id) {
                    *result = Some((ok, text));
                }
            }
            Some("text") if from_person => {
                self.said.push(name("text"));
                self.before = self.results.len();
            }
            _ => {}
        }
    }

    /// Tries of a step: all, and those of the turn at hand; and whether the last one went well.
    fn tries(&self, step: &str) -> (usize, usize, bool) {
        let of_step = |(name, _): &&(String, Option<(bool, String)>)| name.starts_with(step);
        let all = self.results.iter().filter(of_step).count();
        let now = self.results.iter().skip(self.before).filter(of_step).count();
        let last = self.results.iter().rfind(of_step);
        (all, now, last.is_some_and(|(_, result)| result.as_ref().is_some_and(|(ok, _)| *ok)))
    }
}

/// The script: the first step that was not done, or the end.
fn reply(request: &Request) -> Reply {
    let told = Told::read(&request.json());
    for step in STEPS {
        let (all, now, done) = told.tries(step);
        if done {
            continue;
        }
        if now >= ATTEMPTS_MAX {
            return Reply::text("it cannot be done");
        }
        let call = format!("{step}-{}", all + 1);
        return match (step, all) {
            ("edit", 0) => {
                let arguments = json!({"path": "notes", "old": BEFORE, "new": AFTER});
                Reply::calls([(&call, "fs_edit", arguments)])
            }
            ("edit", _) => Reply::calls([(&call, "fs_write", json!({"path": "notes", "content": AFTER}))]),
            _ => Reply::calls([(&call, "command_run", json!({"command": format!("echo {call} >> marks")}))]),
        };
    }
    Reply::text("done")
}

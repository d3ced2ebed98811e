//! A stage for one scenario: a home of its own, a project in git, a scripted model.

use bailey_testkit::{ModelServer, Reply};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

/// A home, a project, and nothing of the developer's own.
pub(crate) struct Stage {
    folder: TempDir,
}

/// What one command of the binary came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Stage {
    /// A stage whose project holds these files, committed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let stage = Self { folder: tempfile::Builder::new().prefix("bailey-test-").tempdir().unwrap() };
        fs::create_dir_all(stage.project()).unwrap();
        for (path, content) in files {
            stage.write(path, content);
        }
        stage.git(&["init", "--quiet", "--initial-branch=main"]);
        stage.git(&["add", "--all"]);
        stage.git(&["commit", "--quiet", "--allow-empty", "--message", "start"]);
        stage
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The project; canonical, because the temporary directory is.
    pub(crate) fn project(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join("project")
    }

    /// Bailey's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Reads a file of the project.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.project().join(path)).unwrap()
    }

    /// Runs git in the project, without the developer's configuration.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(self.project())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The binary under test, over this stage's home and in its project, without the developer's keys.
    pub(crate) fn bailey(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bailey"));
        command
            .current_dir(self.project())
            .arg("--home")
            .arg(self.home())
            .args(arguments)
            .stdin(Stdio::null());
        for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "BAILEY_HOME", "NO_COLOR"] {
            command.env_remove(key);
        }
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn ran(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.bailey(arguments).output().unwrap())
    }

    /// Points the provider `test` of this home at a scripted model.
    pub(crate) fn model(&self, script: Vec<Reply>) -> ModelServer {
        let server = ModelServer::start(script);
        fs::create_dir_all(self.home()).unwrap();
        let config =
            format!("[providers.test]\nwire = \"anthropic\"\nbase_url = \"{}\"\n", server.base_url());
        fs::write(self.home().join("config.toml"), config).unwrap();
        server
    }

    /// The same, keeping what the home's configuration says already.
    pub(crate) fn model_beside(&self, script: Vec<Reply>) -> ModelServer {
        let server = ModelServer::start(script);
        self.provider(&server);
        server
    }

    /// Names a model's server in the home's configuration as the provider `test`.
    pub(crate) fn provider(&self, server: &ModelServer) {
        let config = self.home().join("config.toml");
        let old = fs::read_to_string(&config).unwrap_or_default();
        let provider =
            format!("[providers.test]\nwire = \"anthropic\"\nbase_url = \"{}\"\n", server.base_url());
        fs::write(config, old + &provider).unwrap();
    }

    /// Runs one task against a scripted model, with nobody at the terminal, events as JSON.
    pub(crate) fn task(&self, script: Vec<Reply>, options: &[&str]) -> (Ran, ModelServer) {
        let server = self.model(script);
        let fixed = ["--json", "run", "--model", "test/model", "--approve", "never"];
        (self.ran(&[&fixed, options, &["do it"]].concat()), server)
    }

    /// The journal's entries.
    pub(crate) fn trail(&self) -> Vec<Value> {
        self.ran(&["--json", "audit", "log", "-n", "1000000"]).lines()
    }

    /// Those of a type.
    pub(crate) fn entries(&self, kind: &str) -> Vec<Value> {
        self.trail().into_iter().filter(|entry| entry["type"] == kind).collect()
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output as JSON lines.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// The results of tool calls, as the model saw them, in order.
    pub(crate) fn results(&self) -> Vec<String> {
        let results = self.lines().into_iter().filter(|event| event["type"] == "result");
        results.map(|event| event["text"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

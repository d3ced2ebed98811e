//! Installs the package of a server, once, inside the walls, with a way to the package's registry alone.
//!
//! A registry's answers and a package's scripts are foreign: they run in the walls, with nothing in sight but
//! the new program's own folder. The result comes back as one line of the closed form [`Installed`], through
//! a process of its own that binds itself.

use crate::{
    compose::{self, Keys, OpenSession, Session},
    config::{Config, McpServer},
    exit,
    home::Home,
    print::Printer,
};
use anyhow::{Context as _, Result, bail};
use bailey_session::{
    Opening,
    mcp::{Folder, Install, PROGRAM},
};
use serde::{Deserialize, Serialize};
use std::{fs, path::Path};

/// Installs an npm package into the home inside, and prints its version and program.
const NPM: &str = r#"set -e
cd "$HOME"
npm install --prefix "$HOME" --no-audit --no-fund --no-update-notifier --fetch-retries=1 --loglevel=error "$1" >&2
exec node -e '
const fs = require("fs"), path = require("path"), name = process.argv[1], bin = process.argv[2];
const own = path.join(process.env.HOME, "node_modules", name);
const about = JSON.parse(fs.readFileSync(path.join(own, "package.json"), "utf8"));
const all = typeof about.bin === "string" ? { [bin]: about.bin } : about.bin || {};
const names = Object.keys(all), only = names.length === 1 ? names[0] : bin;
const file = all[bin] || all[only];
if (!file) throw new Error(name + " has no program " + bin + ", but " + names.join(", "));
console.log(JSON.stringify({ version: about.version, file: path.posix.join("node_modules", name, file) }));
' "$2" "$3"
"#;

/// Installs a Python package into the home inside, and prints its version and program.
const PIP: &str = r#"set -e
cd "$HOME"
python3="$(python3 -c 'import sys; print(sys.executable)')"
"$python3" -m pip install --quiet --no-input --disable-pip-version-check --no-cache-dir --target "$HOME/lib" "$1" >&2
exec "$python3" -c '
import hashlib, json, os, pathlib, sys
from importlib.metadata import distributions
lib, name, wanted = pathlib.Path(os.environ["HOME"], "lib"), sys.argv[1], sys.argv[2]
plain = lambda text: text.lower().replace("_", "-").replace(".", "-")
lock, own = {}, None
for dist in sorted(distributions(path=[str(lib)]), key=lambda it: it.metadata["Name"]):
    record = dist.read_text("RECORD") or ""
    lock[dist.metadata["Name"]] = [dist.version, hashlib.sha256(record.encode()).hexdigest()]
    if plain(dist.metadata["Name"]) == plain(name): own = dist
pathlib.Path(os.environ["HOME"], "package-lock.json").write_text(json.dumps(lock, indent=1))
programs = [it.name for it in own.entry_points if it.group == "console_scripts"]
program = wanted if wanted in programs or len(programs) != 1 else programs[0]
assert program in programs, f"{name} has no program {wanted}, but {programs}"
print(json.dumps({"version": own.version, "file": "lib/bin/" + program}))
' "$2" "$3"
"#;

/// A package.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Package {
    kind: Kind,
    name: String,
    /// The version that is asked for.
    version: Option<String>,
    /// The program of it.
    program: String,
    /// The arguments of the program.
    args: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Npm,
    Pip,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pip => "pip",
        }
    }

    /// The hosts of the registry.
    fn hosts(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &["registry.npmjs.org"],
            Self::Pip => &["pypi.org", "files.pythonhosted.org"],
        }
    }
}

/// An installed package.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Installed {
    version: String,
    /// The program, relative to the folder.
    file: String,
}

/// Installs the package that the server's command would fetch at each start. Another command stays as it is.
///
/// # Errors
/// When it cannot be installed. Nothing of it stays then.
pub(super) async fn install(
    home: &Home,
    name: &str,
    server: McpServer,
    printer: &Printer,
) -> Result<McpServer> {
    match Package::of(&server.command)? {
        Some(package) => installed(home, name, server, package, printer).await,
        None => Ok(server),
    }
}

/// Checks a command before anything is done.
///
/// # Errors
/// When it names no package that Bailey can install.
pub(super) fn check(command: &[String]) -> Result<()> {
    Package::of(command).map(drop)
}

/// Installs the newest version of a server's package.
///
/// # Errors
/// When it cannot be installed. The old one stays then.
pub(super) async fn newest(
    home: &Home,
    name: &str,
    server: McpServer,
    printer: &Printer,
) -> Result<McpServer> {
    let package = server.package.as_deref().and_then(|spec| Package::kept(spec, &server));
    let package = package.context("the entry does not name a package as `bailey mcp add` writes it")?;
    installed(home, name, server, package, printer).await
}

async fn installed(
    home: &Home,
    name: &str,
    server: McpServer,
    package: Package,
    printer: &Printer,
) -> Result<McpServer> {
    let folder = Folder::of(home, name);
    folder.begin_install()?;
    printer.note(&format!(
        "installing {} inside the walls, from {}",
        package.spec(),
        package.kind.hosts().join(", ")
    ));
    let done = run(home, name, &package).await;
    let Installed { version, file } = match done {
        Ok(done) => done,
        Err(error) => {
            folder.abandon_install();
            return Err(error);
        }
    };
    let is_version = |byte: u8| byte.is_ascii_alphanumeric() || b".+-_".contains(&byte);
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
    if !version.bytes().all(is_version) || !file.split('/').all(is_plain) {
        folder.abandon_install();
        bail!("the package has a version or a program of no usual form");
    }
    let new = folder.new_program();
    let place = |path: &Path| fs::canonicalize(path).context("the program is not where the package says");
    let lock = folder.lock(&new);
    let is_within = place(&new.join(&file)).and_then(|file| Ok(file.starts_with(place(&new)?)));
    if lock.is_none() || !is_within.as_ref().is_ok_and(|is_within| *is_within) {
        folder.abandon_install();
        bail!("the package left no lock file, or a program that lies elsewhere: it is not used");
    }
    folder.finish_install()?;
    let (interpreter, mut env) = match package.kind {
        Kind::Npm => ("node", server.env.clone()),
        Kind::Pip => ("python3", server.env.clone()),
    };
    if package.kind == Kind::Pip {
        env.insert("PYTHONPATH".into(), format!("{PROGRAM}/lib"));
    }
    let command = [interpreter.to_owned(), format!("{PROGRAM}/{file}")];
    Ok(McpServer {
        command: command.into_iter().chain(package.args).collect(),
        lock,
        program: Some(package.program),
        package: Some(format!("{}:{}@{version}", package.kind.name(), package.name)),
        env,
        ..server
    })
}

/// Runs the installation in a process of its own.
async fn run(home: &Home, name: &str, package: &Package) -> Result<Installed> {
    let (kind, spec) = (package.kind.name(), package.spec());
    let words = ["mcp", "install", name, kind, &spec, &package.name, &package.program];
    let said = super::look::child(home, &words).await;
    let line = said.with_context(|| {
        format!("{spec} was not installed (`bailey audit log` shows what the network door answered)")
    })?;
    serde_json::from_str(&line).with_context(|| format!("the installation said {line:?}"))
}

/// The installation itself. This process is bound afterwards.
///
/// # Errors
/// When it fails.
pub(super) async fn here(home: &Home, name: &str, words: [&str; 4], printer: &Printer) -> Result<()> {
    let [kind, spec, package, program] = words;
    let (kind, script) = match kind {
        "npm" => (Kind::Npm, NPM),
        "pip" => (Kind::Pip, PIP),
        _ => return Err(exit::Mistyped(format!("`{kind}` is no kind of package")).into()),
    };
    let config = Config::load(home)?;
    let workspace = super::look::nowhere(home, name)?;
    let keys = Keys::load(home, &config, printer)?;
    let command = ["/bin/sh", "-c", script, "install", spec, package, program].map(str::to_owned).to_vec();
    let hosts = kind.hosts().iter().map(|host| (*host).to_owned()).collect();
    let session = Session {
        is_scratch: true,
        install: Some(Install::new(name, command, hosts)),
        ..Session::new(home, &config, keys, workspace, Opening::New(compose::new_session()?))
    };
    let OpenSession { host, kernel, witness, installed, .. } = compose::open(session).await?;
    let started = kernel.start_peer(&host.owner(), name).await;
    compose::sign(kernel.journal(), witness.as_ref(), Some((&kernel, &host.owner())), printer).await;
    started.map_err(anyhow::Error::msg)?;
    let told = installed.context("nothing was installed")?.told();
    let done: Installed = serde_json::from_str(&told).with_context(|| format!("it said {told:?}"))?;
    printer.json(&done);
    Ok(())
}

impl Package {
    /// The package that a command fetches and starts; `None` for another command.
    ///
    /// # Errors
    /// When it uses an option that Bailey does not know.
    fn of(command: &[String]) -> Result<Option<Self>> {
        let Some((first, rest)) = command.split_first() else { return Ok(None) };
        let kind = match first.as_str() {
            "npx" => Kind::Npm,
            "uvx" => Kind::Pip,
            _ => return Ok(None),
        };
        let mut rest = rest.iter();
        let mut from = None;
        let word = loop {
            let word = rest.next().with_context(|| format!("`{first}` names no package"))?;
            match (kind, word.as_str()) {
                (Kind::Npm, "-y" | "--yes" | "-q" | "--quiet") => {}
                (Kind::Npm, "-p" | "--package") | (Kind::Pip, "--from") => from = rest.next().cloned(),
                (_, option) if option.starts_with('-') => match option.split_once('=') {
                    Some(("--package" | "--from", package)) => from = Some(package.to_owned()),
                    _ => bail!(
                        "Bailey does not know the option `{option}` of `{first}`; install the server by \
                         yourself, and write its program behind `--`"
                    ),
                },
                _ => break word.clone(),
            }
        };
        let is_whole = from.is_some();
        let (name, version) = split(from.as_deref().unwrap_or(&word), kind);
        let program = match is_whole {
            true => word,
            false => name.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"@/._-".contains(&byte);
        if name.is_empty() || name.starts_with(['-', '/', '.']) || !name.bytes().all(is_name) {
            bail!("`{name}` is no name of a package in a registry");
        }
        Ok(Some(Self { kind, name, version, program, args: rest.cloned().collect() }))
    }

    /// The package of an entry, in its newest version.
    fn kept(spec: &str, server: &McpServer) -> Option<Self> {
        let (kind, rest) = spec.split_once(':')?;
        let kind = [Kind::Npm, Kind::Pip].into_iter().find(|it| it.name() == kind)?;
        let name = rest.rsplit_once('@')?.0.to_owned();
        let program = server.program.clone()?;
        let args = server.command.get(2..).unwrap_or_default().to_vec();
        Some(Self { kind, name, version: None, program, args })
    }

    /// As the registry's client takes it.
    fn spec(&self) -> String {
        match (&self.version, self.kind) {
            (None, Kind::Npm) => format!("{}@latest", self.name),
            (Some(version), Kind::Npm) => format!("{}@{version}", self.name),
            (None, Kind::Pip) => self.name.clone(),
            (Some(version), Kind::Pip) => format!("{}=={version}", self.name),
        }
    }
}

/// The name and the version of `name@version` or `name==version`.
fn split(text: &str, kind: Kind) -> (String, Option<String>) {
    let at = match kind {
        Kind::Pip if text.contains("==") => text.split_once("=="),
        // The first character of a name may be `@`.
        _ => text.rfind('@').filter(|at| *at > 0).and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?))),
    };
    match at {
        Some((name, version)) if version != "latest" => (name.to_owned(), Some(version.to_owned())),
        Some((name, _)) => (name.to_owned(), None),
        None => (text.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::Package;

    fn of(words: &str) -> Option<(String, String, String)> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let package = Package::of(&words).ok()??;
        Some((package.spec(), package.program.clone(), package.args.join(" ")))
    }

    #[test]
    fn a_command_that_fetches_a_package_names_it() {
        let three = |a: &str, b: &str, c: &str| Some((a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(of("npx -y @a/server-x ."), three("@a/server-x@latest", "server-x", "."));
        assert_eq!(of("npx @a/server-x@1.2.3"), three("@a/server-x@1.2.3", "server-x", ""));
        assert_eq!(of("npx -p pack tool --port 1"), three("pack@latest", "tool", "--port 1"));
        assert_eq!(
            of("uvx mcp-server-git --repository ."),
            three("mcp-server-git", "mcp-server-git", "--repository .")
        );
        assert_eq!(of("uvx --from pack==1.0 tool"), three("pack==1.0", "tool", ""));
        assert_eq!(of("uvx pack@1.0"), three("pack==1.0", "pack", ""));
        assert_eq!(of("node server.js"), None);
        for wrong in [
            "npx",
            "npx -y",
            "npx --registry=https://evil x",
            "npx ../x",
            "uvx --with y x",
            "npx -p",
            "npx git+ssh://x",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}

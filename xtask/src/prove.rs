//! `cargo xtask prove`: takes each wall and each check away in turn, in a build that can, and looks that
//! `bailey prove` says NOT HELD of exactly the lines that this one holds.

use crate::{cargo, check, target_dir};
use anyhow::{Context as _, Result, bail};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Command,
};

/// An ordinary user's number, whom nothing belongs to.
const STRANGER: u32 = 54_321;

/// What only a program that can be broken knows: the switch, and those names of [`BREAKS`] that are no words
/// of anything else.
const WORDS: [&str; 6] =
    ["BAILEY_BREAK", "single_use", "named_files", "rules_in_force", "token_chain", "token_ledger"];

/// Which of these words this program knows.
pub fn words_in(program: &Path) -> Result<Vec<&'static str>> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let has = |word: &&str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
    Ok(WORDS.into_iter().filter(has).collect())
}

/// One thing, or several, taken away.
struct Break {
    /// Names, separated by commas: of walls as in the journal, and of checks as `broken` in the code has
    /// them.
    names: &'static str,
    /// What is tried without it, by how the lines' names begin; none: all of it.
    tried: &'static [&'static str],
    /// Exactly these lines turn.
    not_held: &'static [&'static str],
    who: Who,
}

/// Who attacks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    /// An ordinary user: much is kept from another user's root, whatever else is broken.
    User,
    /// Only root can leave the user namespace away.
    Root,
}

const fn one(names: &'static str, not_held: &'static [&'static str]) -> Break {
    Break { names, tried: &[], not_held, who: Who::User }
}

const fn several(
    names: &'static str,
    tried: &'static [&'static str],
    not_held: &'static [&'static str],
) -> Break {
    Break { names, tried, not_held, who: Who::User }
}

/// Where several walls hold one line, it turns only when all of them are away: those rows come second. The
/// namespaces of ipc, uts and cgroups and no_new_privs hold no line by themselves.
const BREAKS: &[Break] = &[
    one("", &[]),
    one(
        "mount_namespace",
        &[
            "git.hook",
            "home.file",
            "home.key",
            "law.journal",
            "law.key",
            "law.rules",
            // What it writes is not in the layer then, where it would be counted.
            "limit.disk",
            "mask.env",
            "mask.moved",
            "outside.read",
            "outside.write",
            "project.write",
        ],
    ),
    // The holder's signal, by which a full disk is told, has a sender in the same namespace then.
    one("pid_namespace", &["limit.disk", "process.left"]),
    one("net_namespace", &["network.loopback", "network.route"]),
    one("landlock", &["kernel.write"]),
    one("seccomp", &["call.bpf", "call.io_uring", "call.keyring", "call.namespace", "call.userfault"]),
    one("pids_limit", &["limit.tasks"]),
    one("memory_limit", &["limit.memory"]),
    one("disk", &["limit.disk"]),
    one("overlay", &["network.shown"]),
    one("masks", &["mask.env"]),
    one("pins", &["mask.moved"]),
    one("environment", &["host.variables"]),
    one("beneath", &["link.swap"]),
    one("built_in_rules", &["gate.law"]),
    one("unwalled", &["gate.unwalled"]),
    one("tiers", &["walls.tier"]),
    one("single_use", &["gate.once"]),
    one("named_files", &["gate.files"]),
    one("budget", &["gate.budget"]),
    one("stop", &["gate.stop"]),
    one("expiry", &["gate.late"]),
    one("rules_in_force", &["gate.rules"]),
    one("token_chain", &["gate.forged"]),
    one("token_ledger", &["gate.spent"]),
    one("witness", &["journal.back"]),
    one("chain", &["journal.byte"]),
    one("checkpoints", &["journal.end"]),
    one("redactor", &["journal.key"]),
    one("default_deny", &["door.rule"]),
    one("private_addresses", &["door.private"]),
    one("key_places", &["door.key"]),
    one("stand_ins", &["door.url"]),
    one("bodies", &["door.body"]),
    one("answers", &["door.answer"]),
    one("host_limits", &["door.limit"]),
    one("passes", &["door.pass"]),
    several("chain,numbers", &["journal"], &["journal.byte", "journal.order"]),
    several("numbers", &["journal"], &[]),
    several("pid_namespace,landlock", &["process"], &["process.kill", "process.left"]),
    several("seccomp,net_namespace", &["network"], &["network.loopback", "network.route"]),
    several(
        "seccomp,net_namespace,landlock",
        &["network"],
        &["network.abstract", "network.loopback", "network.route"],
    ),
    several("seccomp,mount_namespace", &["network"], &["network.shown", "network.socket"]),
    several(
        "seccomp,landlock",
        &["call"],
        &[
            "call.bpf",
            "call.io_uring",
            "call.keyring",
            "call.mount",
            "call.namespace",
            "call.root",
            "call.userfault",
        ],
    ),
    Break {
        names: "user_namespace,pid_namespace,no_capabilities",
        tried: &["process"],
        not_held: &["process.left", "process.look"],
        who: Who::Root,
    },
    Break {
        names: "user_namespace,pid_namespace,no_capabilities,landlock,seccomp",
        tried: &["process"],
        not_held: &["process.kill", "process.left", "process.look", "process.trace"],
        who: Who::Root,
    },
];

/// Those of `--few`: nothing, and something of each kind of wall and check.
const FEW: &[&str] =
    &["", "mount_namespace", "seccomp", "masks", "single_use", "chain", "default_deny", "key_places"];

/// Runs all of it, prints the matrix, and writes it down.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let is_few = match options {
        [] => false,
        ["--few"] => true,
        _ => bail!("`prove` has one option: --few"),
    };
    let program = build()?;
    let folder = tempfile::Builder::new().prefix("bailey-break-").tempdir()?;
    let place = Place::new(folder.path(), &program)?;
    let mut matrix = String::from(
        "Each row: what is taken away from a program that can be broken, and the lines that `bailey prove` then says NOT HELD\n\
         of (`cargo xtask prove`).\n\n",
    );
    let mut wrong = Vec::new();
    let (mut all, mut turned) = (BTreeSet::new(), BTreeSet::new());
    let breaks = BREAKS.iter().filter(|broken| !is_few || FEW.contains(&broken.names));
    for broken in breaks.clone() {
        if broken.who == Who::Root && !place.is_root {
            println!("SKIPPED {}: only root can", broken.names);
            continue;
        }
        let tried = place.tried(broken)?;
        let of = |verdict: &str| -> Vec<&str> {
            tried.iter().filter(|(_, found)| *found == verdict).map(|(line, _)| line.as_str()).collect()
        };
        let (found, untried) = (of("not_held"), of("untried"));
        let name = if broken.names.is_empty() { "nothing" } else { broken.names };
        let row = format!("{name}\n    {}", if found.is_empty() { "(none)".into() } else { found.join(" ") });
        println!("{row}");
        writeln!(matrix, "{row}")?;
        if found != broken.not_held || !untried.is_empty() {
            wrong.push(format!(
                "without {name}: {found:?}, and not {:?}; untried: {untried:?}",
                broken.not_held
            ));
        }
        turned.extend(found.into_iter().map(str::to_owned));
        all.extend(tried.into_keys());
    }
    let never: Vec<&String> = all.difference(&turned).collect();
    if place.is_root && !is_few && !never.is_empty() {
        wrong.push(format!("whatever is taken away, these hold: {never:?}"));
    }
    if !wrong.is_empty() {
        bail!("other lines turned than should:\n  {}", wrong.join("\n  "));
    }
    crate::keep("prove.txt", &matrix)?;
    println!("prove: {} breaks, each noticed by its own lines and by no other", breaks.count());
    Ok(())
}

/// The program with the switch: the tests take it for their controls, too.
fn build() -> Result<PathBuf> {
    build_controls()?;
    let program = target_dir().join("debug/bailey-controls");
    // The control of those who look for these words in the program that people get.
    match words_in(&program)? {
        all if all == WORDS => Ok(program),
        some => bail!("the program that can be broken knows {some:?} only of {WORDS:?}"),
    }
}

/// Builds `bailey-controls`, from which walls and checks can be taken away. What it shares with other builds
/// is compiled once.
pub(crate) fn build_controls() -> Result<()> {
    let program = ["--package", "bailey", "--bin", "bailey-controls", "--features", "controls"];
    check(cargo(&["build", "--quiet", "--locked"]).args(program))
}

/// Where it runs: with a home, a user's home and temporary files of its own.
struct Place<'a> {
    folder: &'a Path,
    is_root: bool,
}

impl<'a> Place<'a> {
    fn new(folder: &'a Path, program: &Path) -> Result<Self> {
        let is_root = fs::metadata("/proc/self")?.uid() == 0;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        fs::copy(program, folder.join("bailey")).context("the program cannot be copied")?;
        for who in ["stranger", "own"] {
            for name in ["home", "user", "tmp"] {
                let place = folder.join(who).join(name);
                fs::create_dir_all(&place)?;
                if is_root && who == "stranger" {
                    chown(&place, Some(STRANGER), Some(STRANGER))?;
                }
            }
        }
        Ok(Self { folder, is_root })
    }

    /// Each line's verdict when this is taken away.
    fn tried(&self, broken: &Break) -> Result<BTreeMap<String, String>> {
        let is_stranger = self.is_root && broken.who == Who::User;
        let mut command = Command::new(if is_stranger { "setpriv" } else { "env" });
        if is_stranger {
            let id = STRANGER.to_string();
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]);
        }
        let at = |name: &str| self.folder.join(if is_stranger { "stranger" } else { "own" }).join(name);
        command.arg(self.folder.join("bailey")).arg("--json").arg("--home").arg(at("home")).arg("prove");
        command.args(broken.tried).current_dir(self.folder);
        command.env("HOME", at("user")).env("TMPDIR", at("tmp")).env("BAILEY_BREAK", broken.names);
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let mut tried = BTreeMap::new();
        for line in said.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            let word = |name: &str| line.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            // A claim that no line tries.
            if word("verdict") != "elsewhere" {
                tried.insert(word("line").to_owned(), word("verdict").to_owned());
            }
        }
        let is_held = !tried.values().any(|verdict| verdict == "not_held");
        if tried.is_empty() || output.status.success() != is_held {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("without {}: {}: {said}{stderr}", broken.names, output.status);
        }
        Ok(tried)
    }
}

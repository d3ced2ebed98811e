//! Which crate may depend on which: the floors of ARCHITECTURE.md as a list that is checked against `cargo
//! metadata`.

use crate::metadata::{Metadata, Package};
use anyhow::{Result, bail};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// A crate, its floor, and the crates of the house that it may use.
const HOUSE: &[(&str, u8, &[&str])] = &[
    ("bailey-protocol", 0, &[]),
    ("bailey-policy", 1, &["protocol"]),
    ("bailey-store", 1, &[]),
    ("bailey-secrets", 1, &[]),
    ("bailey-journal", 2, &["protocol", "policy", "store", "secrets"]),
    ("bailey-kernel", 3, &["protocol", "policy", "journal", "secrets"]),
    ("bailey-sandbox", 4, &["protocol", "kernel"]),
    ("bailey-egress", 4, &["protocol", "policy", "kernel", "secrets"]),
    ("bailey-llm", 5, &["protocol", "kernel"]),
    ("bailey-tools", 5, &["protocol", "kernel"]),
    ("bailey-peers", 6, &["protocol", "kernel", "sandbox", "tools"]),
    ("bailey-mcp", 7, &["protocol", "kernel", "peers"]),
    ("bailey-agent", 6, &["protocol", "kernel", "tools"]),
    (
        "bailey-home",
        7,
        &["protocol", "policy", "secrets", "journal", "kernel", "sandbox", "egress", "llm", "tools", "agent"],
    ),
    ("bailey-terminal", 6, &["protocol", "secrets", "journal"]),
    (
        "bailey-session",
        8,
        &[
            "protocol", "policy", "secrets", "journal", "kernel", "sandbox", "egress", "peers", "mcp", "llm",
            "tools", "agent", "home", "terminal",
        ],
    ),
    (
        "bailey-conversation",
        9,
        &["protocol", "journal", "kernel", "llm", "tools", "agent", "home", "terminal", "session"],
    ),
    ("bailey-web", 9, &["protocol", "journal", "home", "terminal", "session"]),
    (
        "bailey-telemetry",
        9,
        &["protocol", "journal", "kernel", "egress", "tools", "home", "terminal", "session"],
    ),
    (
        "bailey-channels",
        10,
        &["protocol", "secrets", "journal", "egress", "home", "terminal", "session", "web"],
    ),
    (
        "bailey-daemon",
        11,
        &[
            "protocol",
            "policy",
            "secrets",
            "journal",
            "kernel",
            "sandbox",
            "home",
            "terminal",
            "session",
            "web",
            "telemetry",
            "channels",
        ],
    ),
    (
        "bailey-replay",
        9,
        &[
            "protocol", "policy", "journal", "kernel", "sandbox", "llm", "tools", "agent", "home",
            "terminal", "session",
        ],
    ),
    (
        "bailey-selftest",
        9,
        &[
            "protocol", "policy", "store", "secrets", "journal", "kernel", "sandbox", "egress", "home",
            "terminal", "session",
        ],
    ),
    ("bailey-backup", 11, &["protocol", "secrets", "journal", "home", "terminal", "session", "channels"]),
    ("bailey-boot", 0, &[]),
    (
        "bailey",
        12,
        &[
            "protocol",
            "policy",
            "store",
            "secrets",
            "journal",
            "kernel",
            "sandbox",
            "egress",
            "llm",
            "tools",
            "peers",
            "mcp",
            "agent",
            "session",
            "conversation",
            "home",
            "terminal",
            "web",
            "telemetry",
            "channels",
            "backup",
            "boot",
            "daemon",
            "selftest",
            "replay",
        ],
    ),
];

/// What each crate of the trusted core may use besides the house: whoever adds one says why in the commit.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("bailey-protocol", &["serde", "serde_json", "sha2", "uuid", "jiff", "base64"]),
    ("bailey-policy", &["serde", "serde_json", "thiserror", "toml", "serde-saphyr"]),
    ("bailey-store", &["rusqlite", "thiserror", "tokio"]),
    (
        "bailey-secrets",
        &["aho-corasick", "argon2", "base64", "chacha20poly1305", "linux-keyutils", "thiserror", "zeroize"],
    ),
    (
        "bailey-journal",
        &[
            "serde",
            "serde_json",
            "base64",
            "ed25519-dalek",
            "getrandom",
            "hmac",
            "sha2",
            "thiserror",
            "tokio",
            "zeroize",
        ],
    ),
    ("bailey-kernel", &["serde", "serde_json", "getrandom", "bytes", "thiserror", "tokio", "tokio-util"]),
    (
        "bailey-sandbox",
        &[
            "serde",
            "serde_json",
            "landlock",
            "libc",
            "rustix",
            "sha1",
            "ignore",
            "globset",
            "encoding_rs",
            "grep-searcher",
            "grep-regex",
            "bytes",
            "thiserror",
            "tokio",
            "tokio-util",
        ],
    ),
];

/// How many foreign crates each of the house may bring in, directly and through others, built for it and with
/// it. A figure goes up only in a commit that says what the new ones are for.
const BUDGET: &[(&str, usize)] = &[
    ("bailey-protocol", 31),
    ("bailey-policy", 55),
    ("bailey-store", 30),
    ("bailey-secrets", 36),
    ("bailey-journal", 102),
    ("bailey-kernel", 105),
    ("bailey-sandbox", 125),
    ("bailey-peers", 126),
    ("bailey-egress", 170),
    ("bailey-llm", 109),
    ("bailey-tools", 106),
    ("bailey-agent", 106),
    ("bailey-session", 214),
    ("bailey-home", 204),
    ("bailey-terminal", 120),
    ("bailey-web", 214),
    ("bailey-telemetry", 214),
    ("bailey-replay", 214),
    ("bailey-selftest", 214),
    ("bailey-channels", 216),
    ("bailey-daemon", 216),
    ("bailey-backup", 216),
    ("bailey-boot", 0),
    ("bailey", 219),
];

/// The most lines that what looks after the daemon may have, without its tests: it is read as a whole, or not
/// trusted.
const BOOT_LINES_MAX: usize = 500;

/// The most lines of a crate, without its tests: a room that a person can know.
const LINES_MAX: usize = 10_000;
/// The crates that may have more, until they part; and the program, which composes.
const LARGER: [(&str, usize); 3] =
    [("crates/sandbox", 21_000), ("crates/journal", 13_000), ("crates/bailey", 12_000)];

/// Checks the house.
pub(crate) fn run() -> Result<()> {
    let metadata = Metadata::read()?;
    let mut wrong = wrong(metadata.house());
    let brought: Vec<(&str, usize)> =
        metadata.house().map(|package| (package.name.as_str(), foreign(&metadata, package))).collect();
    wrong.extend(over(&brought));
    wrong.extend(too_large()?);
    let lines = boot_lines()?;
    if lines >= BOOT_LINES_MAX {
        wrong.push(format!("bailey-boot has {lines} lines; it is to have fewer than {BOOT_LINES_MAX}"));
    }
    if wrong.is_empty() {
        println!(
            "layers: {} crates, each on its floor and within its budget; boot has {lines} lines",
            HOUSE.len()
        );
        return Ok(());
    }
    bail!("the house does not hold:\n  {}", wrong.join("\n  "))
}

/// The crates of the house that have too many lines.
fn too_large() -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for room in std::fs::read_dir(crate::root().join("crates"))? {
        let room = format!("crates/{}", room?.file_name().to_string_lossy());
        let most = LARGER.iter().find(|(larger, _)| *larger == room).map_or(LINES_MAX, |(_, most)| *most);
        let lines = lines_below(&crate::root().join(&room).join("src"))?;
        if lines > most {
            wrong.push(format!("{room} has {lines} lines without its tests; it may have {most}"));
        }
    }
    Ok(wrong)
}

/// The lines of a folder's files, each up to its tests.
fn lines_below(folder: &Path) -> Result<usize> {
    let mut lines = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_tests = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !is_tests {
            lines += lines_below(&path)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") && !is_tests {
            let text = std::fs::read_to_string(&path)?;
            lines += text.split("\n#[cfg(test)]").next().unwrap_or_default().lines().count();
        }
    }
    Ok(lines)
}

/// The lines of boot, each file up to its tests.
fn boot_lines() -> Result<usize> {
    let mut lines = 0;
    for entry in std::fs::read_dir(crate::root().join("crates/boot/src"))? {
        let text = std::fs::read_to_string(entry?.path())?;
        lines += text.split("#[cfg(test)]").next().unwrap_or_default().lines().count();
    }
    Ok(lines)
}

/// How many foreign crates a package brings in.
fn foreign(metadata: &Metadata, package: &Package) -> usize {
    let house: BTreeSet<&str> = metadata.house().map(|package| package.id.as_str()).collect();
    metadata.used(package).keys().filter(|id| !house.contains(*id)).count()
}

fn over(brought: &[(&str, usize)]) -> Vec<String> {
    let limit = |name: &str| BUDGET.iter().find(|(known, _)| *known == name).map(|(_, limit)| *limit);
    let over = brought.iter().filter_map(|(name, count)| {
        let limit = limit(name)?;
        (*count > limit).then(|| format!("{name} brings in {count} foreign crates; its budget is {limit}"))
    });
    over.collect()
}

fn wrong<'a>(packages: impl Iterator<Item = &'a Package>) -> Vec<String> {
    let floors: BTreeMap<&str, u8> = HOUSE.iter().map(|(name, floor, _)| (*name, *floor)).collect();
    let mut wrong = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind.is_none());
        let normal: BTreeSet<&str> = normal.map(|dependency| dependency.name.as_str()).collect();
        let Some((_, floor, allowed)) = HOUSE.iter().find(|(known, ..)| *known == name) else {
            if !matches!(name, "lab" | "xtask" | "bailey-testkit") {
                wrong.push(format!("{name} is in no room: add it to HOUSE and to ARCHITECTURE.md"));
            }
            continue;
        };
        for dependency in &normal {
            match (floors.get(dependency), dependency.strip_prefix("bailey-")) {
                (Some(below), _) if below >= floor => {
                    wrong.push(format!("{name} (floor {floor}) uses {dependency} (floor {below})"));
                }
                (Some(_), Some(short)) if !allowed.contains(&short) => {
                    wrong.push(format!("{name} may not use {dependency}"));
                }
                (None, Some("testkit")) => wrong.push(format!("{name} uses the test kit outside tests")),
                _ => {}
            }
        }
        if let Some((_, outside)) = OUTSIDE.iter().find(|(known, _)| *known == name) {
            let foreign = normal.iter().filter(|dependency| !floors.contains_key(*dependency));
            for dependency in foreign.filter(|dependency| !outside.contains(dependency)) {
                wrong.push(format!(
                    "{name} may not use {dependency}: the trusted core's list in xtask names what it may"
                ));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::{over, wrong};
    use crate::metadata::{Dependency, Package};

    fn package(name: &str, uses: &[(&str, Option<&str>)]) -> Package {
        let dependency = |&(name, kind): &(&str, Option<&str>)| Dependency {
            name: name.into(),
            kind: kind.map(Into::into),
        };
        Package {
            id: name.into(),
            name: name.into(),
            version: "1.0.0".into(),
            license: None,
            source: None,
            dependencies: uses.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn what_is_drawn_holds() {
        let kernel = package(
            "bailey-kernel",
            &[("bailey-policy", None), ("tokio", None), ("bailey-testkit", Some("dev"))],
        );
        assert_eq!(wrong([kernel].iter()), Vec::<String>::new());
    }

    #[test]
    fn upward_sideways_unlisted_and_unknown_are_found() {
        let packages = [
            package("bailey-protocol", &[("bailey-kernel", None)]),
            package("bailey-sandbox", &[("bailey-egress", None)]),
            package("bailey-tools", &[("bailey-policy", None)]),
            package("bailey-policy", &[("reqwest", None)]),
            package("bailey-utils", &[]),
            package("bailey-agent", &[("bailey-testkit", None)]),
        ];
        let found = wrong(packages.iter());
        assert_eq!(found.len(), 6, "{found:#?}");
    }

    #[test]
    fn a_budget_that_is_overdrawn_is_found() {
        assert_eq!(over(&[("bailey-protocol", 1_000), ("bailey-journal", 102)]).len(), 1);
    }
}

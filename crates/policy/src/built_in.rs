//! The rules that no file can lift: at most a dozen, as data. They guard Bailey's own law, the user's
//! credentials and secrets, and the ways from a workspace back out to the host.

use crate::{
    condition::Condition,
    fit::Fit,
    glob::{Glob, GlobError},
    names::{PROTECTED_HOME, RUN_BY_HOST, SECRET_LOOKING},
    place::{Located, Places},
    rule::{Answer, Rule, Tier},
};
use alloc::{string::ToString, vec::Vec};
use bailey_protocol::{Kind, MergeKind, Role, WsPath};

const FILES: [Kind; 7] =
    [Kind::Read, Kind::Stat, Kind::List, Kind::Search, Kind::Change, Kind::Diff, Kind::Merge];
const WRITES: [Kind; 2] = [Kind::Change, Kind::Merge];

/// The built-in rules. The shape of an action and its kind are checked before them.
#[must_use]
pub fn rules() -> Vec<Rule> {
    #[cfg(feature = "controls")]
    if bailey_protocol::broken::broken("built_in_rules") {
        return Vec::new();
    }
    let secrets = Names::secret_looking();
    let host = Names::run_by_host();
    let others = Role::ALL.into_iter().filter(|role| *role != Role::Owner).collect();
    [
        Rule {
            except: [Condition {
                action: Some([Kind::Amend].into()),
                role: Some([Role::Owner].into()),
                ..Condition::default()
            }]
            .into(),
            ..rule(
                "policy-files",
                Answer::Deny,
                "only a human changes the policy, with an editor or `bailey policy update`",
                paths(&["{bailey}/policy/**"]),
            )
        },
        rule(
            "state-databases",
            Answer::Deny,
            "the journal, its key and the other databases are Bailey's own record",
            paths(&[
                "{bailey}/*.db",
                "{bailey}/*.db-*",
                "{bailey}/*.key",
                "{bailey}/backups/**",
                "{bailey}/logs/**",
            ]),
        ),
        rule(
            "configuration",
            Answer::Review,
            "this is Bailey's configuration",
            Condition {
                role: Some([Role::Owner].into()),
                ..paths(&["{bailey}/*.toml", "{bailey}/*.md", "{bailey}/policy/*"])
            },
        ),
        Rule {
            // The one file of it that an agent may ask to change, by the one action that changes nothing
            // else.
            except: [Condition {
                action: Some([Kind::Adapt].into()),
                role: Some([Role::Agent].into()),
                ..paths(&["{bailey}/agent.toml", "{bailey}/agents/*/agent.toml"])
            }]
            .into(),
            ..rule(
                "bailey-home",
                Answer::Deny,
                "Bailey's own directory is out of reach for all but its owner",
                Condition { role: Some(others), ..paths(&["{bailey}/**"]) },
            )
        },
        rule(
            "binaries",
            Answer::Deny,
            "Bailey's own programs, and those of yours that it runs or asks (`[[policy.extension]]`, `notify`), are never overwritten",
            Condition { action: Some(WRITES.into()), ..paths(&["{programs}"]) },
        ),
        rule(
            "daemon-files",
            Answer::Deny,
            "locks, sockets and process files are the daemon's own",
            Condition {
                action: Some(FILES.into()),
                ..paths(&[
                    "{bailey}/**/*.lock",
                    "{bailey}/**/*.pid",
                    "{bailey}/**/*.sock",
                    "{bailey}/health.json",
                    "{bailey}/run/**",
                    "/proc/**",
                ])
            },
        ),
        rule(
            "home-secrets",
            Answer::Deny,
            "credentials and private data of the user's home",
            paths(PROTECTED_HOME),
        ),
        Rule {
            except: [
                Condition { path: Some(secrets.exceptions), ..Condition::default() },
                Condition { revealed: Some(true), ..Condition::default() },
            ]
            .into(),
            ..rule(
                "workspace-secrets",
                Answer::Review,
                "looks like a secret; it is masked until you reveal it: with a yes, or with `--reveal PATH`",
                Condition {
                    action: Some([Kind::Read].into()),
                    path: Some(secrets.globs),
                    ..Condition::default()
                },
            )
        },
        Rule {
            except: [Condition { path: Some(host.exceptions), ..Condition::default() }].into(),
            ..rule(
                "run-by-host",
                Answer::Review,
                "programs outside the walls run or obey this file later",
                Condition {
                    action: Some([Kind::Merge].into()),
                    direction: Some([MergeKind::Apply].into()),
                    path: Some(host.globs),
                    ..Condition::default()
                },
            )
        },
        rule(
            "redaction-marks",
            Answer::Review,
            "a mark of Bailey's stands where a secret stood: applied, your file loses the secret",
            Condition {
                action: Some([Kind::Merge].into()),
                direction: Some([MergeKind::Apply].into()),
                marks: Some(true),
                ..Condition::default()
            },
        ),
        rule(
            "git-metadata",
            Answer::Deny,
            "a merge never touches version control's own files: they can make the host run programs",
            Condition {
                action: Some([Kind::Merge].into()),
                direction: Some([MergeKind::Apply, MergeKind::Undo].into()),
                ..paths(&[
                    "/**/.[gG][iI][tT]/**",
                    "/**/.[hH][gG]/**",
                    "/**/.[sS][vV][nN]/**",
                    "/**/.[jJ][jJ]/**",
                ])
            },
        ),
    ]
    .into()
}

/// What a human answers for where there are no walls. The owner's own starts, such as of an extension, have
/// theirs.
pub(crate) fn without_walls() -> Vec<Rule> {
    let others = || Some(Role::ALL.into_iter().filter(|role| *role != Role::Owner).collect());
    [
        rule(
            "no-sandbox",
            Answer::Review,
            "there is no sandbox: this happens on this machine itself, with your files, keys and network",
            Condition {
                action: Some([Kind::Exec, Kind::Change, Kind::Adapt].into()),
                role: others(),
                ..Condition::default()
            },
        ),
        Rule {
            except: [paths(&["{workspace}/**"])].into(),
            ..rule(
                "no-sandbox-temporary",
                Answer::Review,
                "there is no sandbox: this is the machine's own folder of temporary files, where behind walls a session has its own",
                Condition {
                    action: Some([Kind::Read, Kind::Stat, Kind::List, Kind::Search].into()),
                    role: others(),
                    ..paths(&["/tmp/**", "/var/tmp/**", "/dev/shm/**"])
                },
            )
        },
    ]
    .into()
}

fn rule(name: &str, answer: Answer, text: &str, matches: Condition) -> Rule {
    Rule {
        name: name.to_string(),
        tier: Tier::BuiltIn,
        priority: 0,
        answer,
        matches,
        except: Vec::new(),
        text: text.to_string(),
    }
}

fn paths(globs: &[&str]) -> Condition {
    Condition { path: Some(globs.iter().map(|text| glob(text)).collect()), ..Condition::default() }
}

/// A glob written in this crate. Were it malformed, it would match everything: built-in rules only forbid and
/// ask, so that fails closed. A test reads them all.
fn glob(text: &str) -> Glob {
    Glob::new(text).unwrap_or_else(|_| Glob::everything())
}

/// A list of names in gitignore's spelling, `!` for exceptions, compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    globs: Vec<Glob>,
    exceptions: Vec<Glob>,
}

impl Names {
    /// [`SECRET_LOOKING`]: names of files, in any case.
    #[must_use]
    pub fn secret_looking() -> Self {
        let names = Self::new(SECRET_LOOKING, Glob::of_any_case);
        Self { globs: names.globs.into_iter().map(Glob::of_files).collect(), ..names }
    }

    /// [`RUN_BY_HOST`].
    #[must_use]
    pub fn run_by_host() -> Self {
        Self::new(RUN_BY_HOST, Glob::new)
    }

    fn new(list: &[&str], read: fn(&str) -> Result<Glob, GlobError>) -> Self {
        let glob = |text: &str| read(text).unwrap_or_else(|_| Glob::everything());
        let exceptions = list.iter().filter_map(|text| text.strip_prefix('!')).map(glob).collect();
        Self {
            globs: list.iter().filter(|text| !text.starts_with('!')).map(|text| glob(text)).collect(),
            exceptions,
        }
    }

    /// Whether this path of the workspace has such a name, or a folder above it there, where a folder may
    /// have one.
    #[must_use]
    pub fn contains(&self, path: &WsPath, places: &Places) -> bool {
        let path = Located::new(&path.0, false, places);
        self.globs.iter().any(|glob| glob.fit(&path) >= Fit::Maybe)
            && !self.exceptions.iter().any(|glob| glob.fit(&path) == Fit::Yes)
    }
}

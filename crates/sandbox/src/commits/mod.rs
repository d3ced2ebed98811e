//! Commits that a session made: what they are, and how they are made ready for the project's repository.
//!
//! Git reads them in sandboxes of their own, in which nothing of the session runs and no configuration of
//! hers or of the project's is read. The first sees the session's objects, and packs what the project lacks.
//! The second sees that pack and the project's objects, recomputes every name, has git's own checks made, and
//! makes the index that fits. Then the worker of the merge puts the pack, the index and the reference in
//! place (`worker/merge/tips.rs`).

mod held;
mod said;

use crate::{
    config::Shape,
    native::{Native, WorkError},
    worker::{Carried, Fate, References, Request, Response, is_object, is_plain},
};
use bailey_protocol::{
    Blob, Branch, Command, DiffReport, ExecReport, Isolation, Limits, Merge, MergeKind, Report, SessionId,
    Tip, WsPath,
};
use std::collections::{BTreeMap, BTreeSet};
use tokio_util::sync::CancellationToken;

const GATHER: &str = include_str!("gather.sh");
const CHECK: &str = include_str!("check.sh");
const INDEX: &str = include_str!("index.sh");

/// Where commits are kept that no branch of the project can have.
const ASIDE: &str = "refs/bailey/";
/// Tips of a session that are looked at.
const TIPS_MAX: usize = 50;
/// Digits of an object's name that people take for it.
const SHORT_ID_DIGITS: usize = 7;
/// Characters of what git says that are told.
const TOLD_MAX: usize = 300;

/// One session's commits.
pub(crate) struct Commits<'a> {
    pub(crate) native: &'a Native,
    pub(crate) session: SessionId,
    pub(crate) cancel: &'a CancellationToken,
}

/// What the two repositories name.
struct Both {
    inside: References,
    project: References,
}

impl Commits<'_> {
    /// Adds to a comparison the commits that the project lacks.
    pub(crate) async fn compare(&self, report: &mut DiffReport) {
        match self.branches().await {
            Ok(branches) => report.branches = branches,
            Err(bound) => report.bound = bound,
        }
    }

    /// Makes ready what the references of a merge need.
    pub(crate) async fn ready(&self, merge: &Merge) -> Option<Carried> {
        if merge.tips.is_empty() {
            return None;
        }
        let folder = self.native.yard(self.session).ok()?.handover().display().to_string();
        let fates = match merge.direction {
            MergeKind::Apply => self.fates(&merge.tips).await,
            MergeKind::Undo => Ok(self.fates_back(&merge.tips).await),
            MergeKind::Discard => return None,
        };
        // What failed for all fails for each.
        let fates = fates.unwrap_or_else(|why| vec![Fate::Refused(why); merge.tips.len()]);
        Some(Carried { folder, fates })
    }

    /// The branches with commits that the project lacks; an error says why none can leave, where there may be
    /// some.
    async fn branches(&self) -> Result<Vec<Branch>, Option<String>> {
        let Some(both) = self.both().await.map_err(Some)? else { return Ok(Vec::new()) };
        if let Some(why) = &both.project.bound {
            return Err(Some(why.clone()));
        }
        if let Some(why) = &both.inside.bound {
            return Err(Some(format!("of what it made of the repository: {why}")));
        }
        let mut branches = both.branches();
        if branches.is_empty() {
            return Ok(branches);
        }
        let tips: Vec<(Option<String>, String)> =
            branches.iter().map(|branch| (branch.old.clone(), branch.new.clone())).collect();
        match self.checked(&both.project, &tips).await {
            Ok(said) => {
                let held = self.held(&said).await;
                for ((branch, said), held) in branches.iter_mut().zip(said).zip(held) {
                    branch.count = said.count;
                    branch.commits = said.commits;
                    if !said.is_commit {
                        branch.refused = Some("it is no commit".into());
                    } else if said.is_cut {
                        branch.aside.get_or_insert_with(|| "it changes more than is looked at".into());
                    } else if !said.follows {
                        branch.aside.get_or_insert_with(|| DOES_NOT_FOLLOW.into());
                    } else {
                        branch.aside = branch.aside.take().or(held);
                    }
                }
                // One that was put back, or that the project is ahead of, has nothing new.
                branches.retain(|branch| branch.count > 0 || branch.refused.is_some());
                branches.retain(|branch| branch.aside.is_none() || !both.project.keeps(branch));
            }
            Err(why) => branches.iter_mut().for_each(|branch| branch.refused = Some(why.clone())),
        }
        Ok(branches)
    }

    async fn fates(&self, tips: &[Tip]) -> Result<Vec<Fate>, String> {
        let both = self.both().await?.ok_or("the session has no repository of its own any more")?;
        let pairs: Vec<(Option<String>, String)> =
            tips.iter().map(|tip| (tip.old.clone(), tip.new.clone())).collect();
        let said = self.checked(&both.project, &pairs).await?;
        let mut fates = Vec::new();
        for (tip, said) in tips.iter().zip(said) {
            fates.push(if !said.is_commit {
                Fate::Refused("it is no commit".into())
            } else if tip.aside.is_none() {
                Fate::Ready
            } else if let Some(what) = both.project.taken.get(&tip.name) {
                Fate::Aside(what.clone())
            } else if !said.follows {
                Fate::Aside(DOES_NOT_FOLLOW.into())
            } else {
                let from = if tip.old.is_some() { &tip.old } else { &both.project.tip_of_head() };
                let is_current = both.project.head.as_deref() == Some(&tip.name);
                self.index(from.as_deref(), Some(&tip.new), is_current).await
            });
        }
        Ok(fates)
    }

    /// An undo needs nothing but an index, and that only where the branch is checked out: the merge looks.
    async fn fates_back(&self, tips: &[Tip]) -> Vec<Fate> {
        // Where the layer was thrown away, what the session sees is the project's.
        let project = match self.references(true).await {
            Ok(None) => self.references(false).await,
            found => found,
        };
        let taken = match project {
            Ok(found) => found.unwrap_or_default().taken,
            Err(why) => return vec![Fate::Refused(why); tips.len()],
        };
        let mut fates = Vec::new();
        for tip in tips {
            if let Some(what) = taken.get(&tip.name) {
                fates.push(Fate::Refused(what.clone()));
                continue;
            }
            if tip.name.starts_with("refs/heads/") {
                drop(self.index(Some(&tip.new), tip.old.as_deref(), true).await);
            }
            fates.push(Fate::Ready);
        }
        fates
    }

    /// Makes the index of the commit that a reference moves to.
    async fn index(&self, from: Option<&str>, to: Option<&str>, is_current: bool) -> Fate {
        let (from, to) = (from.unwrap_or("-"), to.unwrap_or("-"));
        let wanted = if is_current { "index" } else { "paths" };
        match self.git(INDEX, false, &[from, to, wanted], Vec::new()).await {
            Ok(_) => Fate::Ready,
            Err(why) => Fate::Aside(format!("its commits do not fit what is checked out: {why}")),
        }
    }

    /// What the session's repository names, and the project's; none where the session has none of its own.
    async fn both(&self) -> Result<Option<Both>, String> {
        let Some(project) = self.references(true).await? else { return Ok(None) };
        let inside = self.references(false).await?.unwrap_or_default();
        Ok(Some(Both { inside, project }))
    }

    async fn references(&self, of_project: bool) -> Result<Option<References>, String> {
        let text = |error: WorkError| error.to_string();
        let yard = self.native.yard(self.session).map_err(text)?;
        // The session's own is seen where the session works.
        let is_copy = !of_project && self.native.shape(self.session) == Shape::Copied;
        let seen = if is_copy { yard.copy() } else { yard.project.clone() };
        let request = Request::References {
            project: seen.display().to_string(),
            upper: of_project.then(|| yard.upper().display().to_string()),
        };
        match self
            .native
            .work(self.session, request, &Isolation::default(), self.cancel)
            .await
            .map_err(text)?
        {
            (Response::References(found), _) => Ok(found),
            (Response::Refused { reason }, _) => Err(reason),
            _ => Err(text(WorkError::NoAnswer)),
        }
    }

    /// Packs what the project lacks, and has it checked.
    async fn checked(
        &self,
        project: &References,
        tips: &[(Option<String>, String)],
    ) -> Result<Vec<said::Tip>, String> {
        let theirs = project.own();
        let theirs: String = theirs.iter().map(|id| format!("^{id}\n")).collect();
        let ours: String = tips.iter().map(|(_, new)| format!("{new}\n")).collect();
        self.git(GATHER, true, &[], format!("{ours}{theirs}").into_bytes()).await?;
        let words: Vec<&str> =
            tips.iter().flat_map(|(old, new)| [old.as_deref().unwrap_or("-"), new.as_str()]).collect();
        let report = self.git(CHECK, false, &words, theirs.into_bytes()).await?;
        let said = said::read(&report.stdout.head.0);
        said.filter(|said| said.len() == tips.len()).ok_or_else(|| "what git says of it is cut".into())
    }

    /// Runs one of the scripts, with the layer in sight or not.
    async fn git(
        &self,
        script: &str,
        with_layer: bool,
        words: &[&str],
        stdin: Vec<u8>,
    ) -> Result<ExecReport, String> {
        let yard = self.native.yard(self.session).map_err(|error| error.to_string())?;
        let text = |path: &std::path::Path| path.display().to_string();
        let folder = text(&yard.handover());
        let mut argv: Vec<String> = ["/bin/sh", "-c", script, "sh"].map(str::to_owned).into();
        argv.extend(with_layer.then(|| text(&yard.upper())));
        argv.extend([text(&yard.project), folder.clone()]);
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        let command = Command {
            argv,
            cwd: WsPath(folder),
            env: BTreeMap::new(),
            stdin: Some(Blob(stdin)),
            network: false,
            limits: limits(),
            background: false,
        };
        let outcome = self.native.git(self.session, command, self.cancel).await;
        let Report::Exec(report) = outcome.report else {
            return Err(match outcome.status {
                bailey_protocol::Status::Failed { reason } => reason,
                _ => "it was cut off".into(),
            });
        };
        match (report.exit, &report.limit) {
            (Some(0), None) => Ok(report),
            (_, Some(limit)) => Err(format!("git was ended by its {limit}")),
            _ => Err(told(&report.stderr.head.0)),
        }
    }
}

const DOES_NOT_FOLLOW: &str =
    "its commits do not follow from the project's, which has others by now or had some replaced";

impl Both {
    /// Each branch of the session that names a commit which no reference of the project names.
    fn branches(&self) -> Vec<Branch> {
        let known = self.project.own();
        let heads = self.inside.tips.iter().filter(|(name, _)| name.starts_with("refs/heads/"));
        let heads = heads.map(|(name, id)| (name.as_str(), id));
        let detached = self.inside.detached.iter().map(|id| ("HEAD", id));
        let new = heads.chain(detached).filter(|(_, id)| !known.contains(id) && is_object(id));
        // The one that the session is on is never among those that are too many.
        let (on, others): (Vec<_>, Vec<_>) =
            new.partition(|(name, _)| self.inside.head.as_deref() == Some(*name));
        on.into_iter().chain(others).take(TIPS_MAX).map(|(name, id)| self.branch(name, id)).collect()
    }

    fn branch(&self, name: &str, new: &str) -> Branch {
        Branch {
            name: name.to_owned(),
            old: self.project.tips.get(name).cloned(),
            new: new.to_owned(),
            aside: self.why_aside(name),
            refused: None,
            commits: Vec::new(),
            count: 0,
        }
    }

    /// Why the project's branch of this name is not to be moved, or made.
    fn why_aside(&self, name: &str) -> Option<String> {
        let is_like = |other: &&String| other.as_str() != name && other.eq_ignore_ascii_case(name);
        let is_around = |other: &&String| {
            let (short, long) =
                if other.len() < name.len() { (other.as_str(), name) } else { (name, other.as_str()) };
            long.strip_prefix(short).is_some_and(|rest| rest.starts_with('/'))
        };
        let others = || self.project.tips.keys().chain(&self.project.head);
        if self.inside.head.as_deref() != Some(name) || !is_plain(name) {
            Some("it is not the branch that the session is on".into())
        } else if let Some(what) = self.project.taken.get(name) {
            Some(what.clone())
        } else if let Some(other) = others().find(is_like) {
            Some(format!("the project has `{other}`, which differs by case only"))
        } else if let Some(other) = others().find(is_around) {
            Some(format!("the project's `{other}` is in the way of its name"))
        } else if others().any(|other| other == name) {
            None
        } else {
            let what = self.project.what_else(name.strip_prefix("refs/heads/")?)?;
            Some(format!(
                "its name is also that of {what}: whoever types it may mean the one and get the other"
            ))
        }
    }
}

impl References {
    /// What its own references name.
    fn own(&self) -> BTreeSet<&String> {
        let own = self.tips.iter().filter(|(name, _)| !name.starts_with(ASIDE)).map(|(_, id)| id);
        own.chain(&self.detached).collect()
    }

    /// What git, or a person, may take for the same as a branch of this short name (gitrevisions(7)).
    fn what_else(&self, short: &str) -> Option<&'static str> {
        let there = |name: String| self.tips.contains_key(&name);
        let remote = short.split_once('/').map_or(short, |(remote, _)| remote);
        let is_of_remote = |name: &String| {
            name.strip_prefix("refs/remotes/")
                .and_then(|name| name.strip_prefix(remote))
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let is_hex = short.bytes().all(|byte| byte.is_ascii_hexdigit());
        if short == "HEAD" || short.ends_with("_HEAD") {
            Some("a file in which git notes commits")
        } else if is_hex && short.len() >= SHORT_ID_DIGITS {
            Some("an object, or the beginning of one")
        } else if there(format!("refs/tags/{short}")) {
            Some("a tag of the project")
        } else if there(format!("refs/{short}")) {
            Some("a reference of the project")
        } else {
            self.tips.keys().any(is_of_remote).then_some("a remote of the project, or of a branch there")
        }
    }

    /// Whether a session's branch was kept here as it is now.
    fn keeps(&self, branch: &Branch) -> bool {
        let name = branch.name.strip_prefix("refs/heads/").unwrap_or(&branch.name);
        let mut kept =
            self.tips.iter().filter_map(|(at, id)| Some((at.strip_prefix(ASIDE)?.split_once('/')?.1, id)));
        kept.any(|(kept, id)| kept == name && *id == branch.new)
    }

    /// The commit that is checked out.
    fn tip_of_head(&self) -> Option<String> {
        self.head.as_ref().and_then(|name| self.tips.get(name)).or(self.detached.as_ref()).cloned()
    }
}

/// What git may use up for it.
fn limits() -> Limits {
    Limits { wall_ms: 120_000, memory_bytes: 2 << 30, disk_bytes: 2 << 30, pids: 64, output_bytes: 64 << 20 }
}

/// The last line that git said, which names what is wrong.
fn told(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("git failed");
    last.chars().take(TOLD_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_says_something_else_is_made_no_branch_of() {
        let tip = |name: &str| (name.to_owned(), "1".repeat(40));
        let project = References {
            head: Some("refs/heads/main".into()),
            tips: ["refs/heads/main", "refs/heads/cafe0123", "refs/tags/v1", "refs/remotes/origin/main"]
                .map(tip)
                .into(),
            ..References::default()
        };
        for (short, what) in [
            ("main", None),
            ("cafe0123", None),
            ("fix/one", None),
            ("facade", None),
            ("v2", None),
            ("original/main", None),
            ("HEAD", Some("notes commits")),
            ("ORIG_HEAD", Some("notes commits")),
            ("deadbee", Some("an object")),
            ("v1", Some("a tag")),
            ("heads/main", Some("a reference")),
            ("origin", Some("a remote")),
            ("origin/new", Some("a remote")),
        ] {
            let name = format!("refs/heads/{short}");
            let inside = References { head: Some(name.clone()), ..References::default() };
            let why = Both { inside, project: project.clone() }.why_aside(&name);
            assert_eq!(why.is_some(), what.is_some(), "{short}: {why:?}");
            assert!(why.unwrap_or_default().contains(what.unwrap_or_default()), "{short}");
        }
    }
}

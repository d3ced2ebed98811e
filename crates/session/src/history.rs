//! Commits of a session: which of them an apply takes along, and how they are shown to a person.

use crate::{Changes, Host, HostError};
use bailey_kernel::{Preview, Scope};
use bailey_protocol::{Branch, Merge, MergeFile, MergeKind, SessionId, Tip, TipResult, Verdict, WsPath};
use std::collections::HashSet;

/// Digits of an object's name that people see.
const ID_DIGITS: usize = 8;
/// Commits of a branch that people see.
const SHOWN_MAX: usize = 50;
/// Digits of a session's name in the references that are kept for it.
const SESSION_DIGITS: usize = 8;

impl Host {
    /// Leaves a branch where it is when one of its commits touches a path that an apply asks about and that
    /// the files of the apply do not hold: no human would have been asked about it.
    pub(crate) async fn look_at_history(
        &self,
        scope: &Scope,
        changes: &mut Changes,
    ) -> Result<(), HostError> {
        let shown: HashSet<&str> = changes.changes.iter().map(|change| change.path.as_str()).collect();
        let mut asides = Vec::new();
        for (at, branch) in changes.branches.iter().enumerate() {
            if branch.aside.is_none() && branch.refused.is_none() {
                let why = match why_between(branch, &changes.red) {
                    Some(why) => Some(why),
                    None => self.why_unseen(scope, branch, &shown).await?,
                };
                asides.extend(why.map(|why| (at, why)));
            }
        }
        for (at, why) in asides {
            changes.branches.get_mut(at).into_iter().for_each(|branch| branch.aside = Some(why.clone()));
        }
        Ok(())
    }

    async fn why_unseen(
        &self,
        scope: &Scope,
        branch: &Branch,
        shown: &HashSet<&str>,
    ) -> Result<Option<String>, HostError> {
        if u32::try_from(branch.commits.len()).unwrap_or(u32::MAX) < branch.count {
            return Ok(Some(format!("it has {} commits, more than are looked at one by one", branch.count)));
        }
        let files = branch.commits.iter().flat_map(|commit| &commit.files).map(String::as_str);
        let unseen: HashSet<&str> = files.filter(|path| !shown.contains(path)).collect();
        // Git writes a name with control characters like this; no rule knows such a name.
        if let Some(path) = unseen.iter().find(|path| path.starts_with('"')) {
            return Ok(Some(format!("a commit changes {path}, which cannot be checked")));
        }
        let root = self.workspace().0.as_str();
        let file = |path: &&str| MergeFile::whole(WsPath(format!("{root}/{path}")), None, None);
        let mut files: Vec<MergeFile> = unseen.iter().map(file).collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        if files.is_empty() {
            return Ok(None);
        }
        let merge = Merge::of_files(MergeKind::Apply, None, files);
        let Preview { verdict, reasons, red } = self.preview_of(scope, merge).await?;
        Ok(match (verdict, red.first()) {
            (Verdict::Allowed, _) => None,
            (_, Some(path)) => {
                let path = path.relative_to(root).unwrap_or(&path.0).to_owned();
                Some(format!("a commit changes `{path}`, which an apply asks about: {}", reasons.join("; ")))
            }
            (_, None) => {
                Some(format!("a commit changes files that an apply asks about: {}", reasons.join("; ")))
            }
        })
    }
}

/// The reason to leave a branch where it is when several of its commits change one Red path: only the last
/// state of the path is shown.
fn why_between(branch: &Branch, red: &[String]) -> Option<String> {
    let changing = |path: &str| {
        branch.commits.iter().filter(|commit| commit.files.iter().any(|file| file == path)).count()
    };
    let path = red.iter().find(|path| changing(path) > 1)?;
    Some(format!(
        "several commits change `{path}`, which an apply asks about, and only one state of it is shown"
    ))
}

/// The references that an apply of everything moves.
pub(crate) fn tips(branches: &[Branch], session: SessionId) -> Vec<Tip> {
    let can = branches.iter().filter(|branch| branch.refused.is_none());
    let tip = |branch: &Branch| {
        let kept = aside(&branch.name, session);
        let new = branch.new.clone();
        match branch.aside {
            None => Tip { name: branch.name.clone(), old: branch.old.clone(), new, aside: Some(kept) },
            Some(_) => Tip { name: kept, old: None, new, aside: None },
        }
    };
    can.map(tip).collect()
}

/// The reference that keeps the commits of a session's branch.
fn aside(name: &str, session: SessionId) -> String {
    let session = session.to_string();
    let digits = session.get(session.len().saturating_sub(SESSION_DIGITS)..).unwrap_or(&session);
    format!("refs/bailey/{digits}/{}", plain(name))
}

/// The commits that no apply takes along, each with the reason.
pub(crate) fn staying(branches: &[Branch], bound: Option<&String>) -> Vec<String> {
    let of_branch =
        |branch: &Branch| Some(format!("commits on `{}`: {}", plain(&branch.name), branch.refused.as_ref()?));
    bound
        .map(|why| format!("commits: {why}"))
        .into_iter()
        .chain(branches.iter().filter_map(of_branch))
        .collect()
}

/// The lines about commits before an apply: one for each branch, and one for each commit. At the paths in
/// `mixed`, the project will differ from the session, and so from a branch's last commit.
pub(crate) fn before(
    branches: &[Branch],
    mixed: &[&str],
    bound: Option<&String>,
    session: SessionId,
) -> Vec<String> {
    let mut lines: Vec<String> =
        bound.map(|why| format!("commits stay in the session: {why}")).into_iter().collect();
    for branch in branches {
        let (name, commits) = (plain(&branch.name), counted(branch.count));
        let parts = branch.commits.iter().flat_map(|commit| &commit.files);
        let other = parts.map(String::as_str).find(|path| mixed.contains(path));
        let other = other.map(|path| format!("the project will not hold what they do at `{path}`"));
        lines.push(match (&branch.refused, branch.aside.clone().or(other)) {
            (Some(why), _) => format!("commits on `{name}` stay in the session: {why}"),
            (None, None) if branch.old.is_none() => {
                format!("{commits} on `{name}`: an apply of everything makes that branch")
            }
            (None, None) => format!("{commits} on `{name}`: an apply of everything moves it there"),
            (None, Some(why)) => {
                format!(
                    "{commits} on `{name}`: an apply of everything keeps them at {}: {why}",
                    aside(&branch.name, session)
                )
            }
        });
        lines.extend(branch.commits.iter().take(SHOWN_MAX).map(|commit| {
            let files = match commit.files.len() {
                1 => "1 file".to_owned(),
                files => format!("{files} files"),
            };
            format!("  {} {} ({}, {files})", id(&commit.id), commit.subject, commit.author)
        }));
        let shown = u32::try_from(branch.commits.len().min(SHOWN_MAX)).unwrap_or(u32::MAX);
        let more = branch.count.saturating_sub(shown);
        lines.extend((more > 0 && branch.refused.is_none()).then(|| format!("  and {more} more")));
    }
    lines
}

/// The result for the references of a merge: the lines to show, and the references that were kept back.
pub(crate) fn after(direction: MergeKind, tips: &[Tip], results: &[TipResult]) -> (Vec<String>, Vec<String>) {
    let (mut told, mut kept) = (Vec::new(), Vec::new());
    for (tip, result) in tips.iter().zip(results) {
        match result.state.kept() {
            None => told.push(moved(direction, tip, result)),
            Some(reason) => kept.push(format!("{}: {reason}", tip.name)),
        }
    }
    (told, kept)
}

fn moved(direction: MergeKind, tip: &Tip, result: &TipResult) -> String {
    let at = result.at.as_deref().unwrap_or(&tip.name);
    let (name, new) = (plain(at), id(&tip.new));
    if direction == MergeKind::Undo {
        return match &tip.old {
            Some(old) => format!("`{name}` is back at {}", id(old)),
            None => format!("`{name}` is gone again"),
        };
    }
    match (at.starts_with("refs/bailey/"), &result.why) {
        (true, why) => {
            let why = why.as_ref().map(|why| format!(", for {why}")).unwrap_or_default();
            // The files of the commits are in the working tree by now, where a merge would find them in its
            // way.
            format!(
                "commits up to {new} are kept at {at}{why}; to look: git log -p {at}; to take them: git add -A && git commit, then \
                 git merge {at}"
            )
        }
        (false, None) => format!("`{name}` is at {new} now"),
        (false, Some(why)) => format!(
            "`{name}` is at {new} now; {why}: to be on it with these files, git symbolic-ref HEAD {at} && git reset"
        ),
    }
}

fn counted(commits: u32) -> String {
    if commits == 1 { "1 commit".into() } else { format!("{commits} commits") }
}

fn id(id: &str) -> &str {
    id.get(..ID_DIGITS).unwrap_or(id)
}

fn plain(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailey_protocol::{Commit, MergeState};

    fn branch(name: &str, aside: Option<&str>) -> Branch {
        let commit = Commit {
            id: "c".repeat(40),
            author: "Ann".into(),
            subject: "fix".into(),
            files: vec!["a".into()],
        };
        Branch {
            name: name.into(),
            old: Some("b".repeat(40)),
            new: "c".repeat(40),
            aside: aside.map(str::to_owned),
            refused: None,
            commits: vec![commit],
            count: 3,
        }
    }

    #[test]
    fn a_branch_moves_and_what_cannot_is_kept_under_a_name_of_the_session() {
        let session = SessionId::parse("0190a3c4-0000-7000-8000-0000deadbeef").unwrap();
        let refused = Branch { refused: Some("broken".into()), ..branch("refs/heads/bad", None) };
        let branches = [branch("refs/heads/main", None), branch("HEAD", Some("no branch")), refused];
        let tips = tips(&branches, session);
        let names: Vec<(&str, Option<&str>)> =
            tips.iter().map(|tip| (tip.name.as_str(), tip.aside.as_deref())).collect();
        let kept = "refs/bailey/deadbeef/main";
        assert_eq!(names, [("refs/heads/main", Some(kept)), ("refs/bailey/deadbeef/HEAD", None)]);
        let lines = before(&branches, &["b"], None, session);
        assert_eq!(lines[0], "3 commits on `main`: an apply of everything moves it there");
        assert_eq!(lines[1], "  cccccccc fix (Ann, 1 file)");
        assert_eq!(lines[2], "  and 2 more");
        assert!(lines[3].ends_with("keeps them at refs/bailey/deadbeef/HEAD: no branch"), "{lines:?}");
        assert!(lines.contains(&"commits on `bad` stay in the session: broken".to_owned()), "{lines:?}");
        let lines = before(&branches, &["a"], None, session);
        let told = format!("keeps them at {kept}: the project will not hold what they do at `a`");
        assert!(lines[0].ends_with(&told), "{lines:?}");
    }

    #[test]
    fn what_became_of_a_reference_is_told_with_what_to_do() {
        let tip = Tip { name: "refs/heads/main".into(), old: None, new: "c".repeat(40), aside: None };
        let result = |at: Option<&str>, why: Option<&str>, state| TipResult {
            name: tip.name.clone(),
            at: at.map(str::to_owned),
            why: why.map(str::to_owned),
            state,
        };
        let told = |direction, result| after(direction, std::slice::from_ref(&tip), &[result]);
        let done = result(Some("refs/heads/main"), None, MergeState::Done);
        assert_eq!(told(MergeKind::Apply, done.clone()).0, ["`main` is at cccccccc now"]);
        assert_eq!(told(MergeKind::Undo, done).0, ["`main` is gone again"]);
        let aside = result(Some("refs/bailey/1/main"), Some("it moved"), MergeState::Done);
        let (lines, _) = told(MergeKind::Apply, aside);
        assert_eq!(
            lines,
            [
                "commits up to cccccccc are kept at refs/bailey/1/main, for it moved; to look: git log -p refs/bailey/1/main; to take them: \
                 git add -A && git commit, then git merge refs/bailey/1/main"
            ]
        );
        let failed = result(None, None, MergeState::Failed { reason: "no".into() });
        assert_eq!(told(MergeKind::Apply, failed), (vec![], vec!["refs/heads/main: no".to_owned()]));
    }
}

//! What commits hold, one by one, that no apply would bring: links that lead out of the project, and what a
//! version control would take for its own; and what a session over a copy was not shown. A later commit may
//! have taken it away again, so the last state tells nothing of it.

use super::{Commits, said::Tip};
use crate::config::Shape;
use crate::mask;
use crate::worker::{MARKS, in_vcs, is_of_repository, is_shaped, leads_out};
use std::collections::{BTreeMap, BTreeSet, HashSet};

const LOOK: &str = include_str!("look.sh");
/// Names of objects that are asked for at once.
const ASKED_MAX: usize = 100_000;

impl Commits<'_> {
    /// Of each tip, why its branch is not to be moved.
    pub(super) async fn held(&self, tips: &[Tip]) -> Vec<Option<String>> {
        match self.look(tips).await {
            Ok(held) => held,
            Err(why) => {
                vec![Some(format!("what its commits hold cannot be looked at one by one: {why}")); tips.len()]
            }
        }
    }

    async fn look(&self, tips: &[Tip]) -> Result<Vec<Option<String>>, String> {
        let targets = self.targets(tips).await?;
        let shaped = self.shaped(tips).await?;
        let project = self.native.yard(self.session).map_err(|error| error.to_string())?.project.clone();
        let project = project.display().to_string();
        let out = |(at, id): &&(String, String)| {
            targets.get(id).is_none_or(|target| leads_out(&project, at, target))
        };
        // In a copy they are missing, and whoever commits all commits that they are gone.
        let hidden = (self.native.shape(self.session) == Shape::Copied)
            .then(|| mask::compile(self.native.warden().masks()).map_err(|error| error.to_string()))
            .transpose()?;
        let is_hidden = |path: &&str| {
            // Git says it, inside: a path from `/` is none of a commit's, and nothing that a mask could be
            // asked about.
            let looks = |masks: &mask::Masks| path.starts_with('/') || masks.names(path);
            hidden.as_ref().is_some_and(looks)
        };
        let held = tips.iter().zip(shaped).map(|(tip, shaped)| {
            if let Some(path) = paths(tip).find(is_hidden) {
                return Some(format!(
                    "a commit of it changes `{path}`, which looks secret and was not shown to the session"
                ));
            }
            if let Some(path) = paths(tip).find(|path| in_vcs(path)) {
                return Some(format!("a commit of it holds `{path}`, which is version control's own"));
            }
            if let Some((at, _)) = tip.links.iter().find(out) {
                return Some(format!(
                    "a commit of it holds `{at}`, a link that leads, or may lead, out of the project"
                ));
            }
            let dir = shaped?;
            let dir = if dir.is_empty() { "the project itself".to_owned() } else { format!("`{dir}`") };
            Some(format!("a commit of it changes {dir}, which has the shape of a bare git repository"))
        });
        Ok(held.collect())
    }

    /// Where links lead, by the objects that say so.
    async fn targets(&self, tips: &[Tip]) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let ids: BTreeSet<&str> = tips.iter().flat_map(|tip| &tip.links).map(|(_, id)| id.as_str()).collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let said = self.objects("--batch", &ids.into_iter().collect::<Vec<_>>()).await?;
        contents(&said).ok_or_else(|| "git does not say where their links lead".into())
    }

    /// Of each tip a directory that one of its commits shows as git would a repository, and that one of them
    /// changed.
    async fn shaped(&self, tips: &[Tip]) -> Result<Vec<Option<String>>, String> {
        let mut asked = Vec::new();
        for tip in tips {
            let dirs = suspects(tip);
            for commit in tip.commits.iter().filter(|_| !dirs.is_empty()) {
                asked.extend(dirs.iter().map(|dir| (commit.id.as_str(), *dir)));
            }
            if asked.len() * MARKS.len() > ASKED_MAX {
                return Err("there is too much of it".into());
            }
        }
        if asked.is_empty() {
            return Ok(vec![None; tips.len()]);
        }
        let names: Vec<String> = asked
            .iter()
            .flat_map(|(commit, dir)| MARKS.map(|mark| format!("{commit}:{dir}{mark}")))
            .collect();
        let said =
            self.objects("--batch-check", &names.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        let said = String::from_utf8_lossy(&said);
        let there: Vec<bool> = said.lines().map(|line| !line.ends_with(" missing")).collect();
        if there.len() != names.len() {
            return Err("git does not say what is in their directories".into());
        }
        let is_there =
            |marks: &[bool], mark: &str| MARKS.iter().zip(marks).any(|(own, there)| *own == mark && *there);
        let found: HashSet<(&str, &str)> = asked
            .into_iter()
            .zip(there.chunks(MARKS.len()))
            .filter(|(_, marks)| is_shaped(|mark| is_there(marks, mark)))
            .map(|(asked, _)| asked)
            .collect();
        let of_tip = |tip: &Tip| {
            let dirs = suspects(tip);
            let is_found =
                |dir: &&str| tip.commits.iter().any(|commit| found.contains(&(commit.id.as_str(), *dir)));
            dirs.into_iter().find(is_found).map(|dir| dir.trim_end_matches('/').to_owned())
        };
        Ok(tips.iter().map(of_tip).collect())
    }

    async fn objects(&self, how: &str, names: &[&str]) -> Result<Vec<u8>, String> {
        let asked: String = names.iter().flat_map(|name| [*name, "\n"]).collect();
        Ok(self.git(LOOK, false, &[how], asked.into_bytes()).await?.stdout.head.0)
    }
}

fn paths(tip: &Tip) -> impl Iterator<Item = &str> {
    tip.commits.iter().flat_map(|commit| &commit.files).map(String::as_str)
}

/// The directories, with a slash at the end or empty, in which a commit changed what git would obey in a
/// repository, or take for one's own.
fn suspects(tip: &Tip) -> BTreeSet<&str> {
    let starts = |path: &str| -> Vec<usize> {
        std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1)).collect()
    };
    let of = |path: &'_ str| -> Vec<usize> {
        let name = |at: usize| path.get(at..).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        starts(path).into_iter().filter(|at| is_of_repository(name(*at))).collect()
    };
    paths(tip).flat_map(|path| of(path).into_iter().filter_map(|at| path.get(..at))).collect()
}

/// What `git cat-file --batch` says, by object.
fn contents(mut said: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    while !said.is_empty() {
        let end = said.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = said.split_at_checked(end)?;
        let mut words = std::str::from_utf8(line).ok()?.split(' ');
        let (id, size) = (words.next()?, words.nth(1)?.parse().ok()?);
        let (content, rest) = rest.get(1..)?.split_at_checked(size)?;
        found.insert(id.to_owned(), content.to_vec());
        said = rest.strip_prefix(b"\n")?;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailey_protocol::Commit;

    #[test]
    fn what_git_says_of_objects_is_read_whole_or_not_at_all() {
        let said = b"a0 blob 5\nx\ny\nz\nb0 blob 0\n\n";
        let both = [("a0".to_owned(), b"x\ny\nz".to_vec()), ("b0".to_owned(), vec![])];
        assert_eq!(contents(said), Some(both.into()));
        for torn in [&said[..8], &said[..12], &said[..15], b"a0 missing\n", b"\xff blob 0\n\n"] {
            assert_eq!(contents(torn), None, "{torn:?}");
        }
    }

    #[test]
    fn directories_are_asked_about_where_something_of_a_repositorys_changed() {
        let files = ["src/main.rs", "lib/objects/a.rs", "a/b/HEAD", "config", "x/Refs/heads/main"];
        let commit = Commit { files: files.map(str::to_owned).into(), ..Commit::default() };
        let tip = Tip { commits: vec![commit], ..Tip::default() };
        assert_eq!(suspects(&tip).into_iter().collect::<Vec<_>>(), ["", "a/b/", "lib/", "x/"]);
    }
}

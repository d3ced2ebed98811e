//! What `check.sh` says. The words of commits are anybody's; none of them begins a line, for git writes them
//! in one.

use bailey_protocol::Commit;

/// Paths of a commit that are kept.
const FILES_MAX: usize = 5_000;
/// Links of one tip's commits that are looked at.
const LINKS_MAX: usize = 1_000;
/// Characters of an author's name, a subject or a path that are kept.
const CHARS_MAX: usize = 1_000;

/// How git writes the mode of a symbolic link.
const LINK: &str = "120000";

/// One tip.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tip {
    pub(super) is_commit: bool,
    /// Commits that the project lacks.
    pub(super) count: u32,
    /// Whether the project's commit is among those that it follows from.
    pub(super) follows: bool,
    pub(super) commits: Vec<Commit>,
    /// Symbolic links that its commits hold and the commits before them do not: where, and the object that
    /// says where to.
    pub(super) links: Vec<(String, String)>,
    /// Whether not all that its commits change is told.
    pub(super) is_cut: bool,
}

/// The tips, in the order that was asked; none where the end is missing.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Tip>> {
    let text = String::from_utf8_lossy(bytes);
    let mut tips: Vec<Tip> = Vec::new();
    for line in text.split('\n') {
        match (line, tips.last_mut()) {
            ("end", _) => return Some(tips),
            ("tip", _) => tips.push(Tip::default()),
            (_, None) => return None,
            ("follows", Some(tip)) => tip.follows = true,
            (line, Some(tip)) => {
                if let Some(count) = line.strip_prefix("count ") {
                    tip.count = count.parse().ok()?;
                    tip.is_commit = true;
                } else if let Some(commit) = line.strip_prefix('>') {
                    tip.commits.push(commit_of(commit));
                } else if line == "cut" {
                    tip.is_cut = true;
                } else if let (Some((looks, path)), Some(commit)) =
                    (line.split_once('\t'), tip.commits.last_mut())
                {
                    tip.links.extend(link(looks).map(|id| (path.to_owned(), id.to_owned())));
                    tip.is_cut |= commit.files.len() >= FILES_MAX
                        || path.chars().nth(CHARS_MAX).is_some()
                        || tip.links.len() > LINKS_MAX;
                    commit.files.truncate(FILES_MAX - 1);
                    commit.files.push(short(path));
                }
            }
        }
    }
    None
}

/// The object of a link, where a line of raw output tells of one (git-diff(1)): a colon for each parent,
/// modes and then objects of all of them and of the commit, and a status.
fn link(looks: &str) -> Option<&str> {
    let words = looks.trim_start_matches(':');
    let parents = looks.len() - words.len();
    let mut words = words.split(' ').skip(parents);
    (words.next()? == LINK).then(|| words.nth(parents))?
}

fn commit_of(line: &str) -> Commit {
    let mut parts = line.split('\0').map(short);
    let mut next = || parts.next().unwrap_or_default();
    Commit { id: next(), author: next(), subject: next(), files: Vec::new() }
}

fn short(text: &str) -> String {
    text.chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tips_and_commits_are_told_apart_and_what_is_cut_is_nothing() {
        let said = "tip\ncount 2\nfollows\n>b0\0Ann\0two\n\n:100644 100644 1 2 M\ta.txt\n:0 1 2 3 A\t\"end\\n\"\n>a0\0tip\0count 7\n\n\
                    tip\ntip\ncount 1\n>c0\0\0\nend\n";
        let tips = read(said.as_bytes()).unwrap();
        let [one, two, three] = tips.as_slice() else { panic!("{tips:?}") };
        assert_eq!((one.is_commit, one.count, one.follows), (true, 2, true));
        assert_eq!(one.commits[0].files, ["a.txt", "\"end\\n\""]);
        let last = Commit { id: "a0".into(), author: "tip".into(), subject: "count 7".into(), files: vec![] };
        assert_eq!(one.commits[1], last);
        assert_eq!(*two, Tip::default());
        assert_eq!((three.count, three.follows), (1, false));
        assert_eq!(read(said.trim_end().trim_end_matches("end").as_bytes()), None);
        assert_eq!(read(b"nonsense\nend\n"), None);
        assert!(!one.is_cut && one.links.is_empty(), "the control");
        let said = "tip\ncount 1\n>c0\0\0\n\n:100644 120000 1 2 T\tb\n:120000 100644 3 4 T\tc\n::100644 120000 120000 5 6 7 MM\td\nend\n";
        let links = [("b", "2"), ("d", "7")].map(|(at, id)| (at.to_owned(), id.to_owned()));
        assert_eq!(read(said.as_bytes()).unwrap()[0].links, links);
        for line in
            ["cut".to_owned(), format!(":0\t{}", "a".repeat(CHARS_MAX + 1)), ":0\ta\n".repeat(FILES_MAX + 1)]
        {
            let said = format!("tip\ncount 1\n>c0\0\0\n{line}\nend\n");
            assert!(read(said.as_bytes()).unwrap()[0].is_cut, "{line:.20}");
        }
    }
}

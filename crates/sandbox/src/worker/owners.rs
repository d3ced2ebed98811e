//! Files of a project that belong to somebody else than its commands: no command can change them, and what it
//! then prints does not say why. So they are named on the error stream of the first command, before it
//! starts.

use super::beneath::{Root, join, look, names, type_of};
use bailey_protocol::shell_word;
use rustix::fs::FileType;
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long is looked at most, and at how many entries: a command waits for it.
const TIME_MAX: Duration = Duration::from_millis(20);
const VISITS_MAX: usize = 20_000;
/// How many are named.
const NAMED_MAX: usize = 3;

/// One line about what of others lies deeper in `project` than directly in it, which is told before;
/// `covered` are masks, absolute. What is nearest to the top is looked at first. A directory of others is
/// named for all that it holds.
pub(crate) fn of_others(project: &Path, covered: &[PathBuf]) -> Option<String> {
    let root = Root::open(project.to_str()?).ok()?;
    let me = rustix::process::geteuid().as_raw();
    // What belongs to another group cannot be copied up with that one, and so not be changed.
    let group = rustix::process::getegid().as_raw();
    // Whose project it is not has nothing to take over there.
    let own = root.dir("").ok().and_then(|top| rustix::fs::fstat(top).ok());
    own.filter(|own| own.st_uid == me)?;
    let deadline = Instant::now() + TIME_MAX;
    let (mut found, mut visits) = (Vec::new(), 0);
    let mut pending = VecDeque::from([String::new()]);
    while let Some(at) = pending.pop_front()
        && visits < VISITS_MAX
        && Instant::now() < deadline
    {
        let Ok(dir) = root.dir(&at) else { continue };
        let Ok((names, _)) = names(&dir, VISITS_MAX - visits) else { continue };
        visits += names.len();
        for name in names {
            let Ok(Some(stat)) = look(&dir, &name) else { continue };
            let Some(child) = name.to_str().map(|name| join(&at, name)) else { continue };
            let is_mine = stat.st_uid == me && stat.st_gid == group;
            if is_mine {
                pending.extend((type_of(&stat) == FileType::Directory).then_some(child));
            } else if !at.is_empty() && !covered.contains(&project.join(&child)) {
                found.push(child);
            }
        }
    }
    said(project, &found)
}

fn said(project: &Path, found: &[String]) -> Option<String> {
    let named = found.get(..found.len().min(NAMED_MAX)).filter(|named| !named.is_empty())?;
    let word = |path: &Path| shell_word(&path.display().to_string());
    let place = word(project);
    let words: Vec<String> = named.iter().map(|path| word(&project.join(path))).collect();
    let named = named.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    let more = match found.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (belong, them) = if found.len() == 1 { ("belongs", "it") } else { ("belong", "them") };
    let words = words.join(" ");
    Some(format!(
        "bailey: {named}{more} {belong} to another user or group: no command inside the walls can change {them}. Unless a program needs \
         {them} so, make {them} yours, outside: sudo chown -R --reference={place} {words}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::said;
    use std::path::Path;

    /// An archive names its directory, and the line is pasted, with `sudo`.
    #[test]
    fn a_quote_in_the_projects_name_does_not_end_the_argument() {
        let line = said(Path::new("/p/it's; rm"), &["b/'c".into()]).unwrap();
        let words = r"--reference='/p/it'\''s; rm' '/p/it'\''s; rm/b/'\''c'";
        assert!(line.trim_end().ends_with(words), "{line}");
    }
}

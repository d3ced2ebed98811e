//! The user's git identity outside of the sandbox: the name and e-mail that commits inside bear, and the
//! settings that make those commits differ from the user's own.
//!
//! Bailey reads it from the configuration of the system and of the home (git-config(1)), and follows
//! includes. Bailey does not run git for this: git would come from the user's `PATH`, and would read the
//! project's own configuration.

mod text;

use bailey_protocol::WsPath;
use std::{
    env, fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// The most that Bailey reads of one file, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// How deep files include each other, as in git.
const DEPTH_MAX: usize = 10;
/// Variables that name the author and the committer of a commit. They take precedence over any configuration.
const VARIABLES: [&str; 4] =
    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];

/// The user's git settings that concern commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Git {
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
    /// The `VARIABLES` that are set.
    pub variables: Vec<(String, String)>,
    signs: bool,
    hooks: Option<String>,
    excludes: Option<PathBuf>,
}

impl Git {
    /// Reads the settings for work in a project. The user may also write the project's path in another way.
    pub fn of(user: &Path, project: &Path, spelled: Option<&WsPath>) -> Self {
        let repositories = [Some(project), spelled.map(|path| Path::new(&path.0))];
        let repositories = repositories.into_iter().flatten().map(|path| path.join(".git")).collect();
        let mut reader = GitConfigReader { user, repositories, git: Self::default() };
        files(user).iter().for_each(|file| reader.read(file, 0));
        let mut git = reader.git;
        git.excludes = git.excludes.or_else(|| Some(own(user).join("ignore")));
        git.excludes = git.excludes.filter(|path| fs::metadata(path).is_ok_and(|found| found.len() > 0));
        let set = |name: &&str| Some(((*name).to_owned(), env::var(name).ok().filter(|it| !it.is_empty())?));
        git.variables = VARIABLES.iter().filter_map(set).collect();
        git
    }

    /// The settings that git inside reads, below the repository's own
    /// configuration; `None` where there are no settings.
    pub fn inside(&self) -> Option<String> {
        let line = |key: &str, value: &Option<String>| {
            Some(format!("\t{key} = \"{}\"\n", text::quoted(value.as_deref()?)))
        };
        let lines: String =
            [line("name", &self.name), line("email", &self.email)].into_iter().flatten().collect();
        (!lines.is_empty()).then(|| format!("[user]\n{lines}"))
    }

    /// Gives the user this name and e-mail for commits, in the file that `git config --global` would write.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn introduce(user: &Path, name: &str, email: &str) -> std::io::Result<PathBuf> {
        use std::io::Write as _;
        let [first, second] = [user.join(".gitconfig"), own(user).join("config")];
        let file = if !first.exists() && second.exists() { second } else { first };
        let (name, email) = (text::quoted(name), text::quoted(email));
        let mut open = fs::OpenOptions::new().append(true).create(true).open(&file)?;
        open.write_all(format!("[user]\n\tname = \"{name}\"\n\temail = \"{email}\"\n").as_bytes())?;
        Ok(file)
    }

    /// The author of commits; `None` where git would refuse to make a commit.
    pub fn identity(&self) -> Option<String> {
        let variable = |name: &str| self.variables.iter().find(|(it, _)| it == name).map(|(_, value)| value);
        let author = |variable: Option<&String>, own: &Option<String>| variable.cloned().or(own.clone());
        let name = author(variable("GIT_AUTHOR_NAME"), &self.name)?;
        let email = author(variable("GIT_AUTHOR_EMAIL"), &self.email)?;
        Some(format!("{name} <{email}>"))
    }

    /// One line that says how commits made inside differ from the person's
    /// own; `None` where they do not differ.
    pub fn differs(&self) -> Option<String> {
        let signs = self.signs.then(|| "they are unsigned, though commit.gpgSign is on".to_owned());
        let hooks = self.hooks.as_ref().map(|at| format!("the hooks in `{at}` (core.hooksPath) did not run"));
        let excludes =
            self.excludes.as_ref().map(|at| format!("your ignore file `{}` was not used", at.display()));
        let parts: Vec<String> = [signs, hooks, excludes].into_iter().flatten().collect();
        let line = format!("commits made inside differ from your own: {}", parts.join("; "));
        (!parts.is_empty()).then_some(line)
    }

    fn set(&mut self, key: &str, value: Option<String>, user: &Path) {
        let text = || value.clone().filter(|value| !value.is_empty());
        match key {
            "user.name" => self.name = text(),
            "user.email" => self.email = text(),
            // A key without a value means yes.
            "commit.gpgsign" => self.signs = value.as_deref().is_none_or(text::is_yes),
            "core.hookspath" => self.hooks = text(),
            "core.excludesfile" => self.excludes = text().map(|path| expanded(&path, user)),
            _ => {}
        }
    }
}

/// The directory for git's own files, by default `~/.config/git`.
fn own(user: &Path) -> PathBuf {
    let named = env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.unwrap_or_else(|| user.join(".config")).join("git")
}

/// The files that git reads in this order, outside of any repository.
fn files(user: &Path) -> Vec<PathBuf> {
    let named = |name: &str| env::var_os(name).map(|path| vec![PathBuf::from(path)]);
    let system = match env::var("GIT_CONFIG_NOSYSTEM") {
        Ok(value) if text::is_yes(&value) => Vec::new(),
        // The files of a git from the distribution, and of a git that was built on this machine.
        _ => named("GIT_CONFIG_SYSTEM")
            .unwrap_or_else(|| vec!["/etc/gitconfig".into(), "/usr/local/etc/gitconfig".into()]),
    };
    let global =
        named("GIT_CONFIG_GLOBAL").unwrap_or_else(|| vec![own(user).join("config"), user.join(".gitconfig")]);
    [system, global].concat()
}

/// Replaces `~/` by the user's home.
fn expanded(path: &str, user: &Path) -> PathBuf {
    path.strip_prefix("~/").map_or_else(|| path.into(), |below| user.join(below))
}

/// Reads git's files, and the files that they include.
struct GitConfigReader<'a> {
    user: &'a Path,
    /// The repository's directory in each spelling.
    repositories: Vec<PathBuf>,
    git: Git,
}

impl GitConfigReader<'_> {
    /// Reads a file, and each included file at the place of its include. A path that is
    /// missing, or leads to no file, says nothing.
    fn read(&mut self, file: &Path, depth: usize) {
        let is_file = fs::metadata(file).is_ok_and(|found| found.is_file());
        let Some(opened) = is_file.then(|| fs::File::open(file).ok()).flatten() else { return };
        let mut bytes = Vec::new();
        if opened.take(BYTES_MAX).read_to_end(&mut bytes).is_err() {
            return;
        }
        for (section, key, value) in text::entries(&String::from_utf8_lossy(&bytes)) {
            let is_included = match section.strip_prefix("includeif.") {
                Some(condition) => self.holds(condition, file),
                None => section == "include",
            };
            if !is_included {
                self.git.set(&format!("{section}.{key}"), value, self.user);
            } else if let Some(path) = value.filter(|_| key == "path" && depth < DEPTH_MAX) {
                let path = file.parent().unwrap_or(file).join(expanded(&path, self.user));
                self.read(&path, depth + 1);
            }
        }
    }

    /// Whether a condition of `includeIf` holds: a condition on the repository's place. Conditions on the
    /// repository's content never hold.
    fn holds(&self, condition: &str, file: &Path) -> bool {
        let (pattern, folds) = match (condition.strip_prefix("gitdir:"), condition.strip_prefix("gitdir/i:"))
        {
            (Some(pattern), _) => (pattern, false),
            (None, Some(pattern)) => (pattern, true),
            (None, None) => return false,
        };
        let mut pattern = match (pattern.strip_prefix("~/"), pattern.strip_prefix("./")) {
            (Some(below), _) => self.user.join(below).display().to_string(),
            (None, Some(below)) => file.parent().unwrap_or(file).join(below).display().to_string(),
            (None, None) if pattern.starts_with('/') => pattern.to_owned(),
            (None, None) => format!("**/{pattern}"),
        };
        if pattern.ends_with('/') {
            pattern.push_str("**");
        }
        let fold = |text: String| if folds { text.to_lowercase() } else { text };
        let pattern = fold(pattern);
        self.repositories.iter().any(|at| text::matches(&pattern, &fold(at.display().to_string())))
    }
}

#[cfg(test)]
mod tests;

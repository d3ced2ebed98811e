use super::{Git, GitConfigReader, text};
use std::{fs, path::Path};

/// The settings that a home with these files has for work in `~/work/p`.
fn of(files: &[(&str, &str)]) -> Git {
    let home = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(home.path().join(name), content).unwrap();
    }
    let repositories = vec![home.path().join("work/p/.git")];
    let mut reader = GitConfigReader { user: home.path(), repositories, git: Git::default() };
    reader.read(&home.path().join(".gitconfig"), 0);
    reader.git
}

#[test]
fn the_text_is_read_as_git_reads_it() {
    let text = "# a comment\n[User]\n\tname = \"Ann \\\"A\\\" Lee\" ; who\n  email=ann@example.com   # where\n\
                [commit] gpgSign\n[core]\n excludesFile = ~/a \\\n b\n[remote \"X y\"]\nurl = u\n";
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config");
    fs::write(&file, text).unwrap();
    for (section, key, value) in text::entries(text) {
        let name = format!("{section}.{key}");
        let git = |words: &[&str]| {
            let output = std::process::Command::new("git")
                .args(["config", "--file"])
                .arg(&file)
                .args(words)
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
        };
        assert_eq!(value.clone().unwrap_or_default(), git(&["--get", &name]), "{name}");
        assert_eq!(value.is_none(), name == "commit.gpgsign", "{name}");
    }
    assert_eq!(text::entries(text).len(), 5);
}

#[test]
fn a_name_comes_from_the_file_or_what_it_includes_for_this_place() {
    let of_work =
        "[includeIf \"gitdir:~/work/\"]\npath = of-work\n[includeIf \"gitdir:~/play/\"]\npath = of-play\n";
    let own = format!("[user]\nname = Ann\nemail = ann@home\n{of_work}");
    let git = of(&[
        (".gitconfig", &own),
        ("of-work", "[user]\nemail = ann@work\n"),
        ("of-play", "[user]\nemail = ann@play\n"),
    ]);
    assert_eq!((git.name.as_deref(), git.email.as_deref()), (Some("Ann"), Some("ann@work")));
    assert_eq!(git.inside().unwrap(), "[user]\n\tname = \"Ann\"\n\temail = \"ann@work\"\n");
    // A file that includes itself ends.
    let git = of(&[(".gitconfig", "[include]\npath = ~/.gitconfig\n[user]\nname = Ann\n")]);
    assert_eq!((git.name.as_deref(), git.identity()), (Some("Ann"), None), "no commit without an e-mail");
}

#[test]
fn nothing_else_of_it_goes_in() {
    let git = of(&[(
        ".gitconfig",
        "[user]\nname = A\"\\nB\n[credential]\nhelper = store\n[commit]\ngpgsign = true\n[core]\nhooksPath = ~/h\n",
    )]);
    assert_eq!(git.inside().unwrap(), "[user]\n\tname = \"AB\"\n");
    let line = git.differs().unwrap();
    assert!(line.contains("unsigned") && line.contains("`~/h`") && !line.contains("ignore"), "{line}");
    assert_eq!(of(&[(".gitconfig", "[user]\nname = A\n")]).differs(), None);
}

#[test]
fn places_are_matched_as_git_matches_them() {
    for (pattern, path, is_matched) in [
        ("/a/**", "/a/b/.git", true),
        ("**/b/.git", "/a/b/.git", true),
        ("/a/*/.git", "/a/b/.git", true),
        ("/a/*", "/a/b/.git", false),
        ("/a/b?/.git", "/a/b/.git", false),
        ("**/work/**", "/home/ann/work/p/.git", true),
        ("**/work/**", "/home/ann/works/p/.git", false),
    ] {
        assert_eq!(text::matches(pattern, path), is_matched, "{pattern} {path}");
    }
    assert!(Git::of(Path::new("/nowhere"), Path::new("/nowhere/p"), None).excludes.is_none());
}

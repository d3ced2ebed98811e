//! Secret-looking files of the workspace, covered until they are revealed.

use crate::house::{House, everyone};
use bailey_protocol::{Isolation, WsPath};
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// What the human revealed: a command may be shown it.
const REVEALED: &[&str] = &[".env", "racy/.env"];
const MASKS: &[&str] = &[".env", ".env.*", "!.env.example", "*.pem", "/secrets/"];

fn house(who: crate::house::As) -> House {
    House::with(who, |config| {
        config.masks = MASKS.iter().map(|mask| (*mask).to_owned()).collect();
        for lease in config.sessions.values_mut() {
            lease.revealed = REVEALED.iter().map(|name| at(&lease.yard.project, name)).collect();
        }
    })
}

fn at(project: &Path, name: &str) -> WsPath {
    WsPath(project.join(name).display().to_string())
}

#[tokio::test]
async fn a_masked_file_cannot_be_read_written_or_taken_away() {
    for who in everyone() {
        let house = house(who);
        let masked =
            [".env", "deep/er/.env.local", "key.pem", "secrets/inner/any.txt", ".ENV.Local", "KEY.Pem"];
        for name in masked {
            house.write(name, "TOKEN=hidden-value\n");
        }
        house.write(".env.example", "TOKEN=\n");
        house.write(".Env.Example", "TOKEN=\n");
        house.write("plain.txt", "seen\n");
        std::os::unix::fs::symlink(".env", house.project.join("link")).unwrap();
        for name in masked.iter().chain(&["link"]) {
            let line = format!(
                "cat {name}; cp {name} copy; chmod 644 {name}; echo x >> {name}; rm -f {name}; ln {name} hard; mv {name} moved; cat {name} copy hard moved"
            );
            let text = house.sh(&line).await.text();
            assert!(!text.contains("hidden-value"), "{who:?} {name}: {text}");
            assert!(text.contains("Permission denied"), "{text}");
        }
        assert_eq!(house.sh("cat .env.example .Env.Example plain.txt").await.ok(), "TOKEN=\nTOKEN=\nseen");
        // Another way to the bytes would be what lies beneath.
        let all = house
            .sh("grep -rs hidden-value / --include=* --exclude-dir=proc --exclude-dir=usr; echo end")
            .await
            .ok();
        assert_eq!(all, "end", "{who:?}");
        // The control: revealed, the same file is read.
        let isolation = Isolation { revealed: vec![at(&house.project, ".env")], ..Isolation::default() };
        assert_eq!(
            house.run(&house.command("cat .env; cat key.pem 2>/dev/null"), &isolation).await.text(),
            "TOKEN=hidden-value\n"
        );
        assert_eq!(fs::read_to_string(house.project.join(".env")).unwrap(), "TOKEN=hidden-value\n");
        // What the warden was not told of at its start stays covered, whatever the runtime says later.
        let isolation = Isolation { revealed: vec![at(&house.project, "key.pem")], ..Isolation::default() };
        let ran = house.run(&house.command("cat key.pem"), &isolation).await;
        assert!(ran.reason().contains("was not revealed"), "{}", ran.reason());
    }
}

/// Nothing ran any more in a session that had gone down so far, nor in a project that had it.
#[tokio::test]
async fn a_tree_that_is_deeper_than_a_path_is_masked_and_in_nobodys_way() {
    const DOWN: &str =
        "import os\nfor i in range(40): os.path.isdir('e'*150) or os.mkdir('e'*150); os.chdir('e'*150)\n";
    for who in everyone() {
        let house = house(who);
        house.write("down.py", DOWN);
        let make = house
            .sh("python3 -c \"$(cat down.py)\nopen('.env', 'w').write('TOKEN=hidden-value')\"; echo made")
            .await;
        assert_eq!(make.ok(), "made", "{who:?}");
        let look = "python3 -c \"$(cat down.py)\nprint(open('.env').read())\" 2>&1 | tail -n 1";
        let seen = house.sh(look).await.ok();
        assert!(seen.contains("Permission denied"), "{who:?}: {seen}");
        let plain = house.sh(&look.replace(".env", "plain")).await.ok();
        assert!(plain.contains("No such file"), "control: {who:?}: {plain}");
    }
}

#[tokio::test]
async fn git_sees_no_change_in_a_masked_file() {
    for who in everyone() {
        let house = house(who);
        house.write(".env", "TOKEN=hidden-value\n");
        house.write("tracked/.env", "TOKEN=hidden-value\n");
        house.write("plain.txt", "seen\n");
        house.write(".gitignore", "/.env\n");
        let git = "cd \"$0\" && g() { git -c safe.directory='*' -c user.name=a -c user.email=a@b \"$@\"; } && g init -q && \
                   g add . && g commit -qm first && sleep 1.1 && g update-index --refresh";
        let done = std::process::Command::new("sh").args(["-c", git]).arg(&house.project).status().unwrap();
        assert!(done.success());
        house.give(&house.project);
        assert_eq!(house.sh("git status --short; echo clean").await.ok(), "clean", "{who:?}");
        let text = house.sh("git ls-files; cat tracked/.env").await.text();
        assert!(text.contains("tracked/.env\n") && text.contains("Permission denied"), "{text}");
        // A commit of something else works, and holds the file as it was.
        let commit = "echo more >> plain.txt && git -c user.name=a -c user.email=a@b commit -qam second && git status --short && \
                      git show --stat --format= HEAD && git show HEAD:tracked/.env | wc -c";
        let text = house.sh(commit).await.ok();
        assert!(text.contains("plain.txt | 1 +") && !text.contains("tracked"), "{text}");
        let size = fs::metadata(house.project.join("tracked/.env")).unwrap().size();
        assert!(text.ends_with(&size.to_string()), "{text}");
    }
}

/// A repository whose masked files git would have to read to know that they are unchanged: one is as young as
/// the index ("racy"), one was touched since, one was changed since by the human.
fn unsettled(who: crate::house::As, options: &str, version: u8) -> House {
    let house = house(who);
    for name in ["racy/.env", "touched/.env", "changed/.env", "run/.env"] {
        house.write(name, "TOKEN=hidden-value\n");
    }
    house.write("plain.txt", "seen\n");
    house.write("young.txt", "seen\n");
    let script = format!(
        "cd \"$0\" && chmod 755 run/.env && touch -d @1700000000 */.env *.txt && g() {{ git -c safe.directory='*' \"$@\"; }} && g init -q {options} && g add . && \
         g -c user.name=a -c user.email=a@b commit -qm first && g update-index -q --refresh --index-version {version} && \
         touch touched/.env && echo more >> changed/.env && printf 'SEEN\n' > young.txt && \
         touch -d @1700000000 young.txt .git/index"
    );
    let done = std::process::Command::new("sh").args(["-c", &script]).arg(&house.project).status().unwrap();
    assert!(done.success());
    house.give(&house.project);
    house
}

/// Git inside, with an author.
const GIT: &str = "g() { git -c user.name=a -c user.email=a@b \"$@\"; }";

#[tokio::test]
async fn git_never_has_to_read_a_masked_file() {
    for who in everyone() {
        for (options, version) in [("", 2), ("", 4), ("--object-format=sha256", 2)] {
            let house = unsettled(who, options, version);
            let index = fs::read(house.project.join(".git/index")).unwrap();
            // What is not masked shows its change still, though it is as young as the index and of the same
            // size.
            let look = "git status --porcelain && git diff --name-only && echo end";
            assert_eq!(house.sh(look).await.ok(), " M young.txt\nyoung.txt\nend", "{who:?} {options}");
            assert_eq!(house.sh("git fsck && git ls-files | wc -l").await.ok(), "6");
            // Work goes on around them: all is added, committed, thrown away, and they stay as they are.
            let work = format!(
                "{GIT}; echo more >> plain.txt && g add -A && g commit -qm second && g stash list && g status --porcelain && \
                 echo worse >> plain.txt && g commit -qam third && echo worst >> plain.txt && g reset -q --hard && g status --porcelain && \
                 git log --name-only --format=%s"
            );
            let text = house.sh(&work).await.ok();
            assert_eq!(
                text.split_whitespace().take(4).collect::<Vec<_>>(),
                ["third", "plain.txt", "second", "plain.txt"]
            );
            for name in ["racy", "touched", "changed", "run"] {
                let held = house.sh(&format!("git show HEAD:{name}/.env")).await.ok();
                assert_eq!(held, "TOKEN=hidden-value");
            }
            assert_eq!(fs::read(house.project.join(".git/index")).unwrap(), index, "the human's own index");
            let changed = fs::read_to_string(house.project.join("changed/.env")).unwrap();
            assert_eq!(changed, "TOKEN=hidden-value\nmore\n");
        }
    }
}

#[tokio::test]
async fn git_would_read_a_masked_file_that_is_not_settled() {
    for who in everyone() {
        let house = unsettled(who, "", 2);
        assert_eq!(house.sh("git status --porcelain").await.ok(), " M young.txt");
        // The control of the test above: with the index as the human has it, git tries, and is refused.
        let undo = "git update-index --no-assume-unchanged racy/.env && touch -d @1700000000 .git/index";
        let text = house.sh(&format!("{undo}; git status --porcelain; git add -A; true")).await.text();
        assert!(text.contains(" M racy/.env") && text.contains("Permission denied"), "{who:?}: {text}");
        assert!(text.contains("updating files failed"), "{text}");
        // By the next command it is settled again.
        assert_eq!(house.sh("git status --porcelain").await.ok(), " M young.txt");
    }
}

#[tokio::test]
async fn git_sees_the_changes_of_a_revealed_file() {
    for who in everyone() {
        let house = unsettled(who, "", 2);
        assert_eq!(house.sh("git status --porcelain").await.ok(), " M young.txt");
        let isolation = Isolation { revealed: vec![at(&house.project, "racy/.env")], ..Isolation::default() };
        let command = house.command("echo own >> racy/.env; git status --porcelain");
        assert_eq!(house.run(&command, &isolation).await.ok(), " M racy/.env\n M young.txt", "{who:?}");
    }
}

#[tokio::test]
async fn a_masked_file_of_a_submodule_or_beside_a_busy_git_does_no_harm() {
    for who in everyone() {
        let house = house(who);
        house.write("sub/.env", "TOKEN=hidden-value\n");
        let script = "cd \"$0\" && touch -d @1700000000 sub/.env && g() { git -c safe.directory='*' \"$@\"; } && g -C sub init -q --separate-git-dir=../.own && \
                      g -C sub add . && g -C sub -c user.name=a -c user.email=a@b commit -qm first && \
                      touch -d @1700000000 .own/index && echo 'gitdir: ../.own' > sub/.git";
        let done =
            std::process::Command::new("sh").args(["-c", script]).arg(&house.project).status().unwrap();
        assert!(done.success());
        house.give(&house.project);
        let look = "git -C sub -c safe.directory='*' status --porcelain; echo end";
        assert_eq!(house.sh(look).await.ok(), "end", "{who:?}");
        // A lock that somebody holds is respected, and a pipe in the place of the index is not waited for.
        let index = "rm .own/index; cp /etc/passwd .own/index; touch .own/index.lock; echo done";
        assert_eq!(house.sh(index).await.ok(), "done");
        assert_eq!(
            house
                .sh("cmp /etc/passwd .own/index && rm .own/index && mkfifo .own/index; ls .own/index.lock")
                .await
                .ok(),
            ".own/index.lock"
        );
        assert_eq!(house.sh("echo alive").await.ok(), "alive");
    }
}

#[tokio::test]
async fn a_file_that_the_command_makes_itself_is_its_own() {
    for who in everyone() {
        let house = house(who);
        assert_eq!(house.sh("echo mine > .env; cat .env").await.ok(), "mine");
        // To the next one it is masked like any other.
        assert!(house.sh("cat .env").await.text().contains("Permission denied"));
    }
}

/// A directory that the owner named is looked at by its whole path: its own name may be a part of a secret's.
#[tokio::test]
async fn what_is_read_besides_is_judged_by_its_whole_path() {
    const NAMED: &[&str] = &["**/huggingface/token", "**/gh/hosts.yml", "**/.aws/credentials", "closed/"];
    const SECRETS: &[&str] =
        &[".cache/huggingface/token", "tools/gh/hosts.yml", "x/.aws/credentials", "closed/in/any.txt"];
    let reads = [".cache/huggingface", "tools/gh", "x/.aws", "closed/in"];
    for who in everyone() {
        for masks in [NAMED, &["nothing"]] {
            let house = House::with(who, |config| {
                config.masks = masks.iter().map(|mask| (*mask).to_owned()).collect();
                config.reads = reads.iter().map(|read| config.user_home.join(read)).collect();
                for name in SECRETS {
                    let path = config.user_home.join(name);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(&path, format!("content of {name}\n")).unwrap();
                    fs::write(path.with_file_name("plain"), "plain\n").unwrap();
                }
            });
            let names = SECRETS.join(" ");
            let text =
                house.sh(&format!("cd; cat {names}; cat .cache/huggingface/plain x/.aws/plain")).await.text();
            assert!(text.contains("plain\nplain\n"), "{who:?}: {text}");
            for name in SECRETS {
                // The control: without the names each is read.
                let is_seen = text.contains(&format!("content of {name}\n"));
                assert_eq!(is_seen, masks != NAMED, "{who:?} {name}: {text}");
            }
        }
    }
}

/// What cannot be looked through in time is not shown, and everything else goes on.
#[tokio::test]
async fn a_directory_of_own_programs_that_is_too_large_to_mask_is_not_shown() {
    for who in everyone() {
        for (many, is_shown) in [(20_001, false), (10, true)] {
            let house = House::with(who, |config| {
                let bin = config.user_home.join("bin");
                fs::create_dir_all(bin.join("many")).unwrap();
                fs::write(bin.join("tool"), "a tool\n").unwrap();
                fs::write(bin.join("npmrc"), "hidden-value\n").unwrap();
                for number in 0..many {
                    fs::File::create(bin.join("many").join(number.to_string())).unwrap();
                }
            });
            let text = house.sh("cat ~/bin/tool ~/bin/npmrc; echo end").await.text();
            assert_eq!(text.contains("a tool\n"), is_shown, "{who:?}: {text}");
            assert!(text.contains("end\n") && !text.contains("hidden-value"), "{who:?}: {text}");
        }
    }
}

/// What is masked is found by its path, so nobody moves a directory above it to another one: in the home, and
/// where a project or a home lies in `/tmp`.
#[tokio::test]
async fn no_directory_above_a_mask_is_moved_away() {
    for who in everyone() {
        let mut home = PathBuf::new();
        let house = House::with(who, |config| {
            home.clone_from(&config.user_home);
            fs::create_dir_all(home.join(".local/bin")).unwrap();
            fs::write(home.join(".local/bin/.env"), "SECRET\n").unwrap();
            config.masks = vec![".env".into()];
        });
        house.give(&home);
        house.write(".env", "SECRET\n");
        let above = house.project.parent().unwrap().display().to_string();
        let home = home.display();
        let moves =
            format!("mv {home}/.local {home}/x; mv {above} {above}x; mv {home} {above}/y; echo moved");
        let looks = format!(
            "cat {home}/x/bin/.env {above}x/project/.env {above}/y/.local/bin/.env; cat {home}/.local/bin/.env .env; true"
        );
        for line in [&moves, &looks, &format!("{moves}; {looks}"), &looks] {
            let ran = house.sh(line).await;
            assert_eq!(ran.report().exit, Some(0), "{who:?} {line}: {}", ran.text());
            assert!(!ran.text().contains("SECRET"), "{who:?} {line}: {}", ran.text());
        }
        // The control: without masks they are where they always were.
        let bare = House::with(who, |config| {
            fs::create_dir_all(config.user_home.join(".local/bin")).unwrap();
            fs::write(config.user_home.join(".local/bin/.env"), "SECRET\n").unwrap();
        });
        assert_eq!(bare.sh("cat ~/.local/bin/.env").await.ok(), "SECRET", "{who:?}");
    }
}

/// An overlay that was asked for a name in vain hides a file that the host makes there later, for a while: it
/// must not come up behind the masks.
#[tokio::test]
async fn a_secret_that_comes_while_something_lives_is_masked_or_nothing_runs() {
    for who in everyone() {
        let shared = tempfile::tempdir().unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let read = shared.path().canonicalize().unwrap();
        let house = House::with(who, |config| {
            config.reads = vec![read.clone()];
            config.masks = vec![".env".into()];
        });
        let secret = read.join(".env");
        let lives = house.command(&format!("cat {}; touch asked; sleep 60", secret.display()));
        let (cancel, isolation) = (CancellationToken::new(), Isolation::default());
        let look = async {
            while !house.folder.join("upper/asked").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            fs::write(&secret, "SECRET\n").unwrap();
            let while_it_lives = house.sh(&format!("cat {}", secret.display())).await;
            cancel.cancel();
            while_it_lives
        };
        let (_, looked) = tokio::join!(house.run_until(&lives, &isolation, &cancel), look);
        let said = looked.reason();
        assert!(said.contains("came to the host while something of the session lived"), "{who:?}: {said}");
        let later = house.sh(&format!("cat {}", secret.display())).await;
        assert!(later.text().contains("Permission denied"), "{who:?}: {}", later.text());
    }
}

//! Secret-looking files of the workspace, covered until they are revealed.

use crate::house::{House, everyone};
use bailey_protocol::{Isolation, WsPath};
use std::{fs, os::unix::fs::MetadataExt};

const MASKS: &[&str] = &[".env", ".env.*", "!.env.example", "*.pem", "/secrets/"];

fn house(who: crate::house::As) -> House {
    House::with(who, |config| config.masks = MASKS.iter().map(|mask| (*mask).to_owned()).collect())
}

#[tokio::test]
async fn a_masked_file_cannot_be_read_written_or_taken_away() {
    for who in everyone() {
        let house = house(who);
        let masked = [".env", "deep/er/.env.local", "key.pem", "secrets/inner/any.txt"];
        for name in masked {
            house.write(name, "TOKEN=hidden-value\n");
        }
        house.write(".env.example", "TOKEN=\n");
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
        assert_eq!(house.sh("cat .env.example plain.txt").await.ok(), "TOKEN=\nseen");
        // Another way to the bytes would be what lies beneath.
        let all = house
            .sh("grep -rs hidden-value / --include=* --exclude-dir=proc --exclude-dir=usr; echo end")
            .await
            .ok();
        assert_eq!(all, "end", "{who:?}");
        // The control: revealed, the same file is read.
        let revealed = vec![WsPath(house.project.join(".env").display().to_string())];
        let isolation = Isolation { revealed, ..Isolation::default() };
        assert_eq!(
            house.run(&house.command("cat .env; cat key.pem 2>/dev/null"), &isolation).await.text(),
            "TOKEN=hidden-value\n"
        );
        assert_eq!(fs::read_to_string(house.project.join(".env")).unwrap(), "TOKEN=hidden-value\n");
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

#[tokio::test]
async fn a_file_that_the_command_makes_itself_is_its_own() {
    for who in everyone() {
        let house = house(who);
        assert_eq!(house.sh("echo mine > .env; cat .env").await.ok(), "mine");
        // To the next one it is masked like any other.
        assert!(house.sh("cat .env").await.text().contains("Permission denied"));
    }
}

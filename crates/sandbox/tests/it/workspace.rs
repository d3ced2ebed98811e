//! What a command sees of the project, of the home and of the host.

use crate::house::{As, House, everyone};
use bailey_protocol::{Isolation, WsPath};
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

#[tokio::test]
async fn each_command_sees_the_project_as_it_is_when_it_starts() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "one\n");
        assert_eq!(house.sh("cat a.txt; ls").await.ok(), "one\na.txt");
        // Replaced by rename, as editors do: an old mount would serve the old file.
        let new = house.write("a.new", "two\n");
        fs::rename(new, house.project.join("a.txt")).unwrap();
        house.write("b.txt", "");
        assert_eq!(house.sh("cat a.txt; ls").await.ok(), "two\na.txt\nb.txt", "{who:?}");
        fs::remove_file(house.project.join("b.txt")).unwrap();
        assert_eq!(house.sh("cat a.txt; ls").await.ok(), "two\na.txt");
    }
}

#[tokio::test]
async fn another_directory_in_the_project_s_place_is_seen() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "one\n");
        house.sh("cat a.txt").await.ok();
        fs::rename(&house.project, house.project.with_extension("old")).unwrap();
        fs::create_dir(&house.project).unwrap();
        house.write("a.txt", "two\n");
        assert_eq!(house.sh("cat a.txt").await.ok(), "two", "{who:?}");
    }
}

#[tokio::test]
async fn commands_that_live_at_once_see_each_other_s_files() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "of the project\n");
        let (writer, reader) = (
            house.command("echo changed > a.txt; touch began; while [ ! -e seen ]; do sleep 0.05; done; cat from-reader"),
            house.command("while [ ! -e began ]; do sleep 0.05; done; echo hello > from-reader; touch seen; cat a.txt"),
        );
        let isolation = Isolation::default();
        let (writer, reader) = tokio::join!(house.run(&writer, &isolation), house.run(&reader, &isolation));
        assert_eq!((writer.ok().as_str(), reader.ok().as_str()), ("hello", "changed"), "{who:?}");
        assert_eq!(fs::read_to_string(house.project.join("a.txt")).unwrap(), "of the project\n");
    }
}

#[tokio::test]
async fn the_layer_and_the_home_last_and_the_project_stays() {
    for who in everyone() {
        let house = House::new(who);
        house.write("src/a.txt", "a\n");
        house.write("b.txt", "b\n");
        house
            .sh("echo more >> src/a.txt; rm b.txt; mkdir new; echo x > new/x; echo h > ~/h; echo t > /tmp/t")
            .await
            .ok();
        assert_eq!(
            house.sh("cat src/a.txt new/x ~/h /tmp/t; ls").await.ok(),
            "a\nmore\nx\nh\nt\nnew\nsrc",
            "{who:?}"
        );
        assert_eq!(fs::read_to_string(house.project.join("src/a.txt")).unwrap(), "a\n");
        assert!(house.project.join("b.txt").exists() && !house.home.join("h").exists());
    }
}

#[tokio::test]
async fn nothing_of_the_host_is_seen_but_what_is_listed() {
    for who in everyone() {
        let house = House::new(who);
        let secret = house.home.join(".ssh");
        fs::create_dir_all(&secret).unwrap();
        fs::write(secret.join("id"), "key").unwrap();
        house.give(&house.home);
        let text = house
            .sh("ls -A ~ / /etc/shadow /etc/ssh /var/lib 2>&1; cat ~/.ssh/id 2>&1; cat /etc/passwd | wc -l")
            .await;
        let text = text.text();
        assert!(!text.contains(".ssh\n") && !text.contains("key"), "{text}");
        for gone in ["/etc/shadow", "/etc/ssh", "/var/lib"] {
            assert!(text.contains(&format!("cannot access '{gone}'")), "{text}");
        }
        for top in ["boot", "sys", "srv", "mnt", "media", ".folder", ".project"] {
            assert!(!text.lines().any(|line| line == top), "{top}: {text}");
        }
        let refused =
            house.sh("touch /x; touch /usr/x; touch /etc/x; echo x > /proc/sys/kernel/hostname").await.text();
        assert_eq!(refused.matches("cannot").count(), 4, "{refused}");
    }
}

#[tokio::test]
async fn extra_reads_are_read_only_and_for_one_effect() {
    for who in everyone() {
        let house = House::new(who);
        let notes = house.home.join("notes");
        fs::create_dir(&notes).unwrap();
        fs::write(notes.join("n.txt"), "noted\n").unwrap();
        house.give(&house.home);
        let isolation =
            Isolation { extra_reads: vec![WsPath(notes.display().to_string())], ..Isolation::default() };
        let ran = house.run(&house.command("cat ~/notes/n.txt; touch ~/notes/x 2>&1"), &isolation).await;
        assert!(
            ran.text().starts_with("noted\n") && ran.text().contains("Read-only"),
            "{who:?}: {}",
            ran.text()
        );
        // What was made ahead of the next one, while nothing was to be done, must not be made for the last
        // one.
        house.ready().await;
        assert_eq!(house.sh("cat ~/notes/n.txt 2>/dev/null; echo end").await.ok(), "end", "{who:?}");
    }
}

/// Both see the session's files, and one might read what is typed into the other.
#[tokio::test]
async fn a_terminal_is_one_command_s_and_no_other_sees_it() {
    const WAITS: &str = "while [ ! -e /tmp/over ]; do sleep 0.01; done";
    for who in everyone() {
        let house = House::new(who);
        let opens = format!(
            "exec python3 -c 'import os; os.openpty(); open(\"/tmp/open\", \"w\"); os.system(\"ls /dev/pts; {WAITS}\")'"
        );
        let looks = "while [ ! -e /tmp/open ]; do sleep 0.01; done; ls /dev/pts; touch /tmp/over";
        let (own, other) = tokio::join!(house.sh(&opens), house.sh(looks));
        assert_eq!(own.ok(), "0\nptmx", "the control: {who:?}");
        assert_eq!(other.ok(), "ptmx", "{who:?}");
    }
}

#[tokio::test]
async fn a_link_left_in_the_home_does_not_move_a_mount() {
    for who in everyone() {
        let house = House::new(who);
        let notes = house.home.join("notes");
        fs::create_dir(&notes).unwrap();
        house.give(&house.home);
        house.sh("ln -s / ~/notes").await.ok();
        let isolation =
            Isolation { extra_reads: vec![WsPath(notes.display().to_string())], ..Isolation::default() };
        let ran = house.run(&house.command("echo ran"), &isolation).await;
        assert!(
            ran.reason().contains("symbolic link") || ran.reason().contains("ymbolic"),
            "{}",
            ran.reason()
        );
        // The control: without the link it runs.
        house.sh("rm ~/notes").await.ok();
        assert_eq!(house.run(&house.command("echo ran"), &isolation).await.ok(), "ran");
    }
}

#[tokio::test]
async fn a_home_or_bailey_s_own_files_are_no_workspace() {
    for place in ["the parent of both", "the home", "the session's folder"] {
        let house = House::with(As::User, |config| {
            let home = config.user_home.clone();
            let yard = &mut config.sessions.values_mut().next().unwrap().yard;
            yard.project = match place {
                "the home" => home,
                "the session's folder" => yard.folder.clone(),
                _ => home.parent().unwrap().into(),
            };
        });
        let ran = house.sh("echo ran").await;
        assert!(ran.reason().contains("cannot be a workspace"), "{}", ran.reason());
    }
}

#[tokio::test]
async fn the_network_is_a_loopback_of_its_own() {
    let server = "import http.server, threading, urllib.request as u\n\
                  s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
                  threading.Thread(target=s.serve_forever, daemon=True).start()\n\
                  print(u.urlopen(f'http://127.0.0.1:{s.server_port}/').status)\n";
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let dial = format!(
        "import socket\nfor a in [('127.0.0.1', {port}), ('192.0.2.1', 80)]:\n  s = socket.socket()\n  s.settimeout(3)\n  \
         try: s.connect(a); print('connected')\n  except OSError as e: print(e.strerror)\n"
    );
    for who in everyone() {
        let house = House::new(who);
        house.write("serve.py", server);
        house.write("dial.py", &dial);
        assert_eq!(house.sh("/usr/bin/python3 serve.py 2>/dev/null").await.ok(), "200", "{who:?}");
        let ran = house.sh("/usr/bin/python3 dial.py").await;
        assert_eq!(ran.ok(), "Connection refused\nNetwork is unreachable");
        assert!(ran.enforced().out_no_routes > 0, "{:?}", ran.enforced());
        // The control: with the host's network, the listener of the host is reached.
        let house = House::with(who, |config| {
            config.without.extend([bailey_protocol::Wall::NetNamespace]);
            config.tiers.internal = bailey_protocol::Level::Landlock;
        });
        house.write("dial.py", &dial.replace(", ('192.0.2.1', 80)", ""));
        let isolation = Isolation { minimum: Default::default(), ..Isolation::default() };
        let command = house.command("/usr/bin/python3 dial.py");
        assert_eq!(house.run(&command, &isolation).await.ok(), "connected");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A development server is of use to the commands beside it, and to nobody else.
#[tokio::test]
async fn commands_of_one_session_meet_on_its_loopback() {
    let server = "import os, socket\n\
                  s = socket.socket(); s.settimeout(60); s.bind(('127.0.0.1', 0)); s.listen()\n\
                  open('.port', 'w').write(str(s.getsockname()[1])); os.rename('.port', 'port')\n\
                  s.accept()[0].sendall(b'served')\n";
    let client = "import socket\n\
                  s = socket.create_connection(('127.0.0.1', int(open('port').read())), 60)\n\
                  print(s.recv(9).decode())\n";
    for who in everyone() {
        let (house, other) = (House::new(who), House::new(who));
        house.write("server.py", server);
        house.write("client.py", client);
        other.write("client.py", client);
        let port = house.folder.join("upper/port");
        let (serve, (stranger, guest)) = tokio::join!(house.sh("/usr/bin/python3 server.py"), async {
            // As long as the server itself waits for somebody.
            for _ in 0..6000 {
                if port.exists() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            other.write("port", &fs::read_to_string(&port).unwrap());
            let stranger = other.sh("/usr/bin/python3 client.py").await;
            (stranger, house.sh("/usr/bin/python3 client.py").await)
        });
        assert!(stranger.text().contains("Connection refused"), "{who:?} {}", stranger.text());
        assert_eq!((guest.ok(), serve.ok()), ("served".into(), String::new()), "{who:?}: the control");
    }
}

#[tokio::test]
async fn a_layer_that_cannot_be_written_is_refused() {
    if !crate::house::is_root() {
        println!("SKIPPED: only root can take a directory away from the session's user");
        return;
    }
    let house = House::new(As::User);
    assert_eq!(house.sh("echo a > a.txt; cat a.txt").await.ok(), "a");
    house.native.forget(house.session).unwrap();
    // The kernel would mount an overlay without a work directory read-only, and say nothing.
    let work = house.folder.join("work");
    fs::remove_dir_all(&work).unwrap();
    fs::create_dir(&work).unwrap();
    let ran = house.sh("echo ran").await;
    assert!(ran.reason().contains("overlay") && ran.reason().contains("ead-only"), "{}", ran.reason());
}

/// The runtime parses what the world sends: what it asks the warden for is not believed.
#[tokio::test]
async fn the_warden_shows_nothing_that_the_owner_hid() {
    for who in everyone() {
        for is_hidden in [true, false] {
            let house = House::with(who, |config| {
                if is_hidden {
                    config.hidden_in_home = vec![".keys".into()];
                }
            });
            let key = house.home.join(".keys/id");
            fs::create_dir(key.parent().unwrap()).unwrap();
            fs::write(&key, "the key\n").unwrap();
            fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
            house.give(&house.home);
            for path in [house.home.join(".keys"), key.clone()] {
                let extra_reads = vec![WsPath(path.display().to_string())];
                let isolation = Isolation { extra_reads, ..Isolation::default() };
                let ran = house.run(&house.command(&format!("cat {}", key.display())), &isolation).await;
                if is_hidden {
                    assert!(ran.reason().contains("no sandbox may see"), "{}", ran.reason());
                } else {
                    assert_eq!(ran.ok(), "the key", "the control: not hidden, it is shown");
                }
            }
        }
    }
}

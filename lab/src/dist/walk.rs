//! `cargo xtask dist --walk`: docs/daemon.md about a server and docs/channels.md about Telegram, followed by
//! somebody new: the package on a fresh Debian with systemd, every command of these sections typed at its
//! terminal, and a phone. Two servers stand in for the provider of the model and for Telegram. The output is
//! kept in target/evidence.
//!
//! Read `walk/server.rs` first.

mod console;
mod model;
mod page;
mod phone;
mod server;
mod telegram;

use super::{archive::Tree, guest, root, service, trial};
use anyhow::{Result, ensure};
use bailey_testkit::telegram::Telegram;
use console::Console;
use page::{Name, Page};
use std::{fs, path::Path};

/// A small server's: what a Debian has that was installed with its standard system, and `sudo`.
const PACKAGES: &[&str] = &[
    "systemd",
    "systemd-sysv",
    "libpam-systemd",
    "dbus",
    "linux-image-amd64",
    "ca-certificates",
    "git",
    "sudo",
    "nano",
];
const SERVER: Name = ("daemon.md", "A server of your own");
const PHONE: Name = ("channels.md", "Telegram");
const USER: &str = "ann";
const PASSWORD: &str = "correct horse";
/// Where the stand-ins are found in the guest.
const MODEL: &str = "127.0.0.1:7001";
const TELEGRAM: &str = "127.0.0.1:7002";
/// What is asked before agents may work again.
const RELEASE: (&str, &str) = ("[y/N] ", "y\r");
/// The next version's number.
const NEWER: &str = "0.1.1";
/// How much of what a command prints is kept, of its beginning and of its end.
const LINES_MAX: usize = 6;

/// The machine as its owner has it: a user, a repository, another disk. The two addresses lead to the
/// stand-ins.
const SETUP: &str = r#"
useradd -m -s /bin/bash -G sudo ann
echo 'ann:correct horse' | chpasswd
echo server > /etc/hostname
echo '127.0.1.1 server' >> /etc/hosts
mkdir -p /mnt/disk && chown ann: /mnt/disk
mv /*.deb /home/ann && chown ann: /home/ann/*.deb
su ann -c 'cd && git init -q -b main theirs && cd theirs &&
    echo "echo \$(( 2 + 2 - 1 ))" > sum.sh && echo "[ \$(sh sum.sh) = 4 ]" > test.sh && git add . &&
    git -c user.name=A -c user.email=a@localhost commit -q -m one'
su ann -c 'echo "the key is under the mat" > /home/ann/notes.txt'
printf 'export NO_COLOR=1 SYSTEMD_PAGER=cat\n' > /etc/profile.d/walk.sh
echo 'set enable-bracketed-paste off' >> /etc/inputrc
printf '[Match]\nName=en*\n[Network]\nAddress=10.0.2.15/24\n' > /etc/systemd/network/wired.network
systemctl enable systemd-networkd 2>/dev/null
"#;

/// Installs the package as the pages say, and does the rest of what they say.
pub(super) fn run(tree: &Tree, package: &Path, out: &Path) -> Result<()> {
    println!("\n== docs/daemon.md and docs/channels.md in a guest with systemd");
    let (model, telegram) = (model::start(), Telegram::start());
    let place = root::copy(&root::made(service::SUITE, PACKAGES)?, "walk")?;
    let newer = tree.debian_as(NEWER, out)?;
    for package in [package, &newer] {
        trial::bring(package, &place)?;
    }
    fs::remove_file(newer)?;
    let setup = [("model", MODEL, model.base_url()), ("telegram", TELEGRAM, telegram.url())]
        .iter()
        .fold(SETUP.to_owned(), |text, (name, at, to)| text + &proxy(name, at, to));
    print!("{}", root::run(&place, &setup)?);
    let disk = out.join("walk.img");
    guest::disk(&place, &disk)?;
    let mut console = Console::boot(guest::machine(&place, &disk, "user,model=virtio-net-pci")?)?;
    console.log_in(USER, PASSWORD)?;

    let mut walk = Walk { console, page: Page::open(SERVER)?, told: String::new(), wrong: Vec::new() };
    server::walk(&mut walk)?;
    walk.ends_page("server", PHONE, server::ELSEWHERE)?;
    telegram::walk(&mut walk, &telegram)?;
    walk.ends_page("telegram", SERVER, telegram::ELSEWHERE)?;
    ensure!(walk.wrong.is_empty(), "not as the pages say:\n{}", walk.wrong.join("\n"));
    drop(walk);
    fs::remove_file(disk)?;
    Ok(fs::remove_dir_all(place)?)
}

/// Units that hand what comes to an address on to this machine, which QEMU calls 10.0.2.2 there.
fn proxy(name: &str, at: &str, to: &str) -> String {
    let port = to.rsplit(':').next().unwrap_or_default();
    format!(
        "u=/etc/systemd/system/{name}-stand-in\n\
         printf '[Socket]\\nListenStream={at}\\n[Install]\\nWantedBy=sockets.target\\n' > $u.socket\n\
         printf '[Service]\\nExecStart=/lib/systemd/systemd-socket-proxyd 10.0.2.2:{port}\\n' > $u.service\n\
         systemctl enable {name}-stand-in.socket 2>/dev/null\n"
    )
}

/// Somebody at the machine, with a page before them.
struct Walk {
    console: Console,
    page: Page,
    /// What was typed, said and seen, for the record.
    told: String,
    /// What did not go as the pages say.
    wrong: Vec<String>,
}

impl Walk {
    /// Types a command of the page as it stands there; it must end well. What it said.
    fn does(&mut self, command: &str) -> Result<String> {
        self.does_as(command, command, &[])
    }

    /// The same with something in the place of what the page leaves open, and with answers to what is asked.
    fn does_as(&mut self, command: &str, typed: &str, answers: &[(&str, &str)]) -> Result<String> {
        self.page.has(command)?;
        self.types(typed, answers, 0)
    }

    /// Types something, which must end with this code.
    fn types(&mut self, typed: &str, answers: &[(&str, &str)], code: i32) -> Result<String> {
        self.console.keys(&format!("{typed}\r"))?;
        let mut shown = String::new();
        for (asked, answer) in answers {
            shown += &self.console.wait_for(asked)?;
            self.console.keys(answer)?;
        }
        let (ended, rest) = self.console.ended()?;
        let shown = console::plain(&(shown + &rest));
        let shown = shown.strip_prefix(typed).unwrap_or(&shown).trim().to_owned();
        self.tells(&format!("$ {typed}"), &shown);
        if ended != code {
            self.is_wrong(format!("`{typed}` ended with {ended}, and not with {code}:\n{shown}"));
        }
        Ok(shown)
    }

    /// Opens `config.toml` as the page says, adds this at its end, and saves.
    fn adds(&mut self, text: &str) -> Result<()> {
        self.edits(&format!("at the end\n{text}"), &format!("\u{1b}/{}", text.replace('\n', "\r")))
    }

    /// Opens `config.toml` as the page says, takes the sign of a comment from this line, and saves.
    fn uncomments(&mut self, line: &str) -> Result<()> {
        self.edits(&format!("no # before\n{line}"), &format!("\u{17}# {line}\r\u{4}\u{4}"))
    }

    /// Opens `config.toml` in the editor, gives it these keys, and saves.
    fn edits(&mut self, what: &str, keys: &str) -> Result<()> {
        self.page.has("bailey config edit")?;
        self.console.keys("bailey config edit\r")?;
        // Save, as the file's own name, and leave.
        let keys = format!("{keys}\u{f}");
        for (shown, keys) in [("Help", keys.as_str()), ("File Name to Write", "\r"), ("Wrote", "\u{18}")] {
            self.console.wait_for(shown)?;
            self.console.keys(keys)?;
        }
        let (code, shown) = self.console.ended()?;
        let shown = console::plain(&shown);
        if code != 0 {
            self.is_wrong(format!("`bailey config edit` ended with {code}: {shown}"));
        }
        // What the editor drew comes before.
        let said: Vec<&str> = shown.lines().skip_while(|line| !line.starts_with("written")).collect();
        self.tells("$ bailey config edit", &format!("(in nano, {what}\nand saved)\n{}", said.join("\n")));
        Ok(())
    }

    /// Keeps what happened.
    fn tells(&mut self, what: &str, shown: &str) {
        let mut told = format!("{what}\n");
        // Of a line that a package's progress was drawn on, what stands behind it.
        let line =
            |line| if str::starts_with(line, "Progress: [") { line.rsplit(']').next() } else { Some(line) };
        let lines: Vec<&str> =
            shown.lines().filter_map(line).filter(|line| !line.trim().is_empty()).collect();
        let left_out = lines.len().saturating_sub(2 * LINES_MAX);
        for (number, line) in lines.iter().enumerate() {
            if left_out == 0 || number < LINES_MAX || number >= LINES_MAX + left_out {
                told += &format!("    {line}\n");
            } else if number == LINES_MAX {
                told += &format!("    … ({left_out} lines more)\n");
            }
        }
        print!("{told}");
        self.told += &told;
    }

    /// Something is not as a page says: the walk goes on, and fails at its end.
    fn is_wrong(&mut self, what: String) {
        println!("WRONG: {what}");
        self.wrong.push(what);
    }

    fn remarks(&mut self, heading: &str) {
        let told = format!("\n# {heading}\n");
        print!("{told}");
        self.told += &told;
    }

    /// All that a page says was done; what was seen is kept.
    fn ends_page(&mut self, name: &str, next: Name, elsewhere: &[&str]) -> Result<()> {
        let left = std::mem::replace(&mut self.page, Page::open(next)?).end(elsewhere);
        if let Some(left) = left {
            self.is_wrong(left);
        }
        let told = std::mem::take(&mut self.told);
        if self.wrong.is_empty() {
            let text = format!("$ cargo xtask dist --walk: {name}\n{told}");
            xtask::keep(&format!("{name}.txt"), &text)?;
        }
        Ok(())
    }
}

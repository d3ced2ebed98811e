//! The person who uses this machine, as the system knows them. The journal records this person with each
//! answer to a question. Bailey looks the person up before this process binds itself.

use bailey_journal::Person;
use std::{env, fs::File, io::Read as _, path::Path};

/// The most that Bailey reads of the list of users, in bytes.
const USERS_BYTES_MAX: u64 = 1 << 20;
/// The most that Bailey reads of the system's information about this process, in bytes.
const STAT_BYTES_MAX: u64 = 4096;

/// The variable that names the place where a user asked the daemon for this process's work, such as a
/// browser.
pub const AT: &str = "BAILEY_AT";

/// The user that this process runs as, and its controlling terminal or other place.
pub fn person() -> Person {
    let uid = rustix::process::geteuid().as_raw();
    let name = read(Path::new("/etc/passwd"), USERS_BYTES_MAX).and_then(|users| name_of(&users, uid));
    let terminal = || read(Path::new("/proc/self/stat"), STAT_BYTES_MAX).and_then(|stat| terminal_of(&stat));
    let terminal = env::var(AT).ok().or_else(terminal);
    Person { uid, name: name.unwrap_or_else(|| uid.to_string()), terminal }
}

fn read(path: &Path, most: u64) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// passwd(5): `name:password:uid:…`.
fn name_of(users: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let user = users.lines().find(|line| line.split(':').nth(2) == Some(uid.as_str()))?;
    user.split(':').next().map(str::to_owned)
}

/// proc_pid_stat(5): the program's name in brackets, then state, parent, group, session and the number of the
/// terminal. The number 0 means no terminal.
fn terminal_of(stat: &str) -> Option<String> {
    let (_, after) = stat.rsplit_once(") ")?;
    let number: u32 = after.split(' ').nth(4)?.parse().ok()?;
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    match (major, number) {
        (_, 0) => None,
        (136..=143, _) => Some(format!("pts/{}", (major - 136) * 256 + minor)),
        (4, _) => Some(format!("tty{minor}")),
        _ => Some(format!("{major}:{minor}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{name_of, terminal_of};

    #[test]
    fn a_person_is_who_the_system_says() {
        let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(name_of(users, 1000).as_deref(), Some("ann"));
        assert_eq!(name_of(users, 10), None);
        let stat = |tty: u32| format!("7 (a) b) S 1 7 7 {tty} 7 0");
        assert_eq!(terminal_of(&stat(34_819)).as_deref(), Some("pts/3"));
        assert_eq!(terminal_of(&stat(1025)).as_deref(), Some("tty1"));
        assert_eq!(terminal_of(&stat(0)), None);
        assert_eq!(terminal_of("no stat"), None);
    }
}

//! Who sits here, as the system knows them: what the journal keeps of whoever answers a question. Looked up
//! before this process binds itself.

use bailey_journal::Person;
use std::{env, fs::File, io::Read as _, path::Path};

/// The most that is read of the list of users, in bytes.
const USERS_BYTES_MAX: u64 = 1 << 20;
/// The most that is read of what the system says of this process, in bytes.
const STAT_BYTES_MAX: u64 = 4096;

/// Names the place where somebody asked the daemon for what this process does, such as a browser.
pub const AT: &str = "BAILEY_AT";

/// The user that this process runs as, and its controlling terminal, or where else they are.
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
/// terminal, which is none where it is 0.
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

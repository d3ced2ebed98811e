//! One attack in a separate process, which reports how it ended. `bailey prove` runs it inside the walls
//! and, as the control, outside the walls.
//!
//! The same program runs in both places, so that only the walls differ. It parses only its own few words.
//! Each attack is harmless when it succeeds: the prover planted everything that it reads, writes, kills or
//! connects to.

mod ask;

pub(crate) use ask::KEY;

use bailey_sandbox::Forbidden;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    mount::FsOpenFlags,
    process::{PTracer, Pid, Signal, getgid, getuid, kill_process, set_ptracer, setsid, test_kill_process},
    thread::{UnshareFlags, set_thread_uid},
};
use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Read as _, Write as _},
    net::{TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The private first argument that turns this program into a probe.
pub(crate) const ARGUMENT: &str = "__probe";
/// The beginning of the last printed line: when the attack succeeded, and when it did not.
pub(crate) const REACHED: &str = "reached: ";
pub(crate) const REFUSED: &str = "refused: ";
/// The text in every bait, before the random text of this run.
pub(crate) const BAIT: &str = "bait-of-bailey-prove-";
/// The variable of a planted process that holds a bait.
pub(crate) const VARIABLE: &str = "BAILEY_PROVE_BAIT";

/// The most bytes of a bait that are read.
const BAIT_MAX: u64 = 64 * 1024;
/// How long memory or files stay after they grew, so that the watching sandbox sees them.
const STAY: Duration = Duration::from_millis(2_500);
/// How long a planted process lives when it is not ended.
const LIFE: Duration = Duration::from_secs(150);
/// How long a directory and a link are swapped.
const SWAPPING: Duration = Duration::from_millis(1_200);
/// The content of the file in that directory.
pub(crate) const INSIDE: &str = "nothing\n";
/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// An address without an owner (RFC 5737). The probe sends nothing to it.
const NOBODY: &str = "192.0.2.1:9";

/// Runs the probe that these arguments name; `None` when they do not name a probe.
pub fn main(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let words: Vec<String> = arguments.skip(1).map(|word| word.into_string().unwrap_or_default()).collect();
    let (first, words) = words.split_first()?;
    if first != ARGUMENT {
        return None;
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (how, code) = match attempt(&words) {
        Ok(how) => (format!("{REACHED}{how}"), ExitCode::SUCCESS),
        Err(error) => (format!("{REFUSED}{}", said(&error)), ExitCode::FAILURE),
    };
    writeln!(io::stdout(), "{how}").ok();
    Some(code)
}

/// An error's text for people.
fn said(error: &io::Error) -> String {
    // Without the number, which tells people nothing.
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    // The system's words begin with a capital, which becomes a small letter here.
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

fn attempt(words: &[&str]) -> io::Result<String> {
    match *words {
        ["read", path] => read(path),
        ["write", path] => write(path),
        ["rewrite", path] => rewrite(path),
        ["variables", ref names @ ..] => variables(names),
        ["look", pid] => read(&format!("/proc/{pid}/environ")),
        ["kill", pid] => kill(number(pid)?),
        ["tcp", port] => connect(number(port)?),
        ["route"] => route(),
        ["ask", url, ref how @ ..] => ask::ask(url, how),
        ["lend", folder] => ask::lend(folder),
        ["borrow", folder, url] => ask::borrow(folder, url),
        ["abstract", name] => {
            UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?).map(|_| "connected".into())
        }
        ["socket", path] => UnixStream::connect(path).map(|_| "connected".into()),
        ["trace", pid] => call(Forbidden::Trace(number(pid)?)),
        ["bpf"] => call(Forbidden::Bpf),
        ["keyring"] => call(Forbidden::Keyring),
        ["io_uring"] => call(Forbidden::IoUring),
        ["userfault"] => call(Forbidden::Userfault),
        ["namespace"] => alone(UnshareFlags::NEWUSER).map(|()| "in a user namespace of its own".into()),
        ["mount"] => as_root_of_namespaces(|| {
            rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            Ok("a file system to mount".into())
        }),
        ["root"] => as_root_of_namespaces(|| {
            set_thread_uid(rustix::process::Uid::ROOT)?;
            Ok("user 0".into())
        }),
        ["tasks", most] => tasks(number(most)?),
        ["memory", mib] => memory(number(mib)?),
        ["disk", path, mib] => disk(path, number(mib)?),
        ["leave", mark] => leave(mark),
        ["wait", ..] => wait(),
        ["swap", folder] => swap(folder),
        ["move", path] => moved(path),
        ["print", path] => print(path),
        _ => Err(io::Error::other("there is no such probe")),
    }
}

fn number<T: std::str::FromStr>(word: &str) -> io::Result<T> {
    word.parse().map_err(|_| io::Error::other("no number"))
}

fn read(path: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(BAIT_MAX).read_to_end(&mut bytes)?;
    match String::from_utf8_lossy(&bytes).contains(BAIT) {
        true => Ok("it was read".into()),
        false => Err(io::Error::other("another file stands there")),
    }
}

fn write(path: &str) -> io::Result<String> {
    if let Some((folder, _)) = path.rsplit_once('/')
        && folder.ends_with("hooks")
    {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, format!("{BAIT}written\n"))?;
    Ok("it was written".into())
}

/// Writes the present content again, so that nothing changes.
fn rewrite(path: &str) -> io::Result<String> {
    let text = fs::read(path)?;
    fs::OpenOptions::new().write(true).open(path)?.write_all(&text)?;
    Ok("it was written".into())
}

fn variables(names: &[&str]) -> io::Result<String> {
    match names.iter().find(|name| env::var_os(name).is_some()) {
        Some(name) => Ok(format!("{name} is set")),
        None => Err(io::Error::other("none of them is set")),
    }
}

fn kill(pid: i32) -> io::Result<String> {
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("no process"))?;
    test_kill_process(pid)?;
    kill_process(pid, Signal::KILL)?;
    Ok("it was killed".into())
}

fn connect(port: u16) -> io::Result<String> {
    TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), CONNECT_MAX)?;
    Ok("connected".into())
}

/// Asks for a route by connecting a UDP socket, which sends nothing.
fn route() -> io::Result<String> {
    UdpSocket::bind("0.0.0.0:0")?.connect(NOBODY)?;
    Ok("there is a route".into())
}

fn call(call: Forbidden) -> io::Result<String> {
    call.attempt()?;
    Ok("the kernel took the call".into())
}

#[expect(deprecated, reason = "this process has one thread and shares no table of descriptors with another")]
fn alone(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

/// Tries the work as it is, and then as root of its own namespaces, if every user may create these.
fn as_root_of_namespaces(work: impl Fn() -> io::Result<String>) -> io::Result<String> {
    work().or_else(|first| {
        let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
        alone(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).map_err(|_| first)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
        work().map(|how| format!("{how}, as root of namespaces of its own"))
    })
}

/// Starts threads, which the kernel counts as it counts processes.
fn tasks(most: usize) -> io::Result<String> {
    for begun in 0..most {
        let started = thread::Builder::new().stack_size(64 * 1024).spawn(|| thread::sleep(LIFE));
        started.map_err(|error| io::Error::other(format!("{} after {begun} tasks", said(&error))))?;
    }
    Ok(format!("{most} tasks at once"))
}

fn memory(mib: usize) -> io::Result<String> {
    let held: Vec<Vec<u8>> = (0..mib).map(|_| vec![1; 1 << 20]).collect();
    thread::sleep(STAY);
    Ok(format!("{} MiB of memory", held.len()))
}

fn disk(path: &str, mib: usize) -> io::Result<String> {
    for part in 0..mib {
        fs::write(format!("{path}{part}"), vec![1; 1 << 20])?;
    }
    thread::sleep(STAY);
    Ok(format!("{mib} MiB of disk"))
}

/// Leaves a process behind that is independent of this one.
fn leave(mark: &str) -> io::Result<String> {
    let mut command = Command::new(env::current_exe()?);
    command.args([ARGUMENT, "wait", mark]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // It writes a byte when it is in its own session.
    if let Some(mut said) = child.stdout.take() {
        said.read_exact(&mut [0])?;
    }
    Ok("it was left behind".into())
}

/// A planted process. Probes look at it, trace it, kill it or leave it behind.
fn wait() -> io::Result<String> {
    setsid().ok();
    // Let any process trace this one, even where only a parent may trace.
    set_ptracer(PTracer::Any).ok();
    io::stdout().write_all(b".")?;
    io::stdout().flush()?;
    thread::sleep(LIFE);
    Ok("nobody ended it".into())
}

/// A directory with a file in it, and a link to /etc, where the file has another content.
pub(crate) struct Swapped {
    pub(crate) plain: PathBuf,
    link: PathBuf,
}

impl Swapped {
    /// Makes the directory and the link in a new folder.
    pub(crate) fn make(folder: &Path) -> io::Result<Self> {
        let swapped = Self { plain: folder.join("plain"), link: folder.join("link") };
        fs::create_dir_all(&swapped.plain)?;
        fs::write(swapped.plain.join("passwd"), INSIDE)?;
        std::os::unix::fs::symlink("/etc", &swapped.link)?;
        Ok(swapped)
    }

    /// Swaps the directory and the link.
    pub(crate) fn swap(&self) -> io::Result<()> {
        Ok(renameat_with(CWD, &self.plain, CWD, &self.link, RenameFlags::EXCHANGE)?)
    }
}

fn swap(folder: &str) -> io::Result<String> {
    let swapped = Swapped::make(Path::new(folder))?;
    let (begin, mut times) = (Instant::now(), 0);
    while begin.elapsed() < SWAPPING {
        swapped.swap()?;
        times += 1;
        // Each stays for a moment, so that a read meets it.
        thread::sleep(Duration::from_micros(300));
    }
    Ok(format!("swapped {times} times"))
}

/// Gives a directory another name, and then its own name again.
fn moved(path: &str) -> io::Result<String> {
    let other = format!("{path}.moved");
    fs::rename(path, &other)?;
    fs::rename(&other, path)?;
    Ok("it was moved".into())
}

/// Prints a file as it is and in Base64.
fn print(path: &str) -> io::Result<String> {
    let bytes = fs::read(path)?;
    let mut out = io::stdout();
    out.write_all(&bytes)?;
    writeln!(out, "\n{}", base64(&bytes))?;
    Ok("it was printed".into())
}

/// RFC 4648, section 4.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32| DIGITS.get(bits as usize & 63).map_or('=', |digit| char::from(*digit));
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        let digits = [18, 12, 6, 0].map(|shift| digit(bits >> shift));
        text.extend(digits.into_iter().take(part.len() + 1));
        text.extend(std::iter::repeat_n('=', 3 - part.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_that_of_the_standard() {
        let known = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, coded) in known {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}

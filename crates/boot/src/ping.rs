//! Whether the daemon answers: one line of JSON over its socket, as `bailey status` asks.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::{fd::AsRawFd as _, unix::net::UnixStream},
    path::Path,
    time::Duration,
};

const QUESTION: &[u8] = b"{\"v\":1,\"ask\":\"status\"}\n";
/// How long an answer may take, and the longest that is read, in bytes.
const PATIENCE: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Asks it: its process.
///
/// # Errors
/// When nobody listens there, or no answer comes in time.
pub(crate) fn ping(home: &Path) -> io::Result<u64> {
    // By a path that is short however long the folder's is: a socket's address has room for 107 bytes.
    let folder = File::open(home.join("daemon"))?;
    let mut stream = UnixStream::connect(format!("/proc/self/fd/{}/socket", folder.as_raw_fd()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(QUESTION)?;
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer)?;
    process(&answer).ok_or_else(|| io::Error::other("the answer is none of a daemon's"))
}

/// The number after `"pid":`; 0 of who names none, such as one that refuses for want of places: any answer is life.
fn process(answer: &str) -> Option<u64> {
    let rest = answer.strip_prefix("{\"told\":")?.split_once("\"pid\":").map_or("", |(_, rest)| rest);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(digits.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::process;

    #[test]
    fn an_answer_names_its_process() {
        assert_eq!(process("{\"told\":\"status\",\"pid\":4711,\"since\":\"x\"}\n"), Some(4711));
        assert_eq!(process("{\"told\":\"refused\",\"why\":\"\\\"pid\\\":7\"}\n"), Some(0));
        assert_eq!(process(""), None);
    }
}

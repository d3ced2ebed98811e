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

/// Asks it: its process, and whether that is about to end.
///
/// # Errors
/// When nobody listens there, or no answer comes in time.
pub(crate) fn ping(home: &Path) -> io::Result<(u64, bool)> {
    // By a path that is short however long the folder's is: a socket's address has room for 107 bytes.
    let folder = File::open(home.join("daemon"))?;
    let mut stream = UnixStream::connect(format!("/proc/self/fd/{}/socket", folder.as_raw_fd()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // One that has no room for anybody more answers before it is asked, and hears nothing.
    let asked = stream.write_all(QUESTION);
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer)?;
    let wrong = || io::Error::other("the answer is none of a daemon's");
    life(&answer).ok_or_else(|| asked.err().unwrap_or_else(wrong))
}

/// The number after `"pid":`, or 0: a daemon that has no place left answers without one, and lives.
fn life(answer: &str) -> Option<(u64, bool)> {
    let (_, rest) = answer.strip_prefix("{\"told\":")?.split_once("\"pid\":").unwrap_or_default();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((digits.parse().unwrap_or(0), rest.contains("\"stopping\":true")))
}

#[cfg(test)]
mod tests {
    use super::life;

    #[test]
    fn an_answer_names_its_process_and_whether_that_ends() {
        let status = "{\"told\":\"status\",\"pid\":4711,\"since\":\"x\",\"stopping\":false}\n";
        assert_eq!(life(status), Some((4711, false)));
        assert_eq!(life(&status.replace("false", "true")), Some((4711, true)));
        assert_eq!(life("{\"told\":\"refused\",\"why\":\"\\\"pid\\\":7\"}\n"), Some((0, false)));
        assert_eq!(life(""), None);
    }
}

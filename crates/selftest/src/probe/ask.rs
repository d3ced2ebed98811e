//! Requests at the network door, as a command makes them.

use super::base64;
use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// The variable that holds the stand-in of a key, and the word for it in a URL.
pub(crate) const KEY: &str = "BAILEY_PROVE_KEY";
const STAND_IN: &str = "{stand-in}";
/// The maximum time for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// The maximum time that two commands wait for each other.
const MEETING_MAX: Duration = Duration::from_secs(10);

/// The parts of a request besides its URL.
#[derive(Default)]
struct Offer {
    /// Whether the stand-in stands where the key belongs.
    key: bool,
    body: String,
}

/// Sends a request through this command's own door.
pub(crate) fn ask(url: &str, how: &[&str]) -> io::Result<String> {
    let (pass, door) = own_door()?;
    request(&pass, &door, url, &shown(how)?)
}

/// Lets another command find this command's door, and waits until the other one is done.
pub(crate) fn lend(folder: &str) -> io::Result<String> {
    let folder = Path::new(folder);
    let (_, door) = own_door()?;
    fs::create_dir_all(folder)?;
    fs::write(folder.join("new"), door)?;
    fs::rename(folder.join("new"), folder.join("door"))?;
    let is_back = || fs::metadata(folder.join("back")).ok();
    met(is_back).map(|_| "it was lent".into())
}

/// Sends a request through another command's door, with the pass of this command.
pub(crate) fn borrow(folder: &str, url: &str) -> io::Result<String> {
    let folder = Path::new(folder);
    let (pass, _) = own_door()?;
    let door = met(|| fs::read_to_string(folder.join("door")).ok())?;
    let came = request(&pass, &door, url, &Offer::default());
    fs::write(folder.join("back"), "")?;
    came
}

fn met<T>(look: impl Fn() -> Option<T>) -> io::Result<T> {
    let until = Instant::now() + MEETING_MAX;
    loop {
        match look() {
            Some(found) => return Ok(found),
            None if Instant::now() > until => return Err(io::Error::other("the other command did not come")),
            None => thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn shown(how: &[&str]) -> io::Result<Offer> {
    match *how {
        [] => Ok(Offer::default()),
        ["key"] => Ok(Offer { key: true, body: "nothing".into() }),
        ["body"] => Ok(Offer { key: true, body: stand_in()? }),
        ["bytes", number] => Ok(Offer { key: false, body: "x".repeat(super::number(number)?) }),
        _ => Err(io::Error::other("there is no such request")),
    }
}

fn stand_in() -> io::Result<String> {
    env::var(KEY).map_err(|_| io::Error::other("there is no stand-in"))
}

/// The pass of this command, and the address of its door.
fn own_door() -> io::Result<(String, String)> {
    let door = env::var("HTTP_PROXY").map_err(|_| io::Error::other("there is no door"))?;
    let door = door.trim_start_matches("http://").trim_end_matches('/');
    let (pass, address) = door.rsplit_once('@').ok_or_else(|| io::Error::other("there is no pass"))?;
    Ok((pass.to_owned(), address.to_owned()))
}

fn request(pass: &str, door: &str, url: &str, shown: &Offer) -> io::Result<String> {
    let url = if url.contains(STAND_IN) { url.replace(STAND_IN, &stand_in()?) } else { url.to_owned() };
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let login = if shown.key { format!("Authorization: Bearer {}\r\n", stand_in()?) } else { String::new() };
    let (method, length) = (if shown.body.is_empty() { "GET" } else { "POST" }, shown.body.len());
    let head = format!(
        "{method} {url} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: Basic {}\r\n{login}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n{}",
        base64(pass.as_bytes()),
        shown.body
    );
    let mut stream = TcpStream::connect(door)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap_or("nothing");
    writeln!(io::stdout(), "{body}")?;
    match status {
        "200" => Ok("it was answered".into()),
        // The first line names the refusal. The second line, if any, gives the reason.
        _ => {
            let why = body.lines().nth(1).or_else(|| body.lines().next()).unwrap_or_default();
            Err(io::Error::other(format!("answered {status}: {}", why.trim())))
        }
    }
}

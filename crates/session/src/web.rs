//! The agent's own requests to the web. Each request is one effect, sent by the network door, and its answer
//! becomes text inside the walls: anybody may write a page, and this process holds keys.

use anyhow::Result;
use bailey_egress::{Fetched, ForwardProxy, NotFetched};
use bailey_journal::{Permit, Seal};
use bailey_kernel::{BoxFuture, Executor, Io, Output, ResolveError, Route};
use bailey_protocol::{
    Action, Blob, Enforced, HttpReport, HttpRequest, Isolation, Outcome, PageReport, Report, SessionId,
    Status,
};
use bailey_sandbox::{
    Native,
    worker::{Request, Response},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// The most bytes of a page that is read as text, and of a page that is saved.
const PAGE_BYTES_MAX: usize = 4 << 20;
const FILE_BYTES_MAX: usize = 8 << 20;
/// The most characters of text that are kept of a page.
const TEXT_CHARS_MAX: usize = 400_000;
const MINUTE: Duration = Duration::from_secs(60);
/// Requests in any minute: those that only fetch, and the others.
const FETCHES: usize = 30;
const SENDS: usize = 10;

const PACKED: &str = "it is packed, which nobody asked for (`Content-Encoding`)";
const UNKNOWN: &str = "it is no text, or in a set of characters that is not known here";

/// Sends the requests that the rules allow, and reads the answers.
#[derive(Debug)]
pub(crate) struct Web {
    door: Arc<ForwardProxy>,
    native: Arc<Native>,
    seal: Seal,
    fetched: Pace,
    sent: Pace,
}

/// The times of the requests in the last minute.
#[derive(Debug)]
struct Pace {
    most: usize,
    times: Mutex<VecDeque<Instant>>,
}

impl Pace {
    fn new(most: usize) -> Self {
        Self { most, times: Mutex::default() }
    }

    /// Notes one more request, if the limit allows it.
    fn take(&self, now: Instant) -> Result<(), String> {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        while times.front().is_some_and(|first| now.duration_since(*first) >= MINUTE) {
            times.pop_front();
        }
        if let Some(first) = times.front().filter(|_| times.len() >= self.most) {
            let rest = MINUTE.saturating_sub(now.duration_since(*first)).as_secs() + 1;
            return Err(format!(
                "{} requests of this kind were made in a minute: again in {rest} s",
                self.most
            ));
        }
        times.push_back(now);
        Ok(())
    }
}

impl Web {
    pub(crate) fn new(door: Arc<ForwardProxy>, native: Arc<Native>, seal: Seal) -> Self {
        Self { door, native, seal, fetched: Pace::new(FETCHES), sent: Pace::new(SENDS) }
    }

    async fn get(
        &self,
        session: SessionId,
        (request, raw): (&HttpRequest, bool),
        isolation: &Isolation,
        cancel: &CancellationToken,
    ) -> Result<(PageReport, Option<Enforced>), NotFetched> {
        let is_fetch = matches!(request.method.as_str(), "GET" | "HEAD");
        let pace = if is_fetch { &self.fetched } else { &self.sent };
        pace.take(Instant::now()).map_err(|why| NotFetched { why, sent: false })?;
        let bytes_max = if raw { FILE_BYTES_MAX } else { PAGE_BYTES_MAX };
        let page = self.door.fetch(request, bytes_max).await?;
        let read = match raw {
            true => Read::default(),
            // The server has answered, even if its page cannot be read.
            false => {
                let read = self.read(session, &page, isolation, cancel).await;
                read.map_err(|why| NotFetched {
                    why: format!("the server answered {}, but {why}", page.status),
                    sent: true,
                })?
            }
        };
        let Fetched { status, media, location, body, cut: is_cut, packed: _ } = page;
        let Read { text: whole, cut, unread, enforced } = read;
        let text: Option<String> = whole.as_ref().map(|text| text.chars().take(TEXT_CHARS_MAX).collect());
        // A text that ends too early also counts as cut: its last words may be incomplete.
        let cut = is_cut || cut || text != whole;
        let bytes = u64::try_from(body.len()).unwrap_or(u64::MAX);
        let body = (raw && !is_cut).then_some(Blob(body));
        Ok((PageReport { status, media, location, text, unread, body, bytes, cut }, enforced))
    }

    /// Reads the text of a page.
    async fn read(
        &self,
        session: SessionId,
        page: &Fetched,
        isolation: &Isolation,
        cancel: &CancellationToken,
    ) -> Result<Read, String> {
        let mut words = page.media.split(';').map(str::trim);
        let kind = words.next().unwrap_or_default();
        let charset = words.find_map(|word| word.strip_prefix("charset="));
        let charset = charset.map(|name| name.trim_matches(['"', '\'']).to_owned());
        let html = matches!(kind, "text/html" | "application/xhtml+xml");
        if !html && !is_text(kind) {
            return Ok(Read::default());
        }
        if page.packed {
            return Ok(Read { unread: Some(PACKED.into()), ..Read::default() });
        }
        if !html && is_plain(charset.as_deref(), &page.body) {
            let text = String::from_utf8_lossy(&page.body);
            let text = (!text.contains('\0')).then(|| text.into_owned());
            return Ok(Read { text, ..Read::default() });
        }
        let request = Request::Page { body: page.body.clone().into(), charset, html };
        let read = self.native.work(session, request, isolation, cancel).await;
        match read.map_err(|error| format!("the page could not be read: {error}"))? {
            (Response::Page { text, cut }, enforced) => {
                let unread = text.is_none().then(|| UNKNOWN.into());
                Ok(Read { text, cut, unread, enforced: Some(enforced) })
            }
            (Response::Refused { reason }, _) => Err(reason),
            _ => Err("the walls answered something else".into()),
        }
    }
}

/// The readable part of an answer.
#[derive(Debug, Default)]
struct Read {
    /// `None` if the answer is not text.
    text: Option<String>,
    /// Whether the page had more text.
    cut: bool,
    /// Why the text was not read, if the answer may be text.
    unread: Option<String>,
    enforced: Option<Enforced>,
}

/// Whether a media type is text, or may be.
fn is_text(kind: &str) -> bool {
    kind.starts_with("text/")
        || kind.ends_with("json")
        || kind.ends_with("xml")
        || matches!(
            kind,
            "" | "application/javascript" | "application/toml" | "application/yaml" | "application/x-yaml"
        )
}

/// Whether the text counts as UTF-8: the server names UTF-8, ASCII or no character set, and the body has no
/// UTF-16 mark. Such a text needs no reader inside the walls.
fn is_plain(charset: Option<&str>, body: &[u8]) -> bool {
    matches!(charset, None | Some("utf-8" | "utf8" | "us-ascii" | "ascii"))
        && !body.starts_with(b"\xff\xfe")
        && !body.starts_with(b"\xfe\xff")
}

impl Executor for Web {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Web]
    }

    /// These actions have no path.
    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move { Ok(action) })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let redeemed = match permit.redeem(&self.seal) {
                Ok(redeemed) => redeemed,
                Err(error) => return Output::failed(error.to_string()),
            };
            let Action::Fetch { request, raw } = &redeemed.effect.action else {
                let name = redeemed.effect.action.kind().name();
                return Output::failed(format!("the web performs no `{name}`"));
            };
            let began = Instant::now();
            let (session, isolation) = (redeemed.effect.session, &redeemed.isolation);
            let (status, report, enforced) = tokio::select! {
                biased;
                () = io.cancel.cancelled() => (Status::Cancelled, Report::Nothing, None),
                got = self.get(session, (request, *raw), isolation, &io.cancel) => match got {
                    Ok((page, enforced)) => (Status::Done, Report::Page(page), enforced),
                    Err(NotFetched { why: reason, sent: true }) => {
                        (Status::Failed { reason }, Report::Nothing, None)
                    }
                    // A request that did not leave does not count as sent.
                    Err(NotFetched { why: reason, sent: false }) => {
                        (Status::Failed { reason }, Report::Http(HttpReport::default()), None)
                    }
                },
            };
            let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Output::new(Outcome { status, enforced, duration_ms, report })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MINUTE, Pace};
    use std::time::Instant;

    #[test]
    fn so_many_pass_in_any_minute() {
        let (pace, now) = (Pace::new(2), Instant::now());
        assert!(pace.take(now).is_ok() && pace.take(now + MINUTE / 2).is_ok());
        let over = pace.take(now + MINUTE - MINUTE / 60).unwrap_err();
        assert!(over.contains("2 requests") && over.contains("again in 2 s"), "{over}");
        assert!(pace.take(now + MINUTE).is_ok(), "the first is a minute ago");
        assert!(pace.take(now + MINUTE).is_err(), "the second is not");
    }
}

//! The process that tells a collector what is done, beneath the daemon. It hears another server, so it is
//! bound: it reaches that one, the journal and its own notes.
//!
//! The journal is the queue. A page of it is read, what ended in it is sent, and only when the collector has
//! taken that the next one is read; so nothing is lost while a collector is away, and nothing piles up. What
//! was sent and not noted, for a kill came between, is sent again under the same names.

use crate::{
    ExportResult, Figures, Metrics, Request, Resource, Signal, Span, Totals, Trace,
    want::{Had, Want},
};
use anyhow::Result;
use bailey_egress::{UplinkEnd, uplink::Request as Post};
use bailey_home::{
    config::Config,
    home::{Home, make_private},
};
use bailey_journal::{Fact, Journal};
use bailey_kernel::Standpoint;
use bailey_protocol::{Uplink, WsPath};
use bailey_session::{
    compose::{self, Keys},
    durable_state::DurableState,
    exit::Mistyped,
    link::Link,
};
use bailey_terminal::print::Printer;
use serde::{Deserialize, Serialize};
use std::{
    io,
    os::fd::AsFd as _,
    process::ExitCode,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// Entries that are read at once, and spans in one request.
const PAGE: u32 = 200;
const SPANS_MAX: usize = 500;
/// How far is read without a note where there is nothing to tell, in entries.
const UNNOTED_MAX: u64 = 2000;
/// How long a collector may take to answer, and the longest answer in bytes.
const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long it is left alone after a failure, at first and at most.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// What the way is called in the journal; no channel can have that name.
const NAME: &str = "[telemetry]";

/// How far the collector was told.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Notes {
    /// The last entry of which all that ended by it was taken.
    sent: u64,
    /// The entry from which on is to be read again.
    from: u64,
    /// What all that was sent comes to.
    #[serde(default)]
    totals: Totals,
}

struct Sender<'a> {
    journal: Journal,
    uplink: UplinkEnd,
    link: Link<Had>,
    book: DurableState<Notes>,
    trace: Trace,
    printer: &'a Printer,
    /// Whether it was said that the collector takes nothing.
    is_told: bool,
    /// What the daemon was told of that.
    failing: String,
    /// The same of figures alone, and until when it is not asked to take any.
    is_told_of_figures: bool,
    no_figures_until: Option<Instant>,
}

/// Tells the configured collector, until the daemon ends.
pub async fn send(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let config = Config::load(home)?;
    let Some(url) = config.telemetry.otlp.clone() else {
        return Err(Mistyped(
            "there is no collector: name one in config.toml as `otlp` in [telemetry]".into(),
        )
        .into());
    };
    let keys = Keys::load(home, &config, printer)?;
    let key = config.telemetry.key_env.clone().unwrap_or_default();
    if !key.is_empty() && !keys.has(&key) {
        return Err(Mistyped(format!("the collector's key is not set: bailey secrets set {key}")).into());
    }
    let folder = home.telemetry();
    make_private(&folder)?;
    let (book, notes) = (DurableState::open(&folder)?, DurableState::<Notes>::paths(&folder));
    let trace = Trace::new(config.toolbox(&WsPath("/".into()), &Standpoint::default()));
    let way = Uplink { header: config.telemetry.header(), ..Uplink::new(NAME, &url, &key) };
    let opened = compose::uplink(home, &config, keys, way, &folder, notes, ANSWER_BYTES_MAX).await?;
    let (journal, uplink) = (opened.journal().clone(), opened.uplink.clone());
    let link = Link::new(socket);
    let (is_told, is_told_of_figures, no_figures_until) = (false, false, None);
    let failing = String::new();
    let sender = Sender {
        journal,
        uplink,
        link,
        book,
        trace,
        printer,
        is_told,
        failing,
        is_told_of_figures,
        no_figures_until,
    };
    opened.during("collector", sender.serve()).await
}

impl Sender<'_> {
    /// Sends what there is, and then what comes.
    async fn serve(mut self) -> Result<ExitCode> {
        let first = self.journal.outline(0, 1).await?;
        let nonce = first.iter().find_map(|recorded| match &recorded.entry.fact {
            Fact::Genesis { nonce, .. } => Some(nonce.as_str()),
            _ => None,
        });
        let resource = Resource::of(nonce.unwrap_or_default());
        let Notes { sent, from, mut totals } = self.book.get(Notes::clone);
        // A home that was brought back from a copy may hold less than what was told.
        let mut sent = sent.min(self.journal.newest());
        let mut after = from.saturating_sub(1).min(sent);
        let (mut noted, mut seen, mut figures) = (sent, 0, None::<Figures>);
        loop {
            let entries = self.journal.outline(after, PAGE).await?;
            let is_more = entries.len() == PAGE as usize;
            let mut ended = Vec::new();
            for recorded in &entries {
                after = recorded.entry.seq.0;
                if after > sent {
                    totals.begin(recorded.entry.time);
                }
                self.trace.take(recorded, &mut ended);
            }
            if !is_more {
                self.trace.rest(&mut ended);
            }
            let new = ended.into_iter().filter(|(seq, _)| *seq > sent).map(|(_, span)| span);
            let spans: Vec<Span> = new.collect();
            for some in spans.chunks(SPANS_MAX) {
                self.send(&serde_json::to_string(&Request::new(&resource, some))?).await?;
            }
            spans.iter().for_each(|span| totals.add(span));
            sent = sent.max(after);
            let from = self.trace.oldest();
            if !spans.is_empty() || sent - noted > UNNOTED_MAX {
                self.book.change(|notes| *notes = Notes { sent, from, totals: totals.clone() })?;
                noted = sent;
            }
            if !is_more {
                if let Some(figures) = &figures {
                    let metrics = Metrics::new(&resource, &totals, figures);
                    self.send_figures(serde_json::to_string(&metrics)?).await?;
                }
                if let (Had::News(now, are), _) = self.link.ask(&Want::News(seen)).await? {
                    (seen, figures) = (now, Some(are));
                }
            }
        }
    }

    async fn post(&self, signal: Signal, body: String) -> ExportResult {
        let post = Post {
            method: "POST".into(),
            target: signal.path().into(),
            headers: Vec::new(),
            body: body.into_bytes(),
            name: String::new(),
            bytes_max: ANSWER_BYTES_MAX,
            patience: PATIENCE,
        };
        match self.uplink.send(post).await {
            Ok(answer) => ExportResult::of(signal, answer.status, answer.retry_after, &answer.body),
            Err(error) => ExportResult::Later(None, error.why),
        }
    }

    /// Sends figures, once. Each time they say all of it: what is not taken now is in the next ones, and no
    /// span waits for that.
    async fn send_figures(&mut self, body: String) -> Result<()> {
        if self.no_figures_until.is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        let said = self.post(Signal::Metrics, body).await;
        // One that wants no figures at all is one of traces alone, which is no failure.
        self.tell(if let ExportResult::Later(_, why) = &said { why } else { "" }).await?;
        let (wait, why) = match said {
            ExportResult::Taken => (None, None),
            ExportResult::InPart(rejected, words) => {
                (None, Some(format!("the collector threw {rejected} figures away: {words}")))
            }
            ExportResult::Refused(why) => (Some(PAUSE_MAX), Some(format!("{why}: they are not told"))),
            ExportResult::Later(wait, why) => (wait, Some(format!("{why}: figures are told later"))),
        };
        self.no_figures_until = wait.and_then(|wait| Instant::now().checked_add(wait));
        let is_told = std::mem::replace(&mut self.is_told_of_figures, why.is_some());
        match why {
            Some(why) if !is_told => self.printer.note(&why),
            None if is_told => self.printer.note("the collector takes figures again"),
            _ => {}
        }
        Ok(())
    }

    /// Sends spans until they are taken, or will never be.
    async fn send(&mut self, body: &str) -> Result<()> {
        let mut pause = PAUSE_MIN;
        loop {
            let (wait, why) = match self.post(Signal::Traces, body.to_owned()).await {
                ExportResult::Taken => return self.well().await,
                ExportResult::InPart(rejected, words) => {
                    self.printer.note(&format!("the collector threw {rejected} spans away: {words}"));
                    return self.well().await;
                }
                ExportResult::Refused(why) => {
                    let why = format!("{why}: some spans are not told");
                    self.printer.note(&why);
                    return self.tell(&why).await;
                }
                ExportResult::Later(wait, why) => (wait, why),
            };
            if !std::mem::replace(&mut self.is_told, true) {
                self.printer.note(&why);
            }
            self.tell(&why).await?;
            sleep(left_alone(wait, pause)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn well(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_told) {
            self.printer.note("the collector takes spans again");
        }
        self.tell("").await
    }

    /// Tells the daemon why the collector takes nothing, where that is not what it was told last: who asks
    /// how things are has it of the daemon, for a log is not looked at by whoever sees a collector that is
    /// up.
    async fn tell(&mut self, why: &str) -> Result<()> {
        if self.failing != why {
            why.clone_into(&mut self.failing);
            self.link.ask(&Want::Failing(why.to_owned())).await?;
        }
        Ok(())
    }
}

/// How long a collector is left alone: as long as it says, and never for less than the pause that there is
/// anyway. One that says nothing but `Retry-After: 0` is not asked without end.
fn left_alone(wait: Option<Duration>, pause: Duration) -> Duration {
    spread(pause).max(wait.unwrap_or_default())
}

/// A pause of about this length, and of the longest one at most: who was turned away together does not come
/// back together.
fn spread(pause: Duration) -> Duration {
    let mut random = [0];
    // Without randomness it is the pause itself.
    if getrandom::fill(&mut random).is_err() {
        return pause;
    }
    let [random] = random;
    (pause / 2 + pause * u32::from(random) / 255).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::{PAUSE_MAX, PAUSE_MIN, left_alone, spread};
    use std::time::Duration;

    #[test]
    fn a_collector_that_wants_no_pause_is_left_alone_all_the_same() {
        let mut pause = PAUSE_MIN;
        for _ in 0..10 {
            assert!(left_alone(Some(Duration::ZERO), pause) >= pause / 2, "{pause:?}");
            pause = (pause * 2).min(PAUSE_MAX);
        }
        // The control: one that wants a longer one has it.
        assert_eq!(left_alone(Some(Duration::from_secs(600)), pause), Duration::from_secs(600));
    }

    #[test]
    fn a_pause_is_spread_and_never_longer_than_the_longest() {
        let of = |pause: Duration| -> Vec<Duration> { (0..1000).map(|_| spread(pause)).collect() };
        let short = of(PAUSE_MIN);
        assert!(short.iter().all(|it| (PAUSE_MIN / 2..=PAUSE_MIN * 3 / 2).contains(it)));
        assert!(short.iter().any(|it| *it > PAUSE_MIN), "the control: it is spread upwards, too");
        assert!(of(PAUSE_MAX).iter().all(|it| *it <= PAUSE_MAX));
    }
}

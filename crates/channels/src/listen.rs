//! Listening: does the commands of a channel's listener, tells it the events, and notes its news before the
//! platform may forget them.

use crate::{
    Command, Event, Failure, Reaction, Reply,
    bridge::{Bridge, PAUSE_MAX, PAUSE_MIN, seconds},
    need::{Given, Need, Taken},
};
use anyhow::{Result, bail};
use bailey_egress::{
    UplinkError,
    uplink::{StreamEnd, StreamMessage, UplinkStream},
};
use bailey_session::exit::Mistyped;
use bailey_terminal::print::Printer;
use std::{future::pending, pin::Pin, rc::Rc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// An event for a listener.
enum ListenerEvent {
    Beginning,
    Answer(Reply),
    Opened,
    Message(StreamMessage),
    End(StreamEnd),
    Time,
}

impl ListenerEvent {
    fn event(&self) -> Event<'_> {
        match self {
            Self::Beginning => Event::Begun,
            Self::Answer(reply) => Event::Answered(reply),
            Self::Opened => Event::Opened,
            Self::Message(message) => Event::Said(message),
            Self::End(end) => Event::Ended(end),
            Self::Time => Event::Woken,
        }
    }
}

type Pending<'a, T> = Option<Pin<Box<dyn Future<Output = T> + 'a>>>;

/// The events that a listener waits for.
#[derive(Default)]
struct Waits<'a> {
    answer: Pending<'a, Result<Reply, UplinkError>>,
    opening: Pending<'a, Result<UplinkStream, StreamEnd>>,
    stream: Option<UplinkStream>,
    time: Option<Instant>,
}

impl Waits<'_> {
    async fn next(&mut self) -> Result<ListenerEvent, Failure> {
        let Self { answer, opening, stream, time } = self;
        if answer.is_none() && opening.is_none() && stream.is_none() && time.is_none() {
            return Err(Failure::Again("the channel waits for nothing more".into()));
        }
        tokio::select! {
            reply = some(answer) => {
                *answer = None;
                reply.map(ListenerEvent::Answer).map_err(|error| Failure::Again(error.to_string()))
            }
            opened = some(opening) => {
                *opening = None;
                Ok(match opened {
                    Ok(opened) => {
                        *stream = Some(opened);
                        ListenerEvent::Opened
                    }
                    Err(end) => ListenerEvent::End(end),
                })
            }
            message = message(stream) => Ok(match message {
                Ok(message) => ListenerEvent::Message(message),
                Err(end) => {
                    *stream = None;
                    ListenerEvent::End(end)
                }
            }),
            () = at(*time) => {
                *time = None;
                Ok(ListenerEvent::Time)
            }
        }
    }
}

async fn some<T>(awaited: &mut Pending<'_, T>) -> T {
    match awaited {
        Some(awaited) => awaited.await,
        None => pending().await,
    }
}

async fn message(stream: &mut Option<UplinkStream>) -> Result<StreamMessage, StreamEnd> {
    match stream {
        Some(stream) => stream.next().await,
        None => pending().await,
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

/// How listening goes, for people and for the next pause.
struct Health<'a> {
    printer: &'a Printer,
    pause: Duration,
    is_told: bool,
}

impl Bridge {
    /// Listens, for ever. After a failure a new listener goes on from the noted cursor, after a pause that
    /// doubles.
    pub(super) async fn listen(self: &Rc<Self>, printer: &Printer) -> Result<()> {
        // Cursors go on within one account of one server.
        let source = format!("{} {}", self.us.id, self.url);
        let mut health = Health { printer, pause: PAUSE_MIN, is_told: false };
        loop {
            let Err(failure) = self.follow(&source, &mut health).await else { continue };
            if let Failure::Key(why) = failure {
                bail!(Mistyped(format!("the platform refuses the channel: {why}")));
            }
            if !std::mem::replace(&mut health.is_told, true) {
                printer.note(&failure.to_string());
            }
            self.pause(&failure, health.pause).await;
            health.pause = (health.pause * 2).min(PAUSE_MAX);
        }
    }

    /// Follows a listener until something fails, or its cursor is too old.
    async fn follow(self: &Rc<Self>, source: &str, health: &mut Health<'_>) -> Result<(), Failure> {
        let mut cursor = self.cursor(source);
        let mut listener = self.channel.listen(&self.us, cursor.as_deref());
        let mut waits = Waits::default();
        let began = Instant::now();
        let (mut asked, mut not_before) = (began, began);
        let mut came = ListenerEvent::Beginning;
        loop {
            let Reaction { news, commands } = listener.hear(came.event())?;
            let (is_answer, is_message) =
                (matches!(came, ListenerEvent::Answer(_)), matches!(came, ListenerEvent::Message(_)));
            // Not every server waits until there is something new.
            if is_answer && news.cursor.is_none() {
                not_before = asked + PAUSE_MIN;
            }
            // A stream that opens and brings nothing is no sign of health, until it lasts.
            let is_new = news.cursor.is_some() || !news.arrivals.is_empty();
            let is_well = is_answer || is_new || began.elapsed() > PAUSE_MAX;
            let taken = self.take(news, Some(source), None).await;
            taken.map_err(|error| Failure::Again(format!("{error:#}")))?;
            let before = std::mem::replace(&mut cursor, self.cursor(source));
            if before.is_some() && cursor.is_none() {
                return Ok(());
            }
            if (is_answer || is_message) && std::mem::take(&mut health.is_told) {
                health.printer.note("the platform answers again");
            }
            if is_well {
                health.pause = PAUSE_MIN;
            }
            for command in commands {
                match command {
                    Command::Ask(call) => {
                        asked = not_before.max(Instant::now());
                        let since = asked;
                        waits.answer = Some(Box::pin(async move {
                            sleep_until(since).await;
                            self.call(call).await
                        }));
                    }
                    Command::Open(opening) => {
                        waits.stream = None;
                        waits.opening = Some(Box::pin(self.uplink.open(opening)));
                    }
                    Command::Say { text, is_keyed } => {
                        let said = waits.stream.as_ref().map_or(Ok(()), |stream| stream.say(text, is_keyed));
                        said.map_err(|end| Failure::Again(end.to_string()))?;
                    }
                    Command::Wake(after) => waits.time = Some(Instant::now() + after),
                }
            }
            came = waits.next().await?;
        }
    }

    /// Where the news of a source go on.
    fn cursor(&self, source: &str) -> Option<String> {
        let lasts = self.channel.cursor_lasts();
        self.book.get(|notes| notes.cursor_for(source, seconds(), lasts))
    }

    /// Takes the deliveries of servers, for ever.
    pub(super) async fn take_deliveries(self: &Rc<Self>) -> Result<()> {
        let mut listener = self.channel.listen(&self.us, None);
        let mut taken: Option<Taken> = None;
        loop {
            let (Given::Delivery(delivery), _) = self.link.ask(&Need::Delivery(taken)).await? else {
                bail!(
                    "the daemon gave an unexpected answer; restart it with `bailey stop`, then \
                     `bailey start`"
                );
            };
            taken = Some(self.take_delivery(&mut *listener, delivery).await?);
        }
    }
}

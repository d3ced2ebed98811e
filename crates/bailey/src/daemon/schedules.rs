//! The daemon's clock: what is due begins as a session of its own, said under the name of its moment, so that it is done once however
//! often the daemon ends in between.

use super::{
    Daemon,
    wire::{self, Introduced, Told, Wanted},
};
use crate::{
    home::{COPY_NAME, Home},
    schedules::{Begun, Schedule, Schedules},
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Clock as _, SystemClock};
use bailey_protocol::{Event, Happening, Inbound, Op, Role, SessionId, Speaker, Timestamp};
use jiff::{SignedDuration, civil::DateTime, tz::TimeZone};
use serde_json::json;
use std::{fs, rc::Rc, time::Duration};
use tokio::{
    io::BufReader,
    net::UnixStream,
    time::{Instant, sleep, timeout},
};

/// How often is looked at the clock: a minute is a schedule's smallest step. Where tests move it, nobody waits for that.
const LOOK: Duration = match cfg!(feature = "controls") {
    false => Duration::from_secs(15),
    true => Duration::from_millis(100),
};
/// How old the newest copy of a home may become, and how long nothing is tried where one could not be made.
const DAY: SignedDuration = SignedDuration::from_hours(24);
const AGAIN: Duration = Duration::from_secs(60);
/// How long a session may take to take its task.
const ACCEPTED_MAX: Duration = Duration::from_secs(60);
/// What its people are at.
const CHANNEL: &str = "schedule";

impl Daemon {
    /// Does what is due, until the daemon stops.
    pub(super) async fn keep_time(self: Rc<Self>) {
        let mut copied: Option<Instant> = None;
        while !self.is_stopping.get() {
            let due = Schedules::of(&self.home).map(|schedules| {
                let now = SystemClock.now();
                let due = |(name, schedule): (String, Schedule)| {
                    let (moment, missed) = schedule.due(now)?;
                    Some((name, schedule, moment, missed))
                };
                schedules.0.into_iter().filter_map(due).collect::<Vec<_>>()
            });
            match due {
                // What is due stays due.
                Ok(due) if !due.is_empty() && self.room().is_err() => {
                    let names: Vec<String> = due.into_iter().map(|(name, ..)| name).collect();
                    self.log.note("held", json!({ "schedules": names }));
                    // Once for as long as it takes.
                    self.until_room().await;
                    continue;
                }
                Ok(due) => {
                    for (name, schedule, moment, missed) in due {
                        if missed > 0 {
                            self.log.note("missed", json!({ "schedule": name, "times": missed }));
                        }
                        if let Err(error) = self.do_what_is_due(&name, schedule, moment).await {
                            let why = format!("{error:#}");
                            self.log.note("not_begun", json!({ "schedule": name, "why": why }));
                        }
                    }
                }
                Err(error) => self.log.note("no_schedules", json!({ "why": format!("{error:#}") })),
            }
            let is_wanted = self.is_daily.get() && is_old(&self.home, SystemClock.now());
            // Nothing else that is due waits for it.
            if is_wanted && copied.is_none_or(|at| at.elapsed() > AGAIN) && self.room().is_ok() {
                copied = self.copy().is_ok().then(Instant::now).or(copied);
            }
            sleep(LOOK).await;
        }
    }

    /// Begins a schedule's task now.
    pub(super) async fn run_schedule(self: &Rc<Self>, name: &str) -> Result<Told> {
        let schedule = Schedules::of(&self.home)?.get(name)?.clone();
        let moment = SystemClock.now();
        let session = self.open_task(name, &schedule, None).await?;
        self.give_task(name, schedule.task, (moment, moment), session).await?;
        Ok(Told::Opened { session, remarks: Vec::new() })
    }

    /// A time that was cut off is done first, in its own session, which knows whether it has it: so it is done once.
    async fn do_what_is_due(
        self: &Rc<Self>,
        name: &str,
        schedule: Schedule,
        moment: Timestamp,
    ) -> Result<()> {
        let cut_off = match schedule.begun {
            // What became of its session since, such as that it was removed, keeps nothing else from being done.
            Some(begun) => match self.open_task(name, &schedule, Some(begun.session)).await {
                Ok(_) => Some(begun),
                Err(error) if self.is_over(begun.session, &error) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let begun = match cut_off {
            Some(begun) => begun,
            None => Begun { moment, session: self.open_task(name, &schedule, None).await? },
        };
        // Before it is said: who is cut off afterwards says it to this session once more, under the same name.
        Schedules::change(&self.home, |schedules| {
            schedules.get(name)?.begun = Some(begun);
            Ok(())
        })?;
        self.give_task(name, schedule.task, (begun.moment, moment), begun.session).await
    }

    /// Opens the session of a time: a new one, or the one that was begun for it.
    async fn open_task(
        self: &Rc<Self>,
        name: &str,
        schedule: &Schedule,
        session: Option<SessionId>,
    ) -> Result<SessionId> {
        let Schedule { directory, model, tokens, agent, .. } = schedule;
        let bound = tokens.map(|tokens| format!("--tokens={tokens}"));
        let agent = agent.as_ref().map(|agent| format!("--agent={agent}"));
        let model = model.as_ref().map(|model| format!("--model={model}"));
        let again: Vec<String> = [model, bound, agent].into_iter().flatten().collect();
        // What it may is no word that it is begun again with: that stands in its journal.
        let new = ["-C".to_owned(), directory.display().to_string(), format!("--schedule={name}")];
        let place = session.map_or(new.into(), |session| vec!["--resume".to_owned(), session.to_string()]);
        let words = again.iter().cloned().chain(place).collect();
        let wanted = Wanted { directory: directory.clone(), words, again, session };
        match self.open(wanted).await? {
            Told::Opened { session, .. } => Ok(session),
            _ => bail!("the session was not opened"),
        }
    }

    /// Gives the task of one time to its session. One that takes it only now has done all times up to the last one.
    async fn give_task(
        &self,
        name: &str,
        task: String,
        (moment, last): (Timestamp, Timestamp),
        session: SessionId,
    ) -> Result<()> {
        let speaker =
            Speaker { channel: CHANNEL.into(), id: name.into(), name: name.into(), role: Role::User };
        let key = format!("{CHANNEL}:{name}:{moment}");
        let is_new = timeout(ACCEPTED_MAX, self.give(session, speaker, task, key))
            .await
            .context("the session did not take its task in time")??;
        // The last, so that who is cut off before looks whether it was done.
        Schedules::change(&self.home, |schedules| {
            let schedule = schedules.get(name)?;
            schedule.since = schedule.since.max(if is_new { last } else { moment });
            schedule.session = Some(session);
            schedule.begun = None;
            Ok(())
        })?;
        self.log.note("begun", json!({ "schedule": name, "session": session, "moment": moment.to_string() }));
        Ok(())
    }

    /// Says a task to a session, and waits until it is in the journal: whether it was not there before.
    async fn give(&self, session: SessionId, introduced: Speaker, text: String, key: String) -> Result<bool> {
        let stream = wire::connect(&self.home.daemon(), &session.to_string())?;
        stream.set_nonblocking(true)?;
        let mut stream = BufReader::new(UnixStream::from_std(stream)?);
        wire::say(&mut stream, &Introduced { introduced }).await?;
        let inbound = Inbound { text, key: Some(key.clone()), ..Inbound::default() };
        wire::say(&mut stream, &Op::Say(inbound)).await?;
        while let Some(line) = wire::line(&mut stream, wire::EVENT_BYTES_MAX).await? {
            match serde_json::from_slice::<Event>(&line).map(|event| event.happening) {
                // What is told of others was before, or is somebody else's.
                Ok(Happening::Accepted { key: Some(of) }) if of == key => return Ok(true),
                Ok(Happening::Repeated { key: of, .. }) if of == key => return Ok(false),
                Ok(Happening::Failed { error, .. }) => bail!(error),
                _ => {}
            }
        }
        bail!("the session ended before it took its task")
    }
}

/// Whether there is no copy of the home of the day around this moment: one that is ahead was made before the clock was put back, and is
/// as good as one that is not.
fn is_old(home: &Home, now: Timestamp) -> bool {
    !copies(home).any(|made| now.duration_since(made).abs() < DAY)
}

/// When the home's newest copy was made.
pub(super) fn newest_copy(home: &Home) -> Option<Timestamp> {
    copies(home).max()
}

/// When each of the home's copies was made, by its name. One that is just being made has another, and is none yet.
fn copies(home: &Home) -> impl Iterator<Item = Timestamp> {
    let copies = fs::read_dir(home.backups()).into_iter().flatten().flatten();
    copies.filter_map(|copy| {
        let name = copy.file_name().into_string().ok()?;
        DateTime::strptime(COPY_NAME, name).ok()?.to_zoned(TimeZone::UTC).ok().map(|made| made.timestamp())
    })
}

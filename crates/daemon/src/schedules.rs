//! The daemon's clock: a task that is due begins as a session of its own. It is said under the name of its
//! moment, so that it is done once, however often the daemon ends in between.

use super::Daemon;
use anyhow::{Context as _, Result, bail};
use bailey_home::{
    home::{COPY_NAME, Home, OLD_STAYS},
    schedules::{MISSED_MAX, Schedule, Schedules, StartingRun, UNSAID, zone},
};
use bailey_journal::{Clock as _, SystemClock};
use bailey_protocol::{Event, Happening, Inbound, Op, Role, SessionId, Speaker, Timestamp};
use bailey_session::wire::{self, DaemonAnswer, Introduced, State, Wanted};
use jiff::{SignedDuration, civil::DateTime, tz::TimeZone};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, rc::Rc, time::Duration};
use tokio::{
    io::BufReader,
    net::UnixStream,
    sync::oneshot::{self, error::TryRecvError},
    task::{spawn_blocking, spawn_local},
    time::{sleep, timeout},
};

/// How often the daemon looks at the clock: a minute is a schedule's smallest step. Tests that move the clock
/// must not wait for that.
const LOOK: Duration = match cfg!(feature = "controls") {
    false => Duration::from_secs(15),
    true => Duration::from_millis(100),
};
/// How old the newest copy of a home may become, and how long it may take to make one.
const DAY: SignedDuration = SignedDuration::from_hours(24);
const COPY_MAX: Duration = Duration::from_secs(3600);
/// How long the daemon makes no copy after a copy failed: the first time, twice as long each time after that,
/// and a day at most.
const AGAIN: SignedDuration = SignedDuration::from_hours(1);
/// How long the daemon does not try a schedule again that could not be begun: the first time, twice as long
/// each time after that, and `AGAIN` at most.
const SOON: SignedDuration = SignedDuration::from_secs(15);
/// How long a session may take to accept its task.
const ACCEPTED_MAX: Duration = Duration::from_secs(60);
/// The channel of the schedules' speakers.
const CHANNEL: &str = "schedule";

impl Daemon {
    /// Does all that is due, until the daemon stops.
    pub(super) async fn keep_time(self: Rc<Self>) {
        self.look_at_zone();
        let mut copies = Copies::default();
        let (mut failed, mut unread) = (Failed::default(), None::<String>);
        while !self.is_stopping.get() && self.is_at_home() {
            match self.due() {
                // A due schedule stays due.
                Ok(due) if !due.is_empty() && self.room().is_err() => {
                    let names: Vec<String> = due.into_iter().map(|(name, ..)| name).collect();
                    self.log.note("held", json!({ "schedules": names }));
                    // The log has this note once, for the whole wait.
                    self.until_room().await;
                    continue;
                }
                Ok(due) => {
                    unread = None;
                    failed.0.retain(|name, _| due.iter().any(|(due, ..)| due == name));
                    for (name, schedule, moment, missed) in due {
                        // The schedules before it took their time: a schedule that was removed meanwhile, or
                        // begun by hand, is not done.
                        let still = Schedules::of(&self.home)
                            .and_then(|mut all| all.still(&name, &schedule.id).cloned());
                        let Some(schedule) = still.ok().filter(|it| it.since < moment) else { continue };
                        if failed.is_just(&name, schedule.since, SystemClock.now()) {
                            continue;
                        }
                        match self.predecessor(&schedule) {
                            Predecessor::Comes => continue,
                            Predecessor::Runs(session) => {
                                self.skip((&name, &schedule.id), moment, missed + 1, session);
                                continue;
                            }
                            Predecessor::None => {}
                        }
                        if missed > 0 {
                            self.log.note("missed", json!({ "schedule": name, "times": times(missed) }));
                        }
                        let since = schedule.since;
                        if let Err(error) = self.do_what_is_due(&name, schedule, moment).await {
                            let again = failed.add(&name, since, SystemClock.now()).as_secs();
                            let about = json!({ "schedule": name, "why": format!("{error:#}"), "again_seconds": again });
                            self.log.note("not_begun", about);
                        }
                    }
                }
                Err(error) => {
                    let why = format!("{error:#}");
                    if unread.replace(why.clone()).as_ref() != Some(&why) {
                        self.log.note("no_schedules", json!({ "why": why }));
                    }
                }
            }
            self.wake_late();
            let now = SystemClock.now();
            let is_time = copies.is_time(now) && self.is_daily.get() && copies.is_old(&self.home, now);
            // Nothing else that is due waits for the copy.
            if is_time && self.room().is_ok() {
                copies.making = self.copy_of_the_day();
            }
            sleep(LOOK).await;
        }
    }

    /// Notes that this machine names no time zone, if there are schedules.
    fn look_at_zone(&self) {
        let is_unsaid = zone().is_ok_and(|zone| zone.is_unknown());
        if is_unsaid && Schedules::of(&self.home).is_ok_and(|schedules| !schedules.0.is_empty()) {
            self.log.note("no_time_zone", json!({ "why": UNSAID }));
        }
    }

    /// The schedules that are due now: each with its newest moment, and how many moments it missed before.
    fn due(&self) -> Result<Vec<(String, Schedule, Timestamp, usize)>> {
        let schedules = Schedules::of(&self.home)?.0;
        if schedules.is_empty() {
            return Ok(Vec::new());
        }
        let (now, zone) = (SystemClock.now(), zone()?);
        let due = |(name, schedule): (String, Schedule)| {
            let (moment, missed) = schedule.due(now, &zone)?;
            Some((name, schedule, moment, missed))
        };
        Ok(schedules.into_iter().filter_map(due).collect())
    }

    /// The state of the session of the last time. A time that was cut off before it was noted is begun again,
    /// and runs beside no other.
    fn predecessor(&self, schedule: &Schedule) -> Predecessor {
        let Some(session) = schedule.session.filter(|_| schedule.begun.is_none()) else {
            return Predecessor::None;
        };
        let is_busy = |state: State| state.working || state.questions > 0;
        let is_working = self.sessions.borrow().get(&session).is_some_and(|held| is_busy(held.shown.state));
        let is_asking = self.resting.borrow().get(&session).is_some_and(|resting| resting.open > 0);
        match is_working || is_asking {
            true => Predecessor::Runs(session),
            // Whether it works is known once it is open.
            false if self.is_coming(session) => Predecessor::Comes,
            false => Predecessor::None,
        }
    }

    /// Leaves out the time that is due, and all times before it: otherwise, tasks that take longer than from
    /// one time to the next would become more and more.
    fn skip(&self, (name, id): (&str, &str), moment: Timestamp, count: usize, session: SessionId) {
        let skipped = Schedules::change(&self.home, |schedules| {
            let schedule = schedules.still(name, id)?;
            schedule.since = schedule.since.max(moment);
            schedule.skipped = schedule.skipped.saturating_add(count);
            Ok(())
        });
        let why = skipped.map_or_else(
            |error| format!("{error:#}"),
            |()| "the last one still runs, or a question of it waits".to_owned(),
        );
        let about = json!({ "schedule": name, "times": times(count), "session": session, "why": why });
        self.log.note("skipped", about);
    }

    /// Begins to copy the home, in a task of its own. The receiver tells whether there is a copy then. `None`
    /// when a backup is being made already.
    fn copy_of_the_day(self: &Rc<Self>) -> Option<oneshot::Receiver<bool>> {
        if self.is_copying.replace(true) {
            return None;
        }
        let (tell, told) = oneshot::channel();
        let daemon = self.clone();
        spawn_local(async move {
            let copied = daemon.back_up().await;
            daemon.is_copying.set(false);
            match &copied {
                Ok(told) => daemon.log.note("copied", json!({ "told": told })),
                Err(error) => daemon.log.note("not_copied", json!({ "why": format!("{error:#}") })),
            }
            tell.send(copied.is_ok()).ok();
        });
        Some(told)
    }

    /// Copies the home and returns the command's output.
    ///
    /// # Errors
    /// The last line of the command's errors; or the command took too long.
    async fn back_up(&self) -> Result<String> {
        let mut command = self.command();
        command.arg("backup");
        let ran = spawn_blocking(move || command.output());
        let ran = timeout(COPY_MAX, ran).await.context("it took too long")???;
        let said = String::from_utf8_lossy(&ran.stderr);
        for line in said.lines().filter(|line| line.contains(OLD_STAYS)) {
            self.log.note("not_removed", json!({ "why": line }));
        }
        if ran.status.success() {
            return Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned());
        }
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        bail!("`bailey backup` failed ({}): {}", ran.status, last.unwrap_or("it said nothing"))
    }

    /// Begins a schedule's task now.
    pub(super) async fn run_schedule(self: &Rc<Self>, name: &str) -> Result<DaemonAnswer> {
        let schedule = Schedules::of(&self.home)?.get(name)?.clone();
        let moment = SystemClock.now();
        let session = self.open_task(name, &schedule, None).await?;
        self.give_task(name, schedule, (moment, moment), session).await?;
        Ok(DaemonAnswer::Opened { session, remarks: Vec::new() })
    }

    /// Does the time that is due. A time that was cut off is done first, in its own session, which knows
    /// whether it has the task: so the task is done once.
    async fn do_what_is_due(
        self: &Rc<Self>,
        name: &str,
        schedule: Schedule,
        moment: Timestamp,
    ) -> Result<()> {
        let cut_off = match schedule.begun {
            // When that session is gone for good, for example because it was removed, the due time is still
            // done.
            Some(begun) => match self.open_task(name, &schedule, Some(begun.session)).await {
                Ok(_) => Some(begun),
                Err(error) if self.is_over(begun.session, &error) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let begun = match cut_off {
            Some(begun) => begun,
            None => StartingRun { moment, session: self.open_task(name, &schedule, None).await? },
        };
        // This comes before the task is said: after a cut, the daemon says the task to this session once
        // more, under the same name.
        Schedules::change(&self.home, |schedules| {
            schedules.still(name, &schedule.id)?.begun = Some(begun);
            Ok(())
        })?;
        self.give_task(name, schedule, (begun.moment, moment), begun.session).await
    }

    /// Opens the session of a time: a new one, or the one that was begun for it.
    async fn open_task(
        self: &Rc<Self>,
        name: &str,
        schedule: &Schedule,
        session: Option<SessionId>,
    ) -> Result<SessionId> {
        match self.open(wanted(name, schedule, session)).await? {
            DaemonAnswer::Opened { session, .. } => Ok(session),
            _ => bail!("the session was not opened"),
        }
    }

    /// Gives the task of one time to its session. When the session takes the task only now, all times up to
    /// the last one are done.
    async fn give_task(
        &self,
        name: &str,
        Schedule { id, task, .. }: Schedule,
        (moment, last): (Timestamp, Timestamp),
        session: SessionId,
    ) -> Result<()> {
        let speaker =
            Speaker { channel: CHANNEL.into(), id: name.into(), name: name.into(), role: Role::User };
        let key = format!("{CHANNEL}:{name}:{moment}");
        let is_new = timeout(ACCEPTED_MAX, self.give(session, speaker, task, key.clone()))
            .await
            .context("the session did not take its task in time")??;
        // This comes last, so that after a cut before it the daemon looks whether the task was done.
        Schedules::change(&self.home, |schedules| {
            let schedule = schedules.still(name, &id)?;
            schedule.since = schedule.since.max(if is_new { last } else { moment });
            (schedule.session, schedule.begun, schedule.skipped) = (Some(session), None, 0);
            schedule.owed = schedule.to.is_some().then(|| key.clone());
            Ok(())
        })?;
        self.owes.notify_waiters();
        self.log.note("begun", json!({ "schedule": name, "session": session, "moment": moment.to_string() }));
        Ok(())
    }

    /// Says a task to a session, and waits until it is in the journal. Returns whether it is new there.
    async fn give(&self, session: SessionId, introduced: Speaker, text: String, key: String) -> Result<bool> {
        let stream = wire::connect(&self.home.daemon(), &session.to_string())?;
        stream.set_nonblocking(true)?;
        let mut stream = BufReader::new(UnixStream::from_std(stream)?);
        wire::say(&mut stream, &Introduced { introduced }).await?;
        let inbound = Inbound { text, key: Some(key.clone()), ..Inbound::default() };
        wire::say(&mut stream, &Op::Say(inbound)).await?;
        while let Some(line) = wire::line(&mut stream, wire::EVENT_BYTES_MAX).await? {
            match serde_json::from_slice::<Event>(&line).map(|event| event.happening) {
                // Other events came before, or belong to another client.
                Ok(Happening::Accepted { key: Some(of) }) if of == key => return Ok(true),
                Ok(Happening::Repeated { key: of, .. }) if of == key => return Ok(false),
                Ok(Happening::Failed { error, .. }) => bail!(error),
                _ => {}
            }
        }
        bail!("the session ended before it took its task")
    }
}

/// The session of a schedule: a new one, or one that was begun for it.
pub(super) fn wanted(name: &str, schedule: &Schedule, session: Option<SessionId>) -> Wanted {
    let Schedule { id, directory, model, tokens, agent, .. } = schedule;
    let bound = tokens.map(|tokens| format!("--tokens={tokens}"));
    let agent = agent.as_ref().map(|agent| format!("--agent={agent}"));
    let model = model.as_ref().map(|model| format!("--model={model}"));
    let unattended = Some("--unattended".to_owned());
    let again: Vec<String> = [unattended, model, bound, agent].into_iter().flatten().collect();
    // The words for beginning again do not name the session's permissions: those stand in its journal.
    let new = ["-C".to_owned(), directory.display().to_string(), format!("--schedule={name}@{id}")];
    let place = session.map_or(new.into(), |session| vec!["--resume".to_owned(), session.to_string()]);
    let words = again.iter().cloned().chain(place).collect();
    let directory = directory.clone();
    Wanted { directory, words, again, session, comes_back: false, tells_owner: true }
}

/// The state of the time before.
enum Predecessor {
    /// Nothing runs.
    None,
    /// Its session still works.
    Runs(SessionId),
    /// Its session is just being opened.
    Comes,
}

/// Schedules that could not be begun: since when each is due, when it was tried last, and how long the daemon
/// does not try it again after that. Nothing is lost meanwhile: a due schedule stays due.
#[derive(Default)]
struct Failed(BTreeMap<String, (Timestamp, Timestamp, SignedDuration)>);

impl Failed {
    /// Whether this schedule failed just now. A schedule of the same name that was written since then does
    /// not wait.
    fn is_just(&self, name: &str, since: Timestamp, now: Timestamp) -> bool {
        let of_it = self.0.get(name).filter(|(before, ..)| *before == since);
        of_it.is_some_and(|(_, at, wait)| now.duration_since(*at).abs() < *wait)
    }

    /// Notes a failure. Returns how long the daemon does not try again: twice as long as the last time.
    fn add(&mut self, name: &str, since: Timestamp, now: Timestamp) -> SignedDuration {
        let of_it = self.0.get(name).filter(|(before, ..)| *before == since);
        let wait = of_it.map_or(SOON, |(.., wait)| (*wait * 2).min(AGAIN));
        self.0.insert(name.to_owned(), (since, now, wait));
        wait
    }
}

/// The daemon's knowledge of the daily copies.
#[derive(Default)]
struct Copies {
    /// The result of the copy that is being made.
    making: Option<oneshot::Receiver<bool>>,
    /// When the last copy was made.
    made: Option<Timestamp>,
    /// When the last copy since then failed, and how long the daemon makes no copy after that.
    failed: Option<(Timestamp, SignedDuration)>,
}

impl Copies {
    /// Whether a copy may be begun: no copy is being made, and the last one did not just fail.
    fn is_time(&mut self, now: Timestamp) -> bool {
        let came = self.making.as_mut().map(oneshot::Receiver::try_recv);
        match came {
            None => {}
            Some(Err(TryRecvError::Empty)) => return false,
            Some(Ok(true)) => (self.made, self.failed) = (Some(now), None),
            Some(_) => {
                let wait = self.failed.map_or(AGAIN, |(_, wait)| (wait * 2).min(DAY));
                self.failed = Some((now, wait));
            }
        }
        self.making = None;
        // The distance between the two times counts, so a clock that was put back does not hold copies up for
        // years.
        self.failed.is_none_or(|(at, wait)| now.duration_since(at).abs() >= wait)
    }

    /// Whether the home has no copy of the last day. A copy that is ahead of the clock was made by a wrong
    /// clock and does not count, unless this daemon made it before the clock was put back.
    fn is_old(&self, home: &Home, now: Timestamp) -> bool {
        let last = self.made.map_or(now, |made| made.max(now));
        !copies(home).any(|made| made <= last && now.duration_since(made).abs() < DAY)
    }
}

/// The number of missed times, as the log has it.
fn times(missed: usize) -> Value {
    if missed < MISSED_MAX { missed.into() } else { format!("{MISSED_MAX} or more").into() }
}

/// When the home's newest copy was made. A copy that is ahead of the clock does not count.
pub(super) fn newest_copy(home: &Home) -> Option<Timestamp> {
    let now = SystemClock.now();
    copies(home).filter(|made| *made <= now).max()
}

/// When each of the home's copies was made, by its name. A copy that is just being made has another name and
/// does not count yet.
fn copies(home: &Home) -> impl Iterator<Item = Timestamp> {
    let copies = fs::read_dir(home.backups()).into_iter().flatten().flatten();
    copies.filter_map(|copy| {
        let name = copy.file_name().into_string().ok()?;
        DateTime::strptime(COPY_NAME, name).ok()?.to_zoned(TimeZone::UTC).ok().map(|made| made.timestamp())
    })
}

#[cfg(test)]
mod tests {
    use super::{Copies, Failed, times};
    use bailey_protocol::Timestamp;
    use jiff::SignedDuration;
    use tokio::sync::oneshot;

    /// A failed schedule waits longer each time; one of the same name that was written since does not wait.
    #[test]
    fn what_failed_waits_and_keeps_no_other_of_its_name_waiting() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut failed = Failed::default();
        let waits: Vec<i64> = (0..10).map(|_| failed.add("a", at(0), at(100)).as_secs()).collect();
        assert_eq!(waits, [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert!(failed.is_just("a", at(0), at(3699)) && !failed.is_just("a", at(0), at(3700)));
        assert!(!failed.is_just("a", at(1), at(101)) && !failed.is_just("b", at(0), at(101)));
        assert_eq!(failed.add("a", at(1), at(101)).as_secs(), 15);
    }

    /// A copy that has come to this result.
    fn came(is_made: bool) -> Option<oneshot::Receiver<bool>> {
        let (tell, told) = oneshot::channel();
        tell.send(is_made).unwrap();
        Some(told)
    }

    #[test]
    fn after_a_copy_that_failed_nothing_is_tried_for_longer_each_time() {
        let (hours, second) = (SignedDuration::from_hours, SignedDuration::from_secs(1));
        let mut now: Timestamp = "2035-03-10T11:00:00Z".parse().unwrap();
        let mut copies = Copies::default();
        assert!(copies.is_time(now));
        for wait in [1, 2, 4, 8, 16, 24, 24] {
            copies.making = came(false);
            assert!(!copies.is_time(now), "{wait}");
            now = now.checked_add(hours(wait)).unwrap();
            assert!(!copies.is_time(now.checked_sub(second).unwrap()), "{wait}");
            assert!(copies.is_time(now), "{wait}");
        }
        // A copy whose task is gone has failed, too.
        let (tell, told) = oneshot::channel();
        copies.making = Some(told);
        assert!(!copies.is_time(now), "it is being made");
        drop(tell);
        assert!(!copies.is_time(now));
        // A clock that is put back by far holds no copy up.
        assert!(copies.is_time(now.checked_sub(hours(1000)).unwrap()));
        // A copy that is made begins the count anew.
        copies.making = came(true);
        assert!(copies.is_time(now));
        copies.making = came(false);
        assert!(!copies.is_time(now));
        assert!(copies.is_time(now.checked_add(hours(1)).unwrap()));
    }

    #[test]
    fn what_was_missed_is_counted_up_to_a_thousand() {
        assert_eq!((times(3), times(1000)), (3.into(), "1000 or more".into()));
    }
}

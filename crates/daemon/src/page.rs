//! The page: the requests of its process, and in whose name they are done. That process parses data from
//! browsers and has no power of its own: each of its requests comes with a bearer, and is done for the login
//! of that bearer, or not at all.

use super::{Daemon, attached::AttachedProcess, channels::COPY_MAX};
use anyhow::{Context as _, Result, bail};
use bailey_web::{
    Act, Answer, Ask, View, Wish,
    logins::{self, Greeting, Kind, Login, Logins, PORT, PageAddress},
};

use bailey_home::{config, person};
use bailey_protocol::{Digest, SessionId};
use bailey_session::{
    packet::{self, Packet},
    wire::{self, DaemonAnswer, Introduced, PageState, Wanted},
};
use serde_json::json;
use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    io::{self, ErrorKind, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    process::{Command, Stdio},
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::{
    sync::Semaphore,
    task::{spawn_blocking, spawn_local},
    time::sleep,
};

/// How long a code is good for, and how many codes there are at once.
const CODE_LIVES: Duration = Duration::from_secs(300);
const CODES_MAX: usize = 8;
/// How many wrong guesses are allowed within a time.
const WRONG_MAX: usize = 10;
const WRONG_WITHIN: Duration = Duration::from_secs(60);
/// How many deliveries of servers are served at once.
const DELIVERIES_MAX: usize = 8;
/// How long a browser's view or act may take.
const DOING_MAX: Duration = Duration::from_secs(300);
/// The longest text that is passed on to a command.
const WORD_BYTES_MAX: usize = 32 << 10;

/// The page that is up.
pub(super) struct WebPage {
    kept: Rc<AttachedProcess>,
    settings: config::Page,
    at: SocketAddr,
    /// Digests of codes that no browser has shown yet, and since when they are good.
    codes: RefCell<BTreeMap<Digest, Instant>>,
    /// When wrong codes were shown, and when wrong bearers. They count apart: wrong bearers keep no browser
    /// from showing a right code, and the other way round.
    wrong_codes: Wrong,
    wrong_bearers: Wrong,
    deliveries: Semaphore,
    listener: Rc<TcpListener>,
}

impl WebPage {
    pub(super) fn state(&self) -> PageState {
        let state = self.kept.state();
        PageState { url: self.url(), up: state.up, note: state.note }
    }

    pub(super) fn end(&self) {
        self.kept.end();
    }

    fn url(&self) -> String {
        let shown_as = self.settings.shown_as.clone();
        shown_as.unwrap_or_else(|| format!("http://{}", self.at)).trim_end_matches('/').to_owned()
    }
}

/// When something wrong was shown, as far as that still counts.
#[derive(Default)]
struct Wrong(RefCell<VecDeque<Instant>>);

impl Wrong {
    /// Counts one more, or returns how long nothing more is looked at. `first` is called for the first in a
    /// while.
    fn add(&self, first: impl FnOnce()) -> Answer {
        if let Some(wait) = self.is_locked() {
            return wait;
        }
        let mut wrong = self.0.borrow_mut();
        if wrong.is_empty() {
            first();
        }
        wrong.push_back(Instant::now());
        Answer::Unknown
    }

    fn is_locked(&self) -> Option<Answer> {
        #[cfg(feature = "controls")]
        if bailey_session::controls::is_page_without("limit") {
            return None;
        }
        let mut wrong = self.0.borrow_mut();
        wrong.retain(|at| at.elapsed() < WRONG_WITHIN);
        let oldest = wrong.front().filter(|_| wrong.len() >= WRONG_MAX)?;
        Some(Answer::Later(WRONG_WITHIN.saturating_sub(oldest.elapsed()).as_secs() + 1))
    }
}

impl Daemon {
    /// Opens the page when the owner wants it or a login exists. A page that is up follows the configuration.
    ///
    /// # Errors
    /// When it cannot listen there: the page that was up before still is.
    pub(super) fn keep_page(self: &Rc<Self>, settings: &config::Page) -> Result<()> {
        let is_wanted = settings.listen.is_some()
            || self.page.borrow().is_some()
            || Logins::of(&self.home).is_ok_and(|logins| !logins.logins.is_empty());
        if !is_wanted || self.page.borrow().as_ref().is_some_and(|page| page.settings == *settings) {
            return Ok(());
        }
        self.open_page(settings)
    }

    fn open_page(self: &Rc<Self>, settings: &config::Page) -> Result<()> {
        let before = self.page.borrow().clone();
        let was = Logins::of(&self.home)?.at;
        // When the address stays, its listener stays, because the earlier process lets go of it only when it
        // has ended.
        let is_there = |at: SocketAddr, wanted: SocketAddr| {
            wanted.ip() == at.ip() && [0, at.port()].contains(&wanted.port())
        };
        let stays = before.as_ref().filter(|it| settings.listen.is_none_or(|wanted| is_there(it.at, wanted)));
        let listener = match stays {
            Some(before) => before.listener.clone(),
            None => Rc::new(listen(settings.listen, was.map(PageAddress::address))?),
        };
        let at = listener.local_addr()?;
        if was != Some(PageAddress::At(at)) {
            // A browser's bearer is for the place where the page was. It is of no use here, and the browser
            // would show it to any program that listens there now. Another address is another place, also
            // with the same port.
            let has_moved = was.is_some_and(|was| !was.is(at));
            let count = Logins::change(&self.home, |logins| {
                logins.at = Some(PageAddress::At(at));
                Ok(if has_moved { logins.revoke_browsers() } else { 0 })
            })?;
            if has_moved {
                self.log.note("moved", json!({ "from": was, "to": at, "revoked": count }));
            }
        }
        before.iter().for_each(|before| before.end());
        let greeting = Greeting { at, shown_as: settings.shown_as.clone() };
        let kept = Rc::new(AttachedProcess::new("page", &at.to_string()));
        *self.page.borrow_mut() = Some(Rc::new(WebPage {
            kept: kept.clone(),
            settings: settings.clone(),
            at,
            codes: RefCell::default(),
            wrong_codes: Wrong::default(),
            wrong_bearers: Wrong::default(),
            deliveries: Semaphore::new(DELIVERIES_MAX),
            listener: listener.clone(),
        }));
        let greet = move |socket: &_| {
            let packet = Packet { number: 0, it: &greeting };
            packet::send(socket, &packet, Some(listener.as_fd()))
        };
        let serve = |daemon: Rc<Self>, ask: Ask| daemon.serve_page(ask);
        self.keep_up(kept, ["web", "serve"].map(str::to_owned).into(), greet, serve);
        Ok(())
    }

    /// A link that lets one browser in, once. The page is up from now on.
    pub(super) fn link(self: &Rc<Self>) -> Result<DaemonAnswer> {
        if self.is_stopping.get() {
            bail!("the daemon is ending; wait for its end, then run `bailey start`");
        }
        if self.page.borrow().is_none() {
            let config = config::Config::load(&self.home)?;
            self.open_page(&config.page)?;
        }
        let page = self.page.borrow().clone().context("there is no page")?;
        let code = logins::random()?;
        let mut codes = page.codes.borrow_mut();
        codes.retain(|_, since| since.elapsed() < CODE_LIVES);
        if codes.len() >= CODES_MAX {
            bail!("{CODES_MAX} links wait to be used already; use one of them, or wait five minutes");
        }
        codes.insert(Digest::of(code.as_bytes()), Instant::now());
        self.log.note("link", json!({}));
        // The part behind the `#` never leaves the browser by itself: it is in no request, and so in no log.
        Ok(DaemonAnswer::Link { url: format!("{}/#code={code}", page.url()) })
    }

    /// Removes one login, or all. Their open connections end at once.
    pub(super) fn revoke(self: &Rc<Self>, number: Option<u64>) -> Result<DaemonAnswer> {
        let revoked = Logins::change(&self.home, |logins| Ok(logins.revoke(number)))?;
        if let Some(page) = &*self.page.borrow() {
            if number.is_none() {
                page.codes.borrow_mut().clear();
            }
            // All connections that the process holds end with it; browsers that are still let in come back.
            page.kept.begin_anew();
        }
        self.log.note("revoked", json!({ "login": number, "count": revoked }));
        Ok(DaemonAnswer::Revoked { count: revoked })
    }

    /// Serves a request of the page.
    async fn serve_page(self: Rc<Self>, Ask { bearer, wish }: Ask) -> Result<(Answer, Option<OwnedFd>)> {
        let page = self.page.borrow().clone().context("there is no page")?;
        let login = match wish {
            Wish::Health => return Ok((Answer::Done("ok\n".into()), None)),
            Wish::Deliver(delivery) => {
                let mut channels = self.channels.borrow().clone().into_iter();
                let is_it = |kept: &Rc<AttachedProcess>| {
                    kept.takes_deliveries && kept.state().name == delivery.channel
                };
                let Some(channel) = channels.find(is_it) else {
                    // A client that may not know learns no names.
                    return Ok((Answer::Unknown, None));
                };
                // A delivery that waits for a channel's process takes no place from the browsers that are let
                // in.
                let Ok(_place) = page.deliveries.try_acquire() else { return Ok((Answer::Later(1), None)) };
                return Ok((channel.inbox.deliver(delivery).await, None));
            }
            Wish::Login(code, name) => return Ok((self.let_in(&page, &code.code, &name)?, None)),
            _ => match self.known(&bearer)? {
                Some(login) => login,
                None => {
                    let first = || self.log.note("wrong_bearer", json!({}));
                    return Ok((page.wrong_bearers.add(first), None));
                }
            },
        };
        if login.kind == Kind::Metrics && wish != Wish::Metrics {
            return Ok((Answer::Refused("this token may read metrics, and nothing else".into()), None));
        }
        match wish {
            Wish::Metrics => Ok((Answer::Done(self.figures().exposition()), None)),
            Wish::Logout => {
                self.revoke(Some(login.number))?;
                Ok((Answer::Done(String::new()), None))
            }
            Wish::See(view) => {
                let mut command = self.command();
                command.arg("--json").args(words_of(&view));
                Ok((Answer::Opened, Some(show(command, None, false, DOING_MAX)?)))
            }
            Wish::Do(act) => {
                self.log.note("asked_at_page", json!({ "login": login.number, "act": name(&act) }));
                if let Act::Set { key, value } = &act {
                    self.may_set(key, value)?;
                }
                let most = if act == Act::Backup { COPY_MAX } else { DOING_MAX };
                let (words, input) = words_to_do(act)?;
                let mut command = self.command();
                command.arg("--json").args(words).env(person::AT, format!("page {}", login.number));
                Ok((Answer::Opened, Some(show(command, input, true, most)?)))
            }
            Wish::Begin { directory, model } => {
                let session = self.begin_at_page(&directory, model).await?;
                Ok((Answer::Done(session.to_string()), None))
            }
            Wish::Join(session) => Ok((Answer::Opened, Some(self.join(session, &login).await?))),
            Wish::Health | Wish::Login(..) | Wish::Deliver(_) => bail!("that was answered"),
        }
    }

    /// Refuses each setting that is not for a browser, and each change that loosens a protection.
    fn may_set(&self, key: &str, value: &str) -> Result<()> {
        #[cfg(feature = "controls")]
        if bailey_session::controls::is_page_without("settings") {
            return Ok(());
        }
        config::Config::load(&self.home)?.may_change_from_afar(key, value).map_err(anyhow::Error::msg)
    }

    /// A bearer for a code; a code is good once.
    fn let_in(&self, page: &WebPage, code: &str, name: &str) -> Result<Answer> {
        if let Some(wait) = page.wrong_codes.is_locked() {
            return Ok(wait);
        }
        let since = page.codes.borrow_mut().remove(&Digest::of(code.as_bytes()));
        if since.is_none_or(|since| since.elapsed() >= CODE_LIVES) {
            return Ok(page.wrong_codes.add(|| self.log.note("wrong_code", json!({}))));
        }
        let bearer = Logins::change(&self.home, |logins| logins.add(Kind::Browser, name))?;
        self.log.note("let_in", json!({ "name": name }));
        Ok(Answer::Done(bearer))
    }

    fn known(&self, bearer: &str) -> Result<Option<Login>> {
        #[cfg(feature = "controls")]
        if bailey_session::controls::is_page_without("bearer") {
            return Ok(Some(Login::anybody()));
        }
        let Some((login, is_news)) = Logins::of(&self.home)?.of_bearer(bearer) else { return Ok(None) };
        if is_news {
            Logins::change(&self.home, |logins| {
                logins.seen(login.number);
                Ok(())
            })?;
        }
        Ok(Some(login))
    }

    async fn begin_at_page(self: &Rc<Self>, directory: &str, model: Option<String>) -> Result<SessionId> {
        let place = Path::new(directory);
        if !place.is_absolute() || !place.is_dir() {
            bail!("`{directory}` is not a directory on this machine; write the full path of a project");
        }
        if let Some(model) = model.as_deref().filter(|model| model.starts_with('-') || !model.contains('/')) {
            bail!("`{model}` is not a model; write PROVIDER/NAME");
        }
        let mut again = vec!["--unattended".to_owned()];
        again.extend(model.into_iter().flat_map(|model| ["--model".to_owned(), model]));
        let words = again.iter().cloned().chain(["-C".to_owned(), directory.to_owned()]).collect();
        let (directory, session) = (place.to_path_buf(), None);
        let wanted = Wanted { directory, words, again, session, comes_back: false, tells_owner: true };
        match self.open(wanted).await? {
            DaemonAnswer::Opened { session, .. } => Ok(session),
            _ => bail!("the session was not opened"),
        }
    }

    /// A connection to a session, introduced as this login's.
    async fn join(self: &Rc<Self>, session: SessionId, login: &Login) -> Result<OwnedFd> {
        let again = vec!["--unattended".to_owned()];
        let words = ["--resume".to_owned(), session.to_string()].into_iter().chain(again.clone()).collect();
        // An open page comes back by itself: for a while it is not known whether a person does.
        let comes_back = self.crashes_often(session);
        let (directory, tells_owner) = ("/".into(), true);
        let wanted = Wanted { directory, words, again, session: Some(session), comes_back, tells_owner };
        self.open(wanted).await?;
        let mut stream = wire::connect(&self.home.daemon(), &session.to_string())
            .with_context(|| format!("session {session} cannot be reached"))?;
        let mut line = serde_json::to_vec(&Introduced { introduced: login.speaker() })?;
        line.push(b'\n');
        stream.write_all(&line)?;
        Ok(stream.into())
    }
}

/// The output of a command of this program, as a pipe. If the command fails, the last line says so: with its
/// exit code, or without a code when the command took longer than it may and was ended.
fn show(mut command: Command, input: Option<String>, remarks: bool, most: Duration) -> Result<OwnedFd> {
    let (out, mut into) = io::pipe().context("no pipe can be made")?;
    command.current_dir("/").stdout(into.try_clone()?);
    command.stderr(if remarks { into.try_clone()?.into() } else { Stdio::null() });
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().context("no process can be started")?;
    drop(command);
    let stdin = child.stdin.take();
    let told = spawn_blocking(move || {
        if let (Some(mut stdin), Some(text)) = (stdin, input) {
            // A command that does not read to the end says why.
            stdin.write_all(text.as_bytes()).ok();
        }
    });
    spawn_local(async move {
        told.await.ok();
        let end = Instant::now() + most;
        // The reader may go away at any time, which ends the command.
        let status = loop {
            match child.try_wait() {
                Ok(None) if Instant::now() > end => child.kill().ok(),
                Ok(None) => None,
                Ok(Some(status)) => break Some(status),
                Err(_) => break None,
            };
            sleep(Duration::from_millis(20)).await;
        };
        if status.is_none_or(|status| !status.success()) {
            let ended = json!({ "type": "ended", "code": status.and_then(|status| status.code()) });
            // The reader may be slow.
            spawn_blocking(move || into.write_all(format!("{ended}\n").as_bytes()).ok());
        }
    });
    Ok(out.into())
}

/// Listens at the owner's address; or, without one, at the last address, at the usual port, or at any port.
fn listen(wanted: Option<SocketAddr>, before: Option<SocketAddr>) -> Result<TcpListener> {
    if let Some(at) = wanted {
        return TcpListener::bind(at).with_context(|| {
            format!("the page cannot listen at {at}: `page.listen` in config.toml says where")
        });
    }
    let mut last = None;
    let usual = [PORT, 0].map(|port| (Ipv4Addr::LOCALHOST, port).into());
    // Whatever address is noted, the page here listens on this machine alone.
    for at in before.into_iter().filter(|at| at.ip().is_loopback()).chain(usual) {
        match TcpListener::bind(at) {
            // Another program has the port, or the address does not exist any more.
            Err(error) if matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable) => {
                last = Some(error);
            }
            listener => return listener.context("the page cannot listen"),
        }
    }
    bail!("the page finds no port to listen at: {last:?}")
}

/// The command that shows the view.
fn words_of(view: &View) -> Vec<String> {
    let words: &[&str] = match view {
        View::Status => &["status"],
        View::Sessions => &["sessions", "list"],
        View::Session(session) => {
            return ["sessions", "show", &session.to_string()].map(str::to_owned).into();
        }
        View::Approvals => &["approvals", "list"],
        View::Spent(session) => {
            return ["budget", "--session", &session.to_string()].map(str::to_owned).into();
        }
        View::Approval(id) => return ["approvals", "show", &id.to_string()].map(str::to_owned).into(),
        View::Rules => &["policy", "show"],
        View::Audit => &["audit", "log", "--last", "200"],
        View::Verify => &["audit", "verify"],
        View::Schedules => &["schedule", "list"],
        View::Budget => &["budget"],
        View::Settings => &["config", "show", "--origin"],
        View::Logs => &["logs", "--lines", "200"],
        View::Models => &["models", "--offline"],
        View::Trusted => &["trust", "show", "--all"],
        View::Tools => &["tools", "list"],
        View::Walls => &["sandbox", "doctor"],
        View::People => &["channels", "people"],
        View::Browsers => &["web", "list"],
    };
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The name of the act.
pub fn name(act: &Act) -> &'static str {
    match act {
        Act::Approve { .. } => "approve",
        Act::Reject { .. } => "reject",
        Act::TryRules { .. } => "try_rules",
        Act::UpdateRules { .. } => "update_rules",
        Act::AddSchedule { .. } => "add_schedule",
        Act::RunSchedule { .. } => "run_schedule",
        Act::RemoveSchedule { .. } => "remove_schedule",
        Act::Set { .. } => "set",
        Act::Backup => "backup",
        Act::Estop { .. } => "estop",
    }
}

/// The command that does the act, and the command's input. A browser's text is never taken for a flag: it
/// stands behind an `=`, or behind `--`.
pub fn words_to_do(act: Act) -> Result<(Vec<String>, Option<String>)> {
    let fixed = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let mut input = None;
    let words = match act {
        Act::Approve { id, reason } => {
            let mut words = fixed(&["approvals", "approve", &id.to_string()]);
            words.push(format!("--reason={reason}"));
            words
        }
        Act::Reject { id, reason } => {
            let mut words = fixed(&["approvals", "reject", &id.to_string()]);
            words.push(format!("--reason={reason}"));
            words
        }
        Act::TryRules { name, text } => {
            input = Some(text);
            let mut words = fixed(&["policy", "update", "-", "--dry-run"]);
            words.push(format!("--name={name}"));
            words
        }
        Act::UpdateRules { name, text, confirm } => {
            input = Some(text);
            let mut words = fixed(&["policy", "update", "-"]);
            words.push(format!("--name={name}"));
            words.extend(
                Some(confirm).filter(|phrase| !phrase.is_empty()).map(|phrase| format!("--confirm={phrase}")),
            );
            words
        }
        Act::AddSchedule { name, when, task, directory, tokens, may, to } => {
            let mut words = fixed(&["schedule", "add"]);
            words.extend(to.map(|channel| format!("--to={channel}")));
            words.extend(tokens.map(|tokens| format!("--tokens={tokens}")));
            words.extend(may.into_iter().map(|line| format!("--may={line}")));
            words.extend([
                format!("--cron={when}"),
                format!("--directory={directory}"),
                "--".into(),
                name,
                task,
            ]);
            words
        }
        Act::RunSchedule { name } => fixed(&["schedule", "run", "--", &name]),
        Act::RemoveSchedule { name } => fixed(&["schedule", "rm", "--", &name]),
        Act::Set { key, value } => fixed(&["config", "set", "--", &key, &value]),
        Act::Backup => fixed(&["backup"]),
        Act::Estop { reason } => {
            let mut words = fixed(&["estop"]);
            words.push(format!("--reason={reason}"));
            words
        }
    };
    if words.iter().any(|word| word.len() > WORD_BYTES_MAX || word.contains('\0')) {
        bail!("that is too long, or no text");
    }
    Ok((words, input))
}

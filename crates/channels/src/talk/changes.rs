//! The changes of a conversation's session: shown, offered with buttons, applied, taken back, thrown away.
//! The end of a turn is told here, too.

use super::Talk;
use crate::{
    Button, Post, Sender, Tap, Upload,
    need::RequestKind,
    notes::{Offer, PendingMessage},
    words::OfChanges,
};
use bailey_protocol::{Digest, Happening, Op, PathCount, Role};
use bailey_terminal::one_line;
use std::time::Duration;
use tokio::time::Instant;

/// The longest diff that is shown in a message, in units of UTF-16, as platforms count; a longer one is a
/// file.
const DIFF_UNITS_MAX: usize = 3500;
/// The most files that a message names, and the longest name, in characters.
const NAMED_MAX: usize = 10;
const NAME_CHARS_MAX: usize = 120;
/// How long a comparison may take.
const COMPARED: Duration = Duration::from_secs(60);
/// How long a person who tapped waits without a word.
const TAPPED: Duration = Duration::from_secs(5);
/// The answer to a button whose changes are gone.
const GONE: &str =
    "These changes were applied or thrown away, or there are others now: /diff shows what waits.";
const NOTHING: &str = "No changes wait.";

/// A request that waits for the session's answer. The session answers requests one after the other.
pub(super) struct Want {
    kind: Wanted,
    /// Whose request it is, by their id.
    who: String,
    /// Who tapped for it and is not told yet, and since when.
    tap: Option<(Tap, Instant)>,
    /// When it is given up; `None` for a request that may wait for a person.
    until: Option<Instant>,
}

enum Wanted {
    /// To show the changes.
    Diff,
    /// To ask whether they are to be thrown away.
    Doubt,
    /// To tell the end of a turn.
    End(Ending),
    /// To end the session, as this message asks.
    Clear(PendingMessage),
    /// `apply`, `undo` or `discard`.
    Merge(&'static str),
}

impl Wanted {
    fn op(&self) -> &'static str {
        match self {
            Self::Diff | Self::Doubt | Self::End(_) | Self::Clear(_) => "changes",
            Self::Merge(op) => op,
        }
    }
}

/// The end of a turn, before people are told of it.
pub(super) struct Ending {
    /// Why the turn ended.
    pub(super) reason: String,
    /// How long it took, if that is known.
    pub(super) took: Option<Duration>,
    /// Whether people hear of it by no other new message.
    pub(super) is_unheard: bool,
}

/// The changes that wait.
struct Waiting {
    counts: Vec<PathCount>,
    commits: Vec<String>,
    red: Vec<String>,
    conflicts: Vec<String>,
    stays: Vec<String>,
    diff: String,
    shown: Digest,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.commits.is_empty()
    }

    /// `1 file changed` and its lines.
    fn words(&self) -> String {
        let files = self.counts.len();
        let mut head = match files {
            0 => String::new(),
            1 => "1 file changed".into(),
            _ => format!("{files} files changed"),
        };
        // The commits of a branch are indented below it.
        let branches = self.commits.iter().filter(|line| !line.starts_with(' ')).count();
        if branches > 0 {
            let and = if files > 0 { ", " } else { "" };
            head.push_str(&format!(
                "{and}commits on {branches} branch{}",
                if branches == 1 { "" } else { "es" }
            ));
        }
        head.push_str(", not applied yet:");
        let count = |it: &PathCount| match &it.now {
            Some(now) => format!("{}: {}", name(&it.path), name(now)),
            None => format!("{} +{} \u{2212}{}", name(&it.path), it.more, it.less),
        };
        let commits = self.commits.iter().map(|line| name(line));
        let red = self.red.iter().map(|path| format!("⚠ a person is asked about {}", name(path)));
        let kept = self.conflicts.iter().chain(&self.stays).map(|line| format!("⚠ {}", name(line)));
        let mut lines: Vec<String> = few(self.counts.iter().map(count));
        lines.extend(few(commits));
        lines.extend(few(red));
        lines.extend(few(kept));
        format!("{head}\n{}", lines.join("\n"))
    }
}

/// The first lines, and how many more there are.
fn few(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut few: Vec<String> = lines.collect();
    let more = few.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        few.truncate(NAMED_MAX);
        few.push(format!("and {more} more"));
    }
    few
}

fn name(text: &str) -> String {
    let line = one_line(text);
    let mut short: String = line.chars().take(NAME_CHARS_MAX).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// `8 s`, `2 min 5 s`.
fn lasted(took: Duration) -> String {
    match took.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

impl Talk {
    /// Whether a request waits for the session.
    pub(super) fn wants_nothing(&self) -> bool {
        self.wants.is_empty()
    }

    /// Does a person's wish about the changes. Returns the words to tell them at once.
    pub(super) async fn of_changes(&mut self, who: &Sender, what: OfChanges) -> String {
        match what {
            OfChanges::Show => self.want(who, Wanted::Diff, &Op::Changes, None).await,
            OfChanges::Discard => self.want(who, Wanted::Doubt, &Op::Changes, None).await,
            OfChanges::Apply => {
                self.want(who, Wanted::Merge("apply"), &Op::Apply { shown: None }, None).await
            }
            OfChanges::Undo => self.want(who, Wanted::Merge("undo"), &Op::Undo, None).await,
        }
        .unwrap_or_else(|told| told)
    }

    /// Asks the session for the changes that stay in it, before it is ended. Returns whether it was asked:
    /// there may be no session.
    pub(super) async fn want_clearing(&mut self, who: &Sender, open: &PendingMessage) -> bool {
        self.want(who, Wanted::Clear(open.clone()), &Op::Changes, None).await.is_ok()
    }

    /// Whether the session is about to be ended.
    pub(super) fn is_clearing(&self) -> bool {
        self.wants.iter().any(|want| matches!(want.kind, Wanted::Clear(_)))
    }

    async fn finish_clearing(&mut self, open: PendingMessage, files: usize) {
        let told = self.clear(&Sender::from(&open), files).await;
        self.tell(&open, &told).await;
    }

    /// Asks the session for something, in a person's name; the error is for them.
    async fn want(
        &mut self,
        who: &Sender,
        kind: Wanted,
        op: &Op,
        tap: Option<Tap>,
    ) -> Result<String, String> {
        if self.is_working {
            return Err("A turn is running. Wait for its end, or stop it with /stop.".into());
        }
        let how = if tap.is_some() { RequestKind::Tap } else { RequestKind::Known };
        let reached = match self.reach(who, how).await {
            Ok(None) => self.ask(who, op).await,
            other => other,
        };
        match reached {
            Ok(None) => {}
            Ok(Some(told)) => return Err(told),
            Err(error) => return Err(format!("{error:#}")),
        }
        let until = (!matches!(kind, Wanted::Merge(_))).then(|| Instant::now() + COMPARED);
        let tap = tap.map(|tap| (tap, Instant::now()));
        self.wants.push_back(Want { kind, who: who.id.clone(), tap, until });
        Ok(String::new())
    }

    /// Tells people of a turn's end, with the changes that it left.
    pub(super) async fn ended(&mut self, ending: Ending) {
        // Whose words are data to the agent sees no changes either.
        let may_look = |who: &&String| {
            let role = self.participants.get(*who).map(|it| it.role);
            matches!(role, Some(Role::Owner | Role::Operator | Role::User))
        };
        let who = self.listener.iter().chain(self.participants.keys()).find(may_look).cloned();
        let is_next = !self.said.is_empty();
        if let Some(who) = who.filter(|_| self.may_have_changed && !is_next) {
            let sender = Sender { id: who, name: String::new() };
            if let Ok(None) = self.ask(&sender, &Op::Changes).await {
                let until = Some(Instant::now() + COMPARED);
                self.wants.push_back(Want { kind: Wanted::End(ending), who: sender.id, tap: None, until });
                return;
            }
        }
        self.tell_end(ending, None).await;
    }

    async fn tell_end(&mut self, Ending { reason, took, is_unheard }: Ending, waiting: Option<Waiting>) {
        let waiting = waiting.filter(|waiting| !waiting.is_empty() && !self.is_offered(waiting.shown));
        let after = took.map(|took| format!(" after {}", lasted(took))).unwrap_or_default();
        let end = match reason.as_str() {
            // The person who stopped it knows.
            "cancelled" => None,
            "answered" => Some(format!("✔ Done{after}.")),
            "failed" => Some(format!("✘ Failed{after}.")),
            other => Some(format!("⏸ Ended{after}: {other}.")),
        };
        let end = end.filter(|_| is_unheard);
        match waiting {
            Some(waiting) => {
                let end = end.map(|end| format!("{end} ")).unwrap_or_default();
                self.offer(
                    self.bridge.words(&format!("{end}{}", waiting.words())).text,
                    waiting.shown,
                    false,
                )
                .await;
            }
            None => {
                if let Some(end) = end {
                    self.now(&end).await;
                }
            }
        }
    }

    fn is_offered(&self, shown: Digest) -> bool {
        let is_it = |offer: &Offer| offer.shown == shown && offer.session == self.current;
        self.bridge.book.get(|notes| notes.offers.get(&self.at.0).is_some_and(is_it))
    }

    /// The session compared its changes.
    pub(super) async fn compared(&mut self, happening: Happening) {
        let Happening::Diff {
            diff,
            files: _,
            counts,
            red,
            reasons: _,
            commits,
            conflicts,
            stays,
            ignored: _,
            shown,
        } = happening
        else {
            return;
        };
        // An apply compares before it begins.
        if self.wants.front().is_none_or(|want| want.kind.op() != "changes") {
            return;
        }
        let (Some(shown), Some(want)) = (shown, self.wants.pop_front()) else { return };
        let waiting = Waiting { counts, commits, red, conflicts, stays, diff, shown };
        match want.kind {
            Wanted::End(ending) => self.tell_end(ending, Some(waiting)).await,
            Wanted::Clear(open) => {
                self.finish_clearing(open, waiting.counts.len() + waiting.commits.len()).await
            }
            Wanted::Diff | Wanted::Doubt if waiting.is_empty() => self.now(NOTHING).await,
            Wanted::Diff => self.show_changes(waiting).await,
            Wanted::Doubt => {
                let text = self.bridge.words(&waiting.words()).text;
                self.offer(text, waiting.shown, false).await;
                self.doubt().await;
            }
            Wanted::Merge(_) => {}
        }
    }

    /// Shows the lines that changed: a few in a message, many as a file.
    async fn show_changes(&mut self, waiting: Waiting) {
        let head = self.bridge.words(&waiting.words()).text;
        let diff = self.bridge.clean(&waiting.diff);
        let units = head.encode_utf16().count() + diff.encode_utf16().count();
        if diff.trim().is_empty() {
            return self.offer(head, waiting.shown, true).await;
        }
        if units <= DIFF_UNITS_MAX {
            let text = format!("{head}\n{}", self.bridge.channel.fixed(&diff));
            return self.offer(text, waiting.shown, true).await;
        }
        let file = Upload { name: "changes.diff".into(), bytes: diff.into_bytes(), is_picture: false };
        let text = match self.send_file(&file).await {
            Ok(()) => head,
            Err(why) => {
                let told =
                    format!("\nThe diff is too long for a message, and was not sent as a file: {why}.");
                format!("{head}{}", self.bridge.words(&told).text)
            }
        };
        self.offer(text, waiting.shown, true).await;
    }

    /// Offers in a new message to apply the changes. An older offer loses its buttons.
    async fn offer(&mut self, text: String, shown: Digest, is_whole: bool) {
        self.close_offer("").await;
        let bridge = self.bridge.clone();
        let id = bridge.name(&self.at, &["offer", &bridge.call_name()]);
        let id: String = id.chars().take(32).collect();
        let offer = Offer { id, session: self.current, message: String::new(), text, shown, is_whole };
        let post = Post { text: offer.text.clone(), buttons: buttons(&offer) };
        // Noted before anybody can tap it.
        self.note_offer(offer.clone());
        let name = bridge.name(&self.at, &["offers", &offer.id]);
        if let Ok(message) = bridge.deliver(&self.at, name, || bridge.channel.send(&self.at, &post)).await {
            self.note_offer(Offer { message, ..offer });
        }
    }

    fn note_offer(&self, offer: Offer) {
        self.note(|notes| drop(notes.offers.insert(self.at.0.clone(), offer)));
    }

    /// Asks whether the changes of the offer are to be thrown away.
    async fn doubt(&mut self) {
        self.change_offer("\n\nThrow these changes away? Nothing brings them back.", |offer| {
            let button = |label: &str, mark: &str| Button {
                label: label.into(),
                data: format!("{mark}:{}", offer.id),
            };
            [button("Yes, throw them away", "X"), button("No, keep them", "k")].into()
        })
        .await;
    }

    async fn change_offer(&mut self, more: &str, buttons: impl Fn(&Offer) -> Vec<Button>) {
        let offer = self.bridge.book.get(|notes| notes.offers.get(&self.at.0).cloned());
        let Some(offer) = offer.filter(|offer| !offer.message.is_empty()) else { return };
        let bridge = self.bridge.clone();
        let text = format!("{}{}", offer.text, bridge.words(more).text);
        let post = Post { text, buttons: buttons(&offer) };
        let edit = || bridge.channel.edit(&self.at, &offer.message, &post);
        bridge.deliver(&self.at, bridge.call_name(), edit).await.ok();
    }

    /// Takes the buttons from the offer, and says why.
    pub(super) async fn close_offer(&mut self, why: &str) {
        self.change_offer(why, |_| Vec::new()).await;
        self.note(|notes| drop(notes.offers.remove(&self.at.0)));
    }

    /// A tap on a button of an offer; `None` when it is of another kind.
    pub(super) async fn tapped_offer(&mut self, tap: Tap) -> Option<Tap> {
        let Some((mark, id)) = tap.data.split_once(':') else { return Some(tap) };
        let (mark, id) = (mark.to_owned(), id.to_owned());
        if !["a", "d", "x", "X", "k"].contains(&&*mark) {
            return Some(tap);
        }
        let offer = self.bridge.book.get(|notes| notes.offers.get(&self.at.0).cloned());
        // A button of another conversation, or a made-up one, does nothing here.
        let Some(offer) = offer.filter(|offer| offer.id == id) else {
            self.toast(&tap, GONE);
            return None;
        };
        let shown = Some(offer.shown);
        let who = tap.from.clone();
        // The conversation may go on as another session by now.
        if let Ok(None) = self.reach(&who, RequestKind::Tap).await
            && offer.session.is_some_and(|session| Some(session) != self.current)
        {
            self.close_offer("\n\nThese changes are of a session before.").await;
            self.toast(&tap, GONE);
            return None;
        }
        let asked = match &*mark {
            "a" => self.want(&who, Wanted::Merge("apply"), &Op::Apply { shown }, Some(tap.clone())).await,
            "d" => self.want(&who, Wanted::Diff, &Op::Changes, Some(tap.clone())).await,
            "X" => self.want(&who, Wanted::Merge("discard"), &Op::Discard { shown }, Some(tap.clone())).await,
            _ => match self.looks_after(&who).await {
                Ok(()) => {
                    self.toast(&tap, "");
                    if mark == "x" {
                        self.doubt().await;
                    } else {
                        self.change_offer("", buttons).await;
                    }
                    Ok(String::new())
                }
                Err(told) => Err(told),
            },
        };
        if let Err(told) = asked {
            let told = if told.is_empty() { "You are not known here." } else { &told };
            self.toast(&tap, told);
        }
        None
    }

    /// Whether a person may throw changes away; the session decides about that once more.
    async fn looks_after(&mut self, who: &Sender) -> Result<(), String> {
        match self.reach(who, RequestKind::Tap).await {
            Ok(None) => {}
            Ok(Some(told)) => return Err(told),
            Err(error) => return Err(format!("{error:#}")),
        }
        match self.participants.get(&who.id).map(|it| it.role) {
            Some(Role::Owner | Role::Operator) => Ok(()),
            _ => Err("Only an owner or an operator may do that.".into()),
        }
    }

    /// Changes were applied, taken back or thrown away, here or at another front end.
    pub(super) async fn merged(&mut self, happening: Happening) {
        let Happening::Merged { direction, files, conflicts, commits, stays } = happening else { return };
        if let Some(at) = self.wants.iter().position(|want| want.kind.op() == direction)
            && let Some(Want { tap: Some((tap, _)), .. }) = self.wants.remove(at)
        {
            self.toast(&tap, "✔");
        }
        let (done, more) = match direction.as_str() {
            // A typed command goes to the person's own conversation, and not to the run's.
            "apply" if self.schedule.is_some() => {
                ("✔ Applied to your project", " To take it back, use `bailey sessions undo` at the machine.")
            }
            "apply" => ("✔ Applied to your project", " /undo takes it back."),
            "undo" => ("↩ Taken back", ""),
            _ => ("🗑 Thrown away", ""),
        };
        if direction != "undo" {
            self.close_offer(&format!("\n\n{done}.")).await;
        }
        let named = few(files.iter().map(|path| name(path)));
        let mut lines = vec![match (direction.as_str(), named.is_empty()) {
            ("discard", _) => format!("{done}: the session sees your project as it is."),
            (_, true) if commits.is_empty() => "Nothing was moved.".into(),
            (_, true) => format!("{done}.{more}"),
            (_, false) => format!("{done}: {}.{more}", named.join(", ")),
        }];
        lines.extend(few(commits.iter().map(|line| name(line))));
        lines.extend(few(conflicts.iter().map(|line| format!("⚠ kept as it is: {}", name(line)))));
        lines.extend(few(stays.iter().map(|line| format!("⚠ stays in the session: {}", name(line)))));
        self.now(&lines.join("\n")).await;
    }

    /// A request was not done: whether it was one of these.
    pub(super) async fn not_done(&mut self, who: &str, op: &str, error: &str) -> bool {
        if !["changes", "apply", "undo", "discard"].contains(&op) {
            return false;
        }
        // All front ends are told; those that did not ask have no part in it.
        let at = self.wants.iter().position(|want| want.kind.op() == op && want.who == who);
        if let Some(want) = at.and_then(|at| self.wants.remove(at)) {
            self.give_up(want, error).await;
        }
        true
    }

    /// Gives up all requests, because the session that had them is not this conversation's any more.
    pub(super) async fn give_up_all(&mut self, why: &str) {
        for want in std::mem::take(&mut self.wants) {
            self.give_up(want, why).await;
        }
    }

    async fn give_up(&mut self, Want { kind, tap, .. }: Want, error: &str) {
        match (kind, tap) {
            (Wanted::End(ending), _) => self.tell_end(ending, None).await,
            (Wanted::Clear(open), _) => Box::pin(self.finish_clearing(open, 0)).await,
            (_, Some((tap, _))) => {
                self.toast(&tap, error);
                // A toast is gone in a moment.
                self.now(error).await;
            }
            (_, None) => self.now(error).await,
        }
    }

    /// Tells people who wait for long, and gives up requests that are not answered any more.
    pub(super) async fn look_at_wants(&mut self) {
        let mut late = Vec::new();
        for want in &mut self.wants {
            if want.tap.as_ref().is_some_and(|(_, since)| since.elapsed() > TAPPED) {
                late.extend(want.tap.take().map(|(tap, _)| tap));
            }
        }
        late.iter().for_each(|tap| self.toast(tap, "It is being done."));
        let now = Instant::now();
        while let Some(at) = self.wants.iter().position(|want| want.until.is_some_and(|until| until <= now)) {
            let Some(want) = self.wants.remove(at) else { return };
            self.give_up(want, "The session gave no answer. Try it again.").await;
        }
    }

    /// A connection has ended: no answer comes over it any more.
    pub(super) fn forget_wants(&mut self, who: &str) {
        let lost = self.wants.iter_mut().filter(|want| want.who == who);
        lost.for_each(|want| want.until = Some(Instant::now()));
    }
}

/// The buttons of an offer.
fn buttons(offer: &Offer) -> Vec<Button> {
    let button =
        |label: &str, mark: &str| Button { label: label.into(), data: format!("{mark}:{}", offer.id) };
    let diff = (!offer.is_whole).then(|| button("Diff", "d"));
    [Some(button("Apply", "a")), diff, Some(button("Discard", "x"))].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{Waiting, few, lasted};
    use bailey_protocol::{Digest, PathCount};
    use std::time::Duration;

    #[test]
    fn changes_are_told_in_a_few_lines() {
        let count = |path: &str, now: Option<&str>| PathCount {
            path: path.into(),
            more: 1,
            less: 2,
            now: now.map(str::to_owned),
        };
        let mut waiting = Waiting {
            counts: vec![count("prices.py", None)],
            commits: Vec::new(),
            red: Vec::new(),
            conflicts: Vec::new(),
            stays: Vec::new(),
            diff: String::new(),
            shown: Digest::of(b""),
        };
        assert_eq!(waiting.words(), "1 file changed, not applied yet:\nprices.py +1 \u{2212}2");
        waiting.counts = (0..12).map(|number| count(&format!("a\n{number}"), Some("gone"))).collect();
        let words = waiting.words();
        assert!(words.starts_with("12 files changed") && words.ends_with("and 2 more"), "{words}");
        assert_eq!(words.lines().count(), 12, "a name is one line: {words}");
        assert_eq!(few([String::from("a")].into_iter()), ["a"]);
        assert_eq!(
            (lasted(Duration::from_secs(59)), lasted(Duration::from_secs(125))),
            ("59 s".into(), "2 min 5 s".into())
        );
    }
}

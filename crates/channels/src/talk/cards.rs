//! The questions of a conversation: their cards, who taps them, and what becomes of both.

use super::{Participant, Talk};
use crate::{Button, Post, Sender, Tap, need::RequestKind, notes::CardNote};
use bailey_protocol::{Answer as Verdict, ApprovalId, Card, CardPart, Op, Origin, OriginKind, Role};
use bailey_terminal::{one_line, short_question as short};
use tokio::{task::spawn_local, time::Instant};

/// The longest words of a card, in units of UTF-16, as platforms count: to what is longer there is no yes
/// here, for nobody has seen all of it.
const CARD_UNITS_MAX: usize = 3000;
/// How much of the reason of an answer stands beneath its card, in characters: with it the longest card fits
/// into a message.
const WHY_CHARS_MAX: usize = 300;
/// What is said to a yes to what was not shown whole.
pub(super) const UNSEEN: &str = "The question was not shown whole here: `bailey approvals` at the machine \
    shows all of it, and takes a yes.";
/// What a card says of itself before it can be answered, in characters; and where it is one of several, which
/// are so many at most.
const TITLE_CHARS_MAX: usize = 200;
const NAMED_CHARS_MAX: usize = 80;
const NAMED_MAX: usize = 5;

impl Talk {
    /// The open questions of this conversation whose names begin with these digits, with what each asks.
    pub(super) fn questions(&self, first: &str) -> Vec<(ApprovalId, String)> {
        self.bridge.book.get(|notes| {
            let here = notes.cards.iter().filter(|(id, card)| card.at == self.at.0 && id.starts_with(first));
            here.filter_map(|(id, card)| Some((ApprovalId::parse(id)?, card.title.clone()))).collect()
        })
    }

    /// What is said to an answer that names no question, or none that is open here: whoever sent it has read
    /// a card, and another may have taken its place since. So it is told what is open, and what to send.
    pub(super) async fn which(&mut self, who: &Sender, question: &str, is_yes: bool, why: &str) -> String {
        let none = match question {
            "" => "There is no open question in this conversation.",
            _ => "There is no such open question in this conversation.",
        };
        let open = self.questions("");
        if open.is_empty() {
            return none.into();
        }
        match self.reach(who, RequestKind::Connection).await {
            Ok(None) => {}
            Ok(Some(told)) => return told,
            Err(error) => return format!("{error:#}"),
        }
        let head = if question.is_empty() { "Which question? Name it by its ID:" } else { none };
        let answer = if is_yes { "/approve" } else { "/reject" };
        let named = open.iter().take(NAMED_MAX).map(|(id, title)| {
            let title: String = title.chars().take(NAMED_CHARS_MAX).collect();
            let command = format!("{answer} {} {}", short(*id), one_line(why));
            let command: String = command.chars().take(TITLE_CHARS_MAX).collect();
            format!("\n\n❓ {title}\n{}", command.trim_end())
        });
        let more = match open.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!("\n\nAnd {more} more: their cards end with their IDs."),
        };
        format!("{head}{}{more}", named.collect::<String>())
    }

    /// The reply to a yes or a no alone: it may be for the agent, or for a question that was read.
    pub(super) fn which_button(&self, is_yes: bool) -> String {
        let answer = if is_yes { "/approve" } else { "/reject" };
        let named = self.questions("").into_iter().take(NAMED_MAX).map(|(id, title)| {
            let title: String = title.chars().take(NAMED_CHARS_MAX).collect();
            format!("\n\n❓ {title}\n{answer} {}", short(id))
        });
        let named: String = named.collect();
        let or = if named.is_empty() { "." } else { ", or send:" };
        format!("A question waits, and this answers none: press a button on its card{or}{named}")
    }

    /// The words of a card instead of its buttons, where its conversation is that of one person who may not
    /// answer.
    fn without_buttons(&self) -> Option<String> {
        let may_not = |(id, it): &(&String, &Participant)| {
            !matches!(it.role, Role::Owner | Role::Operator)
                && self.bridge.channel.alone(id).is_some_and(|alone| alone == self.at)
        };
        let (id, it) = self.participants.iter().find(may_not)?;
        let (role, channel) = (it.role.name(), &self.bridge.name);
        Some(format!(
            "\n\nOnly an owner or an operator may answer this, and you are let in as {role}: at the machine, \
             `bailey channels pair {channel} {id} --as operator` lets you answer."
        ))
    }

    /// Whether all of a question stands in this conversation. Who was killed while it was on its way could
    /// not note that it arrived, so it is sent once more.
    pub(super) async fn is_shown(&self, id: ApprovalId) -> bool {
        let (name, bridge) = (id.to_string(), self.bridge.clone());
        let Some(card) = bridge.book.get(|notes| notes.cards.get(&name).cloned()) else { return false };
        if card.is_whole && card.is_on_its_way {
            return self.edit_card(&name, card).await;
        }
        card.is_whole
    }

    /// Whether a question stands in this conversation.
    pub(super) fn is_asked_here(&self, id: ApprovalId) -> bool {
        let name = id.to_string();
        self.bridge.book.get(|notes| notes.cards.get(&name).is_some_and(|card| card.at == self.at.0))
    }

    pub(super) async fn tapped(&mut self, tap: Tap) {
        let Some(tap) = self.tapped_offer(tap).await else { return };
        let Some((id, answer)) = verdict(&tap.data) else {
            return self.toast(&tap, "This button belongs to no question of Bailey's.");
        };
        // A button of another conversation, or one that was made up, is none here.
        if !self.is_asked_here(id) {
            return self.toast(&tap, "This question was answered before.");
        }
        if answer != Verdict::No && !self.is_shown(id).await {
            return self.toast(&tap, UNSEEN);
        }
        let op = Op::Answer { id, answer, why: String::new(), by: None };
        let asked = match self.reach(&tap.from, RequestKind::Tap).await {
            Ok(None) => self.ask(&tap.from, &op).await,
            other => other,
        };
        match asked {
            Ok(None) => self.taps.push((id, tap, Instant::now())),
            Ok(Some(why)) if !why.is_empty() => self.toast(&tap, &why),
            Ok(Some(_)) => self.toast(&tap, "You are not known here, so you cannot answer."),
            Err(error) => self.toast(&tap, &format!("{error:#}")),
        }
    }

    pub(super) async fn show_card(&mut self, id: ApprovalId, card: &Card) {
        if self.is_working && !self.answer.is_empty() {
            self.show().await;
        }
        let (name, words) = (id.to_string(), words(card));
        let no = Button { label: "No".into(), data: format!("n:{name}") };
        let title = self.bridge.clean(&one_line(&card.title));
        let title: String = title.chars().take(TITLE_CHARS_MAX).collect();
        let shows = if card.whole { "all of it" } else { "more of it, and takes a yes" };
        let unseen = format!(
            "❓ {title}\n\nThis question cannot be shown whole here: `bailey approvals show {}` at the \
             machine shows {shows}.",
            short(id)
        );
        let unseen = match self.without_buttons() {
            Some(line) => self.bridge.words(&format!("{unseen}{line}")),
            None => Post { buttons: vec![no.clone()], ..self.bridge.words(&unseen) },
        };
        // However short it is: what was cut already was seen by nobody.
        let is_whole = card.whole && words.encode_utf16().count() <= CARD_UNITS_MAX;
        let whole = is_whole.then(|| self.whole(id, card, &words, no));
        let note = |message: &str, post: &Post, is_whole| CardNote {
            at: self.at.0.clone(),
            message: message.to_owned(),
            title: title.clone(),
            text: post.text.clone(),
            is_whole,
            buttons: post.buttons.clone(),
            is_on_its_way: false,
        };
        // A card is begun without its buttons and noted before it gets them: what can be tapped is known,
        // also to who comes after a kill.
        let bridge = self.bridge.clone();
        let known = bridge.book.get(|notes| notes.cards.get(&name).map(|card| card.message.clone()));
        let mut before = String::new();
        for known in [known, None] {
            let message = match known {
                Some(message) => message,
                None => {
                    let begun = bridge.words(&format!("❓ {title}"));
                    let called = bridge.name(&self.at, &["question", &name, &before]);
                    let sent =
                        bridge.deliver(&self.at, called, || bridge.channel.send(&self.at, &begun)).await;
                    let Ok(message) = sent else { return };
                    self.note_card(&name, note(&message, &unseen, false));
                    message
                }
            };
            before.clone_from(&message);
            // One that the platform does not take whole is like one that is too long.
            for (post, is_whole) in [(whole.as_ref(), true), (Some(&unseen), false)] {
                let Some(post) = post else { continue };
                if self.edit_card(&name, note(&message, post, is_whole)).await {
                    return;
                }
            }
        }
    }

    /// A question as it is asked: with all of its words, and what can be answered.
    fn whole(&self, id: ApprovalId, card: &Card, words: &str, no: Button) -> Post {
        let button = |label: &str, mark: &str| Button { label: label.into(), data: format!("{mark}:{id}") };
        if let Some(line) = self.without_buttons() {
            return self.bridge.words(&format!("{words}\n\nID {}{line}", short(id)));
        }
        if card.reasoned && (self.schedule.is_some() || self.session.is_some()) {
            let how = format!(
                "\n\nAn answer needs a reason: `bailey approvals approve {}` at the machine",
                short(id)
            );
            return Post { buttons: vec![no], ..self.bridge.words(&format!("{words}{how}")) };
        }
        if card.reasoned {
            let how = format!("\n\nAn answer needs a reason: /approve {0} WHY or /reject {0} WHY", short(id));
            return Post { buttons: vec![no], ..self.bridge.words(&format!("{words}{how}")) };
        }
        let lasting = (!card.once).then(|| button("Yes, for this session", "s"));
        let buttons = [Some(button("Yes, once", "y")), lasting, Some(no)].into_iter().flatten().collect();
        let of = match (&self.schedule, &self.session) {
            (Some(schedule), _) => format!(" · schedule {schedule}"),
            (None, Some(session)) => format!(" · session {}", bailey_terminal::short(session)),
            (None, None) => String::new(),
        };
        Post { buttons, ..self.bridge.words(&format!("{words}\n\nID {}{of}", short(id))) }
    }

    /// Makes a card say something, which is noted before anybody can see it, and answer it.
    async fn edit_card(&self, name: &str, card: CardNote) -> bool {
        let bridge = &self.bridge;
        self.note_card(name, CardNote { is_on_its_way: true, ..card.clone() });
        let post = Post { text: card.text.clone(), buttons: card.buttons.clone() };
        let called = bridge.name(&self.at, &["asks", name, &card.message]);
        let edit = || bridge.channel.edit(&self.at, &card.message, &post);
        let is_there = bridge.deliver(&self.at, called, edit).await.is_ok();
        let is_whole = card.is_whole && is_there;
        self.note_card(name, CardNote { is_whole, is_on_its_way: false, ..card });
        is_there
    }

    fn note_card(&self, name: &str, card: CardNote) {
        self.note(|notes| drop(notes.cards.insert(name.to_owned(), card)));
    }

    pub(super) async fn answered(&mut self, id: ApprovalId, answer: Verdict, why: &str) {
        let (ours, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.taps).into_iter().partition(|(of, ..)| *of == id);
        self.taps = others;
        let what = match answer {
            Verdict::Yes => "✔ yes",
            Verdict::YesForSession => "✔ yes, for this session",
            Verdict::YesForPattern => "✔ yes, for all of this kind",
            Verdict::No => "✘ no",
        };
        ours.iter().for_each(|(_, tap, _)| self.toast(tap, what));
        let name = id.to_string();
        let Some(card) = self.bridge.book.get(|notes| notes.cards.get(&name).cloned()) else { return };
        let by = ours.first().map(|(_, tap, _)| format!(", by {}", tap.from.name)).unwrap_or_default();
        let end = self.bridge.words(&format!("\n\n{what}{by}{}", self.because(why))).text;
        let bridge = self.bridge.clone();
        // Where the end has no room the buttons go all the same: nobody is asked any more.
        for (part, end) in [("answered", &*end), ("over", "")] {
            let post = Post { text: format!("{}{end}", card.text), buttons: Vec::new() };
            let called = bridge.name(&self.at, &[part, &name, &card.message]);
            if bridge
                .deliver(&self.at, called, || bridge.channel.edit(&self.at, &card.message, &post))
                .await
                .is_ok()
            {
                break;
            }
        }
        self.note(|notes| drop(notes.cards.remove(&name)));
    }

    /// The reason of an answer, as far as there is room for it: it may be longer than any message, and the
    /// agent is told all of it.
    fn because(&self, why: &str) -> String {
        let why = self.bridge.clean(&one_line(why));
        let shown: String = why.chars().take(WHY_CHARS_MAX).collect();
        let more = if shown.len() < why.len() { "…" } else { "" };
        if why.is_empty() { why } else { format!(": {shown}{more}") }
    }

    /// Tells whoever tapped; nobody waits for that.
    pub(super) fn toast(&self, tap: &Tap, words: &str) {
        let Some(call) = self.bridge.channel.tapped(tap, words) else { return };
        let bridge = self.bridge.clone();
        let name = bridge.name(&self.at, &["tap", &tap.id]);
        spawn_local(async move { bridge.call_as(call, name).await });
    }
}

/// What a button says, and about which question.
fn verdict(data: &str) -> Option<(ApprovalId, Verdict)> {
    let (mark, id) = data.split_once(':')?;
    let answer = match mark {
        "y" => Verdict::Yes,
        "s" => Verdict::YesForSession,
        "n" => Verdict::No,
        _ => return None,
    };
    Some((ApprovalId::parse(id)?, answer))
}

/// A card in words: the lines of a short card first, and below a blank line the details. The quoted text is
/// foreign: each value is one line, and each line of a diff has its mark.
fn words(card: &Card) -> String {
    let is_foreign = |it: &Origin| !matches!(it.kind, OriginKind::Person | OriginKind::Model);
    let origin = |it: &Origin| format!("from: {}: {}", one_line(&it.value), one_line(&it.words));
    let (mut lines, mut details) = (vec![format!("❓ {}", one_line(&card.title))], Vec::new());
    for part in &card.parts {
        match part {
            CardPart::Field { name, value, brief } => {
                let to = if *brief { &mut lines } else { &mut details };
                to.push(format!("{name}: {}", one_line(value)));
            }
            CardPart::Diff { path, diff } => lines.push(format!("{}\n{diff}", one_line(path))),
        }
    }
    lines.extend(card.origins.iter().filter(|it| is_foreign(it)).map(origin));
    lines.extend(card.caveats.iter().map(|caveat| format!("⚠ {}", one_line(caveat))));
    lines.extend(card.reasons.iter().map(|reason| format!("why: {}", one_line(reason))));
    details.extend(card.origins.iter().filter(|it| !is_foreign(it)).map(origin));
    if !details.is_empty() {
        lines.push(String::new());
        lines.extend(details);
    }
    lines.join("\n")
}

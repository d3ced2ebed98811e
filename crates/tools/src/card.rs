//! What a human sees of an action before saying yes. Values are the canonical ones of the action itself, cut
//! to what a person can read; whoever draws the card escapes them, and every cut is a caveat.

use crate::{
    diff,
    typed::{count, first_line},
};
use bailey_kernel::{Output, Question, RED_FILES_MAX, Redactor};
use bailey_protocol::{
    Action, Adaptation, Amendment, Blob, Card, CardPart, Command, FileChange, FileDiff, FileKind, FileState,
    HeaderValue, HttpRequest, Merge, MergeFile, MergeKind, Portrait, WsPath, authority,
};
use std::collections::HashSet;

mod comparison;
mod looks;
mod shell;

use comparison::Comparison;

/// What becomes of a masked file.
const FOR_THE_SESSION: &str = "revealed: everything in this session can read it from now on";
/// Fields of an action's own portrait that the short card shows.
const BRIEF_MAX: usize = 3;
/// A command longer than this, in bytes, is not whole in a title.
const TITLE_BYTES: usize = 120;
/// The largest body that the short card shows, in bytes.
const BODY_BYTES: usize = 200;
/// Most lines of the diff of one file.
const DIFF_LINES_MAX: usize = 400;
/// Most lines of all diffs of a card.
const CARD_LINES_MAX: usize = 2_000;
/// Most files that are shown one by one: the Red ones first, and there are no more of those.
const FILES_MAX: usize = RED_FILES_MAX;

/// The card of a question. What was read on the way is in `seen`: contents of files that change, the
/// comparison that a merge is made of. What is not in it is shown by its new content alone, and the card says
/// so. Files that the gate asks about stand first.
#[must_use]
pub fn card(question: &Question<'_>) -> Card {
    let Question { action, reasons, red, isolation, once, seen, redactor } = *question;
    let red: HashSet<&WsPath> = red.iter().collect();
    let is_held = !isolation.minimum.is_empty();
    let mut draft = Draft {
        parts: Vec::new(),
        caveats: Vec::new(),
        lines: CARD_LINES_MAX,
        redactor,
        is_held,
        once: false,
        whole: true,
    };
    let title = match action {
        Action::Exec(command) => draft.exec(command),
        Action::Read { path } => {
            draft.field("path", &path.0);
            let access = match isolation.revealed.contains(path) {
                true if once => "revealed, for this one effect",
                true => FOR_THE_SESSION,
                false if !is_held => "as it is on this machine, by nobody else's leave than yours",
                false => "bound read-only, for this one effect",
            };
            draft.brief("access", access);
            format!("Read {path}")
        }
        Action::Change { files } => draft.change(files, &red, seen),
        Action::Merge(merge) => draft.merge(merge, &red, seen),
        Action::Http(request) => {
            draft.http(request);
            format!("{} {}", request.method, authority(&request.url))
        }
        Action::Fetch { request, .. } => {
            draft.http(request);
            let verb = if request.body.0.is_empty() { "Fetch from" } else { "Send to" };
            format!("{verb} {}", authority(&request.url))
        }
        Action::Amend(amendment) => draft.amend(amendment),
        Action::Adapt(adaptation) => draft.adapt(adaptation),
        action => draft.portrait(action),
    };
    Card {
        title: first_line(&redactor.redact(&title).text),
        reasons: reasons.to_vec(),
        parts: draft.parts,
        caveats: draft.caveats,
        once: draft.once,
        origins: Vec::new(),
        pattern: None,
        reasoned: false,
        whole: draft.whole,
    }
}

struct Draft<'a> {
    parts: Vec<CardPart>,
    caveats: Vec<String>,
    /// Lines of diffs that still fit.
    lines: usize,
    /// Whatever is shortened goes through it before.
    redactor: &'a Redactor,
    /// Whether there are walls.
    is_held: bool,
    /// Whether a yes counts once only.
    once: bool,
    /// Whether nothing was cut.
    whole: bool,
}

impl Draft<'_> {
    /// A field of the details.
    fn field(&mut self, name: &str, value: &str) {
        self.add(name, value, false);
    }

    /// A field of the short card.
    fn brief(&mut self, name: &str, value: &str) {
        self.add(name, value, true);
    }

    fn add(&mut self, name: &str, value: &str, brief: bool) {
        let redactor = self.redactor;
        let clean = redactor.redact(value);
        self.remark_hidden(&format!("`{name}`"), clean.covered);
        let value = &clean.text;
        let (text, blanks) = looks::gathered(value);
        let (text, whole) = looks::ends(&text);
        if !whole {
            let (lines, bytes) = (value.lines().count(), value.len());
            self.cut(format!(
                "`{name}` is longer than what is shown: {lines} lines, {bytes} bytes; its beginning and its end are shown"
            ));
        }
        if blanks {
            self.caveats
                .push(format!("`{name}` has long runs of blanks or marks, of which the number is shown"));
        }
        self.remark_alike(name, value);
        self.parts.push(CardPart::Field { name: name.into(), value: text, brief });
    }

    /// Not all of it is shown.
    fn cut(&mut self, caveat: String) {
        self.whole = false;
        self.caveats.push(caveat);
    }

    /// What is hidden is part of what is approved, and may be anything that looks like a key.
    fn remark_hidden(&mut self, what: &str, bytes: usize) {
        if bytes > 0 {
            self.caveats.push(format!("{bytes} bytes of {what} are taken for secrets and not shown"));
        }
    }

    fn remark_alike(&mut self, name: &str, value: &str) {
        // A part of the word is spelled out, and a secret may be cut in two there.
        let word = looks::alike(&self.redactor.redact(value).text);
        self.caveats.extend(word.map(|word| format!("`{name}` has letters that look like others: {word}")));
    }

    fn amend(&mut self, amendment: &Amendment) -> String {
        let bytes = |blob: &Option<Blob>| blob.as_ref().map(|blob| blob.0.clone());
        let (old, new) = (bytes(&amendment.old), bytes(&amendment.new));
        let name = amendment.path.0.rsplit('/').next().unwrap_or_default();
        self.brief("policy", &amendment.to.to_string());
        let diff = diff::between(name, old.as_deref(), new.as_deref(), self.lines, self.redactor);
        self.diff(&amendment.path.0, diff);
        format!("Change the rules in {}", amendment.path)
    }

    fn adapt(&mut self, Adaptation { path, old, new }: &Adaptation) -> String {
        let bytes = |blob: &Option<Blob>| blob.as_ref().map(|blob| blob.0.clone());
        let (old, new) = (bytes(old), bytes(new));
        let diff = diff::between(&path.0, old.as_deref(), new.as_deref(), DIFF_LINES_MAX, self.redactor);
        self.diff(&path.0, diff);
        match new {
            Some(_) => format!("Change what your agent is told in every session, {path}"),
            None => format!("Remove what your agent is told in every session, {path}"),
        }
    }

    /// The fields that the action says of itself.
    fn portrait(&mut self, action: &Action) -> String {
        let Some(Portrait { title, fields }) = action.portrait() else { return action.target() };
        for (at, (name, value)) in fields.iter().enumerate() {
            self.add(name, value, at < BRIEF_MAX);
        }
        title
    }

    fn exec(&mut self, command: &Command) -> String {
        let line = command.line();
        // The title has the first line.
        self.add("command", &line, line.contains('\n') || line.len() > TITLE_BYTES);
        if let [program, ..] = command.argv.as_slice()
            && command.argv.len() == 3
            && command.argv.last() == Some(&line)
        {
            self.field("shell", program);
        }
        self.field("working directory", &command.cwd.0);
        for (name, value) in &command.env {
            self.brief("environment", &format!("{name}={value}"));
        }
        if let Some(stdin) = &command.stdin {
            self.brief("standard input", &stdin.lossy());
        }
        if command.background {
            self.brief("lasts", "goes on in the background until it is stopped or the session ends");
        }
        let network = match (self.is_held, command.network) {
            (false, _) => "this machine's, without a door",
            (true, true) => "asked for; a yes opens no host by itself, for the rules judge each request",
            (true, false) => "none",
        };
        self.add("network", network, command.network || !self.is_held);
        let limits = &command.limits;
        let value = format!(
            "{} s, {} MiB of memory, {} MiB of disk, {} processes",
            limits.wall_ms / 1000,
            limits.memory_bytes >> 20,
            limits.disk_bytes >> 20,
            limits.pids
        );
        self.field("limits", &value);
        let stdin = command.stdin.as_ref().map(|stdin| String::from_utf8_lossy(&stdin.0));
        if shell::is_expanded(&command.argv, stdin.as_deref()) {
            self.once = true;
            self.caveats
                .push("a yes counts once, because the shell may expand its words to file names".into());
        }
        // This holds for every command, so it stands in the details.
        self.field("note", "the text of a command does not show everything that it will do");
        if self.is_held {
            let besides = "only the walls limit what it reads and runs besides the files that it names";
            self.field("note", besides);
        } else {
            let besides = "there are no walls: nothing limits what it reads, writes, runs and sends";
            self.caveats.push(besides.into());
        }
        format!("Run {line}")
    }

    fn change(&mut self, files: &[FileChange], red: &HashSet<&WsPath>, seen: &[Output]) -> String {
        for file in first(files, |file| red.contains(&file.path)) {
            if files.len() > 1 {
                let verb = verb(file.base.is_some(), file.new.is_some()).to_lowercase();
                self.brief(&verb, &file.path.0);
            }
            let (diff, known) = diff::of_change(file, seen, DIFF_LINES_MAX.min(self.lines), self.redactor);
            if !known {
                let path = &file.path;
                self.caveats
                    .push(format!("the present content of {path} is not at hand; its new content is shown"));
            }
            self.remark_alike("path", &file.path.0);
            self.diff(&file.path.0, diff);
        }
        self.rest(files.len(), red.len());
        match files {
            [file] => format!("{} {}", verb(file.base.is_some(), file.new.is_some()), file.path),
            _ => format!("Change {}", count(files.len(), "file")),
        }
    }

    fn merge(&mut self, merge: &Merge, red: &HashSet<&WsPath>, seen: &[Output]) -> String {
        let comparison = Comparison::of_seen(seen);
        if merge.files.len() > 1 && !red.is_empty() {
            let reds = merge.files.iter().filter(|file| red.contains(&file.path));
            self.brief("asked about", &comparison.counted(reds, "Red "));
        }
        for file in first(&merge.files, |file| red.contains(&file.path)) {
            let verb = verb(file.base.is_some(), file.new.is_some()).to_lowercase();
            self.brief(&if is_in_part(file) { format!("{verb} in part") } else { verb }, &file.path.0);
            if file.part.is_some() && !is_in_part(file) {
                self.caveats.push(format!("{}: is merged with later changes in the project", file.path));
            }
            for marked in &file.marks {
                self.caveats.push(format!("{}: {marked}", file.path));
            }
            match comparison.of(file) {
                Some(found) => self.compared(&found),
                None => self.cut(format!("the content of {} is not shown", file.path)),
            }
        }
        self.rest(merge.files.len(), red.len());
        for tip in &merge.tips {
            let (old, new) = (tip.old.as_deref().unwrap_or("nothing"), tip.new.as_str());
            let (from, to) = if merge.direction == MergeKind::Undo { (new, old) } else { (old, new) };
            self.brief(
                "commits",
                &format!("{} goes from {} to {}", tip.name, first_digits(from), first_digits(to)),
            );
        }
        let files = match (merge.files.is_empty(), merge.tips.len()) {
            (_, 0) => comparison.counted(merge.files.iter(), ""),
            (true, tips) => count(tips, "branch"),
            (false, tips) => {
                format!("{} and {}", comparison.counted(merge.files.iter(), ""), count(tips, "branch"))
            }
        };
        match merge.direction {
            MergeKind::Apply => match merge.files.iter().filter(|file| is_in_part(file)).count() {
                0 => format!("Apply {files} to the project"),
                parts if parts == merge.files.len() => format!("Apply parts of {files} to the project"),
                parts => format!("Apply {files}, {parts} of them in part, to the project"),
            },
            MergeKind::Undo => format!("Take back {files} in the project"),
            MergeKind::Discard => format!("Throw away the session's changes of {files}"),
        }
    }

    /// What a comparison says of one path: its text, and what else changes.
    fn compared(&mut self, found: &FileDiff) {
        let path = &found.path.0;
        for remark in found.remarks.iter().chain(&found.refused) {
            self.caveats.push(format!("{path}: {remark}"));
        }
        if let (Some(old), Some(new)) = (&found.old, &found.new) {
            if old.kind != new.kind {
                self.field("kind", &format!("{:?} becomes {:?}", old.kind, new.kind).to_lowercase());
            }
            if old.mode != new.mode {
                self.field("mode", &format!("{:o} becomes {:o}", old.mode, new.mode));
            }
        } else if let Some(new) = &found.new {
            self.field("mode", &format!("{:o}", new.mode));
        }
        let content = |state: &Option<FileState>| match state {
            None => Some(None),
            // Its name is all that it holds; what lies in it has entries of its own.
            Some(FileState { kind: FileKind::Directory, .. }) => Some(None),
            Some(state) => state.content.as_ref().map(|content| Some(content.0.clone())),
        };
        match (content(&found.old), content(&found.new)) {
            (Some(None), Some(None)) => {}
            (Some(old), Some(new)) => {
                let lines = DIFF_LINES_MAX.min(self.lines);
                self.diff(path, diff::between(path, old.as_deref(), new.as_deref(), lines, self.redactor));
            }
            _ => self.cut(format!("the content of {path} is too large to show")),
        }
    }

    fn diff(&mut self, path: &str, diff: diff::Diff) {
        // Below the two lines with the names.
        let mut new = diff.text.lines().skip(2).filter(|line| line.starts_with('+'));
        if let Some(word) = new.find_map(looks::alike_letters) {
            self.caveats.push(format!("what is new in {path} has letters that look like others: {word}"));
        }
        self.lines = self.lines.saturating_sub(diff.text.lines().count());
        self.remark_hidden(&format!("the change of {path}"), diff.hidden);
        if !diff.whole {
            self.cut(format!("the change of {path} is not shown whole"));
        }
        self.parts.push(CardPart::Diff { path: path.into(), diff: diff.text });
    }

    fn rest(&mut self, files: usize, red: usize) {
        if files > FILES_MAX {
            let red = match red.saturating_sub(FILES_MAX) {
                0 => "none of them Red".into(),
                more => format!("{more} of them Red"),
            };
            let files = count(files - FILES_MAX, "file");
            self.cut(format!("{files} more are not shown, {red}; `bailey sessions diff` shows all"));
        }
    }

    fn line(&mut self, method: &str, url: &str) {
        self.field("method", method);
        self.field("host", authority(url));
        self.brief("address", url);
    }

    fn http(&mut self, request: &HttpRequest) {
        self.line(&request.method, &request.url);
        for (name, header) in &request.headers {
            let value = match header {
                HeaderValue::Text(text) => text.clone(),
                HeaderValue::Secret { name, prefix } => format!("{prefix}(the secret {name})"),
            };
            let value = format!("{name}: {value}");
            self.add("header", &value, matches!(header, HeaderValue::Secret { .. }));
        }
        let body = &request.body;
        if body.0.is_empty() {
            return self.field("body", "none");
        }
        self.brief("size", &format!("{} bytes", body.0.len()));
        self.add("body", &body.lossy(), body.0.len() <= BODY_BYTES);
        if std::str::from_utf8(&body.0).is_err() {
            self.cut("`body` is no text: what of it cannot be read is shown as \u{fffd}".into());
        }
    }
}

/// As many as a card shows, those in front that it asks about.
fn first<T>(files: &[T], is_red: impl Fn(&T) -> bool) -> Vec<&T> {
    let (mut shown, others): (Vec<&T>, Vec<&T>) = files.iter().partition(|file| is_red(file));
    shown.extend(others);
    shown.truncate(FILES_MAX);
    shown
}

/// Whether less than the session's change is taken over.
fn is_in_part(file: &MergeFile) -> bool {
    file.part.as_ref().is_some_and(|part| !part.rebases)
}

fn verb(before: bool, after: bool) -> &'static str {
    match (before, after) {
        (false, _) => "Create",
        (true, false) => "Delete",
        (true, true) => "Change",
    }
}

/// What people see of an object's name.
fn first_digits(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

//! A session's changes in pieces: shown with numbers, named by them, or asked about one by one.

use super::run::say;
use crate::{
    Changes, FileHunks, Hunk,
    front::{Front, diff_lines, one_line},
    print::{Printer, Style},
};
use anyhow::{Result, bail};
use bailey_protocol::shell_word;
use std::collections::{BTreeSet, VecDeque};

/// The picked hunks of each path.
pub(super) type Picked = Vec<(String, Vec<Hunk>)>;

/// The largest number of a hunk that is understood.
const NUMBER_MAX: usize = 100_000;

const HELP: &str = "    y  apply this hunk
    n  leave it in the session
    a  apply this hunk and all later ones of this path
    d  leave this hunk and all later ones of this path
    s  split it into smaller hunks
    q  leave this hunk and all later ones, and apply the hunks that you picked
    ?  show this help
    Ctrl-C applies nothing.";

/// Whether anything was picked.
pub fn is_some(picked: &Picked) -> bool {
    picked.iter().any(|(_, hunks)| !hunks.is_empty())
}

/// Shows every hunk with its number, and how to name it.
pub fn show(printer: &Printer, changes: &Changes) {
    for FileHunks { path, shown, hunks, remarks } in changes.hunks() {
        if printer.is_json() {
            let hunk = |(n, hunk): (usize, &Hunk)| serde_json::json!({ "number": n + 1, "diff": hunk.diff });
            let hunks: Vec<_> = hunks.iter().enumerate().map(hunk).collect();
            printer.json(&serde_json::json!({
                "v": 1, "type": "hunks", "path": path, "shown": shown, "remarks": remarks, "hunks": hunks,
            }));
            continue;
        }
        let all = if hunks.len() == 1 { "1".into() } else { format!("1-{}", hunks.len()) };
        printer.line("");
        say(printer, Style::Bold, 0, &format!("--only {}", shell_word(&format!("{path}:{all}@{shown}"))));
        remarks.iter().for_each(|remark| say(printer, Style::Yellow, 2, remark));
        for (n, hunk) in hunks.iter().enumerate() {
            say(printer, Style::Bold, 2, &format!("{}", n + 1));
            diff_lines(printer, &hunk.diff, printer.cells()).iter().for_each(|line| printer.line(line));
        }
    }
}

/// The hunks that were named, as [`show`] named them.
pub fn named(changes: &Changes, names: &[String]) -> Result<Picked> {
    let all = changes.hunks();
    let mut picked: Picked = Vec::new();
    for name in names {
        let Some(Name { path, numbers, shown }) = Name::parse(name) else {
            bail!(
                "`{name}` names no hunks: say PATH:NUMBERS@DIGITS, as `bailey sessions diff --hunks` prints it"
            );
        };
        let Some(file) = all.iter().find(|file| file.path == path) else {
            bail!("there is nothing to be applied at `{path}`");
        };
        if file.shown != shown {
            bail!(
                "`{path}` is not what was shown: look at `bailey sessions diff --hunks` again; nothing was changed"
            );
        }
        if picked.iter().any(|(other, _)| other == path) {
            bail!("`{path}` is named twice");
        }
        let hunk = |number: &usize| {
            let hunk = number.checked_sub(1).and_then(|at| file.hunks.get(at)).cloned();
            hunk.ok_or_else(|| {
                anyhow::anyhow!("`{path}` has {} hunks, and none numbered {number}", file.hunks.len())
            })
        };
        picked.push((path.into(), numbers.iter().map(hunk).collect::<Result<_>>()?));
    }
    Ok(picked)
}

/// Asks about each hunk on the terminal; `None` where a signal ends it or the terminal is gone.
pub async fn asked(front: &mut Front<'_>, changes: &Changes) -> Option<Picked> {
    let mut picked = Vec::new();
    for file in changes.hunks() {
        let printer = front.printer;
        printer.line("");
        say(printer, Style::Bold, 0, &file.path);
        file.remarks.iter().for_each(|remark| say(printer, Style::Yellow, 2, remark));
        let (hunks, is_over) = asked_of_file(front, &file).await?;
        picked.push((file.path, hunks));
        if is_over {
            break;
        }
    }
    Some(picked)
}

/// The hunks of one path, and whether nothing more is to be asked.
async fn asked_of_file(front: &mut Front<'_>, file: &FileHunks) -> Option<(Vec<Hunk>, bool)> {
    let mut waiting: VecDeque<Hunk> = file.hunks.iter().cloned().collect();
    let (mut picked, mut number) = (Vec::new(), 0);
    while let Some(hunk) = waiting.pop_front() {
        number += 1;
        let place = format!("{} ({number}/{})", one_line(&file.path), number + waiting.len());
        let lines = diff_lines(front.printer, &hunk.diff, front.printer.cells());
        lines.iter().for_each(|line| front.printer.line(line));
        match answer(front, &place, !hunk.smaller.is_empty()).await? {
            Choice::Yes => picked.push(hunk),
            Choice::No => {}
            Choice::AllOfPath => {
                picked.push(hunk);
                picked.extend(waiting);
                break;
            }
            Choice::NoneOfPath => break,
            Choice::Quit => return Some((picked, true)),
            Choice::Split => hunk.smaller.into_iter().rev().for_each(|hunk| waiting.push_front(hunk)),
        }
    }
    Some((picked, false))
}

/// An answer about a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Yes,
    No,
    AllOfPath,
    NoneOfPath,
    Split,
    Quit,
}

/// Asks until there is an answer.
async fn answer(front: &mut Front<'_>, place: &str, can_split: bool) -> Option<Choice> {
    let keys = if can_split { "y,n,a,d,s,q,?" } else { "y,n,a,d,q,?" };
    let place = front.printer.paint(Style::Plain, place);
    let question = format!("Apply this hunk of {place}? [{keys}] ");
    loop {
        let line = front.ask_line(&question).await?;
        match choice(&line, can_split) {
            Some(choice) => return Some(choice),
            None => HELP.lines().for_each(|line| front.printer.line(line)),
        }
    }
}

fn choice(line: &str, can_split: bool) -> Option<Choice> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Choice::Yes),
        "n" | "no" => Some(Choice::No),
        "a" => Some(Choice::AllOfPath),
        "d" => Some(Choice::NoneOfPath),
        "s" if can_split => Some(Choice::Split),
        "q" => Some(Choice::Quit),
        _ => None,
    }
}

/// `PATH:NUMBERS@SHOWN`.
#[derive(Debug, PartialEq, Eq)]
struct Name<'a> {
    path: &'a str,
    /// At least one.
    numbers: BTreeSet<usize>,
    shown: &'a str,
}

impl<'a> Name<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        // A path may hold both marks, the text behind it does not.
        let (rest, shown) = name.rsplit_once('@')?;
        let (path, list) = rest.rsplit_once(':')?;
        let number = |text: &str| text.parse().ok().filter(|n| (1..=NUMBER_MAX).contains(n));
        let mut numbers = BTreeSet::new();
        for part in list.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            numbers.extend(first..=last);
        }
        (!path.is_empty()).then_some(Self { path, numbers, shown })
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, Name, choice};

    #[test]
    fn names_of_hunks_are_a_path_numbers_and_what_was_shown() {
        let parsed = |name| {
            let Name { path, numbers, shown } = Name::parse(name)?;
            Some((path, numbers.into_iter().collect::<Vec<_>>(), shown))
        };
        assert_eq!(parsed("a.rs:1@ab"), Some(("a.rs", vec![1], "ab")));
        assert_eq!(parsed("a:b@c:3-4,1@ab"), Some(("a:b@c", vec![1, 3, 4], "ab")));
        for wrong in [
            "a.rs",
            "a.rs:1",
            "a.rs@ab",
            ":1@ab",
            "a:@ab",
            "a:0@ab",
            "a:2-1@ab",
            "a:1-@ab",
            "a:x@ab",
            "a:1-9999999@ab",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_what_can_be_split_is() {
        assert_eq!((choice("s", true), choice("s", false)), (Some(Choice::Split), None));
        assert_eq!(
            (choice(" Y ", false), choice("", true), choice("yy", true)),
            (Some(Choice::Yes), None, None)
        );
    }
}

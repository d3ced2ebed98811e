//! What begins with a stroke is said to Bailey and not to the agent.

use crate::{MenuEntry, need::Page};

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    /// The next message begins a new session.
    Clear,
    /// Keep these words in mind.
    Pin(String),
    Page(Page),
    /// The changes of the session that belongs to the conversation.
    Changes(OfChanges),
    /// An open question, by the first digits of its name, is answered. Without any it is to be told which
    /// there are.
    Answer {
        question: String,
        is_yes: bool,
        why: String,
    },
    /// A yes or a no alone, while a question waits: it names no question.
    Bare(bool),
    /// Known elsewhere, and not here yet.
    Missing(&'static str),
    Unknown(String),
}

/// A person's wish for the session's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfChanges {
    Show,
    Apply,
    Undo,
    /// The person is asked once more.
    Discard,
}

/// What ends something. It is no [`Command`], for those wait in the row of their conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The running turn ends.
    Turn,
    /// Everything stops.
    Everything,
}

/// A command, as people are told of it.
struct Told {
    name: &'static str,
    arguments: &'static str,
    what: &'static str,
}

const fn told(name: &'static str, arguments: &'static str, what: &'static str) -> Told {
    Told { name, arguments, what }
}

/// The commands of `/help` and of the platform's menu.
const TABLE: &[Told] = &[
    told("diff", "", "show the changes that wait"),
    told("apply", "", "move the changes to your project"),
    told("undo", "", "take the last apply back"),
    told("discard", "", "throw the changes away"),
    told("stop", "", "end the running turn"),
    told("new", "", "begin a new session with the next message (also /clear)"),
    told("pin", "WORDS", "keep these words in the agent's context for the whole session"),
    told("approve", "ID", "answer an open question with yes, by the ID at the end of its card"),
    told("reject", "ID [WHY]", "answer an open question with no"),
    told("status", "", "show the daemon and its sessions"),
    told("budget", "", "show what was spent"),
    told("tools", "", "list the agent's tools"),
    told("sandbox", "", "show the walls"),
    told("backup", "", "make a backup of this home"),
    told("estop", "", "stop everything in this home until a person releases it at the machine"),
    told("help", "", "show this help"),
];

/// The answer to `/help`.
pub(super) fn help() -> String {
    let mut help = String::from("What you write is for the agent; what begins with / is for Bailey:");
    for Told { name, arguments, what } in TABLE {
        let space = if arguments.is_empty() { "" } else { " " };
        help.push_str(&format!("\n/{name}{space}{arguments} — {what}"));
    }
    help
}

/// The same for the platform's menu.
pub(super) fn menu() -> Vec<MenuEntry> {
    let entry = |Told { name, arguments, what }: &Told| {
        let what = if arguments.is_empty() { (*what).to_owned() } else { format!("{arguments}: {what}") };
        MenuEntry { name, what }
    };
    TABLE.iter().map(entry).collect()
}

/// The name of what is said to a bot, whether that is us, and the rest; none for what is said to the agent.
/// In a group a person may name us first.
fn read<'a>(text: &'a str, us: &str) -> Option<(&'a str, bool, &'a str)> {
    let text = text.trim();
    let named = text.strip_prefix('@').and_then(|text| text.split_once(char::is_whitespace));
    let rest = named.filter(|(name, _)| name.eq_ignore_ascii_case(us)).map_or(text, |(_, rest)| rest.trim());
    let rest = rest.strip_prefix('/')?;
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (name, called) = name.split_once('@').map_or((name, None), |(name, called)| (name, Some(called)));
    Some((name, called.is_none_or(|called| called.eq_ignore_ascii_case(us)), arguments.trim()))
}

/// Whether a message is a yes or a no alone, and which.
pub(super) fn bare_answer(text: &str, us: &str) -> Option<bool> {
    let text = text.trim();
    let named = text.strip_prefix('@').and_then(|text| text.split_once(char::is_whitespace));
    let rest = named.filter(|(name, _)| name.eq_ignore_ascii_case(us)).map_or(text, |(_, rest)| rest.trim());
    match rest.trim_end_matches(['.', '!']).to_ascii_lowercase().as_str() {
        "yes" | "y" => Some(true),
        "no" | "n" => Some(false),
        _ => None,
    }
}

impl Stop {
    /// What a message ends, if that is what it says. `us` is how we are called here.
    pub(super) fn of(text: &str, us: &str) -> Option<Self> {
        let (name, _, _) = read(text, us).filter(|(_, is_us, _)| *is_us)?;
        match name.to_ascii_lowercase().as_str() {
            "stop" | "cancel" => Some(Self::Turn),
            "estop" => Some(Self::Everything),
            _ => None,
        }
    }
}

impl Command {
    /// The command of a message that ends nothing; none for what is said to the agent. `us` is how we are
    /// called here.
    pub(super) fn of(text: &str, us: &str) -> Option<Self> {
        let (name, is_us, arguments) = read(text, us)?;
        if !is_us {
            return Some(Self::Unknown(name.into()));
        }
        Some(match name.to_ascii_lowercase().as_str() {
            "help" | "start" => Self::Help,
            "new" | "clear" | "reset" => Self::Clear,
            "pin" if !arguments.is_empty() => Self::Pin(arguments.into()),
            "pin" => Self::Help,
            "diff" | "changes" => Self::Changes(OfChanges::Show),
            "apply" => Self::Changes(OfChanges::Apply),
            "undo" => Self::Changes(OfChanges::Undo),
            "discard" => Self::Changes(OfChanges::Discard),
            "status" => Self::Page(Page::Status),
            "budget" => Self::Page(Page::Budget),
            "tools" => Self::Page(Page::Tools),
            "sandbox" => Self::Page(Page::Sandbox),
            "approve" => Self::answer(arguments, true),
            "reject" => Self::answer(arguments, false),
            "memory" => Self::Missing("there is no memory across sessions yet"),
            "backup" => Self::Page(Page::Backup),
            name => Self::Unknown(name.into()),
        })
    }

    fn answer(arguments: &str, is_yes: bool) -> Self {
        let (first, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        // The whole of a name has dashes.
        let digits = first.bytes().take_while(u8::is_ascii_hexdigit).count();
        let is_name = digits >= 4 && first.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        match is_name {
            true => Self::Answer { question: first.to_ascii_lowercase(), is_yes, why: rest.trim().into() },
            false => Self::Answer { question: String::new(), is_yes, why: arguments.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, OfChanges, Stop, TABLE, bare_answer, help, menu};
    use crate::need::Page;

    #[test]
    fn every_command_that_people_are_told_of_is_known_and_stands_in_the_menu() {
        for told in TABLE {
            let text = format!("/{} 1a2b", told.name);
            let is_known = Stop::of(&text, "").is_some()
                || !matches!(Command::of(&text, ""), None | Some(Command::Unknown(_)));
            assert!(is_known, "{text}");
            assert!(help().contains(&format!("\n/{}", told.name)));
            // As the Bot API has it: 1 to 32 of these letters, and 256 characters at most.
            assert!(told.name.bytes().all(|byte| byte.is_ascii_lowercase()) && told.name.len() <= 32);
        }
        assert_eq!(menu().len(), TABLE.len());
        assert!(menu().iter().all(|entry| (1..=256).contains(&entry.what.chars().count())));
        assert_eq!(Command::of("/Apply@me", "me"), Some(Command::Changes(OfChanges::Apply)));
    }

    #[test]
    fn commands_are_told_from_words() {
        let of = |text| Command::of(text, "bailey_bot");
        assert_eq!(of("list the files"), None);
        assert_eq!(of("@Bailey_bot  /status"), Some(Command::Page(Page::Status)));
        assert_eq!(of("@other_bot /status"), None);
        assert_eq!(of("@bailey_bot list /etc"), None);
        assert_eq!(Stop::of("@bailey_bot /estop", "bailey_bot"), Some(Stop::Everything));
        assert_eq!(of("/status"), Some(Command::Page(Page::Status)));
        let stop = |text| Stop::of(text, "bailey_bot");
        assert_eq!(stop(" /Stop@Bailey_Bot now"), Some(Stop::Turn));
        assert_eq!((stop("/ESTOP"), stop("/cancel")), (Some(Stop::Everything), Some(Stop::Turn)));
        assert_eq!((stop("/stop@other_bot"), stop("stop"), stop("/stopp")), (None, None, None));
        assert_eq!(of("/stop@other_bot"), Some(Command::Unknown("stop".into())));
        let answer = |question: &str, is_yes, why: &str| {
            Some(Command::Answer { question: question.into(), is_yes, why: why.into() })
        };
        assert_eq!(of("/approve"), answer("", true, ""));
        let whole = "05ce8e56-ecd0-be04-43b1-764bcf36000e";
        assert_eq!(of("/approve 05ce8e56-ecd0-be04-43b1-764bcf36000e"), answer(whole, true, ""));
        assert_eq!(of("/reject -1a2b"), answer("", false, "-1a2b"));
        assert_eq!(of("/reject 1A2b not today"), answer("1a2b", false, "not today"));
        assert_eq!(of("/reject not on a Friday"), answer("", false, "not on a Friday"));
        let bare = |text| bare_answer(text, "bailey_bot");
        assert_eq!((bare(" Yes. "), bare("@Bailey_Bot n")), (Some(true), Some(false)));
        assert_eq!((bare("yes, do it"), bare("@other_bot yes"), bare("")), (None, None, None));
        assert_eq!(of("/pin  be kind "), Some(Command::Pin("be kind".into())));
    }
}

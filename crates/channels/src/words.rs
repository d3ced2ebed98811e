//! What begins with a stroke is said to Bailey and not to the agent.

use crate::need::Page;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    /// The next message begins a new session.
    Clear,
    /// Keep these words in mind.
    Pin(String),
    Page(Page),
    /// An open question, by the first digits of its name, is answered. Without any it is to be told which
    /// there are.
    Answer {
        question: String,
        is_yes: bool,
        why: String,
    },
    /// Known elsewhere, and not here yet.
    Missing(&'static str),
    Unknown(String),
}

/// What ends something. It is no [`Command`], for those wait in the row of their conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The running turn ends.
    Turn,
    /// Everything stops.
    Everything,
}

pub(super) const HELP: &str = "\
What you write is for the agent; what begins with / is for Bailey:
/stop — end the running turn
/estop — stop everything in this home until a person releases it at the machine
/clear, /reset — begin a new session with the next message
/pin WORDS — keep these words in the agent's context for the whole session
/approve ID, /reject ID [WHY] — answer an open question, by the ID at the end of its card
/status /budget /tools /sandbox — show the daemon, the budget, the tools, the walls
/backup — make a backup of this home
/help — show this help";

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
            "clear" | "reset" => Self::Clear,
            "pin" if !arguments.is_empty() => Self::Pin(arguments.into()),
            "pin" => Self::Help,
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
    use super::{Command, Stop};
    use crate::need::Page;

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
        assert_eq!(of("/pin  be kind "), Some(Command::Pin("be kind".into())));
    }
}

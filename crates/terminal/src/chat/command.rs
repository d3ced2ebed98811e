//! Slash commands.

use super::Chat;

/// The text that `/help` prints.
pub(super) const HELP: &str = "  /diff        what this session changed in the project
  /apply       move it to the project (what is Red is asked about)
  /undo        take the last apply back
  /clear       begin anew: a new session over the same project
  /model NAME  go on with another model; without a name, say which one it is
  /pin TEXT    keep these words whatever is summed up; alone: what is pinned
  /unpin N     let the pinned words with this number go like any others
  /cost        what was spent
  /sessions    the sessions of this home
  /help        this
  /quit        leave
  Enter sends. Alt-Enter, Ctrl-J, or a backslash at the end: a new line.
  Tab completes. Up and down: earlier messages.
  What you say while the model works is queued; it sees it at its next step.
  Ctrl-C cancels the turn; twice, or Ctrl-D, leaves.
  A message that begins with a slash: put a blank before it.";

const NAMES: [&str; 11] = [
    "/apply",
    "/clear",
    "/cost",
    "/diff",
    "/help",
    "/model",
    "/pin",
    "/quit",
    "/sessions",
    "/undo",
    "/unpin",
];

/// The commands that may have text after them.
const OPEN: [&str; 3] = ["/model", "/pin", "/unpin"];

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Clear,
    Model(Option<String>),
    Diff,
    Apply,
    Undo,
    Pin(Option<String>),
    Unpin(Option<String>),
    Cost,
    Sessions,
    Quit,
}

/// The command in a line. `None` when the line is a message; an error when it looks like a command but is not
/// one.
pub(super) fn parse(line: &str) -> Option<Result<Command, String>> {
    let rest = line.strip_prefix('/')?;
    let (name, argument) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let argument = argument.trim();
    let more = || (!argument.is_empty()).then(|| argument.to_owned());
    let command = match name {
        "help" | "?" => Command::Help,
        "clear" => Command::Clear,
        "model" => return Some(Ok(Command::Model(more()))),
        "pin" => return Some(Ok(Command::Pin(more()))),
        "unpin" => return Some(Ok(Command::Unpin(more()))),
        "diff" => Command::Diff,
        "apply" => Command::Apply,
        "undo" => Command::Undo,
        "cost" => Command::Cost,
        "sessions" => Command::Sessions,
        "quit" | "exit" => Command::Quit,
        // A path, or a message of several lines, is meant for the model.
        _ if name.contains('/') || line.contains('\n') => return None,
        _ => {
            let error = format!(
                "  there is no `/{name}`: /help lists what there is; with a blank before it, it is a message"
            );
            return Some(Err(error));
        }
    };
    if argument.is_empty() {
        return Some(Ok(command));
    }
    Some(Err(format!("  `/{name}` takes nothing after it; with a blank before it, the line is a message")))
}

impl Chat {
    /// Completes a command or a model's name as far as it is unambiguous. If there are several candidates, it
    /// shows them.
    pub(super) fn complete(&mut self) {
        let before = self.line.before().to_owned();
        let (head, word) = match before.strip_prefix("/model ") {
            Some(word) => ("/model ", word),
            None => ("", before.as_str()),
        };
        let fit: Vec<&str> = if head.is_empty() {
            NAMES.into_iter().filter(|name| before.starts_with('/') && name.starts_with(word)).collect()
        } else {
            self.models.iter().map(String::as_str).filter(|name| name.starts_with(word)).collect()
        };
        let Some(first) = fit.first() else { return };
        let common = fit.iter().fold((*first).to_owned(), |common, name| {
            let same = common.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
            common.chars().take(same).collect()
        });
        let (hint, end) = match fit.as_slice() {
            [only] => (String::new(), if OPEN.contains(only) { " " } else { "" }),
            several => (several.join("  "), ""),
        };
        if self.line.text() == before {
            self.line.set(format!("{head}{common}{end}"));
        }
        self.hint = hint;
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, parse};

    #[test]
    fn commands_messages_and_mistakes() {
        assert_eq!(parse("/apply"), Some(Ok(Command::Apply)));
        assert_eq!(parse("/model a/b "), Some(Ok(Command::Model(Some("a/b".into())))));
        assert_eq!(parse("/pin"), Some(Ok(Command::Pin(None))));
        assert_eq!(parse("/pin two\n lines "), Some(Ok(Command::Pin(Some("two\n lines".into())))));
        assert_eq!(parse("/unpin 2"), Some(Ok(Command::Unpin(Some("2".into())))));
        assert_eq!(parse("please /apply"), None);
        assert_eq!(parse(" /apply"), None);
        assert_eq!(parse("/etc/hosts is wrong"), None);
        assert!(matches!(parse("/aply"), Some(Err(_))));
        assert!(matches!(parse("/undo everything"), Some(Err(_))));
    }
}

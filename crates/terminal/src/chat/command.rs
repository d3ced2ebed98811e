//! Slash commands.

/// The text that `/help` prints.
pub(super) const HELP: &str = "  /diff /apply /undo   show, apply and take back the changes (Red ones ask)
  /clear /fork         begin a new session here; go on in a copy of this one
  /compact             replace the conversation so far with a summary
  /context /cost       what fills the model's context; tokens and cost so far
  /status /tools       where this conversation stands; the tools of the model
  /model NAME          change the model; without a name, pick one
  /pin TEXT /unpin N   keep words in the context; without words, list them
  /sessions /export    list the sessions; write this one to a Markdown file
  /help /quit          show this help; leave
  !COMMAND             run a command of yours inside the walls; the model reads
                       its output with your next message
  @PATH                name a file; Tab completes it. The model sees a picture
  Enter sends. Alt-Enter, Ctrl-J, or a backslash at the end: a new line.
  Tab completes. Up and down: earlier messages.
  A message that you send while the model works is queued for its next step.
  Esc or Ctrl-C stops the turn and gives a queued message back; Ctrl-D leaves.
  To send a message that begins with a slash or `!`, put a space before it.";

pub(super) const NAMES: [&str; 17] = [
    "/apply",
    "/clear",
    "/compact",
    "/context",
    "/cost",
    "/diff",
    "/export",
    "/fork",
    "/help",
    "/model",
    "/pin",
    "/quit",
    "/sessions",
    "/status",
    "/tools",
    "/undo",
    "/unpin",
];

/// The commands that may have text after them.
pub(super) const OPEN: [&str; 3] = ["/model", "/pin", "/unpin"];

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Clear,
    Compact,
    Context,
    Export,
    Fork,
    Status,
    Tools,
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
        "clear" | "new" => Command::Clear,
        "compact" => Command::Compact,
        "context" => Command::Context,
        "export" => Command::Export,
        "fork" => Command::Fork,
        "status" => Command::Status,
        "tools" => Command::Tools,
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
                "  there is no command `/{name}`: /help lists the commands; to send the line as a message, \
                 put a space before it"
            );
            return Some(Err(error));
        }
    };
    if argument.is_empty() {
        return Some(Ok(command));
    }
    Some(Err(format!(
        "  `/{name}` takes no words after it; to send the line as a message, put a space before it"
    )))
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

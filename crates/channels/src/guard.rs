//! What people send is looked through for credentials before anything else sees it: before it is noted, said
//! to a session, or written to the journal.

use bailey_secrets::Redactor;

/// A message past the guard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Guarded {
    /// As it was said.
    Clean(String),
    /// Without the credentials in it.
    Redacted(String),
    /// It was one, and little else.
    Blocked,
}

/// Looks a message through.
pub(super) fn guard(redactor: &Redactor, text: String) -> Guarded {
    let redacted = redactor.redact(&text);
    if redacted.hits == 0 {
        return Guarded::Clean(text);
    }
    if redacted.covered * 2 >= text.trim().len() {
        return Guarded::Blocked;
    }
    Guarded::Redacted(redacted.text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Guarded, guard};
    use bailey_secrets::{Redactor, Vault};

    #[test]
    fn a_key_is_blocked_and_one_in_a_longer_message_taken_out() {
        let redactor = Redactor::new(&Vault::from_env([], &[]));
        let key = "ghp_a8Kd93mfLq02PzXw7Rt5Yu1Io4As6Df8Gh2J";
        assert_eq!(guard(&redactor, key.into()), Guarded::Blocked);
        assert_eq!(guard(&redactor, format!("use {key} please")), Guarded::Blocked);
        let long =
            format!("push the branch to the fork, then open a pull request against main; the token is {key}");
        let Guarded::Redacted(text) = guard(&redactor, long) else { panic!("it is long") };
        assert!(text.starts_with("push the branch") && !text.contains("ghp_"), "{text}");
        assert_eq!(guard(&redactor, "list the files".into()), Guarded::Clean("list the files".into()));
    }
}

//! An entry for the fuzz target of input at a session's socket.

use super::clients::{ClientInput, asked};
use bailey_protocol::{Op, Role, Speaker};

/// Parses a line from the owner's terminal or from a person whom the daemon introduced; the first byte
/// chooses which. An op that reaches the session is in the name of that person and no other, and is never
/// one that their role does not allow.
pub fn line(bytes: &[u8]) {
    let Some((first, line)) = bytes.split_first() else { return };
    let role = Role::ALL.get(usize::from(*first) % (Role::ALL.len() + 1)).copied();
    let speaker = role.map(|role| Speaker { channel: "c".into(), id: "7".into(), name: "Ann".into(), role });
    let op = match asked(line, speaker.as_ref()) {
        ClientInput::Op(op) => op,
        ClientInput::Refused(name, why) => return assert!(!name.is_empty() && !why.is_empty()),
        ClientInput::Gone => panic!("nobody goes because of what a line says"),
    };
    let is_least = matches!(op, Op::Say(_));
    let is_users = matches!(op, Op::Cancel | Op::Changes | Op::Pin { .. } | Op::Unpin { .. });
    match role {
        None | Some(Role::Owner | Role::Operator) => {}
        Some(Role::User) => assert!(is_least || is_users, "{op:?}"),
        Some(Role::Guest) => assert!(is_least, "{op:?}"),
        Some(Role::Agent | Role::Plugin) => panic!("{op:?} of nobody"),
    }
    if let Op::Say(bailey_protocol::Inbound { by, .. }) | Op::Answer { by, .. } = op {
        assert_eq!(by, speaker);
    }
}

//! The requests that a person at a channel may make to a session, by their role. A terminal of the owner may
//! make all.

use bailey_protocol::{Op, Role, Speaker};

/// The request of a person, in their name; or the reason why they may not make it.
pub(super) fn of(speaker: &Speaker, op: Op) -> Result<Op, String> {
    if !may(speaker.role, &op) {
        return Err(format!("{} may not do that here: ask the owner", speaker.line()));
    }
    let by = Some(speaker.clone());
    Ok(match op {
        Op::Say(inbound) => Op::Say(bailey_protocol::Inbound { by, ..inbound }),
        Op::Answer { id, answer, why, .. } => Op::Answer { id, answer, why, by },
        other => other,
    })
}

fn may(role: Role, op: &Op) -> bool {
    let needed = match op {
        Op::Say(_) => Role::Guest,
        Op::Cancel | Op::Follow { .. } | Op::Changes | Op::Pin { .. } | Op::Unpin { .. } => Role::User,
        // A yes allows an action, and the names of sessions show other work in this home.
        Op::Answer { .. }
        | Op::AskAgain { .. }
        | Op::Apply { .. }
        | Op::Undo
        | Op::Discard { .. }
        | Op::Model { .. }
        | Op::Compact
        | Op::Show { .. }
        | Op::Sessions => Role::Operator,
        // These act on the owner's own authority.
        Op::Run { .. } | Op::Files { .. } | Op::TakeBack => Role::Owner,
    };
    rank(role) >= rank(needed)
}

/// Ranks people from the guest to the owner. Agents and plugins are not people, and may do nothing.
fn rank(role: Role) -> u8 {
    match role {
        Role::Agent | Role::Plugin => 0,
        Role::Guest => 1,
        Role::User => 2,
        Role::Operator => 3,
        Role::Owner => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use bailey_protocol::{Answer, ApprovalId, Op, Role, Speaker};

    #[test]
    fn only_those_who_look_after_a_home_answer_and_nobody_in_anothers_name() {
        let speaker = |role| Speaker { channel: "t".into(), id: "7".into(), name: "Ann".into(), role };
        let answer = || Op::Answer {
            id: ApprovalId::new([1; 16]),
            answer: Answer::Yes,
            why: String::new(),
            by: Some(speaker(Role::Owner)),
        };
        for role in Role::ALL {
            let said = of(&speaker(role), Op::Say("hi".into()));
            let answered = of(&speaker(role), answer());
            match role {
                Role::Owner | Role::Operator => {
                    let Ok(Op::Answer { by, .. }) = answered else { panic!("{role:?} may answer") };
                    assert_eq!(by, Some(speaker(role)));
                }
                _ => assert!(answered.is_err(), "{role:?} may not answer"),
            }
            assert_eq!(said.is_ok(), !matches!(role, Role::Agent | Role::Plugin), "{role:?} speaks");
            let ran = of(&speaker(role), Op::Run { command: "true".into() });
            assert_eq!(ran.is_ok(), role == Role::Owner, "{role:?} acts on the owner's authority");
        }
    }
}

//! The list of claims and the table say the same; the verdict of an attempt.

use super::{
    attack::{Attempt, Tried, Verdict},
    claims::{self, Claim},
    code,
    scratch_journal::changed,
    table::LINES,
};

#[test]
fn each_claim_names_its_lines_of_the_table_or_why_there_is_none() {
    let claims = claims::all().unwrap();
    assert!(claims.len() > 100, "{}", claims.len());
    for Claim { claim, prove, untried } in &claims {
        let own: Vec<&str> = LINES.iter().filter(|line| line.claim == claim).map(|line| line.id).collect();
        assert_eq!(*prove, own, "the lines beside: {claim}");
        assert_eq!(own.is_empty(), untried.as_ref().is_some_and(|why| !why.is_empty()), "{claim}");
    }
    for line in LINES {
        assert!(claims.iter().any(|it| it.claim == line.claim), "{}: no claim `{}`", line.id, line.claim);
    }
}

#[test]
fn each_line_has_a_name_of_its_own_and_fits_its_row() {
    let mut ids: Vec<&str> = LINES.iter().map(|line| line.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), LINES.len());
    for line in LINES {
        assert!(line.says.chars().count() <= 70, "{}", line.says);
    }
}

#[test]
fn only_what_succeeds_without_the_wall_is_held() {
    let of = |attack: &Attempt, control: &Attempt| {
        Tried { attack: attack.clone(), control: control.clone() }.verdict().0
    };
    let (reached, refused, nothing) =
        (Attempt::Reached("r".into()), Attempt::Refused("no".into()), Attempt::Nothing("n".into()));
    assert_eq!(of(&refused, &reached), Verdict::Held);
    assert_eq!(of(&refused, &refused), Verdict::Untried);
    assert_eq!(of(&refused, &nothing), Verdict::Untried);
    assert_eq!(of(&nothing, &reached), Verdict::Untried);
    for control in [&reached, &refused, &nothing] {
        assert_eq!(of(&reached, control), Verdict::NotHeld);
    }
}

#[test]
fn a_token_with_another_signature_is_still_a_token() {
    // Not all bits of a signature's last letter count. A token's text cannot be read when an unused bit is
    // set.
    for last in ["AAA", "BBQ", "zzA"] {
        let text = format!("{}{last}", "A".repeat(60));
        let other = changed(&text);
        assert_ne!(other, text);
        assert!(other.len() == text.len() && other.ends_with(last), "{other}");
    }
}

/// `bailey prove && deploy`, where no line could be tried, deploys nothing.
#[test]
fn what_shows_nothing_is_no_success() {
    for (count, expected) in [([3, 0, 0], 0), ([1, 0, 5], 0), ([3, 1, 0], 1), ([0, 1, 5], 1), ([0, 0, 6], 1)]
    {
        assert_eq!(code(count), expected, "{count:?}");
    }
}

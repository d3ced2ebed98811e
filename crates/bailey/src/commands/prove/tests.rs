//! SECURITY.md and the table say the same; the verdict of an attempt.

use super::{
    claims, code,
    desk::changed,
    table::LINES,
    trial::{Attempt, Tried, Verdict},
};
use std::{collections::BTreeMap, path::Path};

/// The claims of SECURITY.md, each with its third column, which is about `bailey prove`.
fn claims() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../SECURITY.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [claim, _, proven, _] = cells[..] else { panic!("four columns: {row}") };
        (claim.to_owned(), proven.to_owned())
    })
    .collect()
}

#[test]
fn security_md_names_the_lines_of_the_table_beside_their_claims() {
    let claims = claims();
    assert!(claims.len() > 30, "{}", claims.len());
    for (claim, proven) in &claims {
        let reason = proven.strip_prefix("no: ");
        let names = || proven.split('`').skip(1).step_by(2).collect();
        let named: Vec<&str> = if reason.is_some() { Vec::new() } else { names() };
        let own: Vec<&str> = LINES.iter().filter(|line| line.claim == claim).map(|line| line.id).collect();
        assert_eq!(named, own, "what SECURITY.md says of `bailey prove` beside: {claim}");
        assert!(
            !named.is_empty() || reason.is_some_and(|reason| !reason.is_empty()),
            "why it is not tried: {claim}"
        );
    }
    for line in LINES {
        assert!(claims.contains_key(line.claim), "{}: SECURITY.md has no claim `{}`", line.id, line.claim);
    }
}

#[test]
fn every_claim_is_tried_by_a_line_or_named_with_why_not() {
    let elsewhere: Vec<_> = claims::elsewhere().collect();
    let reasons = claims().into_values().filter(|proven| proven.starts_with("no: ")).count();
    assert!(elsewhere.len() == reasons && reasons > 40, "{} {reasons}", elsewhere.len());
    let tried = |claim| LINES.iter().any(|line| line.claim == claim);
    assert!(elsewhere.iter().all(|it| !it.because.is_empty() && !tried(it.claim)), "{elsewhere:?}");
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

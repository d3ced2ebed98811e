//! The probable meaning of a misspelled word.

use alloc::{string::String, vec, vec::Vec};

/// The most characters of a word that are compared.
const CHARS_MAX: usize = 40;

/// The candidate that a word is probably a misspelling of, in any letter case.
pub fn meant<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = letters(word);
    let near =
        candidates.into_iter().map(|candidate| (distance(&word, &letters(candidate)), candidate)).min();
    near.filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4).map(|(_, candidate)| candidate)
}

fn letters(word: &str) -> Vec<char> {
    word.chars().take(CHARS_MAX).collect::<String>().to_lowercase().chars().collect()
}

/// How many characters are inserted, deleted, replaced, or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let (mut above, mut row): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=a.len()).collect());
    let mut before = None;
    for (i, other) in b.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, (own, pair)) in a.iter().zip(row.windows(2)).enumerate() {
            let [diagonal, up] = pair else { continue };
            let left = next.last().copied().unwrap_or_default();
            let mut least = (diagonal + usize::from(own != other)).min(up + 1).min(left + 1);
            let earlier = j.checked_sub(1).and_then(|at| Some((a.get(at)?, above.get(at)?)));
            if let Some((earlier, swapped)) = earlier
                && (Some(own), Some(earlier)) == (before, Some(other))
            {
                least = least.min(swapped + 1);
            }
            next.push(least);
        }
        above = core::mem::replace(&mut row, next);
        before = Some(other);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn a_misspelled_word_is_known_and_another_word_is_not() {
        let known = ["run", "resume", "telegram", "ANTHROPIC_API_KEY"];
        for (word, expected) in [
            ("rnu", Some("run")),
            ("rum", Some("run")),
            ("telegarm", Some("telegram")),
            ("telegramm", Some("telegram")),
            ("ANTROPIC_API_KEY", Some("ANTHROPIC_API_KEY")),
            ("anthropic_key", Some("ANTHROPIC_API_KEY")),
            ("nur", None),
            ("slack", None),
            ("", None),
        ] {
            assert_eq!(meant(word, known), expected, "{word}");
        }
    }
}

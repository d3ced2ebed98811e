//! What is passed over changes nothing.

use super::Patterns;
use crate::{
    known,
    shape::SHAPES,
    view::{Dull, View},
};
use proptest::prelude::*;

const VALUE: &str = "n7-Zk3vQ9 sX1b\"N7tR\\5wY2&ltmC8d=";

/// Pieces of what is searched for, and of what is left out and stands between.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let spellings: Vec<Vec<u8>> = known::spellings(VALUE).into_iter().collect();
    let marks: Vec<Vec<u8>> = [
        "\\",
        "n",
        "r",
        "\\n",
        "\"",
        " ",
        "\x1b[",
        "\x1b[31m",
        "m",
        "%",
        "%5",
        "%6E",
        "sk-",
        "x",
        "\\u00",
        "\\u006E",
        "\\x2",
        "\\u0026",
        "&",
        "&#11",
        "&#110;",
        "&amp;",
        "\\ud83d\\ude00",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .chain([vec![b' '; 33], vec![b'n'; 40]])
    .collect();
    prop_oneof![
        (prop::sample::select(spellings), any::<prop::sample::Index>(), any::<prop::sample::Index>())
            .prop_map(|(text, from, to)| {
                let (from, to) = (from.index(text.len()), to.index(text.len()));
                text[from.min(to)..=from.max(to)].to_vec()
            }),
        prop::sample::select(marks),
        prop::collection::vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_passed_over_changes_nothing(
        pieces in prop::collection::vec(piece(), 0..30),
        from in any::<prop::sample::Index>(),
        end in any::<bool>(),
        with_shapes in any::<bool>(),
    ) {
        let text = pieces.concat();
        let from = from.index(text.len() + 1);
        let shapes = || if with_shapes { SHAPES.to_vec() } else { Vec::new() };
        let quick = Patterns::new([("V", VALUE)].into_iter(), shapes());
        let mut slow = Patterns::new([("V", VALUE)].into_iter(), shapes());
        let automaton = slow.automaton.as_mut().unwrap();
        (automaton.dull, automaton.dull_folded) = (Dull::new(|_| true), Dull::new(|_| true));
        for view in [
            View::Plain,
            View::Loose,
            View::Escaped,
            View::EscapedOnce,
            View::Decoded,
            View::Strict,
            View::StrictOnce,
            View::LooseFolded,
            View::DecodedFolded,
        ] {
            let read = |patterns: &Patterns| {
                let mut found = Vec::new();
                let open = patterns.read(view, &text, from, end, |start, length, pattern| {
                    found.push((start, length, pattern.mark.clone()));
                    std::ops::ControlFlow::Continue(())
                });
                (found, open)
            };
            prop_assert_eq!(read(&quick), read(&slow), "{:?}", view);
        }
    }
}

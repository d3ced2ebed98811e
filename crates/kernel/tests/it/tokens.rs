//! The estimate of tokens, against what two real tokenizers (`cl100k_base`, `o200k_base`) made of the same
//! texts.

use bailey_kernel::tokens;
use serde::Deserialize;

#[derive(Deserialize)]
struct Sample {
    name: String,
    cl100k: u64,
    o200k: u64,
    text: String,
}

fn samples() -> Vec<Sample> {
    serde_json::from_str(include_str!("../data/tokens.json")).unwrap()
}

#[test]
fn the_estimate_is_not_below_either_tokenizer_by_more_than_a_hundredth() {
    let samples = samples();
    assert!(samples.len() > 20);
    for Sample { name, cl100k, o200k, text } in &samples {
        let (real, ours) = (*cl100k.max(o200k), tokens(text));
        // Invented words are the worst case: a third may be missing.
        let least = if name == "rarewords" { real * 2 / 3 } else { real * 99 / 100 };
        assert!(ours >= least, "{name}: {ours} for {real}");
        assert!(ours <= real * 18 / 10, "{name}: {ours} for {real} is wasteful");
    }
    // Control: a count by length, three bytes to a token, is far below on what is no prose.
    let by_length = |sample: &&Sample| (sample.text.len() as u64) / 3 < sample.cl100k * 4 / 5;
    assert!(samples.iter().filter(by_length).count() > 4);
}

#[test]
fn no_text_comes_to_more_tokens_than_bytes() {
    for text in ["", "a", "é", "🏰", "\u{0}", "....", "aA1.aA1.", "\r\n\r\n"] {
        assert!(tokens(text) <= text.len() as u64, "{text:?}");
    }
    for Sample { text, .. } in samples() {
        assert!(tokens(&text) <= text.len() as u64);
    }
}

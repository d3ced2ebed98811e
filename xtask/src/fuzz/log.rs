//! What libFuzzer says on standard error, as figures.

use std::fmt;

/// What came of one target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    name: String,
    pub(super) executions: u64,
    /// Edges of the program's control flow that were reached.
    edges: u64,
    /// Edges with how often they were taken, and values that were compared.
    features: u64,
    /// Inputs that were kept.
    corpus: u64,
    seconds: u64,
    /// Why it failed, and where the input lies.
    pub(super) failure: Option<String>,
}

impl Log {
    pub(super) fn read(name: &str, text: &str, is_success: bool, seconds: u64) -> Self {
        let mut log = Self { name: name.into(), seconds, ..Self::default() };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            let number = |word: Option<&str>| word.and_then(|word| word.split('/').next()?.parse().ok());
            if let Some(count) = first.strip_prefix('#').and_then(|count| count.parse().ok()) {
                log.executions = count;
                while let Some(word) = words.next() {
                    match word {
                        "cov:" => log.edges = number(words.next()).unwrap_or(log.edges),
                        "ft:" => log.features = number(words.next()).unwrap_or(log.features),
                        "corp:" => log.corpus = number(words.next()).unwrap_or(log.corpus),
                        _ => {}
                    }
                }
            } else if first == "stat::number_of_executed_units:" {
                log.executions = number(words.next()).unwrap_or(log.executions);
            }
        }
        log.failure = (!is_success).then(|| failure(text));
        log
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, executions, edges, features, corpus, seconds, failure } = self;
        let result = failure.as_deref().map_or("ok".into(), |failure| format!("FAILED\n  {failure}"));
        write!(f, "{name:<18} {executions:>12} {edges:>7} {features:>8} {corpus:>7} {seconds:>7}  {result}")
    }
}

/// The panic or libFuzzer's own summary, and the file with the input.
fn failure(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let mut said: Vec<&str> = match panic {
        Some(at) => lines.iter().skip(at).take(2).copied().collect(),
        None => lines
            .iter()
            .filter(|line| line.starts_with("SUMMARY:") || line.contains("ERROR:"))
            .copied()
            .collect(),
    };
    said.extend(lines.iter().filter(|line| line.contains("Test unit written to")));
    if said.is_empty() {
        said.extend(lines.last());
    }
    said.join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::Log;

    const WELL: &str = "INFO: Seed: 1\n#2\tINITED cov: 8 ft: 9 corp: 1/1b exec/s: 0 rss: 27Mb\n\
        #274\tREDUCE cov: 10 ft: 12 corp: 3/8b lim: 6 exec/s: 0 rss: 27Mb L: 6/6 MS: 1 InsertByte-\n\
        #3000\tDONE   cov: 11 ft: 13 corp: 4/8b lim: 4096 exec/s: 97 rss: 27Mb\nDone 3000 runs in 31 second(s)\n\
        stat::number_of_executed_units: 3000\n";
    const BADLY: &str = "#2\tINITED cov: 8 ft: 9 corp: 1/1b exec/s: 0 rss: 27Mb\n\n\
        thread '<unnamed>' (1) panicked at src/main.rs:3:5:\nfound\nnote: run with\n==1== ERROR: libFuzzer: deadly signal\n\
        artifact_prefix='./'; Test unit written to ./crash-83\nstat::number_of_executed_units: 1167\n";

    #[test]
    fn figures_are_read_from_the_last_line_that_has_them() {
        let log = Log::read("x", WELL, true, 31);
        assert_eq!((log.executions, log.edges, log.features, log.corpus), (3000, 11, 13, 4));
        assert_eq!(log.failure, None);
        assert!(log.to_string().ends_with("ok"), "{log}");
    }

    #[test]
    fn a_failure_says_why_and_where_the_input_lies() {
        let failure = Log::read("x", BADLY, false, 1).failure.unwrap();
        assert!(failure.contains("found") && failure.contains("./crash-83"), "{failure}");
        // Whatever else ends it is a failure, too.
        assert_eq!(Log::read("x", "no such file", false, 0).failure.as_deref(), Some("no such file"));
    }
}

//! Cases that are run in turn, so that whatever else the machine does falls on all of them alike.

use anyhow::Result;
use std::time::{Duration, Instant};

/// Rounds that are run first and not counted.
const WARM_UP: usize = 3;
/// The pause before each measurement: an agent thinks longer between two steps, and what is made ahead gets
/// ready.
const GAP: Duration = Duration::from_millis(20);

/// One thing to be measured.
pub(super) struct Case<'a> {
    name: String,
    ahead: Box<dyn FnMut() -> Result<()> + 'a>,
    run: Box<dyn FnMut() -> Result<()> + 'a>,
}

impl<'a> Case<'a> {
    pub(super) fn new(name: impl Into<String>, run: impl FnMut() -> Result<()> + 'a) -> Self {
        Self { name: name.into(), ahead: Box::new(|| Ok(())), run: Box::new(run) }
    }

    /// What is done before the pause, and not measured.
    pub(super) fn after(self, ahead: impl FnMut() -> Result<()> + 'a) -> Self {
        Self { ahead: Box::new(ahead), ..self }
    }
}

/// Runs every case in turn, `rounds` times, and [prints](table) what they took. Each run of a case does `per`
/// things, and times are of one.
pub(super) fn compare(title: &str, rounds: usize, per: u32, cases: Vec<Case<'_>>) -> Result<()> {
    compare_after(GAP, title, rounds, per, cases)
}

/// The same with another pause.
pub(super) fn compare_after(
    gap: Duration,
    title: &str,
    rounds: usize,
    per: u32,
    mut cases: Vec<Case<'_>>,
) -> Result<()> {
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(rounds); cases.len()];
    for round in 0..WARM_UP + rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            (case.ahead)()?;
            std::thread::sleep(gap);
            let begin = Instant::now();
            (case.run)()?;
            if round >= WARM_UP {
                times.push(begin.elapsed() / per);
            }
        }
    }
    table(title, cases.into_iter().map(|case| case.name).zip(times).collect());
    Ok(())
}

/// Prints what was measured: each row's median, tenth, ninetieth and ninety-ninth part, and the ratio of its
/// median to the first one's.
pub(super) fn table(title: &str, rows: Vec<(String, Vec<Duration>)>) {
    let rounds = rows.iter().map(|(_, times)| times.len()).max().unwrap_or(0);
    println!("{title} (N={rounds})");
    println!("  {:<52} {:>11} {:>11} {:>11} {:>11} {:>7}", "", "median", "p10", "p90", "p99", "ratio");
    let mut first = None;
    for (name, mut times) in rows {
        times.sort_unstable();
        let at = |hundredths: usize| times.get(times.len() * hundredths / 100).copied().unwrap_or_default();
        let median = at(50);
        let base = *first.get_or_insert(median);
        println!(
            "  {:<52} {:>11} {:>11} {:>11} {:>11} {:>7.2}",
            name,
            shown(median),
            shown(at(10)),
            shown(at(90)),
            shown(at(99)),
            median.as_secs_f64() / base.as_secs_f64()
        );
    }
    println!();
}

fn shown(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    if us < 1000.0 { format!("{us:.1} us") } else { format!("{:.2} ms", us / 1000.0) }
}
